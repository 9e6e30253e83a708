//! What the fuzz targets do with an input, and what must hold. Two files, as the tests of two crates
//! replay seeds and regressions through the same functions.

pub mod engine;
pub mod formats;
