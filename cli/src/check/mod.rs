//! The command `louver check`: byte-level validation, without a tokenizer.

mod cases;
#[cfg(feature = "host")]
mod config;
mod instance;
mod profile;
pub(crate) mod spec;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgGroup, Args, ValueEnum};
use louver::front::json_schema::SchemaOptions;

use crate::registry::RegistryArgs;

/// Check one input against a JSON Schema, a file of cases, or a server's configuration.
///
/// Exit code of `--schema`: 0 valid, 1 not valid, 2 the schema cannot be enforced. Of `--config`: 0
/// valid, 1 faults, 2 the file cannot be read.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(CHECKED).required(true))]
pub(crate) struct CheckArgs {
    /// JSON Schema that the input must match.
    #[arg(long, value_name = "S.json")]
    schema: Option<PathBuf>,
    /// Input file; `-` or nothing for standard input. A final line break is ignored.
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
    /// Schema options, such as '{"order": "any", "policy": "validate"}'; see docs/JSON_SCHEMA.md.
    #[arg(long, value_name = "JSON", value_parser = spec::schema_options, requires = "schema", default_value = "{}")]
    options: SchemaOptions,
    /// Check whether this API accepts the schema. Without FILE, nothing else is checked.
    #[arg(long, value_name = "NAME", requires = "schema")]
    profile: Option<Profile>,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Cases, one JSON object per line: id, kind, spec, options, input or input_b64, mode. With the
    /// policy `validate`, accepted inputs are validated as well if keywords were relaxed.
    #[arg(long, value_name = "FILE.jsonl", requires = "out", conflicts_with = "input")]
    cases: Option<PathBuf>,
    /// Output file for results: {"id", "accepted"} or {"id", "error"}, one per line; with
    /// "relaxed" if keywords are not enforced.
    #[arg(long, value_name = "FILE.jsonl", requires = "cases")]
    out: Option<PathBuf>,
    /// Configuration of `louver serve`: its members, values and files are checked, and each model's
    /// settings are printed. Loads no model.
    #[cfg(feature = "host")]
    #[arg(long, value_name = "FILE.toml", conflicts_with = "input")]
    config: Option<PathBuf>,
}

/// The options that say what is checked, of which there is one.
#[cfg(feature = "host")]
const CHECKED: [&str; 3] = ["schema", "cases", "config"];
#[cfg(not(feature = "host"))]
const CHECKED: [&str; 2] = ["schema", "cases"];

/// A subset of JSON Schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Profile {
    /// The schemas that OpenAI's strict mode accepts.
    OpenaiStrict,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    #[cfg(feature = "host")]
    if let Some(config) = &args.config {
        return config::run(config);
    }
    match (&args.schema, &args.cases, &args.out) {
        (_, Some(cases), Some(out)) => cases::run(cases, out, args.registry.read()?),
        (Some(schema), _, _) => {
            if let Some(Profile::OpenaiStrict) = args.profile {
                let accepted = profile::run(schema)?;
                if accepted != ExitCode::SUCCESS || args.input.is_none() {
                    return Ok(accepted);
                }
            }
            instance::run(schema, &args.options, &args.registry.read()?, args.input.as_deref())
        }
        _ => anyhow::bail!("either --schema or --cases and --out"),
    }
}
