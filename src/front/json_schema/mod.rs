//! stub
/// stub
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct SchemaErrors {}
/// stub
#[derive(Debug, Clone, Default)]
pub struct SchemaOptions {}
