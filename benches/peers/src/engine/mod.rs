//! The common interface of all engines.

mod llguidance;
mod louver;
#[cfg(feature = "xgr")]
pub(crate) mod xgrammar;

use clap::ValueEnum;

pub(crate) use self::llguidance::{Llguidance, tok_env};
pub(crate) use self::louver::{Louver, LouverCompiler};
use crate::cases::Task;

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum EngineKind {
    Louver,
    Llguidance,
    Xgrammar,
}

impl EngineKind {
    pub(crate) const ALL: [EngineKind; 3] =
        [EngineKind::Louver, EngineKind::Llguidance, EngineKind::Xgrammar];

    pub(crate) fn name(self) -> &'static str {
        match self {
            EngineKind::Louver => "louver",
            EngineKind::Llguidance => "llguidance",
            EngineKind::Xgrammar => "xgrammar",
        }
    }

    pub(crate) fn is_built_in(self) -> bool {
        self != EngineKind::Xgrammar || cfg!(feature = "xgr")
    }

    /// The name and the linked version, from the lock file.
    pub(crate) fn with_version(self) -> String {
        let entry = format!("name = \"{}\"\nversion = \"", self.name());
        let version = include_str!("../../Cargo.lock")
            .split(&entry)
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let suffix = if self == EngineKind::Xgrammar { " (the crate; xgrammar 0.2.8)" } else { "" };
        format!("{} {}{suffix}", self.name(), version.unwrap_or("of unknown version"))
    }
}

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
