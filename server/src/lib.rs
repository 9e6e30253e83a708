//! OpenAI-compatible HTTP server over mistral.rs.
