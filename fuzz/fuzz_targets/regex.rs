//! Text to masks, by way of `louver_fuzz::regex`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| louver_fuzz::regex(data));
