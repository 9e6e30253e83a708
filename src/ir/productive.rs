//! Productive rules: those that derive a finite text.

use super::{Expr, Rule};
use crate::fsm::{Components, Csr};

/// Which rules are productive.
pub(crate) struct ProductiveRules {
    /// The number of rules that were not examined, and count as productive.
    unexamined: usize,
    /// By rule after these.
    productive: Vec<bool>,
}

impl ProductiveRules {
    /// Examines all rules but the first ones, which count as productive. Cost: linear without
    /// recursion.
    pub(crate) fn find(rules: &[Rule], unexamined: usize) -> ProductiveRules {
        let rules = &rules[unexamined..];
        let calls = Csr::from_rows(rules, |rule, callees| {
            rule.body.each_ref(&mut |callee| {
                callees.extend(callee.index().checked_sub(unexamined).map(|callee| callee as u32));
            });
        });
        let components = Components::find(rules.len(), |rule| calls.row(rule as u32));
        let mut out = ProductiveRules { unexamined, productive: vec![false; rules.len()] };
        components.fixpoint(|rule| {
            let rule = rule as usize;
            let is_new = !out.productive[rule] && out.derives_text(&rules[rule].body);
            out.productive[rule] |= is_new;
            is_new
        });
        out
    }

    /// Whether a rule is productive.
    pub(crate) fn contains(&self, rule: usize) -> bool {
        rule.checked_sub(self.unexamined).is_none_or(|rule| self.productive[rule])
    }

    /// Whether an expression derives a text. Free text may end almost anywhere: its stops are not
    /// considered.
    pub(crate) fn derives_text(&self, expr: &Expr) -> bool {
        expr.derives_text(&mut |part| match part {
            Expr::Ref(rule) => Some(self.contains(rule.index())),
            _ => None,
        })
    }
}
