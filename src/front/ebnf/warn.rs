//! Warnings: rules that are unreachable, rules that derive no text, and costly ambiguity.

use super::ast::RuleDef;
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::ids::RuleId;
use crate::ir::{CallGraph, Expr, Grammar, ProductiveRules};

/// Adds the warnings for a grammar whose first rules are `rules`.
pub(super) fn warnings(grammar: &Grammar, rules: &[RuleDef], diagnostics: &mut Diagnostics) {
    let calls = CallGraph::build(&grammar.rules);
    let mut reached = vec![false; grammar.rules.len()];
    calls.callees_first([grammar.start]).iter().for_each(|&rule| reached[rule as usize] = true);
    let productive = ProductiveRules::find(&grammar.rules, 0);
    for (i, rule) in rules.iter().enumerate() {
        let (name, span) = (&rule.name.text, rule.name.span.clone());
        if !reached[i] {
            let message = format!("nothing leads to the rule `{name}`");
            diagnostics.push(Diagnostic::warning(span.clone(), message));
        }
        if !productive.contains(i) {
            let message = format!("the rule `{name}` derives no text at all");
            let label = "every way through it leads back to it, or into an empty class";
            diagnostics.push(Diagnostic::warning(span.clone(), message).label(label));
        }
        if is_doubly_recursive(&grammar.rules[i].body, RuleId::new(i)) {
            let message = format!(
                "the rule `{name}` begins and ends with itself: texts have very many derivations"
            );
            let help = format!(
                "write what repeats as a repetition, as in `{name} ::= one (between one)*`"
            );
            diagnostics.push(Diagnostic::warning(span, message).help(help));
        }
    }
}

/// Whether a rule has an alternative that begins and ends with itself: `S ::= S S` or `S ::= S op
/// S`.
fn is_doubly_recursive(body: &Expr, rule: RuleId) -> bool {
    match body {
        Expr::Alt(parts) => parts.iter().any(|part| is_doubly_recursive(part, rule)),
        Expr::Seq(parts) => {
            let is = |part: Option<&Expr>| part == Some(&Expr::Ref(rule));
            parts.len() > 1 && is(parts.first()) && is(parts.last())
        }
        _ => false,
    }
}
