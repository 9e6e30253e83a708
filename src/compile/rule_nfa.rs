//! Nondeterministic automata of rules. Edges carry bytes, special tokens, rule calls or counted
//! blocks, all encoded as symbols.

use super::CompiledRuleId;
use super::counted_graph::StepCounts;
use super::live_nfa::LiveNfa;
use super::member_sets::MemberSets;
use crate::ids::{SpecialId, id};

/// Symbols from here on are special tokens, then calls, then blocks.
const SPECIAL: u32 = 0x0100_0000;
const CALL: u32 = 0x1000_0000;
const BLOCK: u32 = 0x2000_0000;

id! {
    /// A counted block of a rule: an index into [`RuleNfa::blocks`].
    pub(super) BlockNfaId
}

/// The label of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum EdgeSymbol {
    Byte(u8),
    Special(SpecialId),
    Call(CompiledRuleId),
    /// A counted block of the same rule.
    Block(BlockNfaId),
}

impl EdgeSymbol {
    /// The symbol as an alphabet letter of [`Nfa`](crate::fsm::Nfa); bytes are themselves.
    pub(super) fn encode(self) -> u32 {
        match self {
            EdgeSymbol::Byte(b) => u32::from(b),
            EdgeSymbol::Special(s) => SPECIAL + s.raw(),
            EdgeSymbol::Call(r) => CALL + r.raw(),
            EdgeSymbol::Block(b) => BLOCK + b.raw(),
        }
    }

    /// Inverse of [`EdgeSymbol::encode`].
    pub(super) fn decode(raw: u32) -> EdgeSymbol {
        match raw {
            0..=255 => EdgeSymbol::Byte(raw as u8),
            SPECIAL..CALL => EdgeSymbol::Special(SpecialId::from_raw(raw - SPECIAL)),
            CALL..BLOCK => EdgeSymbol::Call(CompiledRuleId::from_raw(raw - CALL)),
            _ => EdgeSymbol::Block(BlockNfaId::from_raw(raw - BLOCK)),
        }
    }
}

/// What can happen in a state: the union over its set of nondeterministic states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StateSummary {
    /// The state accepts.
    pub(super) is_final: bool,
    /// It reads a byte or a special token.
    pub(super) has_scan_edge: bool,
    /// It calls a rule or enters a block.
    pub(super) has_call_edge: bool,
}

/// The automaton of a rule, with those of its counted blocks.
#[derive(Debug, Default)]
pub(super) struct RuleNfa {
    /// The rule's own automaton.
    pub(super) main: LiveNfa,
    pub(super) blocks: Vec<BlockNfa>,
    /// Member sets in the main automaton.
    pub(super) member_sets: MemberSets,
    /// The step counting of a counted graph.
    pub(super) step_counts: Option<StepCounts>,
}

/// The automaton of a counted block.
#[derive(Debug)]
pub(super) struct BlockNfa {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// See [`super::Block::is_bounded_white_space`].
    pub(super) is_bounded_white_space: bool,
    pub(super) body: LiveNfa,
}

impl RuleNfa {
    /// The automaton of a block's body; without a block, that of the rule itself.
    pub(super) fn part(&self, block: Option<BlockNfaId>) -> &LiveNfa {
        match block {
            None => &self.main,
            Some(block) => &self.blocks[block.index()].body,
        }
    }
}
