//! Runs `louver_fuzz::engine::regex`.
#![no_main]

use louver_fuzz::engine;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine::bounded(engine::regex, data));
