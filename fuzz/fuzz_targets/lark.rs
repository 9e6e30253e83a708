//! Runs `louver_fuzz::engine::lark`.
#![no_main]

use louver_fuzz::engine;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine::bounded(engine::lark, data));
