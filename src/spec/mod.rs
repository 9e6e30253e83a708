//! Stage 0: typed requests and JSON values with exact numbers.

pub mod json;
pub mod tools;
