//! Parser core: scanning, completion, prediction.
//!
//! The parser is Earley's algorithm over rule automata (J. Earley, "An efficient context-free
//! parsing algorithm", 1970) with interned configurations. [`TransitionCache`] memoises
//! (configuration, byte class) pairs, so the parser works as a lazily built deterministic pushdown
//! automaton.
//!
//! Invariants: a step is a pure function of the configuration. An id is valid until
//! [`Parser::clear`]. Cost: one table look-up for a cached transition, otherwise time in proportion
//! to the items and calls of both configurations.

mod complete;
mod predict;

use std::ops::RangeInclusive;
use std::sync::Arc;

use predict::CalledRule;

use super::limit::ParserLimit;
use super::query_caches::{DistinctCaches, QueryCaches, StepCaches};
use super::store::{ConfigFlags, ConfigId, FrameId, INITIAL_CONFIGS, Item, Store};
use super::symbol::Symbol;
use super::transition_cache::TransitionCache;
use super::value_constraints::key_tracker::KeyTracker;
use crate::compile::{
    Compiled, CompiledRuleId, DispatchStateId, FAR_FROM_BOUNDS, Program, StateId,
};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::ids::SpecialId;
use crate::limits::Limits;
use crate::switches::Switch;
use crate::vocab::Vocabulary;

/// Not assigned yet.
const UNKNOWN: u32 = u32::MAX;
/// Configurations between two checks of the memory limit.
const MEMORY_CHECK_INTERVAL: u32 = 32;
/// Most memory of a parser, in bytes: its tables have indices of 31 bits, and may grow to twice
/// that.
const MAX_PARSER_BYTES: usize = 2 << 30;
/// Fuel of interning a configuration, in addition to two units for each item.
const INTERN_FUEL: usize = 8;

/// Way in which an isolated rule ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The rule ended.
    End,
    /// A trigger of the rule's dispatch fired, in this state.
    Trigger(DispatchStateId),
}

/// Distance of a block's counter from its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterDistance {
    /// Runs that must still follow.
    pub(crate) to_min: u32,
    /// Runs that may still follow.
    pub(crate) to_max: u32,
}

/// Parser of one compiled grammar: memoised functions on configurations.
#[derive(Debug)]
pub(crate) struct Parser {
    program: Program,
    store: Store,
    transitions: TransitionCache,
    pub(super) steps: StepCaches,
    /// Answers to queries of mask construction.
    pub(super) queries: QueryCaches,
    /// Caches of `value_constraints/distinct_values.rs`.
    pub(super) distinct_values: DistinctCaches,
    /// The keys of open objects; see `value_constraints/duplicate_keys.rs`.
    pub(super) keys: KeyTracker,
    /// The configuration of the empty text, or the limit that was reached while computing it.
    start: Result<ConfigId, ParserLimit>,
    /// The vocabulary that bounds canonical counters; `None` if no masks are built.
    vocab: Option<Arc<Vocabulary>>,
    pub(super) limits: InternLimits,
    /// New configurations ignore white-space bounds; see [`super::white_space_bounds`].
    pub(super) relaxed: bool,
    scratch: Scratch,
}

/// Limits on what one parser interns, and when they are checked.
#[derive(Debug)]
pub(super) struct InternLimits {
    /// Most items of one configuration.
    items: usize,
    /// Memory budget, in bytes.
    pub(super) bytes: usize,
    /// Configurations built since the last check of the memory budget.
    configs_since_check: u32,
}

/// Reused buffers of [`Parser::close`].
#[derive(Debug, Default)]
struct Scratch {
    /// The items that scanning produced, then those that completion adds.
    kernel: Vec<Item>,
    /// Items at the start of a block's next run.
    restarts: Vec<Item>,
    /// Frames of elements that ended.
    ended: Vec<FrameId>,
    /// The items of the next configuration.
    out: Vec<Item>,
    /// The items that one called rule returns to.
    entries: Vec<Item>,
    /// By rule: its index in `called`.
    slot: Vec<u32>,
    /// Rules called in this round.
    called: Vec<CalledRule>,
    /// Calls by kernel items: the callee, and the item to return to.
    outer: Vec<(CompiledRuleId, Item)>,
    /// Calls by called rules: the callee's slot, the caller's slot, and the state to return to.
    inner: Vec<(u32, u32, StateId)>,
    /// The kernel as a set, when it is large.
    seen: hashbrown::HashSet<Item, crate::hash::Seeded>,
}

impl Parser {
    /// Creates a parser. `vocab` is the vocabulary that masks are built for.
    pub(crate) fn new(
        compiled: Arc<Compiled>,
        vocab: Option<Arc<Vocabulary>>,
        limits: &Limits,
    ) -> Parser {
        let scratch = Scratch { slot: vec![UNKNOWN; compiled.rules.len()], ..Scratch::default() };
        let mut parser = Parser {
            transitions: TransitionCache::new(compiled.classes.clone(), INITIAL_CONFIGS),
            program: Program::new(compiled),
            store: Store::new(),
            steps: StepCaches::default(),
            queries: QueryCaches::default(),
            distinct_values: DistinctCaches::default(),
            keys: KeyTracker::new(),
            start: Ok(ConfigId::DEAD),
            vocab,
            limits: InternLimits {
                items: limits.config_items,
                bytes: limits.parser_bytes.min(MAX_PARSER_BYTES),
                configs_since_check: MEMORY_CHECK_INTERVAL, // the first one looks
            },
            relaxed: false,
            scratch,
        };
        parser.init_start();
        parser
    }

    /// Switches the transition cache on or off.
    pub(crate) fn switch_transition_cache(&mut self, switch: Switch) {
        self.transitions.switch(switch);
    }

    /// Memory of the transition cache, in bytes.
    #[cfg(test)]
    pub(crate) fn transitions_held(&self) -> usize {
        self.transitions.bytes()
    }

    /// Computes the start configuration.
    fn init_start(&mut self) {
        let start = self.program.instantiate(self.compiled().start);
        // The start rule returns to the root frame. If a limit prevents that, the parser is dead,
        // and its first use reports the limit.
        let flags = ConfigFlags {
            start_completed: self.compiled().start_nullable(),
            ..ConfigFlags::default()
        };
        self.scratch.kernel.clear();
        self.scratch.kernel.push(Item { state: start, count: 0, frame: FrameId::ROOT });
        let start = self.enter_blocks().and_then(|()| self.predict(flags));
        let start = start.and_then(|start| self.byte_ended(start));
        self.start = start.and_then(|start| self.token_ended(start));
    }

    /// Drops all configurations, frames and caches. Ids from before are invalid. All sequences
    /// share the new start, so it does not depend on the fuel that one of them has left.
    pub(crate) fn clear(&mut self) {
        self.program = Program::new(self.compiled().clone());
        self.store = Store::new();
        self.transitions.clear();
        self.transitions.adopt_classes(self.program.classes());
        self.relaxed = false;
        self.steps.clear();
        self.queries.clear();
        self.distinct_values = DistinctCaches::default();
        self.keys = KeyTracker::new();
        self.scratch =
            Scratch { slot: vec![UNKNOWN; self.compiled().rules.len()], ..Scratch::default() };
        fuel::with_separate_budget(self.compiled().compile_fuel(), || self.init_start());
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

    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The configuration of the empty text.
    pub(crate) fn start(&self) -> ConfigId {
        self.start.unwrap_or(ConfigId::DEAD)
    }

    /// The limit that makes [`Parser::start`] dead.
    pub(crate) fn start_limit(&self) -> ParserLimit {
        self.start.err().unwrap_or(ParserLimit::Items)
    }

    /// Approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.program.bytes()
            + self.store.bytes()
            + self.transitions.bytes()
            + self.steps.bytes()
            + self.queries.bytes()
            + self.distinct_values.bytes()
            + self.keys.bytes()
    }

    /// Trie nodes of the vocabulary.
    pub(super) fn vocab_nodes(&self) -> usize {
        self.vocab.as_ref().map_or(0, |vocab| vocab.trie().len())
    }

    /// Reserves capacity for further text; see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.program.reserve_more();
        self.store.reserve_more();
        self.transitions.reserve_more();
        self.keys.reserve_more();
        self.steps.reserve_more();
    }

    /// Whether half of the memory budget is used up.
    pub(crate) fn is_half_full(&self) -> bool {
        self.bytes() > self.limits.bytes / 2
    }

    /// Whether the memory budget is used up and [`Parser::clear`] is due.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.limits.bytes
    }

    /// Whether twice the memory budget is used up: nothing more is interned.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.bytes() > self.limits.bytes.saturating_mul(2)
    }

    /// The class of a byte in the transition cache.
    #[inline]
    pub(crate) fn class(&self, byte: u8) -> u8 {
        self.transitions.class(byte)
    }

    /// The configuration after a byte. Cost: one table look-up for a cached transition.
    #[inline]
    pub(crate) fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if let Some(next) = self.cached_step(config, byte) {
            return Ok(next);
        }
        if self.transitions.is_rejected(config, byte) {
            return Ok(ConfigId::DEAD);
        }
        self.compute_step(config, byte)
    }

    /// The configuration after a byte, if it is cached.
    #[inline]
    pub(super) fn cached_step(&self, config: ConfigId, byte: u8) -> Option<ConfigId> {
        self.transitions.get(config, byte)
    }

    /// Computes and caches the transition of a byte.
    #[cold]
    fn compute_step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if self.tracks_keys(config) {
            let (next, is_of_class) = self.step_with_keys(config, byte)?;
            if is_of_class {
                self.transitions.insert(config, byte..=byte, next);
            }
            return Ok(next);
        }
        if self.compares_values(config) {
            // Comparison of values distinguishes bytes that share a class.
            return self.step_comparing_values(config, byte);
        }
        debug_assert!(config == ConfigId::DEAD || self.store.flags(config).relaxed == self.relaxed);
        self.transitions.adopt_classes(self.program.classes());
        let first = self.transitions.first_of_class(byte);
        let (next, bytes) = self.compute_byte_range(config, first)?;
        if next == ConfigId::DEAD {
            let reads = self.allowed(config);
            if !reads.contains(byte) {
                self.transitions.set_reads(config, reads);
                return Ok(ConfigId::DEAD);
            }
        }
        self.transitions.adopt_classes(self.program.classes());
        self.transitions.insert(config, bytes, next);
        Ok(next)
    }

    /// Computes the configuration after a byte, without the cache.
    pub(super) fn compute_byte(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<ConfigId, ParserLimit> {
        Ok(self.compute_byte_range(config, byte)?.0)
    }

    /// Computes the configuration after a byte, and the range of bytes around it that takes the
    /// same edges.
    fn compute_byte_range(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<(ConfigId, RangeInclusive<u8>), ParserLimit> {
        self.scratch.kernel.clear();
        let (mut low, mut high) = (0, u8::MAX);
        for item in self.store.items(config) {
            self.program.expand(item.state);
            fuel::charge(2 + self.program.byte_edges(item.state).len() / 4);
            for e in self.program.byte_edges(item.state) {
                if e.hi < byte {
                    low = low.max(e.hi + 1);
                } else if e.lo > byte {
                    high = high.min(e.lo - 1);
                } else {
                    (low, high) = (low.max(e.lo), high.min(e.hi));
                    self.scratch.kernel.push(Item { state: e.to, ..*item });
                }
            }
        }
        if !self.compiled().frames_hold_no_counts() {
            let mut kernel = std::mem::take(&mut self.scratch.kernel);
            if self.account_symbol(byte.into(), &mut kernel) {
                (low, high) = (byte, byte);
            }
            self.scratch.kernel = kernel;
        }
        Ok((self.close()?, low..=high))
    }

    /// The configuration after a special token of the grammar.
    pub(crate) fn step_special(
        &mut self,
        config: ConfigId,
        special: SpecialId,
    ) -> Result<ConfigId, ParserLimit> {
        if let Some(&next) = self.steps.specials.get(&(config, special)) {
            return Ok(next);
        }
        let next = if self.tracks_keys(config) {
            self.step_special_with_keys(config, special)?
        } else {
            let next = self.compute_special(config, special)?;
            self.dead_unless_continuable(config, next)?
        };
        self.steps.specials.insert((config, special), next);
        Ok(next)
    }

    /// The configuration after a symbol.
    pub(crate) fn step_symbol(
        &mut self,
        config: ConfigId,
        symbol: Symbol,
    ) -> Result<ConfigId, ParserLimit> {
        match symbol {
            Symbol::Byte(byte) => self.step(config, byte),
            Symbol::Special(special) => self.step_special(config, special),
        }
    }

    /// Computes the configuration after a special token of the grammar, without the cache.
    pub(super) fn compute_special(
        &mut self,
        config: ConfigId,
        special: SpecialId,
    ) -> Result<ConfigId, ParserLimit> {
        self.scratch.kernel.clear();
        for item in self.store.items(config) {
            self.program.expand(item.state);
            let targets = Symbol::Special(special).targets(&self.program, item.state);
            self.scratch.kernel.extend(targets.map(|state| Item { state, ..*item }));
        }
        if !self.compiled().scopes.is_empty() {
            let mut kernel = std::mem::take(&mut self.scratch.kernel);
            self.account_symbol(special.into(), &mut kernel);
            self.scratch.kernel = kernel;
        }
        self.close()
    }

    /// The special tokens of the grammar that may follow.
    pub(crate) fn specials(&mut self, config: ConfigId) -> impl Iterator<Item = SpecialId> + '_ {
        self.expand(config);
        self.store
            .items(config)
            .iter()
            .flat_map(|i| self.program.special_edges(i.state))
            .map(|&(s, _)| s)
    }

    /// Builds the edges of a configuration's states (the automata are lazy).
    pub(crate) fn expand(&mut self, config: ConfigId) {
        self.store.items(config).iter().for_each(|i| self.program.expand(i.state));
    }

    /// The bytes that a state reads.
    pub(crate) fn reads_of(&mut self, state: StateId) -> ByteSet {
        self.program.expand(state);
        let mut set = ByteSet::EMPTY;
        self.program.byte_edges(state).iter().for_each(|e| set.insert_range(e.lo, e.hi));
        set
    }

    /// Whether all items of a configuration belong to isolated rules, and none to a rule called
    /// since.
    #[inline]
    pub(crate) fn is_isolated(&self, config: ConfigId) -> bool {
        self.store.items(config).iter().all(Item::is_isolated)
    }

    /// The bytes that may follow. Exact, because every state can reach the end of its rule; except
    /// where values are compared: there it has more, see [`Parser::exact_allowed`].
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

    /// The configuration of one item with an unknown continuation.
    pub(crate) fn isolated(&mut self, item: Item) -> ConfigId {
        let frame = if self.program.is_dispatch(item.state) {
            FrameId::ISOLATED_DISPATCH
        } else {
            FrameId::ISOLATED
        };
        self.intern_unchecked(&[Item { frame, ..item }], ConfigFlags::default())
    }

    /// The configuration of one item with its frame.
    pub(crate) fn intern_single(&mut self, item: Item) -> ConfigId {
        self.intern_unchecked(&[item], ConfigFlags::default())
    }

    /// The union of two configurations.
    pub(crate) fn union(&mut self, a: ConfigId, b: ConfigId) -> ConfigId {
        if a == b || b == ConfigId::DEAD {
            return a;
        }
        if a == ConfigId::DEAD {
            return b;
        }
        if self.tracks_keys(a) || self.tracks_keys(b) {
            return self.union_with_keys(a, b);
        }
        let mut items: Vec<Item> = [self.store.items(a), self.store.items(b)].concat();
        items.sort_unstable();
        items.dedup();
        let (a, b) = (self.store.flags(a), self.store.flags(b));
        let flags = ConfigFlags {
            start_completed: a.start_completed || b.start_completed,
            item_completed: a.item_completed || b.item_completed,
            after_trigger: a.after_trigger || b.after_trigger,
            ..ConfigFlags::default()
        };
        self.intern_unchecked(&items, flags)
    }

    /// The distance of an item's counter from its block's bounds. `None` outside of blocks, for
    /// bounds that are relaxed, and for counters that are far from both bounds.
    pub(crate) fn counter_distance(&self, item: &Item) -> Option<CounterDistance> {
        let block = self
            .program
            .block_of(item.state)
            .filter(|block| !(self.relaxed && block.is_bounded_white_space))?;
        if item.count == FAR_FROM_BOUNDS {
            return None;
        }
        Some(CounterDistance {
            to_min: block.min.saturating_sub(item.count),
            to_max: block.max.map_or(u32::MAX, |max| max.saturating_sub(item.count)),
        })
    }

    /// The configuration after a rule with this frame ends.
    pub(crate) fn after_frame(&mut self, frame: FrameId) -> Result<ConfigId, ParserLimit> {
        if let Some(&cached) = self.steps.after_frames.get(&(frame, self.relaxed)) {
            return Ok(cached);
        }
        self.scratch.kernel.clear();
        self.scratch.kernel.extend_from_slice(self.store.returns(frame));
        let flags = ConfigFlags {
            start_completed: frame == FrameId::ROOT,
            item_completed: frame.is_isolated(),
            ..ConfigFlags::default()
        };
        let after = self.close_with(flags)?;
        self.steps.after_frames.insert((frame, self.relaxed), after);
        Ok(after)
    }

    /// The configuration after an isolated item left its rule by `exit`.
    pub(crate) fn follow(&mut self, item: &Item, exit: Exit) -> Result<ConfigId, ParserLimit> {
        let Exit::Trigger(fired) = exit else { return self.after_frame(item.frame) };
        let state = self.program.trigger_state(item.state, fired);
        self.scratch.kernel.clear();
        self.scratch.kernel.push(Item { state, count: 0, frame: item.frame });
        self.close()
    }

    /// The exits by which the isolated item of a configuration ends or may end here.
    pub(crate) fn exits(&self, config: ConfigId) -> impl Iterator<Item = Exit> + '_ {
        let end = self.store.flags(config).item_completed.then_some(Exit::End);
        let dispatches =
            self.store.items(config).iter().filter(|i| i.frame == FrameId::ISOLATED_DISPATCH);
        end.into_iter().chain(
            dispatches
                .filter_map(|i| self.program.dispatch_trigger_state(i.state).map(Exit::Trigger)),
        )
    }

    /// Whether any byte may follow.
    pub(crate) fn reads(&self, config: ConfigId) -> bool {
        self.store.items(config).iter().any(|i| self.program.state(i.state).has_scan_edge)
    }

    /// As [`Parser::close_with`], if nothing has ended yet.
    fn close(&mut self) -> Result<ConfigId, ParserLimit> {
        self.close_with(ConfigFlags::default())
    }

    /// Completes and predicts from the kernel (the items that scanning produced), then interns.
    fn close_with(&mut self, mut flags: ConfigFlags) -> Result<ConfigId, ParserLimit> {
        if self.scratch.kernel.is_empty() && flags == ConfigFlags::default() {
            return Ok(ConfigId::DEAD);
        }
        if self.compiled().frames_hold_no_counts() && self.kernel_is_closed() {
            return self.intern_kernel(flags);
        }
        self.complete(&mut flags)?;
        self.enter_blocks()?;
        let next = self.predict(flags)?;
        self.byte_ended(next)
    }

    /// Whether the kernel needs neither completion nor prediction: it is the next configuration.
    fn kernel_is_closed(&self) -> bool {
        self.scratch.kernel.iter().all(|item| {
            let state = self.program.state(item.state);
            !state.is_final && !state.has_call_edge && state.has_scan_edge
        })
    }

    /// Interns the kernel as it is.
    fn intern_kernel(&mut self, flags: ConfigFlags) -> Result<ConfigId, ParserLimit> {
        let mut out = std::mem::take(&mut self.scratch.kernel);
        let result = self.intern(&mut out, flags);
        self.scratch.kernel = out;
        result
    }

    /// Sorts and interns items. Checks the limits on items, fuel and memory.
    pub(super) fn intern(
        &mut self,
        items: &mut Vec<Item>,
        flags: ConfigFlags,
    ) -> Result<ConfigId, ParserLimit> {
        if items.len() > 1 {
            fuel::charge_sort(items.len());
            items.sort_unstable();
            items.dedup();
        }
        self.intern_sorted(items, flags)
    }

    /// Interns items that are sorted and without duplicates. Checks the same limits.
    pub(super) fn intern_sorted(
        &mut self,
        items: &[Item],
        flags: ConfigFlags,
    ) -> Result<ConfigId, ParserLimit> {
        if items.len() > self.limits.items {
            return Err(ParserLimit::Items);
        }
        fuel::spend(INTERN_FUEL + 2 * items.len())?;
        // The check is periodic: the configurations in between take little memory.
        self.limits.configs_since_check += 1;
        if self.limits.configs_since_check >= MEMORY_CHECK_INTERVAL {
            self.limits.configs_since_check = 0;
            if self.is_exhausted() {
                self.limits.configs_since_check = MEMORY_CHECK_INTERVAL;
                return Err(ParserLimit::Memory);
            }
        }
        Ok(self.intern_unchecked(items, flags))
    }

    /// Interns items that are sorted and without duplicates, without checking limits.
    pub(super) fn intern_unchecked(&mut self, items: &[Item], flags: ConfigFlags) -> ConfigId {
        self.store.intern_config(items, ConfigFlags { relaxed: self.relaxed, ..flags })
    }

    /// Completes and predicts from these items, without checking budgets.
    pub(super) fn close_items(&mut self, items: &[Item]) -> Result<ConfigId, ParserLimit> {
        let mut flags = ConfigFlags::default();
        self.scratch.kernel.clear();
        self.scratch.kernel.extend_from_slice(items);
        self.complete(&mut flags)?;
        self.enter_blocks()?;
        self.predict(flags)
    }

    /// The store, the program and the longest token: what [`Store::rewrite_frames`] needs.
    pub(super) fn store_and_program(&mut self) -> (&mut Store, &Program, Option<u32>) {
        let max_token_bytes = self.max_token_bytes();
        (&mut self.store, &self.program, max_token_bytes)
    }

    /// The longest token of the vocabulary, in bytes.
    fn max_token_bytes(&self) -> Option<u32> {
        self.vocab.as_ref().map(|vocab| vocab.max_token_bytes() as u32)
    }

    /// The vocabulary that masks are built for.
    pub(super) fn vocab(&self) -> Option<&Arc<Vocabulary>> {
        self.vocab.as_ref()
    }
}
