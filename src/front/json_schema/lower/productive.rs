//! Whether the grammar of a schema derives any text.

use crate::ids::RuleId;
use crate::ir::{CallGraph, Expr, Rule};

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

/// Whether an expression derives a text, given the rules that do.
fn derives(expr: &Expr, is_productive: &mut dyn FnMut(RuleId) -> bool) -> bool {
    expr.derives_text(&mut |part| match part {
        Expr::Ref(rule) => Some(is_productive(*rule)),
        // Such a graph is made only if it derives a text.
        Expr::Counted(_) => Some(true),
        _ => None,
    })
}
