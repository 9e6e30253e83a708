//! The minimal automaton of finitely many words, built as they come, sorted (Daciuk, Mihov, Watson and Watson, "Incremental construction
//! of minimal acyclic finite-state automata", 2000): what lies behind a beginning is shared once no other word has it.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::dfa::push_merged;
use super::{Dfa, Edge};
use crate::hash::Seeded;

pub(super) struct Acyclic {
    /// The states that are complete.
    done: Dfa,
    /// Their numbers, by what they are.
    known: HashTable<u32>,
    /// States of the last word's beginnings; lists behind those are kept for later ones.
    open: Vec<Open>,
}

#[derive(Default)]
struct Open {
    edges: Vec<Edge>,
    is_final: bool,
}

impl Acyclic {
    /// The automaton of sorted words, numbered breadth-first. Linear.
    pub(super) fn of<'w>(words: impl Iterator<Item = &'w [u32]>) -> Dfa {
        let done = Dfa::of(vec![0], Vec::new(), Vec::new());
        let mut build = Acyclic { done, known: HashTable::new(), open: vec![Open::default()] };
        let mut last: &[u32] = &[];
        for word in words {
            let shared = last.iter().zip(word).take_while(|(a, b)| a == b).count();
            build.close(shared, last);
            if build.open.len() <= word.len() {
                build.open.resize_with(word.len() + 1, Open::default);
            }
            build.open[word.len()].is_final = true;
            last = word;
        }
        build.close(0, last);
        let start = build.complete(0);
        build.numbered(start)
    }

    /// Completes the states behind the first `keep` symbols of the last word.
    fn close(&mut self, keep: usize, last: &[u32]) {
        for at in (keep..last.len()).rev() {
            let to = self.complete(at + 1);
            push_merged(&mut self.open[at].edges, 0, Edge { lo: last[at], hi: last[at], to });
        }
    }

    /// The number of an open state that nothing more is added to.
    fn complete(&mut self, at: usize) -> u32 {
        let Acyclic { done, known, open } = self;
        let Open { edges, is_final } = &mut open[at];
        let own = hash(edges, *is_final);
        let same =
            |&state: &u32| done.is_final(state) == *is_final && done.edges(state) == &edges[..];
        let state = match known.find(own, same) {
            Some(&state) => state,
            None => {
                let state = done.len() as u32;
                done.edges.extend_from_slice(edges);
                done.offsets.push(done.edges.len() as u32);
                done.finals.push(*is_final);
                known.insert_unique(own, state, |&state| {
                    hash(done.edges(state), done.is_final(state))
                });
                state
            }
        };
        edges.clear();
        *is_final = false;
        state
    }

    fn numbered(self, start: u32) -> Dfa {
        let mut number = vec![u32::MAX; self.done.len()];
        let mut order = vec![start];
        number[start as usize] = 0;
        let mut out = Dfa::of(vec![0], Vec::with_capacity(self.done.edge_count()), Vec::new());
        let mut at = 0;
        while at < order.len() {
            let state = order[at];
            out.finals.push(self.done.is_final(state));
            for e in self.done.edges(state) {
                if number[e.to as usize] == u32::MAX {
                    number[e.to as usize] = order.len() as u32;
                    order.push(e.to);
                }
                out.edges.push(Edge { to: number[e.to as usize], ..*e });
            }
            out.offsets.push(out.edges.len() as u32);
            at += 1;
        }
        out
    }
}

fn hash(edges: &[Edge], is_final: bool) -> u64 {
    Seeded.hash_one((edges, is_final))
}
