//! Direct left and right recursion becomes repetition: `a ::= r a | b | a l` is `r* b l*`. A repeat
//! is part of the rule's automaton, where a call is not; and a rule that is no longer recursive can
//! be inlined.

use super::inline::key_callers;
use crate::ids::RuleId;
use crate::ir::{Expr, Grammar};

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    let mut changed = false;
    let calls_key = key_callers(grammar);
    for (i, rule) in grammar.rules.iter_mut().enumerate() {
        let rule_id = RuleId::new(i);
        // Each recursive call of a labelled rule begins a new span, and of one that calls a unique
        // key, a new set of keys.
        if let Expr::Alt(parts) = &mut rule.body
            && rule.attributes.is_empty()
            && !calls_key[i]
            && calls_itself_only_at_ends(parts, rule_id)
        {
            rule.body = to_repeats(std::mem::take(parts), rule_id);
            changed = true;
        }
    }
    changed
}

/// The position of the recursive call in an alternative.
#[derive(Clone, Copy, PartialEq)]
enum SelfCall {
    Nowhere,
    First,
    Last,
    /// The alternative is nothing but the call.
    Alone,
    Inside,
}

/// The position of the recursive call.
fn self_call(part: &Expr, rule_id: RuleId) -> SelfCall {
    let mut calls = 0;
    part.each_ref(&mut |rule| calls += u32::from(rule == rule_id));
    match (calls, part) {
        (0, _) => SelfCall::Nowhere,
        (1, Expr::Ref(_)) => SelfCall::Alone,
        (1, Expr::Seq(parts)) if parts.first() == Some(&Expr::Ref(rule_id)) => SelfCall::First,
        (1, Expr::Seq(parts)) if parts.last() == Some(&Expr::Ref(rule_id)) => SelfCall::Last,
        _ => SelfCall::Inside,
    }
}

/// Whether the rule calls itself, and only at the ends of alternatives.
fn calls_itself_only_at_ends(parts: &[Expr], rule_id: RuleId) -> bool {
    let mut any = false;
    parts.iter().all(|part| {
        let call = self_call(part, rule_id);
        any |= call != SelfCall::Nowhere;
        call != SelfCall::Inside
    }) && any
}

/// The alternatives with recursion replaced by repetition.
fn to_repeats(parts: Vec<Expr>, rule_id: RuleId) -> Expr {
    let (mut before, mut bases, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for mut part in parts {
        let call = self_call(&part, rule_id);
        match (call, &mut part) {
            (SelfCall::First, Expr::Seq(list)) => after.push(Expr::seq(list.drain(1..))),
            (SelfCall::Last, Expr::Seq(list)) => {
                before.push(Expr::seq(list.drain(..list.len() - 1)))
            }
            (SelfCall::Alone, _) => {}
            _ => bases.push(part),
        }
    }
    let repeated =
        |list: Vec<Expr>| if list.is_empty() { Expr::Empty } else { Expr::star(Expr::alt(list)) };
    Expr::seq([repeated(before), Expr::alt(bases), repeated(after)])
}
