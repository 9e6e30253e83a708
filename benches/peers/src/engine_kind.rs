//! The names of the engines.

use clap::ValueEnum;

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
        let version = include_str!("../Cargo.lock")
            .split(&entry)
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let suffix = if self == EngineKind::Xgrammar { " (the crate; xgrammar 0.2.8)" } else { "" };
        format!("{} {}{suffix}", self.name(), version.unwrap_or("of unknown version"))
    }
}
