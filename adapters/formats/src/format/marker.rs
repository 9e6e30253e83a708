//! Markers: delimiters that are text or special tokens.

use std::borrow::Cow;

use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

/// The most variants that one marker may have.
pub(crate) const MAX_VARIANTS: usize = 64;

/// A delimiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "MarkerTable")]
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
    Seq(Vec<MarkerPart>),
}

/// A marker as a table of TOML, which has one of these members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a marker, such as { text = \"<call>\" }")]
struct MarkerTable {
    text: Option<String>,
    token: Option<String>,
    either: Option<String>,
    any: Option<Vec<Marker>>,
    seq: Option<Vec<MarkerPart>>,
}

impl TryFrom<MarkerTable> for Marker {
    type Error = &'static str;

    fn try_from(table: MarkerTable) -> Result<Marker, &'static str> {
        let members = [
            table.text.map(Marker::Text),
            table.token.map(Marker::Token),
            table.either.map(Marker::Either),
            table.any.map(Marker::Any),
            table.seq.map(Marker::Seq),
        ];
        let mut given = members.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(marker), None) => Ok(marker),
            _ => Err("a marker has exactly one of `text`, `token`, `either`, `any` and `seq`"),
        }
    }
}

/// What markers are bound to.
#[derive(Clone, Copy)]
pub(crate) enum Binding<'a> {
    /// A vocabulary: [`Marker::Either`] is a special token if the vocabulary has it, else text.
    Vocabulary(&'a Vocabulary),
    /// No vocabulary: every marker is text.
    Text,
}

/// A part of [`Marker::Seq`]. In TOML, a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a text or a marker, such as { either = \"<call>\" }")]
pub enum MarkerPart {
    /// Text.
    Text(String),
    /// A marker of another kind.
    Marker(Marker),
}

/// A piece of a variant of a marker.
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
            Marker::Seq(parts) => parts.iter().map(|part| part.as_marker().write()).collect(),
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
            Marker::Seq(parts) => {
                let mut out: Vec<Vec<Atom>> = vec![Vec::new()];
                for part in parts {
                    let next = part.as_marker().variants();
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

    /// Whether a variant that is text alone begins the text.
    pub(crate) fn begins(&self, text: &str) -> bool {
        match self {
            Marker::Text(begin) | Marker::Either(begin) => text.starts_with(begin.as_str()),
            Marker::Token(_) => false,
            Marker::Any(markers) => markers.iter().any(|marker| marker.begins(text)),
            Marker::Seq(_) => self.plain_texts().iter().any(|begin| text.starts_with(begin)),
        }
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
            Marker::Seq(parts) => {
                parts.iter().for_each(|part| part.as_marker().add_tokens(needed, possible))
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
            Marker::Seq(parts) => parts.iter().any(|part| part.as_marker().has_empty_text()),
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
            Marker::Seq(parts) => parts.iter_mut().for_each(|part| {
                if let MarkerPart::Marker(marker) = part {
                    marker.bind(to);
                }
            }),
        }
    }
}

impl MarkerPart {
    fn as_marker(&self) -> Cow<'_, Marker> {
        match self {
            MarkerPart::Text(text) => Cow::Owned(Marker::Text(text.clone())),
            MarkerPart::Marker(marker) => Cow::Borrowed(marker),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_a_sequence_are_the_product_of_its_parts() {
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
}
