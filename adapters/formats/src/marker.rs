//! The smallest pieces of a wire format: markers that are text or special tokens, and what stands around names and
//! values.

use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

/// Most spellings that one marker may stand for.
pub(crate) const MAX_SPELLINGS: usize = 64;

/// A delimiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marker {
    /// Spelled in bytes.
    Text(String),
    /// The special token of this text, and never its spelling.
    Token(String),
    /// Either. [`WireFormat::bind`](crate::WireFormat::bind) settles it for a vocabulary.
    Either(String),
    /// Any of these; the first is the one that is written.
    Any(Vec<Marker>),
    /// All of these, one after the other.
    Seq(Vec<Step>),
}

/// How markers are settled.
#[derive(Clone, Copy)]
pub(crate) enum Settle<'a> {
    /// For a vocabulary.
    For(&'a Vocabulary),
    /// All of them as text.
    Spelled,
}

/// A step of [`Marker::Seq`]: a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Text.
    Text(String),
    /// Anything else.
    Marker(Marker),
}

/// What a spelling of a marker is made of.
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
    /// As it is written: the first spelling.
    pub fn write(&self) -> String {
        match self {
            Marker::Text(text) | Marker::Token(text) | Marker::Either(text) => text.clone(),
            Marker::Any(markers) => markers.first().map(Marker::write).unwrap_or_default(),
            Marker::Seq(steps) => steps.iter().map(Step::write).collect(),
        }
    }

    /// All spellings, the one that is written first; neighbouring texts are one.
    pub(crate) fn spellings(&self) -> Vec<Vec<Atom>> {
        match self {
            Marker::Text(text) => vec![vec![Atom::Text(text.clone())]],
            Marker::Token(text) => vec![vec![Atom::Token(text.clone())]],
            Marker::Either(text) => {
                vec![vec![Atom::Text(text.clone())], vec![Atom::Token(text.clone())]]
            }
            Marker::Any(markers) => {
                markers.iter().flat_map(Marker::spellings).take(MAX_SPELLINGS + 1).collect()
            }
            Marker::Seq(steps) => {
                let mut out: Vec<Vec<Atom>> = vec![Vec::new()];
                for step in steps {
                    let next = match step {
                        Step::Text(text) => vec![vec![Atom::Text(text.clone())]],
                        Step::Marker(marker) => marker.spellings(),
                    };
                    let joined =
                        out.iter().flat_map(|head| next.iter().map(move |tail| join(head, tail)));
                    out = joined.take(MAX_SPELLINGS + 1).collect();
                }
                out
            }
        }
    }

    /// Its spellings as text: what free text must not contain for the marker not to stand in it.
    pub(crate) fn text_heads(&self) -> Vec<String> {
        let heads = self.spellings().into_iter().filter_map(|spelling| match &spelling[..] {
            [Atom::Text(text)] => Some(text.clone()),
            // Free text contains no token, so none of those that need one.
            _ => None,
        });
        let mut out: Vec<String> = Vec::new();
        heads.for_each(|text| {
            if !out.contains(&text) {
                out.push(text);
            }
        });
        out
    }

    /// Its spellings, special tokens as they are spelled.
    pub(crate) fn texts_of_spellings(&self) -> Vec<String> {
        self.spellings().into_iter().map(|atoms| atoms.iter().map(Atom::text).collect()).collect()
    }

    /// The texts in it, for checks.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Marker::Text(text) | Marker::Token(text) | Marker::Either(text) => vec![text],
            Marker::Any(markers) => markers.iter().flat_map(Marker::texts).collect(),
            Marker::Seq(steps) => steps
                .iter()
                .flat_map(|step| match step {
                    Step::Text(text) => vec![text.as_str()],
                    Step::Marker(marker) => marker.texts(),
                })
                .collect(),
        }
    }

    pub(crate) fn bind(&mut self, how: Settle<'_>) {
        match self {
            Marker::Text(_) => {}
            Marker::Token(text) => {
                if matches!(how, Settle::Spelled) {
                    *self = Marker::Text(std::mem::take(text));
                }
            }
            Marker::Either(text) => {
                if !matches!(how, Settle::For(vocab) if vocab.special(text).is_some()) {
                    *self = Marker::Text(std::mem::take(text));
                }
            }
            Marker::Any(markers) => markers.iter_mut().for_each(|marker| marker.bind(how)),
            Marker::Seq(steps) => steps.iter_mut().for_each(|step| {
                if let Step::Marker(marker) = step {
                    marker.bind(how);
                }
            }),
        }
    }
}

impl Step {
    fn write(&self) -> String {
        match self {
            Step::Text(text) => text.clone(),
            Step::Marker(marker) => marker.write(),
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

/// A piece of a header, trailer or separator: a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// Text.
    Text(String),
    /// The tool's name.
    Name(NamePart),
    /// The call's id.
    Id(IdPart),
    /// White space: written as it stands here, any up to [`MAX_GAP`](crate::format::MAX_GAP) bytes accepted.
    Gap(GapPart),
    /// Parts that may be missing; they are not written.
    Maybe(MaybePart),
    /// A delimiter that may be a special token.
    Marker(Marker),
}

/// The place of the tool's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamePart {
    /// How the name is written.
    pub name: NameStyle,
}

/// How a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameStyle {
    /// As the inside of a JSON string.
    Json,
    /// As the inside of an attribute: `&` and `"` as entities.
    Xml,
    /// As it is.
    Raw,
}

/// The place of the call's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdPart {
    /// What ids look like.
    pub id: IdStyle,
}

/// What a call's id looks like on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdStyle {
    /// The call's number in decimal digits: from 0 on.
    FromZero,
    /// The call's number in decimal digits: from 1 on.
    FromOne,
    /// Nine letters and digits.
    Nine,
}

/// White space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GapPart {
    /// What is written.
    pub gap: String,
}

/// Parts that may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaybePart {
    /// The parts.
    pub maybe: Vec<Part>,
}

/// What stands between things: a string, or a list of parts without names and ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Glue {
    /// Text.
    Text(String),
    /// Parts.
    Parts(Vec<Part>),
}

impl Default for Glue {
    fn default() -> Self {
        Glue::Text(String::new())
    }
}

impl Glue {
    /// As it is written.
    pub fn write(&self) -> String {
        match self {
            Glue::Text(text) => text.clone(),
            Glue::Parts(parts) => parts.iter().map(Part::write).collect(),
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Glue::Text(text) => text.is_empty(),
            Glue::Parts(parts) => parts.is_empty(),
        }
    }

    pub(crate) fn parts(&self) -> Vec<Part> {
        match self {
            Glue::Text(text) if text.is_empty() => Vec::new(),
            Glue::Text(text) => vec![Part::Text(text.clone())],
            Glue::Parts(parts) => parts.clone(),
        }
    }

    pub(crate) fn bind(&mut self, how: Settle<'_>) {
        if let Glue::Parts(parts) = self {
            parts.iter_mut().for_each(|part| part.bind(how));
        }
    }
}

impl Part {
    /// As it is written, names and ids left out.
    pub(crate) fn write(&self) -> String {
        match self {
            Part::Text(text) => text.clone(),
            Part::Gap(gap) => gap.gap.clone(),
            Part::Marker(marker) => marker.write(),
            Part::Name(_) | Part::Id(_) | Part::Maybe(_) => String::new(),
        }
    }

    pub(crate) fn bind(&mut self, how: Settle<'_>) {
        match self {
            Part::Marker(marker) => marker.bind(how),
            Part::Maybe(part) => part.maybe.iter_mut().for_each(|part| part.bind(how)),
            Part::Text(_) | Part::Name(_) | Part::Id(_) | Part::Gap(_) => {}
        }
    }
}

impl NameStyle {
    /// A name as it stands on the wire.
    pub(crate) fn write(self, name: &str) -> String {
        match self {
            NameStyle::Raw => name.to_owned(),
            NameStyle::Xml => {
                let mut out = String::with_capacity(name.len());
                for c in name.chars() {
                    match ENTITIES.iter().find(|(plain, _)| *plain == c) {
                        Some((_, entity)) => out.push_str(entity),
                        None => out.push(c),
                    }
                }
                out
            }
            NameStyle::Json => {
                let mut out = String::new();
                louver::spec::json::write_string(&mut out, name);
                out[1..out.len() - 1].to_owned()
            }
        }
    }

    /// A name read from the wire.
    pub(crate) fn read(self, written: &str) -> String {
        match self {
            NameStyle::Raw => written.to_owned(),
            // Entities first to last; the ampersand's own last.
            NameStyle::Xml => ENTITIES
                .iter()
                .rev()
                .fold(written.to_owned(), |text, (c, entity)| text.replace(entity, &c.to_string())),
            NameStyle::Json => serde_json::from_str(&format!("\"{written}\""))
                .unwrap_or_else(|_| written.to_owned()),
        }
    }
}

/// The ampersand first.
const ENTITIES: [(char, &str); 2] = [('&', "&amp;"), ('"', "&quot;")];

impl IdStyle {
    /// The id of the call with this number (from 0), as it stands on the wire. `given` is kept where it fits.
    pub(crate) fn write(self, number: usize, given: &str) -> String {
        match self {
            IdStyle::FromZero => number.to_string(),
            IdStyle::FromOne => (number + 1).to_string(),
            IdStyle::Nine
                if given.len() == 9 && given.bytes().all(|b| b.is_ascii_alphanumeric()) =>
            {
                given.to_owned()
            }
            IdStyle::Nine => format!("call{number:05}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_multiply_and_join() {
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
            marker.spellings(),
            [vec![text("<a>bc")], vec![Atom::Token("<a>".to_owned()), text("bc")]]
        );
        assert_eq!(marker.text_heads(), ["<a>bc"]);
    }

    #[test]
    fn names_come_back() {
        for style in [NameStyle::Json, NameStyle::Xml, NameStyle::Raw] {
            for name in ["a", "&amp;lt;", "a\"b\\c", "<x> & y", "天"] {
                assert_eq!(style.read(&style.write(name)), name, "{style:?}");
            }
        }
    }
}
