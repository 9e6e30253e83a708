//! Operations on grammars are operations on their sets of sentences, by the oracle.

use std::collections::BTreeSet;

use louver::fsm::Dfa;
use louver::ir::{Expr, Grammar, IntersectError};
use louver::limits::Limits;
use proptest::prelude::*;

use super::{Shown, WORK, config, generate};
use crate::harness::oracle::{Oracle, Symbol};

/// Longest sentences that are compared.
const LEN: usize = 4;

type Words = BTreeSet<Vec<u8>>;

/// The sentences of up to [`LEN`] of the letters; `None` past the oracle's budget.
fn words(grammar: &Grammar) -> Option<Words> {
    let mut oracle = Oracle::new(grammar);
    let mut out = Words::new();
    if !oracle.derives_something() {
        return Some(out);
    }
    let mut prefixes = vec![Vec::new()];
    while let Some(prefix) = prefixes.pop() {
        oracle.back_to(0);
        assert!(prefix.iter().all(|&b| oracle.push(Symbol::Byte(b))));
        if oracle.is_complete() {
            out.insert(prefix.clone());
        }
        for &letter in generate::LETTERS.iter().filter(|_| prefix.len() < LEN) {
            if oracle.push(Symbol::Byte(letter)) {
                oracle.back_to(prefix.len());
                prefixes.push([prefix.as_slice(), &[letter]].concat());
            }
        }
        if oracle.work() > WORK / 20 {
            return None;
        }
    }
    Some(out)
}

fn concat(a: &Words, b: &Words) -> Words {
    let all = a.iter().flat_map(|x| b.iter().map(move |y| [x.as_slice(), y].concat()));
    all.filter(|word| word.len() <= LEN).collect()
}

fn repeat(a: &Words, min: u32, max: Option<u32>) -> Words {
    let mut out = Words::new();
    let mut power = Words::from([Vec::new()]);
    // Beyond this many, nothing new comes: each further part is empty, or the whole is too long.
    for n in 0..=max.unwrap_or(u32::MAX).min(min + LEN as u32 + 1) {
        if n >= min {
            out.extend(power.iter().cloned());
        }
        power = concat(&power, a);
    }
    out
}

fn automaton() -> impl Strategy<Value = Dfa> {
    generate::automaton().prop_map(|expr| match expr {
        Expr::Automaton(dfa) => (*dfa).clone(),
        _ => unreachable!("an automaton"),
    })
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn operations_are_operations_on_sentences(
        Shown(a) in generate::byte_grammar().prop_map(Shown),
        Shown(b) in generate::byte_grammar().prop_map(Shown),
        min in 0u32..3,
        max in proptest::option::of(0u32..4),
    ) {
        let (Some(of_a), Some(of_b)) = (words(&a), words(&b)) else { return Ok(()) };
        let all = [
            (Grammar::union(&[&a, &b]), of_a.union(&of_b).cloned().collect()),
            (Grammar::concat(&[&a, &b]), concat(&of_a, &of_b)),
            (a.star(), repeat(&of_a, 0, None)),
            (a.optional(), repeat(&of_a, 0, Some(1))),
            (a.repeat(min, max), repeat(&of_a, min, max)),
            (Grammar::union(&[]), Words::new()),
            (Grammar::concat(&[]), Words::from([Vec::new()])),
        ];
        for (grammar, want) in all {
            prop_assert_eq!(grammar.validate(), Ok(()));
            let Some(got) = words(&grammar) else { continue };
            prop_assert_eq!(got, want, "of\n{}", grammar);
        }
    }

    #[test]
    fn intersections_have_the_sentences_of_both(
        Shown(grammar) in generate::byte_grammar().prop_map(Shown),
        dfa in automaton(),
        small in any::<bool>(),
    ) {
        let limits = Limits { nodes: if small { 300 } else { 20_000 }, ..Limits::default() };
        let both = match grammar.intersect(&dfa, &limits) {
            Ok(both) => both,
            Err(IntersectError::Dispatch { rule }) => {
                let has = grammar.rules.iter().any(|r| r.name == rule && format!("{:?}", r.body).contains("Dispatch"));
                prop_assert!(has, "no dispatch in {}", rule);
                return Ok(());
            }
            Err(IntersectError::TooLarge { limit }) => {
                prop_assert_eq!(limit, limits.nodes);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert_eq!(both.validate(), Ok(()));
        let (Some(of_grammar), Some(of_both)) = (words(&grammar), words(&both)) else { return Ok(()) };
        let want: Words = of_grammar.into_iter().filter(|w| dfa.accepts(w.iter().map(|&b| b.into()))).collect();
        prop_assert_eq!(of_both, want, "of\n{}", both);
    }
}

/// A language that counts, in which every string is as long as it says: the pairs made are those that are met.
#[test]
fn intersections_with_counted_words_stay_small() {
    let text = "root ::= \"(\" root \")\" | [a-z]{0,60000}";
    let limits = Limits::default();
    let lowered = louver::front::ebnf::lower(text, &Default::default(), &limits).expect("a grammar");
    let even = Dfa::counted(&[(0, 255)], 0, None, 10).expect("small");
    let both = lowered.grammar.intersect(&even, &limits).expect("an intersection");
    assert!(both.rules.len() == 2 && both.to_string().len() < 200, "{both}");
    let special = louver::front::ebnf::lower("root ::= \"a\" <x>", &Default::default(), &limits).expect("a grammar");
    assert!(matches!(special.grammar.intersect(&even, &limits), Err(IntersectError::Special { .. })));
    let budget =
        louver::front::ebnf::lower("root[max_chars=3] ::= [a-z]*", &Default::default(), &limits).expect("a grammar");
    assert!(matches!(budget.grammar.intersect(&even, &limits), Err(IntersectError::Budget { .. })));
}
