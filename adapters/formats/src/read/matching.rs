//! Lenient matching at the beginning of a text: markers, parts, headers, JSON values. White space
//! is ignored.

use louver::limits::Limits;
use louver::spec::json::Json;

use crate::format::{IdStyle, Marker, Part};
use crate::request::MAX_TOOL_NAME_BYTES;

/// What follows the pattern at the beginning of the text. White space in both is ignored.
pub(super) fn eat<'t>(text: &'t str, pattern: &str) -> Option<&'t str> {
    let mut rest = text;
    for c in pattern.chars().filter(|c| !c.is_whitespace()) {
        rest = rest.trim_start().strip_prefix(c)?;
    }
    Some(rest)
}

pub(super) fn eat_marker<'t>(text: &'t str, marker: &Marker) -> Option<&'t str> {
    let eaten = marker.as_texts().into_iter().filter_map(|variant| eat(text, &variant));
    eaten.min_by_key(|rest| rest.len())
}

/// What follows an optional end marker, and whether the marker was found. `default` if there is no
/// marker to find.
pub(super) fn eat_end<'t>(rest: &'t str, end: Option<&Marker>, default: bool) -> (bool, &'t str) {
    let Some(end) = end else { return (default, rest) };
    match eat_marker(rest, end) {
        Some(after) => (true, after),
        None => (false, rest),
    }
}

/// The offset and the length of the first occurrence of a marker.
pub(super) fn find_marker(text: &str, marker: &Marker) -> Option<(usize, usize)> {
    let variants = marker.as_texts().into_iter();
    let found = variants.filter_map(|variant| text.find(&variant).map(|at| (at, variant.len())));
    found.min_by_key(|(at, len)| (*at, std::cmp::Reverse(*len)))
}

/// Searches a text for what may be a begin marker: the first word of a marker.
pub(super) struct Heads(Vec<Head>);

struct Head {
    text: String,
    /// Begins a marker that always begins a call.
    is_sure: bool,
    /// The length of the text from its next occurrence on: 0 if there is none.
    next: Option<usize>,
}

impl Heads {
    /// The first words of markers that always begin calls, and of markers that may be text.
    pub(super) fn new(sure: impl Iterator<Item = String>, ambiguous: &[String]) -> Heads {
        let sure = sure.map(|text| (text, true));
        let all = sure.chain(ambiguous.iter().map(|text| (text.clone(), false)));
        let mut out: Vec<Head> = Vec::new();
        for (text, is_sure) in all {
            let Some(head) = text.split_whitespace().next() else { continue };
            match out.iter_mut().find(|known| known.text == head) {
                Some(known) => known.is_sure |= is_sure,
                None => out.push(Head { text: head.to_owned(), is_sure, next: None }),
            }
        }
        Heads(out)
    }

    /// The offset of the first, and whether a marker may be there that always begins a call.
    /// `rest`: an end of the text of the last call. Cost: each byte is searched once for each.
    pub(super) fn first(&mut self, rest: &str) -> Option<(usize, bool)> {
        for head in &mut self.0 {
            if head.next.is_none_or(|next| next > rest.len()) {
                head.next = Some(rest.find(&head.text).map_or(0, |at| rest.len() - at));
            }
        }
        let next = self.0.iter().filter_map(|head| head.next).max().filter(|&next| next > 0)?;
        let is_sure = self.0.iter().any(|head| head.is_sure && head.next == Some(next));
        Some((rest.len() - next, is_sure))
    }
}

pub(super) fn eat_parts<'t>(text: &'t str, parts: &[Part]) -> Option<&'t str> {
    let mut rest = text;
    for part in parts {
        rest = match part {
            Part::Text(text) => eat(rest, text)?,
            Part::Marker(marker) => eat_marker(rest, marker)?,
            Part::Gap { .. } => rest,
            Part::Maybe { maybe } => eat_parts(rest, maybe).unwrap_or(rest),
            Part::Id { id } => eat_id(rest, *id),
            Part::Name { .. } => return None,
        };
    }
    Some(rest)
}

/// What follows an id. Letters and digits belong to it in every style.
fn eat_id(rest: &str, style: IdStyle) -> &str {
    rest.trim_start().trim_start_matches(|c: char| c.is_ascii_alphanumeric() || style.has(c))
}

/// The longest name on the wire, in bytes: every character of a name may be an entity.
const MAX_WRITTEN_NAME: usize = 6 * MAX_TOOL_NAME_BYTES;

/// The name in a header, and what follows the header.
pub(super) fn eat_header<'t>(text: &'t str, header: &[Part]) -> Option<(String, &'t str)> {
    let at = header.iter().position(|part| matches!(part, Part::Name { .. }))?;
    let Part::Name { name: style } = &header[at] else { return None };
    let rest = eat_parts(text, &header[..at])?.trim_start();
    let tail = &header[at + 1..];
    let names_again = tail.iter().any(|part| matches!(part, Part::Name { .. }));
    // The name ends where the parts after it begin, or at a character that no name contains.
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    for end in ends.skip(1).take_while(|end| *end <= MAX_WRITTEN_NAME) {
        let next = rest[end..].chars().next();
        let named = if names_again { with_name(tail, rest[..end].trim()) } else { Vec::new() };
        if let Some(after) = eat_parts(&rest[end..], if names_again { &named } else { tail })
            && (!tail.is_empty() || next.is_none_or(|c| c == '{' || c == '<' || c.is_whitespace()))
        {
            let name = style.read(rest[..end].trim());
            return (!name.is_empty()).then_some((name, after));
        }
        if next.is_some_and(|c| c == '\n' || c == '{') && end > 0 && !tail.is_empty() {
            return None;
        }
    }
    None
}

/// Parts with a name, as it is written, in the place of names.
fn with_name(parts: &[Part], written: &str) -> Vec<Part> {
    let named = parts.iter().map(|part| match part {
        Part::Name { .. } => Part::Text(written.to_owned()),
        other => other.clone(),
    });
    named.collect()
}

/// Looser variants of a header in which a marker ends the name: without the parts between name and
/// marker, and without any text. They accept names that models make up.
pub(super) fn loose_headers(header: &[Part]) -> Vec<Vec<Part>> {
    let is_marker = |part: &&Part| matches!(part, Part::Marker(_));
    let Some(at) = header.iter().position(|part| matches!(part, Part::Name { .. })) else {
        return Vec::new();
    };
    let Some(end) = header[at..].iter().rev().find(is_marker) else { return Vec::new() };
    let kept: Vec<Part> = header[..=at].iter().chain([end]).cloned().collect();
    let bare = header[..at].iter().filter(is_marker).chain([&header[at], end]).cloned().collect();
    vec![kept, bare]
}

/// The last `"key":` of a text.
pub(super) fn last_key(text: &str) -> Option<String> {
    let colon = text.rfind("\":")?;
    let quote = text[..colon].rfind('"')?;
    Some(text[quote + 1..colon].to_owned())
}

/// A JSON value with the keys that occur twice in one of its objects. The last value of a key
/// counts, as in Python.
pub(super) fn parse_json(text: &str) -> Option<(Json, Vec<String>)> {
    Json::parse_repeated(text, &Limits::default()).ok()
}

/// The text of the JSON value at the beginning of a text, and what follows.
pub(super) fn json(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    Some(text.split_at(values.byte_offset()))
}

/// The offset of the parenthesis that closes one before the text. Skips quoted strings.
pub(super) fn closing_parenthesis(text: &str) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_eaten_in_their_style() {
        for (id, text, rest) in [
            (IdStyle::Identifier, " call_7-a\"}", "\"}"),
            (IdStyle::Word, "abc-d", "-d"),
            (IdStyle::FromZero, "a1-", "-"),
        ] {
            assert_eq!(eat_parts(text, &[Part::Id { id }]), Some(rest));
        }
    }
}
