//! The way back: a turn as the family's model would write it, from the same description as the grammar.

use crate::arguments::{self, RenderError};
use crate::builtin::BuiltinFormat;
use crate::format::{ArgumentStyle, Opener, ReasoningFormat, TextPlace, WireFormat};
use crate::marker::Part;
use crate::messages::MessagesFormat;
use crate::turn::{Call, CallKind, Turn};

/// How a turn is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions<'a> {
    /// The prompt has opened the reasoning block: the turn begins inside.
    pub opened: bool,
    /// Names of tools of the model's own.
    pub builtins: &'a [&'a str],
}

impl WireFormat {
    /// The turn on the wire, without a stop token. Arguments are JSON text; a style that is JSON takes them as they are
    /// (for the usual spelling see [`python_json`](crate::python_json)).
    pub fn render(&self, turn: &Turn) -> Result<String, RenderError> {
        self.render_with(turn, RenderOptions::default())
    }

    /// As [`WireFormat::render`].
    pub fn render_with(
        &self,
        turn: &Turn,
        options: RenderOptions<'_>,
    ) -> Result<String, RenderError> {
        if let Some(messages) = &self.messages {
            return self.render_messages(messages, turn, options);
        }
        let mut out = String::new();
        if let Some(reasoning) = &self.reasoning {
            if options.opened {
                out.push_str(&reasoning.inside(&turn.reasoning));
            } else if !turn.reasoning.is_empty() {
                out.push_str(&reasoning.begin.write());
                out.push_str(&reasoning.inside(&turn.reasoning));
            }
        }
        out.extend(self.frame.iter().map(|frame| frame.begin.write()));
        let instead = self.text.place == TextPlace::InsteadOfCalls && !turn.calls.is_empty();
        if instead {
            if !turn.text.is_empty() {
                return Err(RenderError::TextBesideCalls);
            }
        } else if let (Some(begin), Some(end)) = (&self.text.begin, &self.text.end) {
            out.push_str(&(begin.write() + &turn.text + &end.write()));
        } else {
            out.push_str(&turn.text);
        }
        let own = |call: &Call| {
            self.builtin.as_ref().filter(|_| options.builtins.contains(&call.name.as_str()))
        };
        let of_functions =
            turn.calls.iter().position(|call| own(call).is_some()).unwrap_or(turn.calls.len());
        let (functions, others) = turn.calls.split_at(of_functions);
        if !turn.text.is_empty() && !functions.is_empty() && !instead && self.text.end.is_none() {
            match &self.section {
                Some(section) => out.push_str(&section.before),
                None => out.push_str(&self.call.separator.write()),
            }
        }
        out.push_str(&self.render_calls(functions)?);
        for (k, call) in others.iter().enumerate() {
            out.push_str(&match own(call) {
                Some(builtin) => self.render_builtin(builtin, of_functions + k, call)?,
                None => self.render_calls(std::slice::from_ref(call))?,
            });
        }
        out.extend(self.frame.iter().map(|frame| frame.end.write()));
        out.extend(self.end.iter().map(|end| end.write()));
        Ok(out)
    }

    /// Calls on the wire, with what encloses them; nothing for no calls.
    pub fn render_calls(&self, calls: &[Call]) -> Result<String, RenderError> {
        if calls.is_empty() {
            return Ok(String::new());
        }
        let mut out = String::new();
        if let Some(section) = &self.section {
            out.push_str(&(section.begin.write() + &section.lead.write()));
        }
        let between = match &self.messages {
            Some(messages) => messages.separator.write(),
            None => self.call.separator.write(),
        };
        for (k, call) in calls.iter().enumerate() {
            out.push_str(if k > 0 { &between } else { "" });
            out.push_str(&self.render_call(k, call)?);
        }
        if let Some(section) = &self.section {
            out.push_str(&section.trail.write());
            out.extend(section.end.iter().map(|end| end.write()));
        }
        Ok(out)
    }

    fn render_call(&self, k: usize, call: &Call) -> Result<String, RenderError> {
        let format = &self.call;
        let mut out = format.begin.as_ref().map(|begin| begin.write()).unwrap_or_default();
        parts(&mut out, &format.header, k, call);
        let excludes = match &format.arguments {
            ArgumentStyle::Tagged(style) => self.excluded_values(style),
            _ => Vec::new(),
        };
        out.push_str(&match call.kind {
            CallKind::Function => {
                arguments::write(&format.arguments, &excludes, (k, &call.arguments))?
            }
            CallKind::Custom => {
                arguments::write_input(&format.arguments, &excludes, (k, &call.arguments))?
            }
        });
        parts(&mut out, &format.trailer, k, call);
        out.extend(format.end.iter().map(|end| end.write()));
        Ok(out)
    }

    /// A call of one of the model's own tools: with code, if it is no tool the family knows and `code` is all there is.
    fn render_builtin(
        &self,
        format: &BuiltinFormat,
        k: usize,
        call: &Call,
    ) -> Result<String, RenderError> {
        let mut out = format.begin.as_ref().map(|begin| begin.write()).unwrap_or_default();
        let code = arguments::code(k, &call.arguments)
            .ok()
            .filter(|_| !format.known.contains_key(&call.name));
        format
            .headers(code.is_some())
            .into_iter()
            .take(1)
            .for_each(|header| parts(&mut out, header, k, call));
        match code {
            Some(code) => out.push_str(&code),
            None => {
                out.push_str(&arguments::write(&format.arguments, &[], (k, &call.arguments))?);
                parts(&mut out, &format.trailer, k, call);
            }
        }
        out.extend(self.builtin_end().map(|end| end.write()));
        Ok(out)
    }

    fn render_messages(
        &self,
        format: &MessagesFormat,
        turn: &Turn,
        options: RenderOptions<'_>,
    ) -> Result<String, RenderError> {
        let mut messages = Vec::new();
        if let Some(reasoning) = &self.reasoning {
            if options.opened {
                messages.push(reasoning.inside(&turn.reasoning));
            } else if !turn.reasoning.is_empty() {
                messages.push(reasoning.begin.write() + &reasoning.inside(&turn.reasoning));
            }
        }
        match (&format.preamble, &self.text.begin, &self.text.end) {
            (Some(block), _, _) if !turn.calls.is_empty() && !turn.text.is_empty() => {
                messages.push(block.begin.write() + &turn.text + &block.end.write());
            }
            (None, _, _) if !turn.calls.is_empty() && !turn.text.is_empty() => {
                return Err(RenderError::TextBesideCalls);
            }
            (_, Some(begin), Some(end)) if turn.calls.is_empty() => {
                messages.push(begin.write() + &turn.text + &end.write());
            }
            _ => {}
        }
        for (k, call) in turn.calls.iter().enumerate() {
            messages.push(match &self.builtin {
                Some(builtin) if options.builtins.contains(&call.name.as_str()) => {
                    self.render_builtin(builtin, k, call)?
                }
                _ => self.render_call(k, call)?,
            });
        }
        Ok(messages.join(&format.separator.write()))
    }

    /// Whether the chat template opens the reasoning block of a turn that has one.
    pub fn template_opens_reasoning(&self) -> bool {
        self.reasoning.as_ref().is_some_and(|reasoning| reasoning.opened_by == Opener::Template)
    }

    /// Whether a rendered prompt ends inside a reasoning block: the last thing in it is the block's begin marker, white
    /// space aside. Turns that follow such a prompt begin inside ([`Reasoning::Opened`](crate::Reasoning::Opened)).
    pub fn prompt_opens_reasoning(&self, prompt: &str) -> bool {
        let begin = self.reasoning.as_ref().map(|reasoning| reasoning.begin.write());
        begin.is_some_and(|begin| prompt.trim_end().ends_with(begin.trim_end()))
    }
}

impl ReasoningFormat {
    /// Behind the begin marker.
    fn inside(&self, text: &str) -> String {
        [&self.lead, text, &self.trail, &self.end.write(), &self.after].concat()
    }
}

fn parts(out: &mut String, parts: &[Part], k: usize, call: &Call) {
    for part in parts {
        match part {
            Part::Name(part) => out.push_str(&part.name.write(&call.name)),
            Part::Id(part) => out.push_str(&part.id.write(k, &call.id)),
            other => out.push_str(&other.write()),
        }
    }
}
