# `just check` is what CI runs.
check: fmt lint test doc

fmt:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

test:
    cargo test --workspace

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Without the host: seconds instead of minutes.
quick:
    cargo test -p louver -p louver-formats -p louver-hf-tokenizers
    cargo test -p louver-cli --no-default-features

# The property tests with many more cases.
soak cases="20000":
    PROPTEST_CASES={{cases}} cargo test -p louver --test suite property

# Against llguidance and xgrammar (needs clang, cmake and ../shared/data); `just peers schemas --every 10`.
peers *args:
    cd benches/peers && cargo run --release --features xgr -- {{args}}
