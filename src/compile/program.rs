//! The automata of a compiled grammar, built as a parse gets to them. A state of a rule is a set of states of the rule's
//! nondeterministic automaton (the lazy subset construction), or a state of a minimal automaton; its edges are found when
//! it is first left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

use super::units::{Symbol, Unit};
use super::{Block, ByteEdge, Compiled, CompiledSize, Mark, Meter, NO_BLOCK, leaves, thompson};
use crate::fsm::{Dfa, Edge};
use crate::ids::Label;

/// Not there yet.
const UNKNOWN: u32 = u32::MAX;
/// The rule of [`Program::RETURN`].
const NO_RULE: u32 = u32::MAX;

static SERIAL: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    at: u32,
    len: u32,
}

impl Span {
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
    /// Its edges are known.
    expanded: bool,
    instance: u32,
    set: Span,
    bytes: Span,
    calls: Span,
    specials: Span,
    enters: Span,
}

/// Where the states of a rule or block come from.
#[derive(Clone, Debug)]
enum Source {
    /// A set holds the one state of a deterministic automaton.
    Dfa(Arc<Dfa>),
    /// A set holds states of this part of a unit, closed under epsilon edges.
    Sets(Arc<Unit>, u32),
    /// A set holds one state of this unit, not closed: states keep their marks.
    Single(Arc<Unit>),
}

/// A rule's automaton, or a block's at one place in its rule.
#[derive(Clone, Debug)]
struct Instance {
    source: Source,
    rule: u32,
    block: u32,
    /// States it may still get before sets are taken apart into single states (configurations determinise those).
    left: u32,
}

/// A rule whose automaton a parse has got to.
#[derive(Clone, Debug, Default)]
struct Opened {
    open: bool,
    start: u32,
    calls: Vec<(u32, u32)>,
    heads: Vec<u32>,
}

/// The states of a compiled grammar that have been met so far. Grows; ids stay what they are until it is cleared.
#[derive(Debug)]
pub(crate) struct Program {
    compiled: Arc<Compiled>,
    /// Different for every program of the process: state ids mean something in one program only.
    serial: u64,
    states: Vec<State>,
    sets: Vec<u32>,
    byte_edges: Vec<ByteEdge>,
    call_edges: Vec<(u32, u32)>,
    special_edges: Vec<(u32, u32)>,
    enter_edges: Vec<u32>,
    pub(crate) blocks: Vec<Block>,
    instances: Vec<Instance>,
    rules: Vec<Opened>,
    known: HashTable<u32>,
    /// Placed blocks by rule, block of its unit, and the state behind.
    placed: FxHashMap<(u32, u32, u32), u32>,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    set: Vec<u32>,
    stack: Vec<u32>,
    /// Per state of the automaton at hand: the round in which it was last seen.
    seen: Vec<u32>,
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

fn hash_set(instance: u32, set: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(instance);
    set.iter().for_each(|&s| hasher.write_u32(s));
    hasher.finish()
}

impl Program {
    /// The state that only returns; it stands for all of them, of all rules without a label.
    pub(crate) const RETURN: u32 = 0;

    pub(crate) fn new(compiled: Arc<Compiled>) -> Program {
        let mut program = Program {
            rules: vec![Opened::default(); compiled.rules.len()],
            compiled,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            states: Vec::new(),
            sets: Vec::new(),
            byte_edges: Vec::new(),
            call_edges: Vec::new(),
            special_edges: Vec::new(),
            enter_edges: Vec::new(),
            blocks: Vec::new(),
            instances: Vec::new(),
            known: HashTable::new(),
            placed: FxHashMap::default(),
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
            expanded: true,
            instance: UNKNOWN,
            set: Span::default(),
            bytes: Span::default(),
            calls: Span::default(),
            specials: Span::default(),
            enters: Span::default(),
        });
        program
    }

    /// Everything that can be reached, for reports.
    pub(super) fn whole(compiled: Arc<Compiled>) -> Program {
        let mut program = Program::new(compiled);
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
            edges: self.byte_edges.len() + self.call_edges.len() + self.special_edges.len() + self.enter_edges.len(),
            blocks: self.blocks.len(),
            classes: self.compiled.class_bytes.len(),
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
        self.compiled.rules.get(self.states[state as usize].rule as usize).and_then(|rule| rule.label)
    }

    /// The rule a state belongs to: of the grammar as it is parsed, or an auxiliary one.
    pub(crate) fn rule(&self, state: u32) -> u32 {
        self.states[state as usize].rule
    }

    /// What a state meters: the one behind the call of a rule with a budget.
    pub(crate) fn meter(&self, state: u32) -> Option<Meter> {
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

    pub(crate) fn mark(&self, state: u32) -> Mark {
        let State { instance, set, .. } = self.states[state as usize];
        match self.instances.get(instance as usize).map(|i| &i.source) {
            Some(Source::Single(unit)) => unit.marks[self.sets[set.at as usize] as usize],
            _ => Mark::Plain,
        }
    }

    /// The number of a [`State::gate`] among the states of its dispatch. The same for all dispatches over the same texts.
    pub(crate) fn gate_of(&self, state: u32) -> Option<u32> {
        let State { gate, set, .. } = self.states[state as usize];
        gate.then(|| self.sets[set.at as usize])
    }

    /// Whether a state is one of a dispatch's own.
    pub(crate) fn is_dispatch(&self, state: u32) -> bool {
        let instance = self.states[state as usize].instance as usize;
        matches!(self.instances.get(instance), Some(Instance { source: Source::Single(_), .. }))
    }

    /// The gate with this number in the dispatch that a state belongs to.
    pub(crate) fn gate(&mut self, state: u32, number: u32) -> u32 {
        self.intern(self.states[state as usize].instance, &[number])
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
            for &ByteEdge { to, .. } in self.byte_edges(state) {
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
        let source = match (leaves::automaton(&self.compiled, rule), self.compiled.units.get(&rule)) {
            (Some(dfa), _) => Source::Dfa(dfa),
            (None, Some(unit)) if !unit.marks.is_empty() => Source::Single(unit.clone()),
            (None, Some(unit)) => Source::Sets(unit.clone(), 0),
            (None, None) => {
                let body = &self.compiled.parsed.rules[rule as usize].body;
                Source::Sets(Arc::new(thompson::unit(&self.compiled, body)), 0)
            }
        };
        let instance = self.instance(source, rule, NO_BLOCK);
        let start = self.first(instance);
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
        self.rules[rule as usize] = Opened { open: true, start, calls, heads };
        start
    }

    fn instance(&mut self, source: Source, rule: u32, block: u32) -> u32 {
        let left = match &source {
            Source::Dfa(_) | Source::Single(_) => u32::MAX,
            Source::Sets(unit, part) => unit.part(*part).nfa.len() as u32 * 4 + 256,
        };
        self.instances.push(Instance { source, rule, block, left });
        (self.instances.len() - 1) as u32
    }

    /// The start of an instance.
    fn first(&mut self, instance: u32) -> u32 {
        let mut set = std::mem::take(&mut self.scratch.set);
        match self.instances[instance as usize].source.clone() {
            Source::Dfa(_) => {
                set.clear();
                set.push(0);
            }
            Source::Single(unit) => {
                set.clear();
                set.push(unit.main.nfa.start());
            }
            Source::Sets(unit, part) => self.scratch.close(&unit, part, &[unit.part(part).nfa.start()], &mut set),
        }
        let start = self.intern(instance, &set);
        self.scratch.set = set;
        start
    }

    /// The state of a set. Nothing but a return is [`Program::RETURN`].
    fn intern(&mut self, instance: u32, set: &[u32]) -> u32 {
        let hash = hash_set(instance, set);
        let (states, sets) = (&self.states, &self.sets);
        let same = |&id: &u32| {
            let s = &states[id as usize];
            s.instance == instance && sets[s.set.range()] == *set
        };
        if let Some(&id) = self.known.find(hash, same) {
            return id;
        }
        let Instance { rule, block, .. } = self.instances[instance as usize];
        let (is_final, scannable, calling) = self.look(instance, set);
        let kept = self.compiled.rules[rule as usize].kept;
        let pure_return = is_final && !scannable && !calling && block == NO_BLOCK && !kept;
        // One state stands for all returns, but for those that a trace asks the mark of.
        let mark = match &self.instances[instance as usize].source {
            Source::Single(unit) => unit.marks[set[0] as usize],
            _ => Mark::Plain,
        };
        let merged = pure_return && mark == Mark::Plain;
        let id = if merged { Program::RETURN } else { self.states.len() as u32 };
        if !merged {
            let span = Span { at: self.sets.len() as u32, len: set.len() as u32 };
            self.sets.extend_from_slice(set);
            self.states.push(State {
                rule,
                block,
                is_final,
                scannable,
                pure_return,
                calling,
                gate: calling && matches!(mark, Mark::Fired { .. }),
                expanded: false,
                instance,
                set: span,
                bytes: Span::default(),
                calls: Span::default(),
                specials: Span::default(),
                enters: Span::default(),
            });
            let left = &mut self.instances[instance as usize].left;
            *left = left.saturating_sub(1);
            let (states, sets) = (&self.states, &self.sets);
            self.known.insert_unique(hash, id, |&id| {
                let s = &states[id as usize];
                hash_set(s.instance, &sets[s.set.range()])
            });
        }
        id
    }

    /// Whether a set is final, reads something, calls something.
    fn look(&mut self, instance: u32, set: &[u32]) -> (bool, bool, bool) {
        match &self.instances[instance as usize].source {
            Source::Dfa(dfa) => (dfa.is_final(set[0]), !dfa.edges(set[0]).is_empty(), false),
            Source::Sets(unit, part) => unit.part(*part).look(set),
            Source::Single(unit) => {
                let unit = unit.clone();
                let mut closed = Vec::new();
                self.scratch.close(&unit, 0, set, &mut closed);
                unit.main.look(&closed)
            }
        }
    }

    /// Finds the edges of a state, if they are not known yet.
    #[inline]
    pub(crate) fn expand(&mut self, state: u32) {
        if !self.states[state as usize].expanded {
            self.find_edges(state);
        }
    }

    fn find_edges(&mut self, state: u32) {
        let State { instance, set, .. } = self.states[state as usize];
        let (mut bytes, mut calls) = (std::mem::take(&mut self.scratch.bytes), std::mem::take(&mut self.scratch.calls));
        let (mut specials, mut enters) =
            (std::mem::take(&mut self.scratch.specials), std::mem::take(&mut self.scratch.enters));
        bytes.clear();
        calls.clear();
        specials.clear();
        enters.clear();
        match self.instances[instance as usize].source.clone() {
            Source::Dfa(dfa) => {
                for e in dfa.edges(self.sets[set.at as usize]) {
                    let to = self.intern(instance, &[e.to]);
                    push_edge(&mut bytes, e.lo, e.hi, to);
                }
            }
            Source::Single(unit) => {
                let from = self.sets[set.at as usize];
                self.singles(instance, &unit, from, (&mut bytes, &mut calls, &mut specials));
            }
            Source::Sets(unit, part) => {
                self.gather(&unit, part, set);
                self.byte_targets(instance, &unit, part, &mut bytes);
                self.other_targets(instance, (&unit, part), (&mut calls, &mut specials, &mut enters));
            }
        }
        fn append<T: Copy>(all: &mut Vec<T>, new: &[T]) -> Span {
            let span = Span { at: all.len() as u32, len: new.len() as u32 };
            all.extend_from_slice(new);
            span
        }
        let (b, c) = (append(&mut self.byte_edges, &bytes), append(&mut self.call_edges, &calls));
        let (s, e) = (append(&mut self.special_edges, &specials), append(&mut self.enter_edges, &enters));
        let at = &mut self.states[state as usize];
        (at.bytes, at.calls, at.specials, at.enters, at.expanded) = (b, c, s, e, true);
        (self.scratch.bytes, self.scratch.calls) = (bytes, calls);
        (self.scratch.specials, self.scratch.enters) = (specials, enters);
    }

    /// Edges of a state that keeps its mark: what its closure reads, each target for itself.
    #[allow(clippy::type_complexity)]
    fn singles(
        &mut self,
        instance: u32,
        unit: &Arc<Unit>,
        from: u32,
        (bytes, calls, specials): (&mut Vec<ByteEdge>, &mut Vec<(u32, u32)>, &mut Vec<(u32, u32)>),
    ) {
        let mut set = std::mem::take(&mut self.scratch.set);
        self.scratch.close(unit, 0, &[from], &mut set);
        let mut edges: Vec<Edge> = set.iter().flat_map(|&s| unit.main.nfa.edges(s)).collect();
        self.scratch.set = set;
        edges.sort_unstable();
        edges.dedup();
        for e in edges.into_iter().filter(|e| unit.main.live[e.to as usize]) {
            let to = self.intern(instance, &[e.to]);
            match Symbol::decode(e.lo) {
                Symbol::Byte(_) => push_edge(bytes, e.lo, e.hi, to),
                Symbol::Call(rule) => calls.push((rule, to)),
                Symbol::Special(special) => specials.push((special, to)),
                Symbol::Block(_) => debug_assert!(false, "a dispatch has no blocks"),
            }
        }
    }

    /// Collects the edges of a set: bytes in `edges`, everything else in `others`, sorted.
    fn gather(&mut self, unit: &Unit, part: u32, set: Span) {
        let part = unit.part(part);
        let Scratch { edges, others, .. } = &mut self.scratch;
        edges.clear();
        others.clear();
        for &s in &self.sets[set.range()] {
            for e in part.nfa.edges(s) {
                if part.live[e.to as usize] {
                    let list = if e.lo <= 255 { &mut *edges } else { &mut *others };
                    list.push(e);
                }
            }
        }
        edges.sort_unstable();
        edges.dedup();
        others.sort_unstable();
        others.dedup();
    }

    fn byte_targets(&mut self, instance: u32, unit: &Arc<Unit>, part: u32, bytes: &mut Vec<ByteEdge>) {
        let edges = std::mem::take(&mut self.scratch.edges);
        let mut cuts = std::mem::take(&mut self.scratch.cuts);
        let mut targets = std::mem::take(&mut self.scratch.targets);
        if edges.windows(2).all(|pair| pair[0].hi < pair[1].lo) {
            for e in &edges {
                self.lead(instance, (unit, part), (e.lo, e.hi, &[e.to]), bytes);
            }
        } else {
            // Elementary intervals: every begin and every past-the-end is a cut.
            cuts.clear();
            cuts.extend(edges.iter().flat_map(|e| [e.lo, e.hi + 1]));
            cuts.sort_unstable();
            cuts.dedup();
            for pair in cuts.windows(2) {
                let (lo, hi) = (pair[0], pair[1] - 1);
                targets.clear();
                targets.extend(edges.iter().take_while(|e| e.lo <= lo).filter(|e| e.hi >= lo).map(|e| e.to));
                if !targets.is_empty() {
                    self.lead(instance, (unit, part), (lo, hi, &targets), bytes);
                }
            }
        }
        (self.scratch.edges, self.scratch.cuts, self.scratch.targets) = (edges, cuts, targets);
    }

    /// Adds what `lo..=hi` leads to.
    fn lead(
        &mut self,
        instance: u32,
        (unit, part): (&Unit, u32),
        (lo, hi, targets): (u32, u32, &[u32]),
        bytes: &mut Vec<ByteEdge>,
    ) {
        let mut set = std::mem::take(&mut self.scratch.set);
        self.scratch.close(unit, part, targets, &mut set);
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

    /// Calls, special tokens and blocks, each with the closure of all it leads to.
    #[allow(clippy::type_complexity)]
    fn other_targets(
        &mut self,
        instance: u32,
        (unit, part): (&Arc<Unit>, u32),
        (calls, specials, enters): (&mut Vec<(u32, u32)>, &mut Vec<(u32, u32)>, &mut Vec<u32>),
    ) {
        let others = std::mem::take(&mut self.scratch.others);
        let mut targets = std::mem::take(&mut self.scratch.targets);
        for same in others.chunk_by(|a, b| a.lo == b.lo) {
            targets.clear();
            targets.extend(same.iter().map(|e| e.to));
            let mut set = std::mem::take(&mut self.scratch.set);
            self.scratch.close(unit, part, &targets, &mut set);
            let to = if set.is_empty() { None } else { Some(self.intern(instance, &set)) };
            self.scratch.set = set;
            let Some(to) = to else { continue };
            match Symbol::decode(same[0].lo) {
                Symbol::Call(rule) => calls.push((rule, to)),
                Symbol::Special(special) => specials.push((special, to)),
                Symbol::Block(block) => enters.push(self.place(instance, unit, block, to)),
                Symbol::Byte(_) => {}
            }
        }
        (self.scratch.others, self.scratch.targets) = (others, targets);
    }

    /// A block of a rule with what follows it.
    fn place(&mut self, instance: u32, unit: &Arc<Unit>, block: u32, exit: u32) -> u32 {
        let rule = self.instances[instance as usize].rule;
        if let Some(&placed) = self.placed.get(&(rule, block, exit)) {
            return placed;
        }
        let placed = self.blocks.len() as u32;
        self.placed.insert((rule, block, exit), placed);
        let part = &unit.blocks[block as usize];
        self.blocks.push(Block { min: part.min, max: part.max, start: UNKNOWN, exit });
        let inner = self.instance(Source::Sets(unit.clone(), block + 1), rule, placed);
        let start = self.first(inner);
        self.blocks[placed as usize].start = start;
        placed
    }
}

/// Adds an edge, joined with the one before where the ranges touch.
fn push_edge(edges: &mut Vec<ByteEdge>, lo: u32, hi: u32, to: u32) {
    let (lo, hi) = (lo as u8, hi.min(255) as u8);
    match edges.last_mut() {
        Some(last) if last.to == to && u32::from(last.hi) + 1 == u32::from(lo) => last.hi = hi,
        _ => edges.push(ByteEdge { lo, hi, to }),
    }
}

impl super::units::Part {
    /// Whether a set of states is final, reads something, calls something.
    fn look(&self, set: &[u32]) -> (bool, bool, bool) {
        let (mut is_final, mut scannable, mut calling) = (false, false, false);
        for &s in set {
            is_final |= self.nfa.is_final(s);
            for e in self.nfa.edges(s).filter(|e| self.live[e.to as usize]) {
                match Symbol::decode(e.lo) {
                    Symbol::Byte(_) | Symbol::Special(_) => scannable = true,
                    Symbol::Call(_) | Symbol::Block(_) => calling = true,
                }
            }
        }
        (is_final, scannable, calling)
    }
}

impl Scratch {
    /// The states that matter (live, with an edge or final) among those that epsilon edges reach; sorted.
    fn close(&mut self, unit: &Unit, part: u32, from: &[u32], set: &mut Vec<u32>) {
        let part = unit.part(part);
        set.clear();
        self.round = self.round.wrapping_add(1);
        if self.seen.len() < part.nfa.len() || self.round == 0 {
            self.seen.clear();
            self.seen.resize(part.nfa.len(), 0);
            self.round = 1;
        }
        let Scratch { stack, seen, round, .. } = self;
        let mut push = |stack: &mut Vec<u32>, s: u32| {
            if part.live[s as usize] && std::mem::replace(&mut seen[s as usize], *round) != *round {
                stack.push(s);
            }
        };
        from.iter().for_each(|&s| push(stack, s));
        while let Some(s) = stack.pop() {
            if !part.nfa.is_edgeless(s) || part.nfa.is_final(s) {
                set.push(s);
            }
            part.nfa.epsilons(s).for_each(|to| push(stack, to));
        }
        set.sort_unstable();
    }
}
