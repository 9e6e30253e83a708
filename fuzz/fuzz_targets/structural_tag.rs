//! Text to masks, by way of `louver_fuzz::structural_tag`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| louver_fuzz::structural_tag(data));
