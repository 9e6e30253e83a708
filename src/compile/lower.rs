//! Expressions to nondeterministic automata (Thompson's construction). Large counted repeats become blocks; nested
//! blocks, dispatches and what is inside them become rules of their own.

use rustc_hash::FxHashMap;

use super::units::{BlockUnit, Symbol, Unit, Units};
use super::{CompileError, dispatch};
use crate::fsm::Nfa;
use crate::ir::{Expr, Grammar};
use crate::limits::Limits;

/// Most states a counted repeat may cost to be written out; beyond, it becomes a counter.
const UNROLL_STATES: usize = 12;

/// Largest bound that is counted. Counters beyond have a meaning of their own in the parser.
const MAX_COUNT: u32 = 1 << 30;

pub(super) fn lower(grammar: &Grammar, limits: &Limits) -> Result<Units, CompileError> {
    let mut lowering = Lowering {
        grammar,
        limits,
        units: Units::default(),
        pending: Vec::new(),
        nodes: 0,
        blocks: FxHashMap::default(),
    };
    for rule in &grammar.rules {
        lowering.units.rules.push(Unit {
            name: rule.name.clone(),
            label: rule.label,
            nfa: Nfa::new(),
            marks: Vec::new(),
        });
    }
    for (index, rule) in grammar.rules.iter().enumerate() {
        lowering.rule(index, &rule.body)?;
        while let Some((aux, body)) = lowering.pending.pop() {
            lowering.rule(aux, body)?;
        }
    }
    Ok(lowering.units)
}

struct Lowering<'g> {
    grammar: &'g Grammar,
    limits: &'g Limits,
    units: Units,
    /// Auxiliary rules whose bodies are still to be lowered.
    pending: Vec<(usize, &'g Expr)>,
    nodes: usize,
    /// Blocks by body and bounds.
    blocks: FxHashMap<(*const Expr, u32, Option<u32>), u32>,
}

/// Where an expression stands: counters do not nest inside one rule.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Rule,
    Block,
}

impl<'g> Lowering<'g> {
    fn rule(&mut self, index: usize, body: &'g Expr) -> Result<(), CompileError> {
        let mut nfa = Nfa::new();
        let start = nfa.state();
        let mut marks = Vec::new();
        if let Expr::Dispatch(d) = body {
            let (name, limit) = (&self.units.rules[index].name, self.limits.automaton_states);
            dispatch::build(d, &mut nfa, &mut marks, limit)
                .map_err(|e| CompileError::too_large(name, "dispatch states", e))?;
        } else {
            let end = self.expr(index, &mut nfa, start, body, Place::Rule)?;
            nfa.set_final(end);
        }
        self.units.rules[index].nfa = nfa;
        self.units.rules[index].marks = marks;
        Ok(())
    }

    /// A rule of its own for an expression; same name, no label (its items still find the label through their caller).
    fn auxiliary(&mut self, owner: usize, body: &'g Expr) -> u32 {
        let index = self.units.rules.len();
        let name = self.units.rules[owner].name.clone();
        self.units.rules.push(Unit { name, label: None, nfa: Nfa::new(), marks: Vec::new() });
        self.pending.push((index, body));
        index as u32
    }

    fn charge(&mut self, owner: usize, nodes: usize) -> Result<(), CompileError> {
        self.nodes += nodes;
        if self.nodes > self.limits.compiled_states {
            return Err(CompileError::Limit {
                rule: self.units.rules[owner].name.clone(),
                what: "states",
                limit: self.limits.compiled_states,
            });
        }
        Ok(())
    }

    /// Lowers `expr` so that it begins at `from`; returns where it ends.
    fn expr(
        &mut self,
        owner: usize,
        nfa: &mut Nfa,
        from: u32,
        expr: &'g Expr,
        place: Place,
    ) -> Result<u32, CompileError> {
        self.charge(owner, 1)?;
        let symbol = |nfa: &mut Nfa, s: Symbol| {
            let to = nfa.state();
            nfa.edge(from, s.encode(), s.encode(), to);
            to
        };
        Ok(match expr {
            Expr::Empty => from,
            Expr::Never => nfa.state(),
            Expr::Bytes(bytes) => {
                self.charge(owner, bytes.len())?;
                let mut at = from;
                for &b in bytes {
                    let to = nfa.state();
                    nfa.edge(at, u32::from(b), u32::from(b), to);
                    at = to;
                }
                at
            }
            Expr::Class(set) => {
                let to = nfa.state();
                for (lo, hi) in set.ranges() {
                    nfa.edge(from, u32::from(lo), u32::from(hi), to);
                }
                to
            }
            Expr::Special(s) => symbol(nfa, Symbol::Special(s.raw())),
            Expr::Ref(r) => {
                let rule = &self.grammar.rules[r.index()];
                if rule.label.is_none() && is_tiny(&rule.body) {
                    return self.expr(owner, nfa, from, &rule.body, place);
                }
                symbol(nfa, Symbol::Call(r.raw()))
            }
            Expr::Seq(parts) => {
                let mut at = from;
                for part in parts {
                    at = self.expr(owner, nfa, at, part, place)?;
                }
                at
            }
            Expr::Alt(parts) => {
                let end = nfa.state();
                for part in parts {
                    let begin = nfa.state();
                    nfa.epsilon(from, begin);
                    let to = self.expr(owner, nfa, begin, part, place)?;
                    nfa.epsilon(to, end);
                }
                end
            }
            Expr::Automaton(dfa) => {
                self.charge(owner, dfa.len())?;
                let (begin, end) = nfa.embed(dfa);
                nfa.epsilon(from, begin);
                end
            }
            Expr::Graph(graph) => {
                self.charge(owner, graph.nodes as usize)?;
                let nodes: Vec<u32> = (0..graph.nodes).map(|_| nfa.state()).collect();
                nfa.epsilon(from, nodes[graph.start as usize]);
                for (a, e, b) in &graph.edges {
                    let begin = nodes[*a as usize];
                    // An edge that begins where others do needs no state of its own unless it could loop back through it.
                    let to = self.expr(owner, nfa, begin, e, place)?;
                    nfa.epsilon(to, nodes[*b as usize]);
                }
                let end = nfa.state();
                for &node in &graph.ends {
                    nfa.epsilon(nodes[node as usize], end);
                }
                end
            }
            Expr::Dispatch(_) => {
                let rule = self.auxiliary(owner, expr);
                symbol(nfa, Symbol::Call(rule))
            }
            Expr::Repeat { body, min, max } => self.repeat(owner, nfa, from, expr, (body, *min, *max), place)?,
        })
    }

    fn repeat(
        &mut self,
        owner: usize,
        nfa: &mut Nfa,
        from: u32,
        whole: &'g Expr,
        (body, min, max): (&'g Expr, u32, Option<u32>),
        place: Place,
    ) -> Result<u32, CompileError> {
        if max.is_some_and(|max| max < min) {
            return Ok(nfa.state());
        }
        if min > MAX_COUNT {
            let rule = self.units.rules[owner].name.clone();
            return Err(CompileError::Limit { rule, what: "repetitions", limit: MAX_COUNT as usize });
        }
        // No text that fits in memory has as many runs.
        let max = max.filter(|&max| max <= MAX_COUNT);
        if max == Some(0) {
            return Ok(from);
        }
        let copies = max.unwrap_or(min.max(1)) as usize;
        let small = copies <= 1 || weight(body, UNROLL_STATES).saturating_mul(copies) <= UNROLL_STATES;
        if small {
            return self.unrolled(owner, nfa, from, (body, min, max), place);
        }
        if place == Place::Block {
            let rule = self.auxiliary(owner, whole);
            let to = nfa.state();
            let s = Symbol::Call(rule).encode();
            nfa.edge(from, s, s, to);
            return Ok(to);
        }
        let block = self.block(owner, body, min, max)?;
        let to = nfa.state();
        let s = Symbol::Block(block).encode();
        nfa.edge(from, s, s, to);
        if min == 0 {
            nfa.epsilon(from, to);
        }
        Ok(to)
    }

    /// The block of a counted repeat; a repeat written out in several places (white space) is one block unit.
    fn block(&mut self, owner: usize, body: &'g Expr, min: u32, max: Option<u32>) -> Result<u32, CompileError> {
        let key = (std::ptr::from_ref(body), min, max);
        if let Some(&block) = self.blocks.get(&key) {
            return Ok(block);
        }
        let mut nfa = Nfa::new();
        let start = nfa.state();
        let end = self.expr(owner, &mut nfa, start, body, Place::Block)?;
        nfa.set_final(end);
        let block = self.units.blocks.len() as u32;
        let body = Unit { name: self.units.rules[owner].name.clone(), label: None, nfa, marks: Vec::new() };
        self.units.blocks.push(BlockUnit { min, max, body });
        self.blocks.insert(key, block);
        Ok(block)
    }

    fn unrolled(
        &mut self,
        owner: usize,
        nfa: &mut Nfa,
        from: u32,
        (body, min, max): (&'g Expr, u32, Option<u32>),
        place: Place,
    ) -> Result<u32, CompileError> {
        let mut at = from;
        for _ in 0..min {
            at = self.expr(owner, nfa, at, body, place)?;
        }
        match max {
            None => {
                // A loop gets states of its own, so that nothing before it can be re-entered through it.
                let hub = nfa.state();
                nfa.epsilon(at, hub);
                let begin = nfa.state();
                nfa.epsilon(hub, begin);
                let to = self.expr(owner, nfa, begin, body, place)?;
                nfa.epsilon(to, hub);
                Ok(hub)
            }
            Some(max) => {
                let end = nfa.state();
                nfa.epsilon(at, end);
                for _ in min..max {
                    let begin = nfa.state();
                    nfa.epsilon(at, begin);
                    at = self.expr(owner, nfa, begin, body, place)?;
                    nfa.epsilon(at, end);
                }
                Ok(end)
            }
        }
    }
}

/// Whether a rule is written out where it is called: white space and other single classes cost more as calls.
fn is_tiny(body: &Expr) -> bool {
    match body {
        Expr::Class(_) | Expr::Special(_) => true,
        Expr::Bytes(bytes) => bytes.len() <= 4,
        Expr::Repeat { body, .. } => matches!(**body, Expr::Class(_)),
        _ => false,
    }
}

/// States an expression costs, counted up to a cap.
fn weight(expr: &Expr, cap: usize) -> usize {
    let sum = |parts: &mut dyn Iterator<Item = &Expr>| {
        let mut total = 0;
        for part in parts {
            total += weight(part, cap);
            if total > cap {
                break;
            }
        }
        total
    };
    match expr {
        Expr::Empty | Expr::Never => 0,
        Expr::Bytes(b) => b.len(),
        Expr::Class(_) | Expr::Special(_) | Expr::Ref(_) | Expr::Dispatch(_) => 1,
        Expr::Seq(parts) | Expr::Alt(parts) => sum(&mut parts.iter()),
        Expr::Repeat { body, min, max } => weight(body, cap).saturating_mul(max.unwrap_or(min + 1).max(1) as usize),
        Expr::Automaton(dfa) => dfa.len(),
        Expr::Graph(graph) => graph.nodes as usize + sum(&mut graph.edges.iter().map(|(_, e, _)| e)),
    }
}
