//! Nondeterministic automata with their live states.

use crate::fsm::{Edge, Nfa};
use crate::fuel;

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
