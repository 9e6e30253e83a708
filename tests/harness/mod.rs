//! What the integration tests share: an oracle that owes the engine nothing, case files, and the ways to drive the engine.

pub(crate) mod cases;
pub(crate) mod columns;
pub(crate) mod machine;
pub(crate) mod oracle;
pub(crate) mod reader;
pub(crate) mod replay;
