//! The command line.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Parser};

use crate::clock;
use crate::engine::Kind;
use crate::scenario::Scenario;

/// Louver and its peers on the same tokens.
#[derive(Debug, Parser)]
#[command(name = "louver-peers")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) scenario: Scenario,
}

/// What all scenarios take.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Folder with the cases and the tokenizers; `../shared/data` beside the repository if left out.
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The tokenizer, by its folder below `tokenizers`.
    #[arg(long, global = true, value_name = "NAME", default_value = "llama3_1")]
    pub(crate) tokenizer: String,
    /// Engines to run, separated by commas; all that are built in if left out.
    #[arg(long, global = true, value_name = "NAMES", value_delimiter = ',')]
    engines: Vec<Kind>,
    /// Only the first N cases.
    #[arg(long, global = true, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Only each Nth case.
    #[arg(long, global = true, value_name = "N", default_value = "1")]
    pub(crate) every: NonZeroUsize,
    /// xgrammar compiles eagerly: of the cases that are run, let it have only each Nth.
    #[arg(long, global = true, value_name = "N", default_value = "1")]
    pub(crate) xgr_every: NonZeroUsize,
    /// Louver makes masks ahead, within the default budget, and is waited for before the first token; the schemas and tools have that
    /// time in rows of its own.
    #[arg(long, global = true)]
    pub(crate) prepare: bool,
    /// How Louver hands its masks over.
    #[arg(long, global = true, value_name = "HOW", default_value = "kept")]
    pub(crate) masks: Masks,
    /// What times are measured with.
    #[arg(long, global = true, value_name = "CLOCK", default_value = "wall")]
    pub(crate) clock: clock::Choice,
    /// Folder for the records, one file a scenario and engine, one JSON object a line.
    #[arg(long, global = true, value_name = "DIR", default_value = "target/peers")]
    pub(crate) out: PathBuf,
}

/// How Louver hands its masks over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Masks {
    /// In a row that is kept, where only what differs is written (`update_mask`).
    #[default]
    Kept,
    /// Each is copied into a buffer (`fill_mask`).
    Copied,
}

impl Common {
    /// The folder with the data, or a file in it.
    pub(crate) fn data(&self, file: &str) -> PathBuf {
        let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        self.data.clone().unwrap_or_else(default).join(file)
    }

    /// The same with all cases.
    pub(crate) fn unsampled(&self) -> Common {
        Common { limit: None, every: NonZeroUsize::MIN, ..self.clone() }
    }

    /// The engines that were asked for and are built in. Says which are not.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let asked = if self.engines.is_empty() { Kind::ALL.to_vec() } else { self.engines.clone() };
        let (built, missing): (Vec<Kind>, Vec<Kind>) =
            asked.into_iter().partition(|kind| kind.is_built_in());
        for kind in missing {
            eprintln!("skipped: {} is not built in (build with `--features xgr`)", kind.name());
        }
        built
    }
}
