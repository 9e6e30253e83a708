//! Forced tokens of hand-written grammars. Random grammars are in `tests/`.

use super::*;
use crate::engine::{Engine, EngineOptions};
use crate::fsm::ByteSet;
use crate::ir::{Budget, BudgetPolicy, Expr, GrammarBuilder, SpecialToken};
use std::sync::Arc;

fn forced(extra: &[&[u8]], expr: Expr) -> (Vec<u8>, Vec<String>) {
    let vocab = Arc::new(Vocabulary::toy(extra));
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let mut b = GrammarBuilder::new();
    let start = b.rule("start", expr);
    let mut matcher = engine.compile(b.finish(start).unwrap()).unwrap().matcher();
    let tokens = matcher.forced_tokens(50);
    let text = |t: &TokenId| String::from_utf8(vocab.bytes(*t).unwrap().to_vec()).unwrap();
    (matcher.forced_bytes(50), tokens.iter().map(text).collect())
}

#[test]
fn a_last_token_that_could_become_longer_is_left_out() {
    let letters = || Expr::star(Expr::class(ByteSet::range(b'a', b'z')));
    let name = |then| Expr::seq([Expr::text("\"name\":"), then]);
    let extra: [&[u8]; 5] = [b"\"name", b"\":", b"\":\"", b"\":[", b"name\""];
    // `":"` is allowed, so `":` may not be taken; and nor may it where only `":[` is.
    let string = name(Expr::seq([Expr::alt([Expr::text("\""), Expr::text("'")]), letters()]));
    assert_eq!(forced(&extra, string), (b"\"name\":".to_vec(), vec!["\"name".to_owned()]));
    // No token goes on with a digit.
    let number = name(Expr::class(ByteSet::range(b'0', b'9')));
    assert_eq!(forced(&extra, number).1, ["\"name", "\":"]);
    // What follows is forced too.
    let array = name(Expr::seq([Expr::text("["), Expr::class(ByteSet::from_bytes(b"12"))]));
    assert_eq!(forced(&extra, array).1, ["\"name", "\":["]);
    // The text may end there.
    assert_eq!(forced(&extra, name(Expr::optional(Expr::text("{")))).1, ["\"name", "\":"]);
}

#[test]
fn text_inside_a_budget_of_tokens_is_not_forced() {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[b"abc"])), EngineOptions::default());
    let mut b = GrammarBuilder::new();
    let name = b.rule("name", Expr::text("abcdef"));
    let budget = Budget { tokens: Some(1), chars: None, on_exhausted: BudgetPolicy::Cut };
    b.attributes(name).budget = Some(budget);
    let start = b.rule("start", Expr::seq([Expr::text("xy"), Expr::Ref(name), Expr::text(";")]));
    let mut matcher = engine.compile(b.finish(start).unwrap()).unwrap().matcher();
    assert_eq!(matcher.forced_bytes(50), b"xy");
    for token in [u32::from(b'x'), u32::from(b'y'), 257] {
        matcher.advance(TokenId::from_raw(token)).unwrap();
    }
    // The budget is spent after one token, so the rest of the name may not come.
    assert_eq!(matcher.forced_bytes(50), b";");
    assert!(!matcher.allows(TokenId::from_raw(u32::from(b'd'))));
}

#[test]
fn tokens_of_a_tokenizer_are_checked_and_may_be_extended_anywhere() {
    let extra: [&[u8]; 3] = [b"ab", b"cd", b"bcdx"];
    let vocab = Arc::new(Vocabulary::toy(&extra));
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let matcher = |then: &str| {
        let mut b = GrammarBuilder::new();
        let rest = Expr::seq([Expr::class(ByteSet::from_bytes(then.as_bytes())), Expr::text("!")]);
        let start = b.rule("start", Expr::seq([Expr::text("zabcd"), rest]));
        engine.compile(b.finish(start).unwrap()).unwrap().matcher()
    };
    let ids = |tokens: &[&str]| {
        tokens.iter().map(|t| vocab.find(t.as_bytes()).unwrap()).collect::<Vec<_>>()
    };
    // `bcdx` could begin inside of `ab`.
    let mut by_two =
        |bytes: &[u8]| ids(&["z", "ab", "cd"])[..if bytes == b"zabcd" { 3 } else { 0 }].to_vec();
    assert_eq!(matcher("xy").forced_tokens_with(9, &mut by_two), ids(&["z"]));
    assert_eq!(matcher("xy").forced_tokens(9), ids(&["z", "ab", "cd"]));
    assert_eq!(matcher("pq").forced_tokens_with(9, &mut by_two), ids(&["z", "ab", "cd"]));
    // Tokens that do not spell the bytes are not used.
    let mut wrong = |_: &[u8]| {
        vec![ids(&["z"])[0], TokenId::from_raw(256), TokenId::from_raw(9_999), ids(&["ab"])[0]]
    };
    assert_eq!(matcher("pq").forced_tokens_with(9, &mut wrong), ids(&["z"]));
    assert_eq!(matcher("pq").forced_tokens_with(9, &mut |_| Vec::new()), []);
}

#[test]
fn a_tokenizer_is_not_called_where_no_token_is_final() {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[b"abx"])), EngineOptions::default());
    let mut b = GrammarBuilder::new();
    let next = Expr::class(ByteSet::from_bytes(b"xy"));
    let start = b.rule("start", Expr::seq([Expr::text("ab"), next]));
    let mut matcher = engine.compile(b.finish(start).unwrap()).unwrap().matcher();
    assert_eq!(matcher.forced_bytes(9), b"ab");
    assert_eq!(matcher.forced_tokens_with(9, &mut |_| unreachable!()), []);
}

#[test]
fn forced_text_contains_special_tokens_and_obeys_its_bound() {
    let mut b = GrammarBuilder::new();
    let special = b.special(SpecialToken::Name("<|call|>".into()));
    let many = Expr::repeat(Expr::text("ab"), 1_000_000, Some(1_000_000));
    let start = b.rule("start", Expr::seq([Expr::text("go"), Expr::Special(special), many]));
    let mut vocab = Vocabulary::builder(300);
    for byte in 0..=255u8 {
        vocab.token(u32::from(byte), &[byte]);
    }
    vocab
        .special(256, "<|end|>")
        .special(257, "<|call|>")
        .stop(256)
        .token(258, b"go")
        .token(259, b"gone");
    let engine = Engine::new(Arc::new(vocab.build().unwrap()), EngineOptions::default());
    let mut matcher = engine.compile(b.finish(start).unwrap()).unwrap().matcher();
    let [a, b, call, go] = [97, 98, 257, 258].map(TokenId::from_raw);
    assert_eq!(
        matcher.forced(6),
        [Piece::Bytes(b"go".to_vec()), Piece::Special(call), Piece::Bytes(b"aba".to_vec())]
    );
    assert_eq!(matcher.forced_bytes(6), b"go");
    assert_eq!(matcher.forced_tokens(6), [go, call, a, b, a]);
    assert_eq!(matcher.forced_tokens(2), [go]);
    assert_eq!(matcher.forced(0), []);
    assert_eq!(matcher.forced_tokens(3_000).len(), 2 + 2_997);
}
