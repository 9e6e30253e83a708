//! Removal of useless symbols: unproductive rules, and expressions that call them, become
//! [`Expr::Never`]. Tags of a dispatch keep their bodies: a trigger with an unproductive body is
//! still a text that free text cannot contain.

use super::call_graph::CallGraph;
use super::graph_paths::reaches_end;
use super::{any_changed, fold};
use crate::ids::RuleId;
use crate::ir::counted_graph::MAX_UNROLLED;
use crate::ir::{Expr, Grammar};

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    let Some(ranks) = least_fixpoint(grammar, is_productive) else { return false };
    let mut changed = false;
    for (i, rule) in grammar.rules.iter_mut().enumerate() {
        if ranks[i] == NOT_IN_SET {
            changed |= rule.body != Expr::Never;
            rule.body = Expr::Never;
        } else if prune(&mut rule.body, &ranks) {
            fold::fold(&mut rule.body);
            changed = true;
        }
    }
    changed
}

/// Most evaluations of rules, as a multiple of their number, before the fixpoint is given up.
const MAX_EVALUATIONS: usize = 32;
/// The rank of a rule outside of the set.
pub(super) const NOT_IN_SET: u32 = u32::MAX;

/// The least set of rules that is closed under `holds`. It gets a rule's body and the ranks of the
/// rules in the set so far, and must be monotone.
///
/// Returns ranks: a rule ranks above those that put it into the set. `None` if the budget of
/// evaluations is exceeded. Linear for grammars without recursion.
pub(super) fn least_fixpoint(
    grammar: &Grammar,
    holds: impl Fn(&Expr, &[u32]) -> bool,
) -> Option<Vec<u32>> {
    let mut ranks = vec![NOT_IN_SET; grammar.rules.len()];
    let mut open: Vec<u32> =
        CallGraph::build(grammar).callees_first((0..grammar.rules.len()).map(RuleId::new));
    let mut budget = MAX_EVALUATIONS * grammar.rules.len();
    let mut next = 0;
    loop {
        let before = open.len();
        budget = budget.checked_sub(before)?;
        open.retain(|&rule| {
            let holds = holds(&grammar.rules[rule as usize].body, &ranks);
            if holds {
                ranks[rule as usize] = next;
                next += 1;
            }
            !holds
        });
        if open.len() == before || open.is_empty() {
            return Some(ranks);
        }
        // The remaining rules depend on each other, or are outside of the set.
    }
}

/// Whether an expression derives a finite text.
fn is_productive(expr: &Expr, ranks: &[u32]) -> bool {
    match expr {
        Expr::Never => false,
        Expr::Empty | Expr::Bytes(_) | Expr::Special(_) | Expr::Dispatch(_) | Expr::Deferred(_) => {
            true
        }
        Expr::Class(set) => !set.is_empty(),
        Expr::Automaton(dfa) => !dfa.is_empty(),
        Expr::Ref(rule) => ranks[rule.index()] != NOT_IN_SET,
        Expr::Seq(parts) => parts.iter().all(|part| is_productive(part, ranks)),
        Expr::Alt(parts) => parts.iter().any(|part| is_productive(part, ranks)),
        Expr::Repeat { max: Some(max), min, .. } if max < min => false,
        Expr::Repeat { body, min, .. } => *min == 0 || is_productive(body, ranks),
        Expr::Members(members) => members.derives(|part| is_productive(part, ranks)),
        Expr::Counted(counted) if counted.unrolled_size() <= MAX_UNROLLED => {
            is_productive(&counted.to_graph(), ranks)
        }
        // By definition its edges are productive.
        Expr::Counted(_) => true,
        Expr::Except(except) => {
            except.is_always_productive() || is_productive(&except.to_graph(), ranks)
        }
        Expr::Graph(graph) => {
            let passes: Vec<bool> =
                graph.edges.iter().map(|(_, e, _)| is_productive(e, ranks)).collect();
            reaches_end(graph, &passes)
        }
    }
}

/// Replaces calls of unproductive rules by [`Expr::Never`]; returns whether there were any.
fn prune(expr: &mut Expr, ranks: &[u32]) -> bool {
    let any =
        |parts: &mut dyn Iterator<Item = &mut Expr>| any_changed(parts, |part| prune(part, ranks));
    match expr {
        Expr::Ref(rule) if ranks[rule.index()] == NOT_IN_SET => {
            *expr = Expr::Never;
            true
        }
        Expr::Seq(parts) | Expr::Alt(parts) => any(&mut parts.iter_mut()),
        Expr::Repeat { body, .. } => prune(body, ranks),
        Expr::Graph(graph) => any(&mut graph.edges.iter_mut().map(|(_, e, _)| e)),
        Expr::Members(members) => any(&mut members.parts_mut()),
        _ => false,
    }
}
