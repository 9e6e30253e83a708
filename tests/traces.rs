//! Replays recorded traces of another engine's matcher, on small vocabularies: masks, accepted and
//! rejected tokens and texts, forks, rollbacks and captures. Skipped if the traces are not there.
//! docs/COMPATIBILITY.md names and explains each trace that differs.

use louver_test_support::text_if_present;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use louver::engine::{Engine, EngineOptions, Matcher};
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::vocab::Vocabulary;
use serde::Deserialize;
use serde_json::Value;

use crate::compat::{base64, lower};

#[derive(Debug, Deserialize)]
struct Trace {
    id: String,
    kind: String,
    spec: String,
    options: Value,
    tokenizer: Tokenizer,
    matcher: MatcherOptions,
    ops: Vec<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
struct Tokenizer {
    vocab_size: usize,
    #[serde(default)]
    decoded_vocab: Vec<Value>,
    #[serde(default)]
    stop_token_ids: Vec<u32>,
}

#[derive(Debug, Deserialize)]
struct MatcherOptions {
    terminate_without_stop_token: bool,
}

/// The bytes of `{"input": text}`, of `{"input_b64": bytes}`, or of a text.
fn bytes(value: &Value) -> Vec<u8> {
    if let Some(text) = value.as_str().or_else(|| value.get("input").and_then(Value::as_str)) {
        return text.as_bytes().to_vec();
    }
    let encoded = value.get("input_b64").or_else(|| value.get("b64")).and_then(Value::as_str);
    base64(encoded.unwrap_or_else(|| panic!("no text: {value}")))
}

impl Tokenizer {
    /// The tokens, the 256 bytes to read texts with, and a stop token if there is none.
    fn vocabulary(&self) -> Vocabulary {
        let mut builder = Vocabulary::builder(self.vocab_size + 257);
        for (id, text) in self.decoded_vocab.iter().enumerate() {
            let text = bytes(text);
            if !text.is_empty() {
                builder.token(id as u32, &text);
            }
        }
        for byte in 0..=255u8 {
            builder.token(self.vocab_size as u32 + u32::from(byte), &[byte]);
        }
        builder.stop(self.vocab_size as u32 + 256);
        for &stop in &self.stop_token_ids {
            builder.stop(stop);
        }
        builder.build().expect("a vocabulary")
    }
}

/// The first difference of a replay: the number of the operation, and a description.
type Difference = (usize, String);

/// A trace and the matcher that replays it.
struct Replay<'t> {
    trace: &'t Trace,
    matcher: Matcher,
    /// Tokens of each successful call: the unit of a rollback.
    steps: Vec<usize>,
}

impl Replay<'_> {
    fn terminated(&mut self) -> bool {
        match self.trace.matcher.terminate_without_stop_token {
            true => self.matcher.is_complete() || self.matcher.is_terminated(),
            false => self.matcher.is_terminated(),
        }
    }

    fn token(&mut self, id: u64) -> bool {
        let taken = self.matcher.advance(TokenId::new(id as usize)).is_ok();
        self.steps.extend(taken.then_some(1));
        taken
    }

    /// Takes a text byte by byte, or nothing of it.
    fn string(&mut self, text: &[u8]) -> bool {
        let base = self.trace.tokenizer.vocab_size;
        for (i, &byte) in text.iter().enumerate() {
            if self.matcher.advance(TokenId::new(base + usize::from(byte))).is_err() {
                self.matcher.rollback(i);
                return false;
            }
        }
        self.steps.push(text.len());
        true
    }

    fn mask(&mut self) -> Vec<u64> {
        let mut row = vec![0; self.matcher.vocab().mask_words()];
        self.matcher.fill_mask(&mut row);
        let set = |id: &u64| row[*id as usize / 32] >> (id % 32) & 1 == 1;
        (0..self.trace.tokenizer.vocab_size as u64).filter(set).collect()
    }

    fn captures(&mut self) -> Vec<(String, Vec<u8>)> {
        let captures = self.matcher.captures().expect("a small chart");
        captures.into_iter().map(|c| (c.name, c.bytes)).collect()
    }

    /// The result of one operation here, and the recorded one.
    fn op(&mut self, op: &[Value], forks: &mut Vec<(Matcher, Vec<usize>)>) -> (String, String) {
        let name = op[0].as_str().expect("a name");
        let result = op.last().and_then(Value::as_bool);
        let verdict = |ours: bool| {
            (ours.to_string(), result.map_or_else(String::new, |theirs| theirs.to_string()))
        };
        match name {
            "mask" if op[1].is_null() => (String::new(), String::new()),
            "mask" => {
                let theirs: Vec<u64> =
                    op[1].as_array().expect("ids").iter().filter_map(Value::as_u64).collect();
                (format!("{:?}", self.mask()), format!("{theirs:?}"))
            }
            "token" => verdict(self.token(op[1].as_u64().expect("an id"))),
            "string" => verdict(self.string(&bytes(&op[1]))),
            "rollback" => {
                for _ in 0..op[1].as_u64().expect("a number") {
                    let step = self.steps.pop().unwrap_or_default();
                    self.matcher.rollback(step);
                }
                (String::new(), String::new())
            }
            // What the fork does must not change the original.
            "fork" => {
                forks.push((self.matcher.clone(), self.steps.clone()));
                (String::new(), String::new())
            }
            "reset" => {
                self.matcher.rollback(self.matcher.tokens().len());
                self.steps.clear();
                (String::new(), String::new())
            }
            "terminated" => verdict(self.terminated()),
            "completed" => verdict(self.matcher.is_complete()),
            "captures" => {
                let list = op[2].as_array().expect("captures").iter();
                let theirs: Vec<(String, Vec<u8>)> = list
                    .map(|c| (c[0].as_str().expect("a name").to_owned(), bytes(&c[1])))
                    .collect();
                // There, a marker is reported before the text that it ends; here, after it. They
                // are compared as sets.
                let show = |list: Vec<(String, Vec<u8>)>| {
                    let shown = list
                        .iter()
                        .map(|(name, text)| format!("{name}={}", String::from_utf8_lossy(text)));
                    shown
                        .collect::<std::collections::BTreeSet<_>>()
                        .into_iter()
                        .collect::<Vec<_>>()
                        .join(" ")
                };
                (show(self.captures()), show(theirs))
            }
            // tests/property/api.rs compares masks of draft trees with the oracle.
            "draft_tree" => (String::new(), String::new()),
            other => panic!("{}: an operation {other}", self.trace.id),
        }
    }
}

/// Replays a trace; None if no front end reads its kind.
fn replay(trace: &Trace) -> Option<Result<(), Difference>> {
    let limits = Limits::default();
    let grammar = match lower(&trace.kind, &trace.spec, &trace.options, &limits)? {
        Ok(grammar) => grammar,
        Err(why) => return Some(Err((0, format!("refused: {why}")))),
    };
    let engine = Engine::new(Arc::new(trace.tokenizer.vocabulary()), EngineOptions::default());
    let constraint = match engine.compile(grammar) {
        Ok(constraint) => constraint,
        Err(why) => return Some(Err((0, format!("refused: {why}")))),
    };
    let mut run = Replay { trace, matcher: constraint.matcher(), steps: Vec::new() };
    let mut forks = Vec::new();
    for (at, op) in trace.ops.iter().enumerate() {
        let (ours, theirs) = run.op(op, &mut forks);
        if ours != theirs {
            return Some(Err((
                at,
                format!(
                    "{} {}: ours {ours}, theirs {theirs}",
                    op[0],
                    op.get(1).unwrap_or(&Value::Null)
                ),
            )));
        }
    }
    Some(Ok(()))
}

/// `LOUVER_SHOW_DIFFERENCES=1` prints each difference.
#[test]
fn recorded_traces_are_replayed_if_present() {
    // tests/data has the cases that always run.
    let Some(text) = text_if_present("engine-traces-dev.jsonl") else { return };
    let explained = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/COMPATIBILITY.md"),
    );
    let explained = explained.unwrap_or_default();
    let is_explained = |id: &str| {
        explained.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == id)
    };
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in text.lines() {
        let trace: Trace = serde_json::from_str(line).expect("a trace");
        let Some(outcome) = replay(&trace) else { continue };
        let (same, all) = counts.entry(trace.kind.clone()).or_default();
        *all += 1;
        let differs = match outcome {
            Ok(()) => {
                *same += 1;
                if is_explained(&trace.id) {
                    failures.push(format!("{}: explained, but no different", trace.id));
                }
                continue;
            }
            Err((at, what)) => format!("{} operation {at}: {what}", trace.id),
        };
        if std::env::var_os("LOUVER_SHOW_DIFFERENCES").is_some() {
            println!(
                "{differs} in\n{}\n{:?}\n",
                trace.spec,
                trace.tokenizer.decoded_vocab.iter().take(40).collect::<Vec<_>>()
            );
        }
        if !is_explained(&trace.id) {
            failures.push(differs);
        }
    }
    for (kind, (same, all)) in &counts {
        println!("{kind}: {same} of {all} traces are the same");
    }
    assert!(failures.is_empty(), "{} traces:\n{}", failures.len(), failures.join("\n"));
}
