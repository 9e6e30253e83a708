//! Checks that the parts of a request go with each other and with a wire format.

use std::collections::HashSet;

use super::choice::{ToolChoice, ToolChoiceError};
use super::errors::{BUDGET, LowerError};
use super::response::ResponseFormat;
use super::tool::Tool;
use super::{Reasoning, ToolRequest};
use crate::format::{Marker, WireFormat, fixed_prefix};

impl ToolRequest {
    /// Checks that the parts of the request go with each other and with the format.
    pub(crate) fn check(&self, format: &WireFormat) -> Result<(), LowerError> {
        self.check_choice()?;
        let is_repeated = self.names().len() < self.tools.len();
        refuse(is_repeated, TOOLS, "two tools of the same name")?;
        self.check_builtins(format)?;
        self.check_names(format)?;
        self.check_response_tag(format)?;
        self.check_texts(format)?;
        let has_budget = self.reasoning_budget.is_some();
        let is_off = self.reasoning == Reasoning::Off;
        refuse(has_budget && is_off, BUDGET, "a reasoning budget without reasoning")?;
        let needs_block = matches!(self.reasoning, Reasoning::Required | Reasoning::Opened);
        if format.reasoning.is_none() && (has_budget || needs_block) {
            let pointer = if has_budget { BUDGET } else { "" };
            return Err(LowerError::NoReasoning { pointer, format: format.name.clone() });
        }
        Ok(())
    }

    /// Whether the turn must have a call.
    pub(crate) fn is_forced(&self) -> bool {
        matches!(self.tool_choice, ToolChoice::Required | ToolChoice::Named(_))
    }

    /// Whether the turn may be the response that `response_format` asks for.
    pub(crate) fn may_respond(&self) -> bool {
        self.response_format.is_some() && !self.is_forced()
    }

    /// The stop strings that end the response, even if its structure is not complete.
    pub(crate) fn response_stops(&self) -> &[String] {
        if self.may_respond() { &self.stop } else { &[] }
    }

    /// The stop strings that free text watches for.
    pub(crate) fn text_stops(&self) -> &[String] {
        if self.may_respond() { &[] } else { &self.stop }
    }

    /// Whether the turn may call the tool.
    pub(crate) fn may_call(&self, name: &str) -> bool {
        let is_allowed =
            self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|a| a == name));
        is_allowed
            && match &self.tool_choice {
                ToolChoice::Auto | ToolChoice::Required => true,
                ToolChoice::None => false,
                ToolChoice::Named(named) => named == name,
            }
    }

    fn names(&self) -> HashSet<&str> {
        self.tools.iter().map(Tool::name).collect()
    }

    pub(super) fn check_choice(&self) -> Result<(), ToolChoiceError> {
        let names = self.names();
        let is_offered = |name: &str| names.contains(name);
        let unknown = |name: &str| {
            let known = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
            Err(ToolChoiceError::UnknownTool { name: name.to_owned(), known })
        };
        if let Some(name) = self.allowed.iter().flatten().find(|name| !is_offered(name)) {
            return unknown(name);
        }
        let listed: HashSet<&str> = self.allowed.iter().flatten().map(String::as_str).collect();
        let is_allowed = |name: &str| self.allowed.is_none() || listed.contains(name);
        match &self.tool_choice {
            ToolChoice::Named(name) if !is_offered(name) || !is_allowed(name) => unknown(name),
            ToolChoice::Required if !names.iter().any(|name| is_allowed(name)) => {
                Err(ToolChoiceError::NoTools)
            }
            _ => Ok(()),
        }
    }

    /// Checks that built-in tools fit the format.
    fn check_builtins(&self, format: &WireFormat) -> Result<(), LowerError> {
        let mut with_code = 0;
        for (k, tool) in self.tools.iter().enumerate() {
            let Tool::Builtin(tool) = tool else { continue };
            let Some(format) = &format.builtin else {
                let pointer = format!("/tools/{k}/type");
                return Err(LowerError::NoBuiltins { pointer, format: format.name.clone() });
            };
            with_code += usize::from(format.bare_code && format.schema(tool).is_none());
        }
        let what = "several built-in tools that are called with code, in a format that does not \
                    name them";
        refuse(with_code > 1, TOOLS, what)
    }

    /// Checks that no call begins as text does, where text and calls are messages.
    fn check_names(&self, format: &WireFormat) -> Result<(), LowerError> {
        let text = format.text.begin.iter().filter(|_| format.messages.is_some());
        let begins: Vec<String> = text.flat_map(Marker::plain_texts).collect();
        let is_text = |name: &str| {
            let header = fixed_prefix(&format.call.header, name);
            begins.iter().any(|begin| header.starts_with(begin.as_str()))
        };
        let mut functions = self.tools.iter().filter(|tool| !tool.is_builtin()).map(Tool::name);
        let Some(name) = functions.find(|name| is_text(name)) else { return Ok(()) };
        let what = format!("the tool {name:?} and text, which begins as calls of it do");
        Err(LowerError::Combination { pointer: TOOLS, what: what.into() })
    }

    /// Checks that a structural tag goes with the rest of the request and the format.
    fn check_response_tag(&self, format: &WireFormat) -> Result<(), LowerError> {
        if !matches!(self.response_format, Some(ResponseFormat::StructuralTag(_))) {
            return Ok(());
        }
        // The free text of the tag could be taken for calls.
        let may_call = self.tool_choice != ToolChoice::None && !self.tools.is_empty();
        let what = "a structural tag, regular expression, choice or grammar for the response, and \
                    tools that may be called";
        refuse(may_call, TOOLS, what)?;
        let frame_end = format.frame.as_ref().map(|frame| &frame.end);
        let mut ends = format.text.end.iter().chain(frame_end).flat_map(Marker::plain_texts);
        let what = "a structural tag, regular expression, choice or grammar for the response, in \
                    a format that ends text with a written marker";
        refuse(ends.next().is_some(), RESPONSE, what)
    }

    /// Checks stop strings and bans.
    fn check_texts(&self, format: &WireFormat) -> Result<(), LowerError> {
        let texts = || self.stop.iter().chain(&self.bans);
        let limit = self.limits.dispatch_bytes;
        let mut bytes = 0usize;
        for (k, text) in texts().enumerate() {
            bytes = bytes.saturating_add(text.len());
            if bytes > limit {
                // A single stop string may stand in the request without a list.
                let pointer = match self.stop.len() {
                    1 if k == 0 => "/stop".to_owned(),
                    stops if k < stops => format!("/stop/{k}"),
                    _ => String::new(),
                };
                return Err(LowerError::TooMuchText { pointer, limit });
            }
        }
        refuse(texts().any(String::is_empty), STOP, "an empty stop string or ban")?;
        let frame = format.frame.iter().flat_map(|frame| [&frame.begin, &frame.end]);
        let section = format.section.iter().map(|section| &section.begin);
        let separator = format.messages.iter().map(|messages| &messages.separator);
        let markers = section
            .chain(separator)
            .chain(&format.call.begin)
            .chain(&format.text.end)
            .chain(format.builtin_begin())
            .chain(frame);
        let markers: Vec<String> = markers.flat_map(Marker::plain_texts).collect();
        // The stop strings of a response are no part of the grammar.
        let from = self.response_stops().len();
        for (k, text) in texts().enumerate().skip(from) {
            let Some(marker) = markers.iter().find(|marker| marker.contains(text.as_str())) else {
                continue;
            };
            let kind = if k < self.stop.len() { "stop string" } else { "ban" };
            let what =
                format!("the {kind} {text:?} and the marker {marker:?}, of which it is a part");
            return Err(LowerError::Combination { pointer: STOP, what: what.into() });
        }
        Ok(())
    }
}

/// Pointers to the members of a request that do not go with others.
const TOOLS: &str = "/tools";
pub(crate) const STOP: &str = "/stop";
const RESPONSE: &str = "/response_format";

fn refuse(is_wrong: bool, pointer: &'static str, what: &'static str) -> Result<(), LowerError> {
    if is_wrong { Err(LowerError::Combination { pointer, what: what.into() }) } else { Ok(()) }
}
