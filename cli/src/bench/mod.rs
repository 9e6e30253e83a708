//! The command `louver bench`: feeds instances token by token, as a host does: fill the mask, test
//! the token's bit, advance.

mod ablation;
mod feeder;
mod grammar;
mod python;
mod record;
mod schema;
#[cfg(feature = "host")]
mod serve;
mod stats;
mod summary;
mod tokenizer;
mod tools;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use louver::engine::{Engine, EngineOptions};
use louver::front::json_schema::SchemaOptions;
use louver::ir::Simplify;
use louver::limits::Limits;
use louver::mask::PoolScope;
use louver::spec::json::{Json, JsonError};
use louver::vocab::Vocabulary;
use tokenizers::Tokenizer;
use workers::RunCase;

use crate::jsonl::CaseId;
use crate::registry::RegistryArgs;
use crate::spec::schema_options;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// JSON Schemas with valid and invalid instances.
    ///
    /// Lines: {"id", "schema", "tests": [{"valid", "data"}]}.
    Schema(SchemaArgs),
    /// Tool calls in a model's wire format.
    ///
    /// Lines: {"id", "question", "tools", "calls"}.
    Tools(ToolsArgs),
    /// Grammars of any kind.
    ///
    /// Lines: {"id", "kind", "spec" or "spec_file", "options", "tests": [{"valid", "text" or
    /// "text_file"}]}.
    Grammar(GrammarArgs),
    /// The server under load and abuse, and the cost of Louver per generation.
    #[cfg(feature = "host")]
    Serve(serve::ServeBenchArgs),
}

/// Arguments of all benchmarks.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// The model's tokenizer.json; for tools also `o200k_harmony`, that of gpt-oss, if built with
    /// it.
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: PathBuf,
    /// Cases, one JSON object per line.
    #[arg(long, value_name = "FILE.jsonl")]
    cases: PathBuf,
    /// Output file for results, one JSON object per line.
    #[arg(long, value_name = "FILE.jsonl")]
    out: PathBuf,
    /// Number of threads, which share the cases and one engine.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: std::num::NonZeroUsize,
    /// Run only the first N cases.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Width of the model's logits, if larger than the tokenizer's vocabulary.
    #[arg(long, value_name = "IDS")]
    width: Option<usize>,
    /// Prepare masks in the background within the default budget, and wait for them before the
    /// first token, as after a long prompt. Preparation time is measured separately.
    #[arg(long)]
    prepare: bool,
    /// Run without limits on fuel.
    #[arg(long)]
    unlimited: bool,
    /// Whether grammars are simplified before they are compiled. Without it as in the engine: those
    /// in EBNF and Lark are, others are not.
    #[arg(long, value_enum)]
    simplify: Option<SimplifyArg>,
    /// Instead of one run, so many rounds with each optimisation of the engine switched off in
    /// turn: times beside those with all on. The output has the records of all rounds.
    #[arg(long, value_name = "ROUNDS", conflicts_with_all = ["threads", "prepare"])]
    ablation: Option<std::num::NonZeroUsize>,
}

/// [`Simplify`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SimplifyArg {
    Off,
    On,
}

impl From<SimplifyArg> for Simplify {
    fn from(arg: SimplifyArg) -> Simplify {
        match arg {
            SimplifyArg::Off => Simplify::Off,
            SimplifyArg::On => Simplify::On,
        }
    }
}

/// `louver bench schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Schema options, such as '{"order": "any"}'; see docs/JSON_SCHEMA.md.
    #[arg(long, value_name = "JSON", value_parser = schema_options, default_value = "{}")]
    options: SchemaOptions,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// `louver bench tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The wire format's name, such as `qwen3`, a TOML file that describes one, or `all` for a
    /// table of all families.
    #[arg(long, value_name = "NAME")]
    format: String,
    /// Schema options, such as '{"integers": "zero_fraction"}'; see docs/JSON_SCHEMA.md.
    #[arg(long, value_name = "JSON", value_parser = schema_options, default_value = "{}")]
    options: SchemaOptions,
    /// Count the tokens of calls that the grammar forces, instead of measuring times: with white
    /// space as the options say, spaced exactly as Python does, and without any.
    #[arg(long, conflicts_with = "ablation")]
    forced: bool,
}

/// `louver bench grammar`.
#[derive(Debug, Args)]
pub(crate) struct GrammarArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The default kind of cases: json_schema, regex, ebnf, lark, structural_tag, tools.
    #[arg(long, value_name = "KIND", default_value = "ebnf")]
    kind: String,
}

pub(crate) fn run(command: &BenchCommand) -> Result<ExitCode> {
    match command {
        BenchCommand::Schema(args) => schema::run(args),
        BenchCommand::Tools(args) => tools::run(args),
        BenchCommand::Grammar(args) => grammar::run(args),
        #[cfg(feature = "host")]
        BenchCommand::Serve(args) => serve::run(args),
    }
}

/// Runs all cases, as the arguments say; `unit` is the plural noun for cases.
fn run_cases(
    common: &CommonArgs,
    unit: &str,
    engine: &Engine,
    run_case: impl RunCase,
) -> Result<ExitCode> {
    match common.ablation {
        Some(rounds) => ablation::run(common, engine.vocab(), rounds, run_case)?,
        None => workers::run(common, unit, engine, run_case)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Loads a tokenizer of plain text, which recognises no special tokens, and creates an engine on
/// its vocabulary. Prints warnings to stderr.
fn engine(common: &CommonArgs) -> Result<(Tokenizer, Arc<Engine>)> {
    let (mut tokenizer, vocab) = tokenizer::load_json(common)?;
    tokenizer.set_encode_special_tokens(true);
    Ok((tokenizer, engine_on(common, vocab)))
}

/// Creates an engine on a vocabulary.
fn engine_on(common: &CommonArgs, vocab: Arc<Vocabulary>) -> Arc<Engine> {
    Arc::new(Engine::new(vocab, engine_options(common)))
}

/// The options of the command line.
fn engine_options(common: &CommonArgs) -> EngineOptions {
    let mut limits = Limits::default();
    if common.unlimited {
        limits = limits
            .with_compile_fuel(u64::MAX)
            .with_mask_fuel(u64::MAX)
            .with_sequence_fuel(u64::MAX);
    }
    let mut options = EngineOptions::default()
        .with_limits(limits)
        // No cached entries of earlier engines.
        .with_pool_scope(PoolScope::Engine);
    if let Some(simplify) = common.simplify {
        (options.simplify, options.simplify_texts) = (simplify.into(), simplify.into());
    }
    options
}

/// The id of a case.
fn case_id(line: &Json) -> Result<String> {
    match line.get("id") {
        Some(Json::String(id)) => Ok(id.clone()),
        Some(Json::Number(id)) => Ok(id.as_str().to_owned()),
        Some(_) => anyhow::bail!(CaseId::EXPECTED),
        None => anyhow::bail!("`id` is missing"),
    }
}

/// Parses one line of the cases file with exact numbers. A case contains its schema, so it may be
/// nested more deeply than a schema.
fn read_case(line: &str) -> Result<Json, JsonError> {
    let limits = Limits::default();
    let depth = limits.depth + 8;
    Json::parse(line, &limits.with_depth(depth))
}
