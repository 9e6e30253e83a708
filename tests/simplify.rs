//! Grammar simplification: checks the result of each pass as text, and on random grammars that no
//! pass changes the language (by the oracle) or a trace.
//!
//! ```toml
//! [[case]]
//! name = "a-loop"
//! pass = "Loops"               # absent: all passes
//! before = 's[start] ::= "a" s | "b"'
//! after = 's[start] ::= "a"* "b"'  # optional; absent: unchanged
//! ```

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::fsm::ByteSet;
use louver::ids::{Label, TokenId};
use louver::ir::{Expr, Grammar, GrammarBuilder, Pass, Simplify};
use louver::limits::Limits;
use louver::matcher::{AdvanceError, Span, Tracer};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde::Deserialize;

use crate::harness::oracle::{Oracle, Symbol};
use crate::harness::reader;
use crate::property::{Shown, config, generate};

/// Maximum number of prefixes compared per pair of grammars.
const MAX_PREFIXES: usize = 100;
/// Maximum number of items that the oracle makes for them.
const MAX_ORACLE_ITEMS: usize = 20_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    pass: Option<String>,
    before: String,
    after: Option<String>,
}

impl Case {
    fn run(&self) -> Result<(), String> {
        let before = reader::grammar(&self.before)?;
        let after = match &self.pass {
            Some(name) => {
                let named = |pass: &Pass| format!("{pass:?}") == *name;
                let pass = Pass::ALL.into_iter().find(named).ok_or("no such pass")?;
                let mut grammar = before.clone();
                let changed = pass.run(&mut grammar);
                if changed != (grammar != before) {
                    return Err(format!("says changed = {changed}"));
                }
                grammar
            }
            None => before.simplify().map_err(|e| e.to_string())?,
        };
        let want = self.after.as_ref().unwrap_or(&self.before);
        if want.trim() != format!("{after:#}").trim() {
            return Err(format!("\n{after:#}"));
        }
        check_equivalent(&before, &after)
    }
}

/// Each pass produces the expected text.
#[test]
fn passes_produce_the_expected_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/simplify");
    let (mut names, mut passes, mut failures) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for entry in std::fs::read_dir(folder).expect("tests/data/simplify is there") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a readable case file");
        let file: File =
            toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for case in file.case {
            assert!(names.insert(case.name.clone()), "two cases are called {}", case.name);
            passes.extend(case.pass.clone());
            if let Err(why) = case.run() {
                failures.push(format!("{}: {why}", case.name));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases fail:\n{}",
        failures.len(),
        names.len(),
        failures.join("\n")
    );
    for pass in Pass::ALL {
        assert!(passes.contains(&format!("{pass:?}")), "no case for {pass:?}");
    }
}

/// Checks that two grammars allow the same symbols after the same short prefixes, within the budget
/// of the oracle.
fn check_equivalent(a: &Grammar, b: &Grammar) -> Result<(), String> {
    let (mut a, mut b) = (Oracle::new(a), Oracle::new(b));
    if a.derives_something() != b.derives_something() {
        return Err("one derives something, the other nothing".to_owned());
    }
    if !a.derives_something() {
        return Ok(());
    }
    let symbols: Vec<Symbol> = b"abcdez\"{},: 019"
        .iter()
        .map(|&b| Symbol::Byte(b))
        .chain([0, 1].map(Symbol::Special))
        .collect();
    let mut prefixes: Vec<Vec<Symbol>> = vec![Vec::new()];
    let mut at = 0;
    while at < prefixes.len() && a.work() + b.work() < MAX_ORACLE_ITEMS {
        let prefix = prefixes[at].clone();
        at += 1;
        a.back_to(0);
        b.back_to(0);
        let accepted = prefix.iter().all(|&symbol| a.push(symbol) && b.push(symbol));
        assert!(accepted, "{prefix:?} was accepted before");
        if a.is_complete() != b.is_complete() {
            return Err(format!("one may end after {prefix:?}, the other not"));
        }
        for &symbol in &symbols {
            let (in_a, in_b) = (a.push(symbol), b.push(symbol));
            a.back_to(prefix.len());
            b.back_to(prefix.len());
            if in_a != in_b {
                return Err(format!("{symbol:?} may follow {prefix:?} in one, not in the other"));
            }
            if in_a && prefixes.len() < MAX_PREFIXES {
                prefixes.push([prefix.as_slice(), &[symbol]].concat());
            }
        }
    }
    Ok(())
}

/// Random grammars in which some rules have labels.
fn labelled_grammars() -> impl Strategy<Value = Shown> {
    let labels = proptest::collection::vec(proptest::option::weighted(0.4, 0u32..3), 4);
    (generate::grammar(), labels).prop_map(|(mut grammar, labels)| {
        for (rule, label) in grammar.rules.iter_mut().zip(labels) {
            rule.attributes.label = label.map(Label::from_raw);
        }
        Shown(grammar)
    })
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn simplified_grammars_are_equivalent(Shown(grammar) in labelled_grammars()) {
        for pass in Pass::ALL {
            let mut changed = grammar.clone();
            let reported_change = pass.run(&mut changed);
            prop_assert_eq!(reported_change, changed != grammar, "{:?} gives\n{}", pass, changed);
            prop_assert_eq!(changed.validate(), Ok(()));
            let same = if reported_change { check_equivalent(&grammar, &changed) } else { Ok(()) };
            prop_assert!(same.is_ok(), "{:?}: {} in\n{}", pass, same.unwrap_err(), changed);
        }
        let simple = grammar.simplify().expect("valid");
        let bound = grammar.size() * 3 / 2 + 64;
        prop_assert!(simple.size() <= bound, "grows to\n{}", simple);
        let same = check_equivalent(&grammar, &simple);
        prop_assert!(same.is_ok(), "{} in\n{}", same.unwrap_err(), simple);
    }

    #[test]
    fn simplified_grammars_have_the_same_traces(
        Shown(grammar) in labelled_grammars(),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), 40),
    ) {
        let vocab = Arc::new(vocab.build());
        let constraint = |simplify| {
            let limits = Limits::default().with_config_items(500);
            let options = EngineOptions::default().with_limits(limits).with_simplify(simplify);
            Engine::new(vocab.clone(), options).compile(&grammar).ok()
        };
        let (plain, simple) = (constraint(Simplify::Off), constraint(Simplify::On));
        prop_assert_eq!(plain.is_some(), simple.is_some());
        let (Some(plain), Some(simple)) = (plain, simple) else { return Ok(()) };
        let (tokens, want) = walk_and_trace(&plain, &path);
        // Skip if the engine reaches its limit on items; other tests cover limits.
        let Some(got) = trace_tokens(&simple, &tokens)? else { return Ok(()) };
        prop_assert_eq!(&got, &want, "after {:?}", tokens);
    }
}

/// The spans of a trace, and the bytes not yet assigned to a span. At the end of generation, the
/// order of the compiler's states decides to which of several free texts such bytes belong.
type TraceResult = (Vec<Span>, Vec<u8>);

/// The tokens along a random path, and their trace.
fn walk_and_trace(constraint: &Constraint, path: &[u16]) -> (Vec<TokenId>, TraceResult) {
    let vocab = constraint.vocab();
    let (mut matcher, mut tracer) = (constraint.matcher(), Tracer::new());
    for &choice in path {
        let allowed: Vec<TokenId> = (0..vocab.width())
            .map(TokenId::new)
            .filter(|&token| !vocab.is_stop(token) && matcher.allows(token))
            .collect();
        if allowed.is_empty() {
            break;
        }
        let result =
            matcher.advance_traced(allowed[usize::from(choice) % allowed.len()], &mut tracer);
        assert_eq!(result, Ok(()));
    }
    (matcher.tokens().to_vec(), (tracer.drain(), tracer.held().to_vec()))
}

/// The trace of tokens; `None` if the engine reaches a limit.
fn trace_tokens(
    constraint: &Constraint,
    tokens: &[TokenId],
) -> Result<Option<TraceResult>, TestCaseError> {
    let (mut matcher, mut tracer) = (constraint.matcher(), Tracer::new());
    for &token in tokens {
        match matcher.advance_traced(token, &mut tracer) {
            Ok(()) => {}
            Err(AdvanceError::Limit { .. }) => return Ok(None),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
    Ok(Some((tracer.drain(), tracer.held().to_vec())))
}

/// Simplification of large grammars needs neither deep recursion nor quadratic time, and the result
/// grows only within the bound.
#[test]
fn large_grammars_are_simplified_within_bounds() {
    const N: usize = 20_000;
    let digit = || Expr::class(ByteSet::range(b'0', b'9'));
    let grow = |make: &dyn Fn(&mut GrammarBuilder) -> Expr| {
        let mut b = GrammarBuilder::new();
        let start = b.declare("start");
        let body = make(&mut b);
        b.define(start, body);
        b.finish(start).expect("valid")
    };
    let chain = |part: &'static str| {
        move |b: &mut GrammarBuilder| {
            let last = b.rule("last", Expr::text("end"));
            (0..N).fold(Expr::Ref(last), |next, i| {
                let rule = b.rule(format!("r{i}"), Expr::seq([Expr::text(part), next]));
                Expr::Ref(rule)
            })
        }
    };
    let grammars: [(&str, Grammar); 7] = [
        ("a chain of units", grow(&chain(""))),
        ("a chain of rules used once", grow(&chain("a"))),
        ("many literals", grow(&|_| Expr::alt((0..N).map(|i| Expr::text(&format!("item {i}")))))),
        (
            "one alternative many times",
            grow(&|_| Expr::Alt(vec![Expr::seq([digit(), Expr::text("x")]); N])),
        ),
        (
            "many copies of one rule",
            grow(&|b| {
                let copies: Vec<Expr> = (0..N)
                    .map(|i| Expr::Ref(b.rule(format!("r{i}"), Expr::star(digit()))))
                    .collect();
                Expr::alt(copies)
            }),
        ),
        (
            "a cycle of look-alikes",
            grow(&|b| {
                let first = b.len();
                let rules: Vec<_> = (0..N).map(|i| b.declare(format!("r{i}"))).collect();
                for (i, &rule) in rules.iter().enumerate() {
                    let next = Expr::Ref(rules[(i + 1) % N]);
                    b.define(rule, Expr::alt([Expr::seq([digit(), next]), Expr::text("end")]));
                }
                assert_eq!(rules[0].index(), first);
                Expr::Ref(rules[0])
            }),
        ),
        (
            "deep nesting",
            grow(&|_| (0..450).fold(digit(), |inner, _| Expr::Alt(vec![Expr::Seq(vec![inner])]))),
        ),
    ];
    for (name, grammar) in grammars {
        let simple = grammar.simplify().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(
            simple.size() <= grammar.size() * 3 / 2 + 64,
            "{name}: {} of {}",
            simple.size(),
            grammar.size()
        );
        assert_eq!(simple.validate(), Ok(()), "{name}");
        check_equivalent(&grammar, &simple).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}
