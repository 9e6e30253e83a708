//! The adapter and the original side by side: random walks over a corpus of grammars, on which the
//! masks of both are compared, and the reasons for which they may differ.

mod acceptance;
mod difference;
mod refusal;
mod tokens;
mod walk;

use std::path::{Path, PathBuf};

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, dense};
use regex_automata::util::start;
use serde::Deserialize;
use serde_json::Value;

pub use acceptance::{Finding, Notation, Outcome, Probe, compare_acceptance, probes};
pub use difference::{Class, Difference, Side, classify};
pub use refusal::reason_of_refusal;
pub use tokens::{Forcing, environment};
pub use walk::{Report, walk};

/// A grammar of the corpus.
#[derive(Clone, Debug, Default, Deserialize)]
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
    /// A list of grammars, as JSON text.
    pub list: Option<String>,
    /// The classes of differences that this grammar shows, where it is not a schema.
    #[serde(default)]
    pub classes: Vec<Class>,
    /// The language of a Lark text as a regular expression, where the two differ about it.
    pub language: Option<String>,
    /// The side that compiles the grammar, where the other refuses it.
    pub only: Option<Side>,
    /// Why the other refuses it.
    pub why: Option<String>,
}

impl Case {
    /// The grammar as both libraries read it.
    pub fn grammar(&self) -> Value {
        let json = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
        let grammars = match (&self.lark, &self.regex, &self.schema, &self.list) {
            (Some(text), None, None, None) => serde_json::json!([{"lark_grammar": text}]),
            (None, Some(regex), None, None) => {
                let text = format!("start: /{}/", llguidance::regex_to_lark(regex, ""));
                serde_json::json!([{"lark_grammar": text}])
            }
            (None, None, Some(schema), None) => {
                serde_json::json!([{"json_schema": json(schema)}])
            }
            (None, None, None, Some(list)) => json(list),
            _ => panic!("{}: one of `lark`, `regex`, `schema` and `list`", self.name),
        };
        serde_json::json!({"grammars": grammars})
    }

    /// Whether a text is right by [`Case::language`]: the beginning of a word, or a whole one where
    /// it is to end, which is where the token is empty.
    pub(crate) fn reads(&self, text: &[u8], token: &[u8]) -> bool {
        let Some(language) = &self.language else { return false };
        let pattern = format!("(?:{language})$");
        let dfa = dense::Builder::new().build(&pattern).expect("a regular expression");
        let start = start::Config::new().anchored(Anchored::Yes);
        let start = dfa.start_state(&start).expect("no look-behind");
        let end = text.iter().fold(start, |state, &byte| dfa.next_state(state, byte));
        match token.is_empty() {
            true => dfa.is_match_state(dfa.next_eoi_state(end)),
            false => !dfa.is_dead_state(end),
        }
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
