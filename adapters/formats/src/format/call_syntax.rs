//! The syntax of one call, whichever table of the description defines it: `[call]`, `[builtin]` or
//! `[[spellings]]`.

use super::{ArgumentStyle, CallFormat, CallSpelling, IdStyle, Marker, Part, WireFormat};

/// One call: `HEADER ARGUMENTS trailer end`, after a begin marker.
pub(crate) struct CallSyntax<'a> {
    /// The headers that are accepted. The renderer writes the first.
    pub(crate) headers: Vec<&'a [Part]>,
    pub(crate) arguments: &'a ArgumentStyle,
    pub(crate) trailer: &'a [Part],
    pub(crate) end: Option<&'a Marker>,
}

impl WireFormat {
    /// Calls as the chat template writes them.
    pub(crate) fn call_syntax(&self) -> CallSyntax<'_> {
        let CallFormat { header, also, arguments, trailer, end, .. } = &self.call;
        CallSyntax { headers: headers(header, also), arguments, trailer, end: end.as_ref() }
    }

    /// Calls in another spelling. The spelling's end marker follows its last call, and is not a
    /// part of a call.
    pub(crate) fn spelling_syntax<'a>(&'a self, spelling: &'a CallSpelling) -> CallSyntax<'a> {
        CallSyntax {
            headers: vec![&spelling.header],
            arguments: spelling.arguments.as_ref().unwrap_or(&self.call.arguments),
            trailer: &spelling.trailer,
            end: None,
        }
    }

    /// Calls of built-in tools. `code`: of a tool that is called with code. `None` if the family
    /// has no built-in tools.
    pub(crate) fn builtin_syntax(&self, code: bool) -> Option<CallSyntax<'_>> {
        let builtin = self.builtin.as_ref()?;
        let is_bare = code && builtin.bare_code;
        Some(CallSyntax {
            headers: if is_bare { vec![&[]] } else { headers(&builtin.header, &builtin.also) },
            arguments: &builtin.arguments,
            trailer: if code { &[] } else { &builtin.trailer },
            end: self.builtin_end(),
        })
    }

    /// Calls of a function or, if `builtin`, of a built-in tool.
    pub(crate) fn tool_syntax(&self, builtin: bool, code: bool) -> CallSyntax<'_> {
        let syntax = if builtin { self.builtin_syntax(code) } else { None };
        syntax.unwrap_or_else(|| self.call_syntax())
    }

    /// The form of the ids of calls: that of an id part that is not a number, wherever a call has
    /// one. The chat template demands it of ids that the model has not written, too.
    pub(crate) fn id_form(&self) -> Option<IdStyle> {
        let CallSyntax { headers, trailer, .. } = self.call_syntax();
        let spelled = self.spellings.iter().flat_map(|s| [&s.header[..], &s.trailer[..]]);
        headers.into_iter().chain([trailer]).chain(spelled).find_map(word_style)
    }

    /// The marker that ends calls of built-in tools.
    pub(crate) fn builtin_end(&self) -> Option<&Marker> {
        self.builtin.as_ref().and_then(|builtin| builtin.end.as_ref()).or(self.call.end.as_ref())
    }
}

/// The style of the first id part that is not a number.
fn word_style(parts: &[Part]) -> Option<IdStyle> {
    parts.iter().find_map(|part| match part {
        Part::Id { id } => Some(*id).filter(|style| !style.is_number()),
        Part::Maybe { maybe } => word_style(maybe),
        Part::Text(_) | Part::Name { .. } | Part::Gap { .. } | Part::Marker(_) => None,
    })
}

fn headers<'a>(first: &'a [Part], others: &'a [Vec<Part>]) -> Vec<&'a [Part]> {
    std::iter::once(first).chain(others.iter().map(Vec::as_slice)).collect()
}

/// The longest beginning of a header that is written in one way only.
pub(crate) fn fixed_prefix(header: &[Part], name: &str) -> String {
    let fixed = header.iter().map_while(|part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Name { name: style } => Some(style.write(name)),
        Part::Marker(marker) => Some(marker.write()),
        Part::Id { .. } | Part::Gap { .. } | Part::Maybe { .. } => None,
    });
    fixed.collect()
}
