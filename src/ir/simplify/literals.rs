//! Alternatives of literals become one DFA that shares prefixes and suffixes.

use std::sync::Arc;

use super::any_changed;
use crate::fsm::Dfa;
use crate::ir::{Expr, Grammar};

/// Fewest literals for which a DFA pays off.
const MIN_LITERALS: usize = 4;

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    any_changed(&mut grammar.rules, |rule| join(&mut rule.body))
}

/// Joins the literals of each alternation within an expression.
fn join(expr: &mut Expr) -> bool {
    match expr {
        Expr::Seq(parts) => any_changed(parts, join),
        Expr::Repeat { body, .. } => join(body),
        Expr::Graph(graph) => any_changed(&mut graph.edges, |(_, e, _)| join(e)),
        Expr::Members(members) => any_changed(members.parts_mut(), join),
        Expr::Alt(parts) => {
            let changed = any_changed(parts.iter_mut(), join);
            let literals = parts.iter().filter(|p| matches!(p, Expr::Bytes(_))).count();
            if literals < MIN_LITERALS {
                return changed;
            }
            let at = parts.iter().position(|p| matches!(p, Expr::Bytes(_))).unwrap_or(0);
            let words: Vec<Vec<u32>> = parts
                .iter()
                .filter_map(|p| if let Expr::Bytes(bytes) = p { Some(bytes) } else { None })
                .map(|bytes| bytes.iter().map(|&b| u32::from(b)).collect())
                .collect();
            parts[at] = Expr::Automaton(Arc::new(Dfa::words(words)));
            parts.retain(|p| !matches!(p, Expr::Bytes(_)));
            if let [only] = &mut parts[..] {
                *expr = std::mem::replace(only, Expr::Empty);
            }
            true
        }
        _ => false,
    }
}
