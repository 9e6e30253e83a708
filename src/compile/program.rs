//! Rule automata of a compiled grammar, determinised on demand.
//!
//! A state is a set of states of the rule's nondeterministic automaton (lazy subset construction),
//! or one state of a minimal DFA. States are interned; edges are computed when a parse first leaves
//! the state. Each parser owns one [`Program`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dispatch::{CompiledDispatch, DispatchAutomaton};
use super::member_sets::{MemberLikelihood, MemberSetStates};
use super::rule_nfa::RuleNfa;
use super::{
    Block, BudgetMeter, ByteClasses, ByteEdge, Compiled, CompiledSize, DispatchMark, NO_BLOCK,
    ReturnRole, shared_automata, thompson,
};
use crate::capacity::{PagedVec, ReserveMore};
use crate::fsm::{Dfa, Edge};
use crate::hash::HashMap;
use crate::ids::Label;
use crate::interner::InternIndex;
use crate::ir::Expr;

mod counted_edges;
mod deferred;
mod edges;
mod equivalent_states;
mod graph_positions;
mod states;

use deferred::AppendedGrammars;
use equivalent_states::MemberClasses;
use graph_positions::GraphPositions;

/// A value that has not been computed.
const UNKNOWN: u32 = u32::MAX;
/// Reserved capacity in states: the size of a small schema.
const INITIAL_STATES: usize = 224;
/// States per page of the paged vector.
const PAGE_STATES: usize = 1 << 13;
/// The rule of [`Program::RETURN`].
const NO_RULE: u32 = u32::MAX;

/// The serial of the next program.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A range of one of the program's flat arrays.
#[derive(Clone, Copy, Debug, Default)]
struct PoolSpan {
    at: u32,
    len: u32,
}

impl PoolSpan {
    /// The range as indices.
    fn range(self) -> std::ops::Range<usize> {
        self.at as usize..(self.at + self.len) as usize
    }
}

/// A state of a rule's automaton.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// The rule of the state.
    pub(crate) rule: u32,
    /// The counted block around the state, or [`NO_BLOCK`].
    pub(crate) block: u32,
    /// Accepting: the rule may end here; inside a block, one repetition may.
    pub(crate) is_final: bool,
    /// A byte or special-token edge leaves the state.
    pub(crate) scannable: bool,
    /// The state only returns: accepting, without edges, outside of blocks, and of an untracked
    /// rule. Returning past it loses nothing.
    pub(crate) pure_return: bool,
    /// A call or a block leaves the state.
    pub(crate) calling: bool,
    /// A dispatch state in which a trigger has just fired and tag bodies may follow. Mask entries
    /// of the dispatch end here.
    pub(crate) is_trigger_state: bool,
    /// Whether the state is the return address of a distinct-values scope or element.
    pub(crate) return_role: ReturnRole,
    /// The rule is a unique name: see [`crate::ir::Attributes::name`].
    pub(crate) name: bool,
    /// The final state of a unique name whose rule has no other attribute.
    pub(crate) ends_unique_name: bool,
    /// The edges have been computed.
    expanded: bool,
    /// The representative of the state for masks, or [`UNKNOWN`]: see
    /// [`Program::equivalent_state`].
    equivalent: u32,
    /// The automaton of the state.
    instance: u32,
    /// Its set, in `Program::sets`; see [`StateSource`].
    set: PoolSpan,
    bytes: PoolSpan,
    calls: PoolSpan,
    specials: PoolSpan,
    enters: PoolSpan,
}

/// Where the states of an [`Instance`] come from, and what their sets hold.
#[derive(Clone, Debug)]
enum StateSource {
    /// One state of a DFA.
    Dfa(Arc<Dfa>),
    /// States of one part of a rule's nondeterministic automaton, closed under epsilon edges.
    Sets(Arc<RuleNfa>, u32),
    /// Pairs of a state and a number of steps, flattened, closed under epsilon edges.
    Counted(Arc<RuleNfa>),
    /// One state of a dispatch automaton. Not closed, as each state has a mark.
    Dispatch(Arc<CompiledDispatch>),
    /// As [`StateSource::Sets`], for a rule with member sets. The states are encoded by
    /// `Program::member_states` at this index.
    Members(Arc<RuleNfa>, u32),
}

/// A rule's automaton, or the automaton of a block at one place of its rule.
#[derive(Clone, Debug)]
struct Instance {
    source: StateSource,
    rule: u32,
    block: u32,
    /// Id of the first rule of the grammar that the rule belongs to; an offset for callees.
    from: u32,
    /// States are shared with right-equivalent states of other rules: see [`super::residuals`].
    merged: bool,
    /// How many more multi-element sets may become states. At zero, sets are split into single
    /// states, which configurations determinise.
    left: u32,
}

/// An automaton that several grammars share; part of the key of pooled mask entries.
#[derive(Clone, Debug)]
pub(crate) enum SharedAutomaton {
    /// The minimal DFA of a rule.
    Rule(Arc<Dfa>),
    /// The automaton of a dispatch, without the rules that it calls.
    Dispatch(Arc<DispatchAutomaton>),
}

impl SharedAutomaton {
    /// The address of the automaton; unique while `self` is alive.
    pub(crate) fn address(&self) -> usize {
        match self {
            SharedAutomaton::Rule(dfa) => Arc::as_ptr(dfa) as usize,
            SharedAutomaton::Dispatch(shape) => Arc::as_ptr(shape) as usize,
        }
    }
}

/// The entry of a rule: its start state, and what can happen there before a byte is read.
#[derive(Clone, Debug, Default)]
struct RuleEntry {
    /// The automaton has been made.
    open: bool,
    start: u32,
    calls: Vec<(u32, u32)>,
    /// States in which the first byte can be read.
    heads: Vec<u32>,
}

/// The edges of all states, in one array per kind; states refer to ranges.
#[derive(Debug, Default)]
struct EdgePools {
    bytes: Vec<ByteEdge>,
    /// `(rule, state to return to)`
    calls: Vec<(u32, u32)>,
    /// `(special token, target)`
    specials: Vec<(u32, u32)>,
    /// Placed blocks that are entered.
    enters: Vec<u32>,
}

/// The automaton states that a parse has reached. Ids are stable until the program is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    compiled: Arc<Compiled>,
    /// Deferred grammars that a parse has reached.
    appended: AppendedGrammars,
    /// Byte classes of the grammar and of all appended grammars.
    classes: Arc<ByteClasses>,
    /// A unique name has been reached.
    has_names: bool,
    /// Unique in the process. State ids are meaningful within one program only.
    serial: u64,
    states: PagedVec<State, PAGE_STATES>,
    /// Sets of all states, flat.
    sets: Vec<u32>,
    /// Edges of all states.
    edges: EdgePools,
    /// Placed blocks.
    pub(crate) blocks: Vec<Block>,
    instances: Vec<Instance>,
    /// By rule: its entry, once opened.
    rules: Vec<RuleEntry>,
    /// Index of `states` by instance and set.
    state_index: InternIndex,
    /// Merged states, by the id of their residual language: see [`super::residuals`].
    residuals: HashMap<u32, u32>,
    /// Encoded states of member sets; one entry for each instance with member sets.
    member_states: Vec<MemberSetStates>,
    /// Encoded states in all sets; for the memory estimate.
    stored_member_states: usize,
    /// Representatives of member-set states.
    member_classes: MemberClasses,
    /// Memo of [`Program::completion_state`].
    nearing_end: HashMap<u32, u32>,
    /// Positions of states in counted graphs.
    graph_positions: GraphPositions,
    /// Every state ignores which members have been seen; for reports.
    ignores_members: bool,
    /// Placed blocks, by rule, block of its automaton, and exit state.
    placed_blocks: HashMap<(u32, u32, u32), u32>,
    scratch: Scratch,
}

/// Buffers that are reused between expansions.
#[derive(Debug, Default)]
struct Scratch {
    set: Vec<u32>,
    stack: Vec<u32>,
    /// By nondeterministic state: the round in which it was last visited.
    seen: Vec<u32>,
    /// By nondeterministic state: the member set with which it was visited in that round.
    numbers: Vec<u32>,
    round: u32,
    edges: Vec<Edge>,
    others: Vec<Edge>,
    cuts: Vec<u32>,
    bytes: Vec<ByteEdge>,
    calls: Vec<(u32, u32)>,
    specials: Vec<(u32, u32)>,
    enters: Vec<u32>,
    targets: Vec<u32>,
}

impl Program {
    /// The return state. It stands for every `pure_return` state of all rules.
    pub(crate) const RETURN: u32 = 0;

    /// A program with the return state only.
    pub(crate) fn new(compiled: Arc<Compiled>) -> Program {
        let mut program = Program {
            rules: vec![RuleEntry::default(); compiled.rules.len()],
            appended: AppendedGrammars::default(),
            classes: compiled.classes.clone(),
            has_names: false,
            compiled,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            states: PagedVec::with_capacity(INITIAL_STATES),
            sets: Vec::with_capacity(INITIAL_STATES * 2),
            edges: EdgePools {
                bytes: Vec::with_capacity(INITIAL_STATES * 2),
                calls: Vec::with_capacity(INITIAL_STATES / 4),
                ..EdgePools::default()
            },
            blocks: Vec::new(),
            instances: Vec::new(),
            state_index: InternIndex::with_capacity(INITIAL_STATES),
            residuals: HashMap::default(),
            member_states: Vec::new(),
            stored_member_states: 0,
            member_classes: MemberClasses::default(),
            nearing_end: HashMap::default(),
            graph_positions: GraphPositions::default(),
            ignores_members: false,
            placed_blocks: HashMap::default(),
            scratch: Scratch::default(),
        };
        program.states.push(State {
            rule: NO_RULE,
            block: NO_BLOCK,
            is_final: true,
            scannable: false,
            pure_return: true,
            calling: false,
            is_trigger_state: false,
            return_role: ReturnRole::Nothing,
            name: false,
            ends_unique_name: false,
            expanded: true,
            equivalent: Program::RETURN,
            instance: UNKNOWN,
            set: PoolSpan::default(),
            bytes: PoolSpan::default(),
            calls: PoolSpan::default(),
            specials: PoolSpan::default(),
            enters: PoolSpan::default(),
        });
        program
    }

    /// Builds all reachable states, for reports. Member sets ignore which members have been seen,
    /// as there are exponentially many combinations.
    pub(super) fn whole(compiled: Arc<Compiled>) -> Program {
        let mut program = Program { ignores_members: true, ..Program::new(compiled) };
        program.open(program.compiled.start);
        let mut at = 0;
        while at < program.states.len() {
            program.expand(at as u32);
            for i in program.states[at].calls.range() {
                program.open(program.edges.calls[i].0);
            }
            at += 1;
        }
        program
    }

    /// The size of all automata made so far.
    pub(super) fn size(&self) -> CompiledSize {
        CompiledSize {
            rules: self.rules.iter().filter(|r| r.open).count(),
            states: self.states.len() - 1,
            edges: self.edges.bytes.len()
                + self.edges.calls.len()
                + self.edges.specials.len()
                + self.edges.enters.len(),
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
        self.states.len() * (size_of::<State>() + 8)
            + self.sets.len() * 4
            + self.edges.bytes.len() * size_of::<ByteEdge>()
            + (self.edges.calls.len() + self.edges.specials.len()) * 8
            + self.stored_member_states * MemberSetStates::BYTES
    }

    /// Reserves capacity for further growth: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.states.reserve_more();
        self.sets.reserve_more();
        self.edges.bytes.reserve_more();
        self.edges.calls.reserve_more();
        self.instances.reserve_more();
        self.state_index.reserve_more();
    }

    /// Number of states.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// A state by its id.
    #[inline]
    pub(crate) fn state(&self, state: u32) -> &State {
        &self.states[state as usize]
    }

    /// The block around a state.
    #[inline]
    pub(crate) fn block_of(&self, state: u32) -> Option<&Block> {
        self.blocks.get(self.states[state as usize].block as usize)
    }

    /// A block.
    #[inline]
    pub(crate) fn block(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    /// The label of the rule a state belongs to.
    pub(crate) fn label(&self, state: u32) -> Option<Label> {
        self.facts_of(self.states[state as usize].rule).and_then(|rule| rule.label)
    }

    /// The rule of a state; may be an auxiliary rule.
    pub(crate) fn rule(&self, state: u32) -> u32 {
        self.states[state as usize].rule
    }

    /// Whether a unique name has been reached: see [`crate::ir::Attributes::name`].
    #[inline]
    pub(crate) fn has_unique_names(&self) -> bool {
        self.has_names
    }

    /// Whether frames hold no counts, registers or names.
    pub(crate) fn frames_hold_nothing(&self) -> bool {
        self.compiled.frames_hold_no_counts() && !self.has_names
    }

    /// Whether the edge from `state` to `to` ends an occurrence of a rule that calls unique names.
    pub(crate) fn ends_unique_names(&self, state: u32, to: u32) -> bool {
        let State { is_final, scannable, calling, block, .. } = *self.state(to);
        is_final
            && !scannable
            && !calling
            && block == NO_BLOCK
            && self.facts(self.rule(state)).has_names
    }

    /// Whether the rule of a state is auxiliary: made by the compiler for a part of a rule.
    pub(crate) fn is_auxiliary(&self, state: u32) -> bool {
        let rule = self.rule(state);
        let (grammar, from) = self.grammar_of_rule(rule);
        rule != NO_RULE && (rule - from) as usize >= grammar.split_grammar.rules.len()
    }

    /// The budget of a state, if it is the return address of a budgeted call.
    pub(crate) fn budget_meter(&self, state: u32) -> Option<BudgetMeter> {
        if self.compiled.budgets.is_empty() {
            return None;
        }
        let State { rule, is_final, scannable, calling, .. } = self.states[state as usize];
        let meter = self.compiled.budgets.get(&rule)?;
        (is_final && !scannable && !calling).then_some(*meter)
    }

    /// The count of the item that a call with return address `state` returns to.
    pub(crate) fn return_count(&self, state: u32, count: u32) -> u32 {
        match self.budget_meter(state) {
            Some(meter) => meter.full,
            None if self.states[state as usize].return_role == ReturnRole::Scope => {
                super::EMPTY_REGISTER
            }
            None if self.states[state as usize].block == NO_BLOCK => 0,
            None => count,
        }
    }

    /// A state whose edges have been computed.
    #[inline]
    fn expanded(&self, state: u32) -> &State {
        debug_assert!(self.states[state as usize].expanded);
        &self.states[state as usize]
    }

    /// Byte edges of an expanded state.
    #[inline]
    pub(crate) fn byte_edges(&self, state: u32) -> &[ByteEdge] {
        &self.edges.bytes[self.expanded(state).bytes.range()]
    }

    /// `(rule, state to return to)` of an expanded state.
    #[inline]
    pub(crate) fn calls(&self, state: u32) -> &[(u32, u32)] {
        &self.edges.calls[self.expanded(state).calls.range()]
    }

    /// `(special token, target)` of an expanded state.
    #[inline]
    pub(crate) fn special_edges(&self, state: u32) -> &[(u32, u32)] {
        &self.edges.specials[self.expanded(state).specials.range()]
    }

    /// The blocks that can be entered from an expanded state.
    #[inline]
    pub(crate) fn enters(&self, state: u32) -> &[u32] {
        &self.edges.enters[self.expanded(state).enters.range()]
    }

    /// Calls that an opened rule can make before it reads: `(rule, state to return to)`.
    #[inline]
    pub(crate) fn leading_calls(&self, rule: u32) -> &[(u32, u32)] {
        &self.rules[rule as usize].calls
    }

    /// States in which an opened rule can read its first byte.
    #[inline]
    pub(crate) fn first_readers(&self, rule: u32) -> &[u32] {
        &self.rules[rule as usize].heads
    }

    /// The meaning of a state within its tag dispatch.
    pub(crate) fn dispatch_mark(&self, state: u32) -> DispatchMark {
        let State { instance, set, .. } = self.states[state as usize];
        match self.instances.get(instance as usize).map(|i| &i.source) {
            Some(StateSource::Dispatch(dispatch)) => dispatch.mark(self.sets[set.at as usize]),
            _ => DispatchMark::Plain,
        }
    }

    /// Whether a state of a tag dispatch has begun, or read, excludes and triggers with
    /// [`unusual`](crate::ir::Attributes::unusual) bodies only; `None` where it has begun nothing.
    pub(crate) fn is_unusual_trigger(&self, state: u32) -> Option<bool> {
        let State { instance, set, .. } = self.states[state as usize];
        match self.instances.get(instance as usize).map(|i| &i.source) {
            Some(StateSource::Dispatch(dispatch)) => {
                dispatch.is_unusual(self.sets[set.at as usize], |rule| self.facts(rule).unusual)
            }
            _ => None,
        }
    }

    /// The number of a [`State::is_trigger_state`] within its dispatch automaton; equal for all
    /// dispatches over the same texts.
    pub(crate) fn trigger_state_number(&self, state: u32) -> Option<u32> {
        let State { is_trigger_state, set, .. } = self.states[state as usize];
        is_trigger_state.then(|| self.sets[set.at as usize])
    }

    /// The shared automaton of a state and the state's number in it; `None` if the automaton is
    /// private.
    pub(crate) fn shared_automaton(&self, state: u32) -> Option<(SharedAutomaton, u32)> {
        let State { instance, set, return_role, .. } = self.states[state as usize];
        let automaton = match &self.instances.get(instance as usize)?.source {
            StateSource::Dfa(dfa) if return_role == ReturnRole::Nothing => {
                SharedAutomaton::Rule(dfa.clone())
            }
            StateSource::Dispatch(dispatch) => {
                SharedAutomaton::Dispatch(dispatch.shared()?.clone())
            }
            _ => return None,
        };
        Some((automaton, self.sets[set.at as usize]))
    }

    /// Whether a state belongs to a tag dispatch, calls excluded.
    pub(crate) fn is_dispatch(&self, state: u32) -> bool {
        let instance = self.states[state as usize].instance as usize;
        matches!(
            self.instances.get(instance),
            Some(Instance { source: StateSource::Dispatch(_), .. })
        )
    }

    /// The gate with this number in the dispatch of `state`.
    pub(crate) fn trigger_state(&mut self, state: u32, number: u32) -> u32 {
        self.intern(self.states[state as usize].instance, &[number])
    }

    /// How many at-most-once members may still come; 0 outside of member sets.
    pub(crate) fn members_left(&self, state: u32) -> u32 {
        let State { instance, set, .. } = self.states[state as usize];
        match self.instances.get(instance as usize).map(|i| &i.source) {
            Some(StateSource::Members(rule_nfa, number)) => {
                self.member_states[*number as usize].remaining(rule_nfa, &self.sets[set.range()])
            }
            _ => 0,
        }
    }

    /// The likelihood of a state within its member set. `returned`: the state is the return address
    /// of a call. `None` outside of member sets.
    pub(crate) fn member_likelihood(&self, state: u32, returned: bool) -> Option<MemberLikelihood> {
        let state = self.block_of(state).map_or(state, |block| block.exit);
        let State { instance, set, .. } = self.states[state as usize];
        match self.instances.get(instance as usize).map(|i| &i.source) {
            Some(StateSource::Members(rule_nfa, number)) => {
                Some(self.member_states[*number as usize].likelihood(
                    rule_nfa,
                    &self.sets[set.range()],
                    returned,
                ))
            }
            _ => None,
        }
    }

    /// A state with the same shortest completion as `state`, in which only missing members may
    /// come, in one order. It keeps the search for the nearest end from meeting exponentially many
    /// member sets.
    pub(crate) fn completion_state(&mut self, state: u32) -> u32 {
        let State { instance, set, .. } = self.states[state as usize];
        let source = self.instances.get(instance as usize).map(|i| i.source.clone());
        let Some(StateSource::Members(rule_nfa, number)) = source else { return state };
        if let Some(&known) = self.nearing_end.get(&state) {
            return known;
        }
        let to = match self.member_states[number as usize]
            .nearing_end(&rule_nfa, &self.sets[set.range()])
        {
            Some(set) => self.intern(instance, &set),
            None => state,
        };
        self.nearing_end.insert(state, to);
        to
    }

    /// Whether a repetition of a block can call a rule. Cost: the states of the block.
    pub(crate) fn block_calls(&mut self, block: u32) -> bool {
        let mut seen = vec![self.blocks[block as usize].start];
        let mut at = 0;
        while at < seen.len() {
            let state = seen[at];
            at += 1;
            self.expand(state);
            if !self.calls(state).is_empty() {
                return true;
            }
            let specials = self.special_edges(state).iter().map(|&(_, to)| to);
            for to in self.byte_edges(state).iter().map(|edge| edge.to).chain(specials) {
                if !seen.contains(&to) {
                    seen.push(to);
                }
            }
        }
        false
    }

    /// Opens a rule: makes its automaton on first use, and returns its start state.
    pub(crate) fn open(&mut self, rule: u32) -> u32 {
        if self.rules[rule as usize].open {
            return self.rules[rule as usize].start;
        }
        let (compiled, from) = self.grammar_of_rule(rule);
        let compiled = compiled.clone();
        let local_rule = rule - from;
        let source = if let Some(dfa) = shared_automata::minimal_automaton(&compiled, local_rule) {
            StateSource::Dfa(dfa)
        } else if let Some(dispatch) = compiled.dispatches.get(&local_rule) {
            StateSource::Dispatch(dispatch.clone())
        } else if let Some(rule_nfa) = compiled.rule_nfas.get(&local_rule) {
            self.state_source(rule_nfa.clone())
        } else {
            let rule_nfa = match &compiled.split_grammar.rules[local_rule as usize].body {
                Expr::Deferred(_) => self.deferred_rule_nfa(rule),
                body => thompson::rule_nfa(&compiled, body),
            };
            self.state_source(Arc::new(rule_nfa))
        };
        let instance = self.add_instance(source, (rule, from), NO_BLOCK);
        let start = self.start_state(instance);
        self.expand(start);
        let mut calls = self.calls(start).to_vec();
        let mut heads = Vec::new();
        if self.states[start as usize].scannable {
            heads.push(start);
        }
        for i in self.states[start as usize].enters.range() {
            let inner = self.blocks[self.edges.enters[i] as usize].start;
            self.expand(inner);
            calls.extend_from_slice(self.calls(inner));
            if self.states[inner as usize].scannable {
                heads.push(inner);
            }
        }
        self.rules[rule as usize] = RuleEntry { open: true, start, calls, heads };
        start
    }

    /// Computes the edges of a state, unless that has been done.
    #[inline]
    pub(crate) fn expand(&mut self, state: u32) {
        if !self.states[state as usize].expanded {
            self.find_edges(state);
        }
    }
}
