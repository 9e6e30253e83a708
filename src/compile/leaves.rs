//! Minimal automata of rules that are regular languages over bytes, shared by all grammars of the process: strings,
//! numbers, dates and names come again in every schema.

use std::sync::Arc;

use super::facts::Leaf;
use super::{Compiled, thompson};
use crate::cache::{CacheStats, Shared};
use crate::fsm::Dfa;
use crate::fuel;
use crate::ir::Expr;

/// Largest automaton, in nondeterministic states, that is determinised as a whole.
const MAX_STATES: u32 = 2_000;
/// Most bytes all shared automata may hold, roughly.
const MAX_BYTES: usize = 16 << 20;
/// Memory of the expression of an automaton, in bytes for each node of it.
const NODE: usize = 48;

/// Automata by expression, compared whole.
static LEAVES: Shared<Expr, Arc<Dfa>> = Shared::new(MAX_BYTES);

/// How the automata that all grammars of the process share are used.
pub(crate) fn leaf_stats() -> CacheStats {
    LEAVES.lock().stats()
}

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
    let mut word = Vec::new();
    if is_word(body, &mut word) {
        return Some(Arc::new(Dfa::word(word.into_iter().map(u32::from))));
    }
    if facts.leaf == Leaf::Written {
        return minimal(compiled, body);
    }
    if let Some(known) = LEAVES.lock().get(body) {
        return Some(known);
    }
    let dfa = minimal(compiled, body)?;
    let bytes = dfa.bytes() + facts.nodes as usize * NODE;
    LEAVES.lock().insert(body.clone(), dfa.clone(), bytes);
    Some(dfa)
}

/// Adds the one word that an expression is, if it is written as one.
fn is_word(expr: &Expr, word: &mut Vec<u8>) -> bool {
    match expr {
        Expr::Empty => true,
        Expr::Bytes(bytes) => {
            word.extend_from_slice(bytes);
            true
        }
        Expr::Seq(parts) => parts.iter().all(|part| is_word(part, word)),
        _ => false,
    }
}

fn minimal(compiled: &Compiled, body: &Expr) -> Option<Arc<Dfa>> {
    let nfa = thompson::leaf(compiled, body);
    // Past a small multiple of the nondeterministic size, states are better made as they are met.
    let dfa = nfa.determinize(nfa.len() * 4 + 256).ok()?.minimize();
    // Out of fuel it may be larger than it should be: nothing to keep for others.
    fuel::check().ok()?;
    Some(Arc::new(dfa))
}
