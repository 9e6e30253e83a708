//! What is deferred in a grammar joins the program when a parse gets to it: rules are numbered behind those that are
//! known, and nothing that was found out before changes.

use std::sync::Arc;

use super::{Opened, Program};
use crate::compile::Compiled;
use crate::compile::classes::Classes;
use crate::compile::facts::RuleFacts;
use crate::compile::units::{Part, Symbol, Unit};
use crate::fsm::Nfa;
use crate::ir::Expr;

/// A grammar that has joined.
#[derive(Clone, Debug)]
pub(super) struct Module {
    compiled: Arc<Compiled>,
    /// The number of its first rule here.
    from: u32,
}

impl Program {
    /// What is known of a rule that a parse has got to.
    #[inline]
    pub(crate) fn facts(&self, rule: u32) -> &RuleFacts {
        let own = &self.compiled.rules;
        own.get(rule as usize).unwrap_or_else(|| &self.joined[rule as usize - own.len()])
    }

    /// The same; none where there is no such rule.
    pub(super) fn facts_of(&self, rule: u32) -> Option<&RuleFacts> {
        let own = &self.compiled.rules;
        own.get(rule as usize).or_else(|| self.joined.get((rule as usize).checked_sub(own.len())?))
    }

    /// Rules that have numbers so far.
    pub(crate) fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// The grammar that a rule is of, and the number of that grammar's first rule.
    pub(in crate::compile) fn home(&self, rule: u32) -> (&Arc<Compiled>, u32) {
        let at = self.modules.partition_point(|module| module.from <= rule);
        match at.checked_sub(1) {
            None => (&self.compiled, 0),
            Some(at) => (&self.modules[at].compiled, self.modules[at].from),
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
    pub(crate) fn classes(&self) -> &Arc<Classes> {
        &self.classes
    }

    /// Whether something deferred could not be made: then its rule derives nothing, which nobody has accounted for.
    pub(crate) fn lacks_rules(&self) -> bool {
        self.lacks_rules
    }

    /// The automaton of a rule whose body is deferred: a call of what is made of it.
    pub(super) fn joining(&mut self, rule: u32) -> Unit {
        let start = self.join(rule);
        self.lacks_rules |= start.is_none();
        let mut nfa = Nfa::new();
        let (begin, end) = (nfa.state(), nfa.state());
        nfa.set_final(end);
        if let Some(start) = start {
            let symbol = Symbol::Call(start).encode();
            nfa.edge(begin, symbol, symbol, end);
        }
        Unit { main: Part::new(nfa), ..Unit::default() }
    }

    /// Gives numbers to the rules of what is deferred; the number of its first one.
    fn join(&mut self, rule: u32) -> Option<u32> {
        let compiled = self.compiled.module(rule)?.clone();
        let from = self.rules.len() as u32;
        let known = self.compiled.rules.iter().chain(&self.joined);
        let (rank, component) =
            known.fold((0, 0), |(r, c), facts| (r.max(facts.rank), c.max(facts.component)));
        self.joined.extend(compiled.rules.iter().map(|facts| RuleFacts {
            // Callers come first.
            rank: facts.rank + rank + 1,
            component: facts.component + component + 1,
            ..*facts
        }));
        self.rules.resize(self.rules.len() + compiled.rules.len(), Opened::default());
        if let Some(classes) = self.classes.with(&compiled.classes) {
            self.classes = Arc::new(classes);
        }
        let start = from + compiled.start;
        self.modules.push(Module { compiled, from });
        Some(start)
    }
}
