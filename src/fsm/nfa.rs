//! Nondeterministic automata, as Thompson's construction makes them, and the subset construction
//! over range edges.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::dfa::elementary_cuts;
use super::{Csr, Dfa, Edge, TooLarge};
use crate::fuel;
use crate::hash::Seeded;

/// The end of a chain of edges.
const NO_EDGE: u32 = u32::MAX;

/// Most states, over all sets, that are cached to look closures up.
const MAX_CACHED_STATES: usize = 1 << 22;

/// A nondeterministic automaton with epsilon edges. Edges lie in two flat arrays, chained by state.
///
/// ```
/// use louver::fsm::{Nfa, TooLarge};
///
/// let mut nfa = Nfa::new();
/// let (start, end) = (nfa.state(), nfa.state());
/// nfa.edge(start, 97, 97, end);
/// nfa.epsilon(end, start);
/// nfa.set_final(end);
/// let dfa = nfa.determinize(100)?.minimize();
/// assert!(dfa.accepts([97, 97]) && !dfa.accepts([]));
/// # Ok::<(), TooLarge>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Nfa {
    /// By state: the ends of its chains of edges and of epsilon edges.
    heads: Vec<(u32, u32)>,
    /// Edges, each with the previous one of its state.
    edges: Vec<(Edge, u32)>,
    /// Targets of epsilon edges, each with the previous one of its state.
    epsilon: Vec<(u32, u32)>,
    finals: Vec<bool>,
    /// Final states from which every word is accepted.
    universal: Vec<u32>,
    start: u32,
}

impl Nfa {
    /// An automaton without states. The first state added is the start, unless [`Nfa::set_start`]
    /// changes it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a state that is not final.
    pub fn state(&mut self) -> u32 {
        self.heads.push((NO_EDGE, NO_EDGE));
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

    /// The edges that leave a state, in no particular order.
    pub fn edges(&self, state: u32) -> impl Iterator<Item = Edge> + '_ {
        let mut link = self.heads[state as usize].0;
        std::iter::from_fn(move || {
            let &(edge, next) = self.edges.get(link as usize)?;
            link = next;
            Some(edge)
        })
    }

    /// Whether only epsilon edges, if any, leave a state.
    pub fn is_edgeless(&self, state: u32) -> bool {
        self.heads[state as usize].0 == NO_EDGE
    }

    /// The targets of a state's epsilon edges, in no particular order.
    pub fn epsilons(&self, state: u32) -> impl Iterator<Item = u32> + '_ {
        let mut link = self.heads[state as usize].1;
        std::iter::from_fn(move || {
            let &(to, next) = self.epsilon.get(link as usize)?;
            link = next;
            Some(to)
        })
    }

    /// The start state.
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

    /// Marks a state as final and promises that every word is accepted from it. The subset
    /// construction then drops all other states of a set that contains it.
    pub fn set_universal(&mut self, state: u32) {
        self.set_final(state);
        self.universal.push(state);
    }

    /// Changes the start state.
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

    /// By state: whether it can reach a final one. Cost: linear.
    pub fn live(&self) -> Vec<bool> {
        let states = 0..self.len() as u32;
        let back = Csr::new(self.len(), || {
            states.clone().flat_map(|from| {
                self.edges(from).map(|e| e.to).chain(self.epsilons(from)).map(move |to| (to, from))
            })
        });
        back.reached(states.clone().filter(|&s| self.is_final(s)))
    }

    /// Copies a deterministic automaton into this one. Returns its start, and a new state that its
    /// final states reach by epsilon edges.
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

    /// The equivalent deterministic automaton, by the subset construction; not minimised. Fails
    /// past `limit` states.
    pub fn determinize(&self, limit: usize) -> Result<Dfa, TooLarge> {
        if self.is_empty() {
            return Ok(Dfa::empty_language());
        }
        let mut subsets = SubsetConstruction::new(self, limit);
        let mut out = Dfa::unfinished();
        let (mut pending, mut over): (Vec<Edge>, Vec<Edge>) = (Vec::new(), Vec::new());
        let (mut cuts, mut targets): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut current = 0;
        while current < subsets.sets.len() {
            let set = subsets.sets.get(current);
            let is_final = set.iter().any(|&s| self.finals[s as usize]);
            pending.clear();
            for &s in set {
                pending.extend(self.edges(s));
            }
            fuel::spend(1 + pending.len())?;
            pending.sort_unstable();
            elementary_cuts(&pending, &mut cuts);
            let mut rest = &pending[..];
            over.clear();
            for (i, &lo) in cuts.iter().enumerate() {
                let hi = cuts.get(i + 1).map_or(u32::MAX, |&next| next - 1);
                // The edges over this interval; edges are sorted by their first symbol.
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
                let to = subsets.closed(&targets)?;
                out.push_edge(Edge { lo, hi, to });
            }
            out.end_state(is_final);
            current += 1;
        }
        Ok(out)
    }
}

/// The closed sets of a subset construction.
struct SubsetConstruction<'a> {
    closure: EpsilonClosure<'a>,
    /// The states of the deterministic automaton.
    sets: StateSets,
    /// Most of them.
    limit: usize,
    /// Cache: sets of edge targets.
    reached: StateSets,
    /// By set of edge targets: its closed set.
    closed: Vec<u32>,
}

impl<'a> SubsetConstruction<'a> {
    /// The closed set of the start state only.
    fn new(nfa: &'a Nfa, limit: usize) -> Self {
        let (mut closure, mut sets) = (EpsilonClosure::new(nfa), StateSets::default());
        closure.compute(&[nfa.start]);
        sets.intern(&closure.states);
        let (reached, closed) = (StateSets::default(), Vec::new());
        SubsetConstruction { closure, sets, limit, reached, closed }
    }

    /// The number of the closed set of a sorted set of edge targets.
    fn closed(&mut self, targets: &[u32]) -> Result<u32, TooLarge> {
        if self.reached.values.len() > MAX_CACHED_STATES {
            (self.reached, self.closed) = (StateSets::default(), Vec::new());
        }
        let reached = self.reached.intern(targets);
        if reached == self.closed.len() {
            self.closure.compute(targets);
            fuel::spend(self.closure.visited)?;
            self.closed.push(self.sets.intern(&self.closure.states) as u32);
            if self.sets.len() > self.limit {
                return Err(TooLarge::States { limit: self.limit });
            }
        }
        Ok(self.closed[reached])
    }
}

/// Interned sets of states, numbered in the order of insertion.
#[derive(Default)]
struct StateSets {
    values: Vec<u32>,
    /// Where each set ends in `values`.
    ends: Vec<usize>,
    ids: HashTable<u32>,
}

impl StateSets {
    /// Number of sets.
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The states of a set.
    fn get(&self, set: usize) -> &[u32] {
        let begin = if set == 0 { 0 } else { self.ends[set - 1] };
        &self.values[begin..self.ends[set]]
    }

    /// The number of a set.
    fn intern(&mut self, set: &[u32]) -> usize {
        let hash = Seeded.hash_one(set);
        if let Some(&ids) = self.ids.find(hash, |&ids| self.get(ids as usize) == set) {
            return ids as usize;
        }
        let id = self.len();
        self.values.extend_from_slice(set);
        self.ends.push(self.values.len());
        let mut ids = std::mem::take(&mut self.ids);
        ids.insert_unique(hash, id as u32, |&ids| Seeded.hash_one(self.get(ids as usize)));
        self.ids = ids;
        id
    }
}

/// Computes epsilon closures with a reusable array of marks.
struct EpsilonClosure<'a> {
    nfa: &'a Nfa,
    marks: Vec<u32>,
    round: u32,
    stack: Vec<u32>,
    /// The last closure.
    states: Vec<u32>,
    /// States visited for it.
    visited: usize,
}

impl<'a> EpsilonClosure<'a> {
    /// Scratch space for an automaton.
    fn new(nfa: &'a Nfa) -> Self {
        EpsilonClosure {
            nfa,
            marks: vec![0; nfa.len()],
            round: 0,
            stack: Vec::new(),
            states: Vec::new(),
            visited: 0,
        }
    }

    /// Computes the closure. It keeps only states that matter (final or with an edge), so that more
    /// sets are equal.
    fn compute(&mut self, states: &[u32]) {
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

    /// Adds a state to the stack once.
    fn push(&mut self, state: u32) {
        if self.marks[state as usize] != self.round {
            self.marks[state as usize] = self.round;
            self.stack.push(state);
        }
    }
}
