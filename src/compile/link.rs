//! Lowered units to one table of states: nullable and unproductive rules resolved, automata minimised, blocks placed,
//! byte classes computed, left-recursive components found.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use super::components::Components;
use super::units::{Machine, Symbol, Unit, Units};
use super::{Block, ByteEdge, CompileError, Compiled, Mark, NO_BLOCK, RuleInfo, State};
use crate::ir::Grammar;
use crate::limits::Limits;

static SERIAL: AtomicU64 = AtomicU64::new(0);

pub(super) fn link(grammar: &Grammar, mut units: Units, limits: &Limits) -> Result<Compiled, CompileError> {
    let start = grammar.start.index();
    let productive = fixpoint(&units, |symbol, known| match symbol {
        Symbol::Byte(_) | Symbol::Special(_) => true,
        Symbol::Call(_) | Symbol::Block(_) => known,
    });
    if !productive[start] {
        return Err(CompileError::Empty { rule: grammar.rules[start].name.clone() });
    }
    let nullable = fixpoint(&units, |symbol, known| match symbol {
        Symbol::Byte(_) | Symbol::Special(_) => false,
        Symbol::Call(_) | Symbol::Block(_) => known,
    });
    resolve(&mut units, &productive, &nullable);
    let mut linker = Linker::new(&units, &nullable, limits);
    linker.reach(start)?;
    linker.finish(grammar, nullable[start])
}

/// The least set of units whose end can be reached over symbols that `passes` allows; `known` is whether the unit behind a
/// call or block symbol is already in the set. Linear in the units' size times how often a unit's callees change.
fn fixpoint(units: &Units, passes: impl Fn(Symbol, bool) -> bool) -> Vec<bool> {
    let all: Vec<&Unit> = units.all().collect();
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); all.len()];
    for (i, unit) in all.iter().enumerate() {
        for e in unit.nfa.edges.iter().flatten() {
            if let Some(callee) = units.index_of(Symbol::decode(e.lo))
                && users[callee].last() != Some(&(i as u32))
            {
                users[callee].push(i as u32);
            }
        }
    }
    let mut known = vec![false; all.len()];
    let mut queue: Vec<u32> = (0..all.len() as u32).rev().collect();
    let mut seen = Vec::new();
    while let Some(i) = queue.pop() {
        let i = i as usize;
        if known[i] || !ends(units, all[i], i, &known, &passes, &mut seen) {
            continue;
        }
        known[i] = true;
        queue.extend(users[i].iter().filter(|&&u| !known[u as usize]));
    }
    known
}

fn ends(
    units: &Units,
    unit: &Unit,
    index: usize,
    known: &[bool],
    passes: &impl Fn(Symbol, bool) -> bool,
    seen: &mut Vec<bool>,
) -> bool {
    // A block that may run zero times ends at once.
    if let Some(block) = index.checked_sub(units.rules.len())
        && units.blocks[block].min == 0
    {
        return true;
    }
    let nfa = &unit.nfa;
    seen.clear();
    seen.resize(nfa.len(), false);
    let mut stack = vec![nfa.start];
    while let Some(s) = stack.pop() {
        if std::mem::replace(&mut seen[s as usize], true) {
            continue;
        }
        if nfa.finals[s as usize] {
            return true;
        }
        stack.extend(&nfa.epsilon[s as usize]);
        for e in &nfa.edges[s as usize] {
            let symbol = Symbol::decode(e.lo);
            let callee = units.index_of(symbol).is_some_and(|c| known[c]);
            if passes(symbol, callee) {
                stack.push(e.to);
            }
        }
    }
    false
}

/// Drops edges over unproductive units; makes nullable ones skippable.
fn resolve(units: &mut Units, productive: &[bool], nullable: &[bool]) {
    let rules = units.rules.len();
    let index = |symbol| match symbol {
        Symbol::Call(r) => Some(r as usize),
        Symbol::Block(b) => Some(rules + b as usize),
        _ => None,
    };
    for unit in units.all_mut() {
        let nfa = &mut unit.nfa;
        for s in 0..nfa.len() {
            let mut skips = Vec::new();
            nfa.edges[s].retain(|e| match index(Symbol::decode(e.lo)) {
                Some(callee) if !productive[callee] => false,
                Some(callee) => {
                    if nullable[callee] {
                        skips.push(e.to);
                    }
                    true
                }
                None => true,
            });
            for to in skips {
                nfa.epsilon(s as u32, to);
            }
        }
    }
    for (b, block) in units.blocks.iter_mut().enumerate() {
        // A body that can be empty can stand for any missing run.
        let nfa = &block.body.nfa;
        let mut stack = vec![nfa.start];
        let mut seen = vec![false; nfa.len()];
        let mut empty = false;
        while let Some(s) = stack.pop() {
            if std::mem::replace(&mut seen[s as usize], true) {
                continue;
            }
            empty |= nfa.finals[s as usize];
            stack.extend(&nfa.epsilon[s as usize]);
        }
        if empty {
            debug_assert!(nullable[rules + b]);
            block.min = 0;
        }
    }
}

/// Edges of one state before they are flattened.
#[derive(Default)]
struct Draft {
    bytes: Vec<ByteEdge>,
    calls: Vec<(u32, u32)>,
    specials: Vec<(u32, u32)>,
    enters: Vec<u32>,
    rule: u32,
    block: u32,
    is_final: bool,
    mark: Option<Mark>,
}

struct Linker<'u> {
    units: &'u Units,
    nullable: &'u [bool],
    limits: &'u Limits,
    /// Unit rule to linked rule.
    rule_ids: FxHashMap<u32, u32>,
    /// Linked rules as unit rules, in order of discovery.
    order: Vec<u32>,
    starts: Vec<u32>,
    drafts: Vec<Draft>,
    blocks: Vec<Block>,
    /// `(block unit, exit state)` to placed block.
    placed: FxHashMap<(u32, u32), u32>,
    machines: HashMap<u32, Machine>,
    any_mark: bool,
}

impl<'u> Linker<'u> {
    fn new(units: &'u Units, nullable: &'u [bool], limits: &'u Limits) -> Self {
        Linker {
            units,
            nullable,
            limits,
            rule_ids: FxHashMap::default(),
            order: Vec::new(),
            starts: Vec::new(),
            drafts: Vec::new(),
            blocks: Vec::new(),
            placed: FxHashMap::default(),
            machines: HashMap::new(),
            any_mark: false,
        }
    }

    fn rule_id(&mut self, unit: u32) -> u32 {
        *self.rule_ids.entry(unit).or_insert_with(|| {
            self.order.push(unit);
            (self.order.len() - 1) as u32
        })
    }

    /// Links every rule that the start rule reaches.
    fn reach(&mut self, start: usize) -> Result<(), CompileError> {
        self.rule_id(start as u32);
        let mut at = 0;
        while at < self.order.len() {
            let unit = &self.units.rules[self.order[at] as usize];
            let machine = self.machine(unit)?;
            let base = self.place(unit, &machine, at as u32, NO_BLOCK)?;
            self.starts.push(base);
            at += 1;
        }
        Ok(())
    }

    fn machine(&self, unit: &Unit) -> Result<Machine, CompileError> {
        unit.machine(self.limits.automaton_states)
            .map_err(|e| CompileError::too_large(&unit.name, "automaton states", e))
    }

    /// Copies a machine's states in; returns the first.
    fn place(&mut self, unit: &Unit, machine: &Machine, rule: u32, block: u32) -> Result<u32, CompileError> {
        let base = self.drafts.len() as u32;
        if self.drafts.len() + machine.finals.len() > self.limits.compiled_states {
            return Err(CompileError::Limit {
                rule: unit.name.clone(),
                what: "states",
                limit: self.limits.compiled_states,
            });
        }
        for (s, &is_final) in machine.finals.iter().enumerate() {
            let mark = machine.marks.get(s).copied().filter(|m| *m != Mark::Plain);
            self.any_mark |= mark.is_some();
            self.drafts.push(Draft { rule, block, is_final, mark, ..Draft::default() });
        }
        let mut entered: Vec<(usize, u32, u32)> = Vec::new();
        for (s, edges) in machine.edges.iter().enumerate() {
            for &(lo, hi, to) in edges {
                let to = base + to;
                let draft = base as usize + s;
                match Symbol::decode(lo) {
                    Symbol::Byte(lo) => {
                        self.drafts[draft].bytes.push(ByteEdge { lo, hi: hi.min(255) as u8, to });
                    }
                    Symbol::Special(_) | Symbol::Call(_) | Symbol::Block(_) => {
                        for raw in lo..=hi {
                            match Symbol::decode(raw) {
                                Symbol::Special(special) => self.drafts[draft].specials.push((special, to)),
                                Symbol::Call(callee) => {
                                    let callee = self.rule_id(callee);
                                    self.drafts[draft].calls.push((callee, to));
                                }
                                Symbol::Block(b) => entered.push((draft, b, to)),
                                Symbol::Byte(_) => {}
                            }
                        }
                    }
                }
            }
        }
        for (draft, b, exit) in entered {
            let placed = match self.placed.get(&(b, exit)) {
                Some(&placed) => placed,
                None => {
                    let placed = self.blocks.len() as u32;
                    self.placed.insert((b, exit), placed);
                    let (min, max) = (self.units.blocks[b as usize].min, self.units.blocks[b as usize].max);
                    self.blocks.push(Block { min, max, start: 0, exit });
                    let body = &self.units.blocks[b as usize].body;
                    if !self.machines.contains_key(&b) {
                        let machine = self.machine(body)?;
                        self.machines.insert(b, machine);
                    }
                    let machine = self.machines.remove(&b).expect("just built");
                    let start = self.place(body, &machine, rule, placed)?;
                    self.machines.insert(b, machine);
                    self.blocks[placed as usize].start = start;
                    placed
                }
            };
            self.drafts[draft].enters.push(placed);
        }
        Ok(base)
    }

    fn finish(mut self, grammar: &Grammar, start_nullable: bool) -> Result<Compiled, CompileError> {
        let mut compiled = Compiled {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            rules: Vec::new(),
            states: Vec::with_capacity(self.drafts.len() + 1),
            byte_edges: Vec::new(),
            call_edges: Vec::new(),
            special_edges: Vec::new(),
            enter_edges: Vec::new(),
            blocks: std::mem::take(&mut self.blocks),
            marks: Vec::new(),
            classes: Box::new([0; 256]),
            class_bytes: Vec::new(),
            pure_return: 0,
            start: 0,
            start_nullable,
            specials: grammar.specials.clone(),
        };
        debug_assert_eq!(start_nullable, self.nullable[grammar.start.index()]);
        let mut cuts = [false; 257];
        for draft in &self.drafts {
            let label = self.units.rules[self.order[draft.rule as usize] as usize].label;
            let edgeless = draft.bytes.is_empty()
                && draft.calls.is_empty()
                && draft.specials.is_empty()
                && draft.enters.is_empty();
            compiled.states.push(State {
                bytes: compiled.byte_edges.len() as u32,
                calls: compiled.call_edges.len() as u32,
                specials: compiled.special_edges.len() as u32,
                enters: compiled.enter_edges.len() as u32,
                rule: draft.rule,
                block: draft.block,
                is_final: draft.is_final,
                scannable: !draft.bytes.is_empty() || !draft.specials.is_empty(),
                pure_return: draft.is_final && edgeless && draft.block == NO_BLOCK && label.is_none(),
            });
            for e in &draft.bytes {
                cuts[usize::from(e.lo)] = true;
                cuts[usize::from(e.hi) + 1] = true;
            }
            compiled.byte_edges.extend_from_slice(&draft.bytes);
            compiled.call_edges.extend_from_slice(&draft.calls);
            compiled.special_edges.extend_from_slice(&draft.specials);
            compiled.enter_edges.extend_from_slice(&draft.enters);
        }
        compiled.states.push(State {
            bytes: compiled.byte_edges.len() as u32,
            calls: compiled.call_edges.len() as u32,
            specials: compiled.special_edges.len() as u32,
            enters: compiled.enter_edges.len() as u32,
            rule: 0,
            block: NO_BLOCK,
            is_final: false,
            scannable: false,
            pure_return: false,
        });
        if self.any_mark {
            compiled.marks = self.drafts.iter().map(|d| d.mark.unwrap_or(Mark::Plain)).collect();
        }
        let pure_return = compiled.states.iter().position(|s| s.pure_return);
        compiled.pure_return = pure_return.unwrap_or(0) as u32;
        let mut class = 0u8;
        compiled.class_bytes.push(0);
        for byte in 1..=255u8 {
            if cuts[usize::from(byte)] {
                class += 1;
                compiled.class_bytes.push(byte);
            }
            compiled.classes[usize::from(byte)] = class;
        }
        for (i, &unit) in self.order.iter().enumerate() {
            let start = self.starts[i];
            let mut calls = compiled.calls(start).to_vec();
            let mut heads = Vec::new();
            if compiled.state(start).scannable {
                heads.push(start);
            }
            for &block in compiled.enters(start) {
                let inner = compiled.blocks[block as usize].start;
                calls.extend_from_slice(compiled.calls(inner));
                if compiled.state(inner).scannable {
                    heads.push(inner);
                }
            }
            let unit = &self.units.rules[unit as usize];
            compiled.rules.push(RuleInfo {
                name: unit.name.clone(),
                label: unit.label,
                start,
                calls,
                heads,
                rank: 0,
                left_recursive: false,
                component: 0,
            });
        }
        self.components(&mut compiled);
        Ok(compiled)
    }

    /// Left-recursive components and the order of calls; recursive components of any kind.
    fn components(&self, compiled: &mut Compiled) {
        let leading: Vec<Vec<u32>> =
            compiled.rules.iter().map(|r| r.calls.iter().map(|&(rule, _)| rule).collect()).collect();
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); compiled.rules.len()];
        for draft in &self.drafts {
            all[draft.rule as usize].extend(draft.calls.iter().map(|&(rule, _)| rule));
        }
        let (leading, all) = (Components::of(&leading), Components::of(&all));
        for (i, rule) in compiled.rules.iter_mut().enumerate() {
            rule.rank = leading.count - leading.of[i];
            rule.left_recursive = leading.cyclic[leading.of[i] as usize];
            rule.component = all.of[i];
        }
    }
}
