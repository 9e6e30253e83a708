//! Bound on calls in a row that may all be empty.
//!
//! Before the first of n such calls, and after each, all that follow may be next. So the states of
//! the rule's automaton have n² / 2 positions together.

use super::RuleBodies;
use crate::compile::{CompileError, Compiled, CompiledRuleId};
use crate::ir::Expr;

/// Maximum number of rules that a rule calls in a row, if all may be empty.
const MAX_EMPTY_CALLS: usize = 2_048;

impl Compiled {
    /// Rejects rules with too many calls in a row that may all be empty. `callees` is the number of
    /// different rules that a rule calls.
    pub(super) fn check_empty_calls(
        &self,
        bodies: &RuleBodies<'_>,
        callees: impl Fn(CompiledRuleId) -> usize,
    ) -> Result<(), CompileError> {
        for (i, facts) in self.rules.iter().enumerate() {
            let rule = CompiledRuleId::new(i);
            if facts.reached
                && callees(rule) > MAX_EMPTY_CALLS
                && self.empty_calls(bodies.body(rule)) > MAX_EMPTY_CALLS
            {
                let named = self.split_grammar.rules.get(i);
                return Err(CompileError::Limit {
                    rule: named.map(|rule| rule.name.clone()).unwrap_or_default(),
                    what: "calls in a row that may all be empty",
                    limit: MAX_EMPTY_CALLS,
                });
            }
        }
        Ok(())
    }

    /// Upper bound on the number of calls in a row that may all be empty, but the last.
    fn empty_calls(&self, expr: &Expr) -> usize {
        match expr {
            Expr::Ref(rule) => self.inlined_rule(*rule).map_or(1, |body| self.empty_calls(body)),
            Expr::Seq(parts) => {
                let (mut longest, mut row) = (0, 0);
                for part in parts {
                    let calls = self.empty_calls(part);
                    row = if self.nullable(part) { row + calls } else { calls };
                    longest = longest.max(row);
                }
                longest
            }
            Expr::Alt(parts) => parts.iter().map(|part| self.empty_calls(part)).max().unwrap_or(0),
            Expr::Repeat { body, .. } => self.empty_calls(body),
            Expr::Graph(graph) => {
                let (mut row, mut last) = (0, 0);
                for (_, expr, _) in &graph.edges {
                    let calls = self.empty_calls(expr);
                    match self.nullable(expr) {
                        true => row += calls,
                        false => last = calls.max(last),
                    }
                }
                row + last
            }
            Expr::Except(_) => 1,
            Expr::Empty
            | Expr::Never
            | Expr::Bytes(_)
            | Expr::Class(_)
            | Expr::Special(_)
            | Expr::Deferred(_)
            | Expr::Automaton(_)
            | Expr::Counted(_)
            | Expr::Members(_)
            | Expr::Dispatch(_) => 0,
        }
    }
}
