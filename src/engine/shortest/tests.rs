//! Completions of JSON texts. Random grammars are in `tests/`.

use super::*;
use crate::engine::{Engine, EngineOptions};
use crate::front::json_schema::SchemaOptions;
use crate::fsm::ByteSet;
use crate::ir::{Expr, Grammar, GrammarBuilder};
use crate::limits::Limits;
use std::sync::Arc;

fn matcher(schema: &str, prefix: &str) -> Matcher {
    let engine = Engine::new(
        Arc::new(Vocabulary::toy(&[b"\"a\"", b"\":", b"}}", b"]}"])),
        EngineOptions::default(),
    );
    let mut matcher =
        engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap().matcher();
    prefix.bytes().for_each(|b| matcher.advance(TokenId::from_raw(u32::from(b))).unwrap());
    matcher
}

fn shortest(matcher: &mut Matcher) -> (u64, Option<String>) {
    let completion = matcher.shortest_completion(&CompletionOptions::default()).unwrap();
    let bytes = completion.bytes();
    (completion.length, bytes.map(|b| String::from_utf8(b).unwrap()))
}

#[test]
fn shortest_completions_close_json_texts() {
    let object = r#"{"type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
            "b": {"type": "string", "minLength": 3}},
        "required": ["a"], "additionalProperties": false}"#;
    let cases = [
        (object, "", r#"{"a":[true,true]}"#),
        (object, r#"{"a""#, ":[true,true]}"),
        (object, r#"{"a":[false"#, ",true]}"),
        (object, r#"{"a":[false,f"#, "alse]}"),
        (object, r#"{"a":[false,true]"#, "}"),
        (object, r#"{"a":[false,true],"b":"x"#, "__\"}"),
        (object, r#"{"a":[false,true]}"#, ""),
        (r#"{"enum": ["nothing", "none", "no way"]}"#, "\"no", "ne\""),
    ];
    for (schema, prefix, want) in cases {
        let mut matcher = matcher(schema, prefix);
        let (length, text) = shortest(&mut matcher);
        let text = text.unwrap();
        // The character at a free position is not specified.
        assert_eq!((length, text.len()), (want.len() as u64, want.len()), "{prefix}: {text}");
        assert!(want.contains('_') || text == want, "{prefix}: {text}");
        let tokens =
            matcher.shortest_completion_tokens(&CompletionOptions::default()).unwrap().unwrap();
        assert!(tokens.len() <= want.len());
        tokens.iter().for_each(|&t| matcher.advance(t).unwrap());
        assert!(matcher.is_complete());
        assert_eq!(shortest(&mut matcher), (0, Some(String::new())));
        matcher.advance(TokenId::from_raw(256)).unwrap();
        assert_eq!(shortest(&mut matcher), (0, Some(String::new())));
    }
}

/// Masks allow each token of a completion in turn, also where a budget is spent on the way.
#[test]
fn completions_stay_within_budgets() {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let lark = "start: v+ \"x\"\nv[max_chars=2, suffix=\"!!\"]: /[ab]+/";
    let ebnf = "root ::= a \"x\"\na[max_chars=2, on_exhausted=cut] ::= \"aaaa\"";
    let constraints = [
        (engine.compile_lark(lark, &Default::default()).unwrap(), "a", "!x"),
        (engine.compile_lark(lark, &Default::default()).unwrap(), "", "a!x"),
        (engine.compile_ebnf(ebnf, &Default::default()).unwrap(), "", "aax"),
        (engine.compile_ebnf(ebnf, &Default::default()).unwrap(), "a", "ax"),
    ];
    for (constraint, prefix, expected) in constraints {
        let mut matcher = constraint.matcher();
        prefix.bytes().for_each(|b| matcher.advance(TokenId::from_raw(u32::from(b))).unwrap());
        let tokens = matcher.shortest_completion_tokens(&CompletionOptions::default()).unwrap();
        assert_eq!(shortest(&mut matcher), (expected.len() as u64, Some(expected.to_owned())));
        for token in tokens.expect("a completion") {
            matcher.advance(token).unwrap();
        }
        assert!(matcher.is_complete(), "{expected}");
    }
}

#[test]
fn completions_of_counted_repeats_are_computed_not_run_through() {
    let inner = r#"{"type": "array", "minItems": 1000000,
        "items": {"type": "string", "minLength": 1000000}}"#;
    let schema = format!(r#"{{"type": "array", "minItems": 1000000, "items": {inner}}}"#);
    // Elements with a comma each; brackets in place of the first comma.
    let (string, million) = (1_000_002u64, 1_000_000u64);
    let array = 1 + million * (string + 1);
    let all = 1 + million * (array + 1);
    assert_eq!(shortest(&mut matcher(&schema, "")), (all, None));
    assert_eq!(shortest(&mut matcher(&schema, "[[\"abc")), (all - 6, None));
    let options = CompletionOptions { longest: 7, ..CompletionOptions::default() };
    let mut near = matcher(r#"{"type": "string", "minLength": 10}"#, "\"abc");
    assert_eq!(near.shortest_completion(&options).unwrap(), Completion { length: 8, pieces: None });
    assert_eq!(near.shortest_completion_tokens(&options), Ok(None));
}

fn doubling(levels: usize) -> Grammar {
    let mut b = GrammarBuilder::new();
    let mut rule = b.rule("r", Expr::text("ab"));
    for level in 0..levels {
        rule = b.rule(format!("r{level}"), Expr::seq([Expr::Ref(rule), Expr::Ref(rule)]));
    }
    b.finish(rule).unwrap()
}

#[test]
fn lengths_that_do_not_fit_saturate() {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let length = |levels| {
        let mut matcher = engine.compile(doubling(levels)).unwrap().matcher();
        matcher.shortest_completion(&CompletionOptions::default()).unwrap()
    };
    assert_eq!(length(40), Completion { length: 2 << 40, pieces: None });
    let far = length(80);
    assert!(far.length >= u64::MAX - 1 && far.pieces.is_none());
}

#[test]
fn completions_do_not_depend_on_caches_or_earlier_options() {
    let mut b = GrammarBuilder::new();
    let special = b.special(crate::ir::SpecialToken::Name("<|end|>".into()));
    let run = |byte| Expr::repeat(Expr::class(ByteSet::range(byte, byte)), 40, Some(5000));
    let long = Expr::seq([Expr::alt((b'a'..=b'z').map(run)), Expr::text("."), Expr::text("xyz")]);
    let inner = b.rule("inner", Expr::alt([Expr::Special(special), long]));
    let start = b.rule("start", Expr::seq([Expr::text("("), Expr::Ref(inner), Expr::text(")")]));
    let limits = Limits { parser_bytes: 25_000, ..Limits::default() };
    let engine = Engine::new(
        Arc::new(Vocabulary::toy(&[])),
        EngineOptions { limits, ..EngineOptions::default() },
    );
    let constraint = engine.compile(b.finish(start).unwrap()).unwrap();
    let mut matcher = constraint.matcher();
    matcher.advance(TokenId::from_raw(u32::from(b'('))).unwrap();
    let epoch = constraint.masks.lock().epoch;
    for round in 0..40 {
        for (special_length, length) in [(1, 2), (10, 11), (0, 2), (100, 45)] {
            let options = CompletionOptions { special_length, ..CompletionOptions::default() };
            let completion = matcher.shortest_completion(&options).unwrap();
            assert_eq!(completion.length, length, "round {round}");
            assert_eq!(completion.bytes().is_some(), length == 45);
        }
        let mut other = constraint.matcher();
        for byte in std::iter::once(b'(').chain([b'a' + round % 26; 30]) {
            other.advance(TokenId::from_raw(u32::from(byte))).unwrap();
        }
        assert_eq!(other.shortest_completion(&CompletionOptions::default()).unwrap().length, 15);
    }
    assert!(constraint.masks.lock().epoch > epoch, "the budget was never reached");
}

#[test]
fn a_search_ends_with_its_fuel() {
    let long = format!(r#"{{"const": "{}"}}"#, "a".repeat(100_000));
    let mut matcher = matcher(&long, "\"a");
    let fuel = matcher.shortest_completion(&CompletionOptions::default());
    assert!(
        matches!(fuel, Err(AdvanceError::Limit { what }) if what == ParserLimit::Fuel.what()),
        "{fuel:?}"
    );
    // The sequence goes on.
    matcher.advance(TokenId::from_raw(u32::from(b'a'))).unwrap();
}
