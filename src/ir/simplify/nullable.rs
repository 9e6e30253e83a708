//! Redundant optionality: where `x` is nullable, `x?` is `x`, `x{m,n}` is `x{0,n}`, and `"" | x` is
//! `x`.

use super::graph_paths::reaches_end;
use super::useless::{NOT_IN_SET, least_fixpoint};
use super::{any_changed, fold};
use crate::ir::{Expr, Grammar};

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    let Some(ranks) = least_fixpoint(grammar, |body, ranks| {
        nullable(body, &NullableRules { ranks, below: NOT_IN_SET })
    }) else {
        return false;
    };
    let mut changed = false;
    for (rule, &below) in grammar.rules.iter_mut().zip(&ranks) {
        if resolve(&mut rule.body, &NullableRules { ranks: &ranks, below }) {
            fold::fold(&mut rule.body);
            changed = true;
        }
    }
    changed
}

/// The rules that may be assumed nullable within a rule: those whose nullability was established
/// before the rule's own. Else a rule's own nullability could be used to remove the reason for it.
struct NullableRules<'r> {
    ranks: &'r [u32],
    below: u32,
}

/// Whether an expression is nullable.
fn nullable(expr: &Expr, known: &NullableRules<'_>) -> bool {
    match expr {
        Expr::Empty => true,
        Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => false,
        Expr::Dispatch(_) => false,
        Expr::Deferred(deferred) => deferred.is_nullable(),
        Expr::Automaton(dfa) => dfa.is_final(0),
        Expr::Ref(rule) => known.ranks[rule.index()] < known.below,
        Expr::Counted(counted) => {
            counted.min == 0 && counted.graph.ends.contains(&counted.graph.start)
        }
        Expr::Except(except) => known.ranks[except.other.index()] < known.below,
        Expr::Seq(parts) => parts.iter().all(|part| nullable(part, known)),
        Expr::Alt(parts) => parts.iter().any(|part| nullable(part, known)),
        Expr::Repeat { max: Some(max), min, .. } if max < min => false,
        Expr::Repeat { body, min, .. } => *min == 0 || nullable(body, known),
        Expr::Members(members) => members.nullable(),
        Expr::Graph(graph) => {
            let passes: Vec<bool> =
                graph.edges.iter().map(|(_, e, _)| nullable(e, known)).collect();
            reaches_end(graph, &passes)
        }
    }
}

/// Simplifies an expression; returns whether it changed.
fn resolve(expr: &mut Expr, known: &NullableRules<'_>) -> bool {
    let all = |parts: &mut dyn Iterator<Item = &mut Expr>| {
        any_changed(parts, |part| resolve(part, known))
    };
    match expr {
        Expr::Seq(parts) => all(&mut parts.iter_mut()),
        Expr::Graph(graph) => all(&mut graph.edges.iter_mut().map(|(_, e, _)| e)),
        Expr::Members(members) => all(&mut members.parts_mut()),
        Expr::Alt(parts) => {
            let changed = all(&mut parts.iter_mut());
            let Some(empty) = parts.iter().position(|p| *p == Expr::Empty) else { return changed };
            let covered = parts.iter().any(|p| *p != Expr::Empty && nullable(p, known));
            if covered {
                parts.remove(empty);
            }
            changed || covered
        }
        Expr::Repeat { body, min, max } => {
            let changed = resolve(body, known);
            if max.is_some_and(|max| max < *min) || !nullable(body, known) {
                return changed;
            }
            if *max == Some(1) {
                let body = std::mem::replace(&mut **body, Expr::Empty);
                *expr = body;
                return true;
            }
            let changed = changed || *min > 0;
            *min = 0;
            changed
        }
        _ => false,
    }
}
