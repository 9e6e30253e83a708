//! Wire format + request -> grammar of the whole turn.

use std::sync::Arc;

use louver::front::json_schema::{SchemaError, SchemaErrors};
use louver::fsm::ByteSet;
use louver::ids::RuleId;
use louver::ir::{AfterTag, Expr, GrammarBuilder, SpecialToken, Trigger};
use louver::spec::tools::{Tool, ToolChoice, ToolChoiceError};

use crate::arguments::Lowered;
use crate::fault::{PartErrors, RequestFault};
use crate::format::{MAX_GAP, ParallelPolicy, TextPlace, WireFormat};
use crate::marker::{Atom, Glue, IdStyle, Marker, Part};
use crate::plan::{Loose, Plan, PlanInner, Role, ToolPlan, Trims};
use crate::request::{LowerError, Parallel, RESPONSE_POINTER, Reasoning, ToolRequest};

/// Most calls a bounded number of calls with text between them may have.
const MAX_COUNTED_CALLS: u32 = 64;

impl WireFormat {
    /// The grammar of the whole turn that the request allows: reasoning, text, calls, answer. Whatever cannot be
    /// enforced is an error, all of them together. Cost: that of lowering the schemas of the tools that may be called.
    pub fn lower(&self, request: &ToolRequest) -> Result<Plan, LowerError> {
        request.check(self)?;
        let mut lowering = Lowering {
            format: self,
            request,
            builder: GrammarBuilder::new(),
            parts: PartErrors::default(),
            relaxed: Vec::new(),
            warnings: Vec::new(),
        };
        let unflagged = request.unflagged();
        let (mut lowered, mut loose): (Vec<Option<Lowered>>, Vec<Loose>) = (Vec::new(), Vec::new());
        for (k, tool) in request.tools.iter().enumerate() {
            let known = lowering.relaxed.len();
            lowered.push(lowering.arguments(k, tool));
            if lowering.relaxed.len() > known || unflagged.iter().any(|(unflagged, _)| *unflagged == k) {
                loose.push(Loose { tool: Some(k), schema: tool.parameters.clone() });
            }
        }
        for (k, custom) in request.customs.iter().enumerate() {
            lowered.push(lowering.custom_arguments(k, custom));
        }
        for (k, builtin) in request.builtins.iter().enumerate() {
            let known = lowering.relaxed.len();
            lowered.push(lowering.builtin_arguments(k, builtin));
            if let Some(schema) = builtin.parameters.as_ref().filter(|_| lowering.relaxed.len() > known) {
                loose.push(Loose { tool: Some(request.functions() + k), schema: schema.clone() });
            }
        }
        let known = lowering.relaxed.len();
        let response = lowering.response();
        if let Some(schema) = request.response_format.as_ref().filter(|_| lowering.relaxed.len() > known) {
            loose.push(Loose { tool: None, schema: schema.clone() });
        }
        if lowering.parts.customs.is_empty() && lowering.parts.tag.is_none() && !lowering.parts.schemas.is_empty() {
            return Err(LowerError::Schemas(SchemaErrors(lowering.parts.schemas)));
        }
        if !lowering.parts.is_empty() {
            return Err(LowerError::Parts(Box::new(lowering.parts)));
        }
        let tools: Vec<ToolPlan> = (request.kinds().zip(&lowered))
            .map(|((name, kind), lowered)| ToolPlan {
                name: name.to_owned(),
                kind,
                arguments: lowered.as_ref().map(|l| l.rule),
            })
            .collect();
        let mut bodies = Vec::new();
        for (k, tool) in tools.iter().enumerate() {
            if let Some(arguments) = tool.arguments {
                bodies.push(lowering.call(k, &tool.name, arguments));
            }
        }
        let turn = match &self.messages {
            Some(messages) => lowering.messages(messages, &bodies, response)?,
            None => {
                let reasoning = lowering.reasoning()?;
                let rest = lowering.rest(&bodies, response)?;
                let end = self.end.as_ref().map_or(Expr::Empty, |end| lowering.marker(end));
                Expr::seq([reasoning, rest, end])
            }
        };
        let turn = lowering.builder.rule("turn", turn);
        let mut relaxed = lowering.relaxed;
        relaxed.extend(unflagged.into_iter().map(|(_, error)| error));
        let grammar = lowering.builder.finish(turn)?;
        let readers = lowered.into_iter().map(|l| l.map(|l| l.reader)).collect();
        let inner = PlanInner {
            grammar,
            tools,
            functions: request.functions(),
            readers,
            trims: self.trims(),
            budgeted: request.reasoning_budget.is_some(),
            warnings: lowering.warnings,
            relaxed,
            loose,
            format: self.clone(),
        };
        Ok(Plan { inner: Arc::new(inner) })
    }

    fn trims(&self) -> Trims {
        let reasoning = self.reasoning.as_ref();
        let separator = match &self.section {
            _ if self.text.end.is_some() => String::new(),
            Some(section) => section.before.clone(),
            None => self.call.separator.write(),
        };
        Trims {
            separator: separator.into_bytes(),
            lead: reasoning.map(|r| r.lead.clone().into_bytes()).unwrap_or_default(),
            trail: reasoning.map(|r| r.trail.clone().into_bytes()).unwrap_or_default(),
        }
    }
}

pub(crate) struct Lowering<'a> {
    pub(crate) format: &'a WireFormat,
    pub(crate) request: &'a ToolRequest,
    pub(crate) builder: GrammarBuilder,
    /// What is wrong so far.
    pub(crate) parts: PartErrors,
    /// What may be wrong.
    pub(crate) warnings: Vec<RequestFault>,
    pub(crate) relaxed: Vec<SchemaError>,
}

impl Lowering<'_> {
    /// Whether the turn may call the tool.
    pub(crate) fn callable(&self, name: &str) -> bool {
        let allowed = self.request.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|a| a == name));
        allowed
            && match &self.request.tool_choice {
                ToolChoice::Auto | ToolChoice::Required => true,
                ToolChoice::None => false,
                ToolChoice::Named(named) => named == name,
            }
    }

    pub(crate) fn forced(&self) -> bool {
        matches!(self.request.tool_choice, ToolChoice::Required | ToolChoice::Named(_))
    }

    /// Most calls of the turn; `None` for any number.
    pub(crate) fn most_calls(&self) -> Option<u32> {
        if self.format.call.parallel == ParallelPolicy::One || matches!(self.request.tool_choice, ToolChoice::Named(_))
        {
            return Some(1);
        }
        match self.request.parallel {
            Parallel::Any => None,
            Parallel::One => Some(1),
            Parallel::AtMost(most) => Some(most.get()),
        }
    }

    fn arguments(&mut self, k: usize, tool: &Tool) -> Option<Lowered> {
        if !self.callable(&tool.name) {
            return None;
        }
        let pointer = tool.parameters_pointer(self.request.position(k));
        let schema = self.request.arguments_schema(tool);
        let lowered = self.lower_arguments(&schema, &pointer)?;
        Some(self.as_arguments(k, &tool.name, lowered))
    }

    /// Puts the label of arguments on them.
    pub(crate) fn as_arguments(&mut self, k: usize, name: &str, lowered: Lowered) -> Lowered {
        let label = Role::Arguments(k).label();
        let rule = self.builder.labelled(format!("arguments of {name}"), label, Expr::Ref(lowered.rule));
        Lowered { rule, ..lowered }
    }

    /// The rule of the answer that `response_format` asks for, if the turn may be one.
    fn response(&mut self) -> Option<RuleId> {
        if self.forced() {
            return None;
        }
        let rule = match (&self.request.response_format, &self.request.answer_tag) {
            (Some(schema), _) => self.json(schema, RESPONSE_POINTER)?,
            (None, Some(answer)) => self.answer(answer)?,
            (None, None) => return None,
        };
        Some(self.builder.labelled("response", Role::Response.label(), Expr::Ref(rule)))
    }

    /// A call behind its begin marker.
    fn call(&mut self, k: usize, name: &str, arguments: RuleId) -> RuleId {
        let call = &self.format.call;
        let builtin = self.format.messages.as_ref().and_then(|m| m.builtin.as_ref());
        let (header, also, trailer) = match builtin.filter(|_| k >= self.request.functions()) {
            Some(builtin) => (&builtin.header, &builtin.also, &[][..]),
            None => (&call.header, &call.also, &call.trailer[..]),
        };
        let headers = Expr::alt([header].into_iter().chain(also).map(|header| self.parts(header, name)));
        let trailer = self.parts(trailer, name);
        let end = call.end.as_ref().map_or(Expr::Empty, |end| self.marker(end));
        let header = self.builder.labelled(format!("header of {name}"), Role::Header(k).label(), headers);
        let trailer =
            self.builder.labelled(format!("trailer of {name}"), Role::Trailer(k).label(), Expr::seq([trailer, end]));
        self.builder.rule(format!("call of {name}"), Expr::seq([header, arguments, trailer].map(Expr::Ref)))
    }

    pub(crate) fn parts(&mut self, parts: &[Part], name: &str) -> Expr {
        Expr::seq(parts.iter().map(|part| match part {
            Part::Text(text) => Expr::text(text),
            Part::Name(part) => Expr::text(&part.name.write(name)),
            Part::Id(part) => id(part.id),
            Part::Gap(_) => gap(),
            Part::Maybe(part) => Expr::optional(self.parts(&part.maybe, name)),
            Part::Marker(marker) => self.marker(marker),
        }))
    }

    pub(crate) fn glue(&mut self, glue: &Glue) -> Expr {
        self.parts(&glue.parts(), "")
    }

    pub(crate) fn marker(&mut self, marker: &Marker) -> Expr {
        Expr::alt(marker.spellings().iter().map(|spelling| self.atoms(spelling)))
    }

    fn atoms(&mut self, atoms: &[Atom]) -> Expr {
        Expr::seq(atoms.iter().map(|atom| match self.trigger(atom) {
            Trigger::Text(bytes) => Expr::bytes(&bytes),
            Trigger::Special(special) => Expr::Special(special),
        }))
    }

    fn trigger(&mut self, atom: &Atom) -> Trigger {
        match atom {
            Atom::Text(text) => Trigger::Text(text.as_bytes().to_vec()),
            Atom::Token(name) => Trigger::Special(self.builder.special(SpecialToken::Name(name.clone()))),
        }
    }

    /// Its spellings, each as what free text is watched for and what must follow that.
    pub(crate) fn heads(&mut self, marker: &Marker) -> Vec<(Trigger, Expr)> {
        marker.spellings().iter().map(|spelling| (self.trigger(&spelling[0]), self.atoms(&spelling[1..]))).collect()
    }

    /// As [`Lowering::heads`], of a marker of a single step.
    pub(crate) fn triggers(&mut self, marker: &Marker) -> Vec<Trigger> {
        self.heads(marker).into_iter().map(|(trigger, _)| trigger).collect()
    }

    /// The turn behind reasoning.
    fn rest(&mut self, bodies: &[RuleId], response: Option<RuleId>) -> Result<Expr, LowerError> {
        if let (Some(begin), Some(end)) = (&self.format.text.begin, &self.format.text.end) {
            return Ok(self.framed_rest((begin, end), bodies, response));
        }
        Ok(match response {
            _ if self.forced() => self.calls(bodies),
            Some(response) if bodies.is_empty() => Expr::Ref(response),
            Some(response) => Expr::alt([self.calls(bodies), Expr::Ref(response)]),
            None if bodies.is_empty() => self.text(Vec::new(), AfterTag::End),
            None => self.text_and_calls(bodies)?,
        })
    }

    /// Text between markers, then calls; or one of the two.
    fn framed_rest(&mut self, (begin, end): (&Marker, &Marker), bodies: &[RuleId], response: Option<RuleId>) -> Expr {
        let begin = match self.request.reasoning {
            // Where there is no reasoning block, the prompt may have opened the text.
            Reasoning::Off if self.format.text.place != TextPlace::InsteadOfCalls => Expr::optional(self.marker(begin)),
            _ => self.marker(begin),
        };
        let calls = if bodies.is_empty() { Expr::Never } else { self.calls(bodies) };
        let text = Expr::seq([begin.clone(), self.text_until(end, Role::Text)]);
        if self.format.text.place == TextPlace::InsteadOfCalls {
            return match response {
                _ if self.forced() => calls,
                Some(response) => Expr::alt([Expr::seq([begin, Expr::Ref(response), self.marker(end)]), calls]),
                None => Expr::alt([text, calls]),
            };
        }
        match response {
            _ if self.forced() => Expr::seq([text, calls]),
            Some(response) => {
                let answer = Expr::seq([begin, Expr::Ref(response), self.marker(end)]);
                Expr::alt([answer, Expr::seq([text, calls])])
            }
            None => Expr::seq([text, Expr::optional(calls)]),
        }
    }

    /// Calls and nothing else.
    fn calls(&mut self, bodies: &[RuleId]) -> Expr {
        let calls = self.call_list(bodies);
        match &self.format.section {
            Some(section) => {
                let before = Expr::optional(Expr::text(&section.before));
                let begin = self.marker(&section.begin);
                Expr::seq([before, begin, self.section_rest(calls)])
            }
            None => calls,
        }
    }

    /// A section behind its begin marker.
    fn section_rest(&mut self, calls: Expr) -> Expr {
        let Some(section) = &self.format.section else { return calls };
        let end = section.end.as_ref().map_or(Expr::Empty, |end| self.marker(end));
        Expr::seq([self.glue(&section.lead), calls, self.glue(&section.trail), end])
    }

    /// One or more calls, separated.
    fn call_list(&mut self, bodies: &[RuleId]) -> Expr {
        let first = self.any_call(bodies);
        Expr::seq([first, self.more_calls(bodies)])
    }

    fn more_calls(&mut self, bodies: &[RuleId]) -> Expr {
        let most = self.most_calls();
        if most == Some(1) {
            return Expr::Empty;
        }
        let next = Expr::seq([self.glue(&self.format.call.separator), self.any_call(bodies)]);
        Expr::repeat(next, 0, most.map(|most| most - 1))
    }

    fn any_call(&mut self, bodies: &[RuleId]) -> Expr {
        let begin = self.format.call.begin.as_ref().map_or(Expr::Empty, |begin| self.marker(begin));
        Expr::seq([begin, Expr::alt(bodies.iter().map(|body| Expr::Ref(*body)))])
    }

    fn text_and_calls(&mut self, bodies: &[RuleId]) -> Result<Expr, LowerError> {
        let place = self.format.text.place;
        if place == TextPlace::InsteadOfCalls {
            let calls = self.calls(bodies);
            return Ok(Expr::alt([calls, self.text_instead_of_calls()]));
        }
        let most = self.most_calls();
        if let Some(section) = &self.format.section {
            let calls = self.call_list(bodies);
            let tags = self.tags(&section.begin, |lowering| vec![lowering.section_rest(calls.clone())]);
            // A bound on calls holds for the turn: one section.
            let after = if place == TextPlace::Anywhere && most.is_none() { AfterTag::Loop } else { AfterTag::End };
            return Ok(self.text(tags, after));
        }
        let Some(begin) = &self.format.call.begin else { return Ok(Expr::Never) };
        let calls = || bodies.iter().map(|body| Expr::Ref(*body)).collect::<Vec<_>>();
        match (place, most) {
            (TextPlace::Anywhere, Some(most)) if most > 1 => {
                if most > MAX_COUNTED_CALLS {
                    return Err(LowerError::TooManyCalls { most, limit: MAX_COUNTED_CALLS });
                }
                let mut rest = Expr::Empty;
                for _ in 0..most {
                    let tags =
                        self.tags(begin, |_| calls().into_iter().map(|call| Expr::seq([call, rest.clone()])).collect());
                    rest = self.text(tags, AfterTag::End);
                }
                Ok(rest)
            }
            (TextPlace::Anywhere, None) => {
                let tags = self.tags(begin, |_| calls());
                Ok(self.text(tags, AfterTag::Loop))
            }
            (_, Some(1)) => {
                let tags = self.tags(begin, |_| calls());
                Ok(self.text(tags, AfterTag::End))
            }
            _ => {
                let more = self.more_calls(bodies);
                let tags =
                    self.tags(begin, |_| calls().into_iter().map(|call| Expr::seq([call, more.clone()])).collect());
                Ok(self.text(tags, AfterTag::End))
            }
        }
    }

    /// Tags that begin with the marker and go on with any of the bodies.
    fn tags(&mut self, begin: &Marker, bodies: impl Fn(&mut Self) -> Vec<Expr>) -> Vec<(Trigger, RuleId)> {
        let heads = self.heads(begin);
        let mut out = Vec::new();
        for (trigger, rest) in heads {
            for body in bodies(self) {
                let rule = match (&rest, body) {
                    (Expr::Empty, Expr::Ref(rule)) => rule,
                    (rest, body) => {
                        let body = Expr::seq([rest.clone(), body]);
                        self.builder.labelled("calls", Role::Marker.label(), body)
                    }
                };
                out.push((trigger.clone(), rule));
            }
        }
        out
    }
}

/// White space, as much as may stand in a gap.
pub(crate) fn gap() -> Expr {
    Expr::repeat(Expr::Class(ByteSet::of(b" \t\n\r")), 0, Some(MAX_GAP))
}

fn id(style: IdStyle) -> Expr {
    let digits = ByteSet::range(b'0', b'9');
    match style {
        IdStyle::FromZero | IdStyle::FromOne => Expr::repeat(Expr::Class(digits), 1, Some(9)),
        IdStyle::Nine => {
            let letters = ByteSet::range(b'a', b'z').union(&ByteSet::range(b'A', b'Z'));
            Expr::repeat(Expr::Class(digits.union(&letters)), 9, Some(9))
        }
    }
}

/// A tool that is asked for but not on offer.
pub(crate) fn unknown(name: &str, known: impl Iterator<Item = String>) -> ToolChoiceError {
    ToolChoiceError::UnknownTool { name: name.to_owned(), known: known.collect() }
}
