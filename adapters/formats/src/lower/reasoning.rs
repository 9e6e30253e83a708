//! The reasoning block, of any length or within a budget.

use std::sync::Arc;

use louver::ir::{Budget, BudgetPolicy, Expr};

use super::Lowering;
use super::markers::is_single_character;
use super::raw::{RawContext, text_dfa};
use crate::format::ReasoningFormat;
use crate::lowered::SpanPhase;
use crate::request::{LowerError, Reasoning, ReasoningBudget};

impl Lowering<'_> {
    /// The block at the beginning of the turn, as the request wants it.
    pub(crate) fn reasoning(&mut self) -> Result<Expr, LowerError> {
        let Some(format) = &self.format.reasoning else { return Ok(Expr::Empty) };
        let mode = self.request.reasoning;
        let skipped = self.optional_marker(format.skipped.as_ref());
        if mode == Reasoning::Off {
            return Ok(Expr::optional(skipped));
        }
        let begin = match mode {
            Reasoning::Opened => Expr::Empty,
            _ => self.marker(&format.begin),
        };
        let block = Expr::seq([begin, self.reasoning_inside(format)?]);
        let is_optional = mode == Reasoning::Optional;
        Ok(if is_optional { Expr::optional(Expr::alt([block, skipped])) } else { block })
    }

    /// The block after its begin marker: text, end marker, and what follows the block.
    pub(crate) fn reasoning_inside(
        &mut self,
        format: &ReasoningFormat,
    ) -> Result<Expr, LowerError> {
        // The begin marker of a call cannot occur in the block.
        let begins = self.call_begin_texts();
        let begins = begins.iter().filter(|text| !is_single_character(text));
        let excludes: Vec<Vec<u8>> =
            format.excludes.iter().chain(begins).map(|text| text.as_bytes().to_vec()).collect();
        let inside = match self.request.reasoning_budget {
            None => {
                let ends = self.triggers_and_rests(&format.end);
                let inside = self.dispatch(ends, excludes);
                Expr::Ref(self.builder.labelled("reasoning", SpanPhase::Reasoning.label(), inside))
            }
            Some(budget) => self.budgeted_reasoning(format, excludes, budget)?,
        };
        Ok(Expr::seq([inside, Expr::text(&format.after)]))
    }

    /// Text within the budget, and the end marker. When the budget is spent, only the end marker
    /// can follow, whatever text of it was begun.
    fn budgeted_reasoning(
        &mut self,
        format: &ReasoningFormat,
        mut excludes: Vec<Vec<u8>>,
        budget: ReasoningBudget,
    ) -> Result<Expr, LowerError> {
        excludes.extend(format.end.plain_texts().into_iter().map(String::into_bytes));
        let end = self.marker(&format.end);
        let Some(budget) = Option::<Budget>::from(budget) else { return Ok(end) };
        // An automaton over whole code points: the budget does not cut inside of one.
        let context = RawContext { excludes, ..RawContext::default() };
        let text = text_dfa(&context, self.request.limits.automaton_states).map_err(|cause| {
            LowerError::TooLarge { what: "texts that reasoning must not contain", cause }
        })?;
        let text = Expr::Automaton(Arc::new(text));
        let text = self.builder.labelled("reasoning", SpanPhase::Reasoning.label(), text);
        self.builder.attributes(text).budget = Some(budget);
        Ok(Expr::seq([Expr::Ref(text), end]))
    }
}

impl From<ReasoningBudget> for Option<Budget> {
    /// `None` for a budget of zero.
    fn from(budget: ReasoningBudget) -> Self {
        let (tokens, chars) = match budget {
            ReasoningBudget::Tokens(tokens) => (Some(tokens), None),
            ReasoningBudget::Characters(chars) => (None, Some(chars)),
        };
        (tokens.or(chars) != Some(0)).then_some(Budget {
            tokens,
            chars,
            on_exhausted: BudgetPolicy::Cut,
        })
    }
}
