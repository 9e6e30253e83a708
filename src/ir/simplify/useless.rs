//! Rules that derive no finite sentence, and what calls them, become [`Expr::Never`]. Tags of a dispatch keep their bodies:
//! a trigger whose body derives nothing is still a text that free text cannot contain.

use super::calls::Calls;
use super::{each, fold};
use crate::ids::RuleId;
use crate::ir::{Expr, Grammar, Graph};

pub(super) fn run(grammar: &mut Grammar) -> bool {
    let Some(ranks) = least(grammar, derives) else { return false };
    let mut changed = false;
    for (i, rule) in grammar.rules.iter_mut().enumerate() {
        if ranks[i] == NEVER {
            changed |= rule.body != Expr::Never;
            rule.body = Expr::Never;
        } else if prune(&mut rule.body, &ranks) {
            fold::fold(&mut rule.body);
            changed = true;
        }
    }
    changed
}

/// Evaluations of whole rules, as a multiple of their number, before recursion is given up on.
const MAX_EVALUATIONS: usize = 32;
/// The rank of a rule that is not in the set.
pub(super) const NEVER: u32 = u32::MAX;

/// The least set of rules that `holds` puts in, given the ranks of the rules already in it; `None` if it is not found within
/// the budget. `holds` must be monotone. A rule's rank is above those of the rules that put it in; [`NEVER`] is out of the
/// set. Linear for grammars that are not recursive.
pub(super) fn least(grammar: &Grammar, holds: impl Fn(&Expr, &[u32]) -> bool) -> Option<Vec<u32>> {
    let mut ranks = vec![NEVER; grammar.rules.len()];
    let mut open: Vec<u32> =
        Calls::of(grammar).callees_first((0..grammar.rules.len()).map(RuleId::new));
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
        // What is left depends on itself or is out.
    }
}

fn derives(expr: &Expr, ranks: &[u32]) -> bool {
    match expr {
        Expr::Never => false,
        Expr::Empty | Expr::Bytes(_) | Expr::Special(_) | Expr::Dispatch(_) | Expr::Deferred(_) => {
            true
        }
        Expr::Class(set) => !set.is_empty(),
        Expr::Automaton(dfa) => !dfa.is_empty(),
        Expr::Ref(rule) => ranks[rule.index()] != NEVER,
        Expr::Seq(parts) => parts.iter().all(|part| derives(part, ranks)),
        Expr::Alt(parts) => parts.iter().any(|part| derives(part, ranks)),
        Expr::Repeat { max: Some(max), min, .. } if max < min => false,
        Expr::Repeat { body, min, .. } => *min == 0 || derives(body, ranks),
        Expr::Members(members) => members.derives(|part| derives(part, ranks)),
        Expr::Counted(counted) => derives(&counted.written_out(), ranks),
        Expr::Except(except) => except.closes() || derives(&except.written_out(), ranks),
        Expr::Graph(graph) => {
            let passes: Vec<bool> = graph.edges.iter().map(|(_, e, _)| derives(e, ranks)).collect();
            ends(graph, &passes)
        }
    }
}

/// Whether an end node is reached over the edges that pass.
pub(super) fn ends(graph: &Graph, passes: &[bool]) -> bool {
    let seen = flood(graph, &[graph.start], passes, |&(from, _, to)| (from, to));
    graph.ends.iter().any(|&end| seen[end as usize])
}

/// The nodes that are reached from `roots` over edges that pass, in the direction that `ends` gives them.
pub(super) fn flood(
    graph: &Graph,
    roots: &[u32],
    passes: &[bool],
    ends: impl Fn(&(u32, Expr, u32)) -> (u32, u32),
) -> Vec<bool> {
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes as usize];
    for (edge, _) in graph.edges.iter().zip(passes).filter(|(_, passes)| **passes) {
        let (from, to) = ends(edge);
        out[from as usize].push(to);
    }
    let mut seen = vec![false; graph.nodes as usize];
    let mut stack = roots.to_vec();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            stack.extend(&out[node as usize]);
        }
    }
    seen
}

/// Calls of rules that derive nothing become [`Expr::Never`]; returns whether there were any.
fn prune(expr: &mut Expr, ranks: &[u32]) -> bool {
    let any = |parts: &mut dyn Iterator<Item = &mut Expr>| each(parts, |part| prune(part, ranks));
    match expr {
        Expr::Ref(rule) if ranks[rule.index()] == NEVER => {
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
