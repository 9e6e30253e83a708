//! Checks that the parts of a request go with each other and with a wire format.

use std::collections::HashSet;

use louver::spec::tools::{ToolChoice, ToolChoiceError};

use super::builtin::Builtin;
use super::errors::LowerError;
use super::{Reasoning, ToolRequest};
use crate::format::{Marker, WireFormat};

impl ToolRequest {
    /// Checks that the parts of the request go with each other and with the format.
    pub(crate) fn check(&self, format: &WireFormat) -> Result<(), LowerError> {
        self.check_choice()?;
        format.check_builtins(&self.builtins)?;
        let mut taken: HashSet<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        let is_taken = self.builtins.iter().any(|builtin| taken.contains(&*builtin.name));
        refuse(is_taken, TOOLS, "a built-in tool and another of the same name")?;
        taken.extend(self.builtins.iter().map(|builtin| &*builtin.name));
        let is_taken = self.customs.iter().any(|custom| !taken.insert(&custom.name));
        refuse(is_taken, TOOLS, "a custom tool and another of the same name")?;
        self.check_answer(format)?;
        self.check_texts(format)?;
        let has_budget = self.reasoning_budget.is_some();
        let is_off = self.reasoning == Reasoning::Off;
        refuse(has_budget && is_off, BUDGET, "a reasoning budget without reasoning")?;
        let needs_block = matches!(self.reasoning, Reasoning::Required | Reasoning::Opened);
        if format.reasoning.is_none() && (has_budget || needs_block) {
            return Err(LowerError::NoReasoning { format: format.name.clone() });
        }
        Ok(())
    }

    pub(super) fn check_choice(&self) -> Result<(), ToolChoiceError> {
        let names: HashSet<&str> = self.names().collect();
        let is_offered = |name: &str| names.contains(name);
        let unknown = |name: &str| {
            let known = self.names().map(str::to_owned).collect();
            Err(ToolChoiceError::UnknownTool { name: name.to_owned(), known })
        };
        if let Some(name) = self.allowed.iter().flatten().find(|name| !is_offered(name)) {
            return unknown(name);
        }
        let listed: HashSet<&str> = self.allowed.iter().flatten().map(String::as_str).collect();
        let is_allowed = |name: &str| self.allowed.is_none() || listed.contains(name);
        match &self.tool_choice {
            ToolChoice::Named(name) if !is_offered(name) || !is_allowed(name) => unknown(name),
            ToolChoice::Required if !self.names().any(is_allowed) => Err(ToolChoiceError::NoTools),
            _ => Ok(()),
        }
    }

    /// Checks that a structural tag goes with the rest of the request and the format.
    fn check_answer(&self, format: &WireFormat) -> Result<(), LowerError> {
        if self.answer_tag.is_none() {
            return Ok(());
        }
        let has_schema = self.response_format.is_some();
        refuse(has_schema, ANSWER, "a structural tag and a schema of the answer")?;
        refuse(!self.stop.is_empty(), STOP, "stop strings and a constraint on the response")?;
        // The free text of the tag could be taken for calls.
        let may_call = self.tool_choice != ToolChoice::None && self.names().next().is_some();
        let what = "a structural tag, regular expression, choice or grammar for the response, and \
                    tools that may be called";
        refuse(may_call, TOOLS, what)?;
        let frame_end = format.frame.as_ref().map(|frame| &frame.end);
        let mut ends = format.text.end.iter().chain(frame_end).flat_map(Marker::plain_texts);
        let what = "a structural tag, regular expression, choice or grammar for the response, in \
                    a format that ends text with a written marker";
        refuse(ends.next().is_some(), ANSWER, what)
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
        let has_schema = self.response_format.is_some();
        refuse(
            !self.stop.is_empty() && has_schema,
            STOP,
            "stop strings and a constraint on the response",
        )?;
        let frame = format.frame.iter().flat_map(|frame| [&frame.begin, &frame.end]);
        let section = format.section.iter().map(|section| &section.begin);
        let markers = section
            .chain(&format.call.begin)
            .chain(&format.text.end)
            .chain(format.builtin_begin())
            .chain(frame);
        let markers: Vec<String> = markers.flat_map(Marker::plain_texts).collect();
        let is_in_marker =
            texts().any(|text| markers.iter().any(|marker| marker.contains(text.as_str())));
        refuse(is_in_marker, STOP, "a stop string or ban that is part of a marker of the format")
    }
}

impl WireFormat {
    /// Fails if the request's built-in tools do not fit the format.
    fn check_builtins(&self, builtins: &[Builtin]) -> Result<(), LowerError> {
        let Some(format) = &self.builtin else {
            if builtins.is_empty() {
                return Ok(());
            }
            return Err(LowerError::NoBuiltins { format: self.name.clone() });
        };
        let with_code = builtins.iter().filter(|builtin| format.schema(builtin).is_none()).count();
        if format.bare_code && with_code > 1 {
            let what = "several built-in tools that are called with code, in a format that does \
                        not name them";
            return Err(LowerError::Combination { pointer: TOOLS, what });
        }
        Ok(())
    }
}

/// Pointers to the members of a request that do not go with others.
const TOOLS: &str = "/tools";
const STOP: &str = "/stop";
const ANSWER: &str = "/response_format";
const BUDGET: &str = "/louver/reasoning_budget";

fn refuse(is_wrong: bool, pointer: &'static str, what: &'static str) -> Result<(), LowerError> {
    if is_wrong { Err(LowerError::Combination { pointer, what }) } else { Ok(()) }
}
