//! Residual languages: what can still be read from a state. Automata that come to free text in different ways go on alike from there, so that
//! their states there are one, and all that is known of it is known of both.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::cache::Shared;
use crate::fsm::Dfa;
use crate::hash::HashMap;

/// Largest automaton whose states are looked at, each with all that follows.
const MAX_STATES: usize = 64;
/// Bytes that lead a state back to itself where text is free.
const FREE_TEXT_BYTES: u32 = 48;
/// Most bytes that all residual languages of the process may hold, roughly.
const MAX_BYTES: usize = 4 << 20;
/// Memory of a map's slot.
const ENTRY_BYTES: usize = 48;

/// Numbers of automata from a state on, canonical down canonically and compared whole. A id is given once.
static LANGUAGES: Shared<Box<[u32]>, u32> = Shared::new(MAX_BYTES);
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// The id of each state's residual language: equal ids, equal languages. None for automata without free text, which have little in
/// common, and for large ones.
pub(super) fn residual_ids(dfa: &Dfa) -> Option<&[u32]> {
    dfa.residuals(|dfa| {
        let states = 0..dfa.len() as u32;
        let is_free = |state: u32| {
            let again = dfa.edges(state).iter().filter(|e| e.to == state);
            again.map(|e| e.hi - e.lo + 1).sum::<u32>() >= FREE_TEXT_BYTES
        };
        if dfa.len() > MAX_STATES || !states.clone().any(is_free) {
            return None;
        }
        states.map(|state| language_id(canonical_form(dfa, state))).collect()
    })
}

/// The id of an automaton; none once all have been given.
fn language_id(canonical: Box<[u32]>) -> Option<u32> {
    let mut ids = LANGUAGES.lock();
    if let Some(id) = ids.get(&canonical) {
        return Some(id);
    }
    let id = NEXT_ID
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1))
        .ok()?;
    let bytes = canonical.len() * 4 + ENTRY_BYTES;
    ids.insert(canonical, id, bytes);
    Some(id)
}

/// The automaton from a state on, its states in the order in which they are met.
fn canonical_form(dfa: &Dfa, from: u32) -> Box<[u32]> {
    let (mut order, mut out) = (vec![from], Vec::new());
    let mut places: HashMap<u32, u32> = HashMap::from_iter([(from, 0)]);
    let mut at = 0;
    while let Some(&state) = order.get(at) {
        at += 1;
        out.push(u32::from(dfa.is_final(state)));
        let count = out.len();
        out.push(0);
        for e in dfa.edges(state) {
            let to = *places.entry(e.to).or_insert_with(|| {
                order.push(e.to);
                order.len() as u32 - 1
            });
            // Neighbours with one target are one edge.
            match out[count + 1..].last_chunk_mut() {
                Some([_, hi, target]) if *target == to && *hi + 1 == e.lo => *hi = e.hi,
                _ => out.extend([e.lo, e.hi, to]),
            }
        }
        out[count] = (out.len() - count) as u32;
    }
    out.into()
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

    /// Any text without a quote, then one.
    fn text(nfa: &mut Nfa, from: u32) -> u32 {
        for (lo, hi) in ByteSet::of(b"\"").complement().ranges() {
            nfa.edge(from, u32::from(lo), u32::from(hi), from);
        }
        let end = nfa.state();
        nfa.edge(from, u32::from(b'"'), u32::from(b'"'), end);
        end
    }

    #[test]
    fn equal_numbers_are_equal_languages() {
        let word = |nfa: &mut Nfa, from: u32, word: &[u8]| {
            word.iter().fold(from, |at, &byte| {
                let to = nfa.state();
                nfa.edge(at, u32::from(byte), u32::from(byte), to);
                to
            })
        };
        let free = dfa(text);
        let behind_a = dfa(|nfa, from| {
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
        let (a, b, c) = (ids(&free), ids(&behind_a), ids(&twice));
        assert_eq!(a[0], b[follow(&behind_a, b"ab") as usize]);
        assert_eq!(a[0], c[follow(&twice, b"x\"") as usize]);
        assert_ne!(a[0], c[0]);
        assert_ne!(a[0], b[0]);
        // Ends are alike everywhere.
        assert_eq!(a[follow(&free, b"\"") as usize], c[follow(&twice, b"\"\"") as usize]);
        assert_eq!(residual_ids(&dfa(|nfa, from| word(nfa, from, b"abc"))), None);
    }
}
