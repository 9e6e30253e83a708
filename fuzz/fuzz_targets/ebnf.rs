//! Runs `louver_fuzz::engine::ebnf`.
#![no_main]

use louver_fuzz::engine;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine::bounded(engine::ebnf, data));
