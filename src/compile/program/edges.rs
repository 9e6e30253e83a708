//! Computation of the edges of automaton states: the lazy part of the subset construction.

use std::sync::Arc;

use super::super::dispatch::{CompiledDispatch, DispatchStateId};
use super::super::live_nfa::LiveNfa;
use super::super::rule_nfa::{BlockNfaId, EdgeSymbol, RuleNfa, StateSummary};
use super::super::{Block, BlockId, ByteEdge};
use super::state_table::{EdgeLists, PoolSpan, StateKey};
use super::{
    Instance, InstanceId, PlacedBlock, Program, Scratch, StateId, StateSource, dispatch_state,
};
use crate::fsm::{Edge, elementary_cuts};
use crate::fuel;
use crate::hash::HashMap;

impl Program {
    /// Computes the edges of a state and stores them.
    pub(super) fn find_edges(&mut self, state: StateId) {
        let StateKey { instance, set } = self.states.get(state).key;
        let mut edges = std::mem::take(&mut self.scratch.edges);
        edges.clear();
        match self.instances[instance.index()].source.clone() {
            StateSource::Dfa(dfa) => {
                for e in dfa.edges(self.states.set(state)[0]) {
                    let to = self.intern(instance, &[e.to]);
                    edges.push_bytes(e.lo, e.hi, to);
                }
            }
            StateSource::Dispatch(dispatch) => {
                let of_dispatch = dispatch_state(self.states.set(state));
                self.add_dispatch_edges(instance, &dispatch, of_dispatch, &mut edges);
            }
            StateSource::Counted(rule_nfa) => {
                self.add_counted_edges(instance, &rule_nfa, set, &mut edges);
            }
            StateSource::Sets(rule_nfa, _) | StateSource::Members(rule_nfa, _) => {
                self.collect_edges(instance, set);
                self.add_byte_edges(instance, &mut edges);
                self.add_other_edges(instance, &rule_nfa, &mut edges);
            }
        }
        self.states.set_edges(state, &edges);
        self.scratch.edges = edges;
    }

    /// Adds the edges of a state of a tag dispatch.
    fn add_dispatch_edges(
        &mut self,
        instance: InstanceId,
        dispatch: &CompiledDispatch,
        state: DispatchStateId,
        out: &mut EdgeLists,
    ) {
        let first = self.instances[instance.index()].first_rule;
        let outgoing = dispatch.automaton.state_edges(state);
        for e in &outgoing.edges {
            let to = self.intern(instance, &[e.to]);
            match EdgeSymbol::decode(e.lo) {
                EdgeSymbol::Byte(_) => out.push_bytes(e.lo, e.hi, to),
                EdgeSymbol::Special(special) => out.specials.push((special, to)),
                EdgeSymbol::Call(_) | EdgeSymbol::Block(_) => {
                    debug_assert!(false, "a dispatch calls by trigger and has no blocks")
                }
            }
        }
        for call in &outgoing.calls {
            let to = self.intern(instance, &[call.to.raw()]);
            let called = dispatch.called_rules(call.trigger).iter();
            out.calls.extend(called.map(|rule| (rule.appended_from(first), to)));
        }
        out.calls.sort_unstable();
        out.calls.dedup();
    }

    /// Collects the edges of a set, sorted: byte edges in [`Scratch::read`], all others in
    /// [`Scratch::others`].
    fn collect_edges(&mut self, instance: InstanceId, set: PoolSpan) {
        let Scratch { read, others, .. } = &mut self.scratch;
        read.clear();
        others.clear();
        let mut add = |e: Edge| if e.lo <= 255 { read.push(e) } else { others.push(e) };
        let set = self.states.slice(set);
        match &self.instances[instance.index()].source {
            StateSource::Sets(rule_nfa, part) => {
                let part = rule_nfa.part(*part);
                for &s in set {
                    part.nfa.edges(s).filter(|e| part.live[e.to as usize]).for_each(&mut add);
                }
            }
            StateSource::Members(rule_nfa, number) => {
                let states = &mut self.members.states[number.index()];
                set.iter().for_each(|&s| states.edges(rule_nfa, s, &mut add));
            }
            StateSource::Dfa(_) | StateSource::Dispatch(_) | StateSource::Counted(_) => {}
        }
        fuel::charge(2 * set.len());
        for edges in [read, others] {
            fuel::charge(2 * edges.len());
            fuel::charge_sort(edges.len());
            edges.sort_unstable();
            edges.dedup();
        }
    }

    /// Determinises the collected byte edges: one edge per elementary interval.
    fn add_byte_edges(&mut self, instance: InstanceId, out: &mut EdgeLists) {
        let edges = std::mem::take(&mut self.scratch.read);
        let mut cuts = std::mem::take(&mut self.scratch.cuts);
        let mut targets = std::mem::take(&mut self.scratch.targets);
        if edges.windows(2).all(|pair| pair[0].hi < pair[1].lo) {
            for e in &edges {
                self.add_byte_edge(instance, e.lo, e.hi, &[e.to], out);
            }
        } else {
            elementary_cuts(&edges, &mut cuts);
            for pair in cuts.windows(2) {
                let (lo, hi) = (pair[0], pair[1] - 1);
                fuel::charge(edges.len() / 4);
                targets.clear();
                targets.extend(
                    edges.iter().take_while(|e| e.lo <= lo).filter(|e| e.hi >= lo).map(|e| e.to),
                );
                if !targets.is_empty() {
                    self.add_byte_edge(instance, lo, hi, &targets, out);
                }
            }
        }
        (self.scratch.read, self.scratch.cuts, self.scratch.targets) = (edges, cuts, targets);
    }

    /// Adds the edge over `lo..=hi` to the closure of `targets`.
    fn add_byte_edge(
        &mut self,
        instance: InstanceId,
        lo: u32,
        hi: u32,
        targets: &[u32],
        out: &mut EdgeLists,
    ) {
        let mut set = std::mem::take(&mut self.scratch.set);
        self.close(instance, targets, &mut set);
        if set.len() > 1 && self.instances[instance.index()].set_budget == 0 {
            for &s in &set {
                let to = self.intern(instance, &[s]);
                out.bytes.push(ByteEdge { lo: lo as u8, hi: hi as u8, to });
            }
        } else if !set.is_empty() {
            let to = self.intern(instance, &set);
            out.push_bytes(lo, hi, to);
        }
        self.scratch.set = set;
    }

    /// Adds calls, special-token edges and blocks; each leads to the closure of all its targets.
    fn add_other_edges(
        &mut self,
        instance: InstanceId,
        rule_nfa: &Arc<RuleNfa>,
        out: &mut EdgeLists,
    ) {
        let first = self.instances[instance.index()].first_rule;
        let others = std::mem::take(&mut self.scratch.others);
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let part = match &self.instances[instance.index()].source {
            StateSource::Sets(_, part) => Some(*part),
            _ => None,
        };
        // The closures of single targets: all alternatives of a loop lead to the same one.
        let mut closed: HashMap<u32, Option<StateId>> = HashMap::default();
        for same in others.chunk_by(|a, b| a.lo == b.lo) {
            targets.clear();
            targets.extend(same.iter().map(|e| e.to));
            let single = match (&targets[..], part) {
                (&[target], Some(part)) => Some(rule_nfa.part(part).skip_epsilons(target)),
                _ => None,
            };
            let known = single.and_then(|target| closed.get(&target).copied());
            let to = known.unwrap_or_else(|| self.target_state(instance, &targets));
            if let Some(target) = single {
                closed.insert(target, to);
            }
            let Some(to) = to else { continue };
            match EdgeSymbol::decode(same[0].lo) {
                EdgeSymbol::Call(rule) => out.calls.push((rule.appended_from(first), to)),
                EdgeSymbol::Special(special) => out.specials.push((special, to)),
                EdgeSymbol::Block(block) => {
                    out.block_entries.push(self.place_block(instance, rule_nfa, block, to))
                }
                EdgeSymbol::Byte(_) => {}
            }
        }
        (self.scratch.others, self.scratch.targets) = (others, targets);
    }

    /// The state to which edges with these targets lead; `None` if their closure is empty.
    pub(super) fn target_state(
        &mut self,
        instance: InstanceId,
        targets: &[u32],
    ) -> Option<StateId> {
        let mut set = std::mem::take(&mut self.scratch.set);
        self.close(instance, targets, &mut set);
        let to = if set.is_empty() { None } else { Some(self.intern(instance, &set)) };
        self.scratch.set = set;
        to
    }

    /// Places a block of the rule in front of state `exit`; returns its id in [`Program::blocks`].
    pub(super) fn place_block(
        &mut self,
        instance: InstanceId,
        rule_nfa: &Arc<RuleNfa>,
        block: BlockNfaId,
        exit: StateId,
    ) -> BlockId {
        let Instance { rule, .. } = self.instances[instance.index()];
        let key = PlacedBlock { rule, block, exit };
        if let Some(&placed) = self.placed_blocks.get(&key) {
            return placed;
        }
        let placed = BlockId::new(self.blocks.len());
        self.placed_blocks.insert(key, placed);
        let part = &rule_nfa.blocks[block.index()];
        self.blocks.push(Block {
            min: part.min,
            max: part.max,
            start: StateId::UNKNOWN,
            exit,
            is_bounded_white_space: part.is_bounded_white_space
                && self.compiled.has_bounded_white_space,
        });
        let inner =
            self.add_instance(StateSource::Sets(rule_nfa.clone(), Some(block)), rule, placed);
        let start = self.start_state(inner);
        self.blocks[placed.index()].start = start;
        placed
    }
}

impl LiveNfa {
    /// The summary of a set of states.
    pub(in crate::compile) fn summarize(&self, set: &[u32]) -> StateSummary {
        let mut summary = StateSummary::default();
        for &s in set {
            summary.is_final |= self.nfa.is_final(s);
            for e in self.nfa.edges(s).filter(|e| self.live[e.to as usize]) {
                match EdgeSymbol::decode(e.lo) {
                    EdgeSymbol::Byte(_) | EdgeSymbol::Special(_) => summary.has_scan_edge = true,
                    EdgeSymbol::Call(_) | EdgeSymbol::Block(_) => summary.has_call_edge = true,
                }
            }
        }
        summary
    }
}
