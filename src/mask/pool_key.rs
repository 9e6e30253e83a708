//! What makes two states of different grammars the same for masks: the automaton reachable from the state, written down
//! canonically. Keys are compared whole, never by hash alone.

use std::sync::Arc;

use crate::cache::{Cache, CacheStats};
use crate::compile::{Behind, Block, NO_BLOCK, Program, SharedAutomaton};
use crate::hash::HashMap;
use crate::matcher::FREE;

/// Longest key; larger automata are keyed by their parser's program instead.
const MAX_KEY: usize = 4096;
/// Deepest chain of rules a key follows.
const MAX_DEPTH: u32 = 64;
/// Most members of a set that may still come for it to be written down: a state for every set of them.
const FEW_MEMBERS: u32 = 3;
/// Most steps of a graph that are still counted for it to be written down: states for each of them, of some numbers each.
const FEW_STEPS: u32 = 512;
/// Memory of a map's slot.
const KEPT: usize = 48;
/// Of the memory for ids, what goes to keys of states of automata that grammars share.
const STATES: usize = 4;
const UNIQUE: u32 = u32::MAX;
/// A rule whose body is deferred: which one follows.
const DEFERRED: u32 = u32::MAX - 1;
/// Before a state: it is a gate.
const GATE: u32 = 1 << 31;

/// Before a state: it is behind a scope, or (the next number) behind an element.
const SCOPE: u32 = 1 << 30;

/// Most structural ids there can be: one bit of a key says what a number is.
const MAX_IDS: u32 = 1 << 31;

/// Gives structural ids to rules, bottom-up; shared by all grammars of a pool. A rule that was dropped to make room gets a new id when it
/// comes again: no id ever means two structures.
#[derive(Debug)]
pub(crate) struct RuleKeys {
    ids: Cache<Key, u32>,
    next: u32,
    /// Keys of states of automata that grammars share, by the automaton's address, which stays its own as long as it is held, and the state.
    states: Cache<(usize, u32), (SharedAutomaton, Key)>,
}

/// See [`GrammarKeys::state_key`].
pub(super) type Key = Arc<[u32]>;

impl RuleKeys {
    pub(crate) fn new(max_bytes: usize) -> RuleKeys {
        let mut keys = RuleKeys { ids: Cache::new(0), next: 0, states: Cache::new(0) };
        keys.set_max_bytes(max_bytes);
        keys
    }

    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.states.set_max_bytes(max_bytes / STATES);
        self.ids.set_max_bytes(max_bytes - max_bytes / STATES);
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

    /// The id of a structure; none once all have been given.
    fn id(&mut self, key: Key) -> Option<u32> {
        if let Some(id) = self.ids.get(&key) {
            return Some(id);
        }
        let id = self.next;
        if id == MAX_IDS {
            return None;
        }
        self.next += 1;
        let bytes = key.len() * 4 + KEPT;
        self.ids.insert(key, id, bytes);
        Some(id)
    }
}

/// Per grammar: the structural id of each rule, found on demand.
#[derive(Debug, Default)]
pub(crate) struct GrammarKeys {
    rules: HashMap<u32, RuleKey>,
    depth: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleKey {
    Shared(u32),
    /// Too large: only the same in the same grammar.
    Own,
}

impl GrammarKeys {
    /// The key of a state with `count` runs completed of the block it is in.
    pub(crate) fn state_key(
        &mut self,
        program: &mut Program,
        shared: &mut RuleKeys,
        (state, count, reach): (u32, u32, u32),
    ) -> Key {
        self.written(program, shared, (state, count, reach)).unwrap_or_else(|| {
            let serial = program.serial();
            Arc::new([UNIQUE, serial as u32, (serial >> 32) as u32, state, count])
        })
    }

    /// As [`GrammarKeys::write`]; that of an automaton that grammars share is written once.
    fn written(
        &mut self,
        program: &mut Program,
        shared: &mut RuleKeys,
        (state, count, reach): (u32, u32, u32),
    ) -> Option<Key> {
        // Called from elsewhere, a dispatch is written down with the rules that it calls.
        let automaton =
            program.shared(state).filter(|_| self.depth == 0 || !program.is_dispatch(state));
        let Some((automaton, at)) = automaton else {
            return self.write(program, shared, state, count, reach).map(Key::from);
        };
        if let Some((_, key)) = shared.states.get(&(automaton.address(), at)) {
            return Some(key);
        }
        let key = Key::from(self.write(program, shared, state, count, reach)?);
        let bytes = key.len() * 4 + KEPT;
        shared.states.insert((automaton.address(), at), (automaton, key.clone()), bytes);
        Some(key)
    }

    fn rule(
        &mut self,
        program: &mut Program,
        shared: &mut RuleKeys,
        rule: u32,
        reach: u32,
    ) -> Option<u32> {
        match self.rules.get(&rule) {
            Some(RuleKey::Shared(id)) => return Some(*id),
            Some(RuleKey::Own) => return None,
            None if self.depth >= MAX_DEPTH => return None,
            None => {}
        }
        self.depth += 1;
        let key = match program.deferred(rule) {
            // A look at what surrounds it is no reason to make it.
            Some(serial) => Some(Key::from([DEFERRED, serial as u32, (serial >> 32) as u32])),
            None => {
                let start = program.open(rule);
                self.written(program, shared, (start, 0, reach))
            }
        };
        self.depth -= 1;
        let found = key.and_then(|key| shared.id(key));
        self.rules.insert(rule, found.map_or(RuleKey::Own, RuleKey::Shared));
        found
    }

    fn write(
        &mut self,
        program: &mut Program,
        shared: &mut RuleKeys,
        state: u32,
        count: u32,
        reach: u32,
    ) -> Option<Vec<u32>> {
        let far = reach.saturating_add(1);
        let mut order = vec![state];
        let mut number: HashMap<u32, u32> = HashMap::default();
        number.insert(state, 0);
        let mut blocks: Vec<u32> = Vec::new();
        let mut key: Vec<u32> = Vec::new();
        let start_block = program.state(state).block;
        let free = start_block != NO_BLOCK && count & FREE != 0;
        if start_block != NO_BLOCK {
            let block = &program.blocks[start_block as usize];
            if free {
                key.extend([FREE, FREE]);
            } else {
                key.push(block.min.saturating_sub(count).min(far));
                key.push(bound(block).map_or(far, |max| max.saturating_sub(count).min(far)));
            }
        }
        // Only a dispatch looked at on its own ends where a trigger fires.
        let gated = self.depth == 0 && program.is_dispatch(state);
        let mut at = 0;
        while at < order.len() {
            let s = order[at];
            at += 1;
            if program.members_left(s) > FEW_MEMBERS || program.steps(s) > FEW_STEPS {
                return None;
            }
            program.expand(s);
            let info = *program.state(s);
            let gate = program.gate_of(s).filter(|_| gated);
            key.extend(gate.into_iter().flat_map(|gate| [GATE, gate]));
            let mut to_number = |to: u32, order: &mut Vec<u32>| {
                *number.entry(to).or_insert_with(|| {
                    order.push(to);
                    (order.len() - 1) as u32
                })
            };
            match info.behind {
                Behind::Nothing => {}
                Behind::Scope => key.push(SCOPE),
                Behind::Element => key.push(SCOPE + 1),
            }
            let block = block_number(&mut blocks, info.block);
            key.push(block << 1 | u32::from(info.is_final));
            key.push(program.byte_edges(s).len() as u32);
            for e in program.byte_edges(s) {
                key.push(u32::from(e.lo) << 8 | u32::from(e.hi));
                key.push(to_number(e.to, &mut order));
            }
            key.push(program.enters(s).len() as u32);
            for &b in program.enters(s) {
                key.push(block_number(&mut blocks, b));
                to_number(program.blocks[b as usize].start, &mut order);
                if free && b == start_block {
                    key.extend(bounds(&program.blocks[b as usize], far));
                }
            }
            if info.block != NO_BLOCK && info.is_final {
                let block = &program.blocks[info.block as usize];
                // A counter without bounds is the same in blocks of all bounds.
                let unbounded = free && info.block == start_block;
                key.extend(if unbounded { [FREE; 2] } else { bounds(block, far) });
                key.push(to_number(block.start, &mut order));
                key.push(to_number(block.exit, &mut order));
            }
            if gate.is_some() {
                // What a trigger calls is not part of what is looked at.
                continue;
            }
            key.push(program.calls(s).len() as u32);
            for i in 0..program.calls(s).len() {
                let (rule, to) = program.calls(s)[i];
                // Rules that call each other are written out together, a call naming the callee's first state; other
                // callees have ids of their own.
                if program.facts(rule).component == program.facts(info.rule).component {
                    key.push(to_number(program.open(rule), &mut order) << 1);
                } else {
                    key.push(self.rule(program, shared, rule, reach)? << 1 | 1);
                }
                key.push(to_number(to, &mut order));
            }
            if key.len() > MAX_KEY {
                return None;
            }
        }
        Some(key)
    }
}

/// A block's bounds as far as a token can tell.
fn bounds(block: &Block, far: u32) -> [u32; 2] {
    [block.min.min(far), bound(block).map_or(far, |max| max.min(far))]
}

/// A block's upper bound. White space has none: masks are made of loose configurations.
fn bound(block: &Block) -> Option<u32> {
    block.max.filter(|_| !block.gap)
}

/// 0 for no block; otherwise its number in order of appearance, from 1.
fn block_number(blocks: &mut Vec<u32>, block: u32) -> u32 {
    if block == NO_BLOCK {
        return 0;
    }
    let at = blocks.iter().position(|&b| b == block).unwrap_or_else(|| {
        blocks.push(block);
        blocks.len() - 1
    });
    at as u32 + 1
}
