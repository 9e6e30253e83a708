//! What the integration tests share: an oracle that owes the engine nothing, case files, and the ways to drive the engine.

pub(crate) mod cases;
pub(crate) mod columns;
pub(crate) mod machine;
pub(crate) mod oracle;
pub(crate) mod reader;
pub(crate) mod replay;

use louver::engine::EngineOptions;
use louver::limits::Limits;

/// The default options without bounds on work: random grammars may be as ambiguous as they like, and
/// the oracle has no bounds either.
pub(crate) fn unlimited() -> EngineOptions {
    let limits = Limits { compile_fuel: u64::MAX, mask_fuel: u64::MAX, ..Limits::default() };
    EngineOptions { limits, ..EngineOptions::default() }
}
