//! Ranks: a topological order of the calls that rules make before they read a byte.
//!
//! The parser predicts callers before callees. Rules of a left-recursive component share a rank.

use super::RuleBodies;
use crate::compile::{Compiled, CompiledRuleId};
use crate::fsm::Components;
use crate::hash::HashMap;
use crate::ir::{Counted, Expr, Members};

impl Compiled {
    /// Assigns ranks: callers first; within a recursive component, by the calls made before a byte
    /// is read.
    pub(super) fn assign_ranks(&mut self, bodies: &RuleBodies<'_>, components: &Components) {
        let mut rank = 0;
        let mut members = Vec::new();
        for component in (0..components.count).rev() {
            members.clear();
            members.extend(
                components.members(component).iter().map(|&rule| CompiledRuleId::from_raw(rule)),
            );
            for rule in &members {
                self.rules[rule.index()].component = component;
            }
            if !self.rules[members[0].index()].reached {
                continue;
            }
            if !components.cyclic[component as usize] {
                self.rules[members[0].index()].rank = rank;
                rank += 1;
                continue;
            }
            let number: HashMap<CompiledRuleId, u32> =
                members.iter().enumerate().map(|(i, &r)| (r, i as u32)).collect();
            let leading: Vec<Vec<u32>> = members
                .iter()
                .map(|&rule| {
                    let mut out = Vec::new();
                    // A dispatch reads a trigger before it calls.
                    if !bodies.dispatches.contains_key(&rule) {
                        let own = bodies.is_auxiliary(rule).then_some(rule);
                        self.leading_of_rule(own, bodies.body(rule), &mut out);
                    }
                    out.iter().filter_map(|r| number.get(r).copied()).collect()
                })
                .collect();
            let inner = Components::find(members.len(), |i| &leading[i]);
            for sub in (0..inner.count).rev() {
                for &i in inner.members(sub) {
                    let facts = &mut self.rules[members[i as usize].index()];
                    (facts.rank, facts.left_recursive) = (rank, inner.cyclic[sub as usize]);
                }
                rank += 1;
            }
        }
    }

    /// Appends the rules that a rule may call before it reads a byte. `own`: its id, if it is
    /// auxiliary.
    fn leading_of_rule(
        &self,
        own: Option<CompiledRuleId>,
        body: &Expr,
        out: &mut Vec<CompiledRuleId>,
    ) {
        match body {
            Expr::Members(members) => self.leading_of_members(members, out),
            Expr::Counted(counted) if own.is_some() && self.auxiliary.find(body) == own => {
                self.first_steps(counted, out);
            }
            _ => self.leading(body, out),
        }
    }

    /// Appends the rules that a member set may call before it reads a byte.
    fn leading_of_members(&self, members: &Members, out: &mut Vec<CompiledRuleId>) {
        let firsts = members.unique.iter().map(|member| &member.body).chain(&members.repeatable);
        firsts.for_each(|first| self.leading(first, out));
    }

    /// Appends the rules that the first step of a counted graph may call before it reads a byte.
    fn first_steps(&self, counted: &Counted, out: &mut Vec<CompiledRuleId>) {
        let first = counted.graph.edges.iter().filter(|(from, _, _)| *from == counted.graph.start);
        first.for_each(|(_, e, _)| self.leading(e, out));
    }

    /// Appends the rules that an expression may call before it reads a byte.
    fn leading(&self, expr: &Expr, out: &mut Vec<CompiledRuleId>) {
        match expr {
            Expr::Empty | Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => {}
            Expr::Automaton(_) | Expr::Deferred(_) => {}
            Expr::Ref(r) => {
                if self.inlined_rule(*r).is_none() {
                    out.push((*r).into());
                }
            }
            Expr::Seq(parts) => {
                for part in parts {
                    self.leading(part, out);
                    if !self.nullable(part) {
                        break;
                    }
                }
            }
            Expr::Alt(parts) => parts.iter().for_each(|p| self.leading(p, out)),
            Expr::Repeat { max, min, .. } if max.is_some_and(|max| max < *min || max == 0) => {}
            Expr::Repeat { body, .. } => {
                out.extend(self.auxiliary.find(expr));
                self.leading(body, out);
            }
            Expr::Graph(graph) => {
                let seen = graph.reached(|e| self.nullable(e));
                let first = graph.edges.iter().filter(|(from, _, _)| seen[*from as usize]);
                first.for_each(|(_, e, _)| self.leading(e, out));
            }
            Expr::Except(except) => self.leading(&Expr::Ref(except.other), out),
            Expr::Members(members) => match self.auxiliary.find(expr) {
                Some(rule) => out.push(rule),
                None => self.leading_of_members(members, out),
            },
            Expr::Dispatch(_) | Expr::Counted(_) => out.push(self.auxiliary.rule(expr)),
        }
    }
}
