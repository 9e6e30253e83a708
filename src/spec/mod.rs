//! Stage 0: JSON values with exact numbers.

pub mod json;
