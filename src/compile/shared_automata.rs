//! Minimal DFAs of regular rules, shared by all grammars of the process. Strings, numbers and dates
//! recur in every schema.

use std::sync::Arc;

use super::rule_facts::Regularity;
use super::{Compiled, CompiledRuleId, thompson};
use crate::cache::{CacheStats, ProcessCache};
use crate::fsm::Dfa;
use crate::fuel;
use crate::ir::Expr;

/// Largest automaton, in nondeterministic states, that is determinised as a whole.
const MAX_STATES: u32 = 2_000;
/// Memory bound of the process-wide table, in bytes, approximately.
const MAX_BYTES: usize = 16 << 20;
/// Memory of a key, in bytes per node of the expression.
const NODE_BYTES: usize = 48;

/// Minimal DFAs by expression (compared in full).
static AUTOMATA: ProcessCache<Expr, Arc<Dfa>> = ProcessCache::new(MAX_BYTES);

/// Statistics of the process-wide table.
pub(crate) fn shared_automata_stats() -> CacheStats {
    AUTOMATA.lock().stats()
}

/// The minimal DFA of a rule. `None` if the rule is not regular or too large to be determinised as
/// a whole.
pub(super) fn minimal_automaton(compiled: &Compiled, rule: CompiledRuleId) -> Option<Arc<Dfa>> {
    let facts = &compiled.rules[rule.index()];
    let body = &compiled.split_grammar.rules.get(rule.index())?.body;
    if let Expr::Automaton(dfa) = body
        && dfa.is_trim()
    {
        return Some(dfa.clone());
    }
    if facts.regularity == Regularity::NotRegular || facts.nodes > MAX_STATES {
        return None;
    }
    let mut word = Vec::new();
    if append_word(body, &mut word) {
        return Some(Arc::new(Dfa::word(word.into_iter().map(u32::from))));
    }
    if facts.regularity == Regularity::WithInlinedRules {
        return determinize_rule(compiled, body);
    }
    if let Some(known) = AUTOMATA.lock().get(body) {
        return Some(known);
    }
    let dfa = determinize_rule(compiled, body)?;
    let bytes = dfa.bytes() + facts.nodes as usize * NODE_BYTES;
    AUTOMATA.insert(body.clone(), dfa.clone(), bytes);
    Some(dfa)
}

/// Appends the single word of a literal expression; false if it is not literal.
fn append_word(expr: &Expr, word: &mut Vec<u8>) -> bool {
    match expr {
        Expr::Empty => true,
        Expr::Bytes(bytes) => {
            word.extend_from_slice(bytes);
            true
        }
        Expr::Seq(parts) => parts.iter().all(|part| append_word(part, word)),
        _ => false,
    }
}

/// Determinises and minimises a regular rule, within a budget that does not depend on what the
/// request has left, as others use the result. `None` if the automaton is too large.
fn determinize_rule(compiled: &Compiled, body: &Expr) -> Option<Arc<Dfa>> {
    // The separate budget would set a halted meter aside.
    fuel::check().ok()?;
    // Made at compilation or in a mask, whichever comes first.
    let budget = compiled.limits.compile_fuel.min(compiled.limits.mask_fuel);
    fuel::with_shared_budget(budget, || {
        let nfa = thompson::regular_nfa(compiled, body);
        // Beyond a small multiple of the nondeterministic size, the lazy automaton is cheaper.
        let dfa = nfa.determinize(nfa.len() * 4 + 256).ok()?.minimize();
        // Out of fuel, the automaton may not be minimal: do not share it.
        fuel::check().ok()?;
        Some(Arc::new(dfa))
    })
}
