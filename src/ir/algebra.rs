//! Grammar algebra: union, concatenation and repetition, and the error of all operations.

use super::{Attributes, Expr, Grammar, GrammarBuilder, GrammarError, Rule};
use crate::fsm::TooLarge;
use crate::fuel::OutOfFuel;

/// Why an operation on grammars has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AlgebraError {
    /// The operation is not defined for what a rule has: a special token is not a byte, a dispatch
    /// searches whole texts, budgets and distinct values concern whole occurrences, and unique keys
    /// are compared as JSON strings, which an image is not.
    #[error("rule `{rule}` has {what}")]
    Undefined {
        /// The rule.
        rule: String,
        /// What it has.
        what: &'static str,
    },
    /// The result has more expressions than [`Limits::nodes`](crate::limits::Limits::nodes), or
    /// takes a hundred times as many steps.
    #[error("the result has more than {limit} expressions")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// An automaton inside grew past
    /// [`Limits::automaton_states`](crate::limits::Limits::automaton_states).
    #[error(transparent)]
    Automaton(#[from] TooLarge),
    /// The fuel was spent.
    #[error(transparent)]
    Fuel(#[from] OutOfFuel),
    /// The grammar is not well formed, or its expressions are nested too deeply.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}

impl AlgebraError {
    /// The error if operations are not defined for the attributes of a rule.
    pub(super) fn check_attributes(rule: &Rule) -> Result<(), AlgebraError> {
        let Attributes { budget, scope, element, .. } = &rule.attributes;
        let what = match budget {
            Some(_) => "a budget",
            None if *scope || *element => "distinct values",
            None => return Ok(()),
        };
        Err(AlgebraError::Undefined { rule: rule.name.clone(), what })
    }

    /// The error for an expression of a rule that operations are not defined for.
    pub(super) fn undefined_expr(rule: &Rule, expr: &Expr) -> AlgebraError {
        let what = match expr {
            Expr::Special(_) => "a special token, which is not a byte",
            Expr::Deferred(_) => "a deferred body",
            _ => "a tag dispatch",
        };
        AlgebraError::Undefined { rule: rule.name.clone(), what }
    }
}

impl Grammar {
    /// A grammar with a new start rule; `body` gets calls of the start rules of `parts`.
    fn with_start_rule(parts: &[&Grammar], body: impl FnOnce(Vec<Expr>) -> Expr) -> Grammar {
        let mut builder = GrammarBuilder::new();
        let start = builder.declare("root");
        let parts = parts.iter().map(|part| Expr::Ref(builder.import(part))).collect();
        builder.define(start, body(parts));
        builder.into_grammar(start)
    }

    /// Union of the languages; empty without parts. Cost: their size.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::front::regex;
    /// use louver::{Compiled, Grammar, Limits, Recognizer, RegexOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = Limits::default();
    /// let lower = |pattern| regex::lower(pattern, &RegexOptions::default(), &limits);
    /// let union = Grammar::union(&[&lower("[0-9]+")?, &lower("none")?]);
    /// let mut recognizer = Recognizer::new(Arc::new(Compiled::new(union, &limits)?));
    /// recognizer.push(b"none")?;
    /// assert!(recognizer.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn union(parts: &[&Grammar]) -> Grammar {
        Grammar::with_start_rule(parts, Expr::alt)
    }

    /// Concatenation of the languages; the empty text without parts. Cost: their size.
    pub fn concat(parts: &[&Grammar]) -> Grammar {
        Grammar::with_start_rule(parts, Expr::seq)
    }

    /// Kleene star. Cost: the grammar's size.
    pub fn star(&self) -> Grammar {
        self.repeat(0, None)
    }

    /// Union with the empty text. Cost: the grammar's size.
    pub fn optional(&self) -> Grammar {
        self.repeat(0, Some(1))
    }

    /// Repetition, `min..=max` times; empty if `min > max`. Cost: the grammar's size, independent
    /// of the bounds.
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Grammar {
        Grammar::with_start_rule(&[self], |mut parts| Expr::repeat(parts.remove(0), min, max))
    }
}
