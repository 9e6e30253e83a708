//! Deterministic automata. They are partial (a missing edge rejects); edges are sorted disjoint
//! ranges in one flat array.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use super::{ByteSet, Csr, TooLarge};
use crate::fuel;
use crate::ids::id;

/// An edge: any symbol of `lo..=hi` leads to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// First symbol.
    pub lo: u32,
    /// Last symbol.
    pub hi: u32,
    /// Target state.
    pub to: u32,
}

/// A deterministic finite automaton. State 0 is the start.
///
/// Invariants: each state's edges are sorted by symbol and disjoint; targets exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dfa {
    /// `edges[offsets[s]..offsets[s + 1]]` leave state `s`.
    pub(super) offsets: Vec<u32>,
    pub(super) edges: Vec<Edge>,
    pub(super) finals: Vec<bool>,
    derived: DerivedProperties,
}

id! {
    /// A residual language: what is read from a state of an automaton.
    pub(crate) ResidualId
}

/// Properties of an automaton, each computed once on demand. Equality ignores them, and a clone,
/// which may be changed, starts without.
#[derive(Debug, Default)]
struct DerivedProperties {
    /// Whether every state is reachable and reaches a final state.
    is_trim: OnceLock<bool>,
    /// Whether no word is accepted.
    is_empty: OnceLock<bool>,
    /// Of an automaton over bytes: see [`Dfa::bounds`].
    bounds: OnceLock<ByteSet>,
    /// By state: the language read from there.
    residuals: OnceLock<Option<Box<[ResidualId]>>>,
}

impl Clone for DerivedProperties {
    fn clone(&self) -> Self {
        DerivedProperties::default()
    }
}

impl PartialEq for DerivedProperties {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for DerivedProperties {}

impl Hash for DerivedProperties {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Dfa {
    /// An automaton from its parts.
    pub(super) fn from_parts(offsets: Vec<u32>, edges: Vec<Edge>, finals: Vec<bool>) -> Dfa {
        Dfa { offsets, edges, finals, derived: DerivedProperties::default() }
    }

    /// An automaton without states, to be filled with [`Dfa::push_edge`] and [`Dfa::end_state`].
    pub(super) fn unfinished() -> Dfa {
        Dfa::from_parts(vec![0], Vec::new(), Vec::new())
    }

    /// Appends an edge to the state that has not ended, merging it with the last one if their
    /// ranges touch.
    pub(super) fn push_edge(&mut self, edge: Edge) {
        let begin = self.offsets[self.offsets.len() - 1] as usize;
        push_merged(&mut self.edges, begin, edge);
    }

    /// Ends a state: the edges pushed since the last call leave it.
    pub(super) fn end_state(&mut self, is_final: bool) {
        self.offsets.push(self.edges.len() as u32);
        self.finals.push(is_final);
    }

    /// By state: the id of the language read from there. `find` computes them on the first call.
    pub(crate) fn residuals(
        &self,
        find: impl FnOnce(&Dfa) -> Option<Box<[ResidualId]>>,
    ) -> Option<&[ResidualId]> {
        self.derived.residuals.get_or_init(|| find(self)).as_deref()
    }

    /// The empty language.
    pub fn empty_language() -> Dfa {
        Dfa::from_parts(vec![0, 0], Vec::new(), vec![false])
    }

    /// The language of the empty word only.
    pub fn epsilon() -> Dfa {
        Dfa::from_parts(vec![0, 0], Vec::new(), vec![true])
    }

    /// The language of exactly one word.
    pub fn word(symbols: impl IntoIterator<Item = u32>) -> Dfa {
        let edges: Vec<Edge> =
            symbols.into_iter().zip(1..).map(|(lo, to)| Edge { lo, hi: lo, to }).collect();
        let mut offsets: Vec<u32> = (0..=edges.len() as u32).collect();
        offsets.push(edges.len() as u32);
        let finals = (0..=edges.len()).map(|state| state == edges.len()).collect();
        Dfa::from_parts(offsets, edges, finals)
    }

    /// Words of `min..=max` symbols, each from `ranges`; without an upper bound if `max` is `None`.
    /// Fails past `limit` states.
    pub fn counted(
        ranges: &[(u32, u32)],
        min: u32,
        max: Option<u32>,
        limit: usize,
    ) -> Result<Dfa, TooLarge> {
        let states = max.unwrap_or(min) as usize + 1;
        if states > limit {
            return Err(TooLarge::States { limit });
        }
        fuel::spend(states * ranges.len().max(1))?;
        let mut builder = DfaBuilder::new();
        for i in 0..states {
            builder.state(i as u32 >= min);
        }
        for i in 0..states as u32 {
            let to = if i as usize + 1 < states {
                i + 1
            } else if max.is_none() {
                i
            } else {
                continue;
            };
            for &(lo, hi) in ranges {
                builder.edge(i, lo, hi, to);
            }
        }
        Ok(builder.finish())
    }

    /// This automaton with another start state, and with the final states that `is_final` tells.
    pub(crate) fn restarted(&self, start: u32, is_final: impl Fn(u32) -> bool) -> Dfa {
        // Exchange the start with state 0.
        let number = |state: u32| match state {
            0 => start,
            state if state == start => 0,
            state => state,
        };
        let mut builder = DfaBuilder::new();
        for state in 0..self.len() as u32 {
            builder.state(is_final(number(state)));
        }
        for state in 0..self.len() as u32 {
            let edges = self.edges(state).iter();
            edges.for_each(|e| builder.edge(number(state), e.lo, e.hi, number(e.to)));
        }
        builder.finish()
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Whether no word is accepted.
    pub fn is_empty(&self) -> bool {
        *self.derived.is_empty.get_or_init(|| self.has_no_reachable_final())
    }

    /// Whether no final state can be reached.
    fn has_no_reachable_final(&self) -> bool {
        let mut seen = vec![false; self.len()];
        let mut stack = vec![0u32];
        seen[0] = true;
        while let Some(s) = stack.pop() {
            if self.is_final(s) {
                return false;
            }
            for e in self.edges(s) {
                if !std::mem::replace(&mut seen[e.to as usize], true) {
                    stack.push(e.to);
                }
            }
        }
        true
    }

    /// The edges that leave a state, in ascending order.
    #[inline]
    pub fn edges(&self, state: u32) -> &[Edge] {
        &self.edges
            [self.offsets[state as usize] as usize..self.offsets[state as usize + 1] as usize]
    }

    /// Total number of edges.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// Of an automaton over bytes: the bytes that some state treats differently from the byte
    /// before them. Byte 255 comes before byte 0.
    pub(crate) fn bounds(&self) -> ByteSet {
        *self.derived.bounds.get_or_init(|| {
            let mut bounds = ByteSet::EMPTY;
            for e in &self.edges {
                bounds.insert(e.lo as u8);
                bounds.insert((e.hi.min(255) as u8).wrapping_add(1));
            }
            bounds
        })
    }

    /// Estimated memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.edges.len() * size_of::<Edge>() + self.len() * 8
    }

    /// Whether a word may end in this state.
    #[inline]
    pub fn is_final(&self, state: u32) -> bool {
        self.finals[state as usize]
    }

    /// Whether every state can be reached and can reach a final one. Cost: linear, once.
    pub fn is_trim(&self) -> bool {
        *self.derived.is_trim.get_or_init(|| self.useful_states().into_iter().all(|useful| useful))
    }

    /// The state after a symbol. Cost: logarithmic in the number of edges.
    pub fn next(&self, state: u32, symbol: u32) -> Option<u32> {
        let edges = self.edges(state);
        let i = edges.partition_point(|e| e.hi < symbol);
        edges.get(i).filter(|e| e.lo <= symbol).map(|e| e.to)
    }

    /// Whether the word is in the language.
    pub fn accepts(&self, word: impl IntoIterator<Item = u32>) -> bool {
        let mut state = 0;
        for symbol in word {
            match self.next(state, symbol) {
                Some(next) => state = next,
                None => return false,
            }
        }
        self.is_final(state)
    }

    /// Whether the text, as code points, is in the language.
    pub(crate) fn accepts_text(&self, text: &str) -> bool {
        self.accepts(text.chars().map(u32::from))
    }

    /// Whether the language is infinite. The automaton must be trim.
    pub fn is_infinite(&self) -> bool {
        !self.finite_states()[0]
    }

    /// Whether infinitely many words can be read from every state that has an edge. Cost: linear.
    pub fn has_infinite_residuals(&self) -> bool {
        let finite = self.finite_states();
        (0..self.len() as u32).all(|s| !finite[s as usize] || self.edges(s).is_empty())
    }

    /// By state: whether no cycle can be reached from it, so that its language is finite.
    fn finite_states(&self) -> Vec<bool> {
        let states = 0..self.len() as u32;
        let edges =
            || states.clone().flat_map(|from| self.edges(from).iter().map(move |e| (e.to, from)));
        let back = Csr::new(self.len(), edges);
        // A state that leads only to finite states is finite. Each edge is removed once.
        let mut edges_left: Vec<usize> = states.clone().map(|s| self.edges(s).len()).collect();
        let mut open: Vec<u32> = states.filter(|&s| edges_left[s as usize] == 0).collect();
        while let Some(state) = open.pop() {
            for &from in back.row(state) {
                edges_left[from as usize] -= 1;
                if edges_left[from as usize] == 0 {
                    open.push(from);
                }
            }
        }
        edges_left.into_iter().map(|left| left == 0).collect()
    }
}

/// Builds a [`Dfa`] state by state. Edges may come in any order but must not overlap. The first
/// state is the start.
///
/// ```
/// use louver::fsm::DfaBuilder;
///
/// let mut builder = DfaBuilder::new();
/// let (start, end) = (builder.state(false), builder.state(true));
/// builder.edge(start, 48, 57, end);
/// let digit = builder.finish();
/// assert!(digit.accepts([u32::from(b'7')]) && !digit.accepts([u32::from(b'x')]));
/// ```
#[derive(Debug, Default)]
pub struct DfaBuilder {
    edges: Vec<Vec<Edge>>,
    finals: Vec<bool>,
}

impl DfaBuilder {
    /// A builder without states.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a state and returns its number.
    pub fn state(&mut self, is_final: bool) -> u32 {
        self.finals.push(is_final);
        self.edges.push(Vec::new());
        (self.finals.len() - 1) as u32
    }

    /// Number of states so far.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Whether there is no state yet.
    pub fn is_empty(&self) -> bool {
        self.finals.is_empty()
    }

    /// Adds an edge.
    pub fn edge(&mut self, from: u32, lo: u32, hi: u32, to: u32) {
        self.edges[from as usize].push(Edge { lo, hi, to });
    }

    /// Marks a state as final or not.
    pub fn set_final(&mut self, state: u32, is_final: bool) {
        self.finals[state as usize] = is_final;
    }

    /// The automaton. Panics in debug builds if edges of one state overlap.
    pub fn finish(self) -> Dfa {
        if self.finals.is_empty() {
            return Dfa::empty_language();
        }
        let mut out = Dfa::unfinished();
        for (mut edges, is_final) in self.edges.into_iter().zip(self.finals) {
            edges.sort_unstable();
            edges.into_iter().for_each(|e| out.push_edge(e));
            out.end_state(is_final);
        }
        out
    }
}

/// Collects the first symbols of the elementary intervals of edges, ascending: every first symbol,
/// and every symbol past a last one. Past `u32::MAX` there is none.
pub(crate) fn elementary_cuts<'e>(edges: impl IntoIterator<Item = &'e Edge>, cuts: &mut Vec<u32>) {
    cuts.clear();
    for e in edges {
        cuts.push(e.lo);
        cuts.extend(e.hi.checked_add(1));
    }
    cuts.sort_unstable();
    cuts.dedup();
}

/// Appends an edge to a list of edges from `begin` on, merging it with the last one if their ranges
/// touch.
pub(super) fn push_merged(edges: &mut Vec<Edge>, begin: usize, edge: Edge) {
    if edges.len() > begin {
        let last = edges.last_mut().expect("edges.len() > begin");
        debug_assert!(last.hi < edge.lo, "edges of one state overlap");
        if last.to == edge.to && last.hi.checked_add(1) == Some(edge.lo) {
            last.hi = edge.hi;
            return;
        }
    }
    edges.push(edge);
}
