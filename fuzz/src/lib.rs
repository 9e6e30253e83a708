//! The functions of the fuzz targets and their invariants. Two files, because the tests of two
//! crates replay seeds and regressions through them.

pub mod engine;
pub mod formats;
