//! Batch validation: a file of cases, each with a spec and an input.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::SpecCache;
use crate::jsonl;

/// One line of the cases file.
#[derive(Debug, Deserialize)]
struct CheckCase {
    id: Value,
    kind: String,
    spec: Value,
    #[serde(default)]
    options: Value,
    input: Option<String>,
    input_b64: Option<String>,
    #[serde(default)]
    mode: InputMode,
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
    id: Value,
    #[serde(flatten)]
    outcome: CheckOutcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckOutcome {
    Accepted(bool),
    Error(String),
}

pub(super) fn run(cases: &Path, out: &Path) -> Result<ExitCode> {
    let cases = jsonl::read(cases)?;
    let mut out = jsonl::JsonlWriter::create(out)?;
    let mut specs = SpecCache::default();
    let (mut accepted, mut rejected, mut errors) = (0, 0, 0);
    for (number, line) in cases {
        let verdict = match serde_json::from_str::<CheckCase>(&line) {
            Ok(case) => {
                let outcome =
                    case.check(&mut specs).map_or_else(CheckOutcome::Error, CheckOutcome::Accepted);
                Verdict { id: case.id, outcome }
            }
            Err(error) => {
                let id =
                    serde_json::from_str::<Value>(&line).ok().and_then(|v| v.get("id").cloned());
                let outcome = CheckOutcome::Error(format!("line {number} is not a case: {error}"));
                Verdict { id: id.unwrap_or_else(|| format!("line {number}").into()), outcome }
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
    Ok(ExitCode::SUCCESS)
}

impl CheckCase {
    fn check(&self, specs: &mut SpecCache) -> Result<bool, String> {
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
        let recognizer = specs.recognizer(&self.kind, &self.spec, &self.options)?;
        match recognizer.push(input) {
            Ok(()) => Ok(matches!(self.mode, InputMode::Prefix) || recognizer.is_complete()),
            Err(louver::matcher::Rejected::Byte { .. }) => Ok(false),
            Err(limit) => Err(limit.to_string()),
        }
    }
}
