//! Turns that are sequences of messages, as grammar.

use louver::ids::RuleId;
use louver::ir::Expr;

use super::Lowering;
use super::calls::{after_first, any_rule};
use crate::format::MessagesFormat;
use crate::request::{LowerError, Reasoning};

impl Lowering<'_> {
    /// The turn as a sequence of messages.
    pub(crate) fn messages(&mut self, format: &MessagesFormat) -> Result<Expr, LowerError> {
        let (calls, response) = (&*self.calls.clone(), self.response);
        let separator = self.marker(&format.separator);
        let inside = match &self.format.reasoning {
            Some(format) => Some((self.marker(&format.begin), self.reasoning_inside(format)?)),
            None => None,
        };
        let reasoning = inside.clone().map(|(begin, rest)| Expr::seq([begin, rest]));
        let has_calls = !calls.is_empty();
        let preamble = match &format.preamble {
            Some(block) if has_calls || response.is_none() => {
                let begin = self.marker(&block.begin);
                Expr::seq([begin, self.text_until(&block.end)])
            }
            _ => Expr::Never,
        };
        // A budget is one for the turn, so that there is one block at most.
        let (mode, is_budgeted) = (self.request.reasoning, self.request.reasoning_budget.is_some());
        let block_if = |wanted: bool| reasoning.clone().filter(|_| wanted).unwrap_or(Expr::Never);
        let any_block = block_if(mode != Reasoning::Off && !is_budgeted);
        let one_block = block_if(mode == Reasoning::Optional && is_budgeted);
        let more = Expr::star(Expr::seq([Expr::alt([preamble, any_block]), separator.clone()]));
        let more = Expr::Ref(self.builder.rule("messages", more));
        let one_block = Expr::optional(Expr::seq([one_block, separator.clone(), more.clone()]));
        let last = self.last_message(calls, response);
        let mut messages = Expr::seq([more.clone(), one_block, last]);
        if has_calls {
            let next = Expr::seq([separator.clone(), more, any_rule(calls)]);
            messages = Expr::seq([messages, after_first(next, self.max_calls())]);
        }
        Ok(match self.request.reasoning {
            Reasoning::Off | Reasoning::Optional => messages,
            Reasoning::Required => {
                Expr::seq([reasoning.unwrap_or(Expr::Empty), separator, messages])
            }
            Reasoning::Opened => {
                let rest = inside.map_or(Expr::Empty, |(_, rest)| rest);
                Expr::seq([rest, separator, messages])
            }
        })
    }

    /// A call, the response, or text.
    fn last_message(&mut self, calls: &[RuleId], response: Option<RuleId>) -> Expr {
        let mut last = vec![any_rule(calls)];
        if !self.request.is_forced()
            && let (Some(begin), Some(end)) = (&self.format.text.begin, &self.format.text.end)
        {
            let begin = self.marker(begin);
            let rest = match response {
                Some(response) => Expr::seq([Expr::Ref(response), self.marker(end)]),
                None => self.text_until(end),
            };
            last.push(Expr::seq([begin, rest]));
        }
        Expr::alt(last)
    }
}
