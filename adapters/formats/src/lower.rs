//! Lowering: wire format + request -> grammar of the whole turn.
//!
//! A turn is `reasoning REST end`. REST is text and calls, or the answer, perhaps in a frame. Its
//! labelled rules are the spans that the extractor reads; see [`Role`].

use std::collections::HashSet;
use std::sync::Arc;

use louver::front::json_schema::{SchemaError, SchemaErrors};
use louver::fsm::ByteSet;
use louver::ids::{RuleId, SpecialId};
use louver::ir::{Expr, GrammarBuilder, SpecialToken, Trigger};
use louver::spec::json::Json;
use louver::spec::tools::{Tool, ToolChoice};

use crate::arguments::LoweredArguments;
use crate::call_syntax::CallSyntax;
use crate::fault::{PartErrors, RequestFault};
use crate::format::{ArgumentStyle, MAX_GAP, ParallelPolicy, TextPlace, WireFormat};
use crate::marker::{Atom, Glue, IdStyle, Marker, Part};
use crate::plan::{Plan, PlanInner, RelaxedSchema, Role, ToolPlan};
use crate::request::{LowerError, Parallel, RESPONSE_POINTER, Reasoning, ToolRequest};
use crate::spelling::LoweredSpelling;

/// The highest bound on calls with text between them: the grammar has a rule for each call.
const MAX_COUNTED_CALLS: u32 = 64;

impl WireFormat {
    /// The grammar of all turns that the request allows: reasoning, text, calls, answer. Fails with
    /// all errors of the request if a part of it cannot be enforced. Cost: that of lowering the
    /// schemas of the tools that may be called.
    pub fn lower(&self, request: &ToolRequest) -> Result<Plan, LowerError> {
        request.check(self)?;
        let mut lowering = Lowering::new(self, request);
        let unflagged = request.unflagged();
        let lowered = lowering.lower_tools(unflagged.iter().map(|(k, _)| *k).collect());
        lowering.response = lowering.lower_response();
        lowering.findings.errors.check()?;
        let tools: Vec<ToolPlan> = (request.kinds().zip(&lowered))
            .map(|((name, kind), lowered)| ToolPlan {
                name: name.to_owned(),
                kind,
                arguments: lowered.as_ref().map(|lowered| lowered.rule),
            })
            .collect();
        lowering.lower_calls(&tools, &lowered);
        let mut styles = vec![(&self.call.arguments, lowered)];
        lowering.lower_spellings(&mut styles)?;
        let turn = lowering.turn()?;
        let turn = lowering.builder.rule("turn", turn);
        let Findings { warnings, mut relaxed, relaxed_schemas, .. } = lowering.findings;
        relaxed.extend(unflagged.into_iter().map(|(_, error)| error));
        let readers = styles.into_iter().map(|(style, lowered)| {
            let readers = lowered.into_iter().map(|lowered| Some(lowered?.reader));
            (style.clone(), readers.collect())
        });
        let inner = PlanInner {
            grammar: lowering.builder.finish(turn)?.into(),
            tools,
            functions: request.functions(),
            readers: readers.collect(),
            is_budgeted: request.reasoning_budget.is_some(),
            warnings,
            relaxed,
            relaxed_schemas,
            format: self.clone(),
        };
        Ok(Plan { inner: Arc::new(inner) })
    }
}

/// What lowering reports of the request.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) errors: PartErrors,
    pub(crate) warnings: Vec<RequestFault>,
    /// Keywords that the grammar does not enforce.
    pub(crate) relaxed: Vec<SchemaError>,
    /// The schemas of those keywords.
    relaxed_schemas: Vec<RelaxedSchema>,
}

/// A request that is being lowered.
pub(crate) struct Lowering<'a> {
    pub(crate) format: &'a WireFormat,
    pub(crate) request: &'a ToolRequest,
    pub(crate) builder: GrammarBuilder,
    pub(crate) findings: Findings,
    /// Calls after their begin marker, one rule per tool. In turns of messages, those of built-in
    /// tools are among them.
    calls: Vec<RuleId>,
    /// Calls of built-in tools after their begin marker, in turns that are no messages.
    pub(crate) builtin_calls: Vec<RuleId>,
    /// The alternative spellings, in the order of the format.
    pub(crate) spellings: Vec<LoweredSpelling>,
    /// The answer that the request asks for.
    response: Option<RuleId>,
    /// The style of the arguments that are being lowered.
    pub(crate) style: &'a ArgumentStyle,
    /// Ends the frame of text and calls, while those are being lowered.
    pub(crate) frame_end: Option<&'a Marker>,
}

impl<'a> Lowering<'a> {
    fn new(format: &'a WireFormat, request: &'a ToolRequest) -> Self {
        Lowering {
            format,
            request,
            builder: GrammarBuilder::new(),
            findings: Findings::default(),
            calls: Vec::new(),
            builtin_calls: Vec::new(),
            spellings: Vec::new(),
            response: None,
            style: &format.call.arguments,
            frame_end: None,
        }
    }

    /// The arguments of all tools in the template's style, `None` for those that cannot be called.
    /// `unflagged`: indices of tools whose schema is not enforced as they are not `strict`.
    fn lower_tools(&mut self, unflagged: HashSet<usize>) -> Vec<Option<LoweredArguments>> {
        let request = self.request;
        let mut lowered = Vec::new();
        for (k, tool) in request.tools.iter().enumerate() {
            let before = self.findings.relaxed.len();
            lowered.push(self.arguments(k, tool));
            if self.findings.relaxed.len() > before || unflagged.contains(&k) {
                self.note_relaxed(Some(k), &tool.parameters);
            }
        }
        for (k, custom) in request.customs.iter().enumerate() {
            lowered.push(self.custom_arguments(k, custom));
        }
        for (k, builtin) in request.builtins.iter().enumerate() {
            let before = self.findings.relaxed.len();
            lowered.push(self.builtin_arguments(k, builtin));
            let schema = self.format.builtin.as_ref().and_then(|format| format.schema(builtin));
            if let Some(schema) = schema.filter(|_| self.findings.relaxed.len() > before) {
                self.note_relaxed(Some(request.functions() + k), &schema);
            }
        }
        lowered
    }

    /// The rule of the answer that `response_format` asks for, if the turn may be an answer.
    fn lower_response(&mut self) -> Option<RuleId> {
        if self.request.is_forced() {
            return None;
        }
        let before = self.findings.relaxed.len();
        let rule = match (&self.request.response_format, &self.request.answer_tag) {
            (Some(schema), _) => {
                let rule = self.json(schema, RESPONSE_POINTER)?;
                if self.findings.relaxed.len() > before {
                    self.note_relaxed(None, schema);
                }
                rule
            }
            (None, Some(answer)) => self.answer(answer)?,
            (None, None) => return None,
        };
        Some(self.builder.labelled("response", Role::Response.label(), Expr::Ref(rule)))
    }

    fn note_relaxed(&mut self, tool: Option<usize>, schema: &Json) {
        self.findings.relaxed_schemas.push(RelaxedSchema { tool, schema: schema.clone() });
    }

    /// The rules of calls in the template's syntax.
    fn lower_calls(&mut self, tools: &[ToolPlan], lowered: &[Option<LoweredArguments>]) {
        let format = self.format;
        for (k, (tool, lowered)) in tools.iter().zip(lowered).enumerate() {
            let Some(LoweredArguments { rule, reader }) = lowered else { continue };
            let is_builtin = k >= self.request.functions();
            let syntax = format.tool_syntax(is_builtin, reader.is_code());
            let call = self.call((k, &tool.name), &syntax, *rule);
            if is_builtin && format.messages.is_none() {
                self.builtin_calls.push(call);
            } else {
                self.calls.push(call);
            }
        }
    }

    /// The whole turn, without the stop token.
    fn turn(&mut self) -> Result<Expr, LowerError> {
        if let Some(messages) = &self.format.messages {
            return self.messages(messages, &self.calls.clone(), self.response);
        }
        let reasoning = self.reasoning()?;
        let rest = self.after_reasoning()?;
        let end = self.optional_marker(self.format.end.as_ref());
        Ok(Expr::seq([reasoning, rest, end]))
    }

    /// The highest number of calls in the turn. `None`: unlimited.
    pub(crate) fn most_calls(&self) -> Option<u32> {
        if self.format.call.parallel == ParallelPolicy::One
            || matches!(self.request.tool_choice, ToolChoice::Named(_))
        {
            return Some(1);
        }
        match self.request.parallel {
            Parallel::Any => None,
            Parallel::One => Some(1),
            Parallel::AtMost(most) => Some(most.get()),
        }
    }

    pub(crate) fn arguments(&mut self, k: usize, tool: &Tool) -> Option<LoweredArguments> {
        if !self.request.may_call(&tool.name) {
            return None;
        }
        let pointer = tool.parameters_pointer(self.request.position(k));
        let schema = self.request.arguments_schema(tool);
        let lowered = self.lower_arguments(&schema, &pointer)?;
        Some(self.label_arguments(k, &tool.name, lowered))
    }

    /// Wraps arguments in a rule with the label of tool `k`'s arguments.
    pub(crate) fn label_arguments(
        &mut self,
        k: usize,
        name: &str,
        lowered: LoweredArguments,
    ) -> LoweredArguments {
        let label = Role::Arguments(k).label();
        let rule =
            self.builder.labelled(format!("arguments of {name}"), label, Expr::Ref(lowered.rule));
        LoweredArguments { rule, ..lowered }
    }

    /// The rule of calls of tool `k`, after the begin marker.
    pub(crate) fn call(
        &mut self,
        (k, name): (usize, &str),
        syntax: &CallSyntax<'_>,
        arguments: RuleId,
    ) -> RuleId {
        let header = Expr::alt(syntax.headers.iter().map(|header| self.parts(header, name)));
        let trailer = self.parts(syntax.trailer, name);
        let trailer = Expr::seq([trailer, self.optional_marker(syntax.end)]);
        let header =
            self.builder.labelled(format!("header of {name}"), Role::Header(k).label(), header);
        let trailer =
            self.builder.labelled(format!("trailer of {name}"), Role::Trailer(k).label(), trailer);
        self.builder
            .rule(format!("call of {name}"), Expr::seq([header, arguments, trailer].map(Expr::Ref)))
    }

    pub(crate) fn parts(&mut self, parts: &[Part], name: &str) -> Expr {
        Expr::seq(parts.iter().map(|part| match part {
            Part::Text(text) => Expr::text(text),
            Part::Name { name: style } => Expr::text(&style.write(name)),
            Part::Id { id } => call_id(*id),
            Part::Gap { .. } => gap(),
            Part::Maybe { maybe } => Expr::optional(self.parts(maybe, name)),
            Part::Marker(marker) => self.marker(marker),
        }))
    }

    pub(crate) fn glue(&mut self, glue: &Glue) -> Expr {
        self.parts(&glue.parts(), "")
    }

    pub(crate) fn marker(&mut self, marker: &Marker) -> Expr {
        Expr::alt(marker.spellings().iter().map(|spelling| self.atoms(spelling)))
    }

    pub(crate) fn optional_marker(&mut self, marker: Option<&Marker>) -> Expr {
        marker.map_or(Expr::Empty, |marker| self.marker(marker))
    }

    fn special(&mut self, name: &str) -> SpecialId {
        self.builder.special(SpecialToken::Name(name.to_owned()))
    }

    fn atoms(&mut self, atoms: &[Atom]) -> Expr {
        Expr::seq(atoms.iter().map(|atom| match atom {
            Atom::Text(text) => Expr::text(text),
            Atom::Token(name) => Expr::Special(self.special(name)),
        }))
    }

    /// For each spelling of the marker: the trigger that free text is searched for, and what must
    /// follow the trigger.
    pub(crate) fn triggers_and_rests(&mut self, marker: &Marker) -> Vec<(Trigger, Expr)> {
        let split = |spelling: &Vec<Atom>| match &spelling[..] {
            [Atom::Text(text), Atom::Token(name), rest @ ..] => {
                (Trigger::Led(text.as_bytes().to_vec(), self.special(name)), self.atoms(rest))
            }
            [Atom::Text(text), rest @ ..] => {
                (Trigger::Text(text.as_bytes().to_vec()), self.atoms(rest))
            }
            [Atom::Token(name), rest @ ..] => {
                (Trigger::Special(self.special(name)), self.atoms(rest))
            }
            // `check` refuses empty markers, and the grammar refuses empty triggers.
            [] => (Trigger::Text(Vec::new()), Expr::Empty),
        };
        marker.spellings().iter().map(split).collect()
    }

    /// As [`Lowering::triggers_and_rests`], of the begin marker of calls. If it begins with the
    /// begin marker of built-in tools, that is the trigger and the remainder must follow.
    pub(crate) fn begin_triggers(&mut self, marker: &Marker) -> Vec<(Trigger, Expr)> {
        let builtin_begins =
            self.format.builtin_begin().map(Marker::plain_texts).unwrap_or_default();
        let mut triggers = self.triggers_and_rests(marker);
        for (trigger, rest) in &mut triggers {
            if let Trigger::Text(text) = &*trigger
                && let Some(begin) =
                    builtin_begins.iter().find(|begin| text.starts_with(begin.as_bytes()))
            {
                *rest = Expr::seq([Expr::bytes(&text[begin.len()..]), rest.clone()]);
                *trigger = Trigger::Text(begin.clone().into_bytes());
            }
        }
        triggers
    }

    /// The triggers of a marker whose spellings have one atom.
    pub(crate) fn triggers(&mut self, marker: &Marker) -> Vec<Trigger> {
        self.triggers_and_rests(marker).into_iter().map(|(trigger, _)| trigger).collect()
    }

    /// The turn after reasoning, without the end marker.
    fn after_reasoning(&mut self) -> Result<Expr, LowerError> {
        let Some(frame) = &self.format.frame else { return self.text_calls_or_answer() };
        self.frame_end = Some(&frame.end);
        let inside = self.text_calls_or_answer()?;
        self.frame_end = None;
        let framed = Expr::seq([self.marker(&frame.begin), inside]);
        Ok(Expr::alt([self.text_calls_or_answer()?, framed]))
    }

    /// What ends the turn after a call or an answer: the end of the frame, in a frame.
    pub(crate) fn closing(&mut self) -> Expr {
        self.optional_marker(self.frame_end)
    }

    /// Text and calls, or the answer, with the end of the frame.
    fn text_calls_or_answer(&mut self) -> Result<Expr, LowerError> {
        if let (Some(begin), Some(end)) = (&self.format.text.begin, &self.format.text.end) {
            return Ok(self.marked_text_and_calls(begin, end));
        }
        let callable = !(self.calls.is_empty() && self.builtin_calls.is_empty());
        let whole = match self.response {
            _ if self.request.is_forced() => self.calls_alone(),
            Some(response) if callable => Expr::alt([self.calls_alone(), Expr::Ref(response)]),
            Some(response) => Expr::Ref(response),
            None if callable => return self.text_and_calls(),
            None => return Ok(self.text(None, None)),
        };
        Ok(Expr::seq([whole, self.closing()]))
    }

    /// Text between its markers, then calls; or one of the two, by the format's place of text.
    fn marked_text_and_calls(&mut self, begin: &Marker, end: &Marker) -> Expr {
        let is_instead = self.format.text.place == TextPlace::InsteadOfCalls;
        let begin = match self.request.reasoning {
            // Without a reasoning block, the prompt may have opened the text.
            Reasoning::Off if !is_instead => Expr::optional(self.marker(begin)),
            _ => self.marker(begin),
        };
        let calls = if self.calls.is_empty() { Expr::Never } else { self.calls_alone() };
        let text = Expr::seq([begin.clone(), self.text_until(end, Role::Text)]);
        let end = self.marker(end);
        let answer = self.response.map(|answer| Expr::seq([begin, Expr::Ref(answer), end]));
        match (answer, is_instead) {
            (_, true) if self.request.is_forced() => calls,
            (_, false) if self.request.is_forced() => Expr::seq([text, calls]),
            (Some(answer), true) => Expr::alt([answer, calls]),
            (Some(answer), false) => Expr::alt([answer, Expr::seq([text, calls])]),
            (None, true) => Expr::alt([text, calls]),
            (None, false) => Expr::seq([text, Expr::optional(calls)]),
        }
    }

    /// Calls without text, with the section around them.
    fn calls_alone(&mut self) -> Expr {
        let builtin = self.builtin_call();
        if self.calls.is_empty() {
            return builtin;
        }
        let calls = self.call_list(self.most_calls());
        let calls = match &self.format.section {
            Some(section) => {
                let before = Expr::optional(Expr::text(&section.before));
                let begin = self.marker(&section.begin);
                Expr::seq([before, begin, self.section_rest(calls)])
            }
            None if builtin != Expr::Never && self.most_calls() != Some(1) => {
                // A call of a built-in tool is the last.
                let before = self.call_list(self.most_calls().map(|most| most - 1));
                return Expr::alt([calls, Expr::seq([Expr::optional(before), builtin])]);
            }
            None => calls,
        };
        Expr::alt([calls, builtin])
    }

    /// A call of a built-in tool with its begin marker, in turns that are no messages.
    fn builtin_call(&mut self) -> Expr {
        match self.format.builtin_begin() {
            Some(begin) if !self.builtin_calls.is_empty() => {
                Expr::seq([self.marker(begin), any_rule(&self.builtin_calls)])
            }
            _ => Expr::Never,
        }
    }

    /// A section after its begin marker.
    fn section_rest(&mut self, calls: Expr) -> Expr {
        let Some(section) = &self.format.section else { return calls };
        let (lead, trail) = (self.glue(&section.lead), self.glue(&section.trail));
        Expr::seq([lead, calls, trail, self.optional_marker(section.end.as_ref())])
    }

    /// One to `most` calls with separators between them.
    fn call_list(&mut self, most: Option<u32>) -> Expr {
        Expr::seq([self.any_call(), self.more_calls(most)])
    }

    /// The calls after the first of `most` calls, each after a separator.
    fn more_calls(&mut self, most: Option<u32>) -> Expr {
        if most == Some(1) {
            return Expr::Empty;
        }
        let next = Expr::seq([self.glue(&self.format.call.separator), self.any_call()]);
        Expr::repeat(next, 0, most.map(|most| most - 1))
    }

    fn any_call(&mut self) -> Expr {
        Expr::seq([self.optional_marker(self.format.call.begin.as_ref()), any_rule(&self.calls)])
    }

    /// Text with calls in it or after it, or instead of it.
    fn text_and_calls(&mut self) -> Result<Expr, LowerError> {
        let place = self.format.text.place;
        if place == TextPlace::InsteadOfCalls {
            return Ok(Expr::alt([self.calls_alone(), self.text_instead_of_calls()?]));
        }
        let most = self.most_calls();
        let section = self.format.section.is_some();
        let Some(begin) = self.format.calls_begin() else { return Ok(Expr::Never) };
        // Behind the marker: a section's calls, or one call.
        let calls = match section {
            true if !self.calls.is_empty() => {
                let calls = self.call_list(self.most_calls());
                self.section_rest(calls)
            }
            _ => any_rule(&self.calls),
        };
        match (place, most) {
            (TextPlace::Anywhere, None) => Ok(self.text(Some((begin, calls)), None)),
            (TextPlace::Anywhere, Some(most)) if most > 1 && !section => {
                if most > MAX_COUNTED_CALLS {
                    return Err(LowerError::TooManyCalls { most, limit: MAX_COUNTED_CALLS });
                }
                let mut rest = self.closing();
                for _ in 0..most {
                    rest = self.text(Some((begin, calls.clone())), Some(rest));
                }
                Ok(rest)
            }
            // A bound on calls is one for the turn, so that there is one section.
            _ => {
                let more = if section { Expr::Empty } else { self.more_calls(most) };
                let calls = Expr::seq([calls, more]);
                let closing = self.closing();
                Ok(self.text(Some((begin, calls)), Some(closing)))
            }
        }
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
            let ambiguous = self.format.ambiguous_begins();
            let mut triggers = self.begin_triggers(begin);
            triggers.retain(|(trigger, _)| match trigger {
                Trigger::Text(text) => {
                    !ambiguous.iter().any(|begin| text.starts_with(begin.as_bytes()))
                }
                Trigger::Special(_) | Trigger::Led(..) => true,
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
                    body => self.builder.labelled("calls", Role::Marker.label(), body),
                };
                out.push((trigger.clone(), rule));
            }
        }
    }
}

/// One of the rules; [`Expr::Never`] if there is none.
pub(crate) fn any_rule(rules: &[RuleId]) -> Expr {
    Expr::alt(rules.iter().map(|rule| Expr::Ref(*rule)))
}

/// White space, as much as a gap may have.
pub(crate) fn gap() -> Expr {
    Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(MAX_GAP))
}

fn call_id(style: IdStyle) -> Expr {
    let digits = ByteSet::range(b'0', b'9');
    match style {
        IdStyle::FromZero | IdStyle::FromOne => Expr::repeat(Expr::Class(digits), 1, Some(9)),
        IdStyle::Nine => {
            let letters = ByteSet::range(b'a', b'z').union(&ByteSet::range(b'A', b'Z'));
            Expr::repeat(Expr::Class(digits.union(&letters)), 9, Some(9))
        }
    }
}

impl PartErrors {
    /// Fails if there are errors: with those of schemas alone, if there are no others.
    fn check(&mut self) -> Result<(), LowerError> {
        if self.is_empty() {
            return Ok(());
        }
        let errors = std::mem::take(self);
        Err(match errors {
            PartErrors { schemas, customs, tag: None } if customs.is_empty() => {
                LowerError::Schemas(SchemaErrors(schemas))
            }
            errors => LowerError::Parts(Box::new(errors)),
        })
    }
}
