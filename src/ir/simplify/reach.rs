//! Rules that the start does not reach are dropped. The others keep their order.

use super::calls::Calls;
use crate::ids::RuleId;
use crate::ir::Grammar;

pub(super) fn run(grammar: &mut Grammar) -> bool {
    let reached = Calls::of(grammar).callees_first([grammar.start]);
    if reached.len() == grammar.rules.len() {
        return false;
    }
    let mut keep = vec![false; grammar.rules.len()];
    reached.iter().for_each(|&rule| keep[rule as usize] = true);
    retain(grammar, &keep);
    true
}

/// Drops rules that nothing kept refers to.
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
