# What one types often. `just --list` shows it all.

# Everything that must pass before a commit.
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo test
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items

# Look through changed snapshots.
snap:
    cargo insta review

# Write the README's generated tables anew.
readme:
    COCODE_REGENERATE=1 cargo test --test it readme

# Licences, sources and banned crates; needs cargo-deny.
deny:
    cargo deny --offline check licenses bans sources

# The longest files, in lines before their tests.
long:
    @find src -name '*.rs' -exec awk '/^#\[cfg\(test\)\]/ { exit } { n++ } END { print n, ARGV[1] }' {} \; | sort -rn | head -20
