//! Inlining: tiny rules everywhere, larger ones if they are used once. Not inlined are:
//!
//! * labelled and recursive rules, tag bodies, dispatches and member sets;
//! * rules that call a unique key, which differs within one occurrence of its caller;
//! * counted repeats of a class, which the compiler inlines itself with a shared counter;
//! * free text (a repeat over most bytes). Its states have the costly masks, which grammars share
//!   as long as the rule around them is the same. Inlined, each string of each schema would have
//!   masks of its own.

use crate::ir::call_graph::CallGraph;
use crate::ir::{Expr, Grammar, Rule};

/// Largest rule that is inlined everywhere.
const MAX_TINY: usize = 4;
/// Largest rule that is inlined at its only use.
const MAX_USED_ONCE: usize = 256;
/// Largest rule after inlining. Determinising a rule costs more than determinising its parts.
const MAX_RESULT: usize = 1024;
/// Deepest expression after inlining; far below the limit of [`Grammar::validate`].
const MAX_DEPTH: usize = 200;

/// Classes of at least this many bytes are wide.
pub(super) const WIDE_CLASS: usize = 80;

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    let calls = CallGraph::build(&grammar.rules);
    let (uses, recursive) = (calls.reference_counts(), calls.recursive());
    let calls_key = key_callers(grammar);
    let budget = grammar.size() / 16 + 8;
    let mut inliner = Inliner {
        inlinable: vec![None; grammar.rules.len()],
        uses,
        budget,
        rules: &mut grammar.rules,
    };
    let mut tags = vec![false; inliner.rules.len()];
    inliner.rules.iter().for_each(|rule| mark_tags(&rule.body, &mut tags));
    let mut changed = false;
    for rule in calls.callees_first([grammar.start]) {
        let i = rule as usize;
        if calls.callees(rule).iter().any(|&callee| inliner.inlinable[callee as usize].is_some()) {
            let mut body = std::mem::replace(&mut inliner.rules[i].body, Expr::Never);
            let mut size = ExprSize::measure(&body);
            if inliner.substitute(&mut body, &mut size) {
                changed = true;
            }
            inliner.rules[i].body = body;
        }
        let fixed = !inliner.rules[i].attributes.is_empty()
            || calls_key[i]
            || recursive[i]
            || tags[i]
            || grammar.start.index() == i;
        if fixed || inliner.uses[i] == 0 {
            continue;
        }
        let body = &inliner.rules[i].body;
        let size = ExprSize::measure(body);
        let small = size.nodes <= MAX_TINY || inliner.uses[i] == 1 && size.nodes <= MAX_USED_ONCE;
        if small && is_inlinable(body) {
            inliner.inlinable[i] = Some(size);
        }
    }
    changed
}

/// By rule: whether it calls a rule of unique keys.
pub(super) fn key_callers(grammar: &Grammar) -> Vec<bool> {
    let calls_key = |rule: &Rule| {
        let mut any = false;
        rule.body.each_ref(&mut |rule| any |= grammar.rules[rule.index()].attributes.unique_key);
        any
    };
    grammar.rules.iter().map(calls_key).collect()
}

/// The size of an expression.
#[derive(Clone, Copy)]
struct ExprSize {
    nodes: usize,
    depth: usize,
}

impl ExprSize {
    /// The size of an expression.
    fn measure(expr: &Expr) -> ExprSize {
        ExprSize { nodes: expr.size(), depth: depth(expr) }
    }
}

/// Nesting depth.
fn depth(expr: &Expr) -> usize {
    expr.children().map(depth).max().unwrap_or(0) + 1
}

/// Whether an expression may be inlined.
fn is_inlinable(body: &Expr) -> bool {
    match body {
        Expr::Dispatch(_) | Expr::Members(_) | Expr::Deferred(_) => false,
        Expr::Repeat { body, .. } if matches!(**body, Expr::Class(_)) => false,
        _ => !has_free_text(body, false),
    }
}

/// Whether an expression repeats a wide class. `repeated`: it is itself inside of a repeat.
pub(super) fn has_free_text(expr: &Expr, repeated: bool) -> bool {
    match expr {
        Expr::Class(set) => repeated && set.len() >= WIDE_CLASS,
        Expr::Automaton(dfa) => (0..dfa.len() as u32).any(|s| {
            dfa.edges(s).iter().map(|e| e.hi - e.lo + 1).sum::<u32>() as usize >= WIDE_CLASS
        }),
        Expr::Counted(_) => false,
        expr => {
            let repeats = match expr {
                Expr::Repeat { max, .. } => max.is_none_or(|max| max > 1),
                Expr::Graph(_) | Expr::Members(_) => true,
                _ => false,
            };
            expr.children().any(|part| has_free_text(part, repeated || repeats))
        }
    }
}

/// Marks the rules that are tag bodies.
fn mark_tags(expr: &Expr, tags: &mut [bool]) {
    if let Expr::Dispatch(dispatch) = expr {
        dispatch.tags.iter().for_each(|(_, rule)| tags[rule.index()] = true);
    }
    expr.children().for_each(|part| mark_tags(part, tags));
}

/// The state of the pass.
struct Inliner<'g> {
    /// The rules; the body that is being changed is taken out.
    rules: &'g mut [Rule],
    /// By rule: its size, if it may be inlined and its body is final.
    inlinable: Vec<Option<ExprSize>>,
    uses: Vec<u32>,
    /// Remaining growth of the grammar.
    budget: usize,
}

impl Inliner<'_> {
    /// Inlines callees; `size` is the size of the whole rule. Returns whether anything changed.
    fn substitute(&mut self, expr: &mut Expr, size: &mut ExprSize) -> bool {
        // What is counted was too large to be written out.
        if matches!(expr, Expr::Counted(_)) {
            return false;
        }
        let Expr::Ref(rule) = expr else {
            let parts = expr.children_mut();
            return parts.fold(false, |changed, part| self.substitute(part, size) | changed);
        };
        let i = rule.index();
        let Some(inner) = self.inlinable[i] else { return false };
        let once = self.uses[i] == 1;
        let growth = if once { 0 } else { inner.nodes - 1 };
        let grown = ExprSize { nodes: size.nodes + inner.nodes, depth: size.depth + inner.depth };
        if growth > self.budget || grown.nodes > MAX_RESULT || grown.depth > MAX_DEPTH {
            return false;
        }
        self.budget -= growth;
        *size = grown;
        // The rule was used only here, so its body can be moved.
        let body = &mut self.rules[i].body;
        *expr = if once { std::mem::replace(body, Expr::Never) } else { body.clone() };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::GrammarBuilder;
    use crate::ir::simplify::loops;

    /// Two occurrences of a rule may have equal keys; one may not.
    #[test]
    fn rules_that_call_unique_keys_stay() {
        let mut builder = GrammarBuilder::new();
        let key = builder.rule("key", Expr::text("k"));
        builder.attributes(key).unique_key = true;
        let pair = builder.rule("pair", Expr::seq([Expr::Ref(key), Expr::text(":")]));
        let list = builder.declare("list");
        let more = Expr::seq([Expr::Ref(list), Expr::Ref(key)]);
        builder.define(list, Expr::alt([Expr::Ref(key), more]));
        let parts = [pair, pair, list].map(Expr::Ref);
        let start = builder.rule("start", Expr::seq(parts));
        let mut grammar = builder.into_grammar(start);
        assert!(!run(&mut grammar) && !loops::run(&mut grammar));
    }
}
