//! Runs `louver_fuzz::formats::wire_text`.
#![no_main]

use louver_fuzz::formats;

libfuzzer_sys::fuzz_target!(|data: &[u8]| formats::bounded(formats::wire_text, data));
