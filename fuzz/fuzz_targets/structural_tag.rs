//! Runs `louver_fuzz::engine::structural_tag`.
#![no_main]

use louver_fuzz::engine;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine::bounded(engine::structural_tag, data));
