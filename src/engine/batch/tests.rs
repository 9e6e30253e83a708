//! Batches compared with one matcher at a time, on a separate engine so that no cache is shared.

use super::*;
use crate::engine::preparation::PrepareBudget;
use crate::engine::{Constraint, EngineOptions, MaskTuning};
use crate::front::ebnf::EbnfOptions;
use crate::front::json_schema::SchemaOptions;
use crate::ids::TokenId;
use crate::ir::{Expr, GrammarBuilder};
use crate::limits::Limits;
use std::sync::atomic::Ordering;

const SCHEMAS: [&str; 6] = [
    r#"{"type": "boolean"}"#,
    r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"]}"#,
    r#"{"type": "array", "items": {"enum": ["x", "xy", "y"]}, "maxItems": 30}"#,
    r#"{"type": "string", "maxLength": 40}"#,
    r#"{"type": "string", "pattern": "^[ab]{20,90}$"}"#,
    r#"{}"#,
];
const TEXTS: [&str; 6] = [
    "true",
    r#"{"a": 12, "b": "why"}"#,
    r#"["x", "xy", "y", "x"]"#,
    r#""some text, not much""#,
    r#""aabbaabbaabbaabbaabbaabb""#,
    r#"[1, {"k": [null, "v"]}, true]"#,
];
const EXTRA: [&[u8]; 10] =
    [b"tr", b"\"x", b"\", \"", b"abab", b"\"}", b": ", b"{\"a\"", b"12", b"\"y\"", b"text"];

fn engine(threads: usize, direct_walk: usize) -> Engine {
    let options = EngineOptions {
        batch_threads: threads,
        tuning: MaskTuning::with_direct_walk(direct_walk),
        ..EngineOptions::default()
    };
    Engine::new(Arc::new(Vocabulary::toy(&EXTRA)), options)
}

fn constraints(engine: &Engine) -> Vec<Constraint> {
    SCHEMAS
        .iter()
        .map(|s| engine.compile_json_schema(s, &SchemaOptions::default()).unwrap())
        .collect()
}

fn byte(byte: u8) -> TokenId {
    TokenId::from_raw(u32::from(byte))
}

/// Matcher `i` has taken `i / 6` bytes of the text of schema `i % 6`, and a stop token where the
/// text is complete.
fn matchers(constraints: &[Constraint], count: usize) -> Vec<Matcher> {
    let matcher = |i: usize| {
        let (which, taken) = (i % SCHEMAS.len(), i / SCHEMAS.len());
        let mut matcher = constraints[which].matcher();
        let text = TEXTS[which].as_bytes();
        text.iter().take(taken).for_each(|&b| matcher.advance(byte(b)).unwrap());
        if taken > text.len() {
            matcher.advance(TokenId::from_raw(256)).unwrap();
        }
        matcher
    };
    (0..count).map(matcher).collect()
}

#[test]
fn batches_agree_with_single_matchers() {
    for (threads, direct_walk) in [(1, 1024), (2, 1024), (4, 0)] {
        let (batched, single) = (engine(threads, direct_walk), engine(1, direct_walk));
        let words = batched.vocab().mask_words();
        let mut rows = matchers(&constraints(&batched), 180);
        let mut alone = matchers(&constraints(&single), 180);
        // The second round finds all masks in the cache.
        for round in 0..2 {
            let mut masks = vec![7; rows.len() * words];
            let status = batched.fill_masks(&mut rows, &mut masks).unwrap();
            let mut unique = vec![9; 3];
            let distinct = batched.fill_masks_unique(&mut rows, &mut unique).unwrap();
            assert_eq!(unique.len(), distinct.masks * words);
            let mut seen = std::collections::HashSet::new();
            for (i, matcher) in alone.iter_mut().enumerate() {
                let mut want = vec![0; words];
                matcher.fill_mask(&mut want);
                assert_eq!(
                    masks[i * words..(i + 1) * words],
                    want,
                    "row {i}, round {round}, {threads} threads"
                );
                let finished = matcher.is_terminated();
                assert_eq!(
                    status[i],
                    if finished { RowStatus::Finished } else { RowStatus::Constrained }
                );
                let (same, number) = distinct.rows[i];
                let number = number.unwrap() as usize;
                assert_eq!(
                    (same, &unique[number * words..(number + 1) * words]),
                    (status[i], &want[..])
                );
                seen.insert(number);
            }
            assert_eq!(seen.len(), distinct.masks);
            assert!(distinct.masks < 120, "{} masks for 180 rows", distinct.masks);
        }
        let stats = batched.stats();
        assert_eq!((stats.batches, stats.batch_rows, stats.batch_rows_failed), (4, 720, 0));
        assert!(stats.batch_rows_built <= 180 && stats.batch_rows_repeated > 200, "{stats:?}");
    }
}

#[test]
fn free_and_limited_rows_have_their_status() {
    // A grammar that allows any text at any time; the vocabulary's special token is its stop token.
    let engine = engine(2, 1024);
    let mut b = GrammarBuilder::new();
    let start = b.rule("start", Expr::star(Expr::class(crate::fsm::ByteSet::ALL)));
    let anything = engine.compile(b.finish(start).unwrap()).unwrap();
    let limits = Limits { parser_bytes: 1, ..Limits::default() };
    let narrow =
        Engine::new(engine.vocab().clone(), EngineOptions { limits, ..EngineOptions::default() });
    let out_of_memory = &constraints(&narrow)[1];
    let mut rows = [
        Some(anything.matcher()),
        None,
        Some(out_of_memory.matcher()),
        Some(constraints(&engine)[0].matcher()),
    ];
    let words = engine.vocab().mask_words();
    let mut masks = vec![0; 4 * words];
    let status = engine.fill_masks(rows.iter_mut().map(Option::as_mut), &mut masks).unwrap();
    assert_eq!(
        status,
        [RowStatus::Free, RowStatus::Free, RowStatus::Limit, RowStatus::Constrained]
    );
    assert_eq!(masks[..words], masks[words..2 * words]);
    let ids = |row: usize| {
        (0..words * 32)
            .filter(|id| masks[row * words + id / 32] >> (id % 32) & 1 == 1)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(0), (0..engine.vocab().width()).collect::<Vec<_>>());
    assert_eq!(ids(2), [256]);
    assert!(rows[2].as_ref().unwrap().limit().is_some());
    let mut unique = Vec::new();
    let distinct =
        engine.fill_masks_unique(rows.iter_mut().map(Option::as_mut), &mut unique).unwrap();
    assert_eq!(distinct.rows.iter().map(|r| r.0).collect::<Vec<_>>(), status);
    assert!(
        distinct.rows[0].1.is_none()
            && distinct.rows[1].1.is_none()
            && distinct.rows[2].1 != distinct.rows[3].1
    );
}

#[test]
fn a_prepared_constraint_whose_start_reached_a_limit_has_no_empty_row() {
    let limits = Limits { config_items: 5, ..Limits::default() };
    let vocab = Arc::new(Vocabulary::toy(&EXTRA));
    let engine = Engine::new(vocab, EngineOptions { limits, ..EngineOptions::default() });
    let names: Vec<String> = ('a'..='z').map(|letter| format!("r-{letter}")).collect();
    let rule = |letter| format!("r-{letter} ::= \"{letter}\" r-{letter} \"!\" | \"{letter}.\"\n");
    let rules: String = ('a'..='z').map(rule).collect();
    let text = format!("root ::= {}\n{rules}", names.join(" | "));
    let constraint = engine.compile_ebnf(&text, &EbnfOptions::default()).unwrap();
    constraint.prepare(PrepareBudget::default()).wait();
    let mut matcher = constraint.matcher();
    let mut row = vec![0; engine.vocab().mask_words()];
    let status = engine.fill_masks([Some(&mut matcher)], &mut row).unwrap();
    assert_eq!(status, [RowStatus::Limit]);
    assert!(row.iter().any(|&word| word != 0));
}

#[test]
fn a_panic_costs_one_row_and_nothing_else() {
    for threads in [1, 3] {
        let engine = engine(threads, 1024);
        let constraints = constraints(&engine);
        let mut rows = matchers(&constraints, 60);
        let words = engine.vocab().mask_words();
        let mut masks = vec![0; rows.len() * words];
        engine.runtime.counters.fault_countdowns[0].store(20, Ordering::Relaxed);
        let status = engine.fill_masks(&mut rows, &mut masks).unwrap();
        let failed: Vec<usize> = (0..60).filter(|&i| status[i] == RowStatus::Failed).collect();
        assert_eq!((failed.len(), engine.stats().batch_rows_failed), (1, 1));
        let mut want = vec![0; words];
        write_stop_tokens(engine.vocab(), &mut want);
        assert_eq!(masks[failed[0] * words..][..words], want);
        // The failed matcher stays usable, and so do the others of its constraint.
        let again = engine.fill_masks(&mut rows, &mut masks).unwrap();
        let single = super::tests::engine(1, 1024);
        for (i, alone) in matchers(&super::tests::constraints(&single), 60).iter_mut().enumerate() {
            alone.fill_mask(&mut want);
            assert_eq!(masks[i * words..][..words], want);
            assert_ne!(again[i], RowStatus::Failed);
        }
    }
}

#[test]
fn concurrent_batches_agree_with_single_matchers() {
    let engine = engine(2, 0);
    let constraints = constraints(&engine);
    let words = engine.vocab().mask_words();
    std::thread::scope(|scope| {
        for offset in 0..4 {
            let (engine, constraints) = (&engine, &constraints);
            scope.spawn(move || {
                for round in 0..6 {
                    let mut rows = matchers(constraints, 100 + 10 * offset + round);
                    let mut masks = vec![0; rows.len() * words];
                    let status = engine.fill_masks(&mut rows, &mut masks).unwrap();
                    assert!(
                        status
                            .iter()
                            .all(|s| matches!(s, RowStatus::Constrained | RowStatus::Finished))
                    );
                    let mut want = vec![0; words];
                    for (i, matcher) in rows.iter_mut().enumerate() {
                        matcher.fill_mask(&mut want);
                        assert_eq!(masks[i * words..][..words], want);
                    }
                }
            });
        }
    });
}

#[test]
fn mismatched_buffers_and_vocabularies_are_refused() {
    let engine = engine(1, 1024);
    let mut rows = matchers(&constraints(&engine), 2);
    let words = engine.vocab().mask_words();
    let got = engine.fill_masks(&mut rows, &mut vec![0; words]);
    assert_eq!(got, Err(BatchError::Length { rows: 2, words, got: words }));
    let other = Engine::new(Arc::new(Vocabulary::toy(&[b"zz"])), EngineOptions::default());
    rows[1] = constraints(&other)[0].matcher();
    assert_eq!(
        engine.fill_masks(&mut rows, &mut vec![0; 2 * words]),
        Err(BatchError::OtherVocabulary { row: 1 })
    );
    assert_eq!(engine.fill_masks(&mut Vec::<Matcher>::new(), &mut []), Ok(Vec::new()));
}
