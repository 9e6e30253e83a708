//! Checks whether an API accepts a schema.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use louver::front::json_schema::openai_strict;
use louver::limits::Limits;
use louver::spec::json::Json;

use crate::USAGE;

/// Prints what OpenAI's strict mode would reject; exit code 2 if there is anything.
pub(super) fn run(schema: &Path) -> Result<ExitCode> {
    let text =
        fs::read_to_string(schema).with_context(|| format!("cannot read {}", schema.display()))?;
    let json = Json::parse(&text, &Limits::default())
        .with_context(|| format!("schema {}", schema.display()))?;
    let errors = openai_strict(&json);
    for error in &errors {
        println!("{error}");
    }
    if errors.is_empty() {
        println!("the schema is accepted");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(USAGE))
}
