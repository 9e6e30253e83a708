//! Property tests of several constraints in one grammar: budgets, distinct values, distinct keys
//! and bounded white space. Masks agree with `advance` along random walks.

use std::sync::Arc;

use louver::engine::Engine;
use louver::front::json_schema::{SchemaOptions, Whitespace};
use louver::front::lark::LarkOptions;
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::vocab::Vocabulary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::budget::check_step;
use super::config;

/// Start rules with a value `%` and a text, which may have budgets.
const STARTS: &[&str] = &[
    "start: value\n",
    "start: text value\n",
    "start: value text\n",
    "start: value*\n",
    "start: (value | text)*\n",
    "start: text value text value\n",
    "start: value | text value | other\n",
];

/// Budgets of the text or the value.
const BUDGETS: &[&str] = &[
    "[max_chars=1]",
    "[max_chars=5]",
    "[max_chars=12]",
    "[max_chars=40]",
    "[max_tokens=3]",
    "[max_tokens=2, max_chars=3]",
];

const TOKENS: &[&str] = &[
    "ab",
    "\",\"",
    "a\"",
    "\"a\"",
    "\":",
    "  ",
    "   ",
    "\n ",
    "1,",
    "12",
    "],",
    "\"b\":",
    ",\"b\"",
    "\",\"a\"",
    "{\"a\":1",
    "[\"",
    "[[",
    "]]",
    "]",
    "\"a\",\"a\"",
    "a\",\"a",
    "[1]",
    ",[1",
    "{}",
    ",{}",
    "[],",
    "}",
    "\"a\":1,\"a\"",
    "1]",
    "a[",
    "ab[\"a",
];

/// No budget, or one. White space has bounds only in grammars without budgets.
fn budget() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(""), select(BUDGETS)]
}

/// Schemas of values that are compared, or that have keys.
fn schema() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        r#"{"type":"string"}"#,
        r#"{"type":"integer"}"#,
        r#"{"enum":["a","ab",1]}"#,
        r#"{"type":"object","patternProperties":{"^.$":{"type":"integer"}}}"#,
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            3 => (inner.clone(), any::<bool>()).prop_map(|(items, unique)| format!(
                r#"{{"type":"array","uniqueItems":{unique},"items":{items}}}"#
            )),
            1 => inner.clone().prop_map(|inner| format!(
                r#"{{"type":"object","additionalProperties":{inner}}}"#
            )),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!(
                r#"{{"type":"array","uniqueItems":true,"items":{{"anyOf":[{a},{b}]}}}}"#
            )),
        ]
    })
}

proptest! {
    #![proptest_config(config(250))]

    /// Random Lark grammars around random schemas.
    #[test]
    fn masks_of_combined_constraints_agree_with_advance(
        start in select(STARTS),
        (text, value) in (budget(), budget()),
        schema in schema(),
        white in select(vec![Whitespace::Compact, Whitespace::Flexible { max: 40 }]),
        tokens in subsequence(TOKENS, 10..TOKENS.len()),
        walks in vec(vec(any::<u16>(), 14), 2),
        (direct_walk, mutual_rules) in
            select(vec![(1024usize, 24usize), (0, 24), (60, 24), (0, 0)]),
    ) {
        let grammar = format!(
            "{start}text{text}: /[a-b]*/\nvalue{value}: %json {schema}\nother: /\\[[^c]*/\n"
        );
        let tokens: Vec<&[u8]> = tokens.iter().map(|t| t.as_bytes()).collect();
        let vocab = Arc::new(Vocabulary::toy(&tokens));
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning { direct_walk, mutual_rules });
        let engine = Engine::new(vocab.clone(), options);
        let schema = SchemaOptions::default().with_whitespace(white);
        let options = LarkOptions::default().with_schema(schema);
        // Values of which there may be too few to differ are refused.
        let Ok(constraint) = engine.compile_lark(&grammar, &options) else { return Ok(()) };
        for walk in walks {
            let (mut matcher, mut prefix) = (constraint.matcher(), Vec::new());
            for choice in walk {
                let Some(allowed) = check_step(&mut matcher, &constraint, &prefix, choice)? else {
                    break;
                };
                let is_likely = |token: TokenId| {
                    let bytes = vocab.bytes(token);
                    bytes.is_some_and(|b| b.len() > 1 || b"{}[]\",:1ab".contains(&b[0]))
                };
                let follow: Vec<TokenId> = (0..vocab.width())
                    .map(TokenId::new)
                    .filter(|&t| allowed[t.index()] && !vocab.is_stop(t) && is_likely(t))
                    .collect();
                let Some(&token) = follow.get(usize::from(choice) % follow.len().max(1)) else {
                    break;
                };
                prop_assert_eq!(matcher.advance(token), Ok(()));
                prefix.push(token);
            }
        }
    }
}

/// Where white space has bounds, a token after which no value can differ is a dead end, too.
#[test]
fn no_distinct_element_is_left_beside_bounded_white_space() {
    let strings = r#"{"type":"array","uniqueItems":true,"items":{"type":"string"}}"#;
    let schema = format!(r#"{{"type":"array","uniqueItems":true,"items":{strings}}}"#);
    let vocab = Arc::new(Vocabulary::toy(&[b",\"b\"" as &[u8], b",\"b\"]"]));
    let engine = Engine::new(vocab, crate::harness::unlimited());
    let constraint = engine.compile_json_schema(&schema, &SchemaOptions::default()).unwrap();
    let (mut matcher, mut prefix) = (constraint.matcher(), Vec::new());
    for byte in b"[[\"b\",\"c\"],[\"c\"" {
        let token = TokenId::from_raw((*byte).into());
        matcher.advance(token).unwrap();
        prefix.push(token);
        let allowed = check_step(&mut matcher, &constraint, &prefix, 0).unwrap();
        assert!(allowed.is_some());
    }
}
