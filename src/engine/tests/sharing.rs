//! The mask pool: which engines share it, its budget, and its counters. Switches: a part that is
//! switched off is not used and changes no mask.

use super::super::*;
use crate::front::json_schema::SchemaOptions;
use crate::fsm::ByteSet;
use crate::ir::{Expr, GrammarBuilder};
use crate::mask::PoolScope;
use crate::switches::{Switch, Switches};

/// A vocabulary that no other test uses: tests of one process share pools of equal vocabularies.
fn vocab(extra: &[&str]) -> Arc<Vocabulary> {
    let extra: Vec<&[u8]> = extra.iter().map(|s| s.as_bytes()).collect();
    Arc::new(Vocabulary::toy(&extra))
}

fn engine(vocab: &Arc<Vocabulary>, pool_scope: PoolScope, pool_bytes: usize) -> Engine {
    Engine::new(
        vocab.clone(),
        EngineOptions {
            tuning: MaskTuning::with_direct_walk(0),
            pool_scope,
            pool_bytes,
            grammar_cache_bytes: 0,
            ..EngineOptions::default()
        },
    )
}

/// Free text between quotes, after a prefix so that grammars differ.
fn quoted(before: &str) -> Grammar {
    let mut b = GrammarBuilder::new();
    let text = b.rule("text", Expr::star(Expr::class(ByteSet::from_bytes(b"\"").complement())));
    let start = b.rule(
        "start",
        Expr::seq([Expr::text(before), Expr::text("\""), Expr::Ref(text), Expr::text("\"")]),
    );
    b.finish(start).unwrap()
}

/// The masks after each prefix of a text.
fn masks(engine: &Engine, grammar: &Grammar, text: &str) -> Vec<Vec<u32>> {
    let mut matcher = engine.compile(grammar).unwrap().matcher();
    let row = |matcher: &mut Matcher| {
        let mut mask = vec![0; engine.vocab().mask_words()];
        matcher.fill_mask(&mut mask);
        mask
    };
    let mut out = vec![row(&mut matcher)];
    for byte in text.bytes() {
        matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
        out.push(row(&mut matcher));
    }
    out
}

#[test]
fn engines_of_one_vocabulary_share_a_pool() {
    let words = ["shared", "a\"", "pool"];
    let first = engine(&vocab(&words), PoolScope::Process, 1 << 20);
    let want = masks(&first, &quoted("a"), "a\"x\"");
    let built = first.pool_stats();
    assert!(built.misses > 0 && built.engines == 1 && built.entries > 0, "{built:?}");
    // An equal but separate vocabulary; then another grammar around the same free text.
    let second = engine(&vocab(&words), PoolScope::Process, 1 << 20);
    assert_eq!(masks(&second, &quoted("a"), "a\"x\""), want);
    let stats = second.pool_stats();
    assert_eq!((stats.misses, stats.engines, stats.entries), (0, 2, built.entries), "{stats:?}");
    masks(&second, &quoted("b"), "b\"x\"");
    assert!(
        second.pool_stats().misses < built.misses,
        "the text is the same: {:?}",
        second.pool_stats()
    );
    assert!(stats.hits > 0 && first.pool_stats().hits == built.hits, "each engine counts its own");
    // Other vocabularies and scopes have pools of their own.
    let others = [
        engine(&vocab(&["shared", "a\"", "pond"]), PoolScope::Process, 1 << 20),
        engine(&vocab(&words), PoolScope::Engine, 1 << 20),
        engine(&vocab(&words), PoolScope::Constraint, 1 << 20),
    ];
    for other in others {
        masks(&other, &quoted("a"), "a\"x\"");
        assert!(other.pool_stats().misses > 0 && other.pool_stats().engines == 1);
        let before = other.pool_stats().misses;
        masks(&other, &quoted("b"), "b\"x\"");
        let shares = other.options().pool_scope != PoolScope::Constraint;
        assert_eq!(other.pool_stats().misses - before < before, shares);
    }
}

#[test]
fn a_shared_pool_has_the_largest_requested_budget_until_its_last_engine_is_dropped() {
    let words = ["largest", "budget"];
    let small = engine(&vocab(&words), PoolScope::Process, 1 << 10);
    assert_eq!(small.pool_stats().max_bytes, 1 << 10);
    let large = engine(&vocab(&words), PoolScope::Process, 1 << 20);
    assert_eq!(small.pool_stats().max_bytes, 1 << 20);
    masks(&small, &quoted("a"), "a\"x\"");
    assert!(large.pool_stats().bytes > 0);
    // A constraint keeps its engine's share of the pool alive.
    let constraint = large.compile(quoted("a")).unwrap();
    drop(large);
    assert_eq!((small.pool_stats().max_bytes, small.pool_stats().engines), (1 << 20, 2));
    drop(constraint);
    let stats = small.pool_stats();
    assert_eq!((stats.max_bytes, stats.engines), (1 << 10, 1));
    assert!(stats.bytes <= 1 << 10, "what no longer fits is gone: {stats:?}");
    drop(small);
    let again = engine(&vocab(&words), PoolScope::Process, 1 << 20);
    assert_eq!((again.pool_stats().entries, again.pool_stats().engines), (0, 1));
}

#[test]
fn a_pool_stays_within_its_budget_and_retains_used_entries() {
    let vocab = vocab(&["ab", "abc", "b\"", "cab\""]);
    let tight = engine(&vocab, PoolScope::Engine, 24 << 10);
    let plain = engine(&vocab, PoolScope::Engine, 0);
    let schema = |i: usize| {
        format!(
            r#"{{"type": "array",
                "items": {{"type": "string", "pattern": "^[a-c]{{0,3}}x{i}[ab]*$"}}}}"#
        )
    };
    let mut first = Vec::new();
    for i in 0..200 {
        for (engine, rows) in [(&tight, &mut first), (&plain, &mut Vec::new())] {
            let constraint =
                engine.compile_json_schema(&schema(i), &SchemaOptions::default()).unwrap();
            let mut matcher = constraint.matcher();
            rows.clear();
            for byte in format!("[\"abx{i}ab\"").bytes() {
                let mut mask = vec![0; vocab.mask_words()];
                matcher.fill_mask(&mut mask);
                rows.push(mask);
                matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
            }
            assert!(
                engine.pool_stats().bytes <= engine.options().pool_bytes,
                "{:?}",
                engine.pool_stats()
            );
        }
    }
    let stats = tight.pool_stats();
    assert!(stats.evicted > 100 && stats.entries > 10, "{stats:?}");
    assert_eq!(plain.pool_stats().entries, 0);
    // The entries of the start of an array recur in every grammar and were built once.
    assert_eq!(stats.hits, 199, "{stats:?}");
}

#[test]
fn process_wide_automata_are_shared_and_counted() {
    let engine = engine(&vocab(&["leaf"]), PoolScope::Engine, 1 << 20);
    let schema = r#"{"type": "string", "pattern": "^once[0-9]a process[a-f]$"}"#;
    let compile = || {
        let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
        constraint.matcher().fill_mask(&mut [0; 9]);
    };
    compile();
    let before = process_stats();
    compile();
    let after = process_stats();
    assert!(after.patterns.hits > before.patterns.hits && after.patterns.entries > 0, "{after:?}");
    assert!(after.automata.entries > 0 && after.automata.bytes <= 16 << 20, "{after:?}");
}

/// The counters show that a part is unused when it is switched off; masks stay the same.
#[test]
fn switched_off_parts_are_unused_and_change_no_mask() {
    let vocab = vocab(&["\",", "\"}", "ab", "a\""]);
    let schema =
        r#"{"properties": {"a": {"type": "string", "maxLength": 30}, "b": {"type": "string"}}}"#;
    let texts = [r#"{"a":"abc","b":"x"}"#, r#"{"b":"abc","a":"x","#, r#"{"a":"abc","b":"x"}"#];
    let run = |change: fn(&mut Switches)| {
        let mut options = EngineOptions {
            tuning: MaskTuning::with_direct_walk(0),
            pool_scope: PoolScope::Engine,
            ..EngineOptions::default()
        };
        change(&mut options.switches);
        let engine = Engine::new(vocab.clone(), options);
        let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
        let report = constraint.prepare(PrepareBudget::default()).wait();
        let mut rows = Vec::new();
        for text in texts {
            let mut matcher = constraint.matcher();
            for byte in text.bytes() {
                let mut mask = vec![0; vocab.mask_words()];
                matcher.fill_mask(&mut mask);
                rows.push(mask);
                matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
            }
        }
        let nodes: u32 = constraint.compiled().rules.iter().map(|rule| rule.nodes).sum();
        let transitions = constraint.masks.lock().parser.transitions_held();
        (rows, engine.pool_stats(), report, nodes, transitions)
    };
    let (want, stats, report, nodes, transitions) = run(|_| {});
    assert!(stats.representatives_used > 0 && stats.equal_masks > 0, "{stats:?}");
    assert!(
        stats.mask_hits > 0 && stats.resolved_hits > 0 && report.built > 0 && transitions > 0,
        "{stats:?}"
    );
    let (rows, _, _, _, held) = run(|s| s.transitions = Switch::Off);
    assert_eq!((rows == want, held), (true, 0));
    let (rows, off, ..) = run(|s| s.masks = Switch::Off);
    assert_eq!((rows == want, off.mask_hits, off.background_masks_used), (true, 0, 0));
    let (rows, off, ..) = run(|s| s.representatives = Switch::Off);
    assert_eq!((rows == want, off.representatives_used), (true, 0));
    assert!(off.mask_misses > stats.mask_misses, "{off:?}");
    let (rows, off, ..) = run(|s| s.equal_masks = Switch::Off);
    assert_eq!((rows == want, off.equal_masks), (true, 0));
    let (rows, off, ..) = run(|s| s.resolved_suffixes = Switch::Off);
    assert_eq!((rows == want, off.resolved_hits), (true, 0));
    let (rows, _, _, written_out, _) = run(|s| s.counters = Switch::Off);
    assert!(rows == want && written_out > nodes + 25, "{written_out} and {nodes} nodes");
    let (rows, off, report, ..) = run(|s| s.background = Switch::Off);
    assert_eq!(
        (rows == want, off.background_masks_used, report),
        (true, 0, PrepareReport::default())
    );
    let (rows, off, ..) = run(|s| *s = Switches::OFF);
    assert_eq!((rows == want, off.mask_hits, off.resolved_hits), (true, 0, 0));
}
