//! Grammar construction, rule by rule, with forward references.

use super::{Attributes, Expr, Grammar, GrammarError, Rule, SpecialToken};
use crate::hash::IndexSet;
use crate::ids::{Label, RuleId, SpecialId};

/// A builder of grammars. Declare a rule first if another rule, or its own body, refers to it.
///
/// ```
/// use std::sync::Arc;
/// use louver::{Compiled, Expr, GrammarBuilder, Limits, Recognizer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut grammar = GrammarBuilder::new();
/// // list = "[" (list ("," list)*)? "]"
/// let list = grammar.declare("list");
/// let more = Expr::star(Expr::seq([Expr::text(","), Expr::Ref(list)]));
/// let items = Expr::optional(Expr::seq([Expr::Ref(list), more]));
/// grammar.define(list, Expr::seq([Expr::text("["), items, Expr::text("]")]));
/// let compiled = Arc::new(Compiled::new(grammar.finish(list)?, &Limits::default())?);
/// let mut recognizer = Recognizer::new(compiled);
/// recognizer.push(b"[[],[[]]]")?;
/// assert!(recognizer.is_complete());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct GrammarBuilder {
    rules: Vec<Rule>,
    specials: IndexSet<SpecialToken>,
}

impl GrammarBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule without a body; it derives nothing until it is defined.
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

    /// Adds a rule.
    pub fn rule(&mut self, name: impl Into<String>, body: Expr) -> RuleId {
        let id = self.declare(name);
        self.define(id, body);
        id
    }

    /// Adds a rule whose bytes carry a label in traces.
    pub fn labelled(&mut self, name: impl Into<String>, label: Label, body: Expr) -> RuleId {
        let id = self.rule(name, body);
        self.rules[id.index()].attributes.label = Some(label);
        id
    }

    /// The attributes of a rule.
    pub fn attributes(&mut self, rule: RuleId) -> &mut Attributes {
        &mut self.rules[rule.index()].attributes
    }

    /// The id of a special token, added on first use.
    pub fn special(&mut self, token: SpecialToken) -> SpecialId {
        SpecialId::new(self.specials.insert_full(token).0)
    }

    /// A builder without rules that has the same special tokens with the same ids.
    pub fn with_same_specials(&self) -> GrammarBuilder {
        GrammarBuilder { rules: Vec::new(), specials: self.specials.clone() }
    }

    /// The rules so far.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Keeps only the first `rules` rules.
    pub(crate) fn truncate(&mut self, rules: usize) {
        self.rules.truncate(rules);
    }

    /// The size of the rules from `first` on: nodes, bytes and edges of their expressions.
    pub(crate) fn size_from(&self, first: usize) -> usize {
        self.rules[first..].iter().map(|rule| 1 + rule.body.size()).sum()
    }

    /// Adds to the name of a rule, for messages.
    pub(crate) fn extend_name(&mut self, rule: RuleId, more: &str) {
        self.rules[rule.index()].name.push_str(more);
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
    ///
    /// ```
    /// use louver::front::regex;
    /// use louver::{Expr, GrammarBuilder, Limits, RegexOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let year = regex::lower("[0-9]{4}", &RegexOptions::default(), &Limits::default())?;
    /// let mut grammar = GrammarBuilder::new();
    /// let year = Expr::Ref(grammar.import(&year));
    /// let start = grammar.rule("start", Expr::seq([Expr::text("in "), year]));
    /// assert!(grammar.finish(start).is_ok());
    /// # Ok(())
    /// # }
    /// ```
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

    /// The grammar, without validation: for callers that add only valid references.
    pub(crate) fn into_grammar(self, start: RuleId) -> Grammar {
        Grammar { rules: self.rules, start, specials: self.specials.into_iter().collect() }
    }

    /// The grammar.
    ///
    /// # Errors
    ///
    /// If a reference has no target.
    pub fn finish(self, start: RuleId) -> Result<Grammar, GrammarError> {
        let grammar = self.into_grammar(start);
        grammar.validate()?;
        Ok(grammar)
    }
}
