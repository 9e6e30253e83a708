//! Thompson's construction: expressions to nondeterministic automata, one rule at a time.
//!
//! Large counted repeats become blocks. A nested block, a dispatch, and a member set inside of
//! another expression become auxiliary rules.

use std::convert::Infallible;
use std::sync::Arc;

use super::counted_graph::{GraphNode, StepCounts, StepRole};
use super::expressions::{ExprId, Repeat, inlined_body};
use super::live_nfa::LiveNfa;
use super::member_sets::{MemberFragments, MemberSets};
use super::rule_nfa::{BlockNfa, BlockNfaId, EdgeSymbol, RuleNfa};
use super::{Compiled, CompiledRuleId};
use crate::fsm::{Nfa, PathLengths, Thompson};
use crate::hash::HashMap;
use crate::ir::{Counted, Expr, Graph, Members};

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
    let mut builder = RuleNfaBuilder::new(compiled);
    let nfa = builder.part(body, Nesting::Rule);
    let RuleNfaBuilder { blocks, member_sets, .. } = builder;
    RuleNfa { main: LiveNfa::new(nfa), blocks, member_sets, ..RuleNfa::default() }
}

/// The automaton of a counted graph.
pub(super) fn counted_rule_nfa(
    compiled: &Compiled,
    counted: &Counted,
    path_lengths: Arc<PathLengths>,
) -> RuleNfa {
    let mut builder = RuleNfaBuilder { nesting: Nesting::Block, ..RuleNfaBuilder::new(compiled) };
    let graph = &counted.graph;
    let nodes: Vec<u32> = (0..graph.nodes).map(|_| builder.nfa.state()).collect();
    let node = GraphNode::from_raw;
    let mut roles: Vec<StepRole> = (0..graph.nodes).map(|n| StepRole::Node(node(n))).collect();
    for (a, e, b) in &graph.edges {
        // Steps share no states, so that each state leads to one node.
        let begin = builder.nfa.state();
        builder.nfa.epsilon(nodes[*a as usize], begin);
        let end = builder.expr(begin, e);
        let (from, to) = (node(*a), node(*b));
        roles.push(StepRole::Begin { from, to });
        roles.resize(builder.nfa.len(), StepRole::Inside { to });
        builder.nfa.epsilon(end, nodes[*b as usize]);
    }
    let RuleNfaBuilder { mut nfa, blocks, .. } = builder;
    let end = nfa.state();
    nfa.set_final(end);
    graph.ends.iter().for_each(|&node| nfa.epsilon(nodes[node as usize], end));
    roles.resize(nfa.len(), StepRole::End);
    let start = nodes.get(graph.start as usize).copied().unwrap_or(end);
    let Counted { min, max, .. } = *counted;
    let step_counts = StepCounts { min, max, start, roles, path_lengths };
    RuleNfa {
        main: LiveNfa::new(nfa),
        blocks,
        step_counts: Some(step_counts),
        ..RuleNfa::default()
    }
}

/// The automaton of an expression without calls, dispatches and blocks.
pub(super) fn regular_nfa(compiled: &Compiled, body: &Expr) -> Nfa {
    RuleNfaBuilder::new(compiled).part(body, Nesting::Rule)
}

/// What tells the blocks of one rule apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BlockKey {
    body: ExprId,
    min: u32,
    max: Option<u32>,
}

/// The construction of one rule.
struct RuleNfaBuilder<'c> {
    compiled: &'c Compiled,
    /// The automaton of the current part: the rule itself or a block.
    nfa: Nfa,
    nesting: Nesting,
    blocks: Vec<BlockNfa>,
    member_sets: MemberSets,
    block_index: HashMap<BlockKey, BlockNfaId>,
}

impl Thompson<Expr> for RuleNfaBuilder<'_> {
    type Error = Infallible;

    fn states(&self) -> usize {
        self.nfa.len()
    }

    fn state(&mut self) -> Result<u32, Infallible> {
        Ok(self.nfa.state())
    }

    fn epsilon(&mut self, from: u32, to: u32) {
        self.nfa.epsilon(from, to);
    }

    fn append(&mut self, from: u32, expr: &Expr) -> Result<u32, Infallible> {
        Ok(match expr {
            Expr::Empty => from,
            // A deferred body is the whole body of a rule; the program appends it.
            Expr::Never | Expr::Deferred(_) => self.nfa.state(),
            Expr::Bytes(bytes) => {
                bytes.iter().fold(from, |at, &byte| self.edge(at, EdgeSymbol::Byte(byte)))
            }
            Expr::Class(set) => {
                let to = self.nfa.state();
                for (lo, hi) in set.ranges() {
                    self.nfa.edge(from, u32::from(lo), u32::from(hi), to);
                }
                to
            }
            Expr::Special(special) => self.edge(from, EdgeSymbol::Special(*special)),
            Expr::Ref(r) => {
                let rule = &self.compiled.split_grammar.rules[r.index()];
                match inlined_body(rule) {
                    Some(body) => self.append(from, body)?,
                    None => self.call(from, (*r).into()),
                }
            }
            Expr::Seq(parts) => self.append_sequence(from, parts)?,
            Expr::Alt(parts) => self.append_alternatives(from, parts)?,
            Expr::Automaton(dfa) => {
                let (begin, end) = self.nfa.embed(dfa);
                self.nfa.epsilon(from, begin);
                end
            }
            Expr::Graph(graph) => self.graph(from, graph),
            Expr::Except(except) => self.append(from, &except.to_graph())?,
            Expr::Members(members) if self.nesting == Nesting::Rule => self.members(from, members),
            Expr::Dispatch(_) | Expr::Members(_) | Expr::Counted(_) => {
                self.call(from, self.compiled.auxiliary.rule(expr))
            }
            Expr::Repeat { body, min, max } => {
                let repeat = Repeat { whole: expr, body, min: *min, max: *max };
                self.repeat(from, repeat)
            }
        })
    }
}

impl<'c> RuleNfaBuilder<'c> {
    fn new(compiled: &'c Compiled) -> Self {
        RuleNfaBuilder {
            compiled,
            nfa: Nfa::new(),
            nesting: Nesting::Rule,
            blocks: Vec::new(),
            member_sets: MemberSets::default(),
            block_index: HashMap::default(),
        }
    }

    /// As [`Thompson::append`].
    fn expr(&mut self, from: u32, expr: &Expr) -> u32 {
        let Ok(to) = self.append(from, expr);
        to
    }

    /// The automaton of an expression, apart from the current one.
    fn part(&mut self, body: &Expr, nesting: Nesting) -> Nfa {
        let outer = std::mem::take(&mut self.nfa);
        let outer_nesting = std::mem::replace(&mut self.nesting, nesting);
        let start = self.nfa.state();
        let end = self.expr(start, body);
        self.nfa.set_final(end);
        self.nesting = outer_nesting;
        std::mem::replace(&mut self.nfa, outer)
    }

    /// Appends an edge.
    fn edge(&mut self, from: u32, symbol: EdgeSymbol) -> u32 {
        let (to, symbol) = (self.nfa.state(), symbol.encode());
        self.nfa.edge(from, symbol, symbol, to);
        to
    }

    /// Appends a member set.
    fn members(&mut self, from: u32, members: &Members) -> u32 {
        let compiled = self.compiled;
        let first = self.nfa.len() as u32;
        self.nesting = Nesting::Member;
        let mut part = |expr: &Expr| {
            let begin = self.nfa.state();
            (begin, self.expr(begin, expr))
        };
        let fragments = MemberFragments {
            bounds: members.bounds(|part| compiled.productive(part)),
            nullable: members.nullable(),
            unique: members.unique.iter().map(|member| part(&member.body)).collect(),
            repeatable: members.repeatable.iter().map(&mut part).collect(),
            separator: part(&members.separator),
        };
        self.nesting = Nesting::Rule;
        self.member_sets.add(&mut self.nfa, from, first, fragments)
    }

    /// Appends a graph.
    fn graph(&mut self, from: u32, graph: &Graph) -> u32 {
        let nodes: Vec<u32> = (0..graph.nodes).map(|_| self.nfa.state()).collect();
        self.nfa.epsilon(from, nodes[graph.start as usize]);
        for (a, e, b) in &graph.edges {
            let to = self.expr(nodes[*a as usize], e);
            self.nfa.epsilon(to, nodes[*b as usize]);
        }
        let end = self.nfa.state();
        for &node in &graph.ends {
            self.nfa.epsilon(nodes[node as usize], end);
        }
        end
    }

    /// Appends a call. A callee that derives nothing has no edge; a nullable callee can be skipped.
    fn call(&mut self, from: u32, rule: CompiledRuleId) -> u32 {
        let facts = &self.compiled.rules[rule.index()];
        self.optional_edge(from, EdgeSymbol::Call(rule), facts.productive, facts.nullable)
    }

    /// Appends an edge if `passable`, and an epsilon edge beside it if `skippable`.
    fn optional_edge(
        &mut self,
        from: u32,
        symbol: EdgeSymbol,
        passable: bool,
        skippable: bool,
    ) -> u32 {
        let to = if passable { self.edge(from, symbol) } else { self.nfa.state() };
        if skippable {
            self.nfa.epsilon(from, to);
        }
        to
    }

    /// Appends a repeat: unrolled, as a block, or as a call of an auxiliary rule.
    fn repeat(&mut self, from: u32, repeat: Repeat<'_>) -> u32 {
        if repeat.is_empty() {
            return self.nfa.state();
        }
        let repeat = repeat.countable();
        if repeat.max == Some(0) {
            return from;
        }
        if repeat.is_unrolled() {
            let Ok(to) = self.append_repeat(from, repeat.body, repeat.min, repeat.max);
            return to;
        }
        if self.nesting == Nesting::Block {
            return self.call(from, self.compiled.auxiliary.rule(repeat.whole));
        }
        let (block, skippable) = self.block(repeat);
        let productive = self.compiled.productive(repeat.body);
        self.optional_edge(from, EdgeSymbol::Block(block), productive, skippable)
    }

    /// The block of a counted repeat, and whether it can be skipped. A repeat that is inlined in
    /// several places is one block.
    fn block(&mut self, repeat: Repeat<'_>) -> (BlockNfaId, bool) {
        // A nullable body can stand for any missing repetition.
        let min = if self.compiled.nullable(repeat.body) { 0 } else { repeat.min };
        let repeat = Repeat { min, ..repeat };
        let key = BlockKey { body: ExprId::of(repeat.body), min, max: repeat.max };
        let block = match self.block_index.get(&key) {
            Some(&block) => block,
            None => {
                let body = LiveNfa::new(self.part(repeat.body, Nesting::Block));
                let block = BlockNfaId::new(self.blocks.len());
                self.blocks.push(BlockNfa {
                    min,
                    max: repeat.max,
                    is_bounded_white_space: repeat.is_bounded_white_space(),
                    body,
                });
                self.block_index.insert(key, block);
                block
            }
        };
        (block, min == 0)
    }
}
