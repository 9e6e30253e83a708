//! The smallest pieces of a wire format: markers (text or special tokens), and the parts of
//! headers, trailers and separators.

use std::ops::RangeInclusive;

use std::borrow::Cow;

use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

/// The most variants that one marker may have.
pub(crate) const MAX_VARIANTS: usize = 64;

/// A delimiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marker {
    /// Text, whatever tokens spell it.
    Text(String),
    /// The special token with this text, and never its spelling in bytes.
    Token(String),
    /// Text or special token. [`WireFormat::bind`](crate::WireFormat::bind) decides for a
    /// vocabulary.
    Either(String),
    /// Alternatives. The renderer writes the first.
    Any(Vec<Marker>),
    /// A sequence.
    Seq(Vec<Step>),
}

/// What markers are bound to.
#[derive(Clone, Copy)]
pub(crate) enum Binding<'a> {
    /// A vocabulary: [`Marker::Either`] is a special token if the vocabulary has it, else text.
    Vocabulary(&'a Vocabulary),
    /// No vocabulary: every marker is text.
    Text,
}

/// An element of [`Marker::Seq`]. In TOML, a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Text.
    Text(String),
    /// A marker of another kind.
    Marker(Marker),
}

/// An element of a variant of a marker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    Text(String),
    Token(String),
}

impl Atom {
    pub(crate) fn text(&self) -> &str {
        match self {
            Atom::Text(text) | Atom::Token(text) => text,
        }
    }
}

impl Marker {
    /// The marker as text, as the renderer writes it: the first variant.
    pub fn write(&self) -> String {
        match self {
            Marker::Text(text) | Marker::Token(text) | Marker::Either(text) => text.clone(),
            Marker::Any(markers) => markers.first().map(Marker::write).unwrap_or_default(),
            Marker::Seq(steps) => steps.iter().map(|step| step.as_marker().write()).collect(),
        }
    }

    /// All variants, the first as the renderer writes it. Adjacent texts are one atom. Stops past
    /// [`MAX_VARIANTS`].
    pub(crate) fn variants(&self) -> Vec<Vec<Atom>> {
        match self {
            Marker::Text(text) => vec![vec![Atom::Text(text.clone())]],
            Marker::Token(text) => vec![vec![Atom::Token(text.clone())]],
            Marker::Either(text) => {
                vec![vec![Atom::Text(text.clone())], vec![Atom::Token(text.clone())]]
            }
            Marker::Any(markers) => {
                markers.iter().flat_map(Marker::variants).take(MAX_VARIANTS + 1).collect()
            }
            Marker::Seq(steps) => {
                let mut out: Vec<Vec<Atom>> = vec![Vec::new()];
                for step in steps {
                    let next = step.as_marker().variants();
                    let joined =
                        out.iter().flat_map(|head| next.iter().map(move |tail| join(head, tail)));
                    out = joined.take(MAX_VARIANTS + 1).collect();
                }
                out
            }
        }
    }

    /// The variants that are text alone. Free text that contains none of them does not contain
    /// the marker, as free text has no special tokens.
    pub(crate) fn plain_texts(&self) -> Vec<String> {
        let texts = self.variants().into_iter().filter_map(|variant| match &variant[..] {
            [Atom::Text(text)] => Some(text.clone()),
            _ => None,
        });
        unique(texts)
    }

    /// Adds the texts of special tokens: those that the marker needs, and those that it may be.
    pub(crate) fn add_tokens(&self, needed: &mut Vec<String>, possible: &mut Vec<String>) {
        match self {
            Marker::Text(_) => {}
            Marker::Token(text) => needed.push(text.clone()),
            Marker::Either(text) => possible.push(text.clone()),
            Marker::Any(markers) => {
                markers.iter().for_each(|marker| marker.add_tokens(needed, possible));
            }
            Marker::Seq(steps) => {
                steps.iter().for_each(|step| step.as_marker().add_tokens(needed, possible))
            }
        }
    }

    /// All variants as text, with special tokens as their text.
    pub(crate) fn as_texts(&self) -> Vec<String> {
        self.variants().into_iter().map(|atoms| atoms.iter().map(Atom::text).collect()).collect()
    }

    /// Whether the marker, or a marker in it, is the empty text.
    pub(crate) fn has_empty_text(&self) -> bool {
        match self {
            Marker::Text(text) | Marker::Token(text) | Marker::Either(text) => text.is_empty(),
            Marker::Any(markers) => markers.iter().any(Marker::has_empty_text),
            Marker::Seq(steps) => steps.iter().any(|step| step.as_marker().has_empty_text()),
        }
    }

    pub(crate) fn bind(&mut self, to: Binding<'_>) {
        match self {
            Marker::Token(text) if matches!(to, Binding::Text) => {
                *self = Marker::Text(std::mem::take(text));
            }
            Marker::Either(text) if !matches!(to, Binding::Vocabulary(vocab) if vocab.special(text).is_some()) =>
            {
                *self = Marker::Text(std::mem::take(text));
            }
            Marker::Text(_) | Marker::Token(_) | Marker::Either(_) => {}
            Marker::Any(markers) => markers.iter_mut().for_each(|marker| marker.bind(to)),
            Marker::Seq(steps) => steps.iter_mut().for_each(|step| {
                if let Step::Marker(marker) = step {
                    marker.bind(to);
                }
            }),
        }
    }
}

impl Step {
    fn as_marker(&self) -> Cow<'_, Marker> {
        match self {
            Step::Text(text) => Cow::Owned(Marker::Text(text.clone())),
            Step::Marker(marker) => Cow::Borrowed(marker),
        }
    }
}

fn join(head: &[Atom], tail: &[Atom]) -> Vec<Atom> {
    let mut out = head.to_vec();
    for atom in tail {
        match (out.last_mut(), atom) {
            (Some(Atom::Text(text)), Atom::Text(more)) => text.push_str(more),
            _ => out.push(atom.clone()),
        }
    }
    out
}

/// The items in order, each once. Cost: quadratic.
pub(crate) fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    for item in items {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

/// A part of a header, trailer or separator. In TOML, a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
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
}

/// Fixed syntax between elements: a text, or a list of parts without names and ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
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
    /// How many letters or digits an id has.
    pub(crate) fn lengths(self) -> RangeInclusive<usize> {
        match self {
            IdStyle::FromZero | IdStyle::FromOne => 1..=9,
            IdStyle::Nine => 9..=9,
            IdStyle::Word => 8..=16,
        }
    }

    /// The id of a call on the wire, where calls are numbered from 0. `given` is kept if it has the
    /// form of the style.
    pub(crate) fn write(self, number: usize, given: &str) -> String {
        let is_word = given.bytes().all(|b| b.is_ascii_alphanumeric());
        match self {
            IdStyle::FromZero => number.to_string(),
            IdStyle::FromOne => (number + 1).to_string(),
            IdStyle::Nine | IdStyle::Word if self.lengths().contains(&given.len()) && is_word => {
                given.to_owned()
            }
            IdStyle::Nine => format!("call{number:05}"),
            IdStyle::Word => format!("call{number:06}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_a_sequence_are_the_product_of_its_steps() {
        let marker: Marker = toml::from_str::<toml::Table>(
            "m = { seq = [{ either = \"<a>\" }, \"b\", { text = \"c\" }] }",
        )
        .expect("TOML")["m"]
            .clone()
            .try_into()
            .expect("marker");
        assert_eq!(marker.write(), "<a>bc");
        let text = |t: &str| Atom::Text(t.to_owned());
        assert_eq!(
            marker.variants(),
            [vec![text("<a>bc")], vec![Atom::Token("<a>".to_owned()), text("bc")]]
        );
        assert_eq!(marker.plain_texts(), ["<a>bc"]);
    }

    #[test]
    fn names_round_trip() {
        for style in [NameStyle::Json, NameStyle::Xml, NameStyle::Raw] {
            for name in ["a", "&amp;lt;", "a\"b\\c", "<x> & y", "天"] {
                assert_eq!(style.read(&style.write(name)), name, "{style:?}");
            }
        }
    }
}
