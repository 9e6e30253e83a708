//! `louver bench grammar`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use louver_hf_tokenizers::Encoder;
use serde::Deserialize;
use serde_json::Value;

use super::feed::{Feeder, nanos};
use super::record::Record;
use super::{GrammarArgs, workers};
use crate::check::spec;

/// One line of the cases. Texts may be in files beside the cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    kind: Option<String>,
    spec: Option<Value>,
    spec_file: Option<PathBuf>,
    #[serde(default)]
    options: Value,
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    valid: bool,
    text: Option<String>,
    text_file: Option<PathBuf>,
    /// Texts of one file, each a test: what separates them.
    split: Option<String>,
}

pub(super) fn run(args: &GrammarArgs) -> Result<ExitCode> {
    let (mut tokenizer, engine) = super::engine(&args.common)?;
    // Tests are text, whatever is written in them.
    tokenizer.set_encode_special_tokens(true);
    let encoder = Encoder::new(&tokenizer, engine.vocab());
    let folder = args.common.cases.parent().unwrap_or(Path::new("."));
    workers::run(&args.common, "grammars", || {
        let mut feeder = Feeder::new(&engine, &args.common);
        let encoder = &encoder;
        move |number, line: &str| match Case::read(line, &args.kind, folder, encoder) {
            Ok(case) => case.run(&mut feeder),
            Err(error) => Record::no_case(number, &error),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

struct Case {
    id: String,
    kind: String,
    spec: Value,
    options: Value,
    /// Tokens, and whether they spell a sentence.
    tests: Vec<(Vec<u32>, bool)>,
}

fn file(folder: &Path, name: &Path) -> Result<String> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

impl Case {
    fn read(line: &str, kind: &str, folder: &Path, encoder: &Encoder<'_>) -> Result<Case> {
        let line: Line = serde_json::from_str(line)?;
        let spec = match (line.spec, &line.spec_file) {
            (Some(spec), None) => spec,
            (None, Some(name)) => Value::String(file(folder, name)?),
            _ => anyhow::bail!("a case needs either `spec` or `spec_file`"),
        };
        let mut tests = Vec::new();
        for test in line.tests {
            let text = match (test.text, &test.text_file) {
                (Some(text), None) => text,
                (None, Some(name)) => file(folder, name)?,
                _ => anyhow::bail!("a test needs either `text` or `text_file`"),
            };
            let parts: Vec<&str> =
                test.split.as_deref().map_or(vec![&*text], |by| text.split(by).collect());
            for part in parts {
                tests.push((encoder.encode(part)?, test.valid));
            }
        }
        let kind = line.kind.unwrap_or_else(|| kind.to_owned());
        Ok(Case { id: line.id, kind, spec, options: line.options, tests })
    }

    fn run(self, feeder: &mut Feeder<'_>) -> Record {
        let engine = feeder.engine();
        let begin = Instant::now();
        let grammar =
            match spec::grammar(&self.kind, &self.spec, &self.options, &engine.options().limits) {
                Ok(grammar) => grammar,
                Err(error) => {
                    let refused_for = vec![format!("specs of kind {} with faults", self.kind)];
                    return Record::refused(self.id, nanos(begin), error.to_string(), refused_for);
                }
            };
        let constraint = match engine.compile(grammar) {
            Ok(constraint) => constraint,
            Err(error) => {
                let refused_for = vec!["grammars that do not compile".to_owned()];
                return Record::refused(self.id, nanos(begin), error.to_string(), refused_for);
            }
        };
        feeder.feed_all(self.id, begin, &constraint, &self.tests)
    }
}
