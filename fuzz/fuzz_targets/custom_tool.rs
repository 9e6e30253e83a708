//! Runs `louver_fuzz::formats::custom_tool`.
#![no_main]

use louver_fuzz::formats;

libfuzzer_sys::fuzz_target!(|data: &[u8]| formats::bounded(formats::custom_tool, data));
