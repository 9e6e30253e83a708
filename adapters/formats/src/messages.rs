//! Turns that are rows of messages, each with a header of its own: reasoning, text beside calls, calls, the answer.

use louver::ids::RuleId;
use louver::ir::Expr;
use serde::{Deserialize, Serialize};

use crate::lower::Lowering;
use crate::marker::{Marker, Settle};
use crate::plan::Role;
use crate::request::{LowerError, Reasoning};

/// What stands between and beside the messages of a turn. Reasoning blocks, text and calls are messages: their `begin`
/// and `end` are headers and ends. Text with `text.begin` is the last message of a turn without calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagesFormat {
    /// Between two messages.
    pub separator: Marker,
    /// Text for the user beside calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<Block>,
}

/// A message of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Its header.
    pub begin: Marker,
    /// Its end.
    pub end: Marker,
}

impl MessagesFormat {
    pub(crate) fn bind(&mut self, how: Settle<'_>) {
        self.separator.bind(how);
        if let Some(block) = &mut self.preamble {
            block.begin.bind(how);
            block.end.bind(how);
        }
    }

    pub(crate) fn markers(&self) -> Vec<(&'static str, &Marker)> {
        let mut out = vec![("/messages/separator", &self.separator)];
        if let Some(block) = &self.preamble {
            out.extend([
                ("/messages/preamble/begin", &block.begin),
                ("/messages/preamble/end", &block.end),
            ]);
        }
        out
    }
}

impl Lowering<'_> {
    /// A turn of messages.
    pub(crate) fn messages(
        &mut self,
        format: &MessagesFormat,
        bodies: &[RuleId],
        response: Option<RuleId>,
    ) -> Result<Expr, LowerError> {
        let separator = self.marker(&format.separator);
        let reasoning = self.reasoning_message()?;
        let mut others = Vec::new();
        let calls = !bodies.is_empty();
        if let (Some(block), true) = (&format.preamble, calls || response.is_none()) {
            let (begin, rest) =
                (self.marker(&block.begin), self.text_until(&block.end, Role::Text));
            others.push(Expr::seq([begin, rest]));
        }
        // A budget holds for the turn: one block.
        let once = self.request.reasoning_budget.is_some();
        let anywhere =
            reasoning.clone().filter(|_| self.request.reasoning != Reasoning::Off && !once);
        let optional =
            reasoning.clone().filter(|_| self.request.reasoning == Reasoning::Optional && once);
        others.extend(anywhere);
        let more = Expr::star(Expr::seq([Expr::alt(others), separator.clone()]));
        let more = Expr::Ref(self.builder.rule("messages", more));
        let block = optional
            .map(|block| Expr::optional(Expr::seq([block, separator.clone(), more.clone()])));
        let last = self.last_message(bodies, response);
        let row = Expr::seq([more.clone(), block.unwrap_or(Expr::Empty), last]);
        let row = match self.most_calls() {
            // Behind a call, further messages and calls.
            most if calls && most != Some(1) => {
                let call = Expr::alt(bodies.iter().map(|body| Expr::Ref(*body)));
                let next = Expr::seq([separator.clone(), more, call]);
                Expr::seq([row, Expr::repeat(next, 0, most.map(|most| most - 1))])
            }
            _ => row,
        };
        Ok(match self.request.reasoning {
            Reasoning::Off | Reasoning::Optional => row,
            Reasoning::Required => Expr::seq([reasoning.unwrap_or(Expr::Empty), separator, row]),
            Reasoning::Opened => Expr::seq([self.opened_reasoning()?, separator, row]),
        })
    }

    fn last_message(&mut self, bodies: &[RuleId], response: Option<RuleId>) -> Expr {
        let mut last: Vec<Expr> = bodies.iter().map(|body| Expr::Ref(*body)).collect();
        if !self.forced()
            && let (Some(begin), Some(end)) = (&self.format.text.begin, &self.format.text.end)
        {
            let begin = self.marker(begin);
            let rest = match response {
                Some(response) => Expr::seq([Expr::Ref(response), self.marker(end)]),
                None => self.text_until(end, Role::Text),
            };
            last.push(Expr::seq([begin, rest]));
        }
        Expr::alt(last)
    }

    fn reasoning_message(&mut self) -> Result<Option<Expr>, LowerError> {
        let Some(format) = &self.format.reasoning else {
            return self.no_reasoning().map(|_| None);
        };
        let (begin, rest) = (self.marker(&format.begin), self.reasoning_inside(format)?);
        Ok(Some(Expr::seq([begin, rest])))
    }
}
