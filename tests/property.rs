//! The property that must hold everywhere: `mask[t] == accepts(prefix + bytes(t))`, on random grammars and random vocabularies,
//! against the oracle; and `advance`, `allows`, `rollback` and forks agree with the mask.

mod algebra;
mod api;
mod budget;
mod counts;
mod distinct;
mod fuel;
pub(crate) mod generate;
mod members;
mod names;
mod remainders;
mod text;

use std::sync::Arc;

use louver::compile::{CompileError, Compiled};
use louver::engine::{Constraint, Engine, EngineOptions, Matcher};
use louver::front::structural_tag::{StructuralTag, StructuralTagOptions};
use louver::ids::TokenId;
use louver::ir::{Deferred, Expr, Grammar};
use louver::limits::Limits;
use louver::mask::PoolScope;
use louver::matcher::{AdvanceError, Recognizer};
use louver::switches::{Switch, Switches};
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError};

use crate::harness::columns::{COLUMNS, mask};
use crate::harness::oracle::{Oracle, Symbol};
use crate::structural_tag::meaning::format;

/// Prefixes looked at from the beginning, breadth first.
const PREFIXES: usize = 60;
/// The grammars' letters and a few bytes that only free text has.
const BYTES: &[u8] = b"abcdez \x00\xff";
/// Tokens of a walk.
const STEPS: usize = 24;
/// Items the oracle may make for one grammar before the test goes on to the next: a bound on time that is the same everywhere.
const WORK: usize = 200_000;

/// The same cases in every run; `PROPTEST_CASES` asks for that many others.
pub(crate) fn config(cases: u32) -> Config {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    match std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()) {
        Some(cases) => Config { cases, ..config },
        None => Config { rng_seed: RngSeed::Fixed(2), ..config },
    }
}

/// Out of reach of the oracle's budget: the engine's own limits are tested elsewhere.
fn limits() -> Limits {
    Limits { config_items: 1 << 24, ..crate::harness::unlimited().limits }
}

/// A grammar that a failure shows as text.
#[derive(Clone)]
pub(crate) struct Shown(pub(crate) Grammar);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", self.0)
    }
}

/// Engines, by what is changed of the defaults.
type Configuration = (&'static str, fn(&mut EngineOptions));

/// How masks are made.
const WAYS: &[Configuration] = &[
    ("direct walks", |_| {}),
    ("entries of single states", |o| o.direct_walk = 0),
    ("rule by rule", |o| o.mutual_rules = 0),
    ("rule by rule, and entries of all but the narrowest states", |o| {
        (o.direct_walk, o.mutual_rules) = (3, 0)
    }),
];

/// What is shared, kept and counted.
const SWITCHED: &[Configuration] = &[
    ("a pool shared by these engines", |o| o.direct_walk = 0),
    ("the same pool, read rule by rule", |o| (o.direct_walk, o.mutual_rules) = (3, 0)),
    ("a pool of the engine's own", |o| (o.direct_walk, o.pool_scope) = (0, PoolScope::Engine)),
    ("nothing shared between grammars", |o| {
        (o.direct_walk, o.pool_scope) = (0, PoolScope::Constraint)
    }),
    ("nothing pooled", |o| (o.direct_walk, o.pool_scope, o.pool_bytes) = (0, PoolScope::Engine, 0)),
    ("a small pool", |o| {
        (o.direct_walk, o.pool_scope, o.pool_bytes) = (0, PoolScope::Engine, 4_000)
    }),
    ("no transitions kept", |o| o.switches.transitions = Switch::Off),
    ("no masks kept", |o| o.switches.masks = Switch::Off),
    ("no configuration stands for others", |o| o.switches.stand_ins = Switch::Off),
    ("nothing alike is held once", |o| o.switches.alike = Switch::Off),
    ("no lookahead kept", |o| (o.direct_walk, o.switches.lookahead) = (0, Switch::Off)),
    ("no counters", |o| o.switches.counters = Switch::Off),
    ("no counters, entries of single states", |o| {
        (o.direct_walk, o.switches.counters) = (0, Switch::Off)
    }),
    ("no work ahead", |o| o.switches.ahead = Switch::Off),
    ("all off", |o| o.switches = Switches::OFF),
    ("all off, and nothing shared", |o| {
        (o.direct_walk, o.pool_scope, o.switches) = (0, PoolScope::Constraint, Switches::OFF);
    }),
];

proptest! {
    #![proptest_config(config(100))]

    /// The same with each switch off, with all off, and with every way to share.
    #[test]
    fn masks_with_parts_switched_off_are_what_the_oracle_says(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        // They live to the end, so that those that share a pool find in it what others built.
        let mut live = Vec::new();
        for (name, change) in SWITCHED {
            let Some(constraint) = compile(&grammar, &vocab, &oracle, change)? else { return Ok(()) };
            oracle.back_to(0);
            let mut options = crate::harness::unlimited();
            change(&mut options);
            let looked = short_prefixes(&constraint, &mut oracle).and_then(|()| walk(&constraint, &mut oracle, &path));
            match looked {
                // Without counters, a few grammars need more memory than there is, and matchers say so.
                Err(TestCaseError::Reject(_)) if !options.switches.counters.is_on() => {}
                Err(error) => return Err(TestCaseError::fail(format!("{name}: {error}"))),
                Ok(()) => {}
            }
            live.push(constraint);
        }
    }
}

proptest! {
    #![proptest_config(config(800))]

    /// Masks of all short prefixes, and along a walk chosen by `path`.
    #[test]
    fn masks_are_what_the_oracle_says(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        for (_, change) in WAYS {
            let Some(constraint) = compile(&grammar, &vocab, &oracle, change)? else { return Ok(()) };
            oracle.back_to(0);
            look(&constraint, &mut oracle, &path)?;
        }
    }

    /// The same where bodies of rules are made when a parse gets to them.
    #[test]
    fn deferred_bodies_are_what_they_are_written_out(
        Shown(mut grammar) in generate::grammar().prop_map(Shown),
        bodies in proptest::collection::vec(generate::byte_grammar(), 1..3),
        places in proptest::collection::vec(any::<usize>(), 1..3),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        for (body, place) in bodies.into_iter().zip(places) {
            let Ok(compiled) = Compiled::new(&body, &limits()) else { continue };
            if !Recognizer::new(Arc::new(compiled)).is_complete() {
                let place = place % grammar.rules.len();
                grammar.rules[place].body = Expr::Deferred(Deferred::new(move || Some(body.clone())));
            }
        }
        let vocab = Arc::new(vocab.build());
        let whole = grammar.loaded().expect("what is deferred can be made").into_owned();
        let mut oracle = Oracle::new(&whole);
        for ways in [(crate::harness::unlimited().direct_walk, 2), (0, 2), (3, 0)] {
            let by = |options: &mut EngineOptions| (options.direct_walk, options.mutual_rules) = ways;
            let Some(constraint) = compile(&grammar, &vocab, &oracle, by)? else { return Ok(()) };
            oracle.back_to(0);
            // The walk first: it gets to bodies that nothing has looked at.
            strict(walk(&constraint, &mut oracle, &path))?;
            strict(short_prefixes(&constraint, &mut oracle))?;
        }
    }

    /// The same of structural tags.
    #[test]
    fn masks_of_structural_tags_are_what_the_oracle_says(
        format in format(),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
    ) {
        let tag = StructuralTag { format };
        let Ok(lowered) = tag.lower(&StructuralTagOptions::default(), &Limits::default()) else { return Ok(()) };
        let grammar = lowered.grammar;
        if grammar.rules.iter().any(|rule| !rule.attributes.is_empty()) {
            // Budgets have tests of their own.
            return Ok(());
        }
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        let by_sections = |options: &mut EngineOptions| (options.direct_walk, options.mutual_rules) = (0, 0);
        let Some(constraint) = compile(&grammar, &vocab, &oracle, by_sections)? else { return Ok(()) };
        oracle.back_to(0);
        look(&constraint, &mut oracle, &path)?;
    }

    /// The recogniser without a vocabulary, byte by byte.
    #[test]
    fn recognized_bytes_are_what_the_oracle_says(
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
            let at = oracle.position();
            let mut follows = |&byte: &u8| {
                let ok = oracle.push(Symbol::Byte(byte));
                oracle.back_to(at);
                ok
            };
            let follow: Vec<u8> = BYTES.iter().copied().filter(&mut follows).collect();
            let allowed = recognizer.allowed();
            let allowed: Vec<u8> = BYTES.iter().copied().filter(|&b| allowed.contains(b)).collect();
            prop_assert_eq!(&allowed, &follow, "bytes allowed after {} bytes", at);
            if follow.is_empty() || oracle.work() > WORK {
                break;
            }
            let byte = follow[usize::from(choice) % follow.len()];
            prop_assert!(oracle.push(Symbol::Byte(byte)));
            prop_assert_eq!(recognizer.push(&[byte]), Ok(()));
        }
    }
}

/// The constraint; `None` where the grammar is empty and compiling says so.
fn compile(
    grammar: &Grammar,
    vocab: &Arc<Vocabulary>,
    oracle: &Oracle,
    change: impl FnOnce(&mut EngineOptions),
) -> Result<Option<Constraint>, TestCaseError> {
    let mut options = EngineOptions { limits: limits(), ..crate::harness::unlimited() };
    change(&mut options);
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

/// Short prefixes, and a walk.
fn look(constraint: &Constraint, oracle: &mut Oracle, path: &[u16]) -> Result<(), TestCaseError> {
    strict(short_prefixes(constraint, oracle))?;
    strict(walk(constraint, oracle, path))
}

/// Where no limit is in reach, one that is reached is a failure.
fn strict(looked: Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    looked.map_err(|error| TestCaseError::fail(error.to_string()))
}

/// Rejects the case where the matcher has reached a limit.
fn within_limits(matcher: &Matcher) -> Result<(), TestCaseError> {
    matcher.limit().map_or(Ok(()), |what| Err(TestCaseError::reject(what)))
}

fn short_prefixes(constraint: &Constraint, oracle: &mut Oracle) -> Result<(), TestCaseError> {
    let vocab = constraint.vocab();
    let mut prefixes: Vec<Vec<TokenId>> = vec![Vec::new()];
    let mut at = 0;
    while at < prefixes.len() && oracle.work() < WORK / 2 {
        let prefix = prefixes[at].clone();
        at += 1;
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

fn walk(constraint: &Constraint, oracle: &mut Oracle, path: &[u16]) -> Result<(), TestCaseError> {
    let vocab = constraint.vocab();
    let words = vocab.mask_words();
    let astray: Vec<TokenId> =
        path.iter().map(|&n| TokenId::new(usize::from(n) % vocab.width())).collect();
    oracle.back_to(0);
    let mut matcher = constraint.matcher();
    let mut prefix: Vec<TokenId> = Vec::new();
    for &choice in path {
        let want = oracle.mask(vocab);
        prop_assert_eq!(matcher.is_complete(), oracle.is_complete());
        // Before the mask is known, and after.
        let unmasked: Vec<bool> =
            (0..vocab.width()).map(|id| matcher.allows(TokenId::new(id))).collect();
        within_limits(&matcher)?;
        prop_assert_eq!(&unmasked, &want, "allows after {:?}", show(vocab, &prefix));
        let got = mask(&mut matcher, vocab);
        within_limits(&matcher)?;
        prop_assert_eq!(&got, &want, "mask after {:?}", show(vocab, &prefix));
        let column = COLUMNS[usize::from(choice) % COLUMNS.len()];
        let mut other = column.matcher(constraint, &prefix, &astray);
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
        ends(&matcher, oracle, words)?;
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

/// A stop token ends the sequence exactly where the oracle says so, and can be taken back.
fn ends(matcher: &Matcher, oracle: &Oracle, words: usize) -> Result<(), TestCaseError> {
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

fn show(vocab: &Vocabulary, tokens: &[TokenId]) -> Vec<String> {
    let text = |&t: &TokenId| match vocab.bytes(t) {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => vocab.special_name(t).unwrap_or("?").to_owned(),
    };
    tokens.iter().map(text).collect()
}
