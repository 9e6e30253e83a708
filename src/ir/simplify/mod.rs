//! Simplification passes: equivalent grammars with fewer and simpler rules, the same sentences and
//! the same traces. One pass per file; the order is here.
//!
//! Invariants of every pass: a reachable labelled rule is kept, its body is not copied, and its
//! bytes keep their label; the meaning of a dispatch is unchanged; a grammar that the compiler
//! rejects is still rejected.

mod inline;
mod loops;
mod merge;
mod reach;
mod regular;

use super::counted_graph::MAX_UNROLLED;
use super::{Expr, Grammar, GrammarError};
use crate::fuel;
use crate::ids::RuleId;

/// Whether a grammar is simplified before it is compiled. Masks and traces do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Simplify {
    /// It is not: for grammars that a front end has written tidily, such as those of JSON Schemas.
    #[default]
    Off,
    /// It is, by [`Grammar::simplify`]: for grammars that people have written.
    On,
}

/// Most rounds of all passes.
const MAX_ROUNDS: usize = 4;

/// A simplification pass. Passes are independent: any order gives an equivalent grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Direct left and right recursion becomes repetition.
    Loops,
    /// Equivalent rules are merged, mutually recursive ones included.
    Merge,
    /// Regular rules that call others become one automaton.
    Regular,
    /// Small rules and rules that are used once are inlined.
    Inline,
    /// Unreachable rules are dropped, and the others renumbered.
    Reach,
}

impl Pass {
    /// The passes of a round, in their order.
    pub const ALL: [Pass; 6] =
        [Pass::Reach, Pass::Loops, Pass::Merge, Pass::Regular, Pass::Inline, Pass::Reach];

    /// Runs the pass on a valid grammar; returns whether it changed anything. Cost: linear in the
    /// grammar's size; [`Pass::Merge`] adds a logarithmic factor, [`Pass::Regular`] the
    /// construction of automata of at most a thousand states.
    pub fn run(self, grammar: &mut Grammar) -> bool {
        match self {
            Pass::Loops => loops::run(grammar),
            Pass::Merge => merge::run(grammar),
            Pass::Regular => regular::run(grammar),
            Pass::Inline => inline::run(grammar),
            Pass::Reach => reach::run(grammar),
        }
    }

    /// Whether a change may enable an earlier pass.
    fn may_enable_earlier_passes(self) -> bool {
        matches!(self, Pass::Loops | Pass::Merge)
    }
}

impl Grammar {
    /// An equivalent grammar: the same sentences, and the same spans in traces. [`Grammar::size`]
    /// grows by at most a half plus 64; usually it shrinks.
    ///
    /// # Errors
    ///
    /// If the grammar is not valid.
    pub fn simplify(&self) -> Result<Grammar, GrammarError> {
        self.simplify_observed(&mut |_, _, _| {})
    }

    /// As [`Grammar::simplify`]; calls `observe` after each pass with the round (from 0), the pass
    /// and the grammar.
    pub fn simplify_observed(
        &self,
        observe: &mut dyn FnMut(usize, Pass, &Grammar),
    ) -> Result<Grammar, GrammarError> {
        self.validate()?;
        let mut grammar = self.clone();
        // The passes do not look into compact expressions.
        grammar.rules.iter_mut().for_each(|rule| rule.body.expand_compact());
        for round in 0..MAX_ROUNDS {
            let mut again = false;
            for pass in Pass::ALL {
                // Callers check the fuel. A pass may take long and spend none.
                if fuel::is_exhausted() {
                    return Ok(grammar);
                }
                again |= pass.run(&mut grammar) && pass.may_enable_earlier_passes();
                observe(round, pass, &grammar);
            }
            if !again {
                break;
            }
        }
        Ok(grammar)
    }

    /// Merges equivalent rules and drops unreachable ones. The grammar must be valid.
    pub(crate) fn merge_rules(&mut self) {
        for pass in [Pass::Merge, Pass::Reach] {
            pass.run(self);
        }
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
                members.parts().map(Expr::size).sum::<usize>() + members.unique.len() + 1
            }
            Expr::Except(except) => except.to_graph().size(),
            Expr::Counted(counted) => counted.unrolled_size(),
            Expr::Dispatch(dispatch) => {
                dispatch.tags.len() + dispatch.stops.len() + dispatch.excludes.len() + 1
            }
        }
    }

    /// Replaces every [`Expr::Except`], and every [`Expr::Counted`] that is not too large, by its
    /// graph.
    fn expand_compact(&mut self) {
        self.children_mut().for_each(Expr::expand_compact);
        match self {
            Expr::Except(except) => *self = except.to_graph(),
            Expr::Counted(counted) => {
                if let Some(graph) = counted.to_graph_within(MAX_UNROLLED) {
                    *self = graph;
                }
            }
            _ => {}
        }
    }

    /// Calls `f` with every callee, in a fixed order.
    pub(in crate::ir) fn each_ref(&self, f: &mut impl FnMut(RuleId)) {
        self.children().for_each(|part| part.each_ref(f));
        match self {
            Expr::Ref(rule) => f(*rule),
            Expr::Except(except) => [except.tail, except.other].into_iter().for_each(f),
            Expr::Dispatch(dispatch) => dispatch.tags.iter().for_each(|&(_, rule)| f(rule)),
            _ => {}
        }
    }
}
