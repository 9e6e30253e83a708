//! The options of commands that take one spec.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use super::SpecError;

/// A spec on the command line.
#[derive(Debug, Args)]
#[group(id = "spec", multiple = false)]
pub(crate) struct SpecArgs {
    /// A JSON Schema.
    #[arg(long, value_name = "S.json")]
    pub(crate) schema: Option<PathBuf>,
    /// A regular expression.
    #[arg(long, value_name = "PATTERN")]
    regex: Option<String>,
    /// A grammar in EBNF.
    #[arg(long, value_name = "FILE")]
    ebnf: Option<PathBuf>,
    /// A grammar in Lark.
    #[arg(long, value_name = "FILE")]
    lark: Option<PathBuf>,
    /// A structural tag.
    #[arg(long, value_name = "FILE.json")]
    structural_tag: Option<PathBuf>,
    /// Tools, or a request with tools.
    #[arg(long, value_name = "FILE.json")]
    tools: Option<PathBuf>,
}

/// The text of a spec, and its options.
#[derive(Debug)]
pub(crate) struct SpecSource {
    pub(crate) kind: &'static str,
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) options: Value,
}

impl SpecArgs {
    /// Reads the spec. `options` is JSON text.
    pub(crate) fn source(&self, options: &str) -> Result<SpecSource> {
        let files = [
            ("json_schema", &self.schema),
            ("ebnf", &self.ebnf),
            ("lark", &self.lark),
            ("structural_tag", &self.structural_tag),
            ("tools", &self.tools),
        ];
        let file = files.iter().find_map(|(kind, path)| Some((*kind, path.as_ref()?)));
        let (kind, name, text) = match (&self.regex, file) {
            (Some(pattern), _) => ("regex", "pattern".to_owned(), pattern.clone()),
            (None, Some((kind, path))) => (kind, path.display().to_string(), read(path)?),
            (None, None) => anyhow::bail!("no spec"),
        };
        let options = serde_json::from_str(options).context("--options is not JSON")?;
        Ok(SpecSource { kind, name, text, options })
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

impl SpecSource {
    /// An error of the spec, with its name. Those of texts are shown within the text.
    pub(crate) fn error(&self, error: SpecError) -> anyhow::Error {
        match error {
            SpecError::Regex(error) => {
                anyhow::anyhow!("\n{}", error.diagnostics(&self.name, &self.text))
            }
            SpecError::OptionsChoice { request, choice } => {
                let request = request.0.iter().map(|error| format!("{}: {error}", self.name));
                let choice = super::of_options("--options", &choice);
                anyhow::anyhow!("{}", super::on_lines(request.chain([choice])))
            }
            // Diagnostics have their own heading, and name their text.
            SpecError::Text(diagnostics) => anyhow::anyhow!("{}", diagnostics.named(&self.name)),
            other => anyhow::Error::from(other).context(self.name.clone()),
        }
    }
}
