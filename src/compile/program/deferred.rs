//! What is deferred in a grammar joins the program when a parse gets to it: rules are numbered behind those that are
//! known, and nothing that was found out before changes.

use std::sync::Arc;

use super::{Program, RuleEntry};
use crate::compile::Compiled;
use crate::compile::analysis::RuleFacts;
use crate::compile::byte_classes::ByteClasses;
use crate::compile::rule_nfa::{EdgeSymbol, LiveNfa, RuleNfa};
use crate::fsm::Nfa;
use crate::ir::Expr;

/// A grammar that has joined.
#[derive(Clone, Debug)]
pub(super) struct DeferredGrammar {
    compiled: Arc<Compiled>,
    /// The number of its first rule here.
    from: u32,
}

impl Program {
    /// What is known of a rule that a parse has got to.
    #[inline]
    pub(crate) fn facts(&self, rule: u32) -> &RuleFacts {
        let own = &self.compiled.rules;
        own.get(rule as usize).unwrap_or_else(|| &self.deferred_facts[rule as usize - own.len()])
    }

    /// The same; none where there is no such rule.
    pub(super) fn facts_of(&self, rule: u32) -> Option<&RuleFacts> {
        let own = &self.compiled.rules;
        own.get(rule as usize)
            .or_else(|| self.deferred_facts.get((rule as usize).checked_sub(own.len())?))
    }

    /// Rules that have numbers so far.
    pub(crate) fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// The grammar that a rule is of, and the number of that grammar's first rule.
    pub(in crate::compile) fn grammar_of_rule(&self, rule: u32) -> (&Arc<Compiled>, u32) {
        let at = self.deferred_grammars.partition_point(|module| module.from <= rule);
        match at.checked_sub(1) {
            None => (&self.compiled, 0),
            Some(at) => (&self.deferred_grammars[at].compiled, self.deferred_grammars[at].from),
        }
    }

    /// What names the deferred body of a rule, if it has one.
    pub(crate) fn deferred(&self, rule: u32) -> Option<u64> {
        match &self.compiled.parsed.rules.get(rule as usize)?.body {
            Expr::Deferred(deferred) => Some(deferred.serial()),
            _ => None,
        }
    }

    /// Bytes that nothing that is known tells apart.
    #[inline]
    pub(crate) fn classes(&self) -> &Arc<ByteClasses> {
        &self.classes
    }

    /// Whether something deferred could not be made: then its rule derives nothing, which nobody has accounted for.
    pub(crate) fn lacks_rules(&self) -> bool {
        self.lacks_rules
    }

    /// The automaton of a rule whose body is deferred: a call of what is made of it.
    pub(super) fn deferred_rule_nfa(&mut self, rule: u32) -> RuleNfa {
        let start = self.append_deferred(rule);
        self.lacks_rules |= start.is_none();
        let mut nfa = Nfa::new();
        let (begin, end) = (nfa.state(), nfa.state());
        nfa.set_final(end);
        if let Some(start) = start {
            let symbol = EdgeSymbol::Call(start).encode();
            nfa.edge(begin, symbol, symbol, end);
        }
        RuleNfa { main: LiveNfa::new(nfa), ..RuleNfa::default() }
    }

    /// Gives numbers to the rules of what is deferred; the number of its first one.
    fn append_deferred(&mut self, rule: u32) -> Option<u32> {
        let compiled = self.compiled.deferred_grammar(rule)?.clone();
        let from = self.rules.len() as u32;
        let known = self.compiled.rules.iter().chain(&self.deferred_facts);
        let (rank, component) =
            known.fold((0, 0), |(r, c), facts| (r.max(facts.rank), c.max(facts.component)));
        self.deferred_facts.extend(compiled.rules.iter().map(|facts| RuleFacts {
            // Callers come first.
            rank: facts.rank + rank + 1,
            component: facts.component + component + 1,
            ..*facts
        }));
        self.rules.resize(self.rules.len() + compiled.rules.len(), RuleEntry::default());
        if let Some(classes) = self.classes.refined_by(&compiled.classes) {
            self.classes = Arc::new(classes);
        }
        let start = from + compiled.start;
        self.deferred_grammars.push(DeferredGrammar { compiled, from });
        Some(start)
    }
}
