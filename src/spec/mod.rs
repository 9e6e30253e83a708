//! Stage 0: JSON values with exact numbers.

pub(crate) mod decimal;
pub mod json;
