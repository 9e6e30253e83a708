//! What the analysis finds out about one rule.

use crate::ids::{Label, RuleId, id};

id! {
    /// A rule of a compiled grammar: an index into [`Compiled::rules`](super::Compiled::rules).
    /// Rules of the split grammar keep their index, auxiliary rules follow, and in a
    /// [`Program`](super::Program) the rules of deferred grammars follow those.
    pub(crate) CompiledRuleId
}

impl CompiledRuleId {
    /// No rule.
    pub(crate) const NONE: CompiledRuleId = CompiledRuleId::from_raw(u32::MAX);

    /// This rule's id in a program in which its grammar begins with rule `first`.
    #[inline]
    pub(super) fn appended_from(self, first: CompiledRuleId) -> CompiledRuleId {
        CompiledRuleId::from_raw(self.raw() + first.raw())
    }

    /// Inverse of [`CompiledRuleId::appended_from`].
    #[inline]
    pub(super) fn counted_from(self, first: CompiledRuleId) -> CompiledRuleId {
        CompiledRuleId::from_raw(self.raw() - first.raw())
    }
}

impl From<RuleId> for CompiledRuleId {
    fn from(rule: RuleId) -> CompiledRuleId {
        CompiledRuleId::from_raw(rule.raw())
    }
}

/// As a node of the call graph.
impl From<CompiledRuleId> for u32 {
    fn from(rule: CompiledRuleId) -> u32 {
        rule.raw()
    }
}

/// Results of the analysis for one rule.
// Many fields: a record that the passes of the analysis fill in and everything else only reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RuleFacts {
    /// The start rule can call it, directly or indirectly.
    pub(super) reached: bool,
    /// The label of the rule, for traces.
    pub(crate) label: Option<Label>,
    /// The rule has attributes or counts, so that frames record its calls.
    pub(crate) tracked: bool,
    /// The rule is a unique key: see [`crate::ir::Attributes::unique_key`].
    pub(crate) unique_key: bool,
    /// Its texts are unlikely: see [`crate::ir::Attributes::unlikely`].
    pub(crate) unlikely: bool,
    /// It is a unique key without further attributes.
    pub(crate) only_unique_key: bool,
    /// It calls unique keys, directly or through auxiliary rules.
    pub(crate) has_unique_keys: bool,
    /// It, or a rule that it calls directly or indirectly, has a budget for which
    /// [`BudgetMeter::makes_items_interdependent`](super::BudgetMeter::makes_items_interdependent)
    /// holds.
    pub(crate) may_begin_interdependence: bool,
    /// It derives at least one finite text.
    pub(crate) productive: bool,
    /// It derives the empty string.
    pub(crate) nullable: bool,
    /// Whether its automaton is over bytes only.
    pub(crate) regularity: Regularity,
    /// Estimated number of automaton states.
    pub(crate) nodes: u32,
    /// Topological order of calls made before a byte is read: callers first. Rules of a
    /// left-recursive component share a rank.
    pub(crate) rank: u32,
    /// It can call itself before a byte is read.
    pub(crate) left_recursive: bool,
    /// Its strongly connected component in the call graph. Callees have smaller or equal numbers.
    pub(crate) component: u32,
}

/// Whether a rule is a regular language over bytes, without counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Regularity {
    /// It has calls, special tokens or counters.
    #[default]
    NotRegular,
    /// It is regular once small rules of the grammar are inlined, so that its expression is
    /// meaningful in this grammar only.
    WithInlinedRules,
    /// It is regular, and equal expressions of other grammars have the same automaton.
    SelfContained,
}
