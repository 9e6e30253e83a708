//! Pool keys: canonical descriptions of the automaton that is reachable from a state.
//!
//! States of different grammars with equal keys have equal mask entries. A key lists states in the
//! order of a breadth-first search, with their byte edges, blocks and calls. Rules that are not in
//! the same recursive component are named by structural ids, which a pool gives to equal rules
//! bottom-up. Keys are compared as a whole, never by hash alone. See docs/internals/MASK_POOL.md.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::{Cache, CacheStats};
use crate::compile::{
    Block, BlockId, BudgetUnit, CompiledRuleId, Program, ReturnRole, SharedAutomaton, StateId,
};
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::id;
use crate::ir::BudgetPolicy;
use crate::matcher::{Item, UNBOUNDED_COUNT};

/// Longest key, in numbers. States of larger automata are keyed by their grammar's program instead.
const MAX_KEY: usize = 16384;
/// Most numbers that the descriptions made for one key have together: of a state, and of the rules
/// that it calls and that have no id yet.
const MAX_DESCRIBED: usize = 2 * MAX_KEY;
/// Deepest chain of rules that a key follows.
const MAX_DEPTH: u32 = 64;
/// A member set is described only if at most so many members may still come: it has a state for
/// each subset.
const MAX_MEMBERS_LEFT: u32 = 3;
/// A counted graph is described only if at most so many steps are left: it has states for each of
/// them.
const MAX_STEPS_LEFT: u32 = 512;
/// Memory of a slot of a map.
const SLOT_BYTES: usize = 48;
/// The part of the budget for keys of states of shared automata.
const STATE_KEY_SHARE: usize = 4;
/// First number of a key that is valid in one program only.
const PROGRAM_ONLY: u32 = u32::MAX;
/// First number of the key of a deferred rule; its serial number follows.
const DEFERRED: u32 = u32::MAX - 1;
/// Marks a state as a trigger state; its number in the dispatch follows.
const TRIGGER: u32 = 1 << 31;
/// Marks a state as after a scope, or (the next number) after an element.
const SCOPE: u32 = 1 << 30;
/// Marks a state as the return address of a budgeted call, with the kind of the budget; its units
/// follow, as far as one token can reach.
const BUDGET: u32 = 1 << 29;

/// Most structural ids: one bit of a number says what it is.
const MAX_IDS: u32 = 1 << 31;

/// A state, and the completed runs of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CountedState {
    pub(super) state: StateId,
    pub(super) count: u32,
}

impl CountedState {
    /// That of an item.
    pub(super) fn of(item: &Item) -> CountedState {
        CountedState { state: item.state, count: item.count }
    }
}

/// A state of an automaton that grammars share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SharedState {
    automaton: SharedAutomaton,
    /// Its number in the automaton.
    number: u32,
}

id! {
    /// The id of a rule's structure in a pool. It is given out once only.
    pub(super) StructuralId
}

/// Gives structural ids to rules, bottom-up; shared by all grammars of a pool. A rule that was
/// evicted gets a new id when it is asked for again. No id ever names two structures.
#[derive(Debug)]
pub(crate) struct StructuralIds {
    /// Ids by the description of a rule's automaton.
    ids: Cache<PoolKey, StructuralId>,
    /// The id that is given out next.
    next_id: u32,
    /// Keys of states of shared automata.
    states: Cache<SharedState, PoolKey>,
}

/// A pool key; see [`KeyBuilder::state_key`].
pub(super) type PoolKey = Arc<[u32]>;

impl StructuralIds {
    pub(crate) fn new(max_bytes: usize) -> StructuralIds {
        let mut keys = StructuralIds { ids: Cache::new(0), next_id: 0, states: Cache::new(0) };
        keys.set_max_bytes(max_bytes);
        keys
    }

    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.states.set_max_bytes(max_bytes / STATE_KEY_SHARE);
        self.ids.set_max_bytes(max_bytes - max_bytes / STATE_KEY_SHARE);
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let (ids, states) = (self.ids.stats(), self.states.stats());
        CacheStats {
            entries: ids.entries + states.entries,
            bytes: ids.bytes + states.bytes,
            evicted: ids.evicted + states.evicted,
            ..ids
        }
    }

    /// The id of a structure; None once all ids are used.
    fn id(&mut self, key: PoolKey) -> Option<StructuralId> {
        if let Some(id) = self.ids.get(&key) {
            return Some(id);
        }
        if self.next_id == MAX_IDS {
            return None;
        }
        let id = StructuralId::from_raw(self.next_id);
        self.next_id += 1;
        let bytes = key.len() * 4 + SLOT_BYTES;
        self.ids.insert(key, id, bytes);
        Some(id)
    }
}

/// The identities of one grammar's rules, found on demand.
pub(super) type RuleIdentities = HashMap<CompiledRuleId, RuleIdentity>;

/// The identity of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleIdentity {
    Structural(StructuralId),
    /// Too large to describe: equal only within the same grammar.
    GrammarOnly,
}

/// Makes pool keys of states of one grammar.
pub(super) struct KeyBuilder<'k> {
    program: &'k mut Program,
    rules: &'k mut RuleIdentities,
    structural_ids: &'k Mutex<StructuralIds>,
    /// The length of the longest token.
    max_token_bytes: u32,
    /// Depth of the chain of rules that is being described.
    depth: u32,
    /// What is left of [`MAX_DESCRIBED`].
    numbers_left: usize,
}

impl<'k> KeyBuilder<'k> {
    /// A builder of keys for tokens of at most `max_token_bytes` bytes.
    pub(super) fn new(
        program: &'k mut Program,
        rules: &'k mut RuleIdentities,
        structural_ids: &'k Mutex<StructuralIds>,
        max_token_bytes: u32,
    ) -> KeyBuilder<'k> {
        let numbers_left = MAX_DESCRIBED;
        KeyBuilder { program, rules, structural_ids, max_token_bytes, depth: 0, numbers_left }
    }

    /// The key of a state.
    pub(super) fn state_key(&mut self, state: CountedState) -> PoolKey {
        self.describe_memoised(state).unwrap_or_else(|| {
            let serial = self.program.serial();
            let CountedState { state, count } = state;
            Arc::new([PROGRAM_ONLY, serial as u32, (serial >> 32) as u32, state.raw(), count])
        })
    }

    /// As [`KeyBuilder::describe`], memoised for states of automata that grammars share.
    fn describe_memoised(&mut self, state: CountedState) -> Option<PoolKey> {
        // A dispatch that another rule calls is described together with the rules that it calls.
        let automaton = self
            .program
            .shared_automaton(state.state)
            .filter(|_| self.depth == 0 || !self.program.is_dispatch(state.state));
        let Some((automaton, number)) = automaton else {
            return self.describe(state).map(PoolKey::from);
        };
        let shared = SharedState { automaton, number };
        if let Some(key) = self.structural_ids.lock().states.get(&shared) {
            return Some(key);
        }
        let key = PoolKey::from(self.describe(state)?);
        let bytes = key.len() * 4 + SLOT_BYTES;
        self.structural_ids.lock().states.insert(shared, key.clone(), bytes);
        Some(key)
    }

    /// The structural id of a rule; None if it is too large or too deep to describe.
    fn structural_id(&mut self, rule: CompiledRuleId) -> Option<StructuralId> {
        match self.rules.get(&rule) {
            Some(RuleIdentity::Structural(id)) => return Some(*id),
            Some(RuleIdentity::GrammarOnly) => return None,
            None if self.depth >= MAX_DEPTH => return None,
            None => {}
        }
        self.depth += 1;
        let key = match self.program.deferred(rule) {
            // Describing its callers is not a reason to make a deferred body.
            Some(serial) => Some(PoolKey::from([DEFERRED, serial as u32, (serial >> 32) as u32])),
            None => {
                let start = CountedState { state: self.program.instantiate(rule), count: 0 };
                self.describe_memoised(start)
            }
        };
        self.depth -= 1;
        // What lacked room or fuel is described with a later key.
        if key.is_none() && self.is_spent() {
            return None;
        }
        let id = key.and_then(|key| self.structural_ids.lock().id(key));
        self.rules.insert(rule, id.map_or(RuleIdentity::GrammarOnly, RuleIdentity::Structural));
        id
    }

    /// Describes the automaton reachable from a state; None if it is too large.
    fn describe(&mut self, state: CountedState) -> Option<Vec<u32>> {
        let mut description = AutomatonDescription::new(self.program, state, self.max_token_bytes);
        // Only an isolated dispatch ends where a trigger fires.
        let after_trigger = self.depth == 0 && self.program.is_dispatch(state.state);
        let mut next = 0;
        while let Some(&s) = description.order.get(next) {
            next += 1;
            let program = &mut *self.program;
            if program.members_left(s) > MAX_MEMBERS_LEFT || program.steps(s) > MAX_STEPS_LEFT {
                return None;
            }
            program.expand(s);
            let trigger = program.dispatch_trigger_state(s).filter(|_| after_trigger);
            description.key.extend(trigger.into_iter().flat_map(|state| [TRIGGER, state.raw()]));
            description.add_edges(program, s);
            description.add_blocks(program, s);
            if trigger.is_some() {
                // The rules that a trigger calls are not part of an isolated dispatch.
                continue;
            }
            self.describe_calls(s, &mut description)?;
            if description.key.len() > MAX_KEY || self.is_spent() {
                return None;
            }
        }
        self.numbers_left = self.numbers_left.saturating_sub(description.key.len());
        Some(description.key)
    }

    /// Whether the descriptions of this key are too long together, or fuel ran out.
    fn is_spent(&self) -> bool {
        self.numbers_left == 0 || fuel::check().is_err()
    }

    /// Describes the calls of a state; None if a callee is too large.
    fn describe_calls(
        &mut self,
        state: StateId,
        description: &mut AutomatonDescription,
    ) -> Option<()> {
        let caller = self.program.state(state).rule;
        description.key.push(self.program.calls(state).len() as u32);
        for i in 0..self.program.calls(state).len() {
            let (rule, to) = self.program.calls(state)[i];
            let component = |rule| self.program.facts(rule).component;
            // Mutually recursive rules are described together: a call names the callee's first
            // state. Other callees have structural ids.
            let callee = if component(rule) == component(caller) {
                description.number_of(self.program.instantiate(rule)) << 1
            } else {
                self.structural_id(rule)?.raw() << 1 | 1
            };
            let to = description.number_of(to);
            description.key.extend([callee, to]);
        }
        Some(())
    }
}

/// A key under construction: the states that were reached so far, described in their order.
struct AutomatonDescription {
    key: Vec<u32>,
    /// States in the order of their numbers.
    order: Vec<StateId>,
    /// By state: its number.
    numbers: HashMap<StateId, u32>,
    /// Blocks in the order of their numbers.
    blocks: Vec<BlockId>,
    /// A count that no token reaches.
    far: u32,
    /// The block whose runs are only counted, or [`BlockId::NONE`].
    unbounded_block: BlockId,
}

impl AutomatonDescription {
    /// The description of a state's counter.
    fn new(
        program: &Program,
        CountedState { state, count }: CountedState,
        max_token_bytes: u32,
    ) -> AutomatonDescription {
        let block = program.state(state).block;
        let is_unbounded = block != BlockId::NONE && count & UNBOUNDED_COUNT != 0;
        let mut description = AutomatonDescription {
            key: Vec::new(),
            order: vec![state],
            numbers: HashMap::from_iter([(state, 0)]),
            blocks: Vec::new(),
            far: max_token_bytes.saturating_add(1),
            unbounded_block: if is_unbounded { block } else { BlockId::NONE },
        };
        if is_unbounded {
            description.key.extend([UNBOUNDED_COUNT; 2]);
        } else if block != BlockId::NONE {
            let (block, far) = (program.block(block), description.far);
            description.key.push(block.min.saturating_sub(count).min(far));
            description
                .key
                .push(upper_bound(block).map_or(far, |max| max.saturating_sub(count).min(far)));
        }
        description
    }

    /// The number of a state, in the order of first appearance.
    fn number_of(&mut self, state: StateId) -> u32 {
        *self.numbers.entry(state).or_insert_with(|| {
            self.order.push(state);
            (self.order.len() - 1) as u32
        })
    }

    /// 0 for no block; otherwise its number in order of appearance, from 1.
    fn block_number(&mut self, block: BlockId) -> u32 {
        if block == BlockId::NONE {
            return 0;
        }
        let at = self.blocks.iter().position(|&b| b == block).unwrap_or_else(|| {
            self.blocks.push(block);
            self.blocks.len() - 1
        });
        at as u32 + 1
    }

    /// Adds what ends at a state, its block, and its byte edges.
    fn add_edges(&mut self, program: &Program, state: StateId) {
        let info = program.state(state);
        match info.return_role {
            ReturnRole::Nothing => {}
            ReturnRole::Scope => self.key.push(SCOPE),
            ReturnRole::Element => self.key.push(SCOPE + 1),
        }
        if let Some(meter) = program.budget_meter(state) {
            let kind = u32::from(meter.unit == BudgetUnit::Char) << 1
                | u32::from(meter.on_exhausted == BudgetPolicy::Cut);
            self.key.extend([BUDGET | kind, meter.units().min(self.far)]);
        }
        let block = self.block_number(info.block);
        self.key.push(block << 1 | u32::from(info.is_final));
        self.key.push(program.byte_edges(state).len() as u32);
        for e in program.byte_edges(state) {
            let to = self.number_of(e.to);
            self.key.extend([u32::from(e.lo) << 8 | u32::from(e.hi), to]);
        }
    }

    /// Adds the blocks that a state enters, and the one that it may leave.
    fn add_blocks(&mut self, program: &Program, state: StateId) {
        self.key.push(program.block_entries(state).len() as u32);
        for &b in program.block_entries(state) {
            let (block, number) = (program.block(b), self.block_number(b));
            self.key.push(number);
            self.number_of(block.start);
            if b == self.unbounded_block {
                self.key.extend(bounds(block, self.far));
            }
        }
        let info = program.state(state);
        if info.block != BlockId::NONE && info.is_final {
            let block = program.block(info.block);
            // A counter without bounds is equal in blocks of all bounds.
            let no_bounds = info.block == self.unbounded_block;
            self.key.extend(if no_bounds { [UNBOUNDED_COUNT; 2] } else { bounds(block, self.far) });
            let (start, exit) = (self.number_of(block.start), self.number_of(block.exit));
            self.key.extend([start, exit]);
        }
    }
}

/// A block's bounds, as far as one token can reach.
fn bounds(block: &Block, far: u32) -> [u32; 2] {
    [block.min.min(far), upper_bound(block).map_or(far, |max| max.min(far))]
}

/// A block's upper bound. White space has none, as masks are made of relaxed configurations.
fn upper_bound(block: &Block) -> Option<u32> {
    block.max.filter(|_| !block.is_bounded_white_space)
}
