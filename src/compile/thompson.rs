//! Thompson's construction: expressions to nondeterministic automata, one rule at a time.
//!
//! Large counted repeats become blocks. A nested block, a dispatch, and a member set inside of
//! another expression become auxiliary rules.

use std::sync::Arc;

use super::Compiled;
use super::counted_graph::{NO_NODE, StepCounts};
use super::expressions::{Repeat, expr_address, is_tiny};
use super::live_nfa::LiveNfa;
use super::member_sets::{MemberFragments, MemberSets};
use super::rule_nfa::{BlockNfa, EdgeSymbol, RuleNfa};
use crate::fsm::{ExactSteps, Nfa};
use crate::hash::HashMap;
use crate::ir::{Counted, Expr, Grammar, Graph, Members};

/// The context of an expression. Neither blocks nor member sets nest within one rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nesting {
    /// Directly in a rule.
    Rule,
    /// In a member or separator of a member set.
    Member,
    /// In a counted block or a counted step.
    Block,
}

/// The automaton of a rule with this body. Cost: linear in the body with small repeats unrolled.
pub(super) fn rule_nfa(compiled: &Compiled, body: &Expr) -> RuleNfa {
    let mut thompson = Thompson::new(compiled);
    let main = thompson.part(body, Nesting::Rule);
    let Thompson { blocks, member_sets, .. } = thompson;
    RuleNfa { main, blocks, member_sets, ..RuleNfa::default() }
}

/// The automaton of a counted graph.
pub(super) fn counted_rule_nfa(
    compiled: &Compiled,
    counted: &Counted,
    levels: Arc<ExactSteps>,
) -> RuleNfa {
    let mut thompson = Thompson::new(compiled);
    let (mut nfa, graph) = (Nfa::new(), &counted.graph);
    let nodes: Vec<u32> = (0..graph.nodes).map(|_| nfa.state()).collect();
    let (mut node_of, mut leads_to): (Vec<u32>, Vec<u32>) =
        ((0..graph.nodes).collect(), vec![NO_NODE; nodes.len()]);
    let mut begins_at = leads_to.clone();
    for (a, e, b) in &graph.edges {
        // Steps share no states, so that each state leads to one node.
        let begin = nfa.state();
        nfa.epsilon(nodes[*a as usize], begin);
        let to = thompson.expr(&mut nfa, begin, e, Nesting::Block);
        leads_to.resize(nfa.len(), *b);
        begins_at.resize(nfa.len(), NO_NODE);
        begins_at[begin as usize] = *a;
        nfa.epsilon(to, nodes[*b as usize]);
    }
    let end = nfa.state();
    nfa.set_final(end);
    graph.ends.iter().for_each(|&node| nfa.epsilon(nodes[node as usize], end));
    node_of.resize(nfa.len(), NO_NODE);
    leads_to.resize(nfa.len(), NO_NODE);
    begins_at.resize(nfa.len(), NO_NODE);
    let start = nodes.get(graph.start as usize).copied().unwrap_or(end);
    let step_counts = StepCounts {
        min: counted.min,
        max: counted.max,
        start,
        node_of,
        begins_at,
        leads_to,
        levels,
    };
    RuleNfa {
        main: LiveNfa::new(nfa),
        blocks: thompson.blocks,
        step_counts: Some(step_counts),
        ..RuleNfa::default()
    }
}

/// The automaton of an expression without calls, dispatches and blocks.
pub(super) fn regular_nfa(compiled: &Compiled, body: &Expr) -> Nfa {
    Thompson::new(compiled).nfa(body, Nesting::Rule)
}

/// The construction of one rule.
struct Thompson<'c> {
    compiled: &'c Compiled,
    grammar: &'c Grammar,
    blocks: Vec<BlockNfa>,
    member_sets: MemberSets,
    /// Blocks by body and bounds.
    block_index: HashMap<(usize, u32, Option<u32>), u32>,
}

impl<'c> Thompson<'c> {
    fn new(compiled: &'c Compiled) -> Self {
        Thompson {
            compiled,
            grammar: &compiled.split_grammar,
            blocks: Vec::new(),
            member_sets: MemberSets::default(),
            block_index: HashMap::default(),
        }
    }

    /// Appends a member set.
    fn members(&mut self, nfa: &mut Nfa, from: u32, members: &Members) -> u32 {
        let compiled = self.compiled;
        let first = nfa.len() as u32;
        let mut part = |expr: &Expr| {
            let begin = nfa.state();
            (begin, self.expr(nfa, begin, expr, Nesting::Member))
        };
        let fragments = MemberFragments {
            bounds: members.bounds(|part| compiled.productive(part)),
            nullable: members.nullable(),
            once: members.once.iter().map(|member| part(&member.body)).collect(),
            often: members.often.iter().map(&mut part).collect(),
            separator: part(&members.separator),
        };
        self.member_sets.add(nfa, (from, first), fragments)
    }

    /// The automaton of an expression, with its live states.
    fn part(&mut self, body: &Expr, nesting: Nesting) -> LiveNfa {
        LiveNfa::new(self.nfa(body, nesting))
    }

    /// The automaton of an expression.
    fn nfa(&mut self, body: &Expr, nesting: Nesting) -> Nfa {
        let mut nfa = Nfa::new();
        let start = nfa.state();
        let end = self.expr(&mut nfa, start, body, nesting);
        nfa.set_final(end);
        nfa
    }

    /// Appends `expr`, beginning at state `from`; returns its last state.
    fn expr(&mut self, nfa: &mut Nfa, from: u32, expr: &Expr, nesting: Nesting) -> u32 {
        match expr {
            Expr::Empty => from,
            // A deferred body is the whole body of a rule; the program appends it.
            Expr::Never | Expr::Deferred(_) => nfa.state(),
            Expr::Bytes(bytes) => bytes.iter().fold(from, |at, &b| {
                let to = nfa.state();
                nfa.edge(at, u32::from(b), u32::from(b), to);
                to
            }),
            Expr::Class(set) => {
                let to = nfa.state();
                for (lo, hi) in set.ranges() {
                    nfa.edge(from, u32::from(lo), u32::from(hi), to);
                }
                to
            }
            Expr::Special(s) => {
                let (to, symbol) = (nfa.state(), EdgeSymbol::Special(s.raw()).encode());
                nfa.edge(from, symbol, symbol, to);
                to
            }
            Expr::Ref(r) => {
                let rule = &self.grammar.rules[r.index()];
                if rule.attributes.is_empty() && is_tiny(&rule.body) {
                    return self.expr(nfa, from, &rule.body, nesting);
                }
                self.call(nfa, from, r.raw())
            }
            Expr::Seq(parts) => {
                parts.iter().fold(from, |at, part| self.expr(nfa, at, part, nesting))
            }
            Expr::Alt(parts) => self.alternatives(nfa, from, parts, nesting),
            Expr::Automaton(dfa) => {
                let (begin, end) = nfa.embed(dfa);
                nfa.epsilon(from, begin);
                end
            }
            Expr::Graph(graph) => self.graph(nfa, from, graph, nesting),
            Expr::Except(except) => self.expr(nfa, from, &except.to_graph(), nesting),
            Expr::Members(members) if nesting == Nesting::Rule => self.members(nfa, from, members),
            Expr::Dispatch(_) | Expr::Members(_) | Expr::Counted(_) => {
                self.call(nfa, from, self.compiled.auxiliary.rule(expr))
            }
            Expr::Repeat { body, min, max } => {
                let repeat = Repeat { whole: expr, body, min: *min, max: *max };
                self.repeat(nfa, from, repeat, nesting)
            }
        }
    }

    /// Appends alternatives.
    fn alternatives(&mut self, nfa: &mut Nfa, from: u32, parts: &[Expr], nesting: Nesting) -> u32 {
        let end = nfa.state();
        for part in parts {
            let begin = nfa.state();
            nfa.epsilon(from, begin);
            let to = self.expr(nfa, begin, part, nesting);
            nfa.epsilon(to, end);
        }
        end
    }

    /// Appends a graph.
    fn graph(&mut self, nfa: &mut Nfa, from: u32, graph: &Graph, nesting: Nesting) -> u32 {
        let nodes: Vec<u32> = (0..graph.nodes).map(|_| nfa.state()).collect();
        nfa.epsilon(from, nodes[graph.start as usize]);
        for (a, e, b) in &graph.edges {
            let to = self.expr(nfa, nodes[*a as usize], e, nesting);
            nfa.epsilon(to, nodes[*b as usize]);
        }
        let end = nfa.state();
        for &node in &graph.ends {
            nfa.epsilon(nodes[node as usize], end);
        }
        end
    }

    /// Appends a call. A callee that derives nothing has no edge; a nullable callee can be skipped.
    fn call(&mut self, nfa: &mut Nfa, from: u32, rule: u32) -> u32 {
        let to = nfa.state();
        let facts = &self.compiled.rules[rule as usize];
        if facts.productive {
            let symbol = EdgeSymbol::Call(rule).encode();
            nfa.edge(from, symbol, symbol, to);
        }
        if facts.nullable {
            nfa.epsilon(from, to);
        }
        to
    }

    /// Appends a repeat: unrolled, as a block, or as a call of an auxiliary rule.
    fn repeat(&mut self, nfa: &mut Nfa, from: u32, repeat: Repeat<'_>, nesting: Nesting) -> u32 {
        if repeat.is_empty() {
            return nfa.state();
        }
        let repeat = repeat.countable();
        if repeat.max == Some(0) {
            return from;
        }
        if repeat.is_unrolled() {
            return self.unrolled(nfa, from, repeat, nesting);
        }
        if nesting == Nesting::Block {
            return self.call(nfa, from, self.compiled.auxiliary.rule(repeat.whole));
        }
        let (block, skippable) = self.block(repeat);
        let to = nfa.state();
        if self.compiled.productive(repeat.body) {
            let symbol = EdgeSymbol::Block(block).encode();
            nfa.edge(from, symbol, symbol, to);
        }
        if skippable {
            nfa.epsilon(from, to);
        }
        to
    }

    /// The block of a counted repeat, and whether it can be skipped. A repeat that is inlined in
    /// several places is one block.
    fn block(&mut self, repeat: Repeat<'_>) -> (u32, bool) {
        // A nullable body can stand for any missing repetition.
        let min = if self.compiled.nullable(repeat.body) { 0 } else { repeat.min };
        let repeat = Repeat { min, ..repeat };
        let key = (expr_address(repeat.body), min, repeat.max);
        let block = match self.block_index.get(&key) {
            Some(&block) => block,
            None => {
                let part = self.part(repeat.body, Nesting::Block);
                let block = self.blocks.len() as u32;
                self.blocks.push(BlockNfa {
                    min,
                    max: repeat.max,
                    gap: repeat.is_bounded_white_space(),
                    body: part,
                });
                self.block_index.insert(key, block);
                block
            }
        };
        (block, min == 0)
    }

    /// Appends `min..=max` copies of a repeat's body.
    fn unrolled(&mut self, nfa: &mut Nfa, from: u32, repeat: Repeat<'_>, nesting: Nesting) -> u32 {
        let Repeat { body, min, max, .. } = repeat;
        let mut at = from;
        for _ in 0..min {
            at = self.expr(nfa, at, body, nesting);
        }
        match max {
            None => {
                // The loop has states of its own, so that nothing before it can be re-entered
                // through it.
                let hub = nfa.state();
                nfa.epsilon(at, hub);
                let begin = nfa.state();
                nfa.epsilon(hub, begin);
                let to = self.expr(nfa, begin, body, nesting);
                nfa.epsilon(to, hub);
                hub
            }
            Some(max) => {
                let end = nfa.state();
                nfa.epsilon(at, end);
                for _ in min..max {
                    let begin = nfa.state();
                    nfa.epsilon(at, begin);
                    at = self.expr(nfa, begin, body, nesting);
                    nfa.epsilon(at, end);
                }
                end
            }
        }
    }
}
