//! Simplification passes: equivalent grammars with fewer and simpler rules, the same sentences and
//! the same traces. One pass per file; the order is here.
//!
//! Invariants of every pass: a reachable labelled rule is kept, its body is not copied, and its
//! bytes keep their label; the meaning of a dispatch is unchanged; a grammar that the compiler
//! rejects is still rejected.

mod call_graph;
mod fold;
mod graph_paths;
mod inline;
mod literals;
mod loops;
mod merge;
mod nullable;
mod reach;
mod regular;
mod unit;
mod useless;

use std::borrow::Cow;

use super::counted_graph::MAX_UNROLLED;
use super::{Expr, Grammar, GrammarError};
use crate::ids::RuleId;

/// The level of simplification before compilation. Masks and traces do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Simplify {
    /// None: for grammars that a front end has written tidily, such as those of JSON Schemas.
    #[default]
    Off,
    /// Drops unreachable rules and merges equivalent ones.
    Cheap,
    /// All passes, to a fixpoint or four rounds: for hand-written or foreign grammars.
    Full,
}

/// Most rounds of all passes.
const MAX_ROUNDS: usize = 4;

/// A simplification pass. Passes are independent: any order gives an equivalent grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Local simplification of expressions: flattens nested lists, folds [`Expr::Empty`] and
    /// [`Expr::Never`], fuses adjacent literals, joins single bytes to classes, and drops duplicate
    /// alternatives and trivial repeats.
    Fold,
    /// Unproductive rules and alternatives become [`Expr::Never`].
    Useless,
    /// Calls of an unlabelled rule `a ::= b` go to `b`.
    Unit,
    /// Nullable expressions are no longer optional.
    Nullable,
    /// Direct left and right recursion becomes repetition.
    Loops,
    /// Equivalent rules are merged, mutually recursive ones included.
    Merge,
    /// Small rules and rules that are used once are inlined.
    Inline,
    /// Regular rules that call others become one automaton.
    Regular,
    /// Alternatives of literals become one automaton.
    Literals,
    /// Unreachable rules are dropped, and the others renumbered.
    Reach,
}

impl Pass {
    /// All passes, in their recommended order.
    pub const ALL: [Pass; 11] = [
        Pass::Reach,
        Pass::Fold,
        Pass::Useless,
        Pass::Unit,
        Pass::Nullable,
        Pass::Loops,
        Pass::Merge,
        Pass::Regular,
        Pass::Inline,
        Pass::Literals,
        Pass::Reach,
    ];

    /// Runs the pass on a valid grammar; returns whether it changed anything. Cost: linear in the
    /// grammar's size. [`Pass::Merge`] and [`Pass::Literals`] add a logarithmic factor,
    /// [`Pass::Regular`] the construction of automata of at most a thousand states.
    pub fn run(self, grammar: &mut Grammar) -> bool {
        match self {
            Pass::Fold => fold::run(grammar),
            Pass::Useless => useless::run(grammar),
            Pass::Unit => unit::run(grammar),
            Pass::Nullable => nullable::run(grammar),
            Pass::Loops => loops::run(grammar),
            Pass::Merge => merge::run(grammar),
            Pass::Regular => regular::run(grammar),
            Pass::Inline => inline::run(grammar),
            Pass::Literals => literals::run(grammar),
            Pass::Reach => reach::run(grammar),
        }
    }
}

/// Runs `work` on every item; returns whether any of them changed.
fn any_changed<T>(items: impl IntoIterator<Item = T>, mut work: impl FnMut(T) -> bool) -> bool {
    let mut changed = false;
    for item in items {
        changed |= work(item);
    }
    changed
}

impl Pass {
    /// Whether a change may enable an earlier pass.
    fn may_enable_earlier_passes(self) -> bool {
        match self {
            Pass::Useless | Pass::Unit | Pass::Nullable | Pass::Loops | Pass::Merge => true,
            Pass::Fold | Pass::Regular | Pass::Inline | Pass::Literals | Pass::Reach => false,
        }
    }
}

impl Simplify {
    /// The passes of one round.
    pub fn passes(self) -> &'static [Pass] {
        match self {
            Simplify::Off => &[],
            Simplify::Cheap => &[Pass::Merge, Pass::Reach],
            Simplify::Full => &Pass::ALL,
        }
    }

    /// Most rounds of this level.
    fn rounds(self) -> usize {
        match self {
            Simplify::Off | Simplify::Cheap => 1,
            Simplify::Full => MAX_ROUNDS,
        }
    }
}

impl Pass {
    /// As [`Pass::run`], but clones the grammar only if it changes.
    fn run_on(self, grammar: &mut Cow<'_, Grammar>) -> bool {
        match self {
            Pass::Merge => {
                merge::plan(grammar).map(|plan| merge::apply(grammar.to_mut(), &plan)).is_some()
            }
            Pass::Reach => {
                reach::plan(grammar).map(|plan| reach::retain(grammar.to_mut(), &plan)).is_some()
            }
            _ => self.run(grammar.to_mut()),
        }
    }
}

impl Grammar {
    /// An equivalent grammar: the same sentences, and the same spans in traces. [`Grammar::size`]
    /// grows by at most a half plus 64; usually it shrinks.
    ///
    /// # Errors
    ///
    /// If the grammar is not valid.
    pub fn simplify(&self, level: Simplify) -> Result<Cow<'_, Grammar>, GrammarError> {
        self.simplify_observed(level, &mut |_, _, _| {})
    }

    /// As [`Grammar::simplify`]; calls `observe` after each pass with the round (from 0), the pass
    /// and the grammar.
    pub fn simplify_observed(
        &self,
        level: Simplify,
        observe: &mut dyn FnMut(usize, Pass, &Grammar),
    ) -> Result<Cow<'_, Grammar>, GrammarError> {
        self.validate()?;
        let mut grammar = Cow::Borrowed(self);
        if level == Simplify::Full && self.rules.iter().any(|rule| rule.body.has_compact_exprs()) {
            // The passes do not look into these expressions.
            grammar.to_mut().rules.iter_mut().for_each(|rule| rule.body.expand_compact());
        }
        for round in 0..level.rounds() {
            let mut again = false;
            for pass in level.passes() {
                again |= pass.run_on(&mut grammar) && pass.may_enable_earlier_passes();
                observe(round, *pass, &grammar);
            }
            if !again {
                break;
            }
        }
        Ok(grammar)
    }

    /// The size of the grammar: rules, and nodes, bytes and edges of their expressions.
    pub fn size(&self) -> usize {
        self.rules.iter().map(|rule| 1 + rule.body.size()).sum()
    }
}

impl Expr {
    /// The size of the expression: nodes, bytes and edges.
    pub(in crate::ir) fn size(&self) -> usize {
        match self {
            Expr::Empty
            | Expr::Never
            | Expr::Class(_)
            | Expr::Special(_)
            | Expr::Ref(_)
            | Expr::Deferred(_) => 1,
            Expr::Bytes(bytes) => bytes.len().max(1),
            Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().map(Expr::size).sum::<usize>() + 1,
            Expr::Repeat { body, .. } => body.size() + 1,
            Expr::Automaton(dfa) => dfa.edge_count().max(1),
            Expr::Graph(graph) => {
                graph.nodes as usize + graph.edges.iter().map(|(_, e, _)| e.size()).sum::<usize>()
            }
            Expr::Members(members) => {
                members.parts().map(Expr::size).sum::<usize>() + members.once.len() + 1
            }
            Expr::Except(except) => except.to_graph().size(),
            Expr::Counted(counted) => counted.unrolled_size(),
            Expr::Dispatch(dispatch) => {
                dispatch.tags.len() + dispatch.stops.len() + dispatch.excludes.len() + 1
            }
        }
    }

    /// Whether it contains a compact form of a graph.
    fn has_compact_exprs(&self) -> bool {
        match self {
            Expr::Except(_) | Expr::Counted(_) => true,
            Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().any(Expr::has_compact_exprs),
            Expr::Repeat { body, .. } => body.has_compact_exprs(),
            Expr::Graph(graph) => graph.edges.iter().any(|(_, e, _)| e.has_compact_exprs()),
            Expr::Members(members) => members.parts().any(Expr::has_compact_exprs),
            _ => false,
        }
    }

    /// Replaces every [`Expr::Except`], and every [`Expr::Counted`] that is not too large, by its
    /// graph.
    fn expand_compact(&mut self) {
        match self {
            Expr::Except(except) => *self = except.to_graph(),
            Expr::Counted(counted) => {
                counted.graph.edges.iter_mut().for_each(|(_, e, _)| e.expand_compact());
                if counted.unrolled_size() <= MAX_UNROLLED {
                    *self = counted.to_graph();
                }
            }
            Expr::Seq(parts) | Expr::Alt(parts) => parts.iter_mut().for_each(Expr::expand_compact),
            Expr::Repeat { body, .. } => body.expand_compact(),
            Expr::Graph(graph) => graph.edges.iter_mut().for_each(|(_, e, _)| e.expand_compact()),
            Expr::Members(members) => members.parts_mut().for_each(Expr::expand_compact),
            _ => {}
        }
    }

    /// Calls `f` with every callee, in a fixed order.
    fn each_ref(&self, f: &mut impl FnMut(RuleId)) {
        match self {
            Expr::Empty | Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => {}
            Expr::Automaton(_) | Expr::Deferred(_) => {}
            Expr::Ref(rule) => f(*rule),
            Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().for_each(|part| part.each_ref(f)),
            Expr::Repeat { body, .. } => body.each_ref(f),
            Expr::Graph(graph) => graph.edges.iter().for_each(|(_, e, _)| e.each_ref(f)),
            Expr::Members(members) => members.parts().for_each(|part| part.each_ref(f)),
            Expr::Except(except) => [except.tail, except.other].into_iter().for_each(f),
            Expr::Counted(counted) => {
                counted.graph.edges.iter().for_each(|(_, e, _)| e.each_ref(f))
            }
            Expr::Dispatch(dispatch) => dispatch.tags.iter().for_each(|&(_, rule)| f(rule)),
        }
    }
}
