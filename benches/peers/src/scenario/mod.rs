//! The benchmark scenarios.

mod batch;
mod corpus;
mod decode;
mod growth;
mod hard;
mod load;
mod memory;
mod rounds;
mod vocabularies;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::engine::EngineKind;
use crate::options::Common;
use crate::tool_format::ToolFormat;

/// The benchmark scenarios.
#[derive(Debug, Subcommand)]
pub(crate) enum Scenario {
    /// Real-world JSON Schemas with valid and invalid instances (maskbench-dev.jsonl).
    Schemas,
    /// Tool calls in free text (toolcalls-dev.jsonl).
    Tools {
        /// The wire format, with the tokenizer of its family.
        #[arg(long, value_name = "NAME", default_value = "llama3_function")]
        format: ToolFormat,
    },
    /// 400 tools in one dispatch: compile to first mask, cold.
    ManyTools,
    /// Strings, arrays and patterns with large bounds.
    Repeats,
    /// Grammars with exponentially many derivations.
    Ambiguous,
    /// Masks of many sequences, warm, on a few threads.
    Batch {
        /// Sequences.
        #[arg(long, value_name = "N", default_value = "512")]
        matchers: NonZeroUsize,
        /// Threads.
        #[arg(long, value_name = "N", default_value = "2")]
        threads: NonZeroUsize,
    },
    /// What constraints add to decode steps with forward passes of some duration.
    Decode(decode::DecodeArgs),
    /// Masks of running sequences beside new requests (toolcalls-dev.jsonl), Louver only.
    Load(load::LoadArgs),
    /// Resident memory after all schemas, with a separate process per engine.
    Memory {
        /// Only this engine, in this process.
        #[arg(long, value_name = "ENGINE", hide = true)]
        alone: Option<EngineKind>,
    },
    /// The schemas on four tokenizers.
    Vocabularies,
    /// Cost by schema size, depth, tools, vocabulary and batch size; writes SVG figures.
    Growth {
        /// Folder for the figures.
        #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plots"))]
        plots: PathBuf,
    },
}

pub(crate) fn run(common: &Common, scenario: &Scenario) -> Result<()> {
    match scenario {
        Scenario::Schemas => corpus::schemas(common),
        Scenario::Tools { format } => corpus::tools(common, *format),
        Scenario::ManyTools => hard::many_tools(common),
        Scenario::Repeats => hard::repeats(common),
        Scenario::Ambiguous => hard::ambiguous(common),
        Scenario::Batch { matchers, threads } => batch::run(common, matchers.get(), threads.get()),
        Scenario::Decode(args) => decode::run(common, args),
        Scenario::Load(args) => load::run(common, *args),
        Scenario::Memory { alone: None } => memory::run(common),
        Scenario::Memory { alone: Some(kind) } => memory::run_single(common, *kind),
        Scenario::Vocabularies => vocabularies::run(common),
        Scenario::Growth { plots } => growth::run(common, plots),
    }
}
