//! Alternative spellings of calls: what the models of a family are known to write beside the syntax
//! of the chat template.
//!
//! The begin marker of a spelling may also be ordinary text (a JSON object in an answer, say). A
//! spelling with `text_unless` is *ambiguous*: its begin marker starts a call if the name of an
//! offered tool follows, and is text otherwise.

use louver::limits::Limits;
use serde::{Deserialize, Serialize};

use super::json_objects::{JSON_OBJECTS, UNTYPED_OBJECTS};
use super::marker::unique;
use super::{ArgumentStyle, FixedParts, Marker, NameStyle, Part, TagPart, TaggedStyle, WireFormat};
use crate::pattern::pattern_dfa;

/// An alternative spelling of calls: `begin CALL (separator CALL)* end`, where a call is `header
/// ARGUMENTS trailer`. `begin` in free text starts it. Where a call is forced, the grammar allows
/// the template's syntax alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CallSpelling {
    /// Opens the calls.
    pub begin: Marker,
    /// From `begin` or `separator` to the arguments. Names the tool.
    pub header: Vec<Part>,
    /// How arguments are written. By default, as in the template's syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentStyle>,
    /// From the arguments to the next call or `end`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailer: Vec<Part>,
    /// Between two calls. Without it, there is one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<FixedParts>,
    /// Closes the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// Makes the spelling ambiguous: `begin` is text unless the name of an offered tool follows. A
    /// regular expression of what must not follow any other name, as that would be a call of a tool
    /// that is not offered. `header` must begin with the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_unless: Option<String>,
}

impl CallSpelling {
    fn is_ambiguous(&self) -> bool {
        self.text_unless.is_some()
    }

    /// In a header that begins with the name: the name's style, and the byte after the name.
    pub(crate) fn leading_name(&self) -> Option<(NameStyle, u8)> {
        match &self.header[..] {
            [Part::Name { name }, Part::Text(after), ..] => {
                Some((*name, *after.as_bytes().first()?))
            }
            _ => None,
        }
    }

    /// Checks what `text_unless` needs. The error says what is wrong.
    pub(crate) fn check_text_unless(&self) -> Result<(), &'static str> {
        let Some(pattern) = &self.text_unless else { return Ok(()) };
        if self.leading_name().is_none() {
            return Err("needs a header that begins with the name and a text");
        }
        let is_text = matches!(self.begin, Marker::Text(_) | Marker::Any(_));
        if !is_text || self.begin.plain_texts().is_empty() {
            return Err("needs texts as `begin`");
        }
        pattern_dfa(pattern, &Limits::default()).map(|_| ())
    }
}

impl WireFormat {
    /// The alternative spellings of the description, then that of all families: JSON objects
    /// ([`WireFormat::json_objects`]). It is left out where text and calls are messages or text is
    /// marked.
    pub fn all_spellings(&self) -> impl Iterator<Item = &CallSpelling> {
        let is_marked = self.text.begin.is_some();
        let has_objects = self.json_objects && self.messages.is_none() && !is_marked;
        let objects = has_objects.then(|| self.spelling_of_objects());
        self.spellings.iter().chain(objects)
    }

    /// JSON objects without those that begin a spelling of the description.
    fn spelling_of_objects(&self) -> &'static CallSpelling {
        let typed = r#"{"type": "function", "name": "#;
        match self.unambiguous_spellings().any(|own| own.begin.begins(typed)) {
            true => &UNTYPED_OBJECTS,
            false => &JSON_OBJECTS,
        }
    }

    pub(crate) fn unambiguous_spellings(&self) -> impl Iterator<Item = &CallSpelling> {
        self.spellings.iter().filter(|spelling| !spelling.is_ambiguous())
    }

    /// Begin markers that may be text.
    pub(crate) fn ambiguous_begin_texts(&self) -> Vec<String> {
        let ambiguous = self.all_spellings().filter(|spelling| spelling.is_ambiguous());
        ambiguous.flat_map(|spelling| spelling.begin.plain_texts()).collect()
    }

    /// Whether a text begins with a begin marker that may be text: it is one unless the name of an
    /// offered tool follows.
    pub fn begins_ambiguously(&self, text: &str) -> bool {
        let mut ambiguous = self.all_spellings().filter(|spelling| spelling.is_ambiguous());
        ambiguous.any(|spelling| spelling.begin.begins(text))
    }

    /// Begin markers that always start a call.
    pub(crate) fn unambiguous_begin_texts(&self) -> Vec<String> {
        let spellings = self.unambiguous_spellings().map(|spelling| &spelling.begin);
        let markers =
            self.calls_begin_marker().into_iter().chain(self.builtin_begin()).chain(spellings);
        unique(markers.flat_map(Marker::plain_texts).filter(|text| !self.begins_ambiguously(text)))
    }

    /// Texts that no unescaped string of an argument contains: what begins arguments and calls, and
    /// what ends calls. Parsers of the format split at these texts.
    pub(crate) fn excluded_values(&self, style: &TaggedStyle) -> Vec<String> {
        let open = style.open.first().map(|part| match part {
            TagPart::Text(text) => vec![text.clone()],
            TagPart::Marker(marker) => marker.plain_texts(),
            TagPart::Key { .. } | TagPart::Kind { .. } | TagPart::Gap { .. } => Vec::new(),
        });
        let trailers =
            std::iter::once(&self.call.trailer).chain(self.spellings.iter().map(|s| &s.trailer));
        let trailers = trailers.filter_map(|parts| parts.first()).flat_map(|part| match part {
            Part::Text(text) => vec![text.clone()],
            Part::Marker(marker) => marker.plain_texts(),
            _ => Vec::new(),
        });
        let section_end = self.section.iter().filter_map(|section| section.end.as_ref());
        let ends =
            section_end.chain(&self.call.end).chain(&self.call.begin).flat_map(Marker::plain_texts);
        let close = style.close.write();
        let texts = (open.into_iter().flatten())
            .chain(trailers)
            .chain(ends)
            .chain(self.unambiguous_begin_texts())
            .chain(style.excludes.iter().cloned())
            .map(|text| text.trim().to_owned());
        unique(texts.filter(|text| text.chars().count() > 1 && !close.contains(text.as_str())))
    }
}
