//! The automata of a compiled grammar, built as a parse gets to them. A state of a rule is a set of states of the rule's
//! nondeterministic automaton (the lazy subset construction), or a state of a minimal automaton; its edges are found when
//! it is first left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dispatch::{CompiledDispatch, DispatchAutomaton};
use super::member_sets::{EquivalenceKey, MemberLikelihood, MemberSetStates};
use super::rule_nfa::RuleNfa;
use super::{
    Block, BudgetMeter, ByteClasses, ByteEdge, Compiled, CompiledSize, DispatchMark, NO_BLOCK,
    ReturnRole, RuleFacts, shared_automata, thompson,
};
use crate::capacity::{PagedVec, ReserveMore};
use crate::fsm::{Dfa, Edge};
use crate::hash::{HashMap, HashSet};
use crate::ids::Label;
use crate::interner::InternIndex;
use crate::ir::Expr;

mod counted_edges;
mod deferred;
mod edges;
mod equivalent_states;
mod node_equivalence;
mod states;

pub(crate) use node_equivalence::NodeRepresentative;
use node_equivalence::{GraphPosition, NodeClasses};

/// Not there yet.
const UNKNOWN: u32 = u32::MAX;
/// States that there is room for from the beginning: as many as a small schema takes.
const INITIAL_STATES: usize = 224;
/// States on a page of them.
const PAGE_STATES: usize = 1 << 13;
/// The rule of [`Program::RETURN`].
const NO_RULE: u32 = u32::MAX;

static SERIAL: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Debug, Default)]
struct PoolSpan {
    at: u32,
    len: u32,
}

impl PoolSpan {
    fn range(self) -> std::ops::Range<usize> {
        self.at as usize..(self.at + self.len) as usize
    }
}

/// One state of a rule's automaton.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
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
    /// A call or a block leaves.
    pub(crate) calling: bool,
    /// A trigger has just fired, and tags' bodies may follow. Where a dispatch is looked at on its own, it ends here.
    pub(crate) gate: bool,
    /// ReturnRole the call of a scope or of an element.
    pub(crate) behind: ReturnRole,
    /// It belongs to a name: see [`crate::ir::Attributes::name`].
    pub(crate) name: bool,
    /// Nothing is left of that name, of which nothing else is said.
    pub(crate) ends_name: bool,
    /// Its edges are known.
    expanded: bool,
    /// What stands for it where masks are concerned, once that has been looked for: see [`Program::alike`].
    alike: u32,
    instance: u32,
    set: PoolSpan,
    bytes: PoolSpan,
    calls: PoolSpan,
    specials: PoolSpan,
    enters: PoolSpan,
}

/// Where the states of a rule or block come from.
#[derive(Clone, Debug)]
enum StateSource {
    /// A set holds the one state of a deterministic automaton.
    Dfa(Arc<Dfa>),
    /// A set holds states of this part of a rule_nfa, closed under epsilon edges.
    Sets(Arc<RuleNfa>, u32),
    /// A set holds states of this rule_nfa and the number of steps before each, one after the other, closed under epsilon edges.
    Counted(Arc<RuleNfa>),
    /// A set holds one state of this dispatch, not closed: states keep their marks.
    Dispatch(Arc<CompiledDispatch>),
    /// As [`StateSource::Sets`], of a rule with sets of members: what states mean is in [`Program::members`].
    Members(Arc<RuleNfa>, u32),
}

/// A rule's automaton, or a block's at one place in its rule.
#[derive(Clone, Debug)]
struct Instance {
    source: StateSource,
    rule: u32,
    block: u32,
    /// The number of the first rule of the grammar that it is of.
    from: u32,
    /// Its states are those of other rules that go on alike.
    merged: bool,
    /// States it may still get before sets are taken apart into single states (configurations determinise those).
    left: u32,
}

/// An automaton that grammars share.
#[derive(Clone, Debug)]
pub(crate) enum SharedAutomaton {
    /// A rule's.
    Rule(Arc<Dfa>),
    /// A dispatch's, but for the rules that it calls.
    Dispatch(Arc<DispatchAutomaton>),
}

impl SharedAutomaton {
    /// Its own for as long as it is held.
    pub(crate) fn address(&self) -> usize {
        match self {
            SharedAutomaton::Rule(dfa) => Arc::as_ptr(dfa) as usize,
            SharedAutomaton::Dispatch(shape) => Arc::as_ptr(shape) as usize,
        }
    }
}

/// A rule whose automaton a parse has got to.
#[derive(Clone, Debug, Default)]
struct RuleEntry {
    open: bool,
    start: u32,
    calls: Vec<(u32, u32)>,
    heads: Vec<u32>,
}

/// The states of a compiled grammar that have been met so far. Grows; ids stay what they are until it is cleared.
#[derive(Debug)]
pub(crate) struct Program {
    compiled: Arc<Compiled>,
    /// Grammars that were deferred and have joined, by the numbers of their rules.
    deferred_grammars: Vec<deferred::DeferredGrammar>,
    /// Facts of those rules.
    deferred_facts: Vec<RuleFacts>,
    classes: Arc<ByteClasses>,
    lacks_rules: bool,
    has_names: bool,
    /// Different for every program of the process: state ids mean something in one program only.
    serial: u64,
    states: PagedVec<State, PAGE_STATES>,
    sets: Vec<u32>,
    byte_edges: Vec<ByteEdge>,
    call_edges: Vec<(u32, u32)>,
    special_edges: Vec<(u32, u32)>,
    enter_edges: Vec<u32>,
    pub(crate) blocks: Vec<Block>,
    instances: Vec<Instance>,
    rules: Vec<RuleEntry>,
    state_index: InternIndex,
    /// By the number of what can be read from there: see [`super::residuals`].
    residuals: HashMap<u32, u32>,
    /// States of sets of members.
    member_states: Vec<MemberSetStates>,
    /// How many of those are in sets.
    stored_member_states: usize,
    /// Of states that differ only in which members there have been, the first.
    representatives: HashMap<EquivalenceKey, u32>,
    /// By instance: see [`Program::separates_members`], [`Program::names_of`] and [`Program::covered`].
    member_separation: HashMap<u32, bool>,
    member_names: HashMap<u32, Arc<equivalent_states::MemberNames>>,
    covered_states: HashMap<u32, Arc<HashSet<u32>>>,
    /// By instance: places from which members end alike.
    member_endings: HashMap<u32, equivalent_states::MemberEndings>,
    /// See [`Program::nearing_end`].
    nearing_end: HashMap<u32, u32>,
    /// States that are a node of a graph, and others that are known to be none.
    graph_positions: HashMap<u32, Option<GraphPosition>>,
    /// What is known of the nodes of instances, which some others stand for.
    node_classes: HashMap<u32, NodeClasses>,
    /// Sets of members are not told apart: for reports.
    ignores_members: bool,
    /// Placed blocks by rule, block of its rule_nfa, and the state behind.
    placed_blocks: HashMap<(u32, u32, u32), u32>,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    set: Vec<u32>,
    stack: Vec<u32>,
    /// Per state of the automaton at hand: the round in which it was last seen.
    seen: Vec<u32>,
    /// And with what members.
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
    /// The state that only returns; it stands for all of them, of all rules without a label.
    pub(crate) const RETURN: u32 = 0;

    pub(crate) fn new(compiled: Arc<Compiled>) -> Program {
        let mut program = Program {
            rules: vec![RuleEntry::default(); compiled.rules.len()],
            deferred_grammars: Vec::new(),
            deferred_facts: Vec::new(),
            classes: compiled.classes.clone(),
            lacks_rules: false,
            has_names: false,
            compiled,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            states: PagedVec::with_capacity(INITIAL_STATES),
            sets: Vec::with_capacity(INITIAL_STATES * 2),
            byte_edges: Vec::with_capacity(INITIAL_STATES * 2),
            call_edges: Vec::with_capacity(INITIAL_STATES / 4),
            special_edges: Vec::new(),
            enter_edges: Vec::new(),
            blocks: Vec::new(),
            instances: Vec::new(),
            state_index: InternIndex::with_capacity(INITIAL_STATES),
            residuals: HashMap::default(),
            member_states: Vec::new(),
            stored_member_states: 0,
            representatives: HashMap::default(),
            member_separation: HashMap::default(),
            member_names: HashMap::default(),
            covered_states: HashMap::default(),
            member_endings: HashMap::default(),
            nearing_end: HashMap::default(),
            graph_positions: HashMap::default(),
            node_classes: HashMap::default(),
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
            gate: false,
            behind: ReturnRole::Nothing,
            name: false,
            ends_name: false,
            expanded: true,
            alike: Program::RETURN,
            instance: UNKNOWN,
            set: PoolSpan::default(),
            bytes: PoolSpan::default(),
            calls: PoolSpan::default(),
            specials: PoolSpan::default(),
            enters: PoolSpan::default(),
        });
        program
    }

    /// Everything that can be reached, for reports. Of a set of members, what can be read whatever has been there.
    pub(super) fn whole(compiled: Arc<Compiled>) -> Program {
        let mut program = Program { ignores_members: true, ..Program::new(compiled) };
        program.open(program.compiled.start);
        let mut at = 0;
        while at < program.states.len() {
            program.expand(at as u32);
            for i in program.states[at].calls.range() {
                program.open(program.call_edges[i].0);
            }
            at += 1;
        }
        program
    }

    pub(super) fn size(&self) -> CompiledSize {
        CompiledSize {
            rules: self.rules.iter().filter(|r| r.open).count(),
            states: self.states.len() - 1,
            edges: self.byte_edges.len()
                + self.call_edges.len()
                + self.special_edges.len()
                + self.enter_edges.len(),
            blocks: self.blocks.len(),
            classes: self.classes.len(),
        }
    }

    /// Different for every program of the process.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.states.len() * (size_of::<State>() + 8)
            + self.sets.len() * 4
            + self.byte_edges.len() * size_of::<ByteEdge>()
            + (self.call_edges.len() + self.special_edges.len()) * 8
            + self.stored_member_states * MemberSetStates::BYTES
    }

    /// Makes room for more: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.states.reserve_more();
        self.sets.reserve_more();
        self.byte_edges.reserve_more();
        self.call_edges.reserve_more();
        self.instances.reserve_more();
        self.state_index.reserve_more();
    }

    /// Number of states so far.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    #[inline]
    pub(crate) fn state(&self, state: u32) -> &State {
        &self.states[state as usize]
    }

    /// The block a state is in.
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

    /// The rule a state belongs to: of the grammar as it is parsed, or an auxiliary one.
    pub(crate) fn rule(&self, state: u32) -> u32 {
        self.states[state as usize].rule
    }

    /// Whether a name has been met: see [`crate::ir::Attributes::name`].
    #[inline]
    pub(crate) fn has_names(&self) -> bool {
        self.has_names
    }

    /// Whether there is nothing to keep account of in frames: nothing is counted or compared there, and no name has been met.
    pub(crate) fn says_nothing_in_frames(&self) -> bool {
        self.compiled.keeps_no_account() && !self.has_names
    }

    /// Whether the rule of a state calls names, and that of `to`, to which it leads, ends there for good.
    pub(crate) fn ends_names(&self, state: u32, to: u32) -> bool {
        let State { is_final, scannable, calling, block, .. } = *self.state(to);
        is_final
            && !scannable
            && !calling
            && block == NO_BLOCK
            && self.facts(self.rule(state)).has_names
    }

    /// Whether a state is of a rule that the grammar has not, but that stands for a part of one.
    pub(crate) fn is_auxiliary(&self, state: u32) -> bool {
        let rule = self.rule(state);
        let (grammar, from) = self.grammar_of_rule(rule);
        rule != NO_RULE && (rule - from) as usize >= grammar.parsed.rules.len()
    }

    /// What a state meters: the one behind the call of a rule with a budget.
    pub(crate) fn meter(&self, state: u32) -> Option<BudgetMeter> {
        if self.compiled.meters.is_empty() {
            return None;
        }
        let State { rule, is_final, scannable, calling, .. } = self.states[state as usize];
        let meter = self.compiled.meters.get(&rule)?;
        (is_final && !scannable && !calling).then_some(*meter)
    }

    /// The count with which the state behind a call is returned to.
    pub(crate) fn count_behind(&self, state: u32, count: u32) -> u32 {
        match self.meter(state) {
            Some(meter) => meter.full,
            None if self.states[state as usize].behind == ReturnRole::Scope => {
                super::EMPTY_REGISTER
            }
            None if self.states[state as usize].block == NO_BLOCK => 0,
            None => count,
        }
    }

    /// A state whose edges are known.
    #[inline]
    fn expanded(&self, state: u32) -> &State {
        debug_assert!(self.states[state as usize].expanded);
        &self.states[state as usize]
    }

    /// Byte edges of an expanded state.
    #[inline]
    pub(crate) fn byte_edges(&self, state: u32) -> &[ByteEdge] {
        &self.byte_edges[self.expanded(state).bytes.range()]
    }

    /// `(rule, state to return to)` of an expanded state.
    #[inline]
    pub(crate) fn calls(&self, state: u32) -> &[(u32, u32)] {
        &self.call_edges[self.expanded(state).calls.range()]
    }

    /// `(special, target)` of an expanded state.
    #[inline]
    pub(crate) fn special_edges(&self, state: u32) -> &[(u32, u32)] {
        &self.special_edges[self.expanded(state).specials.range()]
    }

    /// Blocks that can be entered from an expanded state.
    #[inline]
    pub(crate) fn enters(&self, state: u32) -> &[u32] {
        &self.enter_edges[self.expanded(state).enters.range()]
    }

    /// Calls an opened rule can make before anything is read: `(rule, state to return to)`.
    #[inline]
    pub(crate) fn leading_calls(&self, rule: u32) -> &[(u32, u32)] {
        &self.rules[rule as usize].calls
    }

    /// States of an opened rule at which reading may begin.
    #[inline]
    pub(crate) fn heads(&self, rule: u32) -> &[u32] {
        &self.rules[rule as usize].heads
    }

    pub(crate) fn mark(&self, state: u32) -> DispatchMark {
        let State { instance, set, .. } = self.states[state as usize];
        match self.instances.get(instance as usize).map(|i| &i.source) {
            Some(StateSource::Dispatch(dispatch)) => dispatch.mark(self.sets[set.at as usize]),
            _ => DispatchMark::Plain,
        }
    }

    /// The number of a [`State::gate`] among the states of its dispatch. The same for all dispatches over the same texts.
    pub(crate) fn gate_of(&self, state: u32) -> Option<u32> {
        let State { gate, set, .. } = self.states[state as usize];
        gate.then(|| self.sets[set.at as usize])
    }

    /// The automaton that a state is of, if grammars share it, and its number there.
    pub(crate) fn shared(&self, state: u32) -> Option<(SharedAutomaton, u32)> {
        let State { instance, set, behind, .. } = self.states[state as usize];
        let automaton = match &self.instances.get(instance as usize)?.source {
            StateSource::Dfa(dfa) if behind == ReturnRole::Nothing => {
                SharedAutomaton::Rule(dfa.clone())
            }
            StateSource::Dispatch(dispatch) => {
                SharedAutomaton::Dispatch(dispatch.shared()?.clone())
            }
            _ => return None,
        };
        Some((automaton, self.sets[set.at as usize]))
    }

    /// Whether a state is one of a dispatch's own.
    pub(crate) fn is_dispatch(&self, state: u32) -> bool {
        let instance = self.states[state as usize].instance as usize;
        matches!(
            self.instances.get(instance),
            Some(Instance { source: StateSource::Dispatch(_), .. })
        )
    }

    /// The gate with this number in the dispatch that a state belongs to.
    pub(crate) fn gate(&mut self, state: u32, number: u32) -> u32 {
        self.intern(self.states[state as usize].instance, &[number])
    }

    /// How many members that come at most once may still come; none outside of sets of members.
    pub(crate) fn members_left(&self, state: u32) -> u32 {
        let State { instance, set, .. } = self.states[state as usize];
        match self.instances.get(instance as usize).map(|i| &i.source) {
            Some(StateSource::Members(rule_nfa, number)) => {
                self.member_states[*number as usize].remaining(rule_nfa, &self.sets[set.range()])
            }
            _ => 0,
        }
    }

    /// In a set of members, how likely a state is; `returned`: as one that a call returns to.
    pub(crate) fn likely(&self, state: u32, returned: bool) -> Option<MemberLikelihood> {
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

    /// A state that stands for this one where the nearest end is looked for: before a member, only such members may come that
    /// are still missing, and in one order. So few sets of members are met.
    pub(crate) fn nearing_end(&mut self, state: u32) -> u32 {
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

    /// Whether a run of a block can call a rule. Cost: the block's states.
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

    /// The first state of a rule. A rule's automaton is made when it is first asked for.
    pub(crate) fn open(&mut self, rule: u32) -> u32 {
        if self.rules[rule as usize].open {
            return self.rules[rule as usize].start;
        }
        let (compiled, from) = self.grammar_of_rule(rule);
        let compiled = compiled.clone();
        let own = rule - from;
        let source = if let Some(dfa) = shared_automata::minimal_automaton(&compiled, own) {
            StateSource::Dfa(dfa)
        } else if let Some(dispatch) = compiled.dispatches.get(&own) {
            StateSource::Dispatch(dispatch.clone())
        } else if let Some(rule_nfa) = compiled.rule_nfas.get(&own) {
            self.state_source(rule_nfa.clone())
        } else {
            let rule_nfa = match &compiled.parsed.rules[own as usize].body {
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
            let inner = self.blocks[self.enter_edges[i] as usize].start;
            self.expand(inner);
            calls.extend_from_slice(self.calls(inner));
            if self.states[inner as usize].scannable {
                heads.push(inner);
            }
        }
        self.rules[rule as usize] = RuleEntry { open: true, start, calls, heads };
        start
    }

    /// Finds the edges of a state, if they are not known yet.
    #[inline]
    pub(crate) fn expand(&mut self, state: u32) {
        if !self.states[state as usize].expanded {
            self.find_edges(state);
        }
    }
}
