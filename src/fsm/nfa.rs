//! Nondeterministic automata (Thompson's construction) and the subset construction over range edges.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::dfa::push_merged;
use super::{Dfa, Edge, Grouped, TooLarge};
use crate::fuel;
use crate::hash::Seeded;

/// No edge: the end of a list.
const NONE: u32 = u32::MAX;

/// Most states of lists that are kept to look closures up.
const MAX_KEPT: usize = 1 << 22;

/// A nondeterministic automaton with epsilon edges. Edges lie in two flat arrays, chained by state.
#[derive(Clone, Debug, Default)]
pub struct Nfa {
    /// Per state: its last edge and its last epsilon edge.
    heads: Vec<(u32, u32)>,
    /// Edges, each with the one of its state added before it.
    edges: Vec<(Edge, u32)>,
    /// Targets of epsilon edges, each with the one of its state added before it.
    epsilon: Vec<(u32, u32)>,
    finals: Vec<bool>,
    /// Final states behind which every word is accepted.
    universal: Vec<u32>,
    start: u32,
}

impl Nfa {
    /// No states; the first added state is the start unless [`Nfa::set_start`] says otherwise.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a state that is not final.
    pub fn state(&mut self) -> u32 {
        self.heads.push((NONE, NONE));
        self.finals.push(false);
        (self.finals.len() - 1) as u32
    }

    /// Adds an edge over `lo..=hi`.
    pub fn edge(&mut self, from: u32, lo: u32, hi: u32, to: u32) {
        let head = &mut self.heads[from as usize].0;
        self.edges.push((Edge { lo, hi, to }, *head));
        *head = (self.edges.len() - 1) as u32;
    }

    /// Adds an epsilon edge.
    pub fn epsilon(&mut self, from: u32, to: u32) {
        if from != to {
            let head = &mut self.heads[from as usize].1;
            self.epsilon.push((to, *head));
            *head = (self.epsilon.len() - 1) as u32;
        }
    }

    /// The edges that leave a state, in no order.
    pub fn edges(&self, state: u32) -> impl Iterator<Item = Edge> + '_ {
        let mut at = self.heads[state as usize].0;
        std::iter::from_fn(move || {
            let &(edge, next) = self.edges.get(at as usize)?;
            at = next;
            Some(edge)
        })
    }

    /// Whether no edge but epsilon edges leaves a state.
    pub fn is_edgeless(&self, state: u32) -> bool {
        self.heads[state as usize].0 == NONE
    }

    /// Where epsilon edges lead, in no order.
    pub fn epsilons(&self, state: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.heads[state as usize].1;
        std::iter::from_fn(move || {
            let &(to, next) = self.epsilon.get(at as usize)?;
            at = next;
            Some(to)
        })
    }

    /// The start.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Whether a word may end in this state.
    pub fn is_final(&self, state: u32) -> bool {
        self.finals[state as usize]
    }

    /// Marks a state final.
    pub fn set_final(&mut self, state: u32) {
        self.finals[state as usize] = true;
    }

    /// Marks a state final, and says that every word leads from it to a final one: what else the same beginning leads to no longer
    /// matters.
    pub fn set_universal(&mut self, state: u32) {
        self.set_final(state);
        self.universal.push(state);
    }

    /// Moves the start.
    pub fn set_start(&mut self, state: u32) {
        self.start = state;
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Whether there is no state.
    pub fn is_empty(&self) -> bool {
        self.finals.is_empty()
    }

    /// Which states can reach a final one. Linear.
    pub fn live(&self) -> Vec<bool> {
        let states = 0..self.len() as u32;
        let back = Grouped::new(self.len(), || {
            states.clone().flat_map(|from| {
                self.edges(from).map(|e| e.to).chain(self.epsilons(from)).map(move |to| (to, from))
            })
        });
        back.reached(states.clone().filter(|&s| self.is_final(s)))
    }

    /// Copies a deterministic automaton in: returns its start and a fresh state that its final states reach.
    pub fn embed(&mut self, dfa: &Dfa) -> (u32, u32) {
        let base = self.len() as u32;
        for _ in 0..dfa.len() {
            self.state();
        }
        let end = self.state();
        for s in 0..dfa.len() as u32 {
            for e in dfa.edges(s) {
                self.edge(base + s, e.lo, e.hi, base + e.to);
            }
            if dfa.is_final(s) {
                self.epsilon(base + s, end);
            }
        }
        (base, end)
    }

    /// The equivalent deterministic automaton (subset construction), not yet minimised; fails past `limit` states.
    pub fn determinize(&self, limit: usize) -> Result<Dfa, TooLarge> {
        if self.is_empty() {
            return Ok(Dfa::never());
        }
        let mut closure = Closure::new(self);
        let mut sets = Lists::default();
        closure.of(&[self.start]);
        sets.id(&closure.states);
        // Sets by what edges lead to before epsilon edges are followed.
        let (mut reached, mut closed): (Lists, Vec<u32>) = (Lists::default(), Vec::new());
        let mut out = Dfa::of(vec![0], Vec::new(), Vec::new());
        let mut pending: Vec<Edge> = Vec::new();
        let mut cuts: Vec<u32> = Vec::new();
        let (mut over, mut targets): (Vec<Edge>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < sets.len() {
            let set = sets.get(at);
            out.finals.push(set.iter().any(|&s| self.finals[s as usize]));
            pending.clear();
            for &s in set {
                pending.extend(self.edges(s));
            }
            fuel::spend(1 + pending.len())?;
            pending.sort_unstable();
            // Elementary intervals: every begin and every past-the-end is a cut (kept in u64-free form: past-the-end of u32::MAX is dropped).
            cuts.clear();
            for e in &pending {
                cuts.push(e.lo);
                if let Some(past) = e.hi.checked_add(1) {
                    cuts.push(past);
                }
            }
            cuts.sort_unstable();
            cuts.dedup();
            let begin = out.edges.len();
            let mut rest = &pending[..];
            over.clear();
            for (i, &lo) in cuts.iter().enumerate() {
                let hi = cuts.get(i + 1).map_or(u32::MAX, |&next| next - 1);
                // Of the edges, sorted by where they begin, those over this interval.
                over.retain(|e: &Edge| e.hi >= lo);
                let begun = rest.partition_point(|e| e.lo <= lo);
                over.extend_from_slice(&rest[..begun]);
                rest = &rest[begun..];
                if over.is_empty() {
                    continue;
                }
                fuel::charge(over.len());
                targets.clear();
                targets.extend(over.iter().map(|e| e.to));
                targets.sort_unstable();
                targets.dedup();
                if reached.values.len() > MAX_KEPT {
                    (reached, closed) = (Lists::default(), Vec::new());
                }
                let list = reached.id(&targets);
                if list == closed.len() {
                    closure.of(&targets);
                    fuel::spend(closure.visited)?;
                    closed.push(sets.id(&closure.states) as u32);
                    if sets.len() > limit {
                        return Err(TooLarge::States { limit });
                    }
                }
                let to = closed[list];
                push_merged(&mut out.edges, begin, Edge { lo, hi, to });
            }
            out.offsets.push(out.edges.len() as u32);
            at += 1;
        }
        Ok(out)
    }
}

/// Distinct lists of states, numbered as they come.
#[derive(Default)]
struct Lists {
    values: Vec<u32>,
    /// Where each ends.
    ends: Vec<usize>,
    known: HashTable<u32>,
}

impl Lists {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, list: usize) -> &[u32] {
        let begin = if list == 0 { 0 } else { self.ends[list - 1] };
        &self.values[begin..self.ends[list]]
    }

    /// The number of a list.
    fn id(&mut self, list: &[u32]) -> usize {
        let hash = Seeded.hash_one(list);
        if let Some(&known) = self.known.find(hash, |&known| self.get(known as usize) == list) {
            return known as usize;
        }
        let id = self.len();
        self.values.extend_from_slice(list);
        self.ends.push(self.values.len());
        let mut known = std::mem::take(&mut self.known);
        known.insert_unique(hash, id as u32, |&known| Seeded.hash_one(self.get(known as usize)));
        self.known = known;
        id
    }
}

/// Epsilon closures with a reusable mark array.
struct Closure<'a> {
    nfa: &'a Nfa,
    marks: Vec<u32>,
    round: u32,
    stack: Vec<u32>,
    /// The last one.
    states: Vec<u32>,
    /// States visited for it.
    visited: usize,
}

impl<'a> Closure<'a> {
    fn new(nfa: &'a Nfa) -> Self {
        Closure {
            nfa,
            marks: vec![0; nfa.len()],
            round: 0,
            stack: Vec::new(),
            states: Vec::new(),
            visited: 0,
        }
    }

    /// Finds the closure, keeping only states that matter (with an edge, or final): smaller and more canonical sets.
    fn of(&mut self, states: &[u32]) {
        self.round += 1;
        self.states.clear();
        self.visited = 0;
        for &s in states {
            self.push(s);
        }
        while let Some(s) = self.stack.pop() {
            self.visited += 1;
            if self.nfa.is_final(s) && self.nfa.universal.contains(&s) {
                self.stack.clear();
                self.states.clear();
                self.states.push(s);
                return;
            }
            if !self.nfa.is_edgeless(s) || self.nfa.is_final(s) {
                self.states.push(s);
            }
            let nfa = self.nfa;
            nfa.epsilons(s).for_each(|to| self.push(to));
        }
        self.states.sort_unstable();
    }

    fn push(&mut self, state: u32) {
        if self.marks[state as usize] != self.round {
            self.marks[state as usize] = self.round;
            self.stack.push(state);
        }
    }
}
