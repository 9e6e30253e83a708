//! Reading and writing of JSON Lines files.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The non-blank lines of a file, with their numbers from 1.
pub(crate) fn read(path: &Path) -> Result<Vec<(usize, String)>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut out = Vec::new();
    for (i, line) in BufReader::new(file).lines().enumerate() {
        let line =
            line.with_context(|| format!("cannot read {}, line {}", path.display(), i + 1))?;
        if !line.trim().is_empty() {
            out.push((i + 1, line));
        }
    }
    Ok(out)
}

/// The id of a case: a text or a number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct CaseId(Value);

impl CaseId {
    /// What an id is.
    pub(crate) const EXPECTED: &str = "`id` must be a string or a number";

    /// The id of a line that is not a case.
    pub(crate) fn of_line(number: usize) -> CaseId {
        CaseId(format!("line {number}").into())
    }
}

impl TryFrom<Value> for CaseId {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<CaseId, &'static str> {
        match value {
            Value::String(_) | Value::Number(_) => Ok(CaseId(value)),
            _ => Err(CaseId::EXPECTED),
        }
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(text),
            other => other.fmt(f),
        }
    }
}

/// Prints why the first line that is not a case is none. Fails if no line is a case.
pub(crate) fn report_invalid(path: &Path, lines: usize, invalid: &[String]) -> Result<()> {
    let path = path.display();
    anyhow::ensure!(lines > 0, "no line of {path} is a case: none was read");
    let Some(first) = invalid.first() else { return Ok(()) };
    if invalid.len() == lines {
        anyhow::bail!("no line of {path} is a case: {first}");
    }
    eprintln!("{path}: {} of {lines} lines are not cases: {first}", invalid.len());
    Ok(())
}

/// A JSON Lines writer.
pub(crate) struct JsonlWriter {
    file: BufWriter<File>,
    name: String,
}

impl JsonlWriter {
    /// Creates or empties the file.
    pub(crate) fn create(path: &Path) -> Result<JsonlWriter> {
        let name = path.display().to_string();
        let file = File::create(path).with_context(|| format!("cannot write {name}"))?;
        Ok(JsonlWriter { file: BufWriter::new(file), name })
    }

    /// Appends a value as one line.
    pub(crate) fn write(&mut self, value: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(value).context("cannot write a line")?;
        writeln!(self.file, "{line}").with_context(|| format!("cannot write {}", self.name))
    }

    /// Flushes the file. Errors: the data could not be written.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.file.flush().with_context(|| format!("cannot write {}", self.name))
    }
}
