//! Earley's algorithm over rule automata with interned configurations: scanning, completion, prediction, and the memo
//! of transitions that makes all of it a lazily built deterministic pushdown automaton.

mod predict;

use std::ops::RangeInclusive;
use std::sync::Arc;

use predict::Called;

use super::any::Any;
use super::distinct::Distinct;
use super::limit::ParserLimit;
use super::meter::At;
use super::names::Names;
use super::runs::Stays;
use super::store::{
    BOTTOM, CONFIGS, ConfigId, DEAD, Done, FAR, FREE, FrameId, GATED, Item, ROOT, Store,
};
use super::transitions::Transitions;
use crate::capacity::ReserveMore;
use crate::compile::{Behind, Classes, Compiled, NO_BLOCK, Program};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::HashMap;
use crate::limits::Limits;
use crate::switches::Switch;
use crate::vocab::Vocabulary;

/// Not computed yet.
const UNKNOWN: u32 = u32::MAX;
/// So many configurations are made without a look at the memory that is held.
const LOOK_EVERY: u32 = 32;
/// Fuel of interning a configuration, beside two units an item.
const INTERNING: usize = 8;

/// How what is looked at on its own may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The rule has ended.
    End,
    /// A trigger of its dispatch has fired: the number of its state among the dispatch's.
    Gate(u32),
}

/// A counter's distance to its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Runs that must still come.
    pub(crate) missing: u32,
    /// Runs that may still come.
    pub(crate) room: u32,
}

/// The parser of one compiled grammar: pure functions from configuration to configuration, memoised.
#[derive(Debug)]
pub(crate) struct Parser {
    program: Program,
    store: Store,
    transitions: Transitions,
    /// Those that transitions are by; the program's, or, for as long as no transition is found that needs more, what they were.
    classes: Arc<Classes>,
    special_steps: HashMap<(ConfigId, u32), ConfigId>,
    /// See [`Parser::loops`].
    pub(super) loops: Vec<(u64, u64)>,
    /// See [`Parser::reads_any`].
    pub(super) any: Vec<Any>,
    /// How much that has taken, in configurations.
    pub(super) any_made: usize,
    /// See [`Parser::is_uniform`]: shapes looked at, and those that are.
    pub(super) uniform: Vec<(u16, u16)>,
    /// See [`Parser::goes_on_alike`].
    pub(super) alike: HashMap<(ConfigId, ConfigId), bool>,
    /// What stands for configurations in counted blocks, by what they were read as; see [`Parser::read_in_block`].
    pub(super) far: HashMap<(ConfigId, FrameId), ConfigId>,
    /// By configuration, whether it is in this rule, for those that were read so.
    pub(super) staying: Vec<(u32, Stays)>,
    /// See [`Parser::after`].
    after: HashMap<(FrameId, bool), ConfigId>,
    /// See [`Parser::token_ended`].
    pub(super) ticks: HashMap<ConfigId, ConfigId>,
    pub(super) distinct: Distinct,
    pub(super) names: Names,
    start: ConfigId,
    /// Why there is no start.
    start_limit: Option<ParserLimit>,
    /// What tokens there are, so that what none tells apart is one; `None` where no masks are built.
    vocab: Option<Arc<Vocabulary>>,
    max_items: usize,
    pub(super) max_bytes: usize,
    /// Configurations that are made are loose ones; see [`super::gaps`].
    pub(super) loose: bool,
    /// Configurations made since memory was looked at.
    unlooked: u32,
    scratch: Scratch,
}

/// Reused buffers of [`Parser::close`].
#[derive(Debug, Default)]
struct Scratch {
    kernel: Vec<Item>,
    /// Items at the start of a block's next run.
    restarts: Vec<Item>,
    /// Frames of elements that have ended.
    ended: Vec<FrameId>,
    out: Vec<Item>,
    entries: Vec<Item>,
    /// Per rule: its slot in `called` this round.
    slot: Vec<u32>,
    /// Rules called this round.
    called: Vec<Called>,
    /// Calls from kernel items: (slot, item to return to).
    outer: Vec<(u32, Item)>,
    /// Calls from called rules: (callee's slot, caller's slot, state to return to).
    inner: Vec<(u32, u32, u32)>,
    seen: hashbrown::HashSet<Item, crate::hash::Seeded>,
}

impl Parser {
    /// `vocab`: what masks are built for.
    pub(crate) fn new(
        compiled: Arc<Compiled>,
        vocab: Option<Arc<Vocabulary>>,
        limits: &Limits,
    ) -> Parser {
        let scratch = Scratch { slot: vec![UNKNOWN; compiled.rules.len()], ..Scratch::default() };
        let mut parser = Parser {
            classes: compiled.classes.clone(),
            program: Program::new(compiled),
            store: Store::new(),
            transitions: Transitions::with_capacity(CONFIGS),
            special_steps: HashMap::default(),
            loops: Vec::new(),
            any: Vec::new(),
            any_made: 0,
            uniform: Vec::new(),
            alike: HashMap::default(),
            far: HashMap::default(),
            staying: Vec::new(),
            after: HashMap::default(),
            ticks: HashMap::default(),
            distinct: Distinct::default(),
            names: Names::new(),
            start: DEAD,
            start_limit: None,
            vocab,
            max_items: limits.config_items,
            max_bytes: limits.parser_bytes,
            loose: false,
            unlooked: LOOK_EVERY, // the first one looks
            scratch,
        };
        parser.begin();
        parser
    }

    /// Keeps transitions or not, from now on.
    pub(crate) fn keep_transitions(&mut self, switch: Switch) {
        self.transitions.switch(switch);
    }

    /// Memory of transitions.
    #[cfg(test)]
    pub(crate) fn transitions_held(&self) -> usize {
        self.transitions.bytes()
    }

    fn begin(&mut self) {
        let start = self.program.open(self.compiled().start);
        // The start rule is treated as called from nowhere; a start limit error leaves a dead parser, reported on first use.
        let done = Done { root: self.compiled().start_nullable(), ..Done::default() };
        self.scratch.kernel.clear();
        self.scratch.kernel.push(Item { state: start, count: 0, frame: ROOT });
        self.enter_blocks();
        let start = self.predict(done).and_then(|start| self.settle(start, At::Byte));
        let start = start.and_then(|start| self.token_ended(start));
        self.start_limit = start.err();
        self.start = start.unwrap_or(DEAD);
    }

    /// Forgets everything; ids given out before mean nothing any more.
    pub(crate) fn clear(&mut self) {
        self.program = Program::new(self.compiled().clone());
        self.store = Store::new();
        self.transitions.clear();
        self.classes = self.program.classes().clone();
        self.loose = false;
        self.special_steps.clear();
        self.loops.clear();
        self.any.clear();
        self.uniform.clear();
        self.alike.clear();
        self.far.clear();
        self.staying.clear();
        self.after.clear();
        self.ticks.clear();
        self.distinct = Distinct::default();
        self.names = Names::new();
        self.scratch =
            Scratch { slot: vec![UNKNOWN; self.compiled().rules.len()], ..Scratch::default() };
        self.begin();
    }

    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        self.program.compiled()
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn start(&self) -> ConfigId {
        self.start
    }

    /// The limit that was reached before anything was read, where [`Parser::start`] is dead.
    pub(crate) fn start_limit(&self) -> ParserLimit {
        self.start_limit.unwrap_or(ParserLimit::Items)
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.program.bytes()
            + self.store.bytes()
            + self.transitions.bytes()
            + self.distinct.bytes()
            + self.names.bytes()
            + (self.special_steps.len()
                + self.after.len()
                + self.far.len()
                + self.loops.len()
                + self.alike.len())
                * 16
            + self.any.len() * size_of::<Any>()
            + self.uniform.len() * 4
            + self.staying.len() * 8
    }

    /// Nodes of the vocabulary that masks are built for.
    pub(super) fn vocab_nodes(&self) -> usize {
        self.vocab.as_ref().map_or(0, |vocab| vocab.trie().len())
    }

    /// Makes room for what texts still add: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.program.reserve_more();
        self.store.reserve_more();
        self.transitions.reserve_more();
        self.names.reserve_more();
        self.ticks.reserve_more();
    }

    /// Whether the memory budget is used up and [`Parser::clear`] is due.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.max_bytes
    }

    /// Whether so much more than the budget is used that nothing can be added.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.bytes() > self.max_bytes.saturating_mul(2)
    }

    #[inline]
    pub(crate) fn class(&self, byte: u8) -> u8 {
        self.classes.of(byte)
    }

    /// Where a byte leads. Amortised constant: one table look-up once the transition is known.
    #[inline]
    pub(crate) fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if let Some(next) = self.known_step(config, byte) {
            return Ok(next);
        }
        if self.transitions.refuse(config, byte) {
            return Ok(DEAD);
        }
        self.compute(config, byte)
    }

    /// Where a byte leads, if that is known.
    #[inline]
    pub(super) fn known_step(&self, config: ConfigId, byte: u8) -> Option<ConfigId> {
        self.transitions.get(config, self.class(byte))
    }

    #[cold]
    fn compute(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if self.is_named(config) {
            let (next, is_of_class) = self.step_named(config, byte)?;
            if is_of_class {
                let class = self.class(byte);
                self.transitions.insert(config, (class..=class, self.classes.len()), next);
            }
            return Ok(next);
        }
        if self.compares(config) {
            // What is compared tells bytes apart that nothing else does.
            return self.step_compared(config, byte);
        }
        debug_assert!(config == DEAD || self.store.done(config).loose == self.loose);
        self.tell_apart();
        let (next, alike) =
            self.read_alike(config, self.classes.first(u32::from(self.class(byte))))?;
        if next == DEAD {
            let reads = self.allowed(config);
            if !reads.contains(byte) {
                self.transitions.limit(config, reads);
                return Ok(DEAD);
            }
        }
        self.tell_apart();
        // Classes are of neighbours: what is between two bytes is between their classes.
        let classes = self.class(*alike.start())..=self.class(*alike.end());
        self.transitions.insert(config, (classes, self.classes.len()), next);
        Ok(next)
    }

    /// Where something deferred has joined the program, bytes may be told apart that were not, and transitions are found anew.
    fn tell_apart(&mut self) {
        if !Arc::ptr_eq(&self.classes, self.program.classes()) {
            self.classes = self.program.classes().clone();
            self.transitions.clear();
        }
    }

    /// The configuration behind a byte.
    pub(super) fn read_byte(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<ConfigId, ParserLimit> {
        Ok(self.read_alike(config, byte)?.0)
    }

    /// The configuration behind a byte, and the bytes around it that lead there over the same edges.
    fn read_alike(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<(ConfigId, RangeInclusive<u8>), ParserLimit> {
        self.scratch.kernel.clear();
        let (mut from, mut to) = (0, u8::MAX);
        for item in self.store.items(config) {
            self.program.expand(item.state);
            fuel::charge(2 + self.program.byte_edges(item.state).len() / 4);
            for e in self.program.byte_edges(item.state) {
                if e.hi < byte {
                    from = from.max(e.hi + 1);
                } else if e.lo > byte {
                    to = to.min(e.lo - 1);
                } else {
                    (from, to) = (from.max(e.lo), to.min(e.hi));
                    self.scratch.kernel.push(Item { state: e.to, ..*item });
                }
            }
        }
        if !self.compiled().keeps_no_account() {
            let mut kernel = std::mem::take(&mut self.scratch.kernel);
            if self.byte_read(byte, &mut kernel) {
                (from, to) = (byte, byte);
            }
            self.scratch.kernel = kernel;
        }
        Ok((self.close()?, from..=to))
    }

    /// Where a special token of the grammar leads.
    pub(crate) fn step_special(
        &mut self,
        config: ConfigId,
        special: u32,
    ) -> Result<ConfigId, ParserLimit> {
        if let Some(&next) = self.special_steps.get(&(config, special)) {
            return Ok(next);
        }
        if self.is_named(config) {
            return self.special_named(config, special);
        }
        let mut next = self.read_special(config, special)?;
        if self.compares(config) && !self.is_live(next)? {
            next = DEAD;
        }
        self.special_steps.insert((config, special), next);
        Ok(next)
    }

    /// The configuration behind a special token of the grammar.
    pub(super) fn read_special(
        &mut self,
        config: ConfigId,
        special: u32,
    ) -> Result<ConfigId, ParserLimit> {
        self.scratch.kernel.clear();
        for item in self.store.items(config) {
            self.program.expand(item.state);
            for &(s, to) in self.program.special_edges(item.state) {
                if s == special {
                    self.scratch.kernel.push(Item { state: to, ..*item });
                }
            }
        }
        if !self.compiled().scopes.is_empty() {
            let mut kernel = std::mem::take(&mut self.scratch.kernel);
            self.symbol_read(256 + special, &mut kernel);
            self.scratch.kernel = kernel;
        }
        self.close()
    }

    /// Special tokens of the grammar that may follow.
    pub(crate) fn specials(&mut self, config: ConfigId) -> impl Iterator<Item = u32> + '_ {
        self.expand(config);
        self.store
            .items(config)
            .iter()
            .flat_map(|i| self.program.special_edges(i.state))
            .map(|&(s, _)| s)
    }

    /// Finds the edges of a configuration's states.
    pub(crate) fn expand(&mut self, config: ConfigId) {
        self.store.items(config).iter().for_each(|i| self.program.expand(i.state));
    }

    /// Bytes that a state reads.
    pub(crate) fn reads_of(&mut self, state: u32) -> ByteSet {
        self.program.expand(state);
        let mut set = ByteSet::EMPTY;
        self.program.byte_edges(state).iter().for_each(|e| set.insert_range(e.lo, e.hi));
        set
    }

    /// Whether a configuration of an item looked at on its own has no items of rules that were called since.
    #[inline]
    pub(crate) fn is_alone(&self, config: ConfigId) -> bool {
        self.store.items(config).iter().all(Item::is_alone)
    }

    /// Bytes that may follow. Exact: every state can reach the end of its rule.
    pub(crate) fn allowed(&mut self, config: ConfigId) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        fuel::charge(self.store.items(config).len() / 2);
        for item in self.store.items(config) {
            self.program.expand(item.state);
            for e in self.program.byte_edges(item.state) {
                set.insert_range(e.lo, e.hi);
            }
        }
        set
    }

    /// One item alone, with nothing known about what follows its rule.
    pub(crate) fn isolated(&mut self, item: Item) -> ConfigId {
        let frame = if self.program.is_dispatch(item.state) { GATED } else { BOTTOM };
        self.interned_as(&[Item { frame, ..item }], Done::default())
    }

    /// Everything either configuration could go on with.
    pub(crate) fn union(&mut self, a: ConfigId, b: ConfigId) -> ConfigId {
        if a == b || b == DEAD {
            return a;
        }
        if a == DEAD {
            return b;
        }
        if self.is_named(a) || self.is_named(b) {
            return self.union_named(a, b);
        }
        let mut items: Vec<Item> = [self.store.items(a), self.store.items(b)].concat();
        items.sort_unstable();
        items.dedup();
        let (a, b) = (self.store.done(a), self.store.done(b));
        let done = Done {
            root: a.root || b.root,
            bottom: a.bottom || b.bottom,
            gated: a.gated || b.gated,
            ..Done::default()
        };
        self.interned_as(&items, done)
    }

    /// How far an item's counter is from its block's bounds; `None` outside of blocks, and where those do not count or are out of reach.
    pub(crate) fn room(&self, item: &Item) -> Option<Room> {
        let block = self.program.block_of(item.state).filter(|block| !(self.loose && block.gap))?;
        if item.count == FAR {
            return None;
        }
        Some(Room {
            missing: block.min.saturating_sub(item.count),
            room: block.max.map_or(u32::MAX, |max| max.saturating_sub(item.count)),
        })
    }

    /// The configuration in which a rule with this frame has just ended.
    pub(crate) fn after(&mut self, frame: FrameId) -> Result<ConfigId, ParserLimit> {
        if let Some(&known) = self.after.get(&(frame, self.loose)) {
            return Ok(known);
        }
        self.scratch.kernel.clear();
        self.scratch.kernel.extend_from_slice(self.store.returns(frame));
        let done = Done {
            root: frame == ROOT,
            bottom: matches!(frame, BOTTOM | GATED),
            ..Done::default()
        };
        let after = self.close_with(done)?;
        self.after.insert((frame, self.loose), after);
        Ok(after)
    }

    /// What follows where an item looked at on its own has left what could be seen: its rule's end, or a trigger's tags.
    pub(crate) fn follow(&mut self, item: &Item, exit: Exit) -> Result<ConfigId, ParserLimit> {
        let Exit::Gate(gate) = exit else { return self.after(item.frame) };
        let state = self.program.gate(item.state, gate);
        self.scratch.kernel.clear();
        self.scratch.kernel.push(Item { state, count: 0, frame: item.frame });
        self.close()
    }

    /// How a configuration of an item looked at on its own ends or may end here.
    pub(crate) fn exits(&self, config: ConfigId) -> impl Iterator<Item = Exit> + '_ {
        let end = self.store.done(config).bottom.then_some(Exit::End);
        let gates = self.store.items(config).iter().filter(|i| i.frame == GATED);
        end.into_iter().chain(gates.filter_map(|i| self.program.gate_of(i.state).map(Exit::Gate)))
    }

    /// Whether a configuration can read anything.
    pub(crate) fn reads(&self, config: ConfigId) -> bool {
        self.store.items(config).iter().any(|i| self.program.state(i.state).scannable)
    }

    fn close(&mut self) -> Result<ConfigId, ParserLimit> {
        self.close_with(Done::default())
    }

    /// Completes what has ended and predicts what may begin. Takes the kernel (items that have just moved).
    fn close_with(&mut self, mut done: Done) -> Result<ConfigId, ParserLimit> {
        if self.scratch.kernel.is_empty() && done == Done::default() {
            return Ok(DEAD);
        }
        if self.compiled().keeps_no_account() && self.is_plain() {
            return self.keep(done);
        }
        self.complete(&mut done)?;
        self.enter_blocks();
        let next = self.predict(done)?;
        self.settle(next, At::Byte)
    }

    /// Whether nothing has ended and nothing is called: the items that have moved are the configuration.
    fn is_plain(&self) -> bool {
        self.scratch.kernel.iter().all(|item| {
            let state = self.program.state(item.state);
            !state.is_final && !state.calling && state.scannable
        })
    }

    /// The configuration of the kernel as it is.
    fn keep(&mut self, done: Done) -> Result<ConfigId, ParserLimit> {
        let mut out = std::mem::take(&mut self.scratch.kernel);
        let result = self.intern(&mut out, done);
        self.scratch.kernel = out;
        result
    }

    /// The configuration of these items.
    pub(super) fn intern(
        &mut self,
        items: &mut Vec<Item>,
        done: Done,
    ) -> Result<ConfigId, ParserLimit> {
        if items.len() > 1 {
            fuel::charge_sort(items.len());
            items.sort_unstable();
            items.dedup();
        }
        self.intern_sorted(items, done)
    }

    /// The same of items that are sorted and distinct.
    pub(super) fn intern_sorted(
        &mut self,
        items: &[Item],
        done: Done,
    ) -> Result<ConfigId, ParserLimit> {
        if items.len() > self.max_items {
            return Err(ParserLimit::Items);
        }
        fuel::spend(INTERNING + 2 * items.len())?;
        // Memory is looked at now and then: what so few configurations take is little.
        self.unlooked += 1;
        if self.unlooked >= LOOK_EVERY {
            self.unlooked = 0;
            if self.is_exhausted() {
                self.unlooked = LOOK_EVERY;
                return Err(ParserLimit::Memory);
            }
        }
        Ok(self.interned_as(items, done))
    }

    /// The configuration of these items, which are sorted and distinct; loose if such are made.
    pub(super) fn interned_as(&mut self, items: &[Item], done: Done) -> ConfigId {
        self.store.config(items, Done { loose: self.loose, ..done })
    }

    /// The configuration of items that have just moved, budgets not looked at.
    pub(super) fn close_items(&mut self, items: &[Item]) -> Result<ConfigId, ParserLimit> {
        let mut done = Done::default();
        self.scratch.kernel.clear();
        self.scratch.kernel.extend_from_slice(items);
        self.complete(&mut done)?;
        self.enter_blocks();
        self.predict(done)
    }

    /// What rewriting frames takes.
    pub(super) fn parts(&mut self) -> (&mut Store, &Program, Option<u32>) {
        let reach = self.reach();
        (&mut self.store, &self.program, reach)
    }

    /// The longest token, in bytes, where masks are built.
    fn reach(&self) -> Option<u32> {
        self.vocab.as_ref().map(|vocab| vocab.reach() as u32)
    }

    /// What masks are built for.
    pub(super) fn vocab(&self) -> Option<&Arc<Vocabulary>> {
        self.vocab.as_ref()
    }

    /// Completion to a fixpoint over the kernel: an item whose rule ends adds what its frame goes on with; one whose run of
    /// a block ends adds the next run, or what follows the block.
    fn complete(&mut self, done: &mut Done) -> Result<(), ParserLimit> {
        self.scratch.restarts.clear();
        self.scratch.ended.clear();
        fuel::charge_sort(self.scratch.kernel.len());
        self.scratch.kernel.sort_unstable();
        self.scratch.kernel.dedup();
        let mut at = 0;
        loop {
            at = self.complete_from(at, done)?;
            while let Some(frame) = self.scratch.ended.pop() {
                for back in self.end_element(frame)? {
                    if !self.scratch.kernel.contains(&back) {
                        self.scratch.kernel.push(back);
                    }
                }
            }
            if at == self.scratch.kernel.len() {
                return Ok(());
            }
        }
    }

    /// As [`Parser::complete`], from some item on; what elements that end return to is left to do.
    fn complete_from(&mut self, mut at: usize, done: &mut Done) -> Result<usize, ParserLimit> {
        let Scratch { kernel, seen, restarts, ended, .. } = &mut self.scratch;
        let (program, loose, refused) = (&self.program, self.loose, &self.names.refused);
        // Small kernels are searched, large ones hashed.
        let mut hashed = false;
        let mut push = |kernel: &mut Vec<Item>, item: Item| {
            if kernel.len() < 24 {
                if !kernel.contains(&item) {
                    kernel.push(item);
                }
                return;
            }
            if !hashed {
                hashed = true;
                seen.clear();
                seen.extend(kernel.iter().copied());
            }
            if seen.insert(item) {
                kernel.push(item);
            }
        };
        while at < kernel.len() {
            let item = kernel[at];
            at += 1;
            fuel::charge(2);
            let state = program.state(item.state);
            if !state.is_final {
                continue;
            }
            if state.block != NO_BLOCK {
                let block = &program.blocks[state.block as usize];
                let runs = item.count.saturating_add(1);
                if item.count & FREE != 0 {
                    restarts.push(Item { state: block.start, count: runs, frame: item.frame });
                    push(kernel, Item { state: block.exit, count: 0, frame: item.frame });
                    continue;
                }
                let max = block.max.filter(|_| !(loose && block.gap));
                if max.is_none_or(|max| runs < max) {
                    // Without an upper bound, runs past `min` are all the same.
                    let count = if max.is_none() { runs.min(block.min) } else { runs };
                    restarts.push(Item { state: block.start, count, frame: item.frame });
                }
                if runs >= block.min {
                    push(kernel, Item { state: block.exit, count: 0, frame: item.frame });
                }
                continue;
            }
            match item.frame {
                ROOT => done.root = true,
                BOTTOM | GATED => done.bottom = true,
                frame if state.behind == Behind::Element => ended.push(frame),
                frame if state.name && refused.contains(&frame) => {}
                frame => {
                    fuel::spend(2 * self.store.returns(frame).len())?;
                    for &back in self.store.returns(frame) {
                        push(kernel, back);
                    }
                }
            }
            if kernel.len() > self.max_items {
                return Err(ParserLimit::Items);
            }
        }
        Ok(at)
    }

    /// Items that may enter a block also stand at its start, and so do those that have just finished a run. Neither has read
    /// anything of its new run, so neither is completed: a run that could be empty is never counted.
    fn enter_blocks(&mut self) {
        let Scratch { kernel, restarts, .. } = &mut self.scratch;
        fuel::charge(kernel.len() + restarts.len());
        for i in 0..kernel.len() {
            let item = kernel[i];
            let state = self.program.state(item.state);
            if !state.calling || state.gate && item.frame == GATED {
                continue;
            }
            self.program.expand(item.state);
            for &block in self.program.enters(item.state) {
                let start = self.program.blocks[block as usize].start;
                kernel.push(Item { state: start, count: 0, frame: item.frame });
            }
        }
        kernel.append(restarts);
    }
}
