//! Warnings: rules that are unreachable, rules that derive no text, and costly ambiguity.

use super::ast::RuleDef;
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::ids::RuleId;
use crate::ir::{Expr, Grammar};

/// Maximum number of rounds of the fixed point of productive rules. Hand-written grammars need two
/// or three.
const MAX_ROUNDS: usize = 64;

/// Adds the warnings for a grammar whose first rules are `rules`. Cost: linear per round.
pub(super) fn warnings(grammar: &Grammar, rules: &[RuleDef], diagnostics: &mut Diagnostics) {
    let order = callees_first(grammar);
    let mut reached = vec![false; grammar.rules.len()];
    visit(grammar, grammar.start, &mut reached, &mut Vec::new());
    let productive = productive(grammar, &order);
    for (i, rule) in rules.iter().enumerate() {
        let (name, span) = (&rule.name.text, rule.name.span.clone());
        if !reached[i] {
            let message = format!("nothing leads to the rule `{name}`");
            diagnostics.push(Diagnostic::warning(span.clone(), message));
        }
        if productive.as_ref().is_some_and(|productive| !productive[i]) {
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

/// The rules an expression refers to.
fn references(expr: &Expr, out: &mut Vec<RuleId>) {
    match expr {
        Expr::Ref(rule) => out.push(*rule),
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().for_each(|part| references(part, out)),
        Expr::Repeat { body, .. } => references(body, out),
        Expr::Graph(graph) => graph.edges.iter().for_each(|(_, expr, _)| references(expr, out)),
        Expr::Members(members) => members.parts().for_each(|part| references(part, out)),
        Expr::Except(except) => out.extend([except.tail, except.other]),
        Expr::Counted(counted) => {
            counted.graph.edges.iter().for_each(|(_, expr, _)| references(expr, out))
        }
        Expr::Dispatch(dispatch) => out.extend(dispatch.tags.iter().map(|(_, rule)| *rule)),
        Expr::Empty | Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => {}
        Expr::Automaton(_) | Expr::Deferred(_) => {}
    }
}

/// Marks the rules reachable from a rule, and appends them to `order` in post-order.
fn visit(grammar: &Grammar, from: RuleId, seen: &mut [bool], order: &mut Vec<RuleId>) {
    if std::mem::replace(&mut seen[from.index()], true) {
        return;
    }
    let callees = |rule: RuleId| {
        let mut out = Vec::new();
        references(&grammar.rules[rule.index()].body, &mut out);
        out
    };
    let mut stack = vec![(from, callees(from))];
    while let Some((rule, todo)) = stack.last_mut() {
        match todo.pop() {
            Some(next) if !std::mem::replace(&mut seen[next.index()], true) => {
                stack.push((next, callees(next)))
            }
            Some(_) => {}
            None => {
                order.push(*rule);
                stack.pop();
            }
        }
    }
}

/// All rules in an order where callees precede callers, except in recursion. Linear.
pub(super) fn callees_first(grammar: &Grammar) -> Vec<RuleId> {
    let mut seen = vec![false; grammar.rules.len()];
    let mut order = Vec::with_capacity(seen.len());
    for i in 0..grammar.rules.len() {
        visit(grammar, RuleId::new(i), &mut seen, &mut order);
    }
    order
}

/// Per rule, whether it derives a text; `None` after too many rounds.
fn productive(grammar: &Grammar, order: &[RuleId]) -> Option<Vec<bool>> {
    let mut out = vec![false; grammar.rules.len()];
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for rule in order {
            let i = rule.index();
            if !out[i] && derives(&grammar.rules[i].body, &out) {
                out[i] = true;
                changed = true;
            }
        }
        if !changed {
            return Some(out);
        }
    }
    None
}

/// Whether an expression derives a text if exactly the given rules do.
fn derives(expr: &Expr, rules: &[bool]) -> bool {
    match expr {
        Expr::Empty | Expr::Bytes(_) | Expr::Special(_) => true,
        Expr::Never => false,
        Expr::Class(set) => !set.is_empty(),
        Expr::Ref(rule) => rules[rule.index()],
        Expr::Seq(parts) => parts.iter().all(|part| derives(part, rules)),
        Expr::Alt(parts) => parts.iter().any(|part| derives(part, rules)),
        Expr::Repeat { body, min, .. } => *min == 0 || derives(body, rules),
        Expr::Automaton(dfa) => !dfa.is_empty(),
        Expr::Members(members) => members.derives(|part| derives(part, rules)),
        Expr::Counted(counted) => derives(&counted.to_graph(), rules),
        Expr::Except(except) => derives(&except.to_graph(), rules),
        Expr::Graph(graph) => {
            let mut reached = vec![false; graph.nodes as usize];
            let mut out: Vec<Vec<u32>> = vec![Vec::new(); reached.len()];
            for (from, expr, to) in &graph.edges {
                if derives(expr, rules) {
                    out[*from as usize].push(*to);
                }
            }
            let mut stack = vec![graph.start];
            while let Some(node) = stack.pop() {
                if !std::mem::replace(&mut reached[node as usize], true) {
                    stack.extend(&out[node as usize]);
                }
            }
            graph.ends.iter().any(|&end| reached[end as usize])
        }
        // Free text may end almost anywhere; stops are not considered.
        Expr::Dispatch(_) | Expr::Deferred(_) => true,
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
