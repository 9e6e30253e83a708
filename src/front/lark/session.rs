//! What all grammars of one text share: the grammar under construction, named grammars, schemas,
//! and budgets of nodes and states.

use std::ops::Range;

use super::ast::Spanned;
use super::{LarkOptions, NamedGrammar};
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::front::json_schema::{self, ValueStyle, ValueSyntax};
use crate::fsm::Dfa;
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::regular::{self, NotRegular};
use crate::ir::{Attributes, Expr, GrammarBuilder};
use crate::limits::Limits;
use crate::spec::json::Json;

/// Limit on the nodes of a whole text, as a multiple of [`Limits::nodes`].
const NODE_FACTOR: usize = 10;
/// Limit on the states of all automata of a text, as a multiple of [`Limits::automaton_states`].
const STATE_FACTOR: usize = 3;
/// Nodes charged per rule of a schema.
const NODES_PER_RULE: usize = 8;

/// State shared by all grammars of one text: nested and named ones.
pub(super) struct Session<'o> {
    pub(super) builder: GrammarBuilder,
    pub(super) diagnostics: Diagnostics,
    options: &'o LarkOptions,
    pub(super) limits: &'o Limits,
    /// Rules of the named grammars referred to so far.
    named: HashMap<&'o str, RuleId>,
    /// Named grammars still to be lowered: name, text, rule, first reference.
    pub(super) queue: Vec<(&'o str, &'o str, RuleId, Range<usize>)>,
    /// Rules of schemas, by schema text.
    schemas: HashMap<String, RuleId>,
    /// Whether the text that is lowered has errors of syntax. What is missing then is not reported:
    /// its definition may be what could not be read.
    pub(super) has_syntax_errors: bool,
    /// The automaton of all texts, built on demand.
    pub(super) any_text: Option<Dfa>,
    /// Remaining nodes: ranges of code points, token ids, chunks, rules of schemas.
    pub(super) nodes: usize,
    /// Remaining states of automata.
    states: usize,
}

impl<'o> Session<'o> {
    /// A session without rules.
    pub(super) fn new(
        diagnostics: Diagnostics,
        options: &'o LarkOptions,
        limits: &'o Limits,
    ) -> Self {
        Session {
            builder: GrammarBuilder::new(),
            has_syntax_errors: diagnostics.has_errors(),
            diagnostics,
            options,
            limits,
            named: HashMap::default(),
            queue: Vec::new(),
            schemas: HashMap::default(),
            any_text: None,
            nodes: limits.nodes.saturating_mul(NODE_FACTOR),
            states: limits.automaton_states.saturating_mul(STATE_FACTOR),
        }
    }

    /// Charges nodes; reports an error and returns `false` if none remain.
    pub(super) fn spend(&mut self, nodes: usize, span: &Range<usize>) -> bool {
        let enough = nodes <= self.nodes;
        self.nodes = self.nodes.saturating_sub(nodes);
        if !enough {
            let message = format!(
                "the grammar comes to more than {} nodes",
                self.limits.nodes.saturating_mul(NODE_FACTOR)
            );
            self.report(Diagnostic::error(span.clone(), message));
        }
        match fuel::spend(nodes) {
            Ok(()) => enough,
            Err(out) => {
                self.report(Diagnostic::error(span.clone(), out.to_string()));
                false
            }
        }
    }

    /// Limit on the states of the next automaton.
    pub(super) fn states(&self) -> usize {
        self.states.min(self.limits.automaton_states)
    }

    /// Charges the states of an automaton that was built, or the limit if it failed.
    pub(super) fn charge_states<T, E>(
        &mut self,
        result: Result<T, E>,
        limit: usize,
        states: impl Fn(&T) -> usize,
    ) -> Result<T, E> {
        // Small automata have a fixed cost.
        let spent = result.as_ref().map_or(limit, |value| states(value).saturating_add(8));
        self.states = self.states.saturating_sub(spent);
        result
    }

    /// The automaton of an expression of at most `most` states; charges its states.
    pub(super) fn automaton(&mut self, expr: &Expr, most: usize) -> Result<Dfa, NotRegular> {
        let limit = self.states().min(most);
        let dfa = regular::automaton(expr, self.builder.rules(), limit);
        self.charge_states(dfa, limit, Dfa::len)
    }

    /// A rule with these attributes.
    pub(super) fn rule_with(&mut self, name: &str, body: Expr, attributes: Attributes) -> Expr {
        let rule = self.builder.rule(name, body);
        *self.builder.attributes(rule) = attributes;
        Expr::Ref(rule)
    }

    /// Reports an error in an expression, which then derives nothing.
    pub(super) fn refuse(&mut self, span: Range<usize>, message: impl Into<String>) -> Expr {
        self.report(Diagnostic::error(span, message));
        Expr::Never
    }

    /// Reports a diagnostic, unless it was reported before.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let is_duplicate =
            |d: &Diagnostic| d.span == diagnostic.span && d.message == diagnostic.message;
        if !self.diagnostics.list().iter().any(is_duplicate) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Lowers a reference to a named grammar.
    pub(super) fn grammar_reference(&mut self, name: &str, span: &Range<usize>) -> Expr {
        if let Some(&rule) = self.named.get(name) {
            return Expr::Ref(rule);
        }
        let rule = match self.options.named.get_key_value(name) {
            None => {
                let known = self.options.named.keys();
                self.report(self.diagnostics.unknown_grammar(name, span, known));
                return Expr::Never;
            }
            Some((key, NamedGrammar::Grammar(grammar))) => {
                let rule = self.builder.import(grammar);
                self.named.insert(key, rule);
                rule
            }
            Some((key, NamedGrammar::Lark(text))) => {
                let rule = self.builder.declare(key.clone());
                self.named.insert(key, rule);
                self.queue.push((key, text, rule, span.clone()));
                rule
            }
        };
        Expr::Ref(rule)
    }

    /// Lowers a schema. Equal texts share a rule.
    pub(super) fn schema(&mut self, text: &Spanned<&str>) -> Expr {
        if let Some(&rule) = self.schemas.get(text.value) {
            return Expr::Ref(rule);
        }
        let rule = match Json::parse(text.value, self.limits) {
            Err(error) => {
                let message = format!("the schema is not JSON: {error}");
                return self.refuse(text.span.clone(), message);
            }
            Ok(schema) => {
                for warning in json_schema::warnings(&schema) {
                    let message = format!("the schema at {warning}");
                    self.report(Diagnostic::warning(text.span.clone(), message));
                }
                let before = self.builder.len();
                let rule = json_schema::lower_strict_into(
                    &mut self.builder,
                    &schema,
                    &self.options.schema,
                    self.limits,
                    &ValueStyle::Syntax(ValueSyntax::Json),
                );
                let nodes = (self.builder.len() - before).saturating_mul(NODES_PER_RULE);
                if !self.spend(nodes, &text.span) {
                    return Expr::Never;
                }
                rule
            }
        };
        match rule {
            Ok(rule) => {
                self.schemas.insert(text.value.to_owned(), rule);
                Expr::Ref(rule)
            }
            Err(errors) => {
                for error in errors.iter() {
                    let message = format!("the schema is refused at {error}");
                    self.report(Diagnostic::error(text.span.clone(), message).help(error.hint()));
                }
                Expr::Never
            }
        }
    }
}
