//! Removal of unreachable rules. The others keep their order.

use crate::ids::RuleId;
use crate::ir::Grammar;

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    plan(grammar).map(|keep| retain(grammar, &keep)).is_some()
}

/// By rule: whether it is reachable; `None` if all are.
fn plan(grammar: &Grammar) -> Option<Vec<bool>> {
    let mut reached = vec![false; grammar.rules.len()];
    let mut open = vec![grammar.start];
    reached[grammar.start.index()] = true;
    let mut count = 0;
    while let Some(rule) = open.pop() {
        count += 1;
        grammar.rules[rule.index()].body.each_ref(&mut |target| {
            if !std::mem::replace(&mut reached[target.index()], true) {
                open.push(target);
            }
        });
    }
    (count < grammar.rules.len()).then_some(reached)
}

/// Removes the other rules, and renumbers references. No kept rule may call a removed one.
pub(super) fn retain(grammar: &mut Grammar, keep: &[bool]) {
    let mut next = 0u32;
    let number: Vec<u32> = keep
        .iter()
        .map(|&kept| {
            next += u32::from(kept);
            next - u32::from(kept)
        })
        .collect();
    let mut at = 0;
    grammar.rules.retain(|_| {
        at += 1;
        keep[at - 1]
    });
    let renumber = |rule: RuleId| RuleId::from_raw(number[rule.index()]);
    grammar.rules.iter_mut().for_each(|rule| rule.body.remap(&renumber, &|special| special));
    grammar.start = renumber(grammar.start);
}
