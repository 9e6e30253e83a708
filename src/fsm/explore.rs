//! Automata of transition functions.

use std::hash::Hash;

use super::{Dfa, Edge};
use crate::fuel;
use crate::hash::IndexSet;

impl Dfa {
    /// The automaton of a transition function over bytes, which are ascending: its states are
    /// `start` and all states that can be reached from there, of which there must be finitely many.
    /// Not minimal. Cost: one call of `next` for each state and byte.
    pub(crate) fn explored<S: Copy + Eq + Hash>(
        start: S,
        bytes: &[u8],
        next: impl Fn(S, u32) -> Option<S>,
        is_final: impl Fn(S) -> bool,
    ) -> Dfa {
        let mut states: IndexSet<S> = IndexSet::from_iter([start]);
        let mut out = Dfa::unfinished();
        while let Some(&state) = states.get_index(out.len()) {
            fuel::charge(bytes.len());
            for symbol in bytes.iter().copied().map(u32::from) {
                if let Some(to) = next(state, symbol) {
                    let to = states.insert_full(to).0 as u32;
                    out.push_edge(Edge { lo: symbol, hi: symbol, to });
                }
            }
            out.end_state(is_final(state));
        }
        out
    }
}
