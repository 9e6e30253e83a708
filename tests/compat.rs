//! Compatibility with another engine: compares acceptance vectors recorded from it, if they are
//! present.
//!
//! Its verdicts are not an oracle (docs/COMPATIBILITY.md lists the differences), but a new
//! difference must not go unnoticed. `LOUVER_UPDATE_BASELINES=1` writes new baselines.

use louver_test_support::text_if_present;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::ebnf::{self, EbnfOptions};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::front::regex::{self, RegexOptions};
use louver::front::structural_tag::{self, StructuralTagOptions};
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::matcher::{Recognizer, Rejected};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Minimum share of vectors of a kind on which both engines agree, in percent.
const MIN_AGREEMENT: usize = 98;

/// One recorded vector.
#[derive(Debug, Deserialize)]
struct Vector {
    id: String,
    kind: String,
    spec: String,
    options: Value,
    mode: Mode,
    input: Option<String>,
    input_b64: Option<String>,
    accepted: bool,
}

/// What the vector accepts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// The input is a whole sentence.
    Full,
    /// The input begins a sentence.
    Prefix,
}

/// A difference between the verdicts, in order of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Difference {
    /// The grammar is an error here.
    Refused,
    /// The other engine accepts the input, Louver does not.
    Rejected,
    /// Louver accepts the input, the other engine does not.
    Accepted,
}

/// Lowers the spec of a vector; `None` if its kind has no front end.
pub(crate) fn lower(
    kind: &str,
    spec: &str,
    options: &Value,
    limits: &Limits,
) -> Option<Result<Grammar, String>> {
    Some(match kind {
        "ebnf" => {
            let root =
                options.get("root_rule_name").and_then(Value::as_str).unwrap_or("root").to_owned();
            let lowered = ebnf::lower(spec, &EbnfOptions::default().with_root(root), limits);
            lowered.map(|lowered| lowered.grammar).map_err(|e| e.to_string())
        }
        "regex" => regex::lower(spec, &RegexOptions::default(), limits).map_err(|e| e.to_string()),
        "lark" => lark(spec, options, limits),
        "structural_tag" => structural_tag::lower(spec, &StructuralTagOptions::default(), limits)
            .map(|lowered| lowered.grammar)
            .map_err(|e| e.to_string()),
        _ => return None,
    })
}

/// Lowers a Lark spec with its named grammars.
fn lark(spec: &str, options: &Value, limits: &Limits) -> Result<Grammar, String> {
    let mut named = BTreeMap::new();
    for (name, grammar) in options["named_grammars"].as_object().into_iter().flatten() {
        let grammar = match (grammar.as_str(), grammar["ebnf"].as_str()) {
            (Some(text), _) => NamedGrammar::Lark(text.to_owned()),
            (None, Some(text)) => match lower("ebnf", text, &Value::Null, limits) {
                Some(grammar) => NamedGrammar::Grammar(grammar?),
                None => return Err("there is no front end for named EBNF grammars".to_owned()),
            },
            (None, None) => return Err("a named grammar of an unknown kind".to_owned()),
        };
        named.insert(name.clone(), grammar);
    }
    let options = LarkOptions::default().with_named(named);
    lark::lower(spec, &options, limits).map(|lowered| lowered.grammar).map_err(|e| e.to_string())
}

impl Vector {
    /// The bytes of the input.
    fn input(&self) -> Vec<u8> {
        match (&self.input, &self.input_b64) {
            (Some(text), None) => text.as_bytes().to_vec(),
            (None, Some(encoded)) => base64(encoded),
            _ => panic!("{}: a vector has either `input` or `input_b64`", self.id),
        }
    }

    /// Whether Louver accepts the input; `None` if the recogniser reaches a limit.
    fn check(&self, recognizer: &mut Recognizer) -> Option<bool> {
        recognizer.reset();
        match recognizer.push(&self.input()) {
            Ok(()) => Some(self.mode == Mode::Prefix || recognizer.is_complete()),
            Err(Rejected::Byte { .. }) => Some(false),
            Err(_) => None,
        }
    }
}

/// Decodes base64 with the standard alphabet and padding.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("no base64: {text:?}"),
    };
    let mut out = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four
            .iter()
            .enumerate()
            .fold(0u32, |bits, (i, &c)| bits | u32::from(value(c)) << (18 - 6 * i));
        out.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    out
}

/// A path in the repository.
fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The differences of a kind by vector id, and the number of vectors.
fn differences(vectors: &[Vector]) -> (BTreeMap<&str, Difference>, usize) {
    let limits = Limits::default();
    let mut recognizers: HashMap<(&str, String), Result<Recognizer, String>> = HashMap::new();
    let mut out = BTreeMap::new();
    for vector in vectors {
        let recognizer =
            recognizers.entry((&vector.spec, vector.options.to_string())).or_insert_with(|| {
                let lowered = lower(&vector.kind, &vector.spec, &vector.options, &limits)
                    .expect("a front end");
                let compiled =
                    lowered.and_then(|g| Compiled::new(&g, &limits).map_err(|e| e.to_string()));
                compiled.map(|compiled| Recognizer::with_limits(Arc::new(compiled), &limits))
            });
        let verdict = match recognizer {
            Ok(recognizer) => {
                vector.check(recognizer).ok_or("the recogniser ran into a limit".to_owned())
            }
            Err(why) => Err(why.clone()),
        };
        let difference = match verdict {
            Ok(accepted) if accepted == vector.accepted => continue,
            Ok(true) => Difference::Accepted,
            Ok(false) => Difference::Rejected,
            Err(_) => Difference::Refused,
        };
        if std::env::var_os("LOUVER_SHOW_DIFFERENCES").is_some() {
            let why = verdict.err().unwrap_or_default();
            let (id, mode, spec, input) = (&vector.id, vector.mode, &vector.spec, &vector.input);
            println!("{id} {difference:?} ({mode:?}) {input:?} in\n{spec}\n{why}\n");
        }
        out.insert(&*vector.id, difference);
    }
    (out, vectors.len())
}

/// `LOUVER_SHOW_DIFFERENCES=1` prints each difference.
#[test]
fn recorded_verdicts_get_no_worse_if_present() {
    // tests/data has the cases that always run.
    let Some(text) = text_if_present("engine-vectors-dev.jsonl") else { return };
    let mut kinds: BTreeMap<String, Vec<Vector>> = BTreeMap::new();
    for line in text.lines() {
        let vector: Vector = serde_json::from_str(line).expect("a vector");
        kinds.entry(vector.kind.clone()).or_default().push(vector);
    }
    let mut failures = Vec::new();
    for (kind, vectors) in &kinds {
        if lower(kind, "", &Value::Null, &Limits::default()).is_none() {
            println!("{kind}: {} vectors, not built", vectors.len());
            continue;
        }
        let (now, all) = differences(vectors);
        let count = |d: Difference| now.values().filter(|&&x| x == d).count();
        let agreed = all - now.len();
        println!(
            "{kind}: {agreed} of {all} agree ({:.2} %); refused {}, rejected {}, accepted {}",
            100.0 * agreed as f64 / all as f64,
            count(Difference::Refused),
            count(Difference::Rejected),
            count(Difference::Accepted),
        );
        let baseline = root("tests/baselines/vectors").join(format!("{kind}.json"));
        if std::env::var_os("LOUVER_UPDATE_BASELINES").is_some() {
            std::fs::create_dir_all(root("tests/baselines/vectors")).expect("the folder is made");
            let text = serde_json::to_string_pretty(&now).expect("JSON");
            std::fs::write(&baseline, text + "\n").expect("the baseline is written");
            continue;
        }
        if agreed * 100 < all * MIN_AGREEMENT {
            failures.push(format!("{kind}: less than {MIN_AGREEMENT} % agree"));
        }
        let Ok(text) = std::fs::read_to_string(&baseline) else {
            failures.push(format!("{kind}: no baseline; LOUVER_UPDATE_BASELINES=1 writes one"));
            continue;
        };
        let before: BTreeMap<String, Difference> =
            serde_json::from_str(&text).expect("the baseline is JSON");
        let worse =
            now.iter().filter(|(id, difference)| before.get(**id).is_none_or(|b| b < difference));
        failures.extend(worse.map(|(id, difference)| format!("{id}: {difference:?}")));
    }
    assert!(failures.is_empty(), "{} got worse:\n{}", failures.len(), failures.join("\n"));
}
