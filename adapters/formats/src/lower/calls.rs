//! Calls in the template's syntax, alone or as tags of free text.

use louver::ids::RuleId;
use louver::ir::{Expr, Trigger};

use super::Lowering;
use crate::format::{CallSyntax, Marker, ParallelPolicy};
use crate::lowered::{LoweredTool, SpanPhase};
use crate::request::{Parallel, ToolChoice};

impl Lowering<'_> {
    /// The rules of calls in the template's syntax.
    pub(super) fn lower_calls(&mut self, tools: &[LoweredTool]) {
        let format = self.format;
        for (k, tool) in tools.iter().enumerate() {
            let Some(call) = self.call(k, tool, &tool.syntax(format, None)) else { continue };
            if tool.is_builtin && format.messages.is_none() {
                self.builtin_calls.push(call);
            } else {
                self.calls.push(call);
            }
        }
    }

    /// The highest number of calls in the turn. `None`: unlimited.
    pub(crate) fn max_calls(&self) -> Option<u32> {
        if self.format.call.parallel == ParallelPolicy::One
            || matches!(self.request.tool_choice, ToolChoice::Named(_))
        {
            return Some(1);
        }
        match self.request.parallel {
            Parallel::Any => None,
            Parallel::One => Some(1),
            Parallel::AtMost(max) => Some(max.get()),
        }
    }

    /// The rule of calls of tool `k` in a syntax, after the begin marker. `None` if the turn cannot
    /// call it so.
    pub(crate) fn call(
        &mut self,
        k: usize,
        tool: &LoweredTool,
        syntax: &CallSyntax<'_>,
    ) -> Option<RuleId> {
        let (name, arguments) = (&tool.name, tool.arguments(syntax.arguments)?.rule);
        let header = Expr::alt(syntax.headers.iter().map(|header| self.parts(header, name)));
        let trailer = self.parts(syntax.trailer, name);
        let trailer = Expr::seq([trailer, self.optional_marker(syntax.end)]);
        let header = self.builder.labelled(
            format!("header of {name}"),
            SpanPhase::Header(k).label(),
            header,
        );
        let trailer = self.builder.labelled(
            format!("trailer of {name}"),
            SpanPhase::Trailer(k).label(),
            trailer,
        );
        let call = Expr::seq([header, arguments, trailer].map(Expr::Ref));
        Some(self.builder.rule(format!("call of {name}"), call))
    }

    /// Calls without text, with the section around them.
    pub(super) fn calls_alone(&mut self) -> Expr {
        let builtin = self.builtin_call();
        if self.calls.is_empty() {
            return builtin;
        }
        let calls = self.call_list(self.max_calls());
        let calls = match &self.format.section {
            Some(section) => {
                let before = Expr::optional(Expr::text(&section.before));
                let begin = self.marker(&section.begin);
                Expr::seq([before, begin, self.section_rest(calls)])
            }
            None if builtin != Expr::Never && self.max_calls() != Some(1) => {
                // A call of a built-in tool is the last.
                let before = self.call_list(self.max_calls().map(|max| max - 1));
                return Expr::alt([calls, Expr::seq([Expr::optional(before), builtin])]);
            }
            None => calls,
        };
        Expr::alt([calls, builtin])
    }

    /// A call of a built-in tool with its begin marker, in turns that are not messages.
    fn builtin_call(&mut self) -> Expr {
        match self.format.builtin_begin() {
            Some(begin) if !self.builtin_calls.is_empty() => {
                Expr::seq([self.marker(begin), any_rule(&self.builtin_calls)])
            }
            _ => Expr::Never,
        }
    }

    /// A section after its begin marker.
    pub(super) fn section_rest(&mut self, calls: Expr) -> Expr {
        let Some(section) = &self.format.section else { return calls };
        let (lead, trail) = (self.fixed_parts(&section.lead), self.fixed_parts(&section.trail));
        Expr::seq([lead, calls, trail, self.optional_marker(section.end.as_ref())])
    }

    /// One to `max` calls with separators between them.
    pub(super) fn call_list(&mut self, max: Option<u32>) -> Expr {
        Expr::seq([self.any_call(), self.more_calls(max)])
    }

    /// The calls after the first of `max` calls, each after a separator.
    pub(super) fn more_calls(&mut self, max: Option<u32>) -> Expr {
        let next = Expr::seq([self.fixed_parts(&self.format.call.separator), self.any_call()]);
        after_first(next, max)
    }

    fn any_call(&mut self) -> Expr {
        Expr::seq([self.optional_marker(self.format.call.begin.as_ref()), any_rule(&self.calls)])
    }

    /// The tags of free text that calls start: those after `begin`, with `next` after them, and
    /// those of built-in tools.
    pub(crate) fn call_tags(
        &mut self,
        begin: &Marker,
        calls: &Expr,
        next: &Expr,
    ) -> Vec<(Trigger, RuleId)> {
        let mut out = Vec::new();
        if *calls != Expr::Never {
            // Begin markers that may be text are those of a spelling.
            let mut triggers = self.begin_triggers(begin);
            triggers.retain(|(trigger, _)| {
                !trigger.text().is_some_and(|text| {
                    self.format.begins_ambiguously(&String::from_utf8_lossy(text))
                })
            });
            self.add_tags(&mut out, triggers, &Expr::seq([calls.clone(), next.clone()]));
        }
        if let Some(begin) = self.format.builtin_begin().filter(|_| !self.builtin_calls.is_empty())
        {
            let triggers = self.triggers_and_rests(begin);
            let body = Expr::seq([any_rule(&self.builtin_calls), self.closing()]);
            self.add_tags(&mut out, triggers, &body);
        }
        out
    }

    /// Adds a tag for each trigger, or one for each trigger and tool if the calls follow the
    /// trigger directly.
    fn add_tags(
        &mut self,
        out: &mut Vec<(Trigger, RuleId)>,
        triggers: Vec<(Trigger, Expr)>,
        body: &Expr,
    ) {
        for (trigger, rest) in triggers {
            let bodies = match (rest, body) {
                (Expr::Empty, Expr::Alt(bodies)) => bodies.clone(),
                (rest, body) => vec![Expr::seq([rest, body.clone()])],
            };
            for body in bodies {
                let rule = match body {
                    Expr::Ref(rule) => rule,
                    body => self.builder.labelled("calls", SpanPhase::Marker.label(), body),
                };
                out.push((trigger.clone(), rule));
            }
        }
    }
}

/// The calls after the first of `max` calls, each written as `next`.
pub(crate) fn after_first(next: Expr, max: Option<u32>) -> Expr {
    Expr::repeat(next, 0, max.map(|max| max - 1))
}

/// One of the rules; [`Expr::Never`] if there is none.
pub(crate) fn any_rule(rules: &[RuleId]) -> Expr {
    Expr::alt(rules.iter().map(|rule| Expr::Ref(*rule)))
}
