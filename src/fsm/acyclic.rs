//! Minimal automata of finite sets of words, built incrementally from sorted words.
//!
//! The states of the last word stay open. When the next word diverges, the suffix that it does not
//! share is finished: each of its states is interned by its edges. So the automaton is minimal at
//! all times.
//!
//! Source: Daciuk, Mihov, Watson and Watson, "Incremental Construction of Minimal Acyclic
//! Finite-State Automata", Computational Linguistics 26(1), 2000.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::dfa::push_merged;
use super::{Dfa, Edge};
use crate::hash::Seeded;

impl Dfa {
    /// A finite language, as its minimal acyclic automaton. Cost: sorting, then linear in the total
    /// length.
    pub fn words<W: AsRef<[u32]>>(words: impl IntoIterator<Item = W>) -> Dfa {
        let mut words: Vec<W> = words.into_iter().collect();
        words.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        AcyclicBuilder::build(words.iter().map(AsRef::as_ref))
    }

    /// A finite set of texts, as its minimal acyclic automaton over code points.
    pub(crate) fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Dfa {
        let symbols = |text: T| text.as_ref().chars().map(u32::from).collect();
        Dfa::words(texts.into_iter().map(symbols).collect::<Vec<Vec<u32>>>())
    }
}

/// States of an acyclic automaton, numbered targets first. Equal states are the same state.
pub(super) struct AcyclicStates {
    states: Dfa,
    /// Their numbers, by edges and finality.
    by_content: HashTable<u32>,
}

impl AcyclicStates {
    pub(super) fn new() -> AcyclicStates {
        AcyclicStates { states: Dfa::unfinished(), by_content: HashTable::new() }
    }

    /// The state with these sorted edges to earlier states.
    pub(super) fn intern(&mut self, edges: &[Edge], is_final: bool) -> u32 {
        let AcyclicStates { states, by_content } = self;
        let content_hash = hash(edges, is_final);
        let is_equal =
            |&state: &u32| states.is_final(state) == is_final && states.edges(state) == edges;
        if let Some(&state) = by_content.find(content_hash, is_equal) {
            return state;
        }
        let state = states.len() as u32;
        edges.iter().for_each(|e| states.push_edge(*e));
        states.end_state(is_final);
        by_content.insert_unique(content_hash, state, |&state| {
            hash(states.edges(state), states.is_final(state))
        });
        state
    }

    /// The automaton of what is read from `start`, numbered breadth-first.
    pub(super) fn finish(self, start: u32) -> Dfa {
        self.states.canonical(start)
    }
}

/// An automaton under construction.
struct AcyclicBuilder {
    /// The finished states.
    done: AcyclicStates,
    /// One state for each prefix of the last word; further lists are kept for reuse.
    open: Vec<OpenState>,
}

/// A state to which edges may still be added.
#[derive(Default)]
struct OpenState {
    edges: Vec<Edge>,
    is_final: bool,
}

impl AcyclicBuilder {
    /// The automaton of sorted words, numbered breadth-first. Cost: linear.
    fn build<'w>(words: impl Iterator<Item = &'w [u32]>) -> Dfa {
        let (done, open) = (AcyclicStates::new(), vec![OpenState::default()]);
        let mut build = AcyclicBuilder { done, open };
        let mut last: &[u32] = &[];
        for word in words {
            let shared = last.iter().zip(word).take_while(|(a, b)| a == b).count();
            build.finish_suffix(shared, last);
            if build.open.len() <= word.len() {
                build.open.resize_with(word.len() + 1, OpenState::default);
            }
            build.open[word.len()].is_final = true;
            last = word;
        }
        build.finish_suffix(0, last);
        let start = build.finish_state(0);
        build.done.finish(start)
    }

    /// Finishes the states after the first `keep` symbols of the last word.
    fn finish_suffix(&mut self, keep: usize, last: &[u32]) {
        for depth in (keep..last.len()).rev() {
            let to = self.finish_state(depth + 1);
            push_merged(
                &mut self.open[depth].edges,
                0,
                Edge { lo: last[depth], hi: last[depth], to },
            );
        }
    }

    /// Interns an open state and returns its number.
    fn finish_state(&mut self, depth: usize) -> u32 {
        let OpenState { edges, is_final } = &mut self.open[depth];
        let state = self.done.intern(edges, *is_final);
        edges.clear();
        *is_final = false;
        state
    }
}

/// The hash of a state's content.
fn hash(edges: &[Edge], is_final: bool) -> u64 {
    Seeded.hash_one((edges, is_final))
}
