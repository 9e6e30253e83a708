//! Whether the grammar of a schema derives any text.

use crate::ids::RuleId;
use crate::ir::{CallGraph, Expr, Graph, Rule};

/// Whether a value is productive is first decided by a search of at most [`QUICK_SEARCH_RULES`]
/// rules and [`QUICK_SEARCH_DEPTH`] levels, then by a fixpoint over all rules.
const QUICK_SEARCH_RULES: usize = 256;
/// See [`QUICK_SEARCH_RULES`].
const QUICK_SEARCH_DEPTH: usize = 32;

/// Whether an expression derives any text. The first rules are the caller's, and count as
/// productive.
pub(super) fn is_productive(value: &Expr, rules: &[Rule], caller_rules: usize) -> bool {
    let mut productive = vec![false; rules.len()];
    productive[..caller_rules].fill(true);
    let mut search = QuickSearch { rules, productive: &mut productive, left: QUICK_SEARCH_RULES };
    if search.finds_text(value, QUICK_SEARCH_DEPTH) {
        return true;
    }
    let callees_first = CallGraph::build(rules).all_callees_first();
    loop {
        let mut changed = false;
        // Callees come first, so that only recursion needs further rounds.
        for rule in callees_first.iter().map(|&rule| rule as usize) {
            let body = &rules[rule].body;
            if !productive[rule] && derives(body, &mut |rule| productive[rule.index()]) {
                productive[rule] = true;
                changed = true;
            }
        }
        if derives(value, &mut |rule| productive[rule.index()]) {
            return true;
        }
        if !changed {
            return false;
        }
    }
}

/// A bounded search for a text that an expression derives.
struct QuickSearch<'g> {
    rules: &'g [Rule],
    /// The rules that are known to derive a text.
    productive: &'g mut [bool],
    /// How many rules may still be searched.
    left: usize,
}

impl QuickSearch<'_> {
    /// Whether a text is found. Marks the rules that derive one.
    fn finds_text(&mut self, expr: &Expr, depth: usize) -> bool {
        let rules = self.rules;
        derives(expr, &mut |rule| {
            if !self.productive[rule.index()] && depth > 0 && self.left > 0 {
                self.left -= 1;
                self.productive[rule.index()] =
                    self.finds_text(&rules[rule.index()].body, depth - 1);
            }
            self.productive[rule.index()]
        })
    }
}

/// Whether an expression derives any text, given the productive rules.
fn derives(expr: &Expr, is_productive: &mut dyn FnMut(RuleId) -> bool) -> bool {
    match expr {
        Expr::Never => false,
        Expr::Empty | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => true,
        Expr::Dispatch(_) | Expr::Deferred(_) => true,
        Expr::Automaton(dfa) => !dfa.is_empty(),
        // Such a graph is made only if it derives a text.
        Expr::Counted(_) => true,
        Expr::Except(except) => {
            except.is_always_productive() || derives(&except.to_graph(), is_productive)
        }
        Expr::Ref(rule) => is_productive(*rule),
        Expr::Seq(parts) => parts.iter().all(|p| derives(p, is_productive)),
        Expr::Alt(parts) => parts.iter().any(|p| derives(p, is_productive)),
        Expr::Repeat { body, min, max } => {
            *max == Some(0) || *min == 0 || derives(body, is_productive)
        }
        Expr::Members(members) => members.derives(|part| derives(part, is_productive)),
        Expr::Graph(graph) => graph_derives(graph, is_productive),
    }
}

/// As [`derives`], for a graph.
fn graph_derives(graph: &Graph, is_productive: &mut dyn FnMut(RuleId) -> bool) -> bool {
    let mut seen = vec![false; graph.nodes as usize];
    seen[graph.start as usize] = true;
    // Edges mostly lead to later nodes, so few rounds are needed.
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (from, expr, to) in &graph.edges {
            if seen[*from as usize] && !seen[*to as usize] && derives(expr, is_productive) {
                seen[*to as usize] = true;
                changed = true;
            }
        }
    }
    graph.ends.iter().any(|&end| seen[end as usize])
}
