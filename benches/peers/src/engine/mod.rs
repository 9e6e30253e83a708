//! One face for all engines.

mod llguidance;
mod louver;
#[cfg(feature = "xgr")]
pub(crate) mod xgrammar;

use clap::ValueEnum;

pub(crate) use self::llguidance::{Llguidance, tok_env};
pub(crate) use self::louver::Louver;
use crate::cases::Task;

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kind {
    Louver,
    Llguidance,
    Xgrammar,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Louver, Kind::Llguidance, Kind::Xgrammar];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Louver => "louver",
            Kind::Llguidance => "llguidance",
            Kind::Xgrammar => "xgrammar",
        }
    }

    pub(crate) fn is_built_in(self) -> bool {
        self != Kind::Xgrammar || cfg!(feature = "xgr")
    }

    /// The name and the version that is built in, as the lock file has it.
    pub(crate) fn with_version(self) -> String {
        let entry = format!("name = \"{}\"\nversion = \"", self.name());
        let version = include_str!("../../Cargo.lock")
            .split(&entry)
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let behind = if self == Kind::Xgrammar { " (the crate; xgrammar 0.2.8)" } else { "" };
        format!("{} {}{behind}", self.name(), version.unwrap_or("of unknown version"))
    }
}

/// An engine with one tokenizer.
pub(crate) trait Engine {
    fn kind(&self) -> Kind;

    /// Compiles with the clock running.
    fn compile(&self, task: &Task) -> Compiled;
}

/// What compiling gave, and how long it took until the first matcher was ready.
pub(crate) struct Compiled {
    pub(crate) ttfm_ns: u64,
    /// What was done ahead, where that is apart from compiling.
    pub(crate) prepare_ns: Option<u64>,
    pub(crate) outcome: Result<Box<dyn Constraint>, String>,
}

/// Something compiled.
pub(crate) trait Constraint {
    /// A matcher at the beginning, independent of all others.
    fn matcher(&self) -> Box<dyn Matcher>;
}

/// One sequence.
pub(crate) trait Matcher {
    /// Builds the mask of the next token; false if the engine gives up.
    fn mask(&mut self) -> bool;

    /// Advances if the token is allowed; tells whether it was. To be called after [`Matcher::mask`].
    fn take(&mut self, token: u32) -> bool;

    /// Whether the text may end here.
    fn is_complete(&mut self) -> bool;
}
