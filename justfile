# Formatting, lints, tests and documentation. `.ci/run` is everything that CI runs.
check: fmt lint test doc door-check

fmt:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

test:
    cargo test --workspace

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# Without the host: seconds instead of minutes.
quick:
    cargo test -p louver -p louver-formats -p louver-hf-tokenizers
    cargo test -p louver-cli --no-default-features

# Anthropic's Python client against the server with the embedded model.
anthropic *args:
    bash tests/anthropic/run {{args}}

# Agent frameworks and client libraries (LangChain, LangGraph, instructor, the OpenAI Agents SDK,
# pydantic-ai, LiteLLM, smolagents, Vercel's AI SDK, OpenAI's package for Node) against the server
# with the embedded model: minutes; `just frameworks langchain` for one of them.
frameworks *args:
    bash tests/frameworks/run {{args}}

# A small trained model: the demo, strict calls in every style of syntax, and its accuracy (needs
# ../shared/data for the last). Downloads 93 MB once.
trained sample="40":
    cargo run --release -- demo --trained
    LOUVER_SMOLLM2=`cargo run --release -- demo --trained --json | sed -n '1s/.*"model":"\([^"]*\)".*/\1/p'` \
        cargo test --workspace --test host trained
    cargo run --release -- bench serve bfcl --trained --cases ../shared/data/toolcalls-dev.jsonl \
        --categories simple_python,multiple,parallel --sample {{sample}} --out target/bfcl.jsonl

# Calls of any model on BFCL: without a constraint, with mistral.rs's own, with Louver (needs
# ../shared/data).
bfcl model *args:
    cargo run --release -- bench serve bfcl --model {{model}} \
        --cases ../shared/data/toolcalls-dev.jsonl {{args}}

# The inspector's page in a headless browser, without the server: seconds.
inspector:
    python3 server/tests/inspector/run.py

# The property tests and the comparisons with jsonschema, with many more cases and a new seed, which
# is printed.
soak cases="20000" seed=`date +%s`:
    @echo "seed {{seed}}"
    PROPTEST_RNG_SEED={{seed}} PROPTEST_CASES={{cases}} cargo test -p louver --test suite property
    PROPTEST_RNG_SEED={{seed}} PROPTEST_CASES={{cases}} cargo test -p louver --lib
    LOUVER_SEED={{seed}} LOUVER_DIFFERENTIAL={{cases}} LOUVER_RELAXED={{cases}} \
        LOUVER_OVERLAPS={{cases}} cargo test -p louver --test suite schema

# Engine steps on eight threads with small caches, rollbacks, forks and work ahead; checked on the way.
soak-engine steps="100000000":
    LOUVER_SOAK_STEPS={{steps}} cargo test -p louver --test soak -- --nocapture

# Hostile schemas, grammars and requests, with what each costs; `just hostile regex/` for some of them.
hostile filter="":
    LOUVER_HOSTILE={{filter}} cargo test -p louver -p louver-formats --test hostile -- --nocapture

# Licences, duplicates and sources of dependencies, by deny.toml.
deny:
    cargo deny --workspace check bans licenses sources

# The fuzz targets without a fuzzer: mutated seeds for so many seconds each.
fuzz seconds="60":
    PROPTEST_RNG_SEED=`date +%s` LOUVER_FUZZ_SECONDS={{seconds}} cargo test -p louver -p louver-formats fuzz_mutated -- --nocapture

# Every cut, corruption and real call of every wire format (minutes; more of them with ../shared/data).
formats:
    LOUVER_ALL_CASES=1 cargo test --release -p louver-formats --test it -- --nocapture
    LOUVER_ALL_CASES=1 cargo test --release -p louver-templates --test it families -- --nocapture

# Against llguidance and xgrammar (needs clang, cmake and ../shared/data); `just peers schemas --every 10`.
peers *args:
    cd benches/peers && cargo run --release --features xgr -- {{args}}

# The cheap part of `door`, as in CI: format, lints, states, 20,000 masks beside the original's.
door-check:
    bash .ci/door

# The interface of llguidance over Louver: masks beside the original's, then mistral.rs on it (builds
# mistral.rs once more). With ../shared/data also on schemas of MaskBench.
door steps="1000000":
    cd adapters/llguidance && LOUVER_STEPS={{steps}} cargo test --workspace -- --nocapture
    cd adapters/llguidance/mistralrs && cargo test

# A copy of mistral.rs's test workspace without the patch, so that it runs on the original.
[private]
door-copy folder:
    mkdir -p {{folder}}/src {{folder}}/tests {{folder}}/examples
    cp adapters/llguidance/mistralrs/Cargo.lock {{folder}}
    cp adapters/llguidance/mistralrs/src/lib.rs {{folder}}/src
    cp adapters/llguidance/mistralrs/tests/host.rs {{folder}}/tests
    cp adapters/llguidance/mistralrs/examples/rate.rs {{folder}}/examples
    sed -e '/^\[patch/,/^$/d' -e 's|"../../tiny-model"|"{{justfile_directory()}}/adapters/tiny-model"|' \
        adapters/llguidance/mistralrs/Cargo.toml > {{folder}}/Cargo.toml

# Records the texts of mistral.rs with the original at temperature 0, which `door` compares with
# (builds mistral.rs once more).
door-record folder="target/door-original": (door-copy folder)
    cd {{folder}} && LOUVER_RECORD=1 cargo test of_the_original
    cp {{folder}}/tests/original.json adapters/llguidance/mistralrs/tests

# Tokens per second of mistral.rs with its own constraints, on the original and on Louver (builds
# mistral.rs twice in release). TOKENIZER is a tokenizer.json: the tiny model gets its vocabulary.
door-rate tokenizer rounds="5" folder="target/door-original": (door-copy folder)
    cd {{folder}} && cargo build --release --example rate
    cd adapters/llguidance/mistralrs && cargo build --release --example rate
    cd {{folder}} && cargo run --release --example rate -- {{tokenizer}} {{rounds}}
    cd adapters/llguidance/mistralrs && \
        cargo run --release --example rate -- {{tokenizer}} {{rounds}}

# MaskBench through the interface of llguidance, beside the original (needs ../shared/data).
door-bench every="1":
    cd adapters/llguidance && cargo run --release -p llguidance-conformance --bin maskbench -- {{every}}

# Needs LOUVER_TOKENIZERS or ../shared/data, see adapters/llguidance/published-tests/run.
# The tests that llguidance is published with, on the adapter or the `original`: what passes.
door-published side="adapter":
    bash adapters/llguidance/published-tests/run {{side}}

# The Python package: its wheel and its tests; `--with-transformers` also installs torch (gigabytes).
python *args:
    bash adapters/python/check {{args}}

# The CUDA code without a GPU or a toolkit (fetches nvcc from PyPI once): PTX as committed, feature `cuda` builds.
cuda-check:
    bash adapters/candle/cuda/check

# The CUDA code on a GPU: tests, compute-sanitizer, figures, the example. `just gpu build` builds it
# for another machine.
gpu *args:
    bash adapters/candle/cuda/gpu {{args}}
