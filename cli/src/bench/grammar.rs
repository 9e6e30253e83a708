//! The command `louver bench grammar`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use louver::front::json_schema::Registry;
use louver::spec::json::Json;
use louver_hf_tokenizers::Encoder;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::feeder::Feeder;
use super::record::{CaseRecord, NOT_COMPILED};
use super::{GrammarArgs, run_cases};
use crate::jsonl::CaseId;
use crate::spec;

/// One line of the cases file. Texts may be in separate files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLine {
    id: CaseId,
    kind: Option<String>,
    /// See [`spec::of_line`].
    #[serde(rename = "spec")]
    _spec: Option<IgnoredAny>,
    spec_file: Option<PathBuf>,
    #[serde(default)]
    options: Value,
    tests: Vec<CaseTest>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTest {
    valid: bool,
    text: Option<String>,
    text_file: Option<PathBuf>,
    /// The separator of several tests in one file.
    split: Option<String>,
}

pub(super) fn run(args: &GrammarArgs) -> Result<ExitCode> {
    let (tokenizer, engine) = super::engine(&args.common)?;
    let encoder = Encoder::new(&tokenizer, engine.vocab());
    let folder = args.common.cases.parent().unwrap_or(Path::new("."));
    let run_case = |feeder: &mut Feeder<'_>, number, line: &str| match GrammarCase::read(
        line, &args.kind, folder, &encoder,
    ) {
        Ok(case) => case.run(feeder),
        Err(error) => CaseRecord::invalid_line(number, &error),
    };
    run_cases(&args.common, "grammars", &engine, run_case)
}

struct GrammarCase {
    id: String,
    kind: String,
    spec: Json,
    options: Value,
    /// Token sequences, and whether they are sentences.
    tests: Vec<(Vec<u32>, bool)>,
}

fn read_text_file(folder: &Path, name: &Path) -> Result<String> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

impl GrammarCase {
    fn read(line: &str, kind: &str, folder: &Path, encoder: &Encoder<'_>) -> Result<GrammarCase> {
        let spec = spec::of_line(line)?;
        let line: CaseLine = serde_json::from_str(line)?;
        let spec = match (spec, &line.spec_file) {
            (Some(spec), None) => spec,
            (None, Some(name)) => Json::String(read_text_file(folder, name)?),
            _ => anyhow::bail!("a case needs either `spec` or `spec_file`"),
        };
        let mut tests = Vec::new();
        for test in line.tests {
            let text = match (test.text, &test.text_file) {
                (Some(text), None) => text,
                (None, Some(name)) => read_text_file(folder, name)?,
                _ => anyhow::bail!("a test needs either `text` or `text_file`"),
            };
            let parts: Vec<&str> =
                test.split.as_deref().map_or(vec![&*text], |by| text.split(by).collect());
            for part in parts {
                tests.push((encoder.encode(part)?, test.valid));
            }
        }
        let kind = line.kind.unwrap_or_else(|| kind.to_owned());
        Ok(GrammarCase { id: line.id.to_string(), kind, spec, options: line.options, tests })
    }

    fn run(self, feeder: &mut Feeder<'_>) -> CaseRecord {
        let engine = feeder.engine();
        let registry = Registry::new();
        let limits = &engine.options().limits;
        let started = Instant::now();
        let grammar = match spec::lowered(&self.kind, &self.spec, &self.options, limits, &registry)
        {
            Ok(lowered) => lowered.grammar,
            Err(error) => {
                let refused_for = vec![format!("specs of kind {} with faults", self.kind)];
                return CaseRecord::refused(self.id, started.elapsed(), error, refused_for);
            }
        };
        let simplify = spec::simplify(&self.kind, engine.options());
        match engine.compile_with(grammar, simplify) {
            Ok(constraint) => feeder.feed_all(self.id, started, &constraint, &self.tests),
            Err(error) => {
                let refused_for = vec![NOT_COMPILED.to_owned()];
                CaseRecord::refused(self.id, started.elapsed(), error, refused_for)
            }
        }
    }
}
