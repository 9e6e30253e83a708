//! The functions that the tests of the published llguidance import, inferred from their calls.
//!
//! A text of tokens has `‧` between them. `✖` before a token says that the mask must not have it.
//! `2↶` before forced tokens says that two tokens are taken back. `≺EOS≻` and `<[7]>` are the end
//! token and the token 7.

use std::sync::{LazyLock, OnceLock};

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{InferenceCapabilities, TokEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

mod steps;

pub use steps::{
    check_capture, check_lark_grammar, check_lark_grammar_nested, check_lark_grammar_prompt,
    check_lark_json,
};

/// The bound that a test of numbers sets.
#[derive(Clone, Copy, Debug)]
pub enum NumericBounds {
    /// `minimum` or `maximum`.
    Inclusive,
    /// `exclusiveMinimum` or `exclusiveMaximum`.
    Exclusive,
}

/// The environment of Phi 3.5's tokenizer.
pub fn get_tok_env() -> &'static TokEnv {
    static ENV: LazyLock<TokEnv> = LazyLock::new(|| {
        let name = "microsoft/Phi-3.5-mini-instruct";
        toktrie_hf_downloader::tok_env_from_name(name).expect("a tokenizer")
    });
    &ENV
}

/// The factory of matchers, which take no tokens back by themselves, or of constraints, which may.
fn factory(backtrack: bool) -> &'static ParserFactory {
    let make = |backtrack| {
        let caps = InferenceCapabilities {
            ff_tokens: true,
            backtrack,
            conditional_ff_tokens: false,
            fork: false,
        };
        let mut factory = ParserFactory::new(get_tok_env(), caps, &[]).expect("a factory");
        factory.quiet();
        factory
    };
    static FACTORIES: OnceLock<[ParserFactory; 2]> = OnceLock::new();
    &FACTORIES.get_or_init(|| [make(false), make(true)])[usize::from(backtrack)]
}

/// A matcher, or the error of the grammar.
fn matcher(grammar: TopLevelGrammar) -> anyhow::Result<Matcher> {
    factory(false).create_parser(grammar).map(|parser| Matcher::new(Ok(parser)))
}

/// The end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is a text of the grammar.
    Accepted,
    /// It is the beginning of one.
    Open,
    /// No text of the grammar begins so.
    Rejected,
}

/// Follows a text, and compares each mask with the token. A text is also rejected if it is only the
/// beginning of one, and its tokens are not the ones that the tokenizer would choose for that.
fn verdict(mut matcher: Matcher, text: &str) -> Verdict {
    let mut is_in_masks = true;
    for token in get_tok_env().tokenize(text) {
        let is_valid = matcher.validate_tokens(&[token]).expect("a validation") == 1;
        let mask = matcher.compute_mask_or_eos().expect("a mask");
        // A mask has one token only where text is forced.
        let is_forced = mask.num_set() == 1;
        assert!(is_forced || mask.is_allowed(token) == is_valid, "mask and validation of {token}");
        if !is_valid {
            return Verdict::Rejected;
        }
        is_in_masks &= mask.is_allowed(token);
        matcher.consume_token(token).expect("a valid token");
    }
    match (matcher.is_accepting().expect("a state"), is_in_masks) {
        (true, _) => Verdict::Accepted,
        (false, true) => Verdict::Open,
        (false, false) => Verdict::Rejected,
    }
}

fn check(grammar: &TopLevelGrammar, is_accepted: bool, text: &str) {
    let (text, expected) = match text.strip_prefix("FINAL_REJECT:") {
        Some(text) => (text, Verdict::Open),
        None if is_accepted => (text, Verdict::Accepted),
        None => (text, Verdict::Rejected),
    };
    let matcher = matcher(grammar.clone()).unwrap_or_else(|error| panic!("refused: {error:#}"));
    assert_eq!(verdict(matcher, text), expected, "{text:?}");
}

/// A grammar is refused; the words of the two libraries differ.
fn check_refused(grammar: TopLevelGrammar, message: &str) {
    match matcher(grammar) {
        Ok(_) => panic!("not refused: {message}"),
        Err(error) => println!("expected {message:?}, refused with {error:#}"),
    }
}

/// A schema accepts or rejects a value.
pub fn json_schema_check(schema: &Value, value: &Value, is_accepted: bool) {
    json_check(schema, value, is_accepted);
}

fn json_check(schema: &Value, value: &Value, is_accepted: bool) {
    let grammar = TopLevelGrammar::from_json_schema(schema.clone());
    let text = value.to_string();
    let matcher = matcher(grammar).unwrap_or_else(|error| panic!("refused: {error:#}"));
    let verdict = verdict(matcher, &text);
    assert_eq!(verdict == Verdict::Accepted, is_accepted, "{text} is {verdict:?}");
}

/// A schema accepts these values, and rejects those.
pub fn json_test_many(schema: &Value, accepted: &[Value], rejected: &[Value]) {
    accepted.iter().for_each(|value| json_check(schema, value, true));
    rejected.iter().for_each(|value| json_check(schema, value, false));
}

/// A schema is refused.
pub fn json_err_test(schema: &Value, message: &str) {
    check_refused(TopLevelGrammar::from_json_schema(schema.clone()), message);
}

/// A Lark text is compiled.
pub fn lark_ok(lark: &str) {
    if let Err(error) = matcher(TopLevelGrammar::from_lark(lark.to_owned())) {
        panic!("refused: {error:#}");
    }
}

/// A Lark text is refused.
pub fn lark_err_test(lark: &str, message: &str) {
    check_refused(TopLevelGrammar::from_lark(lark.to_owned()), message);
}

/// A Lark text accepts or rejects a text.
pub fn lark_str_test(lark: &str, is_accepted: bool, text: &str, _quiet: bool) {
    check(&TopLevelGrammar::from_lark(lark.to_owned()), is_accepted, text);
}

/// A Lark text accepts these texts, and rejects those.
pub fn lark_str_test_many(lark: &str, accepted: &[&str], rejected: &[&str]) {
    accepted.iter().for_each(|text| lark_str_test(lark, true, text, true));
    rejected.iter().for_each(|text| lark_str_test(lark, false, text, true));
}

/// The same.
pub fn lark_str_test_many_quiet(lark: &str, accepted: &[&str], rejected: &[&str]) {
    lark_str_test_many(lark, accepted, rejected);
}

/// The words of a text and what stands between them, in place of the module `substring`, which the
/// adapter does not have.
pub fn chunk_into_words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut chunks = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices().skip(1) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|before| is_word(before) != is_word(c)) {
            chunks.push(&text[start..at]);
            start = at;
        }
    }
    chunks.push(&text[start..]);
    chunks
}
