//! Auxiliary rules: rules that the compiler makes for parts of rules.

use std::sync::Arc;

use super::CompiledRuleId;
use super::expressions::ExprId;
use super::rule_nfa::RuleNfa;
use crate::fsm::PathLengths;
use crate::hash::HashMap;
use crate::ir::Expr;

/// The auxiliary rules of a grammar, with what the analysis builds for them. Expressions are those
/// of [`Compiled::split_grammar`](super::Compiled::split_grammar).
#[derive(Debug, Default)]
pub(super) struct AuxiliaryRules {
    /// By their expression.
    pub(super) ids: HashMap<ExprId, CompiledRuleId>,
    /// Path lengths of counted graphs, by their expression.
    pub(super) path_lengths: HashMap<ExprId, Arc<PathLengths>>,
    /// Nondeterministic automata, by rule; dispatches have others.
    pub(super) nfas: HashMap<CompiledRuleId, Arc<RuleNfa>>,
}

impl AuxiliaryRules {
    /// The rule of an expression, if it has one.
    pub(super) fn find(&self, expr: &Expr) -> Option<CompiledRuleId> {
        self.ids.get(&ExprId::of(expr)).copied()
    }

    /// The rule of an expression that has one.
    pub(super) fn rule(&self, expr: &Expr) -> CompiledRuleId {
        self.ids[&ExprId::of(expr)]
    }

    /// The path lengths of a counted graph.
    pub(super) fn path_lengths(&self, counted: &Expr) -> &Arc<PathLengths> {
        &self.path_lengths[&ExprId::of(counted)]
    }
}
