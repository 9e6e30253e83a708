//! Free text: a tag dispatch that watches for calls, excluded texts and stop strings.

use louver::ids::RuleId;
use louver::ir::{AfterTag, Dispatch, DispatchEnd, Expr, Trigger};

use super::Lowering;
use super::calls::any_rule;
use super::markers::is_single_character;
use super::spelling::LoweredSpelling;
use super::text_automata::TextKind;
use crate::format::{Marker, unique};
use crate::lowered::SpanPhase;
use crate::request::LowerError;

impl Lowering<'_> {
    /// Text up to and with one of the ends: a trigger and what follows the trigger.
    pub(crate) fn dispatch(&mut self, ends: Vec<(Trigger, Expr)>, excludes: Vec<Vec<u8>>) -> Expr {
        Dispatch::until_ends(ends, excludes, |rest| self.end_rule(rest)).into()
    }

    /// The rule of what follows a trigger that ends text.
    fn end_rule(&mut self, rest: Expr) -> RuleId {
        self.builder.labelled("end", SpanPhase::Marker.label(), rest)
    }

    /// Text after its begin marker, with its end marker. A stop string ends it, too.
    pub(crate) fn text_until(&mut self, end: &Marker) -> Expr {
        let (ends, excludes) = (self.text_ends(Some(end)), self.text_excludes());
        let body = self.dispatch(ends, excludes);
        Expr::Ref(self.builder.labelled("text", SpanPhase::Text.label(), body))
    }

    /// What ends text: its end marker, if it has one, and each stop string with the marker after
    /// it.
    fn text_ends(&mut self, end: Option<&Marker>) -> Vec<(Trigger, Expr)> {
        let mut ends = end.map_or_else(Vec::new, |end| self.triggers_and_rests(end));
        for stop in self.request.text_stops() {
            ends.push((Trigger::Text(stop.clone().into_bytes()), self.optional_marker(end)));
        }
        ends
    }

    fn text_excludes(&self) -> Vec<Vec<u8>> {
        let texts = self.format.text.excludes.iter().chain(&self.request.bans);
        unique(texts.map(|text| text.as_bytes().to_vec()))
    }

    /// Free text in a turn that is either text or calls. If calls begin with a single character,
    /// text does not begin with it.
    pub(crate) fn text_instead_of_calls(&mut self) -> Result<Expr, LowerError> {
        let next = self.max_calls().map(|_| self.closing());
        let free = self.text(None, next.clone(), None);
        if !self.call_begin_texts().iter().any(|begin| is_single_character(begin)) {
            return Ok(free);
        }
        // The text may begin with anything that free text watches for, so that all of it is
        // excluded from the first bytes.
        let first = self.text_automaton(&self.watched_texts(), TextKind::Unwatched)?;
        let first =
            self.builder.labelled("first of text", SpanPhase::Text.label(), Expr::Automaton(first));
        let mut starts = vec![Expr::seq([Expr::Ref(first), free.clone()])];
        let lists = self.lists_before(next.as_ref().unwrap_or(&free));
        for (trigger, rule) in self.spelling_tags(&lists, &free) {
            starts.push(Expr::seq([trigger.expr(), Expr::Ref(rule)]));
        }
        Ok(Expr::optional(Expr::alt(starts)))
    }

    /// Free text, with the end of the frame in a frame. `calls`: the marker that opens calls in the
    /// text, and the calls. `next`: what follows the calls; by default, text again. `lists`: what
    /// follows the first call of a list in each spelling, if calls are counted.
    pub(crate) fn text(
        &mut self,
        calls: Option<(&Marker, Expr)>,
        next: Option<Expr>,
        lists: Option<&[Expr]>,
    ) -> Expr {
        let text = self.builder.declare("text");
        let again = next.is_none() || self.max_calls().is_none();
        // A tag that may end the turn must not return to the text.
        let loops = next.is_none() && self.builtin_calls.is_empty() && self.frame_end.is_none();
        let back = if loops { Expr::Empty } else { Expr::Ref(text) };
        let next = next.unwrap_or_else(|| back.clone());
        let mut tags = match calls {
            Some((begin, calls)) => self.call_tags(begin, &calls, &next),
            None => Vec::new(),
        };
        let after_calls = if again { &back } else { &next };
        let lists = lists.map_or_else(|| self.lists_before(after_calls), <[Expr]>::to_vec);
        tags.extend(self.spelling_tags(&lists, &back));
        let body = self.text_dispatch(tags, if loops { AfterTag::Loop } else { AfterTag::End });
        self.builder.define(text, body);
        self.builder.attributes(text).label = Some(SpanPhase::Text.label());
        Expr::Ref(text)
    }

    /// Tags of the alternative spellings: of calls, with the rest of their list after the first,
    /// and of begin markers that turn out to be text, with `text` after them.
    fn spelling_tags(&mut self, lists: &[Expr], text: &Expr) -> Vec<(Trigger, RuleId)> {
        let format = self.format;
        let begin = format.calls_begin_marker();
        let usual = begin.map_or_else(Vec::new, |begin| self.begin_triggers(begin));
        let usual: Vec<Trigger> = usual.into_iter().map(|(trigger, _)| trigger).collect();
        let mut out = Vec::new();
        for (k, spelling) in format.all_spellings().enumerate() {
            let LoweredSpelling { calls, text: begin_is_text } = self.spellings[k].clone();
            let mut bodies = Vec::new();
            if !calls.is_empty() {
                bodies.push(Expr::seq([any_rule(&calls), lists[k].clone()]));
            }
            bodies.extend(begin_is_text.map(|rule| Expr::seq([Expr::Ref(rule), text.clone()])));
            // Triggers with the same rest share their rules.
            let mut rules: Vec<((Expr, bool), Vec<RuleId>)> = Vec::new();
            for (trigger, rest) in self.begin_triggers(&spelling.begin) {
                let key = (rest, !usual.contains(&trigger));
                let at = rules.iter().position(|(known, _)| *known == key).unwrap_or(rules.len());
                if at == rules.len() {
                    let ruled = bodies.iter().map(|body| self.spelled_rule(&key, body)).collect();
                    rules.push((key, ruled));
                }
                out.extend(rules[at].1.iter().map(|&rule| (trigger.clone(), rule)));
            }
        }
        out
    }

    /// The rule of a body after the rest of a begin marker.
    fn spelled_rule(&mut self, (rest, unlikely): &(Expr, bool), body: &Expr) -> RuleId {
        let body = Expr::seq([rest.clone(), body.clone()]);
        let rule = self.builder.labelled("calls", SpanPhase::Marker.label(), body);
        self.builder.attributes(rule).unlikely = *unlikely;
        rule
    }

    fn text_dispatch(&mut self, tags: Vec<(Trigger, RuleId)>, after: AfterTag) -> Expr {
        let mut excludes = self.text_excludes();
        // The begin of a call that may not start here cannot be text.
        for text in self.call_start_texts() {
            let text = text.as_bytes();
            let is_covered =
                |trigger: &[u8]| trigger.starts_with(text) || text.starts_with(trigger);
            if !tags.iter().filter_map(|(trigger, _)| trigger.text()).any(is_covered)
                && !excludes.iter().any(|exclude| exclude == text)
            {
                excludes.push(text.to_vec());
            }
        }
        let ends = self.text_ends(self.frame_end);
        let end = match self.frame_end {
            Some(_) => DispatchEnd::AtStop,
            None => DispatchEnd::Anywhere,
        };
        let mut dispatch = Dispatch { tags, stops: Vec::new(), excludes, after, end };
        dispatch.add_ends(ends, |rest| self.end_rule(rest));
        dispatch.into()
    }
}
