//! What lowering hands to linking: automata over bytes, special tokens, rule calls and counted blocks, all as symbols.

use super::Mark;
use crate::fsm::{Dfa, Nfa, TooLarge};
use crate::ids::Label;

const SPECIAL: u32 = 0x0100_0000;
const CALL: u32 = 0x1000_0000;
const BLOCK: u32 = 0x2000_0000;

/// One symbol of a rule's automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Symbol {
    Byte(u8),
    Special(u32),
    Call(u32),
    Block(u32),
}

impl Symbol {
    pub(super) fn encode(self) -> u32 {
        match self {
            Symbol::Byte(b) => u32::from(b),
            Symbol::Special(s) => SPECIAL + s,
            Symbol::Call(r) => CALL + r,
            Symbol::Block(b) => BLOCK + b,
        }
    }

    pub(super) fn decode(raw: u32) -> Symbol {
        match raw {
            0..=255 => Symbol::Byte(raw as u8),
            SPECIAL..CALL => Symbol::Special(raw - SPECIAL),
            CALL..BLOCK => Symbol::Call(raw - CALL),
            _ => Symbol::Block(raw - BLOCK),
        }
    }
}

/// A rule or the body of a counted block.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) label: Option<Label>,
    pub(super) nfa: Nfa,
    /// Marks of the nfa's states; a unit with marks keeps its states as they are.
    pub(super) marks: Vec<Mark>,
}

/// A counted repeat; its body is the unit.
#[derive(Debug)]
pub(super) struct BlockUnit {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    pub(super) body: Unit,
}

/// All rules (the grammar's first, auxiliary ones after) and blocks.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) rules: Vec<Unit>,
    pub(super) blocks: Vec<BlockUnit>,
}

impl Units {
    /// Rules, then blocks.
    pub(super) fn all(&self) -> impl Iterator<Item = &Unit> {
        self.rules.iter().chain(self.blocks.iter().map(|b| &b.body))
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Unit> {
        self.rules.iter_mut().chain(self.blocks.iter_mut().map(|b| &mut b.body))
    }

    /// The unit a call or block symbol stands for.
    pub(super) fn index_of(&self, symbol: Symbol) -> Option<usize> {
        match symbol {
            Symbol::Call(r) => Some(r as usize),
            Symbol::Block(b) => Some(self.rules.len() + b as usize),
            Symbol::Byte(_) | Symbol::Special(_) => None,
        }
    }
}

/// An automaton without epsilon edges, deterministic or not; state 0 is the start.
#[derive(Debug)]
pub(super) struct Machine {
    /// Per state: `(symbol range lo, hi, to)`.
    pub(super) edges: Vec<Vec<(u32, u32, u32)>>,
    pub(super) finals: Vec<bool>,
    pub(super) marks: Vec<Mark>,
}

impl Machine {
    fn from_dfa(dfa: &Dfa) -> Machine {
        let states = 0..dfa.len() as u32;
        Machine {
            edges: states.clone().map(|s| dfa.edges(s).iter().map(|e| (e.lo, e.hi, e.to)).collect()).collect(),
            finals: states.map(|s| dfa.is_final(s)).collect(),
            marks: Vec::new(),
        }
    }

    /// Epsilon edges resolved, dead and unreachable states dropped, nondeterminism kept.
    fn from_nfa(nfa: &Nfa, marks: &[Mark]) -> Machine {
        let n = nfa.len();
        let mut stamps = vec![u32::MAX; n];
        let closures: Vec<Vec<u32>> = (0..n as u32)
            .map(|s| {
                let mut seen = vec![s];
                stamps[s as usize] = s;
                let mut i = 0;
                while i < seen.len() {
                    for &t in &nfa.epsilon[seen[i] as usize] {
                        if std::mem::replace(&mut stamps[t as usize], s) != s {
                            seen.push(t);
                        }
                    }
                    i += 1;
                }
                seen
            })
            .collect();
        let finals: Vec<bool> = closures.iter().map(|c| c.iter().any(|&s| nfa.finals[s as usize])).collect();
        let edges: Vec<Vec<(u32, u32, u32)>> = closures
            .iter()
            .map(|c| {
                let mut out: Vec<_> =
                    c.iter().flat_map(|&s| &nfa.edges[s as usize]).map(|e| (e.lo, e.hi, e.to)).collect();
                out.sort_unstable();
                out.dedup();
                out
            })
            .collect();
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); n];
        for (s, list) in edges.iter().enumerate() {
            for e in list {
                back[e.2 as usize].push(s as u32);
            }
        }
        let mut live = finals.clone();
        let mut stack: Vec<u32> = (0..n as u32).filter(|&s| finals[s as usize]).collect();
        while let Some(s) = stack.pop() {
            for &p in &back[s as usize] {
                if !std::mem::replace(&mut live[p as usize], true) {
                    stack.push(p);
                }
            }
        }
        let mut number = vec![u32::MAX; n];
        number[nfa.start as usize] = 0;
        let mut order = vec![nfa.start];
        let mut out = Machine { edges: Vec::new(), finals: Vec::new(), marks: Vec::new() };
        let mut i = 0;
        while i < order.len() {
            let s = order[i] as usize;
            out.finals.push(finals[s]);
            out.marks.push(marks.get(s).copied().unwrap_or(Mark::Plain));
            let mut list = Vec::new();
            for &(lo, hi, to) in &edges[s] {
                if !live[to as usize] {
                    continue;
                }
                if number[to as usize] == u32::MAX {
                    number[to as usize] = order.len() as u32;
                    order.push(to);
                }
                list.push((lo, hi, number[to as usize]));
            }
            out.edges.push(list);
            i += 1;
        }
        out
    }
}

impl Unit {
    /// The minimal deterministic machine; where determinising would blow up past a small multiple of the nondeterministic
    /// size, the machine stays nondeterministic (configurations determinise lazily). Units with marks keep their states.
    pub(super) fn machine(&self, limit: usize) -> Result<Machine, TooLarge> {
        if !self.marks.is_empty() {
            return Ok(Machine::from_nfa(&self.nfa, &self.marks));
        }
        let soft = (self.nfa.len() * 4 + 256).min(limit);
        match self.nfa.determinize(soft) {
            Ok(dfa) => Ok(Machine::from_dfa(&dfa.minimize())),
            Err(_) if self.nfa.len() <= limit => Ok(Machine::from_nfa(&self.nfa, &[])),
            Err(error) => Err(error),
        }
    }
}
