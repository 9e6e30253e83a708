//! Runs `louver_fuzz::formats::request`.
#![no_main]

use louver_fuzz::formats;

libfuzzer_sys::fuzz_target!(|data: &[u8]| formats::bounded(formats::request, data));
