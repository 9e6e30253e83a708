//! `louver check`: byte-level verdicts, without a tokenizer.

mod cases;
mod person;
mod profile;
pub(crate) mod spec;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use louver::front::json_schema::SchemaOptions;

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
    /// How the schema is read, such as '{"order": "any", "policy": "validate"}'; docs/JSON_SCHEMA.md has all options.
    #[arg(long, value_name = "JSON", value_parser = spec::schema_options, requires = "schema", default_value = "{}")]
    options: SchemaOptions,
    /// Check the schema itself: would this API take it? Without FILE that is all.
    #[arg(long, value_name = "NAME", requires = "schema")]
    profile: Option<Profile>,
    /// Cases, one JSON object a line: id, kind, spec, options, input or input_b64, mode.
    #[arg(long, value_name = "FILE.jsonl", requires = "out", conflicts_with_all = ["schema", "input"])]
    cases: Option<PathBuf>,
    /// Where the verdicts go: {"id", "accepted"} or {"id", "error"}, one a line.
    #[arg(long, value_name = "FILE.jsonl", requires = "cases")]
    out: Option<PathBuf>,
}

/// A subset of JSON Schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Profile {
    /// What OpenAI's strict mode takes.
    OpenaiStrict,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    match (&args.schema, &args.cases, &args.out) {
        (_, Some(cases), Some(out)) => cases::run(cases, out),
        (Some(schema), _, _) if args.profile.is_some() => {
            let taken = profile::run(schema)?;
            if taken != ExitCode::SUCCESS || args.input.is_none() {
                return Ok(taken);
            }
            person::run(schema, &args.options, args.input.as_deref())
        }
        (Some(schema), _, _) => person::run(schema, &args.options, args.input.as_deref()),
        _ => anyhow::bail!("either --schema or --cases and --out"),
    }
}
