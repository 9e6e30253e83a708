//! Building a grammar rule by rule, with forward references.

use super::{Attributes, Expr, Grammar, GrammarError, Rule, SpecialToken};
use crate::ids::{Label, RuleId, SpecialId};

/// Collects rules. Declare first where a rule refers to itself or to a later one.
#[derive(Clone, Debug, Default)]
pub struct GrammarBuilder {
    rules: Vec<Rule>,
    specials: Vec<SpecialToken>,
}

impl GrammarBuilder {
    /// No rules yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves a rule to be defined later; until then it derives nothing.
    pub fn declare(&mut self, name: impl Into<String>) -> RuleId {
        let id = RuleId::new(self.rules.len());
        self.rules.push(Rule {
            name: name.into(),
            body: Expr::Never,
            attributes: Attributes::default(),
        });
        id
    }

    /// Gives a declared rule its body.
    pub fn define(&mut self, rule: RuleId, body: Expr) {
        self.rules[rule.index()].body = body;
    }

    /// Declares and defines.
    pub fn rule(&mut self, name: impl Into<String>, body: Expr) -> RuleId {
        let id = self.declare(name);
        self.define(id, body);
        id
    }

    /// Declares and defines a rule whose bytes carry a label in traces.
    pub fn labelled(&mut self, name: impl Into<String>, label: Label, body: Expr) -> RuleId {
        let id = self.rule(name, body);
        self.rules[id.index()].attributes.label = Some(label);
        id
    }

    /// What else holds of a rule.
    pub fn attributes(&mut self, rule: RuleId) -> &mut Attributes {
        &mut self.rules[rule.index()].attributes
    }

    /// The id of a special token, added on first use.
    pub fn special(&mut self, token: SpecialToken) -> SpecialId {
        let index = self.specials.iter().position(|t| *t == token).unwrap_or_else(|| {
            self.specials.push(token);
            self.specials.len() - 1
        });
        SpecialId::new(index)
    }

    /// The rules so far; declared ones derive nothing yet.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Only the first rules.
    pub(crate) fn truncate(&mut self, rules: usize) {
        self.rules.truncate(rules);
    }

    /// Number of rules so far.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is no rule yet.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Copies another grammar's rules in and returns its start rule's new id. Cost: its size.
    pub fn import(&mut self, grammar: &Grammar) -> RuleId {
        let offset = self.rules.len();
        let specials: Vec<SpecialId> =
            grammar.specials.iter().map(|t| self.special(t.clone())).collect();
        for rule in &grammar.rules {
            let mut body = rule.body.clone();
            body.remap(&|r| RuleId::new(r.index() + offset), &|s| specials[s.index()]);
            self.rules.push(Rule {
                name: rule.name.clone(),
                body,
                attributes: rule.attributes.clone(),
            });
        }
        RuleId::new(grammar.start.index() + offset)
    }

    /// The finished grammar, for those who know that its references lead somewhere.
    pub(crate) fn into_grammar(self, start: RuleId) -> Grammar {
        Grammar { rules: self.rules, start, specials: self.specials }
    }

    /// The finished grammar. Fails if a reference points nowhere.
    pub fn finish(self, start: RuleId) -> Result<Grammar, GrammarError> {
        let grammar = self.into_grammar(start);
        grammar.validate()?;
        Ok(grammar)
    }
}
