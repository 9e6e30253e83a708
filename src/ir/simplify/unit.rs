//! Elimination of unit rules: with `a ::= b` and no label, callers of `a` call `b`.

use crate::ids::RuleId;
use crate::ir::{Expr, Grammar};

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    let next: Vec<Option<RuleId>> = grammar
        .rules
        .iter()
        .map(|rule| match rule.body {
            Expr::Ref(target) if rule.attributes.is_empty() => Some(target),
            _ => None,
        })
        .collect();
    if next.iter().all(Option::is_none) {
        return false;
    }
    let mut end: Vec<Option<RuleId>> = vec![None; next.len()];
    let mut path = Vec::new();
    for rule in 0..next.len() {
        let mut at = RuleId::new(rule);
        // Each rule is visited once: `end` is set on the first visit. A cycle ends where it is
        // entered.
        while let Some(to) = next[at.index()].filter(|_| end[at.index()].is_none()) {
            end[at.index()] = Some(at);
            path.push(at);
            at = to;
        }
        let last = end[at.index()].unwrap_or(at);
        path.drain(..).for_each(|passed| end[passed.index()] = Some(last));
    }
    let follow = |rule: RuleId| end[rule.index()].unwrap_or(rule);
    let mut changed = follow(grammar.start) != grammar.start;
    grammar.start = follow(grammar.start);
    for rule in &mut grammar.rules {
        let mut hit = false;
        rule.body.each_ref(&mut |target| hit |= follow(target) != target);
        if hit {
            rule.body.remap(&follow, &|special| special);
            changed = true;
        }
    }
    changed
}
