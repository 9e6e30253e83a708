//! The parts of headers, trailers and separators, and how names and ids are written in them.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::Marker;

/// A part of a header, trailer or separator. In TOML, a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected parts: a text, a marker, { name = \"json\", \"xml\" or \"raw\" }, { id = \
                 \"from-zero\", \"from-one\", \"nine\", \"word\" or \"identifier\" }, \
                 { gap = \"SPACES\" } or { maybe = [PARTS] }"
)]
pub enum Part {
    /// Text.
    Text(String),
    /// The tool's name.
    Name {
        /// How the name is written.
        name: NameStyle,
    },
    /// The call's id.
    Id {
        /// The form of ids.
        id: IdStyle,
    },
    /// White space. The grammar accepts up to [`MAX_GAP`](super::MAX_GAP) bytes of any.
    Gap {
        /// The white space that the renderer writes.
        gap: String,
    },
    /// Parts that may be missing. The renderer leaves them out.
    Maybe {
        /// The parts.
        maybe: Vec<Part>,
    },
    /// A delimiter that may be a special token.
    Marker(Marker),
}

/// How a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameStyle {
    /// As the inside of a JSON string.
    Json,
    /// As the inside of an XML attribute: `&` and `"` as entities.
    Xml,
    /// Without escapes.
    Raw,
}

/// The form of a call's id on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdStyle {
    /// The call's number in decimal digits, counted from 0.
    FromZero,
    /// The call's number in decimal digits, counted from 1.
    FromOne,
    /// Nine ASCII letters and digits.
    Nine,
    /// Eight to sixteen ASCII letters and digits.
    Word,
    /// One to 64 ASCII letters, digits, `_` and `-`.
    Identifier,
}

/// Fixed syntax: a text, or a list of parts without names and ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, or a list of texts, markers, { gap = \"SPACES\" } and { maybe = \
                 [PARTS] }"
)]
pub enum FixedParts {
    /// Text.
    Text(String),
    /// Parts.
    Parts(Vec<Part>),
}

impl Default for FixedParts {
    fn default() -> Self {
        FixedParts::Text(String::new())
    }
}

impl FixedParts {
    /// The text that the renderer writes.
    pub fn write(&self) -> String {
        self.parts().iter().map(Part::write).collect()
    }

    /// Whether it is the empty text or has no parts.
    pub fn is_empty(&self) -> bool {
        self.parts().is_empty()
    }

    pub(crate) fn parts(&self) -> Vec<Part> {
        match self {
            FixedParts::Text(text) if text.is_empty() => Vec::new(),
            FixedParts::Text(text) => vec![Part::Text(text.clone())],
            FixedParts::Parts(parts) => parts.clone(),
        }
    }

    pub(crate) fn markers_mut(&mut self) -> Vec<&mut Marker> {
        match self {
            FixedParts::Text(_) => Vec::new(),
            FixedParts::Parts(parts) => markers_in(parts),
        }
    }
}

/// The markers among parts, optional ones included.
pub(crate) fn markers_in(parts: &mut [Part]) -> Vec<&mut Marker> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Part::Marker(marker) => out.push(marker),
            Part::Maybe { maybe } => out.extend(markers_in(maybe)),
            Part::Text(_) | Part::Name { .. } | Part::Id { .. } | Part::Gap { .. } => {}
        }
    }
    out
}

impl Part {
    /// The text that the renderer writes. Names and ids are left out.
    pub(crate) fn write(&self) -> String {
        match self {
            Part::Text(text) => text.clone(),
            Part::Gap { gap } => gap.clone(),
            Part::Marker(marker) => marker.write(),
            Part::Name { .. } | Part::Id { .. } | Part::Maybe { .. } => String::new(),
        }
    }
}

impl NameStyle {
    /// Encodes a name for the wire.
    pub(crate) fn write(self, name: &str) -> String {
        match self {
            NameStyle::Raw => name.to_owned(),
            NameStyle::Xml => ENTITIES
                .iter()
                .fold(name.to_owned(), |text, (plain, entity)| text.replace(*plain, entity)),
            NameStyle::Json => escape_json(name),
        }
    }

    /// Decodes a name from the wire.
    pub(crate) fn read(self, written: &str) -> String {
        match self {
            NameStyle::Raw => written.to_owned(),
            NameStyle::Xml => ENTITIES
                .iter()
                .rev()
                .fold(written.to_owned(), |text, (plain, entity)| text.replace(entity, plain)),
            NameStyle::Json => serde_json::from_str(&format!("\"{written}\""))
                .unwrap_or_else(|_| written.to_owned()),
        }
    }
}

/// Characters and their entities. The ampersand is encoded first and decoded last.
const ENTITIES: [(&str, &str); 2] = [("&", "&amp;"), ("\"", "&quot;")];

/// The text as the inside of a JSON string.
pub(crate) fn escape_json(text: &str) -> String {
    let mut out = String::new();
    louver::spec::json::write_string(&mut out, text);
    out[1..out.len() - 1].to_owned()
}

impl IdStyle {
    /// Whether an id is the call's number.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, IdStyle::FromZero | IdStyle::FromOne)
    }

    /// Whether an id may have the character.
    pub(crate) fn has(self, c: char) -> bool {
        match self {
            IdStyle::FromZero | IdStyle::FromOne => c.is_ascii_digit(),
            IdStyle::Nine | IdStyle::Word => c.is_ascii_alphanumeric(),
            IdStyle::Identifier => c.is_ascii_alphanumeric() || c == '_' || c == '-',
        }
    }

    /// How many characters an id has.
    pub(crate) fn lengths(self) -> RangeInclusive<usize> {
        match self {
            IdStyle::FromZero | IdStyle::FromOne => 1..=9,
            IdStyle::Nine => 9..=9,
            IdStyle::Word => 8..=16,
            IdStyle::Identifier => 1..=64,
        }
    }

    /// Whether an id has the form of the style.
    pub(crate) fn fits(self, id: &str) -> bool {
        self.lengths().contains(&id.len()) && id.chars().all(|c| self.has(c))
    }

    /// The id of a call on the wire, where calls are numbered from 0. `given` is kept if it has the
    /// form of the style.
    pub(crate) fn write(self, number: usize, given: &str) -> String {
        match self {
            IdStyle::FromZero => number.to_string(),
            IdStyle::FromOne => (number + 1).to_string(),
            _ if self.fits(given) => given.to_owned(),
            IdStyle::Nine => format!("call{number:05}"),
            IdStyle::Word => format!("call{number:06}"),
            IdStyle::Identifier => format!("call_{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for style in [NameStyle::Json, NameStyle::Xml, NameStyle::Raw] {
            for name in ["a", "&amp;lt;", "a\"b\\c", "<x> & y", "天"] {
                assert_eq!(style.read(&style.write(name)), name, "{style:?}");
            }
        }
    }
}
