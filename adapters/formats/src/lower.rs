//! Wire format + request -> grammar of the whole turn.

use std::sync::Arc;

use louver::front::json_schema::{self, SchemaError, SchemaErrors};
use louver::ids::RuleId;
use louver::ir::{AfterTag, Dispatch, DispatchEnd, Expr, GrammarBuilder, SpecialToken, Trigger};
use louver::spec::json::Json;
use louver::spec::tools::{Tool, ToolChoice};

use crate::arguments;
use crate::format::{Marker, NameStyle, ParallelPolicy, Part, ReasoningFormat, TextPlace, WireFormat};
use crate::plan::{Plan, PlanInner, Role, ToolPlan, Trims};
use crate::request::{LowerError, Parallel, RESPONSE_POINTER, Reasoning, ToolRequest};

impl WireFormat {
    /// The grammar of the whole turn that the request allows: reasoning, text, calls, answer. Whatever cannot be
    /// enforced is an error, all of them together. Cost: that of lowering the schemas of the tools that may be called.
    pub fn lower(&self, request: &ToolRequest) -> Result<Plan, LowerError> {
        request.tool_choice.check(&request.tools)?;
        let mut lowering = Lowering { format: self, request, builder: GrammarBuilder::new(), faults: Vec::new() };
        let tools: Vec<ToolPlan> = (request.tools.iter().enumerate())
            .map(|(k, tool)| ToolPlan { name: tool.name.clone(), arguments: lowering.arguments(k, tool) })
            .collect();
        let response = lowering.response();
        if !lowering.faults.is_empty() {
            return Err(LowerError::Schemas(SchemaErrors(lowering.faults)));
        }
        let bodies: Vec<RuleId> = (tools.iter().enumerate())
            .filter_map(|(k, tool)| tool.arguments.map(|arguments| lowering.call(k, &tool.name, arguments)))
            .collect();
        let reasoning = lowering.reasoning()?;
        let rest = lowering.rest(&bodies, response);
        let turn = lowering.builder.rule("turn", Expr::seq([reasoning, rest]));
        let grammar = lowering.builder.finish(turn)?;
        let reasoning = self.reasoning.as_ref();
        let trims = Trims {
            separator: self.call.separator.clone().into_bytes(),
            lead: reasoning.map(|r| r.lead.clone().into_bytes()).unwrap_or_default(),
            trail: reasoning.map(|r| r.trail.clone().into_bytes()).unwrap_or_default(),
        };
        Ok(Plan { inner: Arc::new(PlanInner { grammar, tools, trims, format: self.name.clone() }) })
    }
}

struct Lowering<'a> {
    format: &'a WireFormat,
    request: &'a ToolRequest,
    builder: GrammarBuilder,
    faults: Vec<SchemaError>,
}

impl Lowering<'_> {
    /// The rule of a tool's arguments, if the turn may call it.
    fn arguments(&mut self, k: usize, tool: &Tool) -> Option<RuleId> {
        let callable = match &self.request.tool_choice {
            ToolChoice::Auto | ToolChoice::Required => true,
            ToolChoice::None => false,
            ToolChoice::Named(name) => *name == tool.name,
        };
        if !callable {
            return None;
        }
        let pointer = tool.parameters_pointer(k);
        let schema = self.schema(&tool.parameters, &pointer)?;
        let body = arguments::wrap(self.format.call.arguments, schema);
        Some(self.builder.labelled(format!("arguments of {}", tool.name), Role::Arguments(k).label(), body))
    }

    /// The rule of the answer that `response_format` asks for, if the turn may be one.
    fn response(&mut self) -> Option<RuleId> {
        let schema = self.request.response_format.as_ref()?;
        if matches!(self.request.tool_choice, ToolChoice::Required | ToolChoice::Named(_)) {
            return None;
        }
        let rule = self.schema(schema, RESPONSE_POINTER)?;
        Some(self.builder.labelled("response", Role::Response.label(), Expr::Ref(rule)))
    }

    fn schema(&mut self, schema: &Json, pointer: &str) -> Option<RuleId> {
        let ToolRequest { schema_options, limits, .. } = self.request;
        match json_schema::lower_into(&mut self.builder, schema, schema_options, limits) {
            Ok(rule) => Some(rule),
            Err(errors) => {
                let rebase =
                    |error: SchemaError| SchemaError { pointer: format!("{pointer}{}", error.pointer), ..error };
                self.faults.extend(errors.0.into_iter().map(rebase));
                None
            }
        }
    }

    /// A call behind its begin marker.
    fn call(&mut self, k: usize, name: &str, arguments: RuleId) -> RuleId {
        let call = &self.format.call;
        let header = self.parts(&call.header, name);
        let trailer = self.parts(&call.trailer, name);
        let end = call.end.as_ref().map_or(Expr::Empty, |end| self.marker(end));
        let header = self.builder.labelled(format!("header of {name}"), Role::Header(k).label(), header);
        let trailer =
            self.builder.labelled(format!("trailer of {name}"), Role::Trailer(k).label(), Expr::seq([trailer, end]));
        self.builder.rule(format!("call of {name}"), Expr::seq([header, arguments, trailer].map(Expr::Ref)))
    }

    fn parts(&mut self, parts: &[Part], name: &str) -> Expr {
        Expr::seq(parts.iter().map(|part| match part {
            Part::Text(text) => Expr::text(text),
            Part::Name(part) => Expr::text(&part.name.write(name)),
            Part::Marker(marker) => self.marker(marker),
        }))
    }

    fn marker(&mut self, marker: &Marker) -> Expr {
        Expr::alt(self.triggers(marker).into_iter().map(|trigger| match trigger {
            Trigger::Text(bytes) => Expr::bytes(&bytes),
            Trigger::Special(special) => Expr::Special(special),
        }))
    }

    fn triggers(&mut self, marker: &Marker) -> Vec<Trigger> {
        let text = marker.spelled().map(|text| Trigger::Text(text.as_bytes().to_vec()));
        let token = match marker {
            Marker::Text(_) => None,
            Marker::Token(name) | Marker::Either(name) => {
                Some(Trigger::Special(self.builder.special(SpecialToken::Name(name.clone()))))
            }
        };
        text.into_iter().chain(token).collect()
    }

    fn reasoning(&mut self) -> Result<Expr, LowerError> {
        let Some(format) = &self.format.reasoning else {
            return match self.request.reasoning {
                Reasoning::Optional | Reasoning::Off => Ok(Expr::Empty),
                Reasoning::Required | Reasoning::Opened => {
                    Err(LowerError::NoReasoning { format: self.format.name.clone() })
                }
            };
        };
        Ok(match self.request.reasoning {
            Reasoning::Off => Expr::Empty,
            Reasoning::Opened => self.reasoning_inside(format),
            Reasoning::Required => Expr::seq([self.marker(&format.begin), self.reasoning_inside(format)]),
            Reasoning::Optional => {
                Expr::optional(Expr::seq([self.marker(&format.begin), self.reasoning_inside(format)]))
            }
        })
    }

    fn reasoning_inside(&mut self, format: &ReasoningFormat) -> Expr {
        let dispatch = Dispatch {
            tags: Vec::new(),
            stops: self.triggers(&format.end),
            excludes: format.excludes.iter().map(|e| e.as_bytes().to_vec()).collect(),
            after: AfterTag::End,
            end: DispatchEnd::AtStop,
        };
        let label = Role::Reasoning.label();
        let inside = self.builder.labelled("reasoning", label, Expr::Dispatch(Box::new(dispatch)));
        Expr::seq([Expr::Ref(inside), Expr::text(&format.after)])
    }

    /// The turn behind reasoning.
    fn rest(&mut self, bodies: &[RuleId], response: Option<RuleId>) -> Expr {
        let forced = matches!(self.request.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        match response {
            _ if forced => self.calls(bodies),
            Some(response) if bodies.is_empty() => Expr::Ref(response),
            Some(response) => Expr::alt([self.calls(bodies), Expr::Ref(response)]),
            None if bodies.is_empty() => self.text(Vec::new(), AfterTag::End),
            None => self.text_and_calls(bodies),
        }
    }

    fn many(&self) -> bool {
        self.format.call.parallel == ParallelPolicy::Many
            && self.request.parallel == Parallel::Any
            && !matches!(self.request.tool_choice, ToolChoice::Named(_))
    }

    /// Calls and nothing else.
    fn calls(&mut self, bodies: &[RuleId]) -> Expr {
        let calls = self.call_list(bodies);
        match &self.format.section {
            Some(section) => Expr::seq([self.marker(&section.begin), calls, self.marker(&section.end)]),
            None => calls,
        }
    }

    /// One or more calls, separated.
    fn call_list(&mut self, bodies: &[RuleId]) -> Expr {
        let first = self.any_call(bodies);
        Expr::seq([first, self.more_calls(bodies)])
    }

    fn more_calls(&mut self, bodies: &[RuleId]) -> Expr {
        if !self.many() {
            return Expr::Empty;
        }
        Expr::star(Expr::seq([Expr::text(&self.format.call.separator), self.any_call(bodies)]))
    }

    fn any_call(&mut self, bodies: &[RuleId]) -> Expr {
        let begin = self.marker(&self.format.call.begin);
        Expr::seq([begin, Expr::alt(bodies.iter().map(|body| Expr::Ref(*body)))])
    }

    fn text_and_calls(&mut self, bodies: &[RuleId]) -> Expr {
        let place = self.format.text.place;
        if place == TextPlace::InsteadOfCalls {
            let calls = self.calls(bodies);
            return Expr::alt([calls, self.text(Vec::new(), AfterTag::End)]);
        }
        let many = self.many();
        let (opening, tags) = match &self.format.section {
            Some(section) => {
                let body = Expr::seq([self.call_list(bodies), self.marker(&section.end)]);
                (&section.begin, vec![self.builder.labelled("calls", Role::Marker.label(), body)])
            }
            None if place == TextPlace::BeforeCalls && many => {
                let more = self.more_calls(bodies);
                let first = Expr::alt(bodies.iter().map(|body| Expr::Ref(*body)));
                (
                    &self.format.call.begin,
                    vec![self.builder.labelled("calls", Role::Marker.label(), Expr::seq([first, more]))],
                )
            }
            None => (&self.format.call.begin, bodies.to_vec()),
        };
        let triggers = self.triggers(opening);
        let tags =
            triggers.iter().flat_map(|trigger| tags.iter().map(|body| (trigger.clone(), *body))).collect::<Vec<_>>();
        let after = if place == TextPlace::Anywhere && many { AfterTag::Loop } else { AfterTag::End };
        self.text(tags, after)
    }

    /// Free text. Without tags, no call can begin in it.
    fn text(&mut self, tags: Vec<(Trigger, RuleId)>, after: AfterTag) -> Expr {
        let mut excludes: Vec<Vec<u8>> = self.format.text.excludes.iter().map(|e| e.as_bytes().to_vec()).collect();
        let begins = self.format.section.iter().map(|s| &s.begin).chain([&self.format.call.begin]);
        for text in begins.filter_map(Marker::spelled) {
            let text = text.as_bytes();
            let is_tag = tags.iter().any(|(trigger, _)| matches!(trigger, Trigger::Text(t) if t == text));
            if !is_tag && !excludes.iter().any(|e| e == text) {
                excludes.push(text.to_vec());
            }
        }
        let dispatch = Dispatch { tags, stops: Vec::new(), excludes, after, end: DispatchEnd::Anywhere };
        Expr::Ref(self.builder.labelled("text", Role::Text.label(), Expr::Dispatch(Box::new(dispatch))))
    }
}

impl NameStyle {
    /// A tool's name as it stands on the wire.
    pub(crate) fn write(self, name: &str) -> String {
        match self {
            NameStyle::Raw => name.to_owned(),
            NameStyle::Json => {
                let quoted = serde_json::Value::from(name).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
        }
    }
}
