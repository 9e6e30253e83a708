//! Complexity of dispatch construction: linear in the bytes of the texts. Measured in counted
//! steps, not in time.

use super::trie::tests::count_build_steps;
use super::*;
use crate::compile::{CompileError, Compiled};
use crate::ids::{RuleId, SpecialId};
use crate::ir::{Expr, GrammarBuilder};
use crate::limits::Limits;

type Make = fn(usize) -> DispatchTexts;

fn texts(texts: impl IntoIterator<Item = Vec<u8>>) -> Vec<Trigger> {
    texts.into_iter().map(Trigger::Text).collect()
}

fn dispatch_texts(
    tags: Vec<Trigger>,
    stops: Vec<Trigger>,
    excludes: Vec<Vec<u8>>,
) -> DispatchTexts {
    DispatchTexts { tags, stops, excludes, after: AfterTag::Loop, end: DispatchEnd::Anywhere }
}

/// `len` bytes that hardly repeat.
fn noise(seed: usize, len: usize) -> Vec<u8> {
    let mut state = seed as u64 | 1;
    let byte = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b' ' + (state >> 40) as u8 % 90
    };
    (0..len).map(byte).collect()
}

fn periodic(period: &[u8], len: usize) -> Vec<u8> {
    period.iter().copied().cycle().take(len).collect()
}

/// Texts of about `n` bytes in total, by kind.
const KINDS: &[(&str, Make)] = &[
    ("one long stop", |n| dispatch_texts(vec![], texts([noise(1, n)]), vec![])),
    ("one letter and another", |n| {
        dispatch_texts(vec![], texts([[vec![b'a'; n - 1], vec![b'b']].concat()]), vec![])
    }),
    ("a period", |n| dispatch_texts(vec![], texts([periodic(b"abcab", n)]), vec![])),
    ("a long trigger", |n| dispatch_texts(texts([periodic(b"ab", n)]), vec![], vec![])),
    ("long shared beginnings", |n| {
        let shared = noise(2, n / 16);
        dispatch_texts(vec![], texts((0..16).map(|k| [&shared[..], &noise(k, 4)].concat())), vec![])
    }),
    ("every beginning of a text", |n| {
        // Lengths 1 to k have about n bytes in total.
        let most = (2.0 * n as f64).sqrt() as usize;
        dispatch_texts(vec![], texts((1..most).map(|len| vec![b'a'; len])), vec![])
    }),
    ("every beginning, within a long text", |n| {
        let most = (n as f64).sqrt() as usize;
        let tags =
            (1..most).map(|len| vec![b'a'; len]).chain([[vec![b'b'], vec![b'a'; n / 2]].concat()]);
        dispatch_texts(texts(tags), vec![], vec![])
    }),
    ("excludes that overlap", |n| {
        dispatch_texts(
            vec![],
            texts([b"stop".to_vec()]),
            (0..n / 32).map(|k| [noise(7, 28), noise(k, 4)].concat()).collect(),
        )
    }),
    ("excludes within excludes", |n| {
        dispatch_texts(
            vec![],
            vec![],
            vec![periodic(b"ab", n / 2), periodic(b"ba", n / 4), periodic(b"b", n / 4)],
        )
    }),
    ("names of many tools", |n| {
        let name = |k: usize| {
            format!("<function=a_tool_with_a_rather_long_name_that_others_share_{k:05}>")
                .into_bytes()
        };
        dispatch_texts(texts((0..n / 64).map(name)), texts([b"</s>".to_vec()]), vec![])
    }),
    ("bytes of all kinds", |n| {
        let pairs = (0..n / 2).map(|k| vec![(k % 256) as u8, (k / 256 % 256) as u8]);
        dispatch_texts(vec![], texts(pairs), vec![])
    }),
    ("leads of special tokens", |n| {
        let led = |k: usize| {
            Trigger::TextThenSpecial(vec![b'a'; 1 + k % 32], SpecialId::from_raw(k as u32 % 7))
        };
        dispatch_texts((0..n / 16).map(led).collect(), vec![], vec![])
    }),
];

/// Construction steps, states, and memory in bytes.
fn cost(dispatch_texts: &DispatchTexts) -> [usize; 3] {
    let (mut states, mut bytes) = (0, 0);
    let work = count_build_steps(|| {
        let bodies =
            vec![TagBodies { productive: true, nullable: false }; dispatch_texts.tags.len()];
        let automaton =
            DispatchAutomaton::new(dispatch_texts, MatchTable::new(dispatch_texts).into(), bodies);
        (states, bytes) = (automaton.len(), automaton.bytes());
    });
    [work, states, bytes]
}

#[test]
fn building_a_dispatch_is_linear_in_its_texts() {
    for (kind, make) in KINDS {
        let bytes = |dispatch_texts: &DispatchTexts| {
            let triggers = dispatch_texts.tags.iter().chain(&dispatch_texts.stops);
            let tags = triggers.map(|trigger| trigger.bytes().len().max(1));
            tags.chain(dispatch_texts.excludes.iter().map(Vec::len)).sum::<usize>()
        };
        let (small, large) = (make(8_000), make(16_000));
        let ratio = bytes(&large) as f64 / bytes(&small) as f64;
        for (less, more) in cost(&small).into_iter().zip(cost(&large)) {
            // At most a quarter more than proportional to the bytes.
            assert!(
                more as f64 <= less as f64 * ratio * 1.25 + 64.0,
                "{kind}: {less}, then {more}, at {ratio} the bytes"
            );
        }
        let [steps, states, _] = cost(&large);
        assert!(steps <= 16 * bytes(&large) + 1_000, "{kind}: {steps} steps");
        assert!(states <= 4 * bytes(&large) + 1_000, "{kind}: {states} states");
    }
}

#[test]
fn texts_are_bounded_before_anything_is_built() {
    let limits = Limits { dispatch_bytes: 1_000, ..Limits::default() };
    let compile = |stop: usize, excluded: usize| {
        let mut builder = GrammarBuilder::new();
        let body = builder.rule("body", Expr::text("."));
        // Tags with the same trigger count once.
        let tags = vec![(Trigger::Text(b"<t>".to_vec()), body); 500];
        let (stops, excludes) = (texts([noise(3, stop)]), vec![noise(4, excluded)]);
        let dispatch =
            Dispatch { tags, stops, excludes, after: AfterTag::End, end: DispatchEnd::AtStop };
        let start = builder.rule("text", Expr::Dispatch(Box::new(dispatch)));
        let grammar = builder.finish(start).unwrap();
        let mut result = Ok(());
        let steps = count_build_steps(|| result = Compiled::new(grammar, &limits).map(drop));
        (result, steps)
    };
    let (whole, steps) = compile(500, 497);
    assert!(whole.is_ok() && steps > 1_000);
    let (error, steps) = compile(50_000, 1);
    let what = "bytes of triggers, stops and excludes";
    assert_eq!(error, Err(CompileError::Limit { rule: "text".into(), what, limit: 1_000 }));
    assert_eq!(steps, 0);
    assert!(compile(500, 498).0.is_err());
}

/// The largest supported number of tools, with the longest names that OpenAI accepts, stays within
/// all limits.
#[test]
fn a_thousand_tools_with_long_names_fit_the_limits() {
    let mut builder = GrammarBuilder::new();
    let body = builder.rule("body", Expr::text("."));
    let name = |k: usize| {
        format!("<function={}>", String::from_utf8_lossy(&noise(k * 7 + 1, 64))).into_bytes()
    };
    let tags: Vec<(Trigger, RuleId)> = (0..1_024).map(|k| (Trigger::Text(name(k)), body)).collect();
    let (stops, excludes) = (texts([b"</s>".to_vec()]), vec![b"<|im_start|>".to_vec()]);
    let dispatch =
        Dispatch { tags, stops, excludes, after: AfterTag::Loop, end: DispatchEnd::Anywhere };
    assert!(dispatch.bytes() > 64 << 10);
    let start = builder.rule("text", Expr::Dispatch(Box::new(dispatch)));
    Compiled::new(builder.finish(start).unwrap(), &Limits::default()).unwrap();
}

/// The excludes begin with every byte value, so that no transition leads back to the root. Liveness
/// is then computed along the edges.
#[test]
fn free_text_that_can_only_reach_excludes_is_pruned() {
    // After `x`, every byte is excluded.
    let excludes = (0..=255u8)
        .map(|byte| vec![b'x', byte])
        .chain((0..=255u8).map(|byte| vec![byte, byte, b'!']));
    let mut dispatch_texts = dispatch_texts(vec![], texts([b"stop".to_vec()]), excludes.collect());
    dispatch_texts.end = DispatchEnd::AtStop;
    let automaton =
        DispatchAutomaton::new(&dispatch_texts, MatchTable::new(&dispatch_texts).into(), vec![]);
    let start = automaton.state_edges(DispatchStateId::START);
    let reads =
        |byte: u8| start.edges.iter().any(|edge| (edge.lo..=edge.hi).contains(&u32::from(byte)));
    assert!((0..=255).all(|byte| reads(byte) == (byte != b'x')));
    // Without anything that could end the dispatch, nothing is readable.
    dispatch_texts.stops = texts([b"xyz".to_vec()]);
    let automaton =
        DispatchAutomaton::new(&dispatch_texts, MatchTable::new(&dispatch_texts).into(), vec![]);
    assert!(
        !automaton.can_end(|_| true)
            && automaton.state_edges(DispatchStateId::START).edges.is_empty()
    );
}
