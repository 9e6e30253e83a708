//! Batch validation: a file of cases, each with a spec and an input.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use louver::front::json_schema::{Registry, SchemaError};
use louver_formats::validator_instance;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counts::{counts, joined_counts};
use crate::jsonl::{self, CaseId};
use crate::spec::{self, SpecCache};

/// One line of the cases file.
#[derive(Debug, Deserialize)]
struct CheckCase {
    id: CaseId,
    kind: String,
    /// See [`spec::of_line`].
    #[serde(rename = "spec")]
    _spec: IgnoredAny,
    #[serde(default)]
    options: Value,
    input: Option<String>,
    input_b64: Option<String>,
    #[serde(default)]
    mode: InputMode,
}

/// A line with an id, which may be no case.
#[derive(Deserialize)]
struct HasId {
    id: CaseId,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InputMode {
    /// The input must be a complete sentence.
    #[default]
    Full,
    /// The input must be a prefix of a sentence.
    Prefix,
}

/// One line of the output file.
#[derive(Debug, Serialize)]
struct Verdict {
    id: CaseId,
    #[serde(flatten)]
    outcome: CheckOutcome,
    /// Keywords that the policy relaxes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relaxed: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckOutcome {
    Accepted(bool),
    Error(String),
}

pub(super) fn run(path: &Path, out: &Path, registry: Registry) -> Result<ExitCode> {
    let cases = jsonl::read(path)?;
    let (lines, mut invalid) = (cases.len(), Vec::new());
    let mut out = jsonl::JsonlWriter::create(out)?;
    let mut specs = SpecCache::new(registry);
    let (mut accepted, mut rejected, mut errors) = (0, 0, 0);
    for (number, line) in cases {
        let verdict = match serde_json::from_str::<CheckCase>(&line) {
            Ok(case) => {
                let mut relaxed = Vec::new();
                let outcome = case
                    .check(&line, &mut specs, &mut relaxed)
                    .map_or_else(CheckOutcome::Error, CheckOutcome::Accepted);
                Verdict { id: case.id, outcome, relaxed }
            }
            Err(error) => {
                let id = serde_json::from_str::<HasId>(&line).map(|line| line.id);
                let error = format!("line {number} is not a case: {error}");
                invalid.push(error.clone());
                let id = id.unwrap_or_else(|_| CaseId::of_line(number));
                Verdict { id, outcome: CheckOutcome::Error(error), relaxed: Vec::new() }
            }
        };
        match verdict.outcome {
            CheckOutcome::Accepted(true) => accepted += 1,
            CheckOutcome::Accepted(false) => rejected += 1,
            CheckOutcome::Error(_) => errors += 1,
        }
        out.write(&verdict)?;
    }
    out.finish()?;
    eprintln!("accepted {accepted}, rejected {rejected}, errors {errors}");
    print_relaxed(&specs);
    jsonl::report_invalid(path, lines, &invalid)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints how many specs are relaxed, and which keywords.
fn print_relaxed(specs: &SpecCache) {
    let relaxed: Vec<&[SchemaError]> =
        specs.usable().map(|spec| &*spec.relaxed).filter(|relaxed| !relaxed.is_empty()).collect();
    if relaxed.is_empty() {
        return;
    }
    let keywords =
        counts(relaxed.iter().copied().flatten().map(|error| {
            if error.keyword.is_empty() { "schemas as a whole" } else { &error.keyword }
        }));
    let keywords = joined_counts(&keywords, " ");
    eprintln!("specs that are not enforced fully {}: {keywords}", relaxed.len());
}

impl CheckCase {
    /// Whether the input is accepted; with the policy `validate` also whether it is valid.
    fn check(
        &self,
        line: &str,
        specs: &mut SpecCache,
        relaxed: &mut Vec<String>,
    ) -> Result<bool, String> {
        let decoded;
        let input = match (&self.input, &self.input_b64) {
            (Some(text), None) => text.as_bytes(),
            (None, Some(encoded)) => {
                decoded =
                    STANDARD.decode(encoded).map_err(|error| format!("input_b64: {error}"))?;
                &decoded
            }
            _ => return Err("a case needs either `input` or `input_b64`".to_owned()),
        };
        let spec = spec::of_line(line).map_err(|error| error.to_string())?;
        let spec = spec.ok_or("there is no `spec`")?;
        let spec = specs.spec(&self.kind, &spec, &self.options)?;
        *relaxed = spec.relaxed.iter().map(ToString::to_string).collect();
        let mut recognizer = spec.recognizer();
        match recognizer.push(input) {
            Ok(()) if matches!(self.mode, InputMode::Prefix) => Ok(true),
            Ok(()) if !recognizer.is_complete() => Ok(false),
            Ok(()) => match &spec.validator {
                None => Ok(true),
                Some(Err(error)) => Err(error.clone()),
                Some(Ok(validator)) => validator_instance(input)
                    .map(|value| validator.is_valid(&value))
                    .map_err(|error| format!("the input cannot be validated: {error}")),
            },
            Err(louver::matcher::Rejected::Byte { .. }) => Ok(false),
            Err(limit) => Err(limit.to_string()),
        }
    }
}
