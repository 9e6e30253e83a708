//! Options of all scenarios.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::clock;
use crate::engine_kind::EngineKind;

/// Options of all scenarios.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Folder with the cases and the tokenizers [default: `../shared/data` next to the repository].
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// File of the cases, for scenarios that read one [default: the one they name].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cases: Option<PathBuf>,
    /// Name of the tokenizer's folder in `tokenizers`.
    #[arg(long, global = true, value_name = "NAME", default_value = "llama3_1")]
    pub(crate) tokenizer: String,
    /// Engines to run, separated by commas [default: all that are built in].
    #[arg(long, global = true, value_name = "NAMES", value_delimiter = ',')]
    engines: Vec<EngineKind>,
    /// Run only the first N cases.
    #[arg(long, global = true, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Run only each Nth case.
    #[arg(long, global = true, value_name = "N", default_value = "1")]
    pub(crate) every: NonZeroUsize,
    /// Run xgrammar only on each Nth of the cases, because it compiles eagerly.
    #[arg(long, global = true, value_name = "N", default_value = "1")]
    pub(crate) xgr_every: NonZeroUsize,
    /// Let Louver prepare masks within the default budget and wait for them before the first token;
    /// schemas and tools report that time in separate rows.
    #[arg(long, global = true)]
    pub(crate) prepare: bool,
    /// How Louver hands masks over.
    #[arg(long, global = true, value_name = "HOW", default_value = "kept")]
    pub(crate) masks: Masks,
    /// The clock.
    #[arg(long, global = true, value_name = "CLOCK", default_value = "wall")]
    pub(crate) clock: clock::ClockChoice,
    /// Folder for the records: one file per scenario and engine, one JSON object per line.
    #[arg(long, global = true, value_name = "DIR", default_value = "target/peers")]
    pub(crate) out: PathBuf,
}

/// How Louver hands masks over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Masks {
    /// In a reused row, in which only changes are written (`update_mask`).
    #[default]
    Kept,
    /// By copying each mask into a buffer (`fill_mask`).
    Copied,
}

impl Common {
    /// The path of a file in the data folder.
    pub(crate) fn data(&self, file: &str) -> PathBuf {
        let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        self.data.clone().unwrap_or_else(default).join(file)
    }

    /// The same with all cases.
    pub(crate) fn unsampled(&self) -> Common {
        Common { limit: None, every: NonZeroUsize::MIN, ..self.clone() }
    }

    /// The requested engines that are built in. Prints which are not.
    pub(crate) fn kinds(&self) -> Vec<EngineKind> {
        let requested =
            if self.engines.is_empty() { EngineKind::ALL.to_vec() } else { self.engines.clone() };
        let (built, missing): (Vec<EngineKind>, Vec<EngineKind>) =
            requested.into_iter().partition(|kind| kind.is_built_in());
        for kind in missing {
            eprintln!("skipped: {} is not built in (build with `--features xgr`)", kind.name());
        }
        built
    }
}
