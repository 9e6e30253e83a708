//! Conformance cases: runs every case of `tests/data` through the oracle, the recogniser, and all
//! engine configurations (columns).

use std::collections::BTreeSet;
use std::sync::Arc;

use louver::compile::Compiled;
use louver::engine::Constraint;
use louver::ids::TokenId;
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::vocab::Vocabulary;

use crate::harness::cases::{self, Case};
use crate::harness::columns::{COLUMNS, mask};
use crate::harness::oracle::{Oracle, Symbol};

#[test]
fn all_cases_agree_with_the_oracle() {
    let cases = cases::all();
    let mut names = BTreeSet::new();
    let mut failures = Vec::new();
    for (path, case) in &cases {
        assert!(
            names.insert((path, &case.name)),
            "{}: two cases are called {}",
            path.display(),
            case.name
        );
        if let Err(why) = run(case) {
            failures.push(format!(
                "{}: {}: {why}",
                path.file_name().unwrap_or_default().display(),
                case.name
            ));
        }
    }
    assert!(cases.len() >= 20, "only {} cases were found", cases.len());
    assert!(
        failures.is_empty(),
        "{} of {} cases fail:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

/// Checks one case.
fn run(case: &Case) -> Result<(), String> {
    let compiled = case.grammar().and_then(|g| Ok((case.constraint(&g)?, g)));
    let (constraint, grammar) = match (&case.refused, compiled) {
        (None, compiled) => compiled?,
        (Some(part), Err(error)) if error.contains(part.as_str()) => return Ok(()),
        (Some(part), Err(error)) => {
            return Err(format!("refused with {error:?}, which does not say {part:?}"));
        }
        (Some(_), Ok(_)) => return Err("was not refused".to_owned()),
    };
    let has_no_texts =
        case.accepts.is_empty() && case.rejects.is_empty() && case.mask_after.is_empty();
    if has_no_texts && case.prefixes.is_empty() && case.dead.is_empty() {
        return Err("checks nothing".to_owned());
    }
    for (texts, want) in [(&case.accepts, (true, true)), (&case.dead, (false, false))] {
        texts.iter().try_for_each(|text| check_verdict(&grammar, &constraint, text, want))?;
    }
    for text in &case.prefixes {
        expect_equal(text, "begins a sentence", (observe(&grammar, &constraint, text)?.0, true))?;
    }
    for text in &case.rejects {
        expect_equal(text, "is a sentence", (observe(&grammar, &constraint, text)?.1, false))?;
    }
    for (prefix, tokens) in &case.mask_after {
        check_masks(&grammar, &constraint, prefix, tokens)?;
    }
    Ok(())
}

/// Checks whether a text begins a sentence, and whether it is one.
fn check_verdict(
    grammar: &Grammar,
    constraint: &Constraint,
    text: &str,
    want: (bool, bool),
) -> Result<(), String> {
    let got = observe(grammar, constraint, text)?;
    expect_equal(text, "begins and is a sentence", (got, want))
}

/// Compares an observation with its expected value.
fn expect_equal<T: PartialEq + std::fmt::Debug>(
    text: &str,
    what: &str,
    (got, want): (T, T),
) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{text:?} {what}: {got:?}, not {want:?}")) }
}

/// Whether a text begins a sentence, and whether it is one. Errors: the oracle, the recogniser and
/// a matcher disagree.
fn observe(grammar: &Grammar, constraint: &Constraint, text: &str) -> Result<(bool, bool), String> {
    let mut oracle = Oracle::new(grammar);
    let begins = text.bytes().all(|b| oracle.push(Symbol::Byte(b)));
    let want = (begins, begins && oracle.is_complete());
    let compiled = Compiled::new(grammar, &Limits::default()).map_err(|e| e.to_string())?;
    let mut recognizer = Recognizer::new(Arc::new(compiled));
    let begins = recognizer.push(text.as_bytes()).is_ok();
    let recognized = (begins, begins && recognizer.is_complete());
    let mut matcher = constraint.matcher();
    let begins = text.bytes().all(|b| matcher.advance(TokenId::new(usize::from(b))).is_ok());
    let matched = (begins, begins && matcher.is_complete());
    if recognized != want || matched != want {
        return Err(format!(
            "{text:?}: oracle {want:?}, recogniser {recognized:?}, matcher {matched:?}"
        ));
    }
    Ok(want)
}

/// Checks the mask after a prefix, by the oracle and in all columns.
fn check_masks(
    grammar: &Grammar,
    constraint: &Constraint,
    prefix: &str,
    tokens: &[String],
) -> Result<(), String> {
    let vocab = constraint.vocab();
    let want: BTreeSet<&str> = tokens.iter().map(String::as_str).collect();
    let prefix_tokens: Vec<TokenId> =
        prefix.bytes().map(|b| TokenId::new(usize::from(b))).collect();
    let mut oracle = Oracle::new(grammar);
    if !prefix_tokens.iter().all(|&t| oracle.push_token(vocab, t)) {
        return Err(format!("{prefix:?} begins no sentence"));
    }
    expect_equal(
        prefix,
        "allows by the oracle",
        (token_texts(vocab, &oracle.mask(vocab)), owned(&want)),
    )?;
    let detour: Vec<TokenId> = (0..vocab.width()).rev().map(TokenId::new).collect();
    for column in COLUMNS {
        let got = mask(&mut column.matcher(constraint, &prefix_tokens, &detour), vocab);
        expect_equal(
            prefix,
            &format!("allows in column {column:?}"),
            (token_texts(vocab, &got), owned(&want)),
        )?;
    }
    Ok(())
}

/// Owned copies of texts.
fn owned(texts: &BTreeSet<&str>) -> BTreeSet<String> {
    texts.iter().map(|&t| t.to_owned()).collect()
}

/// The texts of the tokens in a mask; bytes that are not UTF-8 as `\xNN`.
fn token_texts(vocab: &Vocabulary, mask: &[bool]) -> BTreeSet<String> {
    let text = |id: usize| {
        let token = TokenId::new(id);
        match vocab.bytes(token) {
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => bytes.iter().map(|b| format!("\\x{b:02x}")).collect(),
            },
            None => vocab.special_name(token).unwrap_or("?").to_owned(),
        }
    };
    (0..mask.len()).filter(|&id| mask[id]).map(text).collect()
}
