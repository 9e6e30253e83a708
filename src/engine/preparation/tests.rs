//! Preparation: masks made in the background are used and correct, and nothing waits for ever.

use std::sync::atomic::Ordering;

use super::*;
use crate::engine::{Engine, EngineOptions, MaskTuning, RowStatus};
use crate::front::json_schema::SchemaOptions;
use crate::fsm::ByteSet;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, GrammarBuilder, Trigger};
use crate::limits::Limits;
use crate::vocab::Vocabulary;

const SCHEMA: &str = r#"{"type": "object",
    "properties": {"title": {"type": "string", "maxLength": 90}, "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["alpha", "beta", "gamma"]}}},
    "required": ["title", "tags"]}"#;
const TEXT: &str =
    r#"{"title": "some words", "n": 12, "tags": ["beta", "gamma"], "more": [null, {"x": 1.5}]}"#;

fn engine(options: EngineOptions) -> Engine {
    let words: Vec<String> = (0..2_000u32)
        .map(|i| format!("{}{}", ["w", "\"", " x", "ta"][i as usize % 4], i))
        .collect();
    let mut extra: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    extra.extend([
        b"\"tit".as_slice(),
        b"le\": \"",
        b"some",
        b" words",
        b"\", \"",
        b"\"tags\": [",
        b"eta\"",
        b"12, ",
    ]);
    Engine::new(Arc::new(Vocabulary::toy(&extra)), options)
}

fn constraint(engine: &Engine) -> Constraint {
    engine.compile_json_schema(SCHEMA, &SchemaOptions::default()).unwrap()
}

fn bytes(text: &str) -> Vec<TokenId> {
    text.bytes().map(|b| TokenId::from_raw(u32::from(b))).collect()
}

/// The masks after each prefix of [`TEXT`]; `before` runs before each.
fn masks(constraint: &Constraint, mut before: impl FnMut(&Matcher)) -> Vec<Vec<u32>> {
    let mut matcher = constraint.matcher();
    let row = |matcher: &mut Matcher| {
        let mut row = vec![0; constraint.vocab().mask_words()];
        matcher.fill_mask(&mut row);
        row
    };
    let mut out = Vec::new();
    for token in bytes(TEXT) {
        before(&matcher);
        out.push(row(&mut matcher));
        matcher.advance(token).unwrap();
    }
    out.push(row(&mut matcher));
    out
}

/// Matchers track member names, so the transitions along prepared names are cached for them as
/// well.
#[test]
fn prepared_paths_include_the_names_of_members() {
    let engine = engine(EngineOptions::default());
    let constraint = constraint(&engine);
    constraint.prepare(PrepareBudget::default()).wait();
    let configs = || constraint.masks.lock().parser.store().configs();
    let token = |text: &str| {
        let of = |id: &TokenId| engine.vocab().bytes(*id) == Some(text.as_bytes());
        (0..engine.vocab().width()).map(TokenId::new).find(of).unwrap()
    };
    let before = configs();
    let mut matcher = constraint.matcher();
    for text in ["{", "\"tit", "le\": \""] {
        matcher.advance(token(text)).unwrap();
    }
    assert_eq!(configs(), before);
}

/// Where values or keys are compared, each byte leads to a configuration of its own.
#[test]
fn prepared_masks_of_compared_values_are_right() {
    let cases: [(&str, &[&[u8]], &[&str]); 4] = [
        (
            r#"{"type": "array", "uniqueItems": true, "items": {"type": "string", "maxLength": 1}}"#,
            &[],
            &["[\"!\",\"", "[\" \",\"", "[\"a\",\""],
        ),
        (
            r#"{"type": "object", "propertyNames": {"maxLength": 2}}"#,
            &[b"\"a\":"],
            &["{\"a\":1,", "{\"a\":1,\"", "{\"b\":1,\"a"],
        ),
        (
            r#"{"patternProperties": {"^.$": {"type": "number"}}, "additionalProperties": false}"#,
            &[b"\",", b"\"a\":1"],
            &["{\",\":1,\"", "{\"a\":1,"],
        ),
        (
            r#"{"type": "array", "uniqueItems": true, "items": {"enum": ["ab", "ac", "b"]}}"#,
            &[b"\"a", b"ab\""],
            &["[\"ab\",\"", "[\"ab\",\"a", "[\"ac\",\""],
        ),
    ];
    for (schema, extra, prefixes) in cases {
        let constraint = || {
            let engine = Engine::new(Arc::new(Vocabulary::toy(extra)), EngineOptions::default());
            engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap()
        };
        let (plain, prepared) = (constraint(), constraint());
        prepared.prepare(PrepareBudget::default()).wait();
        for prefix in prefixes {
            let [plain, prepared] = [&plain, &prepared].map(|constraint| {
                let mut matcher = constraint.matcher();
                bytes(prefix).into_iter().for_each(|token| matcher.advance(token).unwrap());
                let mut row = vec![0; constraint.vocab().mask_words()];
                matcher.fill_mask(&mut row);
                row
            });
            assert_eq!(prepared, plain, "{prefix} of {schema}");
        }
    }
}

#[test]
fn prepared_masks_are_used() {
    let plain = engine(EngineOptions { background_threads: 0, ..EngineOptions::default() });
    let want = masks(&constraint(&plain), |_| {});
    for direct_walk in [0, 1024] {
        let engine = engine(EngineOptions {
            tuning: MaskTuning::with_direct_walk(direct_walk),
            ..EngineOptions::default()
        });
        let constraint = constraint(&engine);
        let report = constraint.prepare(PrepareBudget::default()).wait();
        assert!(
            report.built >= 30 && report.candidates == report.built + report.cached,
            "{report:?}"
        );
        engine.runtime.background.settle();
        assert_eq!(engine.stats().background_masks_built, report.built as u64);
        let misses = engine.pool_stats().misses;
        let mut first = vec![0; want[0].len()];
        constraint.matcher().fill_mask(&mut first);
        assert_eq!((engine.stats().background_masks_used, engine.pool_stats().misses), (1, misses));
        assert_eq!(masks(&constraint, |_| {}), want);
        assert!(engine.stats().background_masks_used > 1, "{:?}", engine.stats());
        // Cached masks are not made again.
        let again =
            constraint.prepare(PrepareBudget { candidates: 20, ..PrepareBudget::default() }).wait();
        assert_eq!((again.candidates, again.built, again.cached), (20, 0, 20));
        assert_eq!(engine.stats().candidates_explored, (report.candidates + 20) as u64);
        let again =
            constraint.prepare(PrepareBudget { candidates: 20, ..PrepareBudget::default() }).wait();
        assert_eq!((again.candidates, again.built, again.cached), (20, 0, 20));
        assert_eq!(
            engine.stats().candidates_explored,
            (report.candidates + 20) as u64,
            "the second call explores nothing"
        );
    }
}

#[test]
fn prefetched_masks_are_used() {
    let engine = engine(EngineOptions {
        tuning: MaskTuning::with_direct_walk(0),
        ..EngineOptions::default()
    });
    let plain =
        super::tests::engine(EngineOptions { background_threads: 0, ..EngineOptions::default() });
    let constraint = constraint(&engine);
    let text = bytes(TEXT);
    let prefetch = |matcher: &Matcher| {
        let token = text[matcher.tokens().len()];
        assert!(matcher.prefetch(&[TokenId::from_raw(0), token, token]));
        engine.runtime.background.settle();
    };
    let got = masks(&constraint, prefetch);
    assert_eq!(got, masks(&super::tests::constraint(&plain), |_| {}));
    let stats = engine.stats();
    assert_eq!(
        (stats.prefetches as usize, stats.background_masks_discarded, stats.background_panics),
        (text.len(), 0, 0)
    );
    // Every mask but the first was made in the background, and all of those were used.
    assert!(
        stats.background_masks_built > 20
            && stats.background_masks_used == stats.background_masks_built,
        "{stats:?}"
    );
    assert!(stats.background_masks_cached as usize >= text.len(), "{stats:?}");
}

#[test]
fn masks_do_not_depend_on_concurrent_background_work() {
    let plain = engine(EngineOptions { background_threads: 0, ..EngineOptions::default() });
    let want = masks(&constraint(&plain), |_| {});
    // With little memory, caches are emptied while others use them.
    for parser_bytes in [Limits::default().parser_bytes, 40_000] {
        let limits = Limits { parser_bytes, mask_bytes: 20_000, ..Limits::default() };
        let engine = engine(EngineOptions {
            limits,
            background_threads: 3,
            batch_threads: 2,
            ..EngineOptions::default()
        });
        let constraint = constraint(&engine);
        let prepared = constraint.prepare(PrepareBudget::default());
        std::thread::scope(|scope| {
            for seed in 0..3usize {
                let (constraint, want, engine) = (&constraint, &want, &engine);
                scope.spawn(move || {
                    let width = constraint.vocab().width();
                    let likely = |m: &Matcher| -> Vec<TokenId> {
                        let at = m.tokens().len() * 37 + seed;
                        (0..4)
                            .map(|i| TokenId::new((at + i * 911) % width))
                            .chain(bytes("{}[]\"\\,x1"))
                            .collect()
                    };
                    let got = masks(constraint, |m| {
                        m.prefetch(&likely(m));
                        let mut other = m.clone();
                        let mut row = vec![0; constraint.vocab().mask_words()];
                        let status =
                            engine.fill_masks(std::iter::once(&mut other), &mut row).unwrap();
                        assert!(matches!(status[0], RowStatus::Constrained));
                    });
                    assert_eq!(&got, want);
                });
            }
        });
        prepared.wait();
        assert_eq!(engine.stats().background_panics, 0);
        assert_eq!(
            constraint.masks.lock().epoch > 0,
            parser_bytes < Limits::default().parser_bytes
        );
    }
}

#[test]
fn a_background_panic_costs_its_own_job_only() {
    let engine = engine(EngineOptions {
        tuning: MaskTuning::with_direct_walk(0),
        ..EngineOptions::default()
    });
    let constraint = constraint(&engine);
    engine.runtime.counters.fault_countdowns[1].store(3, Ordering::Relaxed);
    let report = constraint.prepare(PrepareBudget::default()).wait();
    assert_eq!(report.built, 2);
    engine.runtime.background.settle();
    assert_eq!(engine.stats().background_panics, 1);
    let plain =
        super::tests::engine(EngineOptions { background_threads: 0, ..EngineOptions::default() });
    assert_eq!(masks(&constraint, |_| {}), masks(&super::tests::constraint(&plain), |_| {}));
    assert!(constraint.prepare(PrepareBudget::default()).wait().built > 0);
}

#[test]
fn no_handle_waits_for_ever() {
    // An engine without background threads.
    let none = engine(EngineOptions { background_threads: 0, ..EngineOptions::default() });
    let idle = constraint(&none);
    assert_eq!(idle.prepare(PrepareBudget::default()).wait(), PrepareReport::default());
    assert!(!idle.matcher().prefetch(&bytes("{")));
    // The engine is dropped before the work is done.
    let engine = engine(EngineOptions::default());
    let handles: Vec<Prepared> = (0..20)
        .map(|_| {
            constraint(&engine).prepare(PrepareBudget {
                masks: 10_000,
                steps: 1_000_000,
                candidates: 10_000,
            })
        })
        .collect();
    let last = constraint(&engine);
    drop(engine);
    assert!(last.matcher().prefetch(&bytes("{")));
    drop(last);
    for handle in &handles {
        handle.wait();
        assert!(handle.is_done());
    }
}

#[test]
fn a_preparation_lets_prefetches_go_first() {
    let options = EngineOptions { background_threads: 0, ..EngineOptions::default() };
    let engine = engine(options.with_grammar_cache_bytes(0));
    // By the number of waiting prefetches: the most candidates that a slice explores.
    for (waiting, most) in [(0, 8), (1, 1)] {
        let constraint = constraint(&engine);
        let signal = SliceSignal::with_prefetches(waiting);
        let done = Arc::new((Mutex::new(None), Condvar::new()));
        let report = ReportOnDrop { done: done.clone(), report: PrepareReport::default() };
        let mut preparation = Preparation::new(&constraint, PrepareBudget::default(), report);
        let (mut slices, mut before) = (0, 1.0);
        while let Some(likelihood) = preparation.run_slice(&signal) {
            assert!(likelihood > 0.0 && (slices > 0 || likelihood <= before));
            (slices, before) = (slices + 1, likelihood);
        }
        drop(preparation);
        let explored = done.0.lock().unwrap().candidates;
        assert!(explored > 30 && slices + 1 >= explored / most, "{explored} in {slices} slices");
    }
}

#[test]
fn excess_prefetches_replace_the_oldest() {
    let engine = engine(EngineOptions::default());
    let constraint = constraint(&engine);
    let mut matcher = constraint.matcher();
    // The lock of the background parser blocks the one background thread.
    let inner = constraint.background_parser.inner.lock();
    for token in bytes(TEXT) {
        assert!(matcher.prefetch(&bytes("{}[]\"\\,x1")));
        matcher.advance(token).unwrap();
    }
    drop(inner);
    engine.runtime.background.settle();
    let stats = engine.stats();
    // The thread may have taken one job before it blocked.
    let waited = TEXT.len() as u64 - 64;
    assert!(
        stats.prefetches == TEXT.len() as u64
            && [waited, waited - 1].contains(&stats.background_jobs_dropped),
        "{stats:?}"
    );
    assert!(stats.background_masks_built > 0 && stats.background_panics == 0, "{stats:?}");
}

/// How many of the masks along a text, cut into the longest tokens, were made in the background,
/// and how many distinct ones there are.
fn share(engine: &Engine, constraint: &Constraint, text: &str) -> (u64, usize) {
    let vocab = engine.vocab();
    let (mut matcher, mut row, mut seen) =
        (constraint.matcher(), vec![0; vocab.mask_words()], Vec::new());
    let mut left = text.as_bytes();
    loop {
        matcher.fill_mask(&mut row);
        let mut state = constraint.masks.lock();
        seen.push(state.parser.canonical(matcher.config()));
        drop(state);
        let longest = (1..=left.len()).rev().find_map(|len| Some((vocab.find(&left[..len])?, len)));
        let Some((token, len)) = longest else { break };
        matcher.advance(token).unwrap();
        left = &left[len..];
    }
    assert!(left.is_empty(), "no token for {:?}", String::from_utf8_lossy(left));
    seen.sort_unstable();
    seen.dedup();
    (engine.stats().background_masks_used, seen.len())
}

/// Two tags with the same body. The masks of one that is unlikely are not among the first.
#[test]
fn unlikely_tags_are_prepared_last() {
    let used = |unlikely: bool| {
        let mut builder = GrammarBuilder::new();
        let object = "{\"kind\": \"one\", \"size\": 12}";
        let tags = ["<call>", "[[call]]"].map(|trigger| {
            let body = builder.rule("body", Expr::text(object));
            builder.attributes(body).unlikely = unlikely && trigger == "<call>";
            (Trigger::Text(trigger.into()), body)
        });
        let dispatch = Dispatch {
            tags: tags.into(),
            stops: Vec::new(),
            excludes: vec![b"{{".to_vec()],
            after: AfterTag::Loop,
            end: DispatchEnd::Anywhere,
        };
        let text = builder.rule("text", Expr::Dispatch(Box::new(dispatch)));
        let engine = engine(EngineOptions {
            tuning: MaskTuning::with_direct_walk(0),
            ..EngineOptions::default()
        });
        let constraint = engine.compile(builder.finish(text).unwrap()).unwrap();
        let budget = PrepareBudget { candidates: 30, ..PrepareBudget::default() };
        constraint.prepare(budget).wait();
        let [first, second] = ["<call>", "[[call]]"]
            .map(|trigger| share(&engine, &constraint, &format!("{trigger}{object}")).0);
        (first, second)
    };
    let (first, second) = used(false);
    assert!(first > 3 && second > 3, "{first} and {second}");
    let (unlikely, likely) = used(true);
    assert!(
        2 * unlikely < first && likely >= second,
        "{unlikely} and {likely}, {first} and {second}"
    );
}

#[test]
fn likely_configurations_are_prepared_first() {
    let schema = r#"{"type": "object",
        "properties": {"title": {"type": "string"}, "count": {"type": "integer"},
            "flag": {"type": "boolean"},
            "tags": {"type": "array", "items": {"enum": ["alpha", "beta"]}},
            "place": {"type": "object", "properties": {"city": {"type": "string"}}},
            "last": {"type": "string"}},
        "required": ["title", "count", "last"]}"#;
    // Declared members in their order, although other orders, names and white space are allowed.
    let text = concat!(
        r#"{"title": "some words", "count": 12, "flag": true, "tags": ["beta", "alpha"], "#,
        r#""place": {"city": "so"}, "last": "x"}"#
    );
    for (candidates, least) in [(40, 18), (256, 50)] {
        let engine = engine(EngineOptions {
            tuning: MaskTuning::with_direct_walk(0),
            ..EngineOptions::default()
        });
        let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
        let report =
            constraint.prepare(PrepareBudget { candidates, ..PrepareBudget::default() }).wait();
        let (used, all) = share(&engine, &constraint, text);
        assert!(
            used >= least,
            "{used} of {all} masks were made in the background, with {candidates} candidates: {report:?}"
        );
    }
    // One of many possible orders of optional members.
    let members = ["one", "two", "three", "four"]
        .map(|name| format!("\"{name}\": {{\"type\": \"integer\"}}"))
        .join(", ");
    let schema =
        format!(r#"{{"type": "object", "properties": {{{members}}}, "required": ["one", "two"]}}"#);
    let text = r#"{"one": 10, "two": 20, "three": 30, "four": 40}"#;
    let engine = self::engine(EngineOptions {
        tuning: MaskTuning::with_direct_walk(0),
        ..EngineOptions::default()
    });
    let constraint = engine.compile_json_schema(&schema, &SchemaOptions::default()).unwrap();
    constraint.prepare(PrepareBudget { candidates: 100, ..PrepareBudget::default() }).wait();
    let (used, all) = share(&engine, &constraint, text);
    assert!(used >= 28, "{used} of {all} masks were made in the background");
    // All masks where only one text is allowed.
    let engine = self::engine(EngineOptions {
        tuning: MaskTuning::with_direct_walk(0),
        ..EngineOptions::default()
    });
    let constraint = engine
        .compile_json_schema(r#"{"const": "some words w40w44"}"#, &SchemaOptions::default())
        .unwrap();
    constraint.prepare(PrepareBudget::default()).wait();
    let (used, all) = share(&engine, &constraint, r#""some words w40w44""#);
    assert_eq!(used as usize, all);
}

#[test]
fn preparation_ends_with_its_budget_and_spares_half_the_cache() {
    let engine = engine(EngineOptions {
        tuning: MaskTuning::with_direct_walk(0),
        ..EngineOptions::default()
    });
    let constraint = constraint(&engine);
    let budget = |masks, steps, candidates| PrepareBudget { masks, steps, candidates };
    for (masks, steps, candidates) in [(0, 99, 99), (99, 0, 99), (99, 99, 0)] {
        assert_eq!(
            constraint.prepare(budget(masks, steps, candidates)).wait(),
            PrepareReport::default()
        );
    }
    let few = constraint.prepare(budget(5, 1_000, 1_000)).wait();
    assert_eq!((few.candidates, few.built), (5, 5));
    let few = constraint.prepare(budget(1_000, 1_000, 9)).wait();
    assert_eq!((few.candidates, few.built, few.cached), (9, 4, 5));
    // The budget of steps is exceeded at once, but the expansion under way is finished.
    assert_eq!(constraint.prepare(budget(1_000, 1, 1_000)).wait().candidates, 1);
    for parser_bytes in [300, 3_000, 30_000] {
        let limits = Limits { parser_bytes, ..Limits::default() };
        let small = Engine::new(
            engine.vocab().clone(),
            EngineOptions { limits, ..EngineOptions::default() },
        );
        let constraint = self::constraint(&small);
        constraint.prepare(PrepareBudget::default()).wait();
        small.runtime.background.settle();
        assert_eq!(small.stats().background_panics, 0);
        // Preparation does not evict what matchers use.
        assert_eq!(constraint.masks.lock().epoch, 0);
    }
}

#[test]
fn state_numbers_of_one_parser_do_not_leak_into_another() {
    // Two loops too large for a structural key. Their state numbers depend on which one a parser
    // meets first.
    let mut b = GrammarBuilder::new();
    let value = b.declare("value");
    let nested = || Expr::seq([Expr::text("("), Expr::Ref(value), Expr::text(")")]);
    let long = || Expr::text(&format!("${}", "w".repeat(2_000)));
    let many =
        |lo, hi| Expr::star(Expr::alt([Expr::class(ByteSet::range(lo, hi)), nested(), long()]));
    let branch = |first, lo, hi| {
        Expr::seq([Expr::text(first), Expr::text("q"), many(lo, hi), Expr::text("!")])
    };
    b.define(value, Expr::alt([branch("x", b'a', b'm'), branch("y", b'n', b'z')]));
    let grammar = b.finish(value).unwrap();
    let engine = engine(EngineOptions {
        tuning: MaskTuning::with_direct_walk(0),
        ..EngineOptions::default()
    });
    let compiled = Arc::new(crate::compile::Compiled::new(&grammar, &Limits::default()).unwrap());
    for prefix in ["xq", "yq", "xqa(yq", "yqz(xq"] {
        let constraint = engine.bind(compiled.clone()).unwrap();
        let mut matcher = constraint.matcher();
        bytes(prefix).into_iter().for_each(|t| matcher.advance(t).unwrap());
        let mut row = vec![0; engine.vocab().mask_words()];
        matcher.fill_mask(&mut row);
        for id in (0..engine.vocab().width()).map(TokenId::new) {
            assert_eq!(crate::mask::bit(&row, id), matcher.allows(id), "{id} after {prefix}");
        }
    }
}
