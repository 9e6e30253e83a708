//! Output of results: records to files, tables to stdout.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::engine::EngineKind;

/// Writes values as JSON Lines; creates the folder.
pub(crate) fn write_lines<T: Serialize>(
    folder: &Path,
    file: &str,
    values: impl IntoIterator<Item = T>,
) -> Result<()> {
    let path = folder.join(file);
    let context = || format!("cannot write {}", path.display());
    std::fs::create_dir_all(folder).with_context(context)?;
    let mut out = BufWriter::new(File::create(&path).with_context(context)?);
    for value in values {
        writeln!(out, "{}", serde_json::to_string(&value)?).with_context(context)?;
    }
    out.flush().with_context(context)
}

/// Prints the heading of a scenario: title, tokenizer and versions.
pub(crate) fn heading(title: &str, tokenizer: &str, kinds: &[EngineKind]) {
    let versions: Vec<String> = kinds.iter().map(|kind| kind.with_version()).collect();
    println!("\n## {title}\n\nTokenizer {tokenizer}; {}.\n", versions.join(", "));
}
