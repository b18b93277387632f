//! Benches for the claims that the README makes.

fn main() {
    divan::main();
}
