//! Free text: where it ends, what it excludes, and what tells it from calls.

use louver::ids::RuleId;
use louver::ir::{AfterTag, Dispatch, DispatchEnd, Expr, Trigger};

use crate::lower::Lowering;
use crate::marker::Marker;
use crate::plan::Role;
use crate::request::LowerError;
use crate::spelling::{Spelled, Text};

impl Lowering<'_> {
    /// Text up to one of the ends, which is part of it.
    pub(crate) fn dispatch(&mut self, ends: Vec<(Trigger, Expr)>, excludes: Vec<Vec<u8>>) -> Expr {
        let mut dispatch = Dispatch {
            tags: Vec::new(),
            stops: Vec::new(),
            excludes,
            after: AfterTag::End,
            end: DispatchEnd::AtStop,
        };
        for (trigger, rest) in ends {
            if rest == Expr::Empty {
                dispatch.stops.push(trigger);
            } else {
                let rest = self.builder.labelled("end", Role::Marker.label(), rest);
                dispatch.tags.push((trigger, rest));
            }
        }
        Expr::Dispatch(Box::new(dispatch))
    }

    /// Framed text behind its begin marker, with its end. A stop string ends it too.
    pub(crate) fn text_until(&mut self, end: &Marker, role: Role) -> Expr {
        let mut ends = self.heads(end);
        for stop in &self.request.stop {
            let end = self.marker(end);
            ends.push((Trigger::Text(stop.as_bytes().to_vec()), end));
        }
        let excludes = self.text_excludes();
        let body = self.dispatch(ends, excludes);
        Expr::Ref(self.builder.labelled("text", role.label(), body))
    }

    fn text_excludes(&self) -> Vec<Vec<u8>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        for text in self.format.text.excludes.iter().chain(&self.request.bans) {
            if !out.iter().any(|e| e == text.as_bytes()) {
                out.push(text.as_bytes().to_vec());
            }
        }
        out
    }

    /// Free text in a turn that is text or calls. Where calls begin with a single character, text
    /// begins with another.
    pub(crate) fn text_instead_of_calls(&mut self) -> Result<Expr, LowerError> {
        let next = self.most_calls().map(|_| self.closing());
        let free = self.text(None, next.clone());
        if !self.sure_begins().iter().any(|begin| begin.chars().count() == 1) {
            return Ok(free);
        }
        // Everything that free text watches for is told from text here, as it may stand at the
        // beginning.
        let first = self.clean(&self.watched(), Text::First)?;
        let first =
            self.builder.labelled("first of text", Role::Text.label(), Expr::Automaton(first));
        let mut starts = vec![Expr::seq([Expr::Ref(first), free.clone()])];
        for (trigger, rule) in self.spelled_tags(next.as_ref().unwrap_or(&free), &free) {
            starts.push(Expr::seq([self.fired(&trigger), Expr::Ref(rule)]));
        }
        Ok(Expr::optional(Expr::alt(starts)))
    }

    fn fired(&mut self, trigger: &Trigger) -> Expr {
        match trigger {
            Trigger::Text(text) => Expr::bytes(text),
            Trigger::Special(special) => Expr::Special(*special),
            Trigger::Led(text, special) => Expr::seq([Expr::bytes(text), Expr::Special(*special)]),
        }
    }

    /// Free text. `calls`: what opens calls in it, and they themselves; `next`: what follows them,
    /// or else text again. In a frame it ends with that.
    pub(crate) fn text(&mut self, calls: Option<(&Marker, Expr)>, next: Option<Expr>) -> Expr {
        let text = self.builder.declare("text");
        let again = next.is_none() || self.most_calls().is_none();
        // What ends the turn is no way back to text.
        let loops = next.is_none() && self.own.is_empty() && self.frame_end.is_none();
        let back = if loops { Expr::Empty } else { Expr::Ref(text) };
        let next = next.unwrap_or_else(|| back.clone());
        let mut tags = match calls {
            Some((begin, calls)) => self.tags(begin, &calls, &next),
            None => Vec::new(),
        };
        let behind = if again { &back } else { &next };
        tags.extend(self.spelled_tags(behind, &back));
        let body = self.text_body(tags, if loops { AfterTag::Loop } else { AfterTag::End });
        self.builder.define(text, body);
        self.builder.attributes(text).label = Some(Role::Text.label());
        Expr::Ref(text)
    }

    /// Tags of the other spellings: of calls, which `next` follows, and of beginnings that are
    /// text, which `text` follows.
    fn spelled_tags(&mut self, next: &Expr, text: &Expr) -> Vec<(Trigger, RuleId)> {
        let format = self.format;
        let mut out = Vec::new();
        for (at, spelling) in format.spellings.iter().enumerate() {
            let Spelled { calls, other } = self.spelled[at].clone();
            let mut bodies = Vec::new();
            if !calls.is_empty() {
                let calls = self.spelled_calls(spelling, &calls);
                bodies.push(Expr::seq([calls, next.clone()]));
            }
            bodies.extend(other.map(|other| Expr::seq([Expr::Ref(other), text.clone()])));
            for (trigger, rest) in self.begins(&spelling.begin) {
                for body in &bodies {
                    let body = Expr::seq([rest.clone(), body.clone()]);
                    out.push((
                        trigger.clone(),
                        self.builder.labelled("calls", Role::Marker.label(), body),
                    ));
                }
            }
        }
        out
    }

    fn text_body(&mut self, mut tags: Vec<(Trigger, RuleId)>, after: AfterTag) -> Expr {
        let mut excludes = self.text_excludes();
        for text in self.call_texts() {
            let text = text.as_bytes();
            let begins = |trigger: &Trigger| match trigger {
                Trigger::Text(trigger) => trigger.starts_with(text) || text.starts_with(trigger),
                Trigger::Special(_) | Trigger::Led(..) => false,
            };
            if !tags.iter().any(|(trigger, _)| begins(trigger))
                && !excludes.iter().any(|e| e == text)
            {
                excludes.push(text.to_vec());
            }
        }
        let mut stops: Vec<Trigger> =
            self.request.stop.iter().map(|stop| Trigger::Text(stop.as_bytes().to_vec())).collect();
        let mut end = DispatchEnd::Anywhere;
        if let Some(frame_end) = self.frame_end.clone() {
            for stop in std::mem::take(&mut stops) {
                let closing = self.closing();
                tags.push((stop, self.builder.labelled("end", Role::Marker.label(), closing)));
            }
            (stops, end) = (self.triggers(&frame_end), DispatchEnd::AtStop);
        }
        Expr::Dispatch(Box::new(Dispatch { tags, stops, excludes, after, end }))
    }
}
