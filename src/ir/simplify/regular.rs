//! Rules of names that call others and are regular languages all the same, such as names that must not be reserved words,
//! written letter by letter, become one minimal automaton. In rules that are built one by one, the same text leads to
//! different states that do the same; masks cannot know.
//!
//! What has free text in it stays as it is, as in [`super::inline`], and so do counted repeats, whose counters cost less, and
//! what has no names in it, such as numbers: their masks are read rule by rule.

use std::sync::Arc;

use super::call_graph::CallGraph;
use super::inline::{WIDE_CLASS, has_free_text};
use crate::fsm::Dfa;
use crate::ir::regular::automaton;
use crate::ir::{Expr, Grammar, Rule};

/// Most states of an automaton.
const MAX_STATES: usize = 1024;
/// Bytes that may come next in a name.
const MIN_NAME_BYTES: u32 = 48;
/// Most runs of a repeat that are written out.
const MAX_UNROLLED: u32 = 4;

pub(super) fn run(grammar: &mut Grammar) -> bool {
    let calls = CallGraph::build(grammar);
    let (callers, recursive) = (calls.reversed(), calls.recursive());
    let mut uses = calls.reference_counts();
    let (mut regular, mut named) = (vec![false; calls.len()], vec![false; calls.len()]);
    let order = calls.callees_first([grammar.start]);
    for &rule in &order {
        let callees = calls.callees(rule);
        let written = callees
            .iter()
            .all(|&c| regular[c as usize] && grammar.rules[c as usize].attributes.is_empty());
        let body = &grammar.rules[rule as usize].body;
        regular[rule as usize] = written && !recursive[rule as usize] && is_regular(body);
        named[rule as usize] = callees.iter().any(|&c| named[c as usize]) || has_name(body);
    }
    let mut budget = grammar.size() / 16 + 8;
    let mut changed = false;
    for rule in order {
        let i = rule as usize;
        let part = callers
            .callees(rule)
            .iter()
            .all(|&caller| regular[caller as usize] && uses[caller as usize] > 0);
        if !(regular[i] && named[i])
            || calls.callees(rule).is_empty()
            || part && grammar.start.index() != i
        {
            continue;
        }
        let Some(dfa) = rule_automaton(&grammar.rules, i) else { continue };
        let (size, before) = (dfa.edge_count().max(1), grammar.rules[i].body.size());
        // What nobody calls any more is dropped with it.
        let mut left = uses.clone();
        let mut freed = 0;
        let mut dropped: Vec<u32> = calls.callees(rule).to_vec();
        while let Some(callee) = dropped.pop() {
            left[callee as usize] -= 1;
            if left[callee as usize] == 0 && callee != grammar.start.raw() {
                freed += grammar.rules[callee as usize].body.size() + 1;
                dropped.extend(calls.callees(callee));
            }
        }
        let growth = size.saturating_sub(before + freed);
        if growth > budget {
            continue;
        }
        budget -= growth;
        uses = left;
        grammar.rules[i].body = Expr::Automaton(Arc::new(dfa));
        changed = true;
    }
    changed
}

/// The automaton of a rule of names with all it calls, unless it is large.
fn rule_automaton(rules: &[Rule], rule: usize) -> Option<Dfa> {
    let dfa = automaton(&rules[rule].body, rules, MAX_STATES).ok()?;
    (MIN_NAME_BYTES..WIDE_CLASS as u32).contains(&widest(&dfa)).then_some(dfa)
}

/// Whether an expression, but for what it calls, has what a name may go on with.
fn has_name(expr: &Expr) -> bool {
    match expr {
        Expr::Class(set) => set.len() >= MIN_NAME_BYTES as usize,
        Expr::Repeat { body, .. } => has_name(body),
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().any(has_name),
        Expr::Graph(graph) => graph.edges.iter().any(|(_, e, _)| has_name(e)),
        Expr::Automaton(dfa) => widest(dfa) >= MIN_NAME_BYTES,
        _ => false,
    }
}

/// Bytes that the state with the most of them reads.
fn widest(dfa: &Dfa) -> u32 {
    (0..dfa.len() as u32)
        .map(|s| dfa.edges(s).iter().map(|e| e.hi - e.lo + 1).sum())
        .max()
        .unwrap_or(0)
}

/// Whether an expression, but for what it calls, is regular, without free text and without long counts.
fn is_regular(expr: &Expr) -> bool {
    match expr {
        Expr::Special(_)
        | Expr::Dispatch(_)
        | Expr::Members(_)
        | Expr::Except(_)
        | Expr::Counted(_) => false,
        Expr::Deferred(_) => false,
        Expr::Repeat { body, min, max } => {
            *min <= MAX_UNROLLED && max.is_none_or(|max| max <= MAX_UNROLLED) && is_regular(body)
        }
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().all(is_regular),
        Expr::Graph(graph) => graph.edges.iter().all(|(_, e, _)| is_regular(e)),
        Expr::Automaton(_) => !has_free_text(expr, false),
        Expr::Class(set) => set.len() < WIDE_CLASS,
        Expr::Empty | Expr::Never | Expr::Bytes(_) | Expr::Ref(_) => true,
    }
}
