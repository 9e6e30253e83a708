//! The table of automaton states: what each state is, its set, and its edges once computed.

use std::hash::Hasher;

use super::super::{BlockId, ByteEdge, CompiledRuleId, ReturnRole};
use super::{InstanceId, Program};
use crate::capacity::{PagedVec, ReserveMore};
use crate::fsm::ResidualId;
use crate::hash::{HashMap, hasher};
use crate::ids::{SpecialId, id};
use crate::interner::InternIndex;

/// Reserved capacity in states: the size of a small schema.
const INITIAL_STATES: usize = 224;
/// States per page of the paged vector.
const PAGE_STATES: usize = 1 << 13;

id! {
    /// A state of the compiled automata, over all rules: an index into the state table of one
    /// [`Program`].
    pub(crate) StateId
}

impl StateId {
    /// Not computed yet.
    pub(super) const UNKNOWN: StateId = StateId::from_raw(u32::MAX);
}

/// A range of one of the table's flat arrays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PoolSpan {
    at: u32,
    len: u32,
}

impl PoolSpan {
    /// The range as indices.
    #[inline]
    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.at as usize..(self.at + self.len) as usize
    }

    /// Appends entries to a flat array; returns their range.
    fn append<T: Copy>(all: &mut Vec<T>, new: &[T]) -> PoolSpan {
        let span = PoolSpan { at: all.len() as u32, len: new.len() as u32 };
        all.extend_from_slice(new);
        span
    }
}

/// A state of a rule's automaton.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// The rule of the state.
    pub(crate) rule: CompiledRuleId,
    /// The counted block around the state, or [`BlockId::NONE`].
    pub(crate) block: BlockId,
    /// Accepting: the rule may end here; inside a block, one repetition may.
    pub(crate) is_final: bool,
    /// A byte or special-token edge leaves the state.
    pub(crate) has_scan_edge: bool,
    /// The state only returns: accepting, without edges, outside of blocks, and of an untracked
    /// rule. Returning past it loses nothing.
    pub(crate) is_return_only: bool,
    /// A call or a block leaves the state.
    pub(crate) has_call_edge: bool,
    /// A dispatch state in which a trigger has just fired and tag bodies may follow. Mask entries
    /// of the dispatch end here.
    pub(crate) is_trigger_state: bool,
    /// Whether the state is the return address of a distinct-values scope or element.
    pub(crate) return_role: ReturnRole,
    /// The rule is a unique key: see [`crate::ir::Attributes::unique_key`].
    pub(crate) unique_key: bool,
    /// The final state of a unique key whose rule has no other attribute.
    pub(crate) ends_unique_key: bool,
    pub(super) key: StateKey,
    pub(super) memo: StateMemo,
}

/// The identity of a state: its automaton, and its set in that.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateKey {
    /// The automaton of the state.
    pub(super) instance: InstanceId,
    /// Its set, in [`StateTable::sets`]; see [`StateSource`](super::StateSource).
    pub(super) set: PoolSpan,
}

/// What is computed about a state when a parse first needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateMemo {
    /// The edges have been computed.
    pub(super) expanded: bool,
    pub(super) edges: EdgeSpans,
    /// The representative of the state for masks, or [`StateId::UNKNOWN`]: see
    /// [`Program::representative_state`].
    pub(super) representative: StateId,
}

impl StateMemo {
    /// Nothing has been computed.
    pub(super) const EMPTY: StateMemo = StateMemo {
        expanded: false,
        edges: EdgeSpans {
            bytes: PoolSpan { at: 0, len: 0 },
            calls: PoolSpan { at: 0, len: 0 },
            specials: PoolSpan { at: 0, len: 0 },
            block_entries: PoolSpan { at: 0, len: 0 },
        },
        representative: StateId::UNKNOWN,
    };
}

/// The edges of a state, as ranges of [`EdgeLists`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EdgeSpans {
    pub(super) bytes: PoolSpan,
    pub(super) calls: PoolSpan,
    pub(super) specials: PoolSpan,
    pub(super) block_entries: PoolSpan,
}

/// Edges, in one list per kind: those of a state, or those of all states.
#[derive(Debug, Default)]
pub(super) struct EdgeLists {
    pub(super) bytes: Vec<ByteEdge>,
    /// Each with the state to return to.
    pub(super) calls: Vec<(CompiledRuleId, StateId)>,
    /// Each with its target.
    pub(super) specials: Vec<(SpecialId, StateId)>,
    /// Placed blocks that are entered.
    pub(super) block_entries: Vec<BlockId>,
}

impl EdgeLists {
    /// Removes all edges.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.calls.clear();
        self.specials.clear();
        self.block_entries.clear();
    }

    /// Appends a byte edge; merges it with the last one if their ranges touch and their targets are
    /// equal.
    pub(super) fn push_bytes(&mut self, lo: u32, hi: u32, to: StateId) {
        let (lo, hi) = (lo as u8, hi.min(255) as u8);
        match self.bytes.last_mut() {
            Some(last) if last.to == to && u32::from(last.hi) + 1 == u32::from(lo) => last.hi = hi,
            _ => self.bytes.push(ByteEdge { lo, hi, to }),
        }
    }

    /// Appends the edges of a state.
    fn append(&mut self, new: &EdgeLists) -> EdgeSpans {
        EdgeSpans {
            bytes: PoolSpan::append(&mut self.bytes, &new.bytes),
            calls: PoolSpan::append(&mut self.calls, &new.calls),
            specials: PoolSpan::append(&mut self.specials, &new.specials),
            block_entries: PoolSpan::append(&mut self.block_entries, &new.block_entries),
        }
    }

    /// Number of edges.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.calls.len() + self.specials.len() + self.block_entries.len()
    }

    /// Approximate memory use in bytes.
    fn bytes_held(&self) -> usize {
        self.bytes.len() * size_of::<ByteEdge>() + (self.calls.len() + self.specials.len()) * 8
    }
}

/// The states of a program, with their sets and edges in flat arrays. Ids are stable.
#[derive(Debug)]
pub(super) struct StateTable {
    states: PagedVec<State, PAGE_STATES>,
    /// Sets of all states, flat.
    sets: Vec<u32>,
    /// Edges of all states.
    pub(super) edges: EdgeLists,
    /// Index of `states` by [`StateKey`].
    index: InternIndex,
    /// Merged states, by their residual language: see [`super::super::residuals`].
    pub(super) residuals: HashMap<ResidualId, StateId>,
    /// Some state is of a unique key.
    pub(super) has_unique_keys: bool,
}

impl StateTable {
    /// A table with [`Program::RETURN`] only.
    pub(super) fn new() -> StateTable {
        let mut table = StateTable {
            states: PagedVec::with_capacity(INITIAL_STATES),
            sets: Vec::with_capacity(INITIAL_STATES * 2),
            edges: EdgeLists {
                bytes: Vec::with_capacity(INITIAL_STATES * 2),
                calls: Vec::with_capacity(INITIAL_STATES / 4),
                ..EdgeLists::default()
            },
            index: InternIndex::with_capacity(INITIAL_STATES),
            residuals: HashMap::default(),
            has_unique_keys: false,
        };
        table.states.push(State {
            rule: CompiledRuleId::NONE,
            block: BlockId::NONE,
            is_final: true,
            has_scan_edge: false,
            is_return_only: true,
            has_call_edge: false,
            is_trigger_state: false,
            return_role: ReturnRole::Nothing,
            unique_key: false,
            ends_unique_key: false,
            key: StateKey { instance: InstanceId::NONE, set: PoolSpan::default() },
            memo: StateMemo { expanded: true, representative: Program::RETURN, ..StateMemo::EMPTY },
        });
        table
    }

    /// Number of states.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// A state by its id.
    #[inline]
    pub(super) fn get(&self, state: StateId) -> &State {
        &self.states[state.index()]
    }

    /// What has been computed about a state.
    pub(super) fn memo_mut(&mut self, state: StateId) -> &mut StateMemo {
        &mut self.states[state.index()].memo
    }

    /// The set of a state.
    #[inline]
    pub(super) fn set(&self, state: StateId) -> &[u32] {
        self.slice(self.get(state).key.set)
    }

    /// A set.
    #[inline]
    pub(super) fn slice(&self, set: PoolSpan) -> &[u32] {
        &self.sets[set.range()]
    }

    /// Hash of a state's identity.
    pub(super) fn hash(instance: InstanceId, set: &[u32]) -> u64 {
        let mut hasher = hasher();
        hasher.write_u32(instance.raw());
        set.iter().for_each(|&s| hasher.write_u32(s));
        hasher.finish()
    }

    /// The indexed state of a set. `hash`: see [`StateTable::hash`].
    #[inline]
    pub(super) fn find(&self, hash: u64, instance: InstanceId, set: &[u32]) -> Option<StateId> {
        let same =
            |state: StateId| self.get(state).key.instance == instance && self.set(state) == set;
        self.index.find(hash, |index| same(StateId::from_raw(index))).map(StateId::from_raw)
    }

    /// Makes a state findable by its hash.
    pub(super) fn insert(&mut self, hash: u64, state: StateId) {
        self.index.insert(hash, state.raw());
    }

    /// Appends a set for a new state.
    pub(super) fn append_set(&mut self, set: &[u32]) -> PoolSpan {
        PoolSpan::append(&mut self.sets, set)
    }

    /// Appends a state.
    pub(super) fn push(&mut self, state: State) -> StateId {
        self.has_unique_keys |= state.unique_key;
        self.states.push(state);
        StateId::new(self.states.len() - 1)
    }

    /// Stores the edges of a state.
    pub(super) fn set_edges(&mut self, state: StateId, edges: &EdgeLists) {
        let spans = self.edges.append(edges);
        let memo = self.memo_mut(state);
        (memo.edges, memo.expanded) = (spans, true);
    }

    /// The ranges of edges of an expanded state.
    #[inline]
    pub(super) fn edge_spans(&self, state: StateId) -> &EdgeSpans {
        let memo = &self.get(state).memo;
        debug_assert!(memo.expanded);
        &memo.edges
    }

    /// Approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.states.len() * (size_of::<State>() + 8) + self.sets.len() * 4 + self.edges.bytes_held()
    }

    /// Reserves capacity for further growth: see [`crate::capacity`].
    pub(super) fn reserve_more(&mut self) {
        self.states.reserve_more();
        self.sets.reserve_more();
        self.edges.bytes.reserve_more();
        self.edges.calls.reserve_more();
        self.index.reserve_more();
    }
}
