//! Deferred grammars: appended to the program when a parse first calls their rule.
//!
//! The rules of a deferred grammar get ids after all existing ones. Ids, ranks and states that
//! exist already do not change; byte classes are refined.

use std::sync::Arc;

use super::Program;
use crate::compile::byte_classes::ByteClasses;
use crate::compile::live_nfa::LiveNfa;
use crate::compile::rule_nfa::{EdgeSymbol, RuleNfa};
use crate::compile::{Compiled, CompiledRuleId, RuleFacts};
use crate::fsm::Nfa;
use crate::ir::Expr;

/// The deferred grammars of a program.
#[derive(Debug, Default)]
pub(super) struct AppendedGrammars {
    /// In order of their first rule.
    grammars: Vec<DeferredGrammar>,
    /// Analysis results of their rules.
    facts: Vec<RuleFacts>,
    /// A deferred body could not be made.
    has_failed: bool,
}

/// An appended deferred grammar.
#[derive(Clone, Debug)]
struct DeferredGrammar {
    compiled: Arc<Compiled>,
    /// Program id of its first rule.
    first: CompiledRuleId,
}

/// A rule of a program, within its own grammar.
#[derive(Clone, Copy, Debug)]
pub(in crate::compile) struct LocalRule<'p> {
    pub(in crate::compile) grammar: &'p Arc<Compiled>,
    /// Program id of the grammar's first rule.
    pub(in crate::compile) first: CompiledRuleId,
    /// Its id in the grammar.
    pub(in crate::compile) rule: CompiledRuleId,
}

impl Program {
    /// Analysis results of a rule.
    #[inline]
    pub(crate) fn facts(&self, rule: CompiledRuleId) -> &RuleFacts {
        let static_facts = &self.compiled.rules;
        static_facts
            .get(rule.index())
            .unwrap_or_else(|| &self.appended.facts[rule.index() - static_facts.len()])
    }

    /// Analysis results of a rule; `None` for [`CompiledRuleId::NONE`].
    pub(crate) fn facts_of(&self, rule: CompiledRuleId) -> Option<&RuleFacts> {
        let static_facts = &self.compiled.rules;
        static_facts
            .get(rule.index())
            .or_else(|| self.appended.facts.get(rule.index().checked_sub(static_facts.len())?))
    }

    /// Number of rules, appended ones included.
    pub(crate) fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// A rule within its own grammar.
    pub(in crate::compile) fn local_rule(&self, rule: CompiledRuleId) -> LocalRule<'_> {
        let at = self.appended.grammars.partition_point(|module| module.first <= rule);
        let (grammar, first) = match at.checked_sub(1).map(|at| &self.appended.grammars[at]) {
            None => (&self.compiled, CompiledRuleId::from_raw(0)),
            Some(module) => (&module.compiled, module.first),
        };
        LocalRule { grammar, first, rule: rule.counted_from(first) }
    }

    /// The serial of a rule's deferred body, if it has one.
    pub(crate) fn deferred(&self, rule: CompiledRuleId) -> Option<u64> {
        match &self.compiled.split_grammar.rules.get(rule.index())?.body {
            Expr::Deferred(deferred) => Some(deferred.serial()),
            _ => None,
        }
    }

    /// The byte classes of all rules so far.
    #[inline]
    pub(crate) fn classes(&self) -> &Arc<ByteClasses> {
        &self.classes
    }

    /// Whether a deferred body could not be made. Its rule then derives nothing, so that
    /// configurations may be dead ends.
    pub(crate) fn has_unbuildable_rules(&self) -> bool {
        self.appended.has_failed
    }

    /// The automaton of a rule with a deferred body: a call of the deferred grammar's start rule.
    pub(super) fn deferred_rule_nfa(&mut self, rule: CompiledRuleId) -> RuleNfa {
        let start = self.append_deferred(rule);
        self.appended.has_failed |= start.is_none();
        let mut nfa = Nfa::new();
        let (begin, end) = (nfa.state(), nfa.state());
        nfa.set_final(end);
        if let Some(start) = start {
            let symbol = EdgeSymbol::Call(start).encode();
            nfa.edge(begin, symbol, symbol, end);
        }
        RuleNfa { main: LiveNfa::new(nfa), ..RuleNfa::default() }
    }

    /// Appends the deferred grammar of `rule`; returns the program id of its start rule, or `None`
    /// if it could not be made.
    fn append_deferred(&mut self, rule: CompiledRuleId) -> Option<CompiledRuleId> {
        let compiled = self.compiled.deferred_grammar(rule)?.clone();
        let first = CompiledRuleId::new(self.rules.len());
        let existing = self.compiled.rules.iter().chain(&self.appended.facts);
        let (rank, component) =
            existing.fold((0, 0), |(r, c), facts| (r.max(facts.rank), c.max(facts.component)));
        self.appended.facts.extend(compiled.rules.iter().map(|facts| RuleFacts {
            // Callers rank before callees, so all ranks lie after the existing ones.
            rank: facts.rank + rank + 1,
            component: facts.component + component + 1,
            ..*facts
        }));
        self.rules.resize(self.rules.len() + compiled.rules.len(), None);
        if let Some(classes) = self.classes.refined_by(&compiled.classes) {
            self.classes = Arc::new(classes);
        }
        let start = compiled.start.appended_from(first);
        self.appended.grammars.push(DeferredGrammar { compiled, first });
        Some(start)
    }
}
