//! OpenAI-compatible HTTP server over mistral.rs.

pub mod inspect;
