//! Conversion of regular rules for identifiers into one minimal automaton.
//!
//! An example is an identifier that must not be a reserved word, written as a rule per letter. In
//! separate rules, the same text leads to different but equivalent states, whose masks are then
//! computed separately.
//!
//! Not converted are: free text, as in [`super::inline`]; counted repeats, whose counters cost
//! less; and rules without identifiers, such as numbers, whose masks are cheap rule by rule.

use std::sync::Arc;

use super::inline::{WIDE_CLASS, has_free_text};
use crate::fsm::Dfa;
use crate::ir::call_graph::CallGraph;
use crate::ir::regular::automaton;
use crate::ir::{Expr, Grammar, Rule};

/// Most states of an automaton.
const MAX_STATES: usize = 1024;
/// A state that reads at least this many bytes belongs to an identifier.
const MIN_NAME_BYTES: u32 = 48;
/// Most repetitions of a repeat that is unrolled.
const MAX_UNROLLED: u32 = 4;

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    let calls = CallGraph::build(&grammar.rules);
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
        // Callees without remaining callers are dropped with the rule.
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

/// The automaton of an identifier rule with its callees inlined, unless it is large.
fn rule_automaton(rules: &[Rule], rule: usize) -> Option<Dfa> {
    let dfa = automaton(&rules[rule].body, rules, MAX_STATES).ok()?;
    (MIN_NAME_BYTES..WIDE_CLASS as u32).contains(&widest(&dfa)).then_some(dfa)
}

/// Whether an expression, its callees aside, contains an identifier character.
fn has_name(expr: &Expr) -> bool {
    match expr {
        Expr::Class(set) => set.len() >= MIN_NAME_BYTES as usize,
        Expr::Automaton(dfa) => widest(dfa) >= MIN_NAME_BYTES,
        expr => expr.children().any(has_name),
    }
}

/// The most bytes that one state reads.
fn widest(dfa: &Dfa) -> u32 {
    (0..dfa.len() as u32)
        .map(|s| dfa.edges(s).iter().map(|e| e.hi - e.lo + 1).sum())
        .max()
        .unwrap_or(0)
}

/// Whether an expression, its callees aside, is regular, without free text and without long
/// repeats.
fn is_regular(expr: &Expr) -> bool {
    match expr {
        Expr::Special(_)
        | Expr::Dispatch(_)
        | Expr::Members(_)
        | Expr::Except(_)
        | Expr::Counted(_) => false,
        Expr::Deferred(_) => false,
        Expr::Repeat { min, max, .. } if (*max).unwrap_or(*min).max(*min) > MAX_UNROLLED => false,
        Expr::Automaton(_) => !has_free_text(expr, false),
        Expr::Class(set) => set.len() < WIDE_CLASS,
        expr => expr.children().all(is_regular),
    }
}
