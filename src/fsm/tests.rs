//! Automata compared with direct simulation, on random machines.

use proptest::prelude::*;

use super::{Combine, Dfa, Nfa};
use crate::fuel;

type Edges = Vec<(u32, u32, u32, u32)>;

/// Up to 6 states over the symbols 0..=3, with a few epsilon edges.
fn nfa() -> impl Strategy<Value = Nfa> {
    let edges = prop::collection::vec((0..6u32, 0..4u32, 0..4u32, 0..6u32), 0..14);
    let epsilon = prop::collection::vec((0..6u32, 0..6u32), 0..5);
    let finals = prop::collection::vec(0..6u32, 0..4);
    (edges, epsilon, finals).prop_map(
        |(edges, epsilon, finals): (Edges, Vec<(u32, u32)>, Vec<u32>)| {
            let mut nfa = Nfa::new();
            for _ in 0..6 {
                nfa.state();
            }
            for (from, a, b, to) in edges {
                nfa.edge(from, a.min(b), a.max(b), to);
            }
            for (from, to) in epsilon {
                nfa.epsilon(from, to);
            }
            for f in finals {
                nfa.set_final(f);
            }
            nfa
        },
    )
}

/// Whatever fuel is left, an automaton keeps its language: only its size differs.
#[test]
fn minimal_automata_out_of_fuel_keep_their_language() {
    let mut nfa = Nfa::new();
    let states: Vec<u32> = (0..40).map(|_| nfa.state()).collect();
    for (from, to) in states.iter().zip(&states[1..]) {
        nfa.edge(*from, 0, 9, *to);
        nfa.edge(*from, 20 + from % 3, 30, *to);
    }
    nfa.set_final(30);
    nfa.set_final(39);
    let dfa = nfa.determinize(1_000).unwrap();
    let words = |dfa: &Dfa| {
        let word = |length: usize| (0..length).map(|at| if at % 2 == 0 { 5 } else { 25 });
        (0..50).filter(|&length| dfa.accepts(word(length))).collect::<Vec<usize>>()
    };
    let whole = fuel::measure(|| dfa.minimize()).1;
    assert!(whole > 100);
    for budget in 0..=whole {
        let minimized = fuel::with_budget(budget, || dfa.minimize());
        assert_eq!(words(&minimized), [30, 39], "with {budget} of {whole} units");
    }
}

/// Membership by definition.
fn simulate(nfa: &Nfa, word: &[u32]) -> bool {
    let close = |mut set: Vec<u32>| {
        let mut i = 0;
        while i < set.len() {
            for t in nfa.epsilons(set[i]) {
                if !set.contains(&t) {
                    set.push(t);
                }
            }
            i += 1;
        }
        set
    };
    let mut at = close(vec![0]);
    for &symbol in word {
        let mut next = Vec::new();
        for &s in &at {
            for e in nfa.edges(s) {
                if e.lo <= symbol && symbol <= e.hi && !next.contains(&e.to) {
                    next.push(e.to);
                }
            }
        }
        at = close(next);
    }
    at.iter().any(|&s| nfa.is_final(s))
}

/// All words of up to `n` symbols over 0..=3.
fn words(n: usize) -> Vec<Vec<u32>> {
    let mut out = vec![vec![]];
    let mut from = 0;
    for _ in 0..n {
        let to = out.len();
        for i in from..to {
            for symbol in 0..4 {
                let mut word: Vec<u32> = out[i].clone();
                word.push(symbol);
                out.push(word);
            }
        }
        from = to;
    }
    out
}

fn language(dfa: &Dfa, words: &[Vec<u32>]) -> Vec<bool> {
    words.iter().map(|w| dfa.accepts(w.iter().copied())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn determinized_and_minimized_is_the_same_language(nfa in nfa()) {
        let words = words(5);
        let expected: Vec<bool> = words.iter().map(|w| simulate(&nfa, w)).collect();
        let dfa = nfa.determinize(1_000).unwrap();
        prop_assert_eq!(&language(&dfa, &words), &expected);
        let minimal = dfa.minimize();
        prop_assert_eq!(&language(&minimal, &words), &expected);
        prop_assert_eq!(minimal.minimize(), minimal.clone());
        prop_assert_eq!(minimal.is_empty(), !minimal.is_final(0) && minimal.edge_count() == 0);
        // A minimal automaton has at most as many states.
        prop_assert!(minimal.len() <= dfa.len());
    }

    #[test]
    fn universal_states_do_not_change_the_language(
        nfa in nfa(),
        from in prop::collection::vec(0..6u32, 1..3),
    ) {
        let (mut plain, mut marked) = (nfa.clone(), nfa);
        for nfa in [&mut plain, &mut marked] {
            let all = nfa.state();
            nfa.edge(all, 0, 3, all);
            from.iter().for_each(|&from| nfa.epsilon(from, all));
        }
        plain.set_final(6);
        marked.set_universal(6);
        let (plain, marked) =
            (plain.determinize(1_000).unwrap(), marked.determinize(1_000).unwrap());
        prop_assert!(marked.len() <= plain.len());
        prop_assert_eq!(plain.minimize(), marked.minimize());
    }

    #[test]
    fn boolean_operations_agree_with_membership(a in nfa(), b in nfa()) {
        let words = words(5);
        let (a, b) = (a.determinize(1_000).unwrap(), b.determinize(1_000).unwrap());
        let (la, lb) = (language(&a, &words), language(&b, &words));
        let all = [(0, 3)];
        for (how, f) in [
            (Combine::And, (|x, y| x && y) as fn(bool, bool) -> bool),
            (Combine::Or, |x, y| x || y),
            (Combine::Minus, |x, y| x && !y),
        ] {
            let combined = language(&a.combine(&b, how, 10_000).unwrap(), &words);
            let expected: Vec<bool> = la.iter().zip(&lb).map(|(&x, &y)| f(x, y)).collect();
            prop_assert_eq!(combined, expected, "{:?}", how);
        }
        let not: Vec<bool> = la.iter().map(|x| !x).collect();
        prop_assert_eq!(language(&a.complement(&all, 10_000).unwrap(), &words), not);
        // De Morgan, and minimal automata of equal languages are equal.
        let left = a.combine(&b, Combine::Or, 10_000).unwrap().complement(&all, 10_000).unwrap();
        let (na, nb) = (a.complement(&all, 10_000).unwrap(), b.complement(&all, 10_000).unwrap());
        prop_assert_eq!(left, na.combine(&nb, Combine::And, 10_000).unwrap());
    }

    #[test]
    fn intersections_of_several_languages_agree_with_membership(
        parts in prop::collection::vec((nfa(), any::<bool>()), 0..4),
    ) {
        let words = words(5);
        let parts: Vec<(Dfa, bool)> = parts
            .into_iter()
            .map(|(nfa, within)| (nfa.determinize(1_000).unwrap(), within))
            .collect();
        let expected: Vec<bool> = words
            .iter()
            .map(|word| {
                parts.iter().all(|(dfa, within)| dfa.accepts(word.iter().copied()) == *within)
            })
            .collect();
        let referred: Vec<(&Dfa, bool)> =
            parts.iter().map(|(dfa, within)| (dfa, *within)).collect();
        let all = Dfa::all_of(&referred, &[(0, 3)], 10_000).unwrap();
        prop_assert_eq!(language(&all, &words), expected);
        prop_assert_eq!(all.minimize(), all);
    }

    #[test]
    fn partitions_agree_with_membership(a in nfa(), others in prop::collection::vec(nfa(), 0..4)) {
        let words = words(5);
        let a = a.determinize(1_000).unwrap();
        let others: Vec<Dfa> =
            others.into_iter().map(|nfa| nfa.determinize(1_000).unwrap()).collect();
        let classes = a.split(&others.iter().collect::<Vec<_>>(), 10_000).unwrap();
        prop_assert!(classes.windows(2).all(|pair| pair[0].0 > pair[1].0));
        prop_assert!(
            classes.iter().all(|(_, class)| class.is_infinite() == class.automaton().is_infinite())
        );
        let built: Vec<(Vec<bool>, Dfa)> =
            classes.into_iter().map(|(answers, class)| (answers, class.automaton())).collect();
        prop_assert!(built.iter().all(|(_, dfa)| !dfa.is_empty() && dfa.minimize() == *dfa));
        for word in words {
            let accepts = |dfa: &Dfa| dfa.accepts(word.iter().copied());
            let answers: Vec<bool> = others.iter().map(accepts).collect();
            let within: Vec<&Vec<bool>> =
                built.iter().filter(|(_, dfa)| accepts(dfa)).map(|(a, _)| a).collect();
            prop_assert_eq!(within, if accepts(&a) { vec![&answers] } else { vec![] });
        }
    }

    #[test]
    fn bounded_lengths_and_excluded_words_agree_with_membership(
        a in nfa(),
        min in 0..4u32,
        max in prop::option::of(0..5u32),
        set in prop::collection::btree_set(prop::collection::vec(0..4u32, 0..5), 0..8),
    ) {
        let words = words(6);
        let a = a.determinize(1_000).unwrap();
        let bounds = |word: &Vec<u32>| {
            word.len() >= min as usize && max.is_none_or(|max| word.len() <= max as usize)
        };
        for a in [a.minimize(), a] {
            let plain = language(&a, &words);
            let counted = a.of_length(min, max, 1_000).unwrap();
            let expected: Vec<bool> =
                words.iter().zip(&plain).map(|(word, &within)| within && bounds(word)).collect();
            prop_assert_eq!(language(&counted, &words), expected);
            let without = a.without(&Dfa::words(&set), 1_000).unwrap();
            let expected: Vec<bool> = words
                .iter()
                .zip(&plain)
                .map(|(word, &within)| within && !set.contains(word))
                .collect();
            prop_assert_eq!(language(&without, &words), expected);
            for dfa in [&counted, &without] {
                prop_assert!(dfa.is_trim() || dfa.edge_count() == 0 && dfa.len() == 1);
            }
        }
    }

    #[test]
    fn automata_of_word_sets_accept_their_words(
        set in prop::collection::btree_set(prop::collection::vec(0..4u32, 0..5), 0..8),
    ) {
        let dfa = Dfa::words(set.iter());
        for word in words(5) {
            prop_assert_eq!(dfa.accepts(word.iter().copied()), set.contains(&word));
        }
        prop_assert_eq!(dfa.minimize(), dfa);
    }
}

#[test]
fn automata_past_the_limit_are_errors() {
    assert!(Dfa::counted(&[(0, 3)], 0, Some(100), 50).is_err());
    let counted = Dfa::counted(&[(0, 1), (3, 3)], 2, Some(4), 50).unwrap();
    assert!(counted.accepts([0, 3, 1]) && !counted.accepts([0]) && !counted.accepts([0, 2]));
    assert!(!counted.accepts([0, 0, 0, 0, 0]) && !counted.is_infinite());
    assert!(Dfa::counted(&[(0, 1)], 2, None, 50).unwrap().is_infinite());
}
