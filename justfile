# What one types often. `just --list` shows it all.

# Everything that must pass before a commit.
check:
    cargo fmt --all --check
    cargo clippy --all-targets -- -D warnings
    cargo test
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items

# Look through changed snapshots.
snap:
    cargo insta review

# Regenerate the tables in docs/ and the pictures of the README.
readme:
    COCODE_REGENERATE=1 cargo test --test it readme
    cargo build
    cargo run --example screenshot

# Show screens as text, such as `just screens --size 40x12 tour`.
screens *arguments:
    cargo build
    cargo run --example screenshot -- --text {{arguments}}

# Tear shell lines for longer than CI does, such as `just fuzz 7 200000`: a seed, and how many lines.
fuzz seed count:
    COCODE_FUZZ="{{seed}} {{count}}" cargo test --test it permission_fuzz -- --nocapture

# Licences, sources and banned crates; needs cargo-deny.
deny:
    cargo deny --offline check licenses bans sources

# The longest files, in lines before their tests.
long:
    @find src -name '*.rs' -exec awk '/^#\[cfg\(test\)\]/ { exit } { n++ } END { print n, FILENAME }' {} \; | sort -rn | head -20
