//! Minimal automata of rules that are regular languages over bytes, shared by all grammars of the process: strings,
//! numbers, dates and names come again in every schema.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::facts::Leaf;
use super::{Compiled, thompson};
use crate::fsm::Dfa;
use crate::ir::Expr;

/// Largest automaton, in nondeterministic states, that is determinised as a whole.
const MAX_STATES: u32 = 2_000;
/// Most states all shared automata may have before they are dropped and built anew.
const MAX_HELD: usize = 200_000;

/// Automata by expression, compared whole.
#[derive(Default)]
struct Held {
    by_expr: FxHashMap<Expr, Arc<Dfa>>,
    states: usize,
}

static LEAVES: Mutex<Option<Held>> = Mutex::new(None);

/// The minimal automaton of a rule; `None` if the rule is no leaf, or too large to be determinised as a whole.
pub(super) fn automaton(compiled: &Compiled, rule: u32) -> Option<Arc<Dfa>> {
    let facts = &compiled.rules[rule as usize];
    let body = &compiled.parsed.rules.get(rule as usize)?.body;
    if let Expr::Automaton(dfa) = body
        && dfa.is_trim()
    {
        return Some(dfa.clone());
    }
    if facts.leaf == Leaf::No || facts.nodes > MAX_STATES {
        return None;
    }
    if facts.leaf == Leaf::Written {
        return minimal(compiled, body);
    }
    if let Some(known) = LEAVES.lock().get_or_insert_default().by_expr.get(body) {
        return Some(known.clone());
    }
    let dfa = minimal(compiled, body)?;
    let mut leaves = LEAVES.lock();
    let held = leaves.get_or_insert_default();
    if held.states + dfa.len() > MAX_HELD {
        *held = Held::default();
    }
    held.states += dfa.len();
    held.by_expr.insert(body.clone(), dfa.clone());
    Some(dfa)
}

fn minimal(compiled: &Compiled, body: &Expr) -> Option<Arc<Dfa>> {
    let nfa = thompson::leaf(compiled, body);
    // Past a small multiple of the nondeterministic size, states are better made as they are met.
    let dfa = nfa.determinize(nfa.len() * 4 + 256).ok()?;
    Some(Arc::new(dfa.minimize()))
}
