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

# The inspector's page in a headless browser, without the server: seconds.
inspector:
    python3 server/tests/inspector/run.py

# The property tests with many more cases.
soak cases="20000":
    PROPTEST_CASES={{cases}} cargo test -p louver --test suite property

# Every cut, corruption and real call of every wire format (minutes; more of them with ../shared/data).
formats:
    LOUVER_ALL_CASES=1 cargo test --release -p louver-formats --test it -- --nocapture

# Against llguidance and xgrammar (needs clang, cmake and ../shared/data); `just peers schemas --every 10`.
peers *args:
    cd benches/peers && cargo run --release --features xgr -- {{args}}

# The CUDA code without a GPU or a toolkit (fetches nvcc from PyPI once): PTX as committed, feature `cuda` builds.
cuda-check:
    bash adapters/candle/cuda/check

# The CUDA code on a GPU: tests, compute-sanitizer, figures, the example.
gpu:
    bash adapters/candle/cuda/gpu
