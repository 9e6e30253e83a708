//! Budgets of tokens and code points: masks agree with `advance`, a budget that must be finished
//! allows nothing new, and free text agrees with a recogniser that counts.

use std::sync::Arc;

use louver::engine::{Constraint, Engine, Matcher};
use louver::fsm::ByteSet;
use louver::ids::{RuleId, TokenId};
use louver::internals::MaskTuning;
use louver::ir::{Budget, BudgetPolicy, Expr, Grammar, GrammarBuilder};
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::generate;
use super::{Shown, config, show};
use crate::harness::columns::{COLUMNS, mask};
use crate::harness::oracle::Oracle;

fn budget() -> impl Strategy<Value = Budget> {
    let few = || proptest::option::of(0u32..5);
    (few(), few(), prop_oneof![Just(BudgetPolicy::Finish), Just(BudgetPolicy::Cut)])
        .prop_map(|(tokens, chars, on_exhausted)| Budget { tokens, chars, on_exhausted })
}

fn budgeted() -> impl Strategy<Value = (Shown, Shown)> {
    (generate::grammar(), vec(proptest::option::weighted(0.6, budget()), 5)).prop_map(
        |(plain, budgets)| {
            let mut grammar = plain.clone();
            for (rule, budget) in grammar.rules.iter_mut().zip(budgets) {
                rule.attributes.budget = budget;
            }
            (Shown(grammar), Shown(plain))
        },
    )
}

proptest! {
    #![proptest_config(config(400))]

    /// Random grammars with random budgets, along a walk.
    #[test]
    fn masks_with_budgets_agree_with_advance(
        (Shown(grammar), Shown(plain)) in budgeted(),
        words in generate::vocabulary(),
        path in vec(any::<u16>(), 12),
        (direct_walk, mutual_rules) in prop_oneof![Just((0usize, 24usize)), Just((300, 24)), Just((300, 0)), Just((2, 0))],
    ) {
        let vocab = Arc::new(words.build());
        let mut oracle = Oracle::new(&plain);
        // Ambiguous recursion with a budget at every level has a state for each way to count.
        let limits = crate::harness::unlimited().limits
            .with_config_items(200)
            .with_parser_bytes(1 << 20);
        let options = crate::harness::unlimited()
            .with_limits(limits)
            .with_tuning(MaskTuning { direct_walk, mutual_rules });
        let engine = Engine::new(vocab.clone(), options);
        let Ok(constraint) = engine.compile(&grammar) else { return Ok(()) };
        let finishes = grammar
            .rules
            .iter()
            .filter_map(|r| r.attributes.budget)
            .all(|b| b.on_exhausted == BudgetPolicy::Finish && b.tokens != Some(0));
        check_walk(&constraint, finishes.then_some(&mut oracle), &path)?;
    }

    /// `c`, text of `a`, `b` and é, `c`.
    #[test]
    fn free_text_obeys_its_budget(
        budget in budget(),
        words in generate::vocabulary(),
        path in vec(any::<u16>(), 16),
        (direct_walk, mutual_rules) in prop_oneof![Just((0usize, 24usize)), Just((300, 24)), Just((300, 0)), Just((2, 0))],
        dispatch in any::<bool>(),
    ) {
        let vocab = Arc::new(words.build());
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning { direct_walk, mutual_rules });
        let engine = Engine::new(vocab.clone(), options);
        let constraint = engine.compile(text(budget, dispatch)).unwrap();
        let mut state = Some(CountingRecognizer::Before);
        let mut matcher = constraint.matcher();
        for choice in path {
            let Some(here) = state else { break };
            let want: Vec<bool> = (0..vocab.width())
                .map(|id| match vocab.bytes(TokenId::new(id)) {
                    _ if vocab.is_stop(TokenId::new(id)) => here == CountingRecognizer::After,
                    Some(bytes) => here.token(budget, bytes).is_some(),
                    None => false,
                })
                .collect();
            prop_assert_eq!(
                mask(&mut matcher, &vocab),
                &want[..],
                "after {:?}",
                show(&vocab, matcher.tokens())
            );
            let follow: Vec<TokenId> =
                (1..vocab.width()).filter(|&id| want[id]).map(TokenId::new).collect();
            let Some(&token) = follow.get(usize::from(choice) % follow.len().max(1)) else { break };
            prop_assert_eq!(matcher.advance(token), Ok(()));
            state = here.token(budget, vocab.bytes(token).unwrap());
        }
    }
}

/// Checks masks of a grammar with these budgets, in every way to make them, along a few texts.
fn check_masks(rules: &[(&str, Expr, Option<Budget>)], words: &[&[u8]]) {
    let vocab = Arc::new(Vocabulary::toy(words));
    for (direct_walk, mutual_rules) in [(0, 24), (300, 24), (300, 0), (2, 0)] {
        let options =
            crate::harness::unlimited().with_tuning(MaskTuning { direct_walk, mutual_rules });
        let engine = Engine::new(vocab.clone(), options);
        let mut b = GrammarBuilder::new();
        rules.iter().for_each(|(name, body, _)| _ = b.rule(*name, body.clone()));
        let mut grammar = b.finish(RuleId::new(0)).unwrap();
        for (rule, (_, _, budget)) in grammar.rules.iter_mut().zip(rules) {
            rule.attributes.budget = *budget;
        }
        let constraint = engine.compile(&grammar).unwrap();
        for path in [[0; 4], [1, 0, 2, 1], [3, 5, 0, 2], [9, 1, 7, 4]] {
            check_walk(&constraint, None, &path).unwrap();
        }
    }
}

/// A cut rule ends where all other items have spent their budgets, and is not read on.
#[test]
fn a_cut_rule_ends_where_all_others_are_spent() {
    let token_budget =
        |tokens, on_exhausted| Some(Budget { tokens: Some(tokens), chars: None, on_exhausted });
    let letters = Expr::star(Expr::Class(ByteSet::from_bytes(b"ab")));
    let start = Expr::seq([Expr::Ref(RuleId::new(1)), Expr::Ref(RuleId::new(2))]);
    let end = Expr::text("a");
    let rules = [
        ("start", start, None),
        ("text", letters, token_budget(1, BudgetPolicy::Cut)),
        ("end", end, token_budget(0, BudgetPolicy::Finish)),
    ];
    check_masks(&rules, &[b"aa", b"ab", b"ba", b"aaa"]);
}

/// A budget that begins inside of a token, and ends there.
#[test]
fn a_rule_cut_inside_a_token_ends_there() {
    let one = Some(Budget { tokens: None, chars: Some(1), on_exhausted: BudgetPolicy::Cut });
    let list = Expr::alt([
        Expr::seq([Expr::Ref(RuleId::new(0)), Expr::Ref(RuleId::new(1))]),
        Expr::text("d"),
    ]);
    let text = Expr::seq([Expr::text("a"), Expr::optional(Expr::text("b"))]);
    check_masks(
        &[("start", list, None), ("text", text, one)],
        &[b"da", b"dab", b"ab", b"aa", b"daa", b"aab"],
    );
}

/// Checks that a mask after a prefix allows what `advance` takes, also of a matcher that came to
/// the prefix in another way. Returns the mask, or None where a limit was reached.
pub(super) fn check_step(
    matcher: &mut Matcher,
    constraint: &Constraint,
    prefix: &[TokenId],
    choice: u16,
) -> Result<Option<Vec<bool>>, TestCaseError> {
    let vocab = constraint.vocab();
    let got = mask(matcher, vocab);
    let taken: Vec<_> =
        (0..vocab.width()).map(|id| matcher.clone().advance(TokenId::new(id))).collect();
    let is_limit = |taken: &Result<_, _>| matches!(taken, Err(AdvanceError::Limit { .. }));
    if matcher.limit().is_some() || taken.iter().any(is_limit) {
        return Ok(None);
    }
    let allowed: Vec<bool> = taken.iter().map(Result::is_ok).collect();
    prop_assert_eq!(&got, &allowed, "mask after {:?}", show(vocab, prefix));
    let column = COLUMNS[usize::from(choice) % COLUMNS.len()];
    let other = mask(&mut column.matcher(constraint, prefix, &[]), vocab);
    prop_assert_eq!(&other, &allowed, "{:?} mask after {:?}", column, show(vocab, prefix));
    Ok(Some(got))
}

/// Checks masks along a walk; with the oracle of the grammar without budgets, if given.
fn check_walk(
    constraint: &Constraint,
    mut plain: Option<&mut Oracle>,
    path: &[u16],
) -> Result<(), TestCaseError> {
    let vocab = constraint.vocab();
    let mut matcher = constraint.matcher();
    let mut prefix: Vec<TokenId> = Vec::new();
    for &choice in path {
        let Some(got) = check_step(&mut matcher, constraint, &prefix, choice)? else {
            return Ok(());
        };
        if let Some(oracle) = plain.as_deref_mut() {
            let without = oracle.mask(vocab);
            for id in 0..vocab.width() {
                prop_assert!(
                    without[id] || !got[id],
                    "token {} only with a budget, after {:?}",
                    id,
                    show(vocab, &prefix)
                );
            }
        }
        let follow: Vec<TokenId> = (0..vocab.width())
            .map(TokenId::new)
            .filter(|t| got[t.index()] && !vocab.is_stop(*t))
            .collect();
        let Some(&token) = follow.get(usize::from(choice) % follow.len().max(1)) else { break };
        prop_assert_eq!(matcher.advance(token), Ok(()));
        if let Some(oracle) = plain.as_deref_mut() {
            prop_assert!(oracle.push_token(vocab, token));
        }
        prefix.push(token);
    }
    Ok(())
}

/// A grammar of free text between two `c`.
fn text(budget: Budget, dispatch: bool) -> Grammar {
    let mut b = GrammarBuilder::new();
    let mut letters = ByteSet::range(b'a', b'b');
    letters.insert_range(b'd', b'd');
    let body = Expr::star(Expr::alt([Expr::class(letters), Expr::text("é")]));
    let inner = if dispatch { Expr::Ref(b.rule("inner", body)) } else { body };
    let text = b.rule("text", inner);
    b.attributes(text).budget = Some(budget);
    let start = b.rule("start", Expr::seq([Expr::text("c"), Expr::Ref(text), Expr::text("c")]));
    b.finish(start).unwrap()
}

/// A counting recogniser of [`text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountingRecognizer {
    Before,
    Inside { tokens: u32, chars: u32 },
    After,
}

impl CountingRecognizer {
    fn token(self, budget: Budget, bytes: &[u8]) -> Option<CountingRecognizer> {
        let no_more = |limit: Option<u32>, used: u32| limit.is_some_and(|limit| used >= limit);
        let empty = budget.tokens == Some(0) || budget.chars == Some(0);
        let budget_spent = matches!(self, CountingRecognizer::Inside { tokens, .. } if no_more(budget.tokens, tokens));
        let mut state = match self {
            CountingRecognizer::Inside { tokens, chars } => {
                CountingRecognizer::Inside { tokens: tokens + 1, chars }
            }
            other => other,
        };
        for (i, &byte) in bytes.iter().enumerate() {
            state = match (state, byte) {
                (CountingRecognizer::Before, b'c') => {
                    CountingRecognizer::Inside { tokens: 0, chars: 0 }
                }
                (CountingRecognizer::Inside { .. }, b'c') => CountingRecognizer::After,
                (CountingRecognizer::Inside { .. }, _)
                    if empty
                        || budget_spent && i == 0
                        || no_more(budget.chars, chars_of(state)) =>
                {
                    return None;
                }
                (CountingRecognizer::Inside { tokens, chars }, b'a' | b'b' | b'd') => {
                    CountingRecognizer::Inside { tokens, chars: chars + 1 }
                }
                _ => return None,
            };
        }
        Some(state)
    }
}

fn chars_of(state: CountingRecognizer) -> u32 {
    if let CountingRecognizer::Inside { chars, .. } = state { chars } else { 0 }
}

#[test]
fn budgets_count_whole_code_points() {
    let vocab = Arc::new(Vocabulary::toy(&["é".as_bytes(), "ab".as_bytes(), "éa".as_bytes()]));
    let id = |text: &str| vocab.find(text.as_bytes()).unwrap();
    for (tokens, chars) in [(None, Some(2)), (Some(2), None)] {
        let budget = Budget { tokens, chars, on_exhausted: BudgetPolicy::Cut };
        let engine = Engine::new(vocab.clone(), crate::harness::unlimited());
        let constraint = engine.compile(text(budget, false)).unwrap();
        let mut matcher = constraint.matcher();
        matcher.advance(id("c")).unwrap();
        matcher.advance(id("a")).unwrap();
        assert_eq!(matcher.allows(id("ab")), tokens.is_some());
        assert_eq!(matcher.allows(id("éa")), tokens.is_some());
        // Half of é: only the rest of it may follow.
        matcher.advance(TokenId::from_raw(0xC3)).unwrap();
        assert!(matcher.allows(TokenId::from_raw(0xA9)) && !matcher.allows(id("c")));
        matcher.advance(TokenId::from_raw(0xA9)).unwrap();
        let set: Vec<usize> = mask(&mut matcher, &vocab)
            .iter()
            .enumerate()
            .filter(|(_, on)| **on)
            .map(|(id, _)| id)
            .collect();
        assert_eq!(set, [usize::from(b'c')], "tokens {tokens:?}, chars {chars:?}");
    }
}
