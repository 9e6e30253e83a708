//! Checks whether an API accepts a schema: whether it is one that Louver reads, and then whether it
//! is within the subset of the API.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use louver::front::json_schema::{SchemaOptions, lower, openai_strict};
use louver::limits::Limits;
use louver::spec::json::Json;

use crate::USAGE;

/// Prints why the schema cannot be read, and what OpenAI's strict mode would reject; exit code 2 if
/// there is anything.
pub(super) fn run(schema: &Path) -> Result<ExitCode> {
    let text =
        fs::read_to_string(schema).with_context(|| format!("cannot read {}", schema.display()))?;
    let limits = Limits::default();
    let json =
        Json::parse(&text, &limits).with_context(|| format!("schema {}", schema.display()))?;
    let unread = lower(&json, &SchemaOptions::default(), &limits).err();
    for error in unread.iter().flat_map(|errors| errors.iter()) {
        println!("{error}");
    }
    let errors = openai_strict(&json);
    for error in &errors {
        println!("{error}");
    }
    if unread.is_none() && errors.is_empty() {
        println!("the schema is accepted");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(USAGE))
}
