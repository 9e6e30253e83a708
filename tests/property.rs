//! Property tests of masks on random grammars and vocabularies: `mask[t] == accepts(prefix +
//! bytes(t))`, by the oracle; and `advance`, `allows`, `rollback` and forks agree with the mask.

mod algebra;
mod api;
mod budget;
mod combined;
mod counts;
mod distinct_values;
mod duplicate_keys;
mod ebnf_text;
mod fuel;
pub(crate) mod generate;
mod members;
mod suffixes;

use std::sync::Arc;

use louver::compile::{CompileError, Compiled};
use louver::engine::{Constraint, Engine, EngineOptions, Matcher};
use louver::front::structural_tag::{StructuralTag, StructuralTagOptions};
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::ir::{Deferred, Expr, Grammar};
use louver::limits::Limits;
use louver::mask::PoolScope;
use louver::matcher::{AdvanceError, Recognizer};
use louver::switches::Switches;
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError};

use crate::harness::columns::{COLUMNS, mask};
use crate::harness::oracle::{Oracle, Symbol};
use crate::structural_tag::meaning::format;

/// Prefixes that are tested from the beginning, breadth first.
const PREFIXES: usize = 60;
/// The grammars' letters, and a few bytes that only free text has.
const BYTES: &[u8] = b"abcdez \x00\xff";
/// Tokens of a walk.
const STEPS: usize = 24;
/// Items that the oracle may make for one grammar. A bound on time that is equal on all machines.
const WORK: usize = 200_000;

/// The same cases in every run. `PROPTEST_CASES` asks for that many random ones.
pub(crate) fn config(cases: u32) -> Config {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    match std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()) {
        Some(cases) => Config { cases, ..config },
        None => Config { rng_seed: RngSeed::Fixed(2), ..config },
    }
}

/// A matcher of a grammar after these bytes, with direct walks of so many nodes.
fn matcher_after(
    grammar: &Grammar,
    vocab: &Arc<Vocabulary>,
    direct_walk: usize,
    text: &[u8],
) -> Matcher {
    let tuning = MaskTuning::with_direct_walk(direct_walk);
    let options = crate::harness::unlimited().with_tuning(tuning);
    let engine = Engine::new(vocab.clone(), options);
    let mut matcher = engine.compile(grammar.clone()).expect("compiles").matcher();
    for &byte in text {
        matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
    }
    matcher
}

/// Limits beyond the oracle's budget: the engine's own limits have other tests.
fn limits() -> Limits {
    crate::harness::unlimited().limits.with_config_items(1 << 24)
}

/// Options with these limits.
fn options() -> EngineOptions {
    crate::harness::unlimited().with_limits(limits())
}

/// A grammar that is printed as text when a test fails.
#[derive(Clone)]
pub(crate) struct Shown(pub(crate) Grammar);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", self.0)
    }
}

/// A name, and a change of the default engine options.
type Configuration = (&'static str, fn(&mut EngineOptions));

/// Ways to make masks.
const MASK_CONFIGURATIONS: &[Configuration] = &[
    ("direct walks", |_| {}),
    ("entries of single states", |o| o.tuning.direct_walk = 0),
    ("suffixes rule by rule", |o| o.tuning.mutual_rules = 0),
    ("suffixes rule by rule, and entries of all but the narrowest states", |o| {
        (o.tuning.direct_walk, o.tuning.mutual_rules) = (3, 0)
    }),
];

/// Pool scopes, and all switches off.
const POOL_CONFIGURATIONS: &[Configuration] = &[
    ("a pool shared by these engines", |o| o.tuning.direct_walk = 0),
    ("the same pool, suffixes rule by rule", |o| {
        (o.tuning.direct_walk, o.tuning.mutual_rules) = (3, 0)
    }),
    ("a pool of the engine's own", |o| {
        (o.tuning.direct_walk, o.pool_scope) = (0, PoolScope::Engine)
    }),
    ("nothing shared between grammars", |o| {
        (o.tuning.direct_walk, o.pool_scope) = (0, PoolScope::Constraint)
    }),
    ("an empty pool", |o| {
        (o.tuning.direct_walk, o.pool_scope, o.pool_bytes) = (0, PoolScope::Engine, 0)
    }),
    ("a small pool", |o| {
        (o.tuning.direct_walk, o.pool_scope, o.pool_bytes) = (0, PoolScope::Engine, 4_000)
    }),
    ("all off", |o| o.switches = Switches::OFF),
    ("all off, and nothing shared", |o| {
        (o.tuning.direct_walk, o.pool_scope, o.switches) =
            (0, PoolScope::Constraint, Switches::OFF);
    }),
];

/// [`POOL_CONFIGURATIONS`], and each switch off alone: with direct walks, and with entries. The
/// latter engines have pools of their own, as entries that another engine made would hide what a
/// switch does to them.
fn pool_and_switch_configurations() -> Vec<(&'static str, EngineOptions)> {
    let changed = |&(name, change): &Configuration| {
        let mut options = options();
        change(&mut options);
        (name, options)
    };
    let switched = |&(name, switches): &(&'static str, Switches)| {
        let walks = options().with_switches(switches);
        let tuning = MaskTuning::with_direct_walk(0);
        let entries = walks.clone().with_tuning(tuning).with_pool_scope(PoolScope::Engine);
        [(name, walks), (name, entries)]
    };
    let switches = Switches::EACH.iter().flat_map(switched);
    POOL_CONFIGURATIONS.iter().map(changed).chain(switches).collect()
}

proptest! {
    #![proptest_config(config(100))]

    /// The same with each switch off, with all off, and with every pool scope.
    #[test]
    fn masks_equal_the_oracle_with_any_switch_off(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        // All live to the end, so that engines that share a pool find entries of the others.
        let mut live = Vec::new();
        for (name, options) in pool_and_switch_configurations() {
            let has_counters = options.switches.counters.is_on();
            let Some(constraint) = compile_with(&grammar, &vocab, &oracle, options)? else {
                return Ok(());
            };
            oracle.back_to(0);
            let outcome = check_short_prefixes(&constraint, &mut oracle)
                .and_then(|()| check_walk(&constraint, &mut oracle, &path));
            match outcome {
                // Without counters, a few grammars exceed the memory limit, and matchers report it.
                Err(TestCaseError::Reject(_)) if !has_counters => {}
                Err(error) => return Err(TestCaseError::fail(format!("{name}: {error}"))),
                Ok(()) => {}
            }
            live.push(constraint);
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Masks of all short prefixes, and along a walk chosen by `path`.
    #[test]
    fn masks_equal_the_oracle(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        for (_, change) in MASK_CONFIGURATIONS {
            let Some(constraint) = compile(&grammar, &vocab, &oracle, change)? else {
                return Ok(());
            };
            oracle.back_to(0);
            check_prefixes_and_walk(&constraint, &mut oracle, &path)?;
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// The same where bodies of rules are made when a parse first calls them. The special tokens of
    /// a body have other ids than in the grammar around it.
    #[test]
    fn deferred_bodies_equal_inlined_ones(
        Shown(mut grammar) in generate::grammar().prop_map(Shown),
        bodies in proptest::collection::vec(generate::grammar(), 1..3),
        rules in proptest::collection::vec(any::<usize>(), 1..3),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        for (mut body, rule) in bodies.into_iter().zip(rules) {
            body.specials.reverse();
            let Ok(compiled) = Compiled::new(&body, &limits()) else { continue };
            let is_nullable = Recognizer::new(Arc::new(compiled)).is_complete();
            for special in &body.specials {
                if !grammar.specials.contains(special) {
                    grammar.specials.push(special.clone());
                }
            }
            let rule = rule % grammar.rules.len();
            let make = move || Some(body.clone());
            grammar.rules[rule].body =
                Expr::Deferred(Deferred::with_nullability(is_nullable, make));
        }
        let vocab = Arc::new(vocab.build());
        let inlined =
            grammar.with_deferred_bodies().expect("what is deferred can be made").into_owned();
        let mut oracle = Oracle::new(&inlined);
        for walks in [(crate::harness::unlimited().tuning.direct_walk, 2), (0, 2), (3, 0)] {
            let change = |options: &mut EngineOptions| {
                options.tuning = MaskTuning { direct_walk: walks.0, mutual_rules: walks.1 };
            };
            let Some(constraint) = compile(&grammar, &vocab, &oracle, change)? else {
                return Ok(());
            };
            oracle.back_to(0);
            // The walk comes first, as it meets bodies that nothing else has made.
            no_limit(check_walk(&constraint, &mut oracle, &path))?;
            no_limit(check_short_prefixes(&constraint, &mut oracle))?;
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// The same for structural tags.
    #[test]
    fn structural_tag_masks_equal_the_oracle(
        format in format(),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        let tag = StructuralTag { format };
        let Ok(lowered) = tag.lower(&StructuralTagOptions::default(), &Limits::default()) else {
            return Ok(());
        };
        let grammar = lowered.grammar;
        if grammar.rules.iter().any(|rule| !rule.attributes.is_empty()) {
            // Budgets have other tests.
            return Ok(());
        }
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        let by_rules = |options: &mut EngineOptions| {
            options.tuning = MaskTuning { direct_walk: 0, mutual_rules: 0 };
        };
        let Some(constraint) = compile(&grammar, &vocab, &oracle, by_rules)? else { return Ok(()) };
        oracle.back_to(0);
        check_prefixes_and_walk(&constraint, &mut oracle, &path)?;
    }

    /// The recogniser without a vocabulary, byte by byte.
    #[test]
    fn recognizer_bytes_equal_the_oracle(
        Shown(grammar) in generate::byte_grammar().prop_map(Shown),
        path in proptest::collection::vec(any::<u16>(), 2 * STEPS),
    ) {
        let mut oracle = Oracle::new(&grammar);
        if !oracle.derives_something() {
            return Ok(());
        }
        let compiled = Compiled::new(&grammar, &limits()).expect("compiles");
        let mut recognizer = Recognizer::with_limits(Arc::new(compiled), &limits());
        for choice in path {
            prop_assert_eq!(recognizer.is_complete(), oracle.is_complete());
            let position = oracle.position();
            let mut follows = |&byte: &u8| {
                let ok = oracle.push(Symbol::Byte(byte));
                oracle.back_to(position);
                ok
            };
            let follow: Vec<u8> = BYTES.iter().copied().filter(&mut follows).collect();
            let allowed = recognizer.allowed();
            let allowed: Vec<u8> = BYTES.iter().copied().filter(|&b| allowed.contains(b)).collect();
            prop_assert_eq!(&allowed, &follow, "bytes allowed after {} bytes", position);
            if follow.is_empty() || oracle.work() > WORK {
                break;
            }
            let byte = follow[usize::from(choice) % follow.len()];
            prop_assert!(oracle.push(Symbol::Byte(byte)));
            prop_assert_eq!(recognizer.push(&[byte]), Ok(()));
        }
    }
}

/// The constraint; None where the grammar is empty, and compiling says so.
fn compile(
    grammar: &Grammar,
    vocab: &Arc<Vocabulary>,
    oracle: &Oracle,
    change: impl FnOnce(&mut EngineOptions),
) -> Result<Option<Constraint>, TestCaseError> {
    let mut options = options();
    change(&mut options);
    compile_with(grammar, vocab, oracle, options)
}

/// The same with these options.
fn compile_with(
    grammar: &Grammar,
    vocab: &Arc<Vocabulary>,
    oracle: &Oracle,
    options: EngineOptions,
) -> Result<Option<Constraint>, TestCaseError> {
    let engine = Engine::new(vocab.clone(), options);
    match engine.compile(grammar) {
        Ok(constraint) => {
            prop_assert!(oracle.derives_something(), "compiled, but no sentence exists");
            Ok(Some(constraint))
        }
        Err(CompileError::Empty { .. }) => {
            prop_assert!(!oracle.derives_something(), "refused as empty, but a sentence exists");
            Ok(None)
        }
        Err(error) => Err(TestCaseError::fail(format!("does not compile: {error}"))),
    }
}

/// Tests short prefixes and a walk, without limits.
fn check_prefixes_and_walk(
    constraint: &Constraint,
    oracle: &mut Oracle,
    path: &[u16],
) -> Result<(), TestCaseError> {
    no_limit(check_short_prefixes(constraint, oracle))?;
    no_limit(check_walk(constraint, oracle, path))
}

/// Turns a reached limit into a failure, where none should be reached.
fn no_limit(outcome: Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    outcome.map_err(|error| TestCaseError::fail(error.to_string()))
}

/// Rejects the test case if the matcher has reached a limit.
fn within_limits(matcher: &Matcher) -> Result<(), TestCaseError> {
    matcher.limit().map_or(Ok(()), |what| Err(TestCaseError::reject(what)))
}

/// Compares masks of short prefixes with the oracle's.
fn check_short_prefixes(constraint: &Constraint, oracle: &mut Oracle) -> Result<(), TestCaseError> {
    let vocab = constraint.vocab();
    let mut prefixes: Vec<Vec<TokenId>> = vec![Vec::new()];
    let mut next_prefix = 0;
    while next_prefix < prefixes.len() && oracle.work() < WORK / 2 {
        let prefix = prefixes[next_prefix].clone();
        next_prefix += 1;
        oracle.back_to(0);
        for &token in &prefix {
            prop_assert!(oracle.push_token(vocab, token));
        }
        let want = oracle.mask(vocab);
        let mut matcher = constraint.matcher();
        for &token in &prefix {
            take(&mut matcher, token)?;
        }
        let got = mask(&mut matcher, vocab);
        within_limits(&matcher)?;
        prop_assert_eq!(&got, &want, "mask after {:?}", show(vocab, &prefix));
        for id in (0..vocab.width()).filter(|&id| want[id]) {
            let token = TokenId::new(id);
            let more = prefixes.len() < PREFIXES && oracle.work() < WORK / 2;
            if more && oracle.symbols(vocab, token).is_some() && !vocab.is_stop(token) {
                prefixes.push([prefix.as_slice(), &[token]].concat());
            }
        }
    }
    Ok(())
}

/// Compares masks, `allows` and `advance` along a walk with the oracle's.
fn check_walk(
    constraint: &Constraint,
    oracle: &mut Oracle,
    path: &[u16],
) -> Result<(), TestCaseError> {
    let vocab = constraint.vocab();
    let words = vocab.mask_words();
    let stray_tokens: Vec<TokenId> =
        path.iter().map(|&n| TokenId::new(usize::from(n) % vocab.width())).collect();
    oracle.back_to(0);
    let mut matcher = constraint.matcher();
    let mut prefix: Vec<TokenId> = Vec::new();
    for &choice in path {
        let want = oracle.mask(vocab);
        prop_assert_eq!(matcher.is_complete(), oracle.is_complete());
        // Before the mask is memoised, and after.
        let unmasked: Vec<bool> =
            (0..vocab.width()).map(|id| matcher.allows(TokenId::new(id))).collect();
        within_limits(&matcher)?;
        prop_assert_eq!(&unmasked, &want, "allows after {:?}", show(vocab, &prefix));
        let got = mask(&mut matcher, vocab);
        within_limits(&matcher)?;
        prop_assert_eq!(&got, &want, "mask after {:?}", show(vocab, &prefix));
        let column = COLUMNS[usize::from(choice) % COLUMNS.len()];
        let mut other = column.matcher(constraint, &prefix, &stray_tokens);
        let seen = mask(&mut other, vocab);
        within_limits(&other)?;
        prop_assert_eq!(&seen, &want, "{:?} mask after {:?}", column, show(vocab, &prefix));
        for id in (0..vocab.width()).filter(|&id| !want[id]) {
            let refused = matcher.advance(TokenId::new(id));
            if let Err(AdvanceError::Limit { what }) = refused {
                return Err(TestCaseError::reject(what));
            }
            prop_assert!(
                matches!(
                    refused,
                    Err(AdvanceError::Rejected { .. } | AdvanceError::UnknownToken { .. })
                ),
                "masked token {} gives {:?}",
                id,
                refused
            );
        }
        prop_assert_eq!(matcher.tokens(), prefix.as_slice());
        check_stop_token(&matcher, oracle, words)?;
        let follow: Vec<TokenId> = (0..vocab.width())
            .filter(|&id| want[id])
            .map(TokenId::new)
            .filter(|&t| !vocab.is_stop(t))
            .collect();
        if follow.is_empty() || oracle.work() > WORK {
            break;
        }
        let token = follow[usize::from(choice) % follow.len()];
        prop_assert!(oracle.push_token(vocab, token));
        take(&mut matcher, token)?;
        prefix.push(token);
    }
    Ok(())
}

/// Takes a token that must be allowed.
fn take(matcher: &mut Matcher, token: TokenId) -> Result<(), TestCaseError> {
    match matcher.advance(token) {
        Err(AdvanceError::Limit { what }) => Err(TestCaseError::reject(what)),
        taken => {
            prop_assert_eq!(taken, Ok(()));
            Ok(())
        }
    }
}

/// A stop token ends the sequence exactly where the oracle says so, and can be rolled back.
fn check_stop_token(matcher: &Matcher, oracle: &Oracle, words: usize) -> Result<(), TestCaseError> {
    let mut fork = matcher.clone();
    let taken = fork.advance(generate::STOP);
    prop_assert_eq!(taken.is_ok(), oracle.is_complete());
    prop_assert_eq!(fork.is_terminated(), oracle.is_complete());
    if fork.is_terminated() {
        let mut words = vec![0; words];
        fork.fill_mask(&mut words);
        let set: Vec<usize> =
            (0..words.len() * 32).filter(|id| words[id / 32] >> (id % 32) & 1 == 1).collect();
        prop_assert_eq!(set, vec![generate::STOP.index()]);
        prop_assert_eq!(fork.advance(TokenId::new(0)), Err(AdvanceError::Terminated));
        fork.rollback(1);
        prop_assert!(!fork.is_terminated() && fork.is_complete());
    }
    Ok(())
}

/// Tokens as text.
fn show(vocab: &Vocabulary, tokens: &[TokenId]) -> Vec<String> {
    let text = |&t: &TokenId| match vocab.bytes(t) {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => vocab.special_name(t).unwrap_or("?").to_owned(),
    };
    tokens.iter().map(text).collect()
}
