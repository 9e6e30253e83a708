//! Nondeterministic automata with their live states.

use crate::fsm::{Edge, Nfa};
use crate::fuel;

/// Maximum number of states that [`LiveNfa::skip_epsilons`] skips: epsilon edges may form cycles.
const MAX_SKIPPED: usize = 16;

/// An automaton and its live states: those that reach its end.
#[derive(Debug, Default)]
pub(super) struct LiveNfa {
    pub(super) nfa: Nfa,
    pub(super) live: Vec<bool>,
}

impl LiveNfa {
    /// Computes the live states. Cost: linear.
    pub(super) fn new(nfa: Nfa) -> LiveNfa {
        fuel::charge(4 * nfa.len());
        LiveNfa { live: nfa.live(), nfa }
    }

    /// If the state has no epsilon edges: whether it is relevant. Else `None`.
    pub(super) fn trivial_closure(&self, state: u32) -> Option<bool> {
        self.nfa.epsilons(state).next().is_none().then(|| self.is_relevant(state))
    }

    /// A state with the same closure, after those that have one epsilon edge and nothing else.
    pub(super) fn skip_epsilons(&self, mut state: u32) -> u32 {
        for _ in 0..MAX_SKIPPED {
            let mut epsilons = self.nfa.epsilons(state);
            match (epsilons.next(), epsilons.next()) {
                (Some(next), None) if self.nfa.is_edgeless(state) && !self.nfa.is_final(state) => {
                    state = next;
                }
                _ => break,
            }
        }
        state
    }

    /// The only edge of a state, if its target is relevant and without epsilon edges.
    pub(super) fn single_edge(&self, state: u32) -> Option<Edge> {
        let mut edges = self.nfa.edges(state);
        let edge = edges.next().filter(|edge| self.trivial_closure(edge.to) == Some(true))?;
        edges.next().is_none().then_some(edge)
    }

    /// Whether a state belongs into epsilon closures: live, and accepting or with an edge.
    pub(super) fn is_relevant(&self, state: u32) -> bool {
        self.live[state as usize] && (!self.nfa.is_edgeless(state) || self.nfa.is_final(state))
    }
}
