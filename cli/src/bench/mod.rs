//! `louver bench`: instances fed token by token, as a host would: fill the mask, test the token's bit, advance.

mod encode;
mod feed;
mod grammar;
mod python;
mod record;
mod schema;
#[cfg(feature = "host")]
mod serve;
mod summary;
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
use louver_hf_tokenizers::{Loaded, VocabOptions};
use tokenizers::Tokenizer;

use crate::check::spec::schema_options;

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// JSON Schemas with valid and invalid instances: lines {"id", "schema", "tests": [{"valid", "data"}]}.
    Schema(SchemaArgs),
    /// Tool calls in a model's wire format: lines {"id", "question", "tools", "calls"}.
    Tools(ToolsArgs),
    /// Grammars of any kind: lines {"id", "kind", "spec" or "spec_file", "options", "tests": [{"valid", "text" or "text_file"}]}.
    Grammar(GrammarArgs),
    /// The server under load and abuse, and what Louver costs a generation.
    #[cfg(feature = "host")]
    Serve(serve::ServeArgs),
}

/// What all benchmarks take.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// The model's tokenizer.json; for tools, in programs built with it, `o200k_harmony` for that of gpt-oss.
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: PathBuf,
    /// Cases, one JSON object a line.
    #[arg(long, value_name = "FILE.jsonl")]
    cases: PathBuf,
    /// Where the results go, one JSON object a line.
    #[arg(long, value_name = "FILE.jsonl")]
    out: PathBuf,
    /// Threads that share the cases and one engine.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: std::num::NonZeroUsize,
    /// Only the first N cases.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Width of the model's logits, where it is more than the tokenizer's ids.
    #[arg(long, value_name = "IDS")]
    width: Option<usize>,
    /// Masks are made ahead, within the default budget, and waited for before the first token: as behind a prompt that takes long
    /// enough. What that takes is measured apart.
    #[arg(long)]
    prepare: bool,
    /// Without bounds on work: what the fuel of the results would be.
    #[arg(long)]
    unlimited: bool,
    /// How much grammars are simplified before they are compiled.
    #[arg(long, value_enum, default_value_t)]
    simplify: Level,
}

/// [`Simplify`] on the command line.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Level {
    Off,
    #[default]
    Cheap,
    Full,
}

impl From<Level> for Simplify {
    fn from(level: Level) -> Simplify {
        match level {
            Level::Off => Simplify::Off,
            Level::Cheap => Simplify::Cheap,
            Level::Full => Simplify::Full,
        }
    }
}

/// `louver bench schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// How schemas are read, such as '{"order": "any"}'; docs/JSON_SCHEMA.md has all options.
    #[arg(long, value_name = "JSON", value_parser = schema_options, default_value = "{}")]
    options: SchemaOptions,
}

/// `louver bench tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The wire format's name, such as `qwen3`, a TOML file that describes one, or `all`: every family, with a line each.
    #[arg(long, value_name = "NAME")]
    format: String,
}

/// `louver bench grammar`.
#[derive(Debug, Args)]
pub(crate) struct GrammarArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The kind of cases that name none: json_schema, regex, ebnf, lark, structural_tag, tools.
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

/// The tokenizer and an engine on its vocabulary. Warnings go to stderr.
fn engine(common: &CommonArgs) -> Result<(Tokenizer, Arc<Engine>)> {
    let options = VocabOptions { width: common.width, ..VocabOptions::default() };
    let Loaded { vocab, tokenizer, warnings } =
        louver_hf_tokenizers::load(&common.tokenizer, &options)?;
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    Ok((tokenizer, engine_on(common, Arc::new(vocab))))
}

/// A fresh engine on a vocabulary.
fn engine_on(common: &CommonArgs, vocab: Arc<Vocabulary>) -> Arc<Engine> {
    let mut limits = Limits::default();
    if common.unlimited {
        (limits.compile_fuel, limits.mask_fuel) = (u64::MAX, u64::MAX);
    }
    let options = EngineOptions {
        limits,
        simplify: common.simplify.into(),
        simplify_texts: common.simplify.into(),
        // Nothing is known from an engine before.
        pool_scope: PoolScope::Engine,
        ..EngineOptions::default()
    };
    Arc::new(Engine::new(vocab, options))
}

/// One line of the cases, numbers as they were written. A case is around its schema, so it may be deeper than a schema.
fn read_case(line: &str) -> Result<Json, JsonError> {
    let limits = Limits::default();
    Json::parse(line, &Limits { depth: limits.depth + 8, ..limits })
}
