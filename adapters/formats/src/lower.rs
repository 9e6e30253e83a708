//! Wire format + request -> grammar of the whole turn.

use std::collections::HashSet;
use std::sync::Arc;

use louver::front::json_schema::{SchemaError, SchemaErrors};
use louver::fsm::ByteSet;
use louver::ids::RuleId;
use louver::ir::{Expr, GrammarBuilder, SpecialToken, Trigger};
use louver::spec::tools::{Tool, ToolChoice, ToolChoiceError};

use crate::arguments::Lowered;
use crate::fault::{PartErrors, RequestFault};
use crate::format::{ArgumentStyle, MAX_GAP, ParallelPolicy, TextPlace, WireFormat};
use crate::marker::{Atom, Glue, IdStyle, Marker, Part};
use crate::plan::{Loose, Plan, PlanInner, Role, ToolPlan, Trims};
use crate::request::{LowerError, Parallel, RESPONSE_POINTER, Reasoning, ToolRequest};
use crate::spelling::Spelled;

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
            own: Vec::new(),
            frame_end: None,
            style: &self.call.arguments,
            spelled: Vec::new(),
        };
        let unflagged = request.unflagged();
        let loosened: HashSet<usize> = unflagged.iter().map(|(k, _)| *k).collect();
        let (mut lowered, mut loose): (Vec<Option<Lowered>>, Vec<Loose>) = (Vec::new(), Vec::new());
        for (k, tool) in request.tools.iter().enumerate() {
            let known = lowering.relaxed.len();
            lowered.push(lowering.arguments(k, tool));
            if lowering.relaxed.len() > known || loosened.contains(&k) {
                loose.push(Loose { tool: Some(k), schema: tool.parameters.clone() });
            }
        }
        for (k, custom) in request.customs.iter().enumerate() {
            lowered.push(lowering.custom_arguments(k, custom));
        }
        for (k, builtin) in request.builtins.iter().enumerate() {
            let known = lowering.relaxed.len();
            lowered.push(lowering.builtin_arguments(k, builtin));
            let schema = self.builtin.as_ref().and_then(|own| own.schema(builtin));
            if let Some(schema) = schema.filter(|_| lowering.relaxed.len() > known) {
                loose.push(Loose { tool: Some(request.functions() + k), schema });
            }
        }
        let known = lowering.relaxed.len();
        let response = lowering.response();
        if let Some(schema) =
            request.response_format.as_ref().filter(|_| lowering.relaxed.len() > known)
        {
            loose.push(Loose { tool: None, schema: schema.clone() });
        }
        if lowering.parts.customs.is_empty()
            && lowering.parts.tag.is_none()
            && !lowering.parts.schemas.is_empty()
        {
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
        for (k, (tool, lowered)) in tools.iter().zip(&lowered).enumerate() {
            let Some(Lowered { rule, reader }) = lowered else { continue };
            let own = k >= request.functions();
            let call = lowering.call(k, &tool.name, *rule, (own, reader.is_code()));
            let calls =
                if own && self.messages.is_none() { &mut lowering.own } else { &mut bodies };
            calls.push(call);
        }
        let mut styles = vec![(&self.call.arguments, lowered)];
        lowering.spell(&mut styles)?;
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
        let grammar = lowering.builder.finish(turn)?.into();
        let readers = |lowered: Vec<Option<Lowered>>| {
            lowered.into_iter().map(|l| l.map(|l| l.reader)).collect()
        };
        let mut styles =
            styles.into_iter().map(|(style, lowered)| (style.clone(), readers(lowered)));
        let readers = styles.next().map(|(_, readers)| readers).unwrap_or_default();
        let inner = PlanInner {
            grammar,
            tools,
            functions: request.functions(),
            readers,
            other_readers: styles.collect(),
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
    /// Calls of the model's own tools behind their begin marker, where turns are no rows of messages.
    pub(crate) own: Vec<RuleId>,
    /// What must close the turn that is being lowered.
    pub(crate) frame_end: Option<Marker>,
    /// The style of the arguments that are being lowered.
    pub(crate) style: &'a ArgumentStyle,
    /// The other spellings, as the format lists them.
    pub(crate) spelled: Vec<Spelled>,
}

impl Lowering<'_> {
    /// Whether the turn may call the tool.
    pub(crate) fn callable(&self, name: &str) -> bool {
        let allowed =
            self.request.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|a| a == name));
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

    pub(crate) fn arguments(&mut self, k: usize, tool: &Tool) -> Option<Lowered> {
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
        let rule =
            self.builder.labelled(format!("arguments of {name}"), label, Expr::Ref(lowered.rule));
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

    /// A call behind its begin marker, of a function or of a tool of the model's `own`, perhaps with code.
    fn call(
        &mut self,
        k: usize,
        name: &str,
        arguments: RuleId,
        (own, code): (bool, bool),
    ) -> RuleId {
        let format = self.format;
        let (trailer, end) = match format.builtin.as_ref().filter(|_| own) {
            Some(builtin) => (&builtin.trailer, format.builtin_end()),
            None => (&format.call.trailer, format.call.end.as_ref()),
        };
        let headers =
            Expr::alt(format.headers(own, code).into_iter().map(|header| self.parts(header, name)));
        let trailer = if own && code { Expr::Empty } else { self.parts(trailer, name) };
        let end = end.map_or(Expr::Empty, |end| self.marker(end));
        self.call_of((k, name), headers, arguments, Expr::seq([trailer, end]))
    }

    /// A call of its parts.
    pub(crate) fn call_of(
        &mut self,
        (k, name): (usize, &str),
        header: Expr,
        arguments: RuleId,
        trailer: Expr,
    ) -> RuleId {
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
        Expr::seq(atoms.iter().map(|atom| match atom {
            Atom::Text(text) => Expr::text(text),
            Atom::Token(name) => {
                Expr::Special(self.builder.special(SpecialToken::Name(name.clone())))
            }
        }))
    }

    fn trigger(&mut self, atom: &Atom) -> Trigger {
        match atom {
            Atom::Text(text) => Trigger::Text(text.as_bytes().to_vec()),
            Atom::Token(name) => {
                Trigger::Special(self.builder.special(SpecialToken::Name(name.clone())))
            }
        }
    }

    /// Its spellings, each as what free text is watched for and what must follow that.
    pub(crate) fn heads(&mut self, marker: &Marker) -> Vec<(Trigger, Expr)> {
        let head = |spelling: &Vec<Atom>| match &spelling[..] {
            [Atom::Text(text), Atom::Token(name), rest @ ..] => {
                let special = self.builder.special(SpecialToken::Name(name.clone()));
                (Trigger::Led(text.as_bytes().to_vec(), special), self.atoms(rest))
            }
            [first, rest @ ..] => (self.trigger(first), self.atoms(rest)),
            // A marker is something (`check`); the grammar refuses this.
            [] => (Trigger::Text(Vec::new()), Expr::Empty),
        };
        marker.spellings().iter().map(head).collect()
    }

    /// As [`Lowering::heads`]. A marker that begins with that of the model's own tools is read as
    /// that one, and the rest.
    pub(crate) fn begins(&mut self, marker: &Marker) -> Vec<(Trigger, Expr)> {
        let own = self.format.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref());
        let own: Vec<String> = own.into_iter().flat_map(Marker::text_heads).collect();
        let mut heads = self.heads(marker);
        for (trigger, rest) in &mut heads {
            if let Trigger::Text(text) = &*trigger
                && let Some(begin) = own.iter().find(|begin| text.starts_with(begin.as_bytes()))
            {
                *rest = Expr::seq([Expr::bytes(&text[begin.len()..]), rest.clone()]);
                *trigger = Trigger::Text(begin.clone().into_bytes());
            }
        }
        heads
    }

    /// As [`Lowering::heads`], of a marker of a single step.
    pub(crate) fn triggers(&mut self, marker: &Marker) -> Vec<Trigger> {
        self.heads(marker).into_iter().map(|(trigger, _)| trigger).collect()
    }

    /// The turn behind reasoning.
    fn rest(&mut self, bodies: &[RuleId], response: Option<RuleId>) -> Result<Expr, LowerError> {
        let Some(frame) = &self.format.frame else { return self.unframed(bodies, response) };
        self.frame_end = Some(frame.end.clone());
        let inside = self.unframed(bodies, response)?;
        self.frame_end = None;
        let framed = Expr::seq([self.marker(&frame.begin), inside]);
        Ok(Expr::alt([self.unframed(bodies, response)?, framed]))
    }

    /// What ends the turn behind a call or an answer.
    pub(crate) fn closing(&mut self) -> Expr {
        self.frame_end.clone().map_or(Expr::Empty, |end| self.marker(&end))
    }

    /// Text and calls, and what closes them.
    fn unframed(
        &mut self,
        bodies: &[RuleId],
        response: Option<RuleId>,
    ) -> Result<Expr, LowerError> {
        if let (Some(begin), Some(end)) = (&self.format.text.begin, &self.format.text.end) {
            return Ok(self.framed_rest((begin, end), bodies, response));
        }
        let callable = !(bodies.is_empty() && self.own.is_empty());
        let whole = match response {
            _ if self.forced() => self.calls(bodies),
            Some(response) if callable => Expr::alt([self.calls(bodies), Expr::Ref(response)]),
            Some(response) => Expr::Ref(response),
            None if callable => return self.text_and_calls(bodies),
            None => return Ok(self.text(None, None)),
        };
        Ok(Expr::seq([whole, self.closing()]))
    }

    /// Text between markers, then calls; or one of the two.
    fn framed_rest(
        &mut self,
        (begin, end): (&Marker, &Marker),
        bodies: &[RuleId],
        response: Option<RuleId>,
    ) -> Expr {
        let begin = match self.request.reasoning {
            // Where there is no reasoning block, the prompt may have opened the text.
            Reasoning::Off if self.format.text.place != TextPlace::InsteadOfCalls => {
                Expr::optional(self.marker(begin))
            }
            _ => self.marker(begin),
        };
        let calls = if bodies.is_empty() { Expr::Never } else { self.calls(bodies) };
        let text = Expr::seq([begin.clone(), self.text_until(end, Role::Text)]);
        if self.format.text.place == TextPlace::InsteadOfCalls {
            return match response {
                _ if self.forced() => calls,
                Some(response) => {
                    Expr::alt([Expr::seq([begin, Expr::Ref(response), self.marker(end)]), calls])
                }
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
        let own = self.own_calls();
        if bodies.is_empty() {
            return own;
        }
        let calls = self.call_list(bodies);
        let calls = match &self.format.section {
            Some(section) => {
                let before = Expr::optional(Expr::text(&section.before));
                let begin = self.marker(&section.begin);
                Expr::seq([before, begin, self.section_rest(calls)])
            }
            None if own != Expr::Never && self.most_calls() != Some(1) => {
                // One of the model's own tools comes last.
                let most = self.most_calls().map(|most| most - 1);
                let call = self.any_call(bodies);
                let more = Expr::seq([self.glue(&self.format.call.separator), call.clone()]);
                let before = Expr::seq([call, Expr::repeat(more, 0, most.map(|most| most - 1))]);
                return Expr::alt([calls, Expr::seq([Expr::optional(before), own])]);
            }
            None => calls,
        };
        Expr::alt([calls, own])
    }

    /// A call of one of the model's own tools, where turns are no rows of messages.
    fn own_calls(&mut self) -> Expr {
        let begin = self.format.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref());
        match begin {
            Some(begin) if !self.own.is_empty() => {
                let begin = self.marker(begin);
                Expr::seq([begin, Expr::alt(self.own.iter().map(|call| Expr::Ref(*call)))])
            }
            _ => Expr::Never,
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
            return Ok(Expr::alt([calls, self.text_instead_of_calls()?]));
        }
        let most = self.most_calls();
        let section = self.format.section.is_some();
        let Some(begin) =
            self.format.section.as_ref().map(|s| &s.begin).or(self.format.call.begin.as_ref())
        else {
            return Ok(Expr::Never);
        };
        // Behind the marker: a section's calls, or one call.
        let calls = match section {
            _ if bodies.is_empty() => Expr::Never,
            true => {
                let calls = self.call_list(bodies);
                self.section_rest(calls)
            }
            false => Expr::alt(bodies.iter().map(|body| Expr::Ref(*body))),
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
            // A bound on calls holds for the turn: one section.
            _ => {
                let more = if section { Expr::Empty } else { self.more_calls(bodies) };
                let calls = Expr::seq([calls, more]);
                let closing = self.closing();
                Ok(self.text(Some((begin, calls)), Some(closing)))
            }
        }
    }

    /// Tags that begin with the marker and go on with the calls and what is next, and those of
    /// calls of the model's own tools.
    pub(crate) fn tags(
        &mut self,
        begin: &Marker,
        calls: &Expr,
        next: &Expr,
    ) -> Vec<(Trigger, RuleId)> {
        let mut heads = Vec::new();
        let unsure = self.format.unsure_begins();
        if *calls != Expr::Never {
            let body = Expr::seq([calls.clone(), next.clone()]);
            // What may be text is a spelling of its own.
            let is_sure = |trigger: &Trigger| match trigger {
                Trigger::Text(text) => {
                    !unsure.iter().any(|begin| text.starts_with(begin.as_bytes()))
                }
                _ => true,
            };
            let begins = self.begins(begin).into_iter().filter(|(trigger, _)| is_sure(trigger));
            heads.extend(begins.map(|(trigger, rest)| (trigger, rest, body.clone())));
        }
        let own = self.format.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref());
        if let Some(own) = own.filter(|_| !self.own.is_empty()) {
            let begins = self.heads(own);
            let calls = Expr::alt(self.own.iter().map(|call| Expr::Ref(*call)));
            let calls = Expr::seq([calls, self.closing()]);
            heads.extend(begins.into_iter().map(|(trigger, rest)| (trigger, rest, calls.clone())));
        }
        let mut out = Vec::new();
        for (trigger, rest, body) in heads {
            let bodies = match (&rest, body) {
                // A tag for each tool.
                (Expr::Empty, Expr::Alt(bodies)) => bodies,
                (_, body) => vec![body],
            };
            for body in bodies {
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
    Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(MAX_GAP))
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
