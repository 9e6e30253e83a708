//! Auxiliary rules: rules that the compiler makes for parts of rules.

use std::sync::Arc;

use super::CompiledRuleId;
use super::expressions::expr_address;
use super::rule_nfa::RuleNfa;
use crate::fsm::ExactSteps;
use crate::hash::HashMap;
use crate::ir::Expr;

/// The auxiliary rules of a grammar, with what the analysis builds for them. Expressions are those
/// of [`Compiled::split_grammar`](super::Compiled::split_grammar), identified by their address.
#[derive(Debug, Default)]
pub(super) struct AuxiliaryRules {
    /// By the address of their expression.
    pub(super) ids: HashMap<usize, CompiledRuleId>,
    /// Path lengths of counted graphs, by the address of their expression.
    pub(super) step_levels: HashMap<usize, Arc<ExactSteps>>,
    /// Nondeterministic automata, by rule; dispatches have others.
    pub(super) nfas: HashMap<CompiledRuleId, Arc<RuleNfa>>,
}

impl AuxiliaryRules {
    /// The rule of an expression, if it has one.
    pub(super) fn find(&self, expr: &Expr) -> Option<CompiledRuleId> {
        self.ids.get(&expr_address(expr)).copied()
    }

    /// The rule of an expression that has one.
    pub(super) fn rule(&self, expr: &Expr) -> CompiledRuleId {
        self.ids[&expr_address(expr)]
    }

    /// The path lengths of a counted graph.
    pub(super) fn levels(&self, counted: &Expr) -> &Arc<ExactSteps> {
        &self.step_levels[&expr_address(counted)]
    }
}
