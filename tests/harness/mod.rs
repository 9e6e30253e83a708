//! The shared parts of the integration tests: the oracle, which shares no code with the engine,
//! case files, and the ways to drive a matcher.

pub(crate) mod cases;
pub(crate) mod columns;
pub(crate) mod machine;
pub(crate) mod oracle;
pub(crate) mod reader;
pub(crate) mod replay;

use louver::engine::EngineOptions;
use louver::limits::Limits;

/// The default options without limits on fuel: random grammars may be highly ambiguous, and the
/// oracle has no limits either.
pub(crate) fn unlimited() -> EngineOptions {
    let limits = Limits::default()
        .with_compile_fuel(u64::MAX)
        .with_mask_fuel(u64::MAX)
        .with_sequence_fuel(u64::MAX);
    EngineOptions::default().with_limits(limits)
}
