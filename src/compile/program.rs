//! Rule automata of a compiled grammar, determinised on demand, except for rules that are a minimal
//! automaton or a dispatch.
//!
//! A state is a set of states of the rule's nondeterministic automaton (lazy subset construction),
//! or one state of a minimal DFA. States are interned; edges are computed when a parse first leaves
//! the state. Each parser owns one [`Program`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dispatch::{CompiledDispatch, DispatchAutomaton, DispatchStateId};
use super::rule_nfa::{BlockNfaId, RuleNfa};
use super::{
    Block, BlockId, BudgetMeter, ByteClasses, ByteEdge, Compiled, CompiledRuleId, CompiledSize,
    DispatchMark, MAX_REPORTED_STATES, RegisterId, ReturnRole, shared_automata, thompson,
};
use crate::capacity::ReserveMore;
use crate::fsm::{Dfa, Edge};
use crate::fuel;
use crate::hash::{ByAddress, HashMap, HashSet};
use crate::ids::{Label, SpecialId, id};
use crate::ir::Expr;

mod closure;
mod counted_edges;
mod deferred;
mod edges;
mod equivalent_states;
mod graph_positions;
mod member_tables;
mod state_table;
mod states;

use closure::ClosureScratch;
use deferred::AppendedGrammars;
use graph_positions::GraphPositions;
use member_tables::{MemberTableId, MemberTables};
use state_table::{EdgeLists, StateTable};

pub(crate) use state_table::{State, StateId};

/// Most states that [`Program::may_call`] visits.
const MAX_CALLING_STATES: usize = 256;

/// The serial of the next program.
static SERIAL: AtomicU64 = AtomicU64::new(0);

id! {
    /// An instance: an index into [`Program::instances`].
    InstanceId
}

impl InstanceId {
    /// The instance of [`Program::RETURN`].
    const NONE: InstanceId = InstanceId::from_raw(u32::MAX);
}

/// Where the states of an [`Instance`] come from, and what their sets hold.
#[derive(Clone, Debug)]
enum StateSource {
    /// One state of a DFA.
    Dfa(Arc<Dfa>),
    /// States of a rule's nondeterministic automaton, or of that of one of its blocks, closed under
    /// epsilon edges.
    Sets(Arc<RuleNfa>, Option<BlockNfaId>),
    /// Pairs of a state and a number of steps, flattened, closed under epsilon edges.
    Counted(Arc<RuleNfa>),
    /// One state of a dispatch automaton. Not closed, as each state has a mark.
    Dispatch(Arc<CompiledDispatch>),
    /// As [`StateSource::Sets`], for a rule with member sets. The states are encoded by
    /// [`MemberTables::states`] of this id.
    Members(Arc<RuleNfa>, MemberTableId),
}

/// The state in a set of a [`StateSource::Dispatch`].
fn dispatch_state(set: &[u32]) -> DispatchStateId {
    DispatchStateId::from_raw(set[0])
}

/// A rule's automaton, or the automaton of a block at one place of its rule.
#[derive(Clone, Debug)]
struct Instance {
    source: StateSource,
    rule: CompiledRuleId,
    block: BlockId,
    /// The first rule of the grammar that the rule belongs to; the ids of callees count from it.
    first_rule: CompiledRuleId,
    /// States are shared with right-equivalent states of other rules: see [`super::residuals`].
    shares_equivalent_states: bool,
    /// How many more multi-element sets may become states. At zero, sets are split into single
    /// states, which configurations determinise.
    set_budget: u32,
}

/// An automaton that several grammars share; part of the key of pooled mask entries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SharedAutomaton {
    /// The minimal DFA of a rule.
    Rule(ByAddress<Dfa>),
    /// The automaton of a dispatch, without the rules that it calls.
    Dispatch(ByAddress<DispatchAutomaton>),
}

/// The entry of a rule: its start state, and what can happen there before a byte is read.
#[derive(Clone, Debug)]
struct RuleEntry {
    start: StateId,
    /// Each with the state to return to.
    calls: Vec<(CompiledRuleId, StateId)>,
    /// States in which the first byte can be read.
    first_readers: Vec<StateId>,
}

/// A block of a rule's automaton, placed in front of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PlacedBlock {
    rule: CompiledRuleId,
    block: BlockNfaId,
    /// The state after the block.
    exit: StateId,
}

/// The automaton states that a parse has reached. Ids are stable until the program is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    compiled: Arc<Compiled>,
    /// Deferred grammars that a parse has reached.
    appended: AppendedGrammars,
    /// Byte classes of the grammar and of all appended grammars.
    classes: Arc<ByteClasses>,
    /// Unique in the process. State ids are meaningful within one program only.
    serial: u64,
    states: StateTable,
    /// Placed blocks.
    pub(crate) blocks: Vec<Block>,
    /// Index of `blocks`.
    placed_blocks: HashMap<PlacedBlock, BlockId>,
    instances: Vec<Instance>,
    /// By rule: its entry, once opened.
    rules: Vec<Option<RuleEntry>>,
    members: MemberTables,
    /// Positions of states in counted graphs.
    graph_positions: GraphPositions,
    scratch: Scratch,
}

/// Buffers that are reused between expansions.
#[derive(Debug, Default)]
struct Scratch {
    /// The set of a state that is being made.
    set: Vec<u32>,
    closure: ClosureScratch,
    /// The edges of the set that is being expanded: those over bytes, and all others.
    read: Vec<Edge>,
    others: Vec<Edge>,
    cuts: Vec<u32>,
    targets: Vec<u32>,
    /// The edges of the state that is being expanded.
    edges: EdgeLists,
}

impl Program {
    /// The return state. It stands for every `is_return_only` state of all rules.
    pub(crate) const RETURN: StateId = StateId::from_raw(0);

    /// A program with the return state only.
    pub(crate) fn new(compiled: Arc<Compiled>) -> Program {
        Program {
            rules: vec![None; compiled.rules.len()],
            appended: AppendedGrammars::default(),
            classes: compiled.classes.clone(),
            compiled,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            states: StateTable::new(),
            blocks: Vec::new(),
            placed_blocks: HashMap::default(),
            instances: Vec::new(),
            members: MemberTables::default(),
            graph_positions: GraphPositions::default(),
            scratch: Scratch::default(),
        }
    }

    /// Builds all reachable states, for reports. Past [`MAX_REPORTED_STATES`], states get no edges.
    /// Member sets ignore which members have been seen, as there are exponentially many
    /// combinations.
    pub(super) fn whole(compiled: Arc<Compiled>) -> Program {
        let mut program = Program::new(compiled);
        program.members.ignores_members = true;
        program.instantiate(program.compiled.start);
        let mut at = 0;
        while at < program.states.len() {
            let state = StateId::new(at);
            if program.states.len() < MAX_REPORTED_STATES {
                program.expand(state);
            } else {
                program.states.set_edges(state, &EdgeLists::default());
            }
            for i in 0..program.calls(state).len() {
                program.instantiate(program.calls(state)[i].0);
            }
            at += 1;
        }
        program
    }

    /// The size of all automata made so far.
    pub(super) fn size(&self) -> CompiledSize {
        CompiledSize {
            rules: self.rules.iter().flatten().count(),
            states: self.states.len() - 1,
            edges: self.states.edges.len(),
            blocks: self.blocks.len(),
            classes: self.classes.len(),
        }
    }

    /// Unique in the process: the program in which state ids are meaningful.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The compiled grammar.
    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.states.bytes() + self.members.bytes()
    }

    /// Reserves capacity for further growth: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.states.reserve_more();
        self.instances.reserve_more();
    }

    /// A state by its id.
    #[inline]
    pub(crate) fn state(&self, state: StateId) -> &State {
        self.states.get(state)
    }

    /// The block around a state.
    #[inline]
    pub(crate) fn block_of(&self, state: StateId) -> Option<&Block> {
        self.blocks.get(self.state(state).block.index())
    }

    /// A block.
    #[inline]
    pub(crate) fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// The label of the rule a state belongs to.
    pub(crate) fn label(&self, state: StateId) -> Option<Label> {
        self.facts_of(self.state(state).rule).and_then(|rule| rule.label)
    }

    /// The rule of a state; may be an auxiliary rule.
    pub(crate) fn rule(&self, state: StateId) -> CompiledRuleId {
        self.state(state).rule
    }

    /// Whether a unique key has been reached: see [`crate::ir::Attributes::unique_key`].
    #[inline]
    pub(crate) fn has_unique_keys(&self) -> bool {
        self.states.has_unique_keys
    }

    /// Whether frames hold no counts, registers or keys.
    pub(crate) fn frames_hold_nothing(&self) -> bool {
        self.compiled.frames_hold_no_counts() && !self.states.has_unique_keys
    }

    /// Whether the edge from `state` to `to` ends an occurrence of a rule that calls unique keys.
    pub(crate) fn ends_unique_keys(&self, state: StateId, to: StateId) -> bool {
        let State { is_final, has_scan_edge, has_call_edge, block, .. } = *self.state(to);
        is_final
            && !has_scan_edge
            && !has_call_edge
            && block == BlockId::NONE
            && self.facts(self.rule(state)).has_unique_keys
    }

    /// Whether the rule of a state is auxiliary: made by the compiler for a part of a rule.
    pub(crate) fn is_auxiliary(&self, state: StateId) -> bool {
        let rule = self.rule(state);
        let local = self.local_rule(rule);
        rule != CompiledRuleId::NONE
            && local.rule.index() >= local.grammar.split_grammar.rules.len()
    }

    /// The budget of a state, if it is the return address of a budgeted call.
    pub(crate) fn budget_meter(&self, state: StateId) -> Option<BudgetMeter> {
        if self.compiled.budgets.is_empty() {
            return None;
        }
        let State { rule, is_final, has_scan_edge, has_call_edge, .. } = *self.state(state);
        let meter = self.compiled.budgets.get(&rule)?;
        (is_final && !has_scan_edge && !has_call_edge).then_some(*meter)
    }

    /// The count of the item that a call with return address `state` returns to.
    pub(crate) fn return_count(&self, state: StateId, count: u32) -> u32 {
        match self.budget_meter(state) {
            Some(meter) => meter.full,
            None if self.state(state).return_role == ReturnRole::Scope => RegisterId::EMPTY.raw(),
            None if self.state(state).block == BlockId::NONE => 0,
            None => count,
        }
    }

    /// Byte edges of an expanded state.
    #[inline]
    pub(crate) fn byte_edges(&self, state: StateId) -> &[ByteEdge] {
        &self.states.edges.bytes[self.states.edge_spans(state).bytes.range()]
    }

    /// Rules that an expanded state calls, each with the state to return to.
    #[inline]
    pub(crate) fn calls(&self, state: StateId) -> &[(CompiledRuleId, StateId)] {
        &self.states.edges.calls[self.states.edge_spans(state).calls.range()]
    }

    /// Special tokens that an expanded state reads, each with its target.
    #[inline]
    pub(crate) fn special_edges(&self, state: StateId) -> &[(SpecialId, StateId)] {
        &self.states.edges.specials[self.states.edge_spans(state).specials.range()]
    }

    /// The blocks that can be entered from an expanded state.
    #[inline]
    pub(crate) fn block_entries(&self, state: StateId) -> &[BlockId] {
        &self.states.edges.block_entries[self.states.edge_spans(state).block_entries.range()]
    }

    /// Rules that an opened rule can call before it reads, each with the state to return to.
    #[inline]
    pub(crate) fn leading_calls(&self, rule: CompiledRuleId) -> &[(CompiledRuleId, StateId)] {
        self.rules[rule.index()].as_ref().map_or(&[], |entry| &entry.calls)
    }

    /// States in which an opened rule can read its first byte.
    #[inline]
    pub(crate) fn first_readers(&self, rule: CompiledRuleId) -> &[StateId] {
        self.rules[rule.index()].as_ref().map_or(&[], |entry| &entry.first_readers)
    }

    /// What a state is made from, and its set; `None` for [`Program::RETURN`].
    fn source_of(&self, state: StateId) -> Option<(&StateSource, &[u32])> {
        let instance = self.states.get(state).key.instance;
        Some((&self.instances.get(instance.index())?.source, self.states.set(state)))
    }

    /// The meaning of a state within its tag dispatch.
    pub(crate) fn dispatch_mark(&self, state: StateId) -> DispatchMark {
        match self.source_of(state) {
            Some((StateSource::Dispatch(dispatch), set)) => {
                dispatch.automaton.mark(dispatch_state(set))
            }
            _ => DispatchMark::Plain,
        }
    }

    /// Whether a state of a tag dispatch has begun, or read, only excludes and triggers with
    /// [`unlikely`](crate::ir::Attributes::unlikely) bodies; `None` where it has begun nothing.
    pub(crate) fn is_unlikely_trigger(&self, state: StateId) -> Option<bool> {
        match self.source_of(state)? {
            (StateSource::Dispatch(dispatch), set) => {
                dispatch.is_unlikely(dispatch_state(set), |rule| self.facts(rule).unlikely)
            }
            _ => None,
        }
    }

    /// A [`State::is_trigger_state`] as a state of its dispatch automaton; equal for all
    /// dispatches over the same texts.
    pub(crate) fn dispatch_trigger_state(&self, state: StateId) -> Option<DispatchStateId> {
        self.state(state).is_trigger_state.then(|| dispatch_state(self.states.set(state)))
    }

    /// The shared automaton of a state and the state's number in it; `None` if the automaton is
    /// private.
    pub(crate) fn shared_automaton(&self, state: StateId) -> Option<(SharedAutomaton, u32)> {
        let (source, set) = self.source_of(state)?;
        let automaton = match source {
            StateSource::Dfa(dfa) if self.state(state).return_role == ReturnRole::Nothing => {
                SharedAutomaton::Rule(ByAddress(dfa.clone()))
            }
            StateSource::Dispatch(dispatch) => {
                SharedAutomaton::Dispatch(ByAddress(dispatch.shared()?.clone()))
            }
            _ => return None,
        };
        Some((automaton, set[0]))
    }

    /// Whether a state belongs to a tag dispatch, calls excluded.
    pub(crate) fn is_dispatch(&self, state: StateId) -> bool {
        matches!(self.source_of(state), Some((StateSource::Dispatch(_), _)))
    }

    /// The state of the dispatch of `state` with this [`Program::dispatch_trigger_state`].
    pub(crate) fn trigger_state(
        &mut self,
        state: StateId,
        of_dispatch: DispatchStateId,
    ) -> StateId {
        self.intern(self.states.get(state).key.instance, &[of_dispatch.raw()])
    }

    /// Whether a repetition of a block can call a rule. Cost: the states of the block.
    pub(crate) fn block_calls(&mut self, block: BlockId) -> bool {
        let mut seen: HashSet<StateId> = HashSet::default();
        let mut pending = vec![self.block(block).start];
        while let Some(state) = pending.pop() {
            if !seen.insert(state) || fuel::spend(1).is_err() {
                continue;
            }
            self.expand(state);
            if !self.calls(state).is_empty() {
                return true;
            }
            let specials = self.special_edges(state).iter().map(|&(_, to)| to);
            pending.extend(self.byte_edges(state).iter().map(|edge| edge.to).chain(specials));
        }
        false
    }

    /// Whether a rule may, from this state on, call one that passes a test. Also true for
    /// dispatches, and where too many states follow. Cost: those states of the rule.
    pub(crate) fn may_call(
        &mut self,
        state: StateId,
        passes: &dyn Fn(&Program, CompiledRuleId) -> bool,
    ) -> bool {
        let mut seen: HashSet<StateId> = HashSet::default();
        let mut pending = vec![state];
        while let Some(state) = pending.pop() {
            if !seen.insert(state) {
                continue;
            }
            if seen.len() > MAX_CALLING_STATES || self.is_dispatch(state) || fuel::spend(1).is_err()
            {
                return true;
            }
            self.expand(state);
            if self.calls(state).iter().any(|&(rule, _)| passes(self, rule)) {
                return true;
            }
            pending.extend(self.byte_edges(state).iter().map(|edge| edge.to));
            pending.extend(self.special_edges(state).iter().map(|&(_, to)| to));
            pending.extend(self.calls(state).iter().map(|&(_, to)| to));
            let ended = Some(self.state(state)).filter(|state| state.is_final);
            let blocks = self.block_entries(state).iter().copied();
            let blocks = blocks.chain(ended.map(|state| state.block));
            let blocks = blocks.filter(|&block| block != BlockId::NONE);
            pending.extend(blocks.map(|block| self.block(block)).flat_map(|b| [b.start, b.exit]));
        }
        false
    }

    /// Opens a rule: makes its automaton on first use, and returns its start state.
    pub(crate) fn instantiate(&mut self, rule: CompiledRuleId) -> StateId {
        if let Some(entry) = &self.rules[rule.index()] {
            return entry.start;
        }
        let local = self.local_rule(rule);
        let (grammar, local_rule) = (local.grammar.clone(), local.rule);
        let source = if let Some(dfa) = shared_automata::minimal_automaton(&grammar, local_rule) {
            StateSource::Dfa(dfa)
        } else if let Some(dispatch) = grammar.dispatches.get(&local_rule) {
            StateSource::Dispatch(dispatch.clone())
        } else if let Some(rule_nfa) = grammar.auxiliary.nfas.get(&local_rule) {
            self.state_source(rule_nfa.clone())
        } else {
            let rule_nfa = match &grammar.split_grammar.rules[local_rule.index()].body {
                Expr::Deferred(_) => self.deferred_rule_nfa(rule),
                body => thompson::rule_nfa(&grammar, body),
            };
            self.state_source(Arc::new(rule_nfa))
        };
        let instance = self.add_instance(source, rule, BlockId::NONE);
        let start = self.start_state(instance);
        self.expand(start);
        let mut calls = self.calls(start).to_vec();
        let mut first_readers = Vec::new();
        if self.state(start).has_scan_edge {
            first_readers.push(start);
        }
        for i in 0..self.block_entries(start).len() {
            let inner = self.block(self.block_entries(start)[i]).start;
            self.expand(inner);
            calls.extend_from_slice(self.calls(inner));
            if self.state(inner).has_scan_edge {
                first_readers.push(inner);
            }
        }
        self.rules[rule.index()] = Some(RuleEntry { start, calls, first_readers });
        start
    }

    /// Computes the edges of a state, unless that has been done.
    #[inline]
    pub(crate) fn expand(&mut self, state: StateId) {
        if !self.states.get(state).memo.expanded {
            self.find_edges(state);
        }
    }
}
