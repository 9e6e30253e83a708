//! The lenient scanner: finds reasoning, text and calls in output that need not follow the format.
//! White space is ignored, and end markers may be missing.

use louver::spec::json::{Json, Object};

use super::events::Cut;
use super::matching::{
    Heads, closing_parenthesis, eat, eat_end, eat_header, eat_marker, eat_parts, find_marker, json,
    last_key, loose_headers, parse_json,
};
use super::turn::Call;
use crate::arguments::{ArgumentReader, spaced};
use crate::format::{ArgumentStyle, CallSyntax, Marker, MessagesFormat, Part, WireFormat};
use crate::lowered::LoweredTool;

/// What the scanner has found.
#[derive(Default)]
pub(crate) struct ScannedTurn {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<ScannedCall>,
    /// Offsets of begin markers without a call after them.
    pub(crate) malformed: Vec<usize>,
    pub(crate) open_reasoning: bool,
    pub(crate) cut: Option<(Cut, String)>,
}

/// A call that was found.
pub(crate) struct ScannedCall {
    pub(crate) call: Call,
    /// Whether its end was found.
    pub(crate) has_end: bool,
    /// The keys that occur twice in one of its objects.
    pub(crate) repeated: Vec<String>,
}

pub(crate) struct Scanner<'a> {
    pub(crate) format: &'a WireFormat,
    /// The tools of the request.
    pub(crate) tools: &'a [LoweredTool],
}

/// The most begin markers without a call after them. After the last of them, everything is text.
const MAX_MALFORMED: usize = 256;

impl Scanner<'_> {
    pub(crate) fn turn(&self, text: &str, opened: bool) -> ScannedTurn {
        let mut out = ScannedTurn::default();
        if let Some(messages) = &self.format.messages {
            self.messages(messages, text, opened, &mut out);
            return out;
        }
        let rest = self.reasoning(text, opened, &mut out);
        let rest = self.unframed(rest);
        let rest = match (&self.format.text.begin, &self.format.text.end) {
            (Some(begin), Some(end)) => {
                let inner = eat_marker(rest, begin).unwrap_or(rest);
                match find_marker(inner, end) {
                    Some((at, len)) => {
                        out.text.push_str(&inner[..at]);
                        &inner[at + len..]
                    }
                    None => inner,
                }
            }
            _ => rest,
        };
        self.body(text, rest, &mut out);
        if let Some(end) = self.format.end.as_ref().map(Marker::write)
            && let Some(stripped) = out.text.strip_suffix(end.as_str())
        {
            out.text.truncate(stripped.len());
        }
        out
    }

    fn reasoning<'t>(&self, text: &'t str, opened: bool, out: &mut ScannedTurn) -> &'t str {
        let Some(format) = &self.format.reasoning else { return text };
        let skipped = || eat_marker(text, format.skipped.as_ref()?);
        let inside = match eat_marker(text, &format.begin) {
            Some(inside) => inside,
            None if opened => text,
            None => return skipped().unwrap_or(text),
        };
        let Some((at, len)) = find_marker(inside, &format.end) else {
            out.reasoning.push_str(inside.strip_prefix(format.lead.as_str()).unwrap_or(inside));
            out.open_reasoning = true;
            return "";
        };
        let text = &inside[..at];
        let text = text.strip_prefix(format.lead.as_str()).unwrap_or(text);
        out.reasoning.push_str(text.strip_suffix(format.trail.as_str()).unwrap_or(text));
        let rest = &inside[at + len..];
        rest.strip_prefix(format.after.as_str()).unwrap_or(rest)
    }

    /// Strips the frame around text and calls.
    fn unframed<'t>(&self, rest: &'t str) -> &'t str {
        let Some(frame) = &self.format.frame else { return rest };
        let Some(inner) = eat_marker(rest, &frame.begin) else { return rest };
        let begin = frame.begin.write();
        let inner = inner.strip_prefix(&begin[begin.trim_end().len()..]).unwrap_or(inner);
        let ended = frame.end.as_texts().into_iter().filter_map(|end| {
            let space = &end[..end.len() - end.trim_start().len()];
            let rest = inner.trim_end().strip_suffix(end.trim())?;
            Some(rest.strip_suffix(space).unwrap_or(rest))
        });
        ended.min_by_key(|rest| rest.len()).unwrap_or(inner)
    }

    /// Text and calls.
    fn body(&self, whole: &str, mut rest: &str, out: &mut ScannedTurn) {
        let Some(opening) = self.format.calls_begin_marker() else {
            out.text.push_str(rest);
            return;
        };
        let spellings = self.format.unambiguous_spellings().map(|spelling| &spelling.begin);
        let openings = std::iter::once(opening).chain(self.format.builtin_begin()).chain(spellings);
        let ambiguous = self.format.ambiguous_begin_texts();
        let mut heads = Heads::new(openings.flat_map(Marker::as_texts), &ambiguous);
        let separator = self.format.text_separator();
        while out.malformed.len() < MAX_MALFORMED
            && let Some((at, is_sure)) = heads.first(rest)
        {
            let (before, found) = rest.split_at(at);
            if let Some(after) = self.any_call(found, out) {
                if !before.trim().is_empty() {
                    let text = before.strip_suffix(separator.as_str()).unwrap_or(before);
                    out.text.push_str(text);
                }
                rest = after;
                continue;
            }
            if is_sure && !ambiguous.iter().any(|begin| eat(found, begin).is_some()) {
                out.malformed.push(whole.len() - found.len());
            }
            let step = at + found.chars().next().map_or(1, char::len_utf8);
            out.text.push_str(&rest[..step]);
            rest = &rest[step..];
        }
        if !rest.trim().is_empty() || out.calls.is_empty() {
            out.text.push_str(rest);
        }
    }

    /// A section, a call, a call of a built-in tool or calls in another spelling. Returns what
    /// follows.
    fn any_call<'t>(&self, text: &'t str, out: &mut ScannedTurn) -> Option<&'t str> {
        let after = match &self.format.section {
            Some(section) => {
                eat_marker(text, &section.begin).and_then(|inner| self.section(inner, out))
            }
            None => self.call_into(text, out),
        };
        let begin = self.format.builtin_begin();
        after
            .or_else(|| self.builtin(eat_marker(text, begin?)?, out))
            .or_else(|| self.spelling(text, out))
    }

    /// The calls of a section after its begin marker. `None` if there is no call.
    fn section<'t>(&self, inner: &'t str, out: &mut ScannedTurn) -> Option<&'t str> {
        let section = self.format.section.as_ref()?;
        let mut rest = eat_parts(inner, &section.lead.parts()).unwrap_or(inner);
        let before = out.calls.len();
        let separators = [' ', '\n', '\r', '\t', ',', ';'];
        while let Some(after) = self.call_into(rest.trim_start_matches(separators), out) {
            rest = after;
        }
        if out.calls.len() == before {
            return None;
        }
        rest = eat_parts(rest, &section.trail.parts()).unwrap_or(rest);
        let (has_end, rest) = eat_end(rest, section.end.as_ref(), true);
        if let Some(last) = out.calls.last_mut() {
            last.has_end &= has_end;
        }
        Some(rest)
    }

    /// Adds a call, and returns what follows it.
    fn call_into<'t>(&self, text: &'t str, out: &mut ScannedTurn) -> Option<&'t str> {
        let (call, after) = self.call(text)?;
        out.calls.push(call);
        Some(after)
    }

    /// A call in the template's syntax, and what follows.
    fn call<'t>(&self, text: &'t str) -> Option<(ScannedCall, &'t str)> {
        let begins = match &self.format.call.begin {
            Some(begin) => begin.as_texts(),
            None => vec![String::new()],
        };
        let syntax = self.format.call_syntax();
        for begin in &begins {
            for &header in &syntax.headers {
                if let Some(found) = self.object_call(text, begin, header) {
                    return Some(found);
                }
                for header in std::iter::once(header.to_vec()).chain(loose_headers(header)) {
                    if let Some(rest) = eat(text, begin)
                        && let Some((call, rest)) =
                            self.header_and_arguments(rest, &header, &syntax)
                    {
                        let trailed = eat_parts(rest, syntax.trailer);
                        let rest = trailed.unwrap_or(rest);
                        let (has_end, rest) = eat_end(rest, syntax.end, trailed.is_some());
                        return Some((ScannedCall { has_end, ..call }, rest));
                    }
                }
            }
        }
        None
    }

    fn header_and_arguments<'t>(
        &self,
        text: &'t str,
        header: &[Part],
        syntax: &CallSyntax<'_>,
    ) -> Option<(ScannedCall, &'t str)> {
        let (name, rest) = eat_header(text, header)?;
        let (arguments, rest) = self.arguments(&name, syntax, rest)?;
        Some((parse_call(&name, &arguments)?, rest))
    }

    /// Calls in another spelling. Returns what follows.
    fn spelling<'t>(&self, text: &'t str, out: &mut ScannedTurn) -> Option<&'t str> {
        let is_offered = |name: &str| self.tools.iter().any(|tool| tool.name == name);
        for spelling in self.format.all_spellings() {
            let end = spelling.end.as_ref();
            let syntax = CallSyntax { end, ..self.format.spelling_syntax(spelling) };
            let Some(mut rest) = eat_marker(text, &spelling.begin) else { continue };
            let mut calls = Vec::new();
            while let Some((call, after)) =
                self.header_and_arguments(rest, &spelling.header, &syntax)
            {
                let trailed = eat_parts(after, &spelling.trailer);
                calls.push(ScannedCall { has_end: trailed.is_some(), ..call });
                rest = trailed.unwrap_or(after);
                let Some(separator) = &spelling.separator else { break };
                let Some(after) = eat_parts(rest, &separator.parts()) else { break };
                rest = after;
            }
            let is_text = spelling.text_unless.is_some()
                && !calls.iter().all(|found| is_offered(&found.call.name));
            if calls.is_empty() || is_text {
                continue;
            }
            out.calls.extend(calls);
            return Some(eat_end(rest, end, true).1);
        }
        None
    }

    /// A call that is a JSON object with the name and the arguments as members, in any order.
    fn object_call<'t>(
        &self,
        text: &'t str,
        begin: &str,
        header: &[Part],
    ) -> Option<(ScannedCall, &'t str)> {
        let at = header.iter().position(|part| matches!(part, Part::Name { .. }))?;
        let before: String =
            begin.to_owned() + &header[..at].iter().map(Part::write).collect::<String>();
        let after: String = header[at + 1..].iter().map(Part::write).collect();
        let brace = before.find('{')?;
        if self.format.call.arguments != ArgumentStyle::Json {
            return None;
        }
        let (name_key, arguments_key) = (last_key(&before)?, last_key(&after)?);
        let rest = eat(text, &before[..brace])?;
        let (value, rest) = json(rest)?;
        let (Json::Object(members), repeated) = parse_json(value)? else { return None };
        let name = members.get(&name_key).and_then(Json::as_str)?;
        let arguments = [arguments_key.as_str(), "arguments", "parameters"]
            .iter()
            .find_map(|key| members.get(key));
        let none = Json::Object(Object::default());
        let mut written = String::new();
        spaced(&mut written, arguments.unwrap_or(&none));
        let call = parse_call(name, &written)?;
        let (has_end, rest) = eat_end(rest, self.format.call.end.as_ref(), true);
        Some((ScannedCall { has_end, repeated, ..call }, rest))
    }

    /// A call's arguments as JSON text, and what follows.
    fn arguments<'t>(
        &self,
        name: &str,
        syntax: &CallSyntax<'_>,
        rest: &'t str,
    ) -> Option<(String, &'t str)> {
        let find = |marker: Option<&Marker>| Some(find_marker(rest, marker?)?.0);
        match syntax.arguments {
            ArgumentStyle::Json => {
                let (value, after) = json(rest)?;
                Some((value.to_owned(), after))
            }
            ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {
                let end = closing_parenthesis(rest)?;
                let reader = ArgumentReader::untyped(syntax.arguments);
                Some((reader.read_whole(&rest[..end]), &rest[end..]))
            }
            ArgumentStyle::Delimited(_) => {
                let end = find(syntax.end).unwrap_or(rest.len());
                let reader = ArgumentReader::untyped(syntax.arguments);
                Some((reader.read_whole(rest[..end].trim()), &rest[end..]))
            }
            ArgumentStyle::Tagged(_) | ArgumentStyle::Nested(_) => {
                let trailer: String = syntax.trailer.iter().map(Part::write).collect();
                let trailer = trailer.trim();
                let trailer = (!trailer.is_empty()).then(|| rest.find(trailer)).flatten();
                // Either may be missing, or both. The first that follows is that of this call.
                let ends = [trailer, find(syntax.end), find(self.format.call.begin.as_ref())];
                let end = ends.into_iter().flatten().min().unwrap_or(rest.len());
                let tool = self.tools.iter().find(|tool| tool.name == name);
                let arguments = tool.and_then(|tool| tool.arguments(syntax.arguments));
                let reader = match arguments {
                    Some(arguments) => arguments.reader.clone().without_input(),
                    None => ArgumentReader::untyped(syntax.arguments),
                };
                Some((reader.read_whole(&rest[..end]), &rest[end..]))
            }
        }
    }

    fn messages(&self, format: &MessagesFormat, text: &str, opened: bool, out: &mut ScannedTurn) {
        let mut rest = if opened { self.reasoning(text, true, out) } else { text };
        let mut first = !opened;
        while !rest.is_empty() {
            if out.malformed.len() >= MAX_MALFORMED {
                out.text.push_str(rest);
                return;
            }
            if !first && let Some(after) = eat_marker(rest, &format.separator) {
                rest = after;
            }
            first = false;
            let offset = text.len() - rest.len();
            rest = match self.message(format, rest, out) {
                Some(after) => after,
                None => {
                    out.malformed.push(offset);
                    let next =
                        find_marker(rest, &format.separator).map_or(rest.len(), |(at, _)| at);
                    let step = rest.chars().next().map_or(0, char::len_utf8);
                    let (text, after) = rest.split_at(next.max(step));
                    out.text.push_str(text);
                    after
                }
            };
        }
    }

    fn message<'t>(
        &self,
        format: &MessagesFormat,
        rest: &'t str,
        out: &mut ScannedTurn,
    ) -> Option<&'t str> {
        if let Some(reasoning) = &self.format.reasoning
            && eat_marker(rest, &reasoning.begin).is_some()
        {
            return Some(self.reasoning(rest, false, out));
        }
        let last = self.format.text.begin.as_ref().map(|begin| (begin, &self.format.text.end));
        let blocks = format.preamble.iter().map(|block| (&block.begin, &block.end)).chain(last);
        for (begin, end) in blocks {
            if let Some(inner) = eat_marker(rest, begin) {
                let found = match end {
                    Some(end) => find_marker(inner, end),
                    None => find_marker(inner, &format.separator).map(|(at, _)| (at, 0)),
                };
                let (at, len) = found.unwrap_or((inner.len(), 0));
                if end.is_some() && len == 0 {
                    out.cut = Some((Cut::Turn, String::new()));
                }
                out.text.push_str(&inner[..at]);
                return Some(&inner[at + len..]);
            }
        }
        self.call_into(rest, out).or_else(|| self.builtin(rest, out))
    }

    /// A call of a built-in tool, after its begin marker. Returns what follows.
    fn builtin<'t>(&self, rest: &'t str, out: &mut ScannedTurn) -> Option<&'t str> {
        let format = self.format.builtin.as_ref()?;
        let syntax = self.format.builtin_syntax(false)?;
        let up_to_end = |body: &'t str| {
            let end = syntax.end.and_then(|end| find_marker(body, end));
            let (at, len) = end.unwrap_or((body.len(), 0));
            (&body[..at], len > 0, &body[at + len..])
        };
        for header in &syntax.headers {
            let Some((name, body)) = eat_header(rest, header) else { continue };
            let (body, has_end, after) = up_to_end(body);
            let arguments = match syntax.arguments {
                ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {
                    let reader = ArgumentReader::untyped(syntax.arguments);
                    closing_parenthesis(body).map(|end| reader.read_whole(&body[..end]))
                }
                _ => Some(body.to_owned()),
            };
            let call = arguments.and_then(|arguments| parse_call(&name, &arguments));
            let code = || parse_call(&name, &ArgumentReader::code().read_whole(body));
            if let Some(call) = call.or_else(|| code().filter(|_| !format.bare_code)) {
                out.calls.push(ScannedCall { has_end, ..call });
                return Some(after);
            }
        }
        // Bare code does not name its tool: it is the one that is called with code.
        let tool = self.tools.iter().find(|tool| tool.takes_code() && format.bare_code)?;
        let (body, has_end, after) = up_to_end(rest);
        let code = ArgumentReader::code().read_whole(body);
        out.calls.push(ScannedCall { has_end, ..parse_call(&tool.name, &code)? });
        Some(after)
    }
}

/// A call from its name and the JSON text of its arguments, without an end. `None` if that is not
/// an object.
fn parse_call(name: &str, arguments: &str) -> Option<ScannedCall> {
    let (value, mut repeated) = parse_json(arguments)?;
    // Some models write the object as a string.
    let inner = match &value {
        Json::String(text) => {
            let (inner, keys) = parse_json(text)?;
            repeated.extend(keys);
            inner
        }
        _ => value,
    };
    matches!(inner, Json::Object(_)).then(|| {
        let mut text = String::new();
        spaced(&mut text, &inner);
        ScannedCall { call: Call::new(name, text), has_end: false, repeated }
    })
}
