//! Masks agree with single steps, in configurations whose masks are made of those of others: by
//! relaxation and subtraction, or from the pool.

use super::super::*;
use crate::front::ebnf::EbnfOptions;
use crate::front::json_schema::SchemaOptions;
use crate::front::lark::LarkOptions;
use crate::limits::Limits;

/// An engine without direct walks, so that masks come from entries.
fn engine(words: &[&[u8]], limits: Limits) -> Engine {
    let tuning = MaskTuning::with_direct_walk(0);
    let options =
        EngineOptions { tuning, grammar_cache_bytes: 0, limits, ..EngineOptions::default() };
    Engine::new(Arc::new(Vocabulary::toy(words)), options)
}

/// After `prefix`, the mask allows exactly the tokens that a step takes. Returns the ids of the
/// words of the vocabulary that it allows.
fn allowed_words(constraint: &Constraint, prefix: &str) -> Vec<u32> {
    let mut matcher = constraint.matcher();
    for byte in prefix.bytes() {
        matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
    }
    let mut mask = vec![0; matcher.vocab().mask_words()];
    matcher.fill_mask(&mut mask);
    let mut words = Vec::new();
    for id in 0..matcher.vocab().width() as u32 {
        let in_mask = mask[id as usize / 32] >> (id % 32) & 1 == 1;
        let mut stepped = constraint.matcher();
        prefix.bytes().for_each(|b| stepped.advance(TokenId::from_raw(b.into())).unwrap());
        let is_taken = stepped.advance(TokenId::from_raw(id)).is_ok();
        assert_eq!(in_mask, is_taken, "token {id} after {prefix:?}");
        if in_mask && id > 256 {
            words.push(id);
        }
    }
    words
}

#[test]
fn budgets_of_other_grammars_do_not_count() {
    let engine = engine(&[b"Xab", b"Xabc", b"Xabcd"], Limits::default());
    let budgeted = |attributes: &str| {
        let text = format!("root ::= [^X]* \"X\" b\nb[{attributes}] ::= [a-z]*\n");
        engine.compile_ebnf(&text, &EbnfOptions::default()).unwrap()
    };
    let allowed = ["max_chars=2", "max_chars=3", "max_chars=4", "max_tokens=1", "max_chars=2"]
        .map(|budget| budgeted(&format!("{budget}, on_exhausted=cut")))
        .map(|constraint| allowed_words(&constraint, "my ").len());
    assert_eq!(allowed, [1, 2, 3, 3, 1]);
}

#[test]
fn values_without_a_distinct_continuation_are_dead_ends_beside_white_space_bounds() {
    let engine = engine(&[b"[[7,7", b"[[7,8", b" [7,7", b" [7,8"], Limits::default());
    let schema = r#"{"type":"array","items":{"type":"array",
        "items":{"type":"integer","minimum":1,"maximum":50},"uniqueItems":true}}"#;
    let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
    assert_eq!(allowed_words(&constraint, ""), [258]);
    assert_eq!(allowed_words(&constraint, "["), [260]);
}

#[test]
fn tokens_that_are_special_here_stay_in_masks_although_their_text_is_rejected() {
    let space: &[u8] = &[b' '; 32];
    let letters: &[u8] = &[b'a'; 24];
    let engine = engine(&[space, letters, b"\"a\":"], Limits::default());
    let ebnf = |text: &str| engine.compile_ebnf(text, &EbnfOptions::default()).unwrap();
    assert_eq!(allowed_words(&ebnf("root ::= [ ]{0,20} \"x\" | <[257]>\n"), ""), [257]);
    let budget = "root ::= a | <[258]>\na[max_chars=20, on_exhausted=cut] ::= [a-z]+\n";
    assert_eq!(allowed_words(&ebnf(budget), ""), [258]);
    let keys = "start: %json {\"type\":\"object\"} | <[*]>{1,30}\n";
    let keys = engine.compile_lark(keys, &LarkOptions::default()).unwrap();
    assert_eq!(allowed_words(&keys, "{\"a\":1,"), [257, 258, 259]);
}

/// Also within a budget, where a walk of the whole vocabulary builds the mask.
#[test]
fn special_tokens_that_repeat_an_element_are_in_no_mask() {
    let engine = engine(&[b"x"], Limits::default());
    for budget in ["", ", max_chars=50", ", max_tokens=50", ", max_chars=50, on_exhausted=cut"] {
        let text = format!(
            "root ::= s\ns[scope{budget}] ::= \"[\" e (\",\" e)* \"]\"\ne[element] ::= <[257]> | \".\"\n"
        );
        let mut matcher = engine.compile_ebnf(&text, &EbnfOptions::default()).unwrap().matcher();
        for id in [u32::from(b'['), 257, u32::from(b',')] {
            matcher.advance(TokenId::from_raw(id)).unwrap();
        }
        let allowed: Vec<TokenId> = (0..matcher.vocab().width())
            .map(TokenId::new)
            .filter(|&id| matcher.allows(id))
            .collect();
        let mut row = vec![0u32; matcher.vocab().mask_words()];
        matcher.fill_mask(&mut row);
        let masked = (0..matcher.vocab().width())
            .filter(|id| row[id / 32] >> (id % 32) & 1 == 1)
            .map(TokenId::new)
            .collect::<Vec<_>>();
        assert_eq!(masked, allowed, "{budget}");
        assert_eq!(allowed, [TokenId::from_raw(b'.'.into())], "{budget}");
        // What follows a budget of tokens depends on how the text is cut.
        let forced: &[u8] = if budget.contains("max_tokens") { b"" } else { b".]" };
        assert_eq!(matcher.forced_bytes(8), forced, "{budget}");
    }
}

#[test]
fn rules_that_no_token_reaches_are_described_within_a_bound() {
    let engine = engine(&[], Limits::default().with_mask_fuel(u64::MAX));
    let spent = |rules: usize| {
        let letters = "(\"a\" | \"b\") ".repeat(7);
        let rule = |k| format!("r{k} ::= \"{k}\" (\"a\" | \"b\")* \"a\" {letters} \"{k}\"\n");
        let names: Vec<String> = (0..rules).map(|k| format!("r{k}")).collect();
        let rules: String = (0..rules).map(rule).collect();
        let text = format!("root ::= [^X]* \"XYZ\" ({})\n{rules}", names.join(" | "));
        let mut matcher = engine.compile_ebnf(&text, &EbnfOptions::default()).unwrap().matcher();
        matcher.advance(TokenId::from_raw(b'a'.into())).unwrap();
        let mut mask = vec![0; matcher.vocab().mask_words()];
        crate::fuel::measure(|| matcher.fill_mask(&mut mask)).1
    };
    let (some, many) = (spent(100), spent(300));
    assert!(many < some + some / 4, "{some} {many}");
}

/// A budget that must be finished makes items depend on each other while it is open or may begin,
/// and nowhere else in its grammar.
#[test]
fn budgets_that_are_over_cost_later_masks_nothing() {
    let words: Vec<String> = (0..20_000u32).map(|i| format!("{:x}", i * 7919)).collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let engine = engine(&words, Limits::default().with_mask_fuel(u64::MAX));
    let list = r#"{"type":"array","items":{"type":"string"},"uniqueItems":true}"#;
    let spent = |budget: &str| {
        let text = format!("start: text list\ntext{budget}: /[a-z]*/\nlist: %json {list}\n");
        let constraint = engine.compile_lark(&text, &LarkOptions::default()).unwrap();
        let mut matcher = constraint.matcher();
        let mut mask = vec![0; matcher.vocab().mask_words()];
        let mut spent = 0;
        for byte in b"ab[\"a\",\"bcd\", \"" {
            matcher.advance(TokenId::from_raw((*byte).into())).unwrap();
            let (_, fuel) = crate::fuel::measure(|| matcher.fill_mask(&mut mask));
            spent += if matcher.tokens().len() > 2 { fuel } else { 0 };
        }
        spent
    };
    let (with, without) = (spent("[max_chars=50]"), spent(""));
    assert!(with < 2 * without, "{with} {without}");
}
