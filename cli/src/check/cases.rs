//! Many inputs against many specs.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::Specs;
use crate::lines;

/// One line of the cases.
#[derive(Debug, Deserialize)]
struct Case {
    id: Value,
    kind: String,
    spec: Value,
    #[serde(default)]
    options: Value,
    input: Option<String>,
    input_b64: Option<String>,
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// The input is a whole sentence.
    #[default]
    Full,
    /// The input is the beginning of one.
    Prefix,
}

/// One line of the verdicts.
#[derive(Debug, Serialize)]
struct Verdict {
    id: Value,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Accepted(bool),
    Error(String),
}

pub(super) fn run(cases: &Path, out: &Path) -> Result<ExitCode> {
    let cases = lines::read(cases)?;
    let mut out = lines::Writer::create(out)?;
    let mut specs = Specs::default();
    let (mut accepted, mut rejected, mut errors) = (0, 0, 0);
    for (number, line) in cases {
        let verdict = match serde_json::from_str::<Case>(&line) {
            Ok(case) => {
                let outcome = case.check(&mut specs).map_or_else(Outcome::Error, Outcome::Accepted);
                Verdict { id: case.id, outcome }
            }
            Err(error) => {
                let id =
                    serde_json::from_str::<Value>(&line).ok().and_then(|v| v.get("id").cloned());
                let outcome = Outcome::Error(format!("line {number} is no case: {error}"));
                Verdict { id: id.unwrap_or_else(|| format!("line {number}").into()), outcome }
            }
        };
        match verdict.outcome {
            Outcome::Accepted(true) => accepted += 1,
            Outcome::Accepted(false) => rejected += 1,
            Outcome::Error(_) => errors += 1,
        }
        out.write(&verdict)?;
    }
    out.finish()?;
    eprintln!("accepted {accepted}, rejected {rejected}, errors {errors}");
    Ok(ExitCode::SUCCESS)
}

impl Case {
    fn check(&self, specs: &mut Specs) -> Result<bool, String> {
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
            Ok(()) => Ok(matches!(self.mode, Mode::Prefix) || recognizer.is_complete()),
            Err(louver::matcher::Rejected::Byte { .. }) => Ok(false),
            Err(limit) => Err(limit.to_string()),
        }
    }
}
