//! `louver explain`: what becomes of a spec, stage by stage, and what may follow a prefix.

mod at;
mod dot;
mod report;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use louver::limits::Limits;
use serde_json::Value;

use crate::bench::Level;

/// Show what becomes of a grammar: its rules, the passes of simplification, automata, and what may follow a prefix.
///
/// Exit code: 0; 1 if the text of `--at` is not allowed; 2 if the spec cannot be enforced.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Options of the spec, as JSON; those of `louver check --cases`.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    options: String,
    /// How much the grammar is simplified before it is compiled.
    #[arg(long, value_enum, default_value = "full")]
    simplify: Level,
    /// The model's tokenizer.json. Without it, explanations are about bytes only.
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: Option<PathBuf>,
    /// Also: what may follow this text?
    #[arg(long, value_name = "PREFIX")]
    at: Option<String>,
    /// Why may this token (its id or its text) not follow the text of `--at`? Without a tokenizer
    /// it is any text.
    #[arg(long, value_name = "TOKEN")]
    why: Option<String>,
    /// How many of the allowed tokens are shown.
    #[arg(long, value_name = "N", default_value = "20")]
    tokens: usize,
    /// Write the automata as a Graphviz file.
    #[arg(long, value_name = "FILE.dot")]
    dot: Option<PathBuf>,
    /// Everything as one JSON object.
    #[arg(long)]
    json: bool,
    /// Every rule and every automaton, however many there are.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SpecArgs {
    /// A JSON Schema.
    #[arg(long, value_name = "S.json")]
    schema: Option<PathBuf>,
    /// A regular expression.
    #[arg(long, value_name = "PATTERN")]
    regex: Option<String>,
    /// A grammar in EBNF.
    #[arg(long, value_name = "FILE")]
    ebnf: Option<PathBuf>,
    /// A grammar in Lark.
    #[arg(long, value_name = "FILE")]
    lark: Option<PathBuf>,
    /// A structural tag.
    #[arg(long, value_name = "FILE.json")]
    structural_tag: Option<PathBuf>,
    /// Tools, or a request with tools.
    #[arg(long, value_name = "FILE.json")]
    tools: Option<PathBuf>,
}

/// A spec before it is read.
struct Source {
    kind: &'static str,
    /// What it is called in messages.
    name: String,
    text: String,
}

impl SpecArgs {
    fn source(&self) -> Result<Source> {
        if let Some(pattern) = &self.regex {
            return Ok(Source { kind: "regex", name: "pattern".to_owned(), text: pattern.clone() });
        }
        let files = [
            ("json_schema", &self.schema),
            ("ebnf", &self.ebnf),
            ("lark", &self.lark),
            ("structural_tag", &self.structural_tag),
            ("tools", &self.tools),
        ];
        let (kind, path) = files
            .iter()
            .find_map(|(kind, path)| Some((*kind, path.as_ref()?)))
            .context("no spec")?;
        Ok(Source { kind, name: path.display().to_string(), text: read(path)? })
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let limits = Limits::default();
    let source = args.spec.source()?;
    let options: Value = serde_json::from_str(&args.options).context("--options is no JSON")?;
    let (mut report, compiled) = report::stages(&source, &options, args.simplify.into(), &limits)?;
    if let Some(path) = &args.dot {
        let drawing = dot::draw(&compiled.automata(), compiled.grammar());
        std::fs::write(path, drawing)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.at.is_some() || args.why.is_some() {
        let prefix = args.at.as_deref().unwrap_or_default();
        report.at = Some(match &args.tokenizer {
            Some(tokenizer) => {
                at::tokens(compiled, tokenizer, prefix, args.why.as_deref(), args.tokens)?
            }
            None => at::bytes(compiled, prefix, args.why.as_deref(), &limits)?,
        });
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report).context("the report is no JSON")?);
    } else {
        print!("{}", text::Text { report: &report, most: if args.all { usize::MAX } else { 40 } });
    }
    let refused = report.at.as_ref().is_some_and(|at| at.refused.is_some());
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
