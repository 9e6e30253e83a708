//! Addition of tags to the dispatch of an existing grammar.

use super::{Dispatch, Expr, Grammar, GrammarBuilder, GrammarError, SpecialToken, Trigger};
use crate::hash::HashSet;
use crate::ids::RuleId;

/// A trigger whose special token may be new to the grammar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NewTrigger {
    /// These bytes.
    Text(Vec<u8>),
    /// This special token.
    Special(SpecialToken),
    /// These bytes, directly followed by this special token.
    Led(Vec<u8>, SpecialToken),
}

/// An error of [`Grammar::with_tags`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TagsError {
    /// The rule's body does not have exactly one dispatch.
    #[error("rule `{rule}` has {found} dispatches; tags can be added to one")]
    NotOne {
        /// The rule.
        rule: String,
        /// Number of dispatches.
        found: usize,
    },
    /// The resulting grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}

impl Grammar {
    /// The rules whose bodies contain a dispatch.
    pub fn dispatch_rules(&self) -> impl Iterator<Item = RuleId> + '_ {
        let has = |expr: &Expr| visit_dispatches(&mut expr.clone(), &mut |_| {}) > 0;
        self.rules
            .iter()
            .enumerate()
            .filter(move |(_, rule)| has(&rule.body))
            .map(|(id, _)| RuleId::new(id))
    }

    /// The grammar with further tags in the dispatch of `rule`: each trigger is followed by a
    /// sentence of its grammar. Rule ids do not change. Cost: the size of all grammars.
    pub fn with_tags(
        &self,
        rule: RuleId,
        tags: &[(NewTrigger, Grammar)],
    ) -> Result<Grammar, TagsError> {
        self.validate()?;
        let mut builder = GrammarBuilder::new();
        let start = builder.import(self);
        let mut new = Vec::with_capacity(tags.len());
        for (trigger, body) in tags {
            let trigger = match trigger {
                NewTrigger::Text(text) => Trigger::Text(text.clone()),
                NewTrigger::Special(token) => Trigger::Special(builder.special(token.clone())),
                NewTrigger::Led(text, token) => {
                    Trigger::Led(text.clone(), builder.special(token.clone()))
                }
            };
            body.validate()?;
            new.push((trigger, builder.import(body)));
        }
        let name =
            self.rules.get(rule.index()).map_or_else(|| format!("?{rule}"), |r| r.name.clone());
        let mut grammar = builder.finish(start)?;
        let found = grammar.rules.get_mut(rule.index()).map_or(0, |r| {
            visit_dispatches(&mut r.body, &mut |dispatch| dispatch.tags.extend(new.iter().cloned()))
        });
        if found != 1 {
            return Err(TagsError::NotOne { rule: name, found });
        }
        grammar.validate()?;
        Ok(grammar)
    }
}

impl Dispatch {
    /// Total bytes of triggers, stops and excludes, each trigger counted once; bounded by
    /// [`dispatch_bytes`](crate::limits::Limits::dispatch_bytes).
    pub fn bytes(&self) -> usize {
        let mut seen: HashSet<&Trigger> = HashSet::default();
        let tags =
            self.tags.iter().map(|(trigger, _)| trigger).filter(|trigger| seen.insert(trigger));
        let texts = tags.chain(&self.stops).map(|trigger| match trigger {
            Trigger::Text(text) | Trigger::Led(text, _) => text.len(),
            Trigger::Special(_) => 0,
        });
        texts.chain(self.excludes.iter().map(Vec::len)).sum()
    }
}

/// Visits the dispatches of an expression; returns their number.
fn visit_dispatches(expr: &mut Expr, visit: &mut dyn FnMut(&mut Dispatch)) -> usize {
    if let Expr::Dispatch(dispatch) = expr {
        visit(dispatch);
        return 1;
    }
    expr.children_mut().map(|part| visit_dispatches(part, visit)).sum()
}
