//! What a rule is made of before it becomes states: nondeterministic automata over bytes, special tokens, rule calls and
//! counted blocks, all as symbols.

use super::counted_graph::StepCounts;
use super::member_sets::MemberSets;
use crate::fsm::{Edge, Nfa};
use crate::fuel;

const SPECIAL: u32 = 0x0100_0000;
const CALL: u32 = 0x1000_0000;
const BLOCK: u32 = 0x2000_0000;

/// One symbol of a rule's automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum EdgeSymbol {
    Byte(u8),
    Special(u32),
    Call(u32),
    /// A block of the same rule_nfa.
    Block(u32),
}

impl EdgeSymbol {
    pub(super) fn encode(self) -> u32 {
        match self {
            EdgeSymbol::Byte(b) => u32::from(b),
            EdgeSymbol::Special(s) => SPECIAL + s,
            EdgeSymbol::Call(r) => CALL + r,
            EdgeSymbol::Block(b) => BLOCK + b,
        }
    }

    pub(super) fn decode(raw: u32) -> EdgeSymbol {
        match raw {
            0..=255 => EdgeSymbol::Byte(raw as u8),
            SPECIAL..CALL => EdgeSymbol::Special(raw - SPECIAL),
            CALL..BLOCK => EdgeSymbol::Call(raw - CALL),
            _ => EdgeSymbol::Block(raw - BLOCK),
        }
    }
}

/// A rule's automaton and those of the counted repeats in it.
#[derive(Debug, Default)]
pub(super) struct RuleNfa {
    pub(super) main: LiveNfa,
    pub(super) blocks: Vec<BlockNfa>,
    /// Sets of members in the main automaton.
    pub(super) member_sets: MemberSets,
    /// Of a graph whose steps are counted.
    pub(super) step_counts: Option<StepCounts>,
    /// A graph that the main automaton consists of, or one of many nodes in it.
    pub(super) graph: Option<GraphNodes>,
}

/// The nodes of a graph: so many states of an automaton from the first one on. Where it may end, `end` is reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraphNodes {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) end: u32,
}

impl GraphNodes {
    /// Whether there are so many that some may do for others.
    pub(super) fn are_many(self) -> bool {
        self.count >= 16
    }

    /// A state's node.
    pub(super) fn of(self, state: u32) -> Option<u32> {
        state.checked_sub(self.first).filter(|&node| node < self.count)
    }
}

/// An automaton and which of its states can reach the end.
#[derive(Debug, Default)]
pub(super) struct LiveNfa {
    pub(super) nfa: Nfa,
    pub(super) live: Vec<bool>,
}

/// A counted repeat.
#[derive(Debug)]
pub(super) struct BlockNfa {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// See [`super::Block::gap`].
    pub(super) gap: bool,
    pub(super) body: LiveNfa,
}

impl LiveNfa {
    pub(super) fn new(nfa: Nfa) -> LiveNfa {
        fuel::charge(4 * nfa.len());
        LiveNfa { live: nfa.live(), nfa }
    }

    /// Whether a state is all that epsilon edges lead to from it, and if so, whether it matters; `None` where they lead elsewhere, too.
    pub(super) fn trivial_closure(&self, state: u32) -> Option<bool> {
        self.nfa.epsilons(state).next().is_none().then(|| self.is_relevant(state))
    }

    /// The one edge that leaves a state, if it is one to a state that matters and from which epsilon edges lead nowhere.
    pub(super) fn single_edge(&self, state: u32) -> Option<Edge> {
        let mut edges = self.nfa.edges(state);
        let edge = edges.next().filter(|edge| self.trivial_closure(edge.to) == Some(true))?;
        edges.next().is_none().then_some(edge)
    }

    /// Whether a state is live and more than the way to others.
    pub(super) fn is_relevant(&self, state: u32) -> bool {
        self.live[state as usize] && (!self.nfa.is_edgeless(state) || self.nfa.is_final(state))
    }
}

impl RuleNfa {
    /// LiveNfa 0 is the rule itself, part `i + 1` the body of block `i`.
    pub(super) fn part(&self, part: u32) -> &LiveNfa {
        match part.checked_sub(1) {
            None => &self.main,
            Some(block) => &self.blocks[block as usize].body,
        }
    }
}
