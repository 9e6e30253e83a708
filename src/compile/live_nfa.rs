//! Nondeterministic automata with their live states.

use crate::fsm::Nfa;
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
        // This pays for the construction of the automaton as well.
        fuel::charge(8 * nfa.len());
        LiveNfa { live: nfa.live(), nfa }
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

    /// Whether a state belongs into epsilon closures: live, and accepting or with an edge.
    pub(super) fn is_relevant(&self, state: u32) -> bool {
        self.live[state as usize] && (!self.nfa.is_edgeless(state) || self.nfa.is_final(state))
    }
}
