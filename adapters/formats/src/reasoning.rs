//! The reasoning block, of any length or within a budget.

use std::sync::Arc;

use louver::ir::{Budget, Expr, Spent};

use crate::format::ReasoningFormat;
use crate::lower::Lowering;
use crate::plan::Role;
use crate::raw::text_without;
use crate::request::{LowerError, Reasoning, ReasoningBudget};

impl Lowering<'_> {
    pub(crate) fn no_reasoning(&self) -> Result<Expr, LowerError> {
        match self.request.reasoning {
            Reasoning::Optional | Reasoning::Off => Ok(Expr::Empty),
            Reasoning::Required | Reasoning::Opened => {
                Err(LowerError::NoReasoning { format: self.format.name.clone() })
            }
        }
    }

    /// The block at the beginning of the turn, as the request wants it.
    pub(crate) fn reasoning(&mut self) -> Result<Expr, LowerError> {
        let Some(format) = &self.format.reasoning else {
            return self.no_reasoning();
        };
        Ok(match self.request.reasoning {
            Reasoning::Off => Expr::Empty,
            Reasoning::Opened => self.reasoning_inside(format)?,
            Reasoning::Required => {
                Expr::seq([self.marker(&format.begin), self.reasoning_inside(format)?])
            }
            Reasoning::Optional => Expr::optional(Expr::seq([
                self.marker(&format.begin),
                self.reasoning_inside(format)?,
            ])),
        })
    }

    pub(crate) fn opened_reasoning(&mut self) -> Result<Expr, LowerError> {
        match &self.format.reasoning {
            Some(format) => self.reasoning_inside(format),
            None => self.no_reasoning(),
        }
    }

    /// Behind the begin marker: text, the end marker, what stands behind it.
    pub(crate) fn reasoning_inside(
        &mut self,
        format: &ReasoningFormat,
    ) -> Result<Expr, LowerError> {
        // What begins a call closes the block first.
        let begins = self.sure_begins();
        let mut excludes: Vec<Vec<u8>> = format
            .excludes
            .iter()
            .chain(begins.iter().filter(|text| text.len() > 1))
            .map(|e| e.as_bytes().to_vec())
            .collect();
        let label = Role::Reasoning.label();
        let inside = match self.request.reasoning_budget {
            None => {
                let ends = self.heads(&format.end);
                let inside = self.dispatch(ends, excludes);
                Expr::Ref(self.builder.labelled("reasoning", label, inside))
            }
            Some(budget) => {
                // The text ends where its budget does, whatever it has begun, and only the end marker can follow.
                for head in format.end.text_heads() {
                    excludes.push(head.into_bytes());
                }
                let end = self.marker(&format.end);
                match Option::<Budget>::from(budget) {
                    None => end,
                    budget => {
                        // Whole code points, so that it is not cut inside of one.
                        let text =
                            match text_without(&excludes, self.request.limits.automaton_states) {
                                Ok(dfa) => Expr::Automaton(Arc::new(dfa)),
                                Err(cause) => {
                                    return Err(LowerError::TooLarge {
                                        what: "what reasoning excludes",
                                        cause,
                                    });
                                }
                            };
                        let text = self.builder.labelled("reasoning", label, text);
                        self.builder.attributes(text).budget = budget;
                        Expr::seq([Expr::Ref(text), end])
                    }
                }
            }
        };
        Ok(Expr::seq([inside, Expr::text(&format.after)]))
    }
}

impl From<ReasoningBudget> for Option<Budget> {
    /// Nothing where there is nothing to spend.
    fn from(budget: ReasoningBudget) -> Self {
        let (tokens, chars) = match budget {
            ReasoningBudget::Tokens(tokens) => (Some(tokens), None),
            ReasoningBudget::Characters(chars) => (None, Some(chars)),
        };
        (tokens.or(chars) != Some(0)).then_some(Budget { tokens, chars, spent: Spent::Cut })
    }
}
