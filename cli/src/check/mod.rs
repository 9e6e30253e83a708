//! The command `louver check`: byte-level validation, without a tokenizer.

mod cases;
#[cfg(feature = "host")]
mod config;
mod instance;
mod profile;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgGroup, Args, ValueEnum};

use crate::registry::RegistryArgs;
use crate::spec::SpecArgs;

/// Check one input against a JSON Schema, a regular expression, a grammar, a structural tag or
/// tools; or a file of cases; or a server's configuration.
///
/// Exit code of one input: 0 accepted, 1 not accepted, 2 the spec cannot be enforced, is outside of
/// the profile, a file cannot be read, or the command line is wrong. Of `--config`: 0 valid, 1
/// faults, 2 the file cannot be read.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(CHECKED).required(true))]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Input file; `-` or nothing for standard input. A final line break is ignored.
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
    /// Options of the spec. Those of a schema, such as '{"order": "any", "policy": "validate"}',
    /// are in docs/JSON_SCHEMA.md, those of a grammar in EBNF are {"root_rule_name", "dialect"},
    /// those of tools {"format", "tool_choice", "parallel_tool_calls", "reasoning", "schema"}:
    /// `format` is a wire format's name (by default qwen3) or a file that describes one (*.toml).
    #[arg(long, value_name = "JSON", requires = "spec", default_value = "{}")]
    options: String,
    /// Check whether this API accepts the schema. Without FILE, nothing else is checked.
    #[arg(long, value_name = "NAME")]
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
const CHECKED: [&str; 3] = ["spec", "cases", "config"];
#[cfg(not(feature = "host"))]
const CHECKED: [&str; 2] = ["spec", "cases"];

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
    if let (Some(cases), Some(out)) = (&args.cases, &args.out) {
        return cases::run(cases, out, args.registry.read()?);
    }
    if let Some(Profile::OpenaiStrict) = args.profile {
        // Clap's `requires` does not hold beside a spec of another kind.
        let Some(schema) = &args.spec.schema else {
            anyhow::bail!("--profile is about schemas: give one with --schema");
        };
        let accepted = profile::run(schema)?;
        if accepted != ExitCode::SUCCESS || args.input.is_none() {
            return Ok(accepted);
        }
    }
    instance::run(&args.spec.source(&args.options)?, &args.registry.read()?, args.input.as_deref())
}
