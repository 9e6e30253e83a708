//! `louver check`: byte-level verdicts, without a tokenizer.

mod cases;
mod person;
mod spec;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

/// Check one input against a JSON Schema, or a file of cases.
///
/// Exit code of `--schema`: 0 valid, 1 not valid, 2 the schema cannot be enforced.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A JSON Schema; the input must be an instance of it.
    #[arg(long, value_name = "S.json", required_unless_present = "cases")]
    schema: Option<PathBuf>,
    /// The input; `-` or nothing for standard input. A line break at its end is not part of it.
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
    /// Cases, one JSON object a line: id, kind, spec, options, input or input_b64, mode.
    #[arg(long, value_name = "FILE.jsonl", requires = "out", conflicts_with_all = ["schema", "input"])]
    cases: Option<PathBuf>,
    /// Where the verdicts go: {"id", "accepted"} or {"id", "error"}, one a line.
    #[arg(long, value_name = "FILE.jsonl", requires = "cases")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    match (&args.schema, &args.cases, &args.out) {
        (_, Some(cases), Some(out)) => cases::run(cases, out),
        (Some(schema), _, _) => person::run(schema, args.input.as_deref()),
        _ => anyhow::bail!("either --schema or --cases and --out"),
    }
}
