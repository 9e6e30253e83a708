//! Computation of the edges of automaton states: the lazy part of the subset construction.

use std::sync::Arc;

use super::super::live_nfa::LiveNfa;
use super::super::member_sets::MemberSetStates;
use super::super::rule_nfa::{EdgeSymbol, RuleNfa, StateSummary};
use super::super::{Block, ByteEdge};
use super::{Instance, PoolSpan, Program, Scratch, State, StateSource, UNKNOWN};
use crate::fsm::Edge;
use crate::fuel;

impl Program {
    /// Computes the edges of a state and stores them.
    pub(super) fn find_edges(&mut self, state: u32) {
        if self.find_single_edge(state) {
            return;
        }
        let State { instance, set, .. } = self.states[state as usize];
        let (mut bytes, mut calls) =
            (std::mem::take(&mut self.scratch.bytes), std::mem::take(&mut self.scratch.calls));
        let (mut specials, mut enters) =
            (std::mem::take(&mut self.scratch.specials), std::mem::take(&mut self.scratch.enters));
        bytes.clear();
        calls.clear();
        specials.clear();
        enters.clear();
        match self.instances[instance as usize].source.clone() {
            StateSource::Dfa(dfa) => {
                for e in dfa.edges(self.sets[set.at as usize]) {
                    let to = self.intern(instance, &[e.to]);
                    push_edge(&mut bytes, e.lo, e.hi, to);
                }
            }
            StateSource::Dispatch(dispatch) => {
                let first = self.instances[instance as usize].from;
                for e in &dispatch.state_edges(self.sets[set.at as usize]).edges {
                    let to = self.intern(instance, &[e.to]);
                    match EdgeSymbol::decode(e.lo) {
                        EdgeSymbol::Byte(_) => push_edge(&mut bytes, e.lo, e.hi, to),
                        EdgeSymbol::Call(trigger) => {
                            calls.extend(
                                dispatch
                                    .called_rules(trigger)
                                    .iter()
                                    .map(|rule| (rule + first, to)),
                            );
                        }
                        EdgeSymbol::Special(special) => specials.push((special, to)),
                        EdgeSymbol::Block(_) => debug_assert!(false, "a dispatch has no blocks"),
                    }
                }
                calls.sort_unstable();
                calls.dedup();
            }
            StateSource::Counted(rule_nfa) => {
                if let Some(counts) = &rule_nfa.step_counts {
                    self.add_counted_edges(
                        instance,
                        (&rule_nfa, counts),
                        set,
                        (&mut bytes, &mut calls, &mut specials),
                    );
                }
            }
            StateSource::Sets(rule_nfa, _) | StateSource::Members(rule_nfa, _) => {
                self.collect_edges(instance, set);
                self.add_byte_edges(instance, &mut bytes);
                self.add_other_edges(instance, &rule_nfa, (&mut calls, &mut specials, &mut enters));
            }
        }
        fn append<T: Copy>(all: &mut Vec<T>, new: &[T]) -> PoolSpan {
            let span = PoolSpan { at: all.len() as u32, len: new.len() as u32 };
            all.extend_from_slice(new);
            span
        }
        let (b, c) = (append(&mut self.edges.bytes, &bytes), append(&mut self.edges.calls, &calls));
        let (s, e) =
            (append(&mut self.edges.specials, &specials), append(&mut self.edges.enters, &enters));
        let at = &mut self.states[state as usize];
        (at.bytes, at.calls, at.specials, at.enters, at.expanded) = (b, c, s, e, true);
        (self.scratch.bytes, self.scratch.calls) = (bytes, calls);
        (self.scratch.specials, self.scratch.enters) = (specials, enters);
    }

    /// Fast path of [`Program::find_edges`] for literals, where a single byte edge leaves a single
    /// state. Returns false if the state is not of that form.
    fn find_single_edge(&mut self, state: u32) -> bool {
        let State { instance, set, .. } = self.states[state as usize];
        let &[from] = &self.sets[set.range()] else { return false };
        let one = match &self.instances[instance as usize].source {
            StateSource::Sets(rule_nfa, part) => rule_nfa.part(*part).single_edge(from),
            StateSource::Members(rule_nfa, number) => {
                self.member_states[*number as usize].single_edge(rule_nfa, from)
            }
            StateSource::Dfa(_) | StateSource::Dispatch(_) | StateSource::Counted(_) => None,
        };
        let Some(edge) = one.filter(|edge| edge.lo == edge.hi && edge.lo <= 255) else {
            return false;
        };
        let byte = edge.lo as u8;
        let to = self.intern(instance, &[edge.to]);
        let at = self.edges.bytes.len() as u32;
        self.edges.bytes.push(ByteEdge { lo: byte, hi: byte, to });
        let from = &mut self.states[state as usize];
        (from.bytes, from.expanded) = (PoolSpan { at, len: 1 }, true);
        true
    }

    /// Epsilon closure of `from`, restricted to relevant states, sorted.
    pub(super) fn close(&mut self, instance: u32, from: &[u32], set: &mut Vec<u32>) {
        let Instance { source, left, .. } = &mut self.instances[instance as usize];
        if let &[one] = from {
            let matters = match source {
                StateSource::Sets(rule_nfa, part) => rule_nfa.part(*part).trivial_closure(one),
                StateSource::Members(rule_nfa, number) => {
                    self.member_states[*number as usize].trivial_closure(rule_nfa, one)
                }
                StateSource::Dfa(_) | StateSource::Dispatch(_) | StateSource::Counted(_) => {
                    Some(true)
                }
            };
            if let Some(matters) = matters {
                set.clear();
                set.extend(matters.then_some(one));
                return;
            }
        }
        match source {
            StateSource::Sets(rule_nfa, part) => self.scratch.close(rule_nfa, *part, from, set),
            StateSource::Members(rule_nfa, number) => {
                let states = &mut self.member_states[*number as usize];
                let before = states.seen_count();
                self.scratch.close_members(rule_nfa, states, from, set);
                let grown = (states.seen_count() - before) as u32;
                *left =
                    left.saturating_add(grown.saturating_mul(rule_nfa.main.nfa.len() as u32 * 4));
            }
            // These sources close their sets themselves.
            StateSource::Dfa(_) | StateSource::Dispatch(_) | StateSource::Counted(_) => {
                set.clone_from(&from.to_vec())
            }
        }
    }

    /// Collects the edges of a set, sorted: byte edges in `edges`, all others in `others`.
    fn collect_edges(&mut self, instance: u32, set: PoolSpan) {
        let Scratch { edges, others, .. } = &mut self.scratch;
        edges.clear();
        others.clear();
        let mut add = |e: Edge| if e.lo <= 255 { edges.push(e) } else { others.push(e) };
        let set = &self.sets[set.range()];
        match &self.instances[instance as usize].source {
            StateSource::Sets(rule_nfa, part) => {
                let part = rule_nfa.part(*part);
                for &s in set {
                    part.nfa.edges(s).filter(|e| part.live[e.to as usize]).for_each(&mut add);
                }
            }
            StateSource::Members(rule_nfa, number) => {
                let states = &mut self.member_states[*number as usize];
                set.iter().for_each(|&s| states.edges(rule_nfa, s, &mut add));
            }
            StateSource::Dfa(_) | StateSource::Dispatch(_) | StateSource::Counted(_) => {}
        }
        fuel::charge(set.len() + edges.len() + others.len());
        edges.sort_unstable();
        edges.dedup();
        others.sort_unstable();
        others.dedup();
    }

    /// Determinises the collected byte edges: one edge per elementary interval.
    fn add_byte_edges(&mut self, instance: u32, bytes: &mut Vec<ByteEdge>) {
        let edges = std::mem::take(&mut self.scratch.edges);
        let mut cuts = std::mem::take(&mut self.scratch.cuts);
        let mut targets = std::mem::take(&mut self.scratch.targets);
        if edges.windows(2).all(|pair| pair[0].hi < pair[1].lo) {
            for e in &edges {
                self.add_byte_edge(instance, (e.lo, e.hi, &[e.to]), bytes);
            }
        } else {
            // Elementary intervals: every range start and every end + 1 is a boundary.
            cuts.clear();
            cuts.extend(edges.iter().flat_map(|e| [e.lo, e.hi + 1]));
            cuts.sort_unstable();
            cuts.dedup();
            for pair in cuts.windows(2) {
                let (lo, hi) = (pair[0], pair[1] - 1);
                fuel::charge(edges.len() / 4);
                targets.clear();
                targets.extend(
                    edges.iter().take_while(|e| e.lo <= lo).filter(|e| e.hi >= lo).map(|e| e.to),
                );
                if !targets.is_empty() {
                    self.add_byte_edge(instance, (lo, hi, &targets), bytes);
                }
            }
        }
        (self.scratch.edges, self.scratch.cuts, self.scratch.targets) = (edges, cuts, targets);
    }

    /// Adds the edge over `lo..=hi` to the closure of `targets`.
    fn add_byte_edge(
        &mut self,
        instance: u32,
        (lo, hi, targets): (u32, u32, &[u32]),
        bytes: &mut Vec<ByteEdge>,
    ) {
        let mut set = std::mem::take(&mut self.scratch.set);
        self.close(instance, targets, &mut set);
        if set.len() > 1 && self.instances[instance as usize].left == 0 {
            for &s in &set {
                let to = self.intern(instance, &[s]);
                bytes.push(ByteEdge { lo: lo as u8, hi: hi as u8, to });
            }
        } else if !set.is_empty() {
            let to = self.intern(instance, &set);
            push_edge(bytes, lo, hi, to);
        }
        self.scratch.set = set;
    }

    /// Adds calls, special-token edges and blocks; each leads to the closure of all its targets.
    #[allow(clippy::type_complexity)]
    fn add_other_edges(
        &mut self,
        instance: u32,
        rule_nfa: &Arc<RuleNfa>,
        (calls, specials, enters): (&mut Vec<(u32, u32)>, &mut Vec<(u32, u32)>, &mut Vec<u32>),
    ) {
        let first = self.instances[instance as usize].from;
        let others = std::mem::take(&mut self.scratch.others);
        let mut targets = std::mem::take(&mut self.scratch.targets);
        for same in others.chunk_by(|a, b| a.lo == b.lo) {
            targets.clear();
            targets.extend(same.iter().map(|e| e.to));
            let mut set = std::mem::take(&mut self.scratch.set);
            self.close(instance, &targets, &mut set);
            let to = if set.is_empty() { None } else { Some(self.intern(instance, &set)) };
            self.scratch.set = set;
            let Some(to) = to else { continue };
            match EdgeSymbol::decode(same[0].lo) {
                EdgeSymbol::Call(rule) => calls.push((rule + first, to)),
                EdgeSymbol::Special(special) => specials.push((special, to)),
                EdgeSymbol::Block(block) => {
                    enters.push(self.place_block(instance, rule_nfa, block, to))
                }
                EdgeSymbol::Byte(_) => {}
            }
        }
        (self.scratch.others, self.scratch.targets) = (others, targets);
    }

    /// Places a block of the rule in front of state `exit`; returns its id in [`Program::blocks`].
    pub(super) fn place_block(
        &mut self,
        instance: u32,
        rule_nfa: &Arc<RuleNfa>,
        block: u32,
        exit: u32,
    ) -> u32 {
        let Instance { rule, from, .. } = self.instances[instance as usize];
        if let Some(&placed) = self.placed_blocks.get(&(rule, block, exit)) {
            return placed;
        }
        let placed = self.blocks.len() as u32;
        self.placed_blocks.insert((rule, block, exit), placed);
        let part = &rule_nfa.blocks[block as usize];
        self.blocks.push(Block {
            min: part.min,
            max: part.max,
            start: UNKNOWN,
            exit,
            is_bounded_white_space: part.gap && self.compiled.has_bounded_white_space,
        });
        let inner =
            self.add_instance(StateSource::Sets(rule_nfa.clone(), block + 1), (rule, from), placed);
        let start = self.start_state(inner);
        self.blocks[placed as usize].start = start;
        placed
    }
}

/// Appends a byte edge; merges it with the last one if their ranges touch and their targets are
/// equal.
pub(super) fn push_edge(edges: &mut Vec<ByteEdge>, lo: u32, hi: u32, to: u32) {
    let (lo, hi) = (lo as u8, hi.min(255) as u8);
    match edges.last_mut() {
        Some(last) if last.to == to && u32::from(last.hi) + 1 == u32::from(lo) => last.hi = hi,
        _ => edges.push(ByteEdge { lo, hi, to }),
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
                    EdgeSymbol::Byte(_) | EdgeSymbol::Special(_) => summary.scannable = true,
                    EdgeSymbol::Call(_) | EdgeSymbol::Block(_) => summary.calling = true,
                }
            }
        }
        summary
    }
}

impl Scratch {
    /// Epsilon closure of `from`, restricted to relevant states (live, and accepting or with an
    /// edge), sorted.
    pub(super) fn close(
        &mut self,
        rule_nfa: &RuleNfa,
        part: u32,
        from: &[u32],
        set: &mut Vec<u32>,
    ) {
        let part = rule_nfa.part(part);
        set.clear();
        self.begin_round(part.nfa.len());
        let Scratch { stack, seen, round, .. } = self;
        let mut push = |stack: &mut Vec<u32>, s: u32| {
            if part.live[s as usize] && std::mem::replace(&mut seen[s as usize], *round) != *round {
                stack.push(s);
            }
        };
        from.iter().for_each(|&s| push(stack, s));
        while let Some(s) = stack.pop() {
            fuel::charge(1);
            if part.is_relevant(s) {
                set.push(s);
            }
            part.nfa.epsilons(s).for_each(|to| push(stack, to));
        }
        set.sort_unstable();
    }

    /// Starts a new round of visited marks over `states` states.
    fn begin_round(&mut self, states: usize) {
        self.round = self.round.wrapping_add(1);
        if self.seen.len() < states || self.round == 0 {
            self.seen.clear();
            self.seen.resize(states, 0);
            self.round = 1;
        }
    }

    /// As [`Scratch::close`], for the encoded states of a rule with member sets.
    fn close_members(
        &mut self,
        rule_nfa: &RuleNfa,
        states: &mut MemberSetStates,
        from: &[u32],
        set: &mut Vec<u32>,
    ) {
        set.clear();
        let positions = rule_nfa.main.nfa.len();
        self.begin_round(positions);
        if self.numbers.len() < positions {
            self.numbers.resize(positions, 0);
        }
        // Positions that have been visited with several member sets.
        let mut others: Vec<u32> = Vec::new();
        self.stack.clear();
        self.stack.extend_from_slice(from);
        while let Some(s) = self.stack.pop() {
            fuel::charge(1 + others.len() / 8);
            let (number, place) = states.decode(s);
            let at = place as usize;
            let is_new = if std::mem::replace(&mut self.seen[at], self.round) != self.round {
                self.numbers[at] = number;
                true
            } else if self.numbers[at] == number || others.contains(&s) {
                false
            } else {
                others.push(s);
                true
            };
            if is_new && states.follow_epsilons(rule_nfa, s, &mut self.stack) {
                set.push(s);
            }
        }
        set.sort_unstable();
    }
}
