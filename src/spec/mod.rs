//! Stage 0.

pub mod json;
pub mod tools;
