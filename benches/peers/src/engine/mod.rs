//! The common interface of all engines.

mod llguidance;
mod louver;
#[cfg(feature = "xgr")]
pub(crate) mod xgrammar;

pub(crate) use self::llguidance::{Llguidance, tok_env};
pub(crate) use self::louver::{Louver, LouverCompiler};
use crate::cases::Task;
pub(crate) use crate::engine_kind::EngineKind;

/// An engine with one tokenizer.
pub(crate) trait Engine {
    fn kind(&self) -> EngineKind;

    /// Compiles and measures the time.
    fn compile(&self, task: &Task) -> Compiled;
}

/// The result of compilation, and the time to the first matcher.
pub(crate) struct Compiled {
    pub(crate) ttfm_ns: u64,
    /// Time of preparation, if it is separate from compilation.
    pub(crate) prepare_ns: Option<u64>,
    pub(crate) outcome: Result<Box<dyn Constraint>, String>,
}

/// A compiled constraint.
pub(crate) trait Constraint {
    /// Creates a matcher in its initial state, independent of all others.
    fn matcher(&self) -> Box<dyn Matcher>;
}

/// One sequence.
pub(crate) trait Matcher {
    /// Computes the mask of the next token; false if the engine gives up.
    fn mask(&mut self) -> bool;

    /// Advances if the token is allowed, and returns whether it is. Call it after
    /// [`Matcher::mask`].
    fn take(&mut self, token: u32) -> bool;

    /// Whether the text may end here.
    fn is_complete(&mut self) -> bool;
}
