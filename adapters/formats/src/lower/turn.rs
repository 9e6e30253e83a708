//! The turn: reasoning, then text and calls, or the response, perhaps in a frame.

use louver::ir::Expr;

use super::Lowering;
use super::calls::any_rule;
use crate::format::{Marker, TextPlace};
use crate::request::{LowerError, Reasoning};

/// The highest bound on calls with text between them: the grammar has a rule for each call.
const MAX_COUNTED_CALLS: u32 = 64;

impl Lowering<'_> {
    /// The whole turn, without the stop token.
    pub(super) fn turn(&mut self) -> Result<Expr, LowerError> {
        if let Some(messages) = &self.format.messages {
            return self.messages(messages);
        }
        let reasoning = self.reasoning()?;
        let rest = self.after_reasoning()?;
        let end = self.optional_marker(self.format.end.as_ref());
        Ok(Expr::seq([reasoning, rest, end]))
    }

    /// The turn after reasoning, without the end marker.
    fn after_reasoning(&mut self) -> Result<Expr, LowerError> {
        let Some(frame) = &self.format.frame else { return self.text_calls_or_response() };
        self.frame_end = Some(&frame.end);
        let inside = self.text_calls_or_response()?;
        self.frame_end = None;
        let framed = Expr::seq([self.marker(&frame.begin), inside]);
        Ok(Expr::alt([self.text_calls_or_response()?, framed]))
    }

    /// What ends the turn after a call or a response: the end of the frame, in a frame.
    pub(crate) fn closing(&mut self) -> Expr {
        self.optional_marker(self.frame_end)
    }

    /// Text and calls, or the response, with the end of the frame.
    fn text_calls_or_response(&mut self) -> Result<Expr, LowerError> {
        if let (Some(begin), Some(end)) = (&self.format.text.begin, &self.format.text.end) {
            return Ok(self.marked_text_and_calls(begin, end));
        }
        let callable = !(self.calls.is_empty() && self.builtin_calls.is_empty());
        let whole = match self.response {
            _ if self.request.is_forced() => self.calls_alone(),
            Some(response) if callable => Expr::alt([self.calls_alone(), Expr::Ref(response)]),
            Some(response) => Expr::Ref(response),
            None if callable => return self.text_and_calls(),
            None => return Ok(self.text(None, None, None)),
        };
        Ok(Expr::seq([whole, self.closing()]))
    }

    /// Text between its markers, then calls; or one of the two, by the format's place of text. If
    /// the request has a response format, no text stands beside calls.
    fn marked_text_and_calls(&mut self, begin: &Marker, end: &Marker) -> Expr {
        let is_instead = self.format.text.place == TextPlace::InsteadOfCalls;
        let begin = match self.request.reasoning {
            // Without a reasoning block, the prompt may have opened the text.
            Reasoning::Off if !is_instead => Expr::optional(self.marker(begin)),
            _ => self.marker(begin),
        };
        let calls = if self.calls.is_empty() { Expr::Never } else { self.calls_alone() };
        let text = match self.request.response_format {
            Some(_) => self.marker(end),
            None => self.text_until(end),
        };
        let text = Expr::seq([begin.clone(), text]);
        let end = self.marker(end);
        let response = self.response.map(|rule| Expr::seq([begin, Expr::Ref(rule), end]));
        match (response, is_instead) {
            (_, true) if self.request.is_forced() => calls,
            (_, false) if self.request.is_forced() => Expr::seq([text, calls]),
            (Some(response), true) => Expr::alt([response, calls]),
            (Some(response), false) => Expr::alt([response, Expr::seq([text, calls])]),
            (None, true) => Expr::alt([text, calls]),
            (None, false) => Expr::seq([text, Expr::optional(calls)]),
        }
    }

    /// Text with calls in it or after it, or instead of it.
    fn text_and_calls(&mut self) -> Result<Expr, LowerError> {
        let place = self.format.text.place;
        if place == TextPlace::InsteadOfCalls {
            return Ok(Expr::alt([self.calls_alone(), self.text_instead_of_calls()?]));
        }
        let max = self.max_calls();
        let section = self.format.section.is_some();
        let Some(begin) = self.format.calls_begin_marker() else { return Ok(Expr::Never) };
        // After the marker: a section's calls, or one call.
        let calls = match section {
            true if !self.calls.is_empty() => {
                let calls = self.call_list(self.max_calls());
                self.section_rest(calls)
            }
            _ => any_rule(&self.calls),
        };
        match (place, max) {
            (TextPlace::Anywhere, None) => Ok(self.text(Some((begin, calls)), None, None)),
            (TextPlace::Anywhere, Some(max)) if max > 1 && !section => {
                if max > MAX_COUNTED_CALLS {
                    return Err(LowerError::TooManyCalls { max, limit: MAX_COUNTED_CALLS });
                }
                let (mut rest, mut lists) = (self.closing(), Vec::new());
                for _ in 0..max {
                    lists = self.counted_lists(&rest, &lists);
                    rest = self.text(Some((begin, calls.clone())), Some(rest), Some(&lists));
                }
                Ok(rest)
            }
            // A bound on calls is one for the turn, so that there is one section.
            _ => {
                let more = if section { Expr::Empty } else { self.more_calls(max) };
                let calls = Expr::seq([calls, more]);
                let closing = self.closing();
                Ok(self.text(Some((begin, calls)), Some(closing), None))
            }
        }
    }
}
