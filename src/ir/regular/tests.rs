use super::*;
use crate::fsm::ByteSet;
use crate::ids::SpecialId;
use crate::ir::{Attributes, Counted};

const LIMIT: usize = 1000;

fn rule(body: Expr) -> Rule {
    Rule { name: String::new(), body, attributes: Attributes::default() }
}

fn dfa(expr: &Expr) -> Dfa {
    automaton(expr, &[], LIMIT).unwrap()
}

fn any() -> Expr {
    Expr::star(Expr::Class(ByteSet::range(b'a', b'z')))
}

fn accepts(dfa: &Dfa, text: &str) -> bool {
    dfa.accepts(text.bytes().map(u32::from))
}

#[test]
fn regular_expressions_become_equivalent_dfas() {
    let rules =
        [rule(Expr::alt([Expr::text("ab"), Expr::Ref(RuleId::new(1))])), rule(Expr::text("c"))];
    let body = Expr::seq([
        Expr::repeat(Expr::Ref(RuleId::new(0)), 1, Some(2)),
        Expr::optional(Expr::text("!")),
    ]);
    let dfa = automaton(&body, &rules, LIMIT).unwrap();
    for yes in ["ab", "c", "abc", "cab", "cc!", "ab!"] {
        assert!(accepts(&dfa, yes), "{yes}");
    }
    for no in ["", "a", "ababab", "!", "ab!!"] {
        assert!(!accepts(&dfa, no), "{no}");
    }
    assert!(accepts(&automaton(&Expr::repeat(Expr::Empty, 1000, None), &[], 10).unwrap(), ""));
}

/// The graph of a count is not made where its states exceed the limit.
#[test]
fn large_counts_are_refused() {
    let class = || Expr::Class(ByteSet::range(b'a', b'z'));
    let counted = |nodes, max| {
        let graph = Graph { nodes, start: 0, ends: vec![0], edges: vec![(0, class(), 0)] };
        Expr::Counted(Box::new(Counted { graph, min: 0, max: Some(max) }))
    };
    assert!(accepts(&automaton(&counted(1, 3), &[], LIMIT).unwrap(), "abc"));
    assert!(automaton(&counted(1, 900), &[], LIMIT).is_ok());
    let too_large = NotRegular::TooLarge(TooLarge::States { limit: LIMIT });
    assert_eq!(automaton(&counted(4, 1 << 30), &[], LIMIT), Err(too_large));
}

#[test]
fn non_regular_expressions_are_rejected() {
    let recursive = [rule(Expr::optional(Expr::seq([
        Expr::text("("),
        Expr::Ref(RuleId::new(0)),
        Expr::text(")"),
    ])))];
    let body = Expr::Ref(RuleId::new(0));
    assert_eq!(
        automaton(&body, &recursive, LIMIT),
        Err(NotRegular::Recursive { rule: RuleId::new(0) })
    );
    assert_eq!(automaton(&Expr::Special(SpecialId::new(0)), &[], LIMIT), Err(NotRegular::Special));
    let captured = [Rule {
        attributes: Attributes { capture: Some("x".into()), ..Attributes::default() },
        ..rule(any())
    }];
    assert_eq!(
        automaton(&body, &captured, LIMIT),
        Err(NotRegular::Attributes { rule: RuleId::new(0) })
    );
    let large = Expr::repeat(Expr::text("ab"), 2, Some(1_000_000));
    assert_eq!(
        automaton(&large, &[], LIMIT),
        Err(NotRegular::TooLarge(TooLarge::States { limit: LIMIT }))
    );
    // A chain of rules, each twice the next: neither deep recursion nor exponential work.
    let chain: Vec<Rule> = (1..=5000)
        .map(|i| {
            rule(Expr::seq([Expr::Ref(RuleId::new(i % 5000)), Expr::Ref(RuleId::new(i % 5000))]))
        })
        .collect();
    assert_eq!(automaton(&body, &chain, LIMIT), Err(NotRegular::TooDeep));
}

#[test]
fn shortest_matches_end_at_the_first_accepting_state() {
    let lazy = dfa(&Expr::seq([any(), Expr::text("ab")])).shortest();
    assert!(accepts(&lazy, "ab") && accepts(&lazy, "aab") && accepts(&lazy, "zzab"));
    assert!(!accepts(&lazy, "abab") && !accepts(&lazy, "a"));
    assert_eq!(lazy.shortest_word(), Some(b"ab".iter().map(|&b| u32::from(b)).collect()));
    assert_eq!(dfa(&any()).shortest(), Dfa::epsilon());
    let free = dfa(&any()).without_prefix(&lazy, &BYTES, LIMIT).unwrap();
    assert!(
        accepts(&free, "")
            && accepts(&free, "ba")
            && !accepts(&free, "zab")
            && !accepts(&free, "abz")
    );
}

#[test]
fn words_are_split_at_the_marker() {
    // A marker with one word: one pair, and the body never contains the marker.
    let (body, marker) = (dfa(&any()), dfa(&Expr::text("end")));
    let whole = body.concat(&marker, LIMIT).unwrap().shortest();
    let pairs = split(&whole, &body, &marker, LIMIT).unwrap();
    let [(before, after)] = &pairs[..] else { panic!("{} pairs", pairs.len()) };
    assert_eq!(*after, marker);
    assert!(
        accepts(before, "")
            && accepts(before, "en")
            && accepts(before, "enen")
            && !accepts(before, "end")
    );
    assert_eq!(before.concat(after, LIMIT).unwrap(), whole);
    // `b` before `b?a`: the shortest match is `ba`, whose marker is `a`.
    let (body, marker) = (
        dfa(&Expr::text("b")),
        dfa(&Expr::seq([Expr::optional(Expr::text("b")), Expr::text("a")])),
    );
    let whole = body.concat(&marker, LIMIT).unwrap().shortest();
    let pairs = split(&whole, &body, &marker, LIMIT).unwrap();
    let union = pairs.iter().fold(Dfa::empty_language(), |all, (a, b)| {
        all.combine(&a.concat(b, LIMIT).unwrap(), Combine::Or, LIMIT).unwrap()
    });
    assert_eq!(union, whole);
    assert!(accepts(&whole, "ba") && accepts(&whole, "bba"));
}
