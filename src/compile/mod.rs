//! Stage 3. A grammar becomes finite automata: one minimised FSM per rule, counted repeats as blocks with a counter,
//! tag dispatch as an Aho-Corasick automaton. The result knows no vocabulary, is immutable and shared.

mod components;
mod dispatch;
mod link;
mod lower;
mod units;

use crate::fsm::TooLarge;
use crate::ids::{Label, StateId};
use crate::ir::{Grammar, GrammarError, SpecialToken};
use crate::limits::Limits;

/// Why a grammar cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// No sentence can be derived.
    #[error("the grammar derives nothing: rule `{rule}` has no finite sentence")]
    Empty {
        /// The start rule.
        rule: String,
    },
    /// A limit was reached.
    #[error("rule `{rule}` needs more than {limit} {what}")]
    Limit {
        /// Where.
        rule: String,
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A special token of the grammar is not in the vocabulary.
    #[error("the vocabulary has no special token {token}")]
    UnknownSpecial {
        /// Its name or id.
        token: String,
    },
}

impl CompileError {
    fn too_large(rule: &str, what: &'static str, error: TooLarge) -> Self {
        CompileError::Limit { rule: rule.to_owned(), what, limit: error.limit }
    }
}

/// No block.
pub(crate) const NO_BLOCK: u32 = u32::MAX;

/// A byte edge: any byte of `lo..=hi` leads to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteEdge {
    pub(crate) lo: u8,
    pub(crate) hi: u8,
    pub(crate) to: u32,
}

/// What a state of a dispatch means for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not a dispatch state.
    Plain,
    /// Free text whose last `pending` bytes may be the beginning of a trigger.
    Text { pending: u32 },
    /// A trigger or stop of this length has just been read.
    Fired { matched: u32 },
}

/// One state of a rule's automaton. Its edges lie in flat arrays from these offsets to those of the next state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    bytes: u32,
    calls: u32,
    specials: u32,
    enters: u32,
    /// The rule it belongs to.
    pub(crate) rule: u32,
    /// The counted block it belongs to, or [`NO_BLOCK`].
    pub(crate) block: u32,
    /// Outside a block: the rule may end here. Inside: one repetition may end here.
    pub(crate) is_final: bool,
    /// Reading goes on from here: a byte or special edge leaves.
    pub(crate) scannable: bool,
    /// Nothing but a return: final, no edges, no block, and no label that would be lost by skipping it.
    pub(crate) pure_return: bool,
}

/// A counted repeat inside a rule: `min..=max` runs through the block's states, then on to `exit` of the same rule.
/// An item inside carries how many runs are complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) start: u32,
    pub(crate) exit: u32,
}

/// A compiled rule.
#[derive(Clone, Debug)]
pub(crate) struct RuleInfo {
    pub(crate) name: String,
    pub(crate) label: Option<Label>,
    pub(crate) start: u32,
    /// Calls possible before anything is read: `(rule, state to return to)`.
    pub(crate) calls: Vec<(u32, u32)>,
    /// States at which reading may begin.
    pub(crate) heads: Vec<u32>,
    /// Order of calls made before anything is read: callers first; members of a left-recursive component share a rank.
    pub(crate) rank: u32,
    /// Whether the rule can call itself before anything is read.
    pub(crate) left_recursive: bool,
    /// The component of mutually recursive rules it is in.
    pub(crate) component: u32,
}

/// A grammar as automata. Knows no vocabulary. Immutable; share it in an `Arc`.
///
/// Invariants: every state can reach the end of its rule (no dead states), so every reachable configuration can be
/// completed; nullable rules are resolved into epsilon steps, so a completed rule always spans at least one byte.
#[derive(Debug)]
pub struct Compiled {
    /// Different for every compiled grammar of the process.
    pub(crate) serial: u64,
    pub(crate) rules: Vec<RuleInfo>,
    /// All states, then one sentinel.
    states: Vec<State>,
    byte_edges: Vec<ByteEdge>,
    call_edges: Vec<(u32, u32)>,
    special_edges: Vec<(u32, u32)>,
    enter_edges: Vec<u32>,
    pub(crate) blocks: Vec<Block>,
    marks: Vec<Mark>,
    /// Byte to class: bytes of one class are never told apart.
    pub(crate) classes: Box<[u8; 256]>,
    /// One byte of each class.
    pub(crate) class_bytes: Vec<u8>,
    /// A [`State::pure_return`] state that stands for all of them (0 where there is none).
    pub(crate) pure_return: u32,
    pub(crate) start: u32,
    pub(crate) start_nullable: bool,
    pub(crate) specials: Vec<SpecialToken>,
}

/// Sizes of a compiled grammar, for people and for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledSize {
    /// Rules that can be reached from the start.
    pub rules: usize,
    /// States of all automata.
    pub states: usize,
    /// Edges of all automata.
    pub edges: usize,
    /// Counted blocks.
    pub blocks: usize,
    /// Byte classes.
    pub classes: usize,
}

impl Compiled {
    /// Compiles. Cost: close to linear in the grammar's size, except where an automaton has to be determinised; bounded by
    /// [`Limits::automaton_states`] and [`Limits::compiled_states`].
    pub fn new(grammar: &Grammar, limits: &Limits) -> Result<Compiled, CompileError> {
        grammar.validate()?;
        let units = lower::lower(grammar, limits)?;
        link::link(grammar, units, limits)
    }

    /// Sizes.
    pub fn size(&self) -> CompiledSize {
        CompiledSize {
            rules: self.rules.len(),
            states: self.states.len() - 1,
            edges: self.byte_edges.len() + self.call_edges.len() + self.special_edges.len() + self.enter_edges.len(),
            blocks: self.blocks.len(),
            classes: self.class_bytes.len(),
        }
    }

    /// Name of the rule a state belongs to.
    pub fn rule_name(&self, state: StateId) -> &str {
        &self.rules[self.states[state.index()].rule as usize].name
    }

    #[inline]
    pub(crate) fn state(&self, state: u32) -> &State {
        &self.states[state as usize]
    }

    #[inline]
    pub(crate) fn byte_edges(&self, state: u32) -> &[ByteEdge] {
        let i = state as usize;
        &self.byte_edges[self.states[i].bytes as usize..self.states[i + 1].bytes as usize]
    }

    /// `(rule, state to return to)`.
    #[inline]
    pub(crate) fn calls(&self, state: u32) -> &[(u32, u32)] {
        let i = state as usize;
        &self.call_edges[self.states[i].calls as usize..self.states[i + 1].calls as usize]
    }

    /// `(special, target)`.
    #[inline]
    pub(crate) fn special_edges(&self, state: u32) -> &[(u32, u32)] {
        let i = state as usize;
        &self.special_edges[self.states[i].specials as usize..self.states[i + 1].specials as usize]
    }

    /// Blocks that can be entered.
    #[inline]
    pub(crate) fn enters(&self, state: u32) -> &[u32] {
        let i = state as usize;
        &self.enter_edges[self.states[i].enters as usize..self.states[i + 1].enters as usize]
    }

    /// Whether a run of a block can call a rule. Cost: the block's states.
    pub(crate) fn block_calls(&self, block: u32) -> bool {
        let mut seen = vec![self.blocks[block as usize].start];
        let mut at = 0;
        while at < seen.len() {
            let state = seen[at];
            at += 1;
            if !self.calls(state).is_empty() {
                return true;
            }
            for &ByteEdge { to, .. } in self.byte_edges(state) {
                if !seen.contains(&to) {
                    seen.push(to);
                }
            }
        }
        false
    }

    #[inline]
    pub(crate) fn mark(&self, state: u32) -> Mark {
        self.marks.get(state as usize).copied().unwrap_or(Mark::Plain)
    }
}
