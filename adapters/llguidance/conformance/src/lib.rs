//! The adapter and the original side by side: random walks over a corpus of grammars, on which the
//! masks of both are compared, and the reasons for which they may differ.

mod difference;
mod tokens;
mod walk;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

pub use difference::{Class, Difference, Side, classify};
pub use tokens::{Forcing, environment};
pub use walk::{Report, walk};

/// A grammar of the corpus.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// A Lark text.
    pub lark: Option<String>,
    /// A regular expression.
    pub regex: Option<String>,
    /// A schema, as JSON text.
    pub schema: Option<String>,
    /// The classes of differences that this grammar shows, beside those of all grammars.
    #[serde(default)]
    pub classes: Vec<Class>,
}

impl Case {
    /// The grammar as both libraries read it.
    pub fn grammar(&self) -> Value {
        let grammar = match (&self.lark, &self.regex, &self.schema) {
            (Some(text), None, None) => serde_json::json!({"lark_grammar": text}),
            (None, Some(regex), None) => {
                let text = format!("start: /{}/", llguidance::regex_to_lark(regex, ""));
                serde_json::json!({"lark_grammar": text})
            }
            (None, None, Some(schema)) => {
                let schema: Value = serde_json::from_str(schema).expect("a schema is JSON");
                serde_json::json!({"json_schema": schema})
            }
            _ => panic!("{}: one of `lark`, `regex` and `schema`", self.name),
        };
        serde_json::json!({"grammars": [grammar]})
    }

    /// Whether it describes JSON.
    pub fn is_json(&self) -> bool {
        self.schema.is_some()
    }
}

/// The grammars of this crate.
pub fn corpus() -> Vec<Case> {
    #[derive(Deserialize)]
    struct Corpus {
        case: Vec<Case>,
    }
    let corpus: Corpus = toml::from_str(include_str!("../corpus.toml")).expect("the corpus");
    corpus.case
}

/// The folder with shared data, beside the repository; None where it is missing.
pub fn data() -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data");
    let folder = std::env::var_os("LOUVER_DATA").map_or_else(default, PathBuf::from);
    folder.join("maskbench-dev.jsonl").exists().then_some(folder)
}

/// A schema of MaskBench with instances and what they are.
#[derive(Clone, Debug, Deserialize)]
pub struct BenchCase {
    /// Its name.
    pub id: String,
    /// The schema.
    pub schema: Value,
    /// The instances.
    pub tests: Vec<BenchTest>,
}

/// An instance, and whether it is valid.
#[derive(Clone, Debug, Deserialize)]
pub struct BenchTest {
    /// Whether the schema allows it.
    pub valid: bool,
    /// The instance.
    pub data: Value,
}

/// Every `every`th schema of MaskBench.
pub fn bench_cases(data: &Path, every: usize) -> Vec<BenchCase> {
    let text = std::fs::read_to_string(data.join("maskbench-dev.jsonl")).expect("MaskBench");
    let lines = text.lines().step_by(every);
    lines.map(|line| serde_json::from_str(line).expect("a case of MaskBench")).collect()
}
