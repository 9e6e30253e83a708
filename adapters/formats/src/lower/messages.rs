//! Turns that are sequences of messages, as grammar.

use louver::ids::RuleId;
use louver::ir::Expr;

use super::Lowering;
use super::calls::{after_first, any_rule};
use crate::format::MessagesFormat;
use crate::request::{LowerError, Reasoning};

impl Lowering<'_> {
    /// The turn as a sequence of messages. If the request has a response format, the response is
    /// the only text: it ends the turn, and no text stands beside calls.
    pub(crate) fn messages(&mut self, format: &MessagesFormat) -> Result<Expr, LowerError> {
        let (calls, response) = (&*self.calls.clone(), self.response);
        let separator = self.marker(&format.separator);
        let inside = match &self.format.reasoning {
            Some(format) => Some((self.marker(&format.begin), self.reasoning_inside(format)?)),
            None => None,
        };
        let reasoning = inside.clone().map(|(begin, rest)| Expr::seq([begin, rest]));
        let is_free = self.request.response_format.is_none();
        let preamble = match &format.preamble {
            Some(block) if is_free => {
                let begin = self.marker(&block.begin);
                let (end, after) = match &block.end {
                    Some(end) => (end, separator.clone()),
                    None => (&format.separator, Expr::Empty),
                };
                Expr::seq([begin, self.text_until(end), after])
            }
            _ => Expr::Never,
        };
        // A budget is one for the turn, so that there is one block at most.
        let (mode, is_budgeted) = (self.request.reasoning, self.request.reasoning_budget.is_some());
        let block_if = |wanted: bool| reasoning.clone().filter(|_| wanted).unwrap_or(Expr::Never);
        let any_block = block_if(mode != Reasoning::Off && !is_budgeted);
        let one_block = block_if(mode == Reasoning::Optional && is_budgeted);
        let any_block = Expr::seq([any_block, separator.clone()]);
        let more = Expr::star(Expr::alt([preamble, any_block]));
        let more = Expr::Ref(self.builder.rule("messages", more));
        let one_block = Expr::optional(Expr::seq([one_block, separator.clone(), more.clone()]));
        let (call, text) = (any_rule(calls), self.text_message(response));
        let next_call = Expr::seq([separator.clone(), more.clone(), call.clone()]);
        let next_calls = after_first(next_call, self.max_calls());
        let messages = match is_free {
            true => Expr::seq([Expr::alt([call, text]), next_calls]),
            false => Expr::alt([Expr::seq([call, next_calls]), text]),
        };
        let messages = Expr::seq([more, one_block, messages]);
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

    /// The response or text, unless a call is forced.
    fn text_message(&mut self, response: Option<RuleId>) -> Expr {
        let Some(begin) = self.format.text.begin.as_ref().filter(|_| !self.request.is_forced())
        else {
            return Expr::Never;
        };
        let rest = match (response, &self.format.text.end) {
            (Some(response), end) => {
                Expr::seq([Expr::Ref(response), self.optional_marker(end.as_ref())])
            }
            (None, Some(end)) => self.text_until(end),
            (None, None) => self.text(None, None, None),
        };
        Expr::seq([self.marker(begin), rest])
    }
}
