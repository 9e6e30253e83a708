//! Small grammars on both sides: which of them are compiled, and which short texts they accept.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use toktrie::ApproximateTokEnv;

use crate::walk::{original_parser, our_parser};

/// Characters of the texts that regular expressions and Lark texts are tried with, and the longest.
const CHARACTERS: [char; 8] = ['a', 'b', 'A', '1', '-', ' ', '\n', 'é'];
const LONGEST: usize = 3;

/// The notation of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notation {
    /// A regular expression.
    Regex,
    /// A Lark text; one without a colon is what `start` derives.
    Lark,
    /// A schema, as JSON text.
    Schema,
}

/// Grammars of one kind, and how the two differ about each of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Their notation.
    pub notation: Notation,
    /// The grammars.
    pub texts: Vec<String>,
    /// How they differ; not at all by default.
    pub outcome: Option<Outcome>,
    /// Why they differ: the first cell of a row in `docs/LLGUIDANCE.md`.
    pub why: Option<String>,
    /// Instances that the schemas are tried with, in place of the usual ones.
    pub instances: Option<Vec<String>>,
}

/// How the two differ about a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Only the adapter compiles it.
    OursCompiles,
    /// Only the original compiles it.
    OriginalCompiles,
    /// The adapter accepts more.
    OursAccepts,
    /// The original accepts more.
    OriginalAccepts,
    /// Each accepts what the other does not.
    BothAccept,
}

/// What a probe has found.
#[derive(Debug)]
pub struct Finding {
    /// How they differ, unless they do not.
    pub outcome: Option<Outcome>,
    /// Texts that the adapter accepts; none if one side refuses the grammar.
    pub accepted: usize,
    /// Texts that only one side accepts, or the message of the side that refuses the grammar.
    pub evidence: String,
}

/// The probes of this crate, and the instances that schemas are tried with.
pub fn probes() -> (Vec<Probe>, Vec<String>) {
    #[derive(Deserialize)]
    struct Probes {
        instances: Vec<String>,
        probe: Vec<Probe>,
    }
    let probes: Probes = toml::from_str(include_str!("../probes.toml")).expect("the probes");
    (probes.probe, probes.instances)
}

/// The texts of a list that a matcher accepts as a whole. Texts come after their beginnings.
macro_rules! accepted {
    ($matcher:expr, $texts:expr) => {{
        let (mut accepted, mut refused) = (BTreeSet::new(), BTreeSet::new());
        for text in $texts {
            let mut before = text.chars();
            before.next_back();
            if refused.contains(before.as_str()) {
                refused.insert(text.as_str());
                continue;
            }
            let mut matcher = $matcher.clone();
            let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
            if matcher.try_consume_tokens(&tokens).ok() != Some(tokens.len()) {
                refused.insert(text.as_str());
            } else if matcher.is_accepting().unwrap_or(false) {
                accepted.insert(text.as_str());
            }
        }
        accepted
    }};
}

/// Compares the two on a grammar. Schemas are tried with these instances, and others with all short
/// texts over some characters.
pub fn compare_acceptance(notation: Notation, text: &str, instances: &[String]) -> Finding {
    let env = ApproximateTokEnv::single_byte_env();
    let (ours, original) = grammars(notation, text);
    let found = |outcome, evidence| Finding { outcome: Some(outcome), accepted: 0, evidence };
    let (ours, original) = match (our_parser(&env, &ours), original_parser(&env, &original)) {
        (Ok(ours), Ok(original)) => (ours, original),
        (Err(error), Err(_)) => {
            return Finding { outcome: None, accepted: 0, evidence: format!("{error:#}") };
        }
        (Ok(_), Err(error)) => return found(Outcome::OursCompiles, format!("{error:#}")),
        (Err(error), Ok(_)) => return found(Outcome::OriginalCompiles, format!("{error:#}")),
    };
    let ours = llguidance::Matcher::new(Ok(ours));
    let original = original::Matcher::new(Ok(original));
    let texts = if notation == Notation::Schema { instances.to_vec() } else { short_texts() };
    let (ours, original) = (accepted!(ours, &texts), accepted!(original, &texts));
    let only = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| {
        a.difference(b).map(|text| text.to_string()).collect::<Vec<_>>()
    };
    let (of_ours, of_original) = (only(&ours, &original), only(&original, &ours));
    let outcome = match (of_ours.is_empty(), of_original.is_empty()) {
        (true, true) => None,
        (false, true) => Some(Outcome::OursAccepts),
        (true, false) => Some(Outcome::OriginalAccepts),
        (false, false) => Some(Outcome::BothAccept),
    };
    let shown = |texts: &[String]| format!("{} {:?}", texts.len(), &texts[..texts.len().min(5)]);
    let evidence = format!("ours {}, original {}", shown(&of_ours), shown(&of_original));
    Finding { outcome, accepted: ours.len(), evidence }
}

/// A grammar as the two libraries read it.
fn grammars(notation: Notation, text: &str) -> (Value, Value) {
    let both = |grammar: Value| {
        let list = json!({ "grammars": [grammar] });
        (list.clone(), list)
    };
    match notation {
        Notation::Regex => {
            let ours = llguidance::api::TopLevelGrammar::from_regex(text);
            let original = original::api::TopLevelGrammar::from_regex(text);
            (json!(ours), json!(original))
        }
        Notation::Lark if text.contains(':') => both(json!({ "lark_grammar": text })),
        Notation::Lark => both(json!({ "lark_grammar": format!("start: {text}") })),
        Notation::Schema => {
            let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
            both(json!({ "json_schema": schema }))
        }
    }
}

/// All texts of the characters up to the longest.
fn short_texts() -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut begin = 0;
    for _ in 0..LONGEST {
        let end = texts.len();
        for at in begin..end {
            texts.extend(CHARACTERS.map(|character| format!("{}{character}", texts[at])));
        }
        begin = end;
    }
    texts
}
