//! Stage 1. Front ends: what users write becomes the typed grammar of [`crate::ir`].

pub mod json_schema;
pub mod regex;
