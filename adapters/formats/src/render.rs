//! The renderer: a turn -> the text that a model of the family would write, from the same
//! description as the grammar.

use louver::with_methods;

use crate::arguments::{self, RenderError};
use crate::format::{
    ArgumentStyle, BuiltinFormat, CallSyntax, Marker, MessagesFormat, Part, TextPlace, WireFormat,
};
use crate::read::{Call, Turn};
use crate::request::CallKind;

/// Options of [`WireFormat::render_with`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenderOptions<'a> {
    /// The prompt has opened the reasoning block, and the turn begins inside.
    pub opened: bool,
    /// Names of the built-in tools.
    pub builtins: &'a [&'a str],
}

with_methods!(RenderOptions<'a> {
    with_opened: opened = bool,
    with_builtins: builtins = &'a [&'a str],
});

impl WireFormat {
    /// The turn on the wire, without a stop token. Arguments must be JSON text. A style that is
    /// JSON takes them unchanged; see [`python_json`](crate::python_json) for the usual spacing.
    pub fn render(&self, turn: &Turn) -> Result<String, RenderError> {
        self.render_with(turn, RenderOptions::default())
    }

    /// As [`WireFormat::render`], with options.
    pub fn render_with(
        &self,
        turn: &Turn,
        options: RenderOptions<'_>,
    ) -> Result<String, RenderError> {
        if let Some(messages) = &self.messages {
            return self.render_messages(messages, turn, options);
        }
        let is_builtin =
            |call: &Call| self.builtin.is_some() && options.builtins.contains(&call.name.as_str());
        let functions = turn.calls.iter().position(is_builtin).unwrap_or(turn.calls.len());
        let is_instead = self.text.place == TextPlace::InsteadOfCalls && !turn.calls.is_empty();
        if is_instead && !turn.text.is_empty() {
            return Err(RenderError::TextBesideCalls);
        }
        let mut out = self.render_reasoning(turn, options).unwrap_or_default();
        out.extend(self.frame.iter().map(|frame| frame.begin.write()));
        match (&self.text.begin, &self.text.end) {
            (Some(begin), Some(end)) if !is_instead => {
                out.push_str(&(begin.write() + &turn.text + &end.write()));
            }
            _ => out.push_str(&turn.text),
        }
        if !turn.text.is_empty() && functions > 0 && self.text.end.is_none() {
            out.push_str(&self.text_separator());
        }
        out.push_str(&self.render_calls(0, &turn.calls[..functions])?);
        for (k, call) in turn.calls.iter().enumerate().skip(functions) {
            out.push_str(&match &self.builtin {
                Some(format) if is_builtin(call) => self.render_builtin(format, k, call)?,
                _ => self.render_calls(k, std::slice::from_ref(call))?,
            });
        }
        out.extend(self.frame.iter().map(|frame| frame.end.write()));
        out.extend(self.end.iter().map(Marker::write));
        Ok(out)
    }

    /// The reasoning block. `None` if the turn has none.
    fn render_reasoning(&self, turn: &Turn, options: RenderOptions<'_>) -> Option<String> {
        let format = self.reasoning.as_ref()?;
        let begin = match options.opened {
            true => String::new(),
            false if turn.reasoning.is_empty() => return None,
            false => format.begin.write(),
        };
        let end = format.end.write();
        Some(begin + &format.lead + &turn.reasoning + &format.trail + &end + &format.after)
    }

    /// Calls on the wire, with the section around them, the first of which is call `first` of the
    /// turn. The empty text for no calls.
    fn render_calls(&self, first: usize, calls: &[Call]) -> Result<String, RenderError> {
        if calls.is_empty() {
            return Ok(String::new());
        }
        let mut out = String::new();
        if let Some(section) = &self.section {
            out.push_str(&(section.begin.write() + &section.lead.write()));
        }
        let rendered: Result<Vec<String>, RenderError> = (first..)
            .zip(calls)
            .map(|(k, call)| self.render_call(k, call, first + calls.len()))
            .collect();
        out.push_str(&rendered?.join(&self.call.separator.write()));
        if let Some(section) = &self.section {
            out.push_str(&section.trail.write());
            out.extend(section.end.iter().map(Marker::write));
        }
        Ok(out)
    }

    /// Call `k` of `calls` calls.
    fn render_call(&self, k: usize, call: &Call, calls: usize) -> Result<String, RenderError> {
        let mut syntax = self.call_syntax();
        let continued = self.messages.as_ref().and_then(|format| format.continued_end.as_ref());
        syntax.end = continued.filter(|_| k + 1 < calls).or(syntax.end);
        let excludes = match syntax.arguments {
            ArgumentStyle::Tagged(style) => self.excluded_values(style),
            _ => Vec::new(),
        };
        let write = match call.kind {
            CallKind::Function => arguments::write,
            CallKind::Custom => arguments::write_input,
        };
        let arguments = write(syntax.arguments, &excludes, k, &call.arguments)?;
        Ok(render_syntax(self.call.begin.as_ref(), &syntax, &arguments, k, call))
    }

    /// A call of a built-in tool. It is written with code if the family knows no schema of the tool
    /// and the arguments have the member `code`.
    fn render_builtin(
        &self,
        format: &BuiltinFormat,
        k: usize,
        call: &Call,
    ) -> Result<String, RenderError> {
        let is_known = format.known.contains_key(&call.name);
        let code = arguments::code(k, &call.arguments).ok().filter(|_| !is_known);
        let syntax = self.tool_syntax(true, code.is_some());
        let arguments = match code {
            Some(code) => code,
            None => arguments::write(syntax.arguments, &[], k, &call.arguments)?,
        };
        Ok(render_syntax(format.begin.as_ref(), &syntax, &arguments, k, call))
    }

    fn render_messages(
        &self,
        format: &MessagesFormat,
        turn: &Turn,
        options: RenderOptions<'_>,
    ) -> Result<String, RenderError> {
        let mut messages: Vec<String> = self.render_reasoning(turn, options).into_iter().collect();
        let has_calls = !turn.calls.is_empty();
        let text = match (&format.preamble, &self.text.begin) {
            (_, Some(begin)) if !has_calls => Some((begin, &self.text.end)),
            _ if !has_calls || turn.text.is_empty() => None,
            (Some(block), _) => Some((&block.begin, &block.end)),
            (None, _) => return Err(RenderError::TextBesideCalls),
        };
        messages.extend(text.map(|(begin, end)| {
            let end = end.as_ref().map_or_else(String::new, Marker::write);
            begin.write() + &turn.text + &end
        }));
        for (k, call) in turn.calls.iter().enumerate() {
            messages.push(match &self.builtin {
                Some(builtin) if options.builtins.contains(&call.name.as_str()) => {
                    self.render_builtin(builtin, k, call)?
                }
                _ => self.render_call(k, call, turn.calls.len())?,
            });
        }
        Ok(messages.join(&format.separator.write()))
    }

    /// Whether a rendered prompt ends with the begin marker of a reasoning block, white space
    /// aside. The turn after such a prompt begins inside the block
    /// ([`Reasoning::Opened`](crate::Reasoning::Opened)).
    pub fn prompt_opens_reasoning(&self, prompt: &str) -> bool {
        let begins = self.reasoning.iter().flat_map(|reasoning| reasoning.begin.as_texts());
        let prompt = prompt.trim_end();
        begins.into_iter().any(|begin| prompt.ends_with(begin.trim_end()))
    }
}

/// Call `k` in a syntax, with the first of its headers.
fn render_syntax(
    begin: Option<&Marker>,
    syntax: &CallSyntax<'_>,
    arguments: &str,
    k: usize,
    call: &Call,
) -> String {
    let mut out = begin.map(Marker::write).unwrap_or_default();
    let header = syntax.headers.first().copied().unwrap_or_default();
    out.push_str(
        &(render_parts(header, k, call) + arguments + &render_parts(syntax.trailer, k, call)),
    );
    out.extend(syntax.end.map(Marker::write));
    out
}

fn render_parts(parts: &[Part], k: usize, call: &Call) -> String {
    let written = parts.iter().map(|part| match part {
        Part::Name { name } => name.write(&call.name),
        Part::Id { id } => id.write(k, &call.id),
        other => other.write(),
    });
    written.collect()
}
