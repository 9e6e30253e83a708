//! The command `louver explain`: shows the compilation stages of a spec, and what may follow a
//! prefix.

mod dot;
mod prefix;
mod report;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use louver::engine::EngineOptions;
use louver::ir::Simplify;
use louver::limits::Limits;

use crate::bench::SimplifyArg;
use crate::registry::RegistryArgs;
use crate::spec::{self, SpecArgs};

/// Show how a grammar is compiled: its rules, the simplification passes, the automata, and what may
/// follow a prefix.
///
/// Exit code: 0; 1 if the text of `--at` is not allowed; 2 if the spec cannot be enforced.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("explained").args(["spec"]).required(true))]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Options of the spec as JSON, as in `louver check`. Those of tools have the `format`: a wire
    /// format's name (by default qwen3) or a file that describes one (*.toml).
    #[arg(long, value_name = "JSON", default_value = "{}")]
    options: String,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Whether the grammar is simplified before it is compiled. Without it as in the engine: those
    /// in EBNF and Lark are, others are not.
    #[arg(long, value_enum)]
    simplify: Option<SimplifyArg>,
    /// The model's tokenizer.json. Without it, explanations are in terms of bytes.
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: Option<PathBuf>,
    /// Also show what may follow this text.
    #[arg(long, value_name = "PREFIX")]
    at: Option<String>,
    /// Explain why this token (its id or text) may not follow the text of `--at`. Without a
    /// tokenizer it is any text.
    #[arg(long, value_name = "TOKEN")]
    why: Option<String>,
    /// Number of allowed tokens to show.
    #[arg(long, value_name = "N", default_value = "20")]
    tokens: usize,
    /// Write the automata as a Graphviz file.
    #[arg(long, value_name = "FILE.dot")]
    dot: Option<PathBuf>,
    /// Print the report as one JSON object.
    #[arg(long)]
    json: bool,
    /// Show all rules and automata.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let limits = Limits::default();
    let source = args.spec.source(&args.options)?;
    let registry = args.registry.read()?;
    let by_kind = || spec::simplify(source.kind, &EngineOptions::default());
    let simplify = args.simplify.map_or_else(by_kind, Simplify::from);
    let (mut report, compiled) = report::run_stages(&source, simplify, &limits, &registry)?;
    if let Some(path) = &args.dot {
        let dot_text = dot::write_dot(&compiled.automata(), compiled.grammar());
        std::fs::write(path, dot_text)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.at.is_some() || args.why.is_some() {
        let prefix = args.at.as_deref().unwrap_or_default();
        report.at = Some(match &args.tokenizer {
            Some(tokenizer) => {
                prefix::tokens(compiled, tokenizer, prefix, args.why.as_deref(), args.tokens)?
            }
            None => prefix::bytes(compiled, prefix, args.why.as_deref(), &limits)?,
        });
    }
    if args.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report).context("the report cannot be serialised")?
        );
    } else {
        print!(
            "{}",
            text::TextReport { report: &report, max_lines: if args.all { usize::MAX } else { 40 } }
        );
    }
    let refused = report.at.as_ref().is_some_and(|at| at.refused.is_some());
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
