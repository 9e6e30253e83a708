//! Looks for reasoning, text and calls in a text that need not be what the format says: spacing is ignored, ends may be
//! missing.

use louver::front::json_schema::Kinds;
use louver::limits::Limits;
use louver::spec::json::{Json, Object};
use louver::spec::tools::MAX_TOOL_NAME_BYTES;

use crate::arguments::{LiteralReader, Reader, TaggedReader, spaced};
use crate::extract::Cut;
use crate::format::{ArgumentStyle, WireFormat};
use crate::lenient::{call, read_whole};
use crate::marker::{Marker, Part};
use crate::messages::MessagesFormat;
use crate::plan::Plan;
use crate::turn::Call;

/// What was found.
#[derive(Default)]
pub(crate) struct Scanned {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Calls, and whether each has its end.
    pub(crate) calls: Vec<(Call, bool)>,
    /// Offsets of beginnings that are no calls.
    pub(crate) malformed: Vec<usize>,
    pub(crate) open_reasoning: bool,
    pub(crate) cut: Option<(Cut, String)>,
}

pub(crate) struct Scan<'a> {
    pub(crate) format: &'a WireFormat,
    pub(crate) plan: &'a Plan,
}

/// Most beginnings of calls that turn out to be none; behind them everything is text.
const MAX_MALFORMED: usize = 256;

/// What is left of the text.
type Rest<'t> = &'t str;

impl Scan<'_> {
    pub(crate) fn turn(&self, text: &str, opened: bool) -> Scanned {
        let mut out = Scanned::default();
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

    fn reasoning<'t>(&self, text: Rest<'t>, opened: bool, out: &mut Scanned) -> Rest<'t> {
        let Some(format) = &self.format.reasoning else { return text };
        let inside = match eat_marker(text, &format.begin) {
            Some(inside) => inside,
            None if opened => text,
            None => return text,
        };
        let Some((at, len)) = find_marker(inside, &format.end) else {
            out.reasoning.push_str(inside.strip_prefix(format.lead.as_str()).unwrap_or(inside));
            out.open_reasoning = true;
            return "";
        };
        let said = &inside[..at];
        let said = said.strip_prefix(format.lead.as_str()).unwrap_or(said);
        out.reasoning.push_str(said.strip_suffix(format.trail.as_str()).unwrap_or(said));
        let rest = &inside[at + len..];
        rest.strip_prefix(format.after.as_str()).unwrap_or(rest)
    }

    /// Without what encloses text and calls.
    fn unframed<'t>(&self, rest: Rest<'t>) -> Rest<'t> {
        let Some(frame) = &self.format.frame else { return rest };
        let Some(inner) = eat_marker(rest, &frame.begin) else { return rest };
        let begin = frame.begin.write();
        let inner = inner.strip_prefix(&begin[begin.trim_end().len()..]).unwrap_or(inner);
        let ended = frame.end.texts_of_spellings().into_iter().filter_map(|end| {
            let space = &end[..end.len() - end.trim_start().len()];
            let rest = inner.trim_end().strip_suffix(end.trim())?;
            Some(rest.strip_suffix(space).unwrap_or(rest))
        });
        ended.min_by_key(|rest| rest.len()).unwrap_or(inner)
    }

    /// Text and calls.
    fn body(&self, whole: &str, mut rest: &str, out: &mut Scanned) {
        let opening =
            self.format.section.as_ref().map(|s| &s.begin).or(self.format.call.begin.as_ref());
        let own = self.format.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref());
        let Some(opening) = opening else {
            out.text.push_str(rest);
            return;
        };
        let spellings = self.format.spellings.iter().map(|spelling| &spelling.begin);
        let openings: Vec<&Marker> = std::iter::once(opening).chain(own).chain(spellings).collect();
        let first =
            |rest: &str| openings.iter().filter_map(|opening| first_of(rest, opening)).min();
        let separator = match &self.format.section {
            Some(section) => section.before.clone(),
            None => self.format.call.separator.write(),
        };
        while out.malformed.len() < MAX_MALFORMED
            && let Some(at) = first(rest)
        {
            let before = &rest[..at];
            let read = match &self.format.section {
                Some(section) => eat_marker(&rest[at..], &section.begin)
                    .and_then(|inner| self.section(inner, out)),
                None => self.call(&rest[at..]).map(|(call, ended, behind)| {
                    out.calls.push((call, ended));
                    behind
                }),
            };
            let read = read.or_else(|| self.builtin(eat_marker(&rest[at..], own?)?, out));
            let read = read.or_else(|| self.spelled(&rest[at..], out));
            match read {
                Some(behind) => {
                    let between = before.trim().is_empty();
                    if !between {
                        out.text
                            .push_str(before.strip_suffix(separator.as_str()).unwrap_or(before));
                    }
                    rest = behind;
                }
                None => {
                    // What may be text is no call that has gone wrong.
                    let unsure = self.format.unsure_begins();
                    if !unsure.iter().any(|begin| eat(&rest[at..], begin).is_some()) {
                        out.malformed.push(whole.len() - rest.len() + at);
                    }
                    let step = rest[at..].chars().next().map_or(1, char::len_utf8);
                    out.text.push_str(&rest[..at + step]);
                    rest = &rest[at + step..];
                }
            }
        }
        if !rest.trim().is_empty() || out.calls.is_empty() {
            out.text.push_str(rest);
        }
    }

    /// Calls behind the section's begin marker; none if there is not one.
    fn section<'t>(&self, inner: Rest<'t>, out: &mut Scanned) -> Option<Rest<'t>> {
        let section = self.format.section.as_ref()?;
        let mut rest = eat_parts(inner, &section.lead.parts()).unwrap_or(inner);
        let before = out.calls.len();
        while let Some((call, ended, behind)) =
            self.call(rest.trim_start_matches([' ', '\n', '\r', '\t', ',', ';']))
        {
            out.calls.push((call, ended));
            rest = behind;
        }
        if out.calls.len() == before {
            return None;
        }
        rest = eat_parts(rest, &section.trail.parts()).unwrap_or(rest);
        match section.end.as_ref() {
            None => Some(rest),
            Some(end) => match eat_marker(rest, end) {
                Some(behind) => Some(behind),
                None => {
                    if let Some((_, ended)) = out.calls.last_mut() {
                        *ended = false;
                    }
                    Some(rest)
                }
            },
        }
    }

    /// A call, whether it has its end, and what is behind it.
    fn call<'t>(&self, text: Rest<'t>) -> Option<(Call, bool, Rest<'t>)> {
        let format = &self.format.call;
        let begins: Vec<String> = match &format.begin {
            Some(begin) => begin.texts_of_spellings(),
            None => vec![String::new()],
        };
        for begin in &begins {
            for header in [&format.header].into_iter().chain(&format.also) {
                if let Some(found) = self.object_call(text, begin, header) {
                    return Some(found);
                }
                for header in std::iter::once(header.clone()).chain(loose_headers(header)) {
                    if let Some(rest) = eat(text, begin)
                        && let Some((name, rest)) = eat_header(rest, &header)
                        && let Some((arguments, rest)) =
                            self.arguments(&name, self.canonical(), rest)
                        && let Some(call) = call(&name, &arguments)
                    {
                        let (ended, rest) = self.call_end(rest);
                        return Some((call, ended, rest));
                    }
                }
            }
        }
        None
    }

    /// How arguments are written in the template's spelling, and what stands behind them.
    fn canonical(&self) -> (&ArgumentStyle, &[Part], Option<&Marker>) {
        let call = &self.format.call;
        (&call.arguments, &call.trailer, call.end.as_ref())
    }

    /// Calls in another spelling.
    fn spelled<'t>(&self, text: Rest<'t>, out: &mut Scanned) -> Option<Rest<'t>> {
        let known = |call: &Call| self.plan.tools().iter().any(|tool| tool.name == call.name);
        for spelling in &self.format.spellings {
            let style = spelling.arguments.as_ref().unwrap_or(&self.format.call.arguments);
            let Some(mut rest) = eat_marker(text, &spelling.begin) else { continue };
            let mut calls = Vec::new();
            while let Some((name, behind)) = eat_header(rest, &spelling.header)
                && let Some((arguments, behind)) =
                    self.arguments(&name, (style, &spelling.trailer, None), behind)
                && let Some(call) = call(&name, &arguments)
            {
                let trailed = eat_parts(behind, &spelling.trailer);
                calls.push((call, trailed.is_some()));
                rest = trailed.unwrap_or(behind);
                let Some(separator) = &spelling.separator else { break };
                let Some(behind) = eat_parts(rest, &separator.parts()) else { break };
                rest = behind;
            }
            if calls.is_empty()
                || spelling.text_unless.is_some() && !calls.iter().all(|(call, _)| known(call))
            {
                continue;
            }
            out.calls.extend(calls);
            return Some(
                spelling.end.as_ref().and_then(|end| eat_marker(rest, end)).unwrap_or(rest),
            );
        }
        None
    }

    fn call_end<'t>(&self, rest: Rest<'t>) -> (bool, Rest<'t>) {
        let format = &self.format.call;
        let (trailed, rest) = match eat_parts(rest, &format.trailer) {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        match &format.end {
            None => (trailed, rest),
            Some(end) => match eat_marker(rest, end) {
                Some(rest) => (true, rest),
                None => (false, rest),
            },
        }
    }

    /// A call that is a JSON object with name and arguments in it, its members in any order.
    fn object_call<'t>(
        &self,
        text: Rest<'t>,
        begin: &str,
        header: &[Part],
    ) -> Option<(Call, bool, Rest<'t>)> {
        let at = header.iter().position(|part| matches!(part, Part::Name(_)))?;
        let before: String =
            begin.to_owned() + &header[..at].iter().map(Part::write).collect::<String>();
        let behind: String = header[at + 1..].iter().map(Part::write).collect();
        let brace = before.find('{')?;
        if self.format.call.arguments != ArgumentStyle::Json {
            return None;
        }
        let (name_key, arguments_key) = (last_key(&before)?, last_key(&behind)?);
        let rest = eat(text, &before[..brace])?;
        let (value, rest) = json(rest)?;
        let Json::Object(members) = value else { return None };
        let name = members.get(&name_key).and_then(Json::as_str)?;
        let arguments = [arguments_key.as_str(), "arguments", "parameters"]
            .iter()
            .find_map(|key| members.get(key));
        let none = Json::Object(Object::default());
        let mut written = String::new();
        spaced(&mut written, arguments.unwrap_or(&none));
        let call = call(name, &written)?;
        match &self.format.call.end {
            None => Some((call, true, rest)),
            Some(end) => match eat_marker(rest, end) {
                Some(rest) => Some((call, true, rest)),
                None => Some((call, false, rest)),
            },
        }
    }

    /// A call's arguments as JSON text, and what is behind them.
    fn arguments<'t>(
        &self,
        name: &str,
        (style, trailer, end): (&ArgumentStyle, &[Part], Option<&Marker>),
        rest: Rest<'t>,
    ) -> Option<(String, Rest<'t>)> {
        match style {
            ArgumentStyle::Json => {
                let (value, behind) = json(rest)?;
                let mut out = String::new();
                spaced(&mut out, &value);
                Some((out, behind))
            }
            ArgumentStyle::Keywords => {
                let end = closing(rest)?;
                Some((
                    read_whole(Reader::Literal(LiteralReader::keywords()), &rest[..end]),
                    &rest[end..],
                ))
            }
            ArgumentStyle::Delimited(mark) => {
                let end =
                    end.and_then(|end| find_marker(rest, end)).map_or(rest.len(), |(at, _)| at);
                let reader = Reader::Literal(LiteralReader::delimited(&mark.write()));
                Some((read_whole(reader, rest[..end].trim()), &rest[end..]))
            }
            ArgumentStyle::Tagged(style) => {
                let trailer: String = trailer.iter().map(Part::write).collect();
                let trailer = trailer.trim();
                let found = (!trailer.is_empty()).then(|| rest.find(trailer)).flatten();
                let found =
                    found.or_else(|| end.and_then(|end| find_marker(rest, end)).map(|(at, _)| at));
                let end = found.unwrap_or(rest.len());
                let known = self.plan.tools().iter().position(|tool| tool.name == name);
                let reader = known
                    .and_then(|tool| self.plan.inner.readers.get(tool).cloned().flatten())
                    .map(Reader::json);
                let any =
                    || Reader::Tagged(Box::new(TaggedReader::new(style, Vec::new(), Kinds::ALL)));
                Some((read_whole(reader.unwrap_or_else(any), &rest[..end]), &rest[end..]))
            }
        }
    }

    fn messages(&self, format: &MessagesFormat, text: &str, opened: bool, out: &mut Scanned) {
        let mut rest = if opened { self.reasoning(text, true, out) } else { text };
        let mut first = !opened;
        while !rest.is_empty() {
            if out.malformed.len() >= MAX_MALFORMED {
                out.text.push_str(rest);
                return;
            }
            if !first && let Some(behind) = eat_marker(rest, &format.separator) {
                rest = behind;
            }
            first = false;
            let offset = text.len() - rest.len();
            rest = match self.message(format, rest, out) {
                Some(behind) => behind,
                None => {
                    out.malformed.push(offset);
                    let next =
                        find_marker(rest, &format.separator).map_or(rest.len(), |(at, _)| at);
                    let step = rest.chars().next().map_or(0, char::len_utf8);
                    let (said, behind) = rest.split_at(next.max(step));
                    out.text.push_str(said);
                    behind
                }
            };
        }
    }

    fn message<'t>(
        &self,
        format: &MessagesFormat,
        rest: Rest<'t>,
        out: &mut Scanned,
    ) -> Option<Rest<'t>> {
        if let Some(reasoning) = &self.format.reasoning
            && eat_marker(rest, &reasoning.begin).is_some()
        {
            return Some(self.reasoning(rest, false, out));
        }
        let last = self.format.text.begin.as_ref().zip(self.format.text.end.as_ref());
        let blocks = format.preamble.iter().map(|block| (&block.begin, &block.end)).chain(last);
        for (begin, end) in blocks {
            if let Some(inner) = eat_marker(rest, begin) {
                let (at, len) = find_marker(inner, end).unwrap_or((inner.len(), 0));
                if len == 0 {
                    out.cut = Some((Cut::Turn, String::new()));
                }
                out.text.push_str(&inner[..at]);
                return Some(&inner[at + len..]);
            }
        }
        if let Some((call, ended, behind)) = self.call(rest) {
            out.calls.push((call, ended));
            return Some(behind);
        }
        self.builtin(rest, out)
    }

    /// A call of one of the model's own tools, behind its begin marker.
    fn builtin<'t>(&self, rest: Rest<'t>, out: &mut Scanned) -> Option<Rest<'t>> {
        let builtin = self.format.builtin.as_ref()?;
        let up_to_end = |body: Rest<'t>| {
            let (at, len) = self
                .format
                .builtin_end()
                .and_then(|end| find_marker(body, end))
                .unwrap_or((body.len(), 0));
            (&body[..at], len > 0, &body[at + len..])
        };
        for header in builtin.headers(false) {
            let Some((name, body)) = eat_header(rest, header) else { continue };
            let (body, ended, behind) = up_to_end(body);
            let read = match &builtin.arguments {
                ArgumentStyle::Keywords => closing(body).map(|end| {
                    read_whole(Reader::Literal(LiteralReader::keywords()), &body[..end])
                }),
                _ => Some(body.to_owned()),
            };
            let code =
                || call(&name, &read_whole(Reader::code(), body)).filter(|_| !builtin.bare_code);
            if let Some(found) = read.and_then(|read| call(&name, &read)).or_else(code) {
                out.calls.push((found, ended));
                return Some(behind);
            }
        }
        // Code that does not say which tool is to run it: the one there is.
        let runs =
            |(_, reader): &(_, &Option<Reader>)| reader.as_ref().is_some_and(Reader::is_code);
        let (tool, _) = self
            .plan
            .tools()
            .iter()
            .zip(&self.plan.inner.readers)
            .find(runs)
            .filter(|_| builtin.bare_code)?;
        let (body, ended, behind) = up_to_end(rest);
        out.calls.push((call(&tool.name, &read_whole(Reader::code(), body))?, ended));
        Some(behind)
    }
}

/// What follows the pattern, white space in both ignored.
fn eat<'t>(text: Rest<'t>, pattern: &str) -> Option<Rest<'t>> {
    let mut rest = text;
    for c in pattern.chars().filter(|c| !c.is_whitespace()) {
        rest = rest.trim_start().strip_prefix(c)?;
    }
    Some(rest)
}

fn eat_marker<'t>(text: Rest<'t>, marker: &Marker) -> Option<Rest<'t>> {
    let eaten = marker.texts_of_spellings().into_iter().filter_map(|spelling| eat(text, &spelling));
    eaten.min_by_key(|rest| rest.len())
}

/// Where a marker stands, and how long it is there.
fn find_marker(text: &str, marker: &Marker) -> Option<(usize, usize)> {
    let spellings = marker.texts_of_spellings().into_iter();
    let found =
        spellings.filter_map(|spelling| text.find(&spelling).map(|at| (at, spelling.len())));
    found.min_by_key(|(at, len)| (*at, std::cmp::Reverse(*len)))
}

/// Where something begins that may be the marker: up to its first white space.
fn first_of(text: &str, marker: &Marker) -> Option<usize> {
    let spellings = marker.texts_of_spellings().into_iter();
    let heads = spellings.map(|text| text.split_whitespace().next().unwrap_or_default().to_owned());
    heads.filter(|head| !head.is_empty()).filter_map(|head| text.find(&head)).min()
}

fn eat_parts<'t>(text: Rest<'t>, parts: &[Part]) -> Option<Rest<'t>> {
    let mut rest = text;
    for part in parts {
        rest = match part {
            Part::Text(text) => eat(rest, text)?,
            Part::Marker(marker) => eat_marker(rest, marker)?,
            Part::Gap(_) => rest,
            Part::Maybe(part) => eat_parts(rest, &part.maybe).unwrap_or(rest),
            Part::Id(_) => eat_id(rest),
            Part::Name(_) => return None,
        };
    }
    Some(rest)
}

fn eat_id(rest: Rest<'_>) -> Rest<'_> {
    rest.trim_start().trim_start_matches(|c: char| c.is_ascii_alphanumeric())
}

/// Longest name on the wire: every character of a name may be an entity.
const MAX_WRITTEN_NAME: usize = 6 * MAX_TOOL_NAME_BYTES;

/// A header's name and what is behind the header.
fn eat_header<'t>(text: Rest<'t>, header: &[Part]) -> Option<(String, Rest<'t>)> {
    let at = header.iter().position(|part| matches!(part, Part::Name(_)))?;
    let Part::Name(style) = &header[at] else { return None };
    let rest = eat_parts(text, &header[..at])?.trim_start();
    let behind = &header[at + 1..];
    // The name ends where what is behind it begins, or at what no name contains.
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    for end in ends.skip(1).take_while(|end| *end <= MAX_WRITTEN_NAME) {
        let next = rest[end..].chars().next();
        if let Some(after) = eat_parts(&rest[end..], behind)
            && (!behind.is_empty()
                || next.is_none_or(|c| c == '{' || c == '<' || c.is_whitespace()))
        {
            let name = style.name.read(rest[..end].trim());
            return (!name.is_empty()).then_some((name, after));
        }
        if next.is_some_and(|c| c == '\n' || c == '{') && end > 0 && !behind.is_empty() {
            return None;
        }
    }
    None
}

/// A header without what stands between its markers and the name, where a marker ends the name:
/// names that models make up or put together.
fn loose_headers(header: &[Part]) -> Vec<Vec<Part>> {
    let is_marker = |part: &&Part| matches!(part, Part::Marker(_));
    let Some(at) = header.iter().position(|part| matches!(part, Part::Name(_))) else {
        return Vec::new();
    };
    let Some(end) = header[at..].iter().rev().find(is_marker) else { return Vec::new() };
    let kept: Vec<Part> = header[..=at].iter().chain([end]).cloned().collect();
    let bare = header[..at].iter().filter(is_marker).chain([&header[at], end]).cloned().collect();
    vec![kept, bare]
}

/// The last `"key":` of a text.
fn last_key(text: &str) -> Option<String> {
    let colon = text.rfind("\":")?;
    let quote = text[..colon].rfind('"')?;
    Some(text[quote + 1..colon].to_owned())
}

/// A JSON value at the beginning of a text, and what is behind it.
fn json(text: Rest<'_>) -> Option<(Json, Rest<'_>)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    let (value, rest) = text.split_at(values.byte_offset());
    Some((Json::parse(value, &Limits::default()).ok()?, rest))
}

/// Where the parenthesis closes that is open at the beginning, quotes respected.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') if depth == 0 => return Some(at),
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}
