//! Runs `louver_fuzz::engine::json_schema`.
#![no_main]

use louver_fuzz::engine;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine::bounded(engine::json_schema, data));
