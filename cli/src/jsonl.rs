//! Reading and writing of JSON Lines files.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

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
