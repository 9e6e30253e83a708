//! Text to masks, by way of `louver_fuzz::lark`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| louver_fuzz::lark(data));
