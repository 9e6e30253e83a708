//! Productive and nullable rules: which rules derive a finite text, and which the empty text.

use super::RuleBodies;
use crate::compile::expressions::inlined_body;
use crate::compile::{Compiled, CompiledRuleId};
use crate::fsm::Components;
use crate::ids::RuleId;
use crate::ir::{Counted, Expr};

impl Compiled {
    /// Computes which rules are productive and nullable.
    pub(super) fn find_productive_and_nullable(
        &mut self,
        bodies: &RuleBodies<'_>,
        components: &Components,
    ) {
        components.fixpoint(|rule| {
            let rule = CompiledRuleId::from_raw(rule);
            let facts = self.rules[rule.index()];
            if !facts.reached {
                return false;
            }
            let (productive, nullable) = match bodies.dispatches.get(&rule) {
                Some(pending) => (
                    facts.productive || pending.can_end(|r| self.rules[r.index()].productive, true),
                    facts.nullable || pending.can_end(|r| self.rules[r.index()].nullable, false),
                ),
                None => {
                    let body = bodies.body(rule);
                    (
                        facts.productive || self.productive(body),
                        facts.nullable || self.nullable(body),
                    )
                }
            };
            let changed = (productive, nullable) != (facts.productive, facts.nullable);
            let facts = &mut self.rules[rule.index()];
            (facts.productive, facts.nullable) = (productive, nullable);
            changed
        });
    }

    /// Whether an expression derives a finite text.
    pub(in crate::compile) fn productive(&self, expr: &Expr) -> bool {
        expr.derives_text(&mut |expr| match expr {
            Expr::Ref(r) => Some(match self.inlined_rule(*r) {
                Some(body) => self.productive(body),
                None => self.rules[r.index()].productive,
            }),
            Expr::Counted(counted) => {
                let Counted { graph, min, max } = &**counted;
                Some(self.auxiliary.path_lengths(expr).has_path_within(graph.start, *min, *max))
            }
            Expr::Dispatch(_) => Some(self.rules[self.auxiliary.rule(expr).index()].productive),
            _ => None,
        })
    }

    /// Whether an expression derives the empty string.
    pub(in crate::compile) fn nullable(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Empty => true,
            Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => false,
            Expr::Deferred(deferred) => deferred.is_nullable(),
            Expr::Ref(r) => self
                .inlined_rule(*r)
                .map_or_else(|| self.rules[r.index()].nullable, |e| self.nullable(e)),
            Expr::Seq(parts) => parts.iter().all(|p| self.nullable(p)),
            Expr::Alt(parts) => parts.iter().any(|p| self.nullable(p)),
            Expr::Repeat { body, min, max } => {
                max.is_none_or(|max| max >= *min) && (*min == 0 || self.nullable(body))
            }
            Expr::Automaton(dfa) => dfa.is_final(0),
            Expr::Counted(counted) => {
                counted.min == 0 && counted.graph.ends.contains(&counted.graph.start)
            }
            Expr::Except(except) => self.nullable(&Expr::Ref(except.other)),
            Expr::Graph(graph) => graph.has_path(|e| self.nullable(e)),
            Expr::Members(members) => members.nullable(),
            Expr::Dispatch(_) => self.rules[self.auxiliary.rule(expr).index()].nullable,
        }
    }

    /// The body of a rule that is inlined where it is called.
    pub(super) fn inlined_rule(&self, rule: RuleId) -> Option<&Expr> {
        inlined_body(&self.split_grammar.rules[rule.index()])
    }
}
