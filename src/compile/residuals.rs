//! Residual languages (right-equivalence) of DFA states, across automata.
//!
//! The residual of a state is the language of texts that can still be read from it. Different rules
//! reach free text by different ways but have equal residuals there. Such states are merged, so
//! that masks and transitions are computed once for all of them.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::cache::ProcessCache;
use crate::fsm::{Dfa, ResidualId};

/// Largest automaton that is examined; a canonical one is made from each of its states.
const MAX_STATES: usize = 64;
/// A state is free text if it has at least this many bytes in self-loops.
const FREE_TEXT_BYTES: u32 = 48;
/// Memory bound of the process-wide table, in bytes, approximately.
const MAX_BYTES: usize = 4 << 20;
/// Memory of a table entry without its edges, in bytes.
const ENTRY_BYTES: usize = 48 + size_of::<Dfa>();

/// Ids of residual languages, by canonical automaton (compared in full). An id is never reused.
static LANGUAGES: ProcessCache<Dfa, ResidualId> = ProcessCache::new(MAX_BYTES);
/// The next id.
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// The id of each state's residual language; equal ids are equal languages. `None` for large
/// automata and for those without free text, which have few residuals in common.
pub(super) fn residual_ids(dfa: &Dfa) -> Option<&[ResidualId]> {
    dfa.residuals(|dfa| {
        let states = 0..dfa.len() as u32;
        let is_free = |state: u32| {
            let again = dfa.edges(state).iter().filter(|e| e.to == state);
            again.map(|e| e.hi - e.lo + 1).sum::<u32>() >= FREE_TEXT_BYTES
        };
        if dfa.len() > MAX_STATES || !states.clone().any(is_free) {
            return None;
        }
        states.map(|state| language_id(dfa.canonical(state))).collect()
    })
}

/// The id of the language of a canonical automaton; `None` once all ids are used up.
fn language_id(canonical: Dfa) -> Option<ResidualId> {
    let mut ids = LANGUAGES.lock();
    if let Some(id) = ids.get(&canonical) {
        return Some(id);
    }
    let id = NEXT_ID
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1))
        .ok()
        .map(ResidualId::from_raw)?;
    let bytes = canonical.bytes() + ENTRY_BYTES;
    ids.insert(canonical, id, bytes);
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsm::{ByteSet, Nfa};

    fn dfa(build: impl FnOnce(&mut Nfa, u32) -> u32) -> Dfa {
        let mut nfa = Nfa::new();
        let start = nfa.state();
        let end = build(&mut nfa, start);
        nfa.set_final(end);
        nfa.determinize(1000).unwrap().minimize()
    }

    /// Any text without a quote, then a quote.
    fn text(nfa: &mut Nfa, from: u32) -> u32 {
        for (lo, hi) in ByteSet::from_bytes(b"\"").complement().ranges() {
            nfa.edge(from, u32::from(lo), u32::from(hi), from);
        }
        let end = nfa.state();
        nfa.edge(from, u32::from(b'"'), u32::from(b'"'), end);
        end
    }

    #[test]
    fn equal_ids_are_equal_residual_languages() {
        let word = |nfa: &mut Nfa, from: u32, word: &[u8]| {
            word.iter().fold(from, |at, &byte| {
                let to = nfa.state();
                nfa.edge(at, u32::from(byte), u32::from(byte), to);
                to
            })
        };
        let free = dfa(text);
        let after_a = dfa(|nfa, from| {
            let at = word(nfa, from, b"ab");
            text(nfa, at)
        });
        let twice = dfa(|nfa, from| {
            let at = text(nfa, from);
            text(nfa, at)
        });
        let ids = |dfa: &Dfa| residual_ids(dfa).unwrap().to_vec();
        let follow = |dfa: &Dfa, bytes: &[u8]| {
            bytes.iter().fold(0, |at, &byte| {
                dfa.edges(at)
                    .iter()
                    .find(|e| e.lo <= byte.into() && u32::from(byte) <= e.hi)
                    .unwrap()
                    .to
            })
        };
        let (a, b, c) = (ids(&free), ids(&after_a), ids(&twice));
        assert_eq!(a[0], b[follow(&after_a, b"ab") as usize]);
        assert_eq!(a[0], c[follow(&twice, b"x\"") as usize]);
        assert_ne!(a[0], c[0]);
        assert_ne!(a[0], b[0]);
        // The residual of an accepting state without edges is always the same.
        assert_eq!(a[follow(&free, b"\"") as usize], c[follow(&twice, b"\"\"") as usize]);
        assert_eq!(residual_ids(&dfa(|nfa, from| word(nfa, from, b"abc"))), None);
    }
}
