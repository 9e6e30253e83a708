//! What a model family writes on the wire, as data. Read from TOML; the only place that knows a family's markers.

use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

/// One family's wire format: the source of the grammar, the extractor and the renderer alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireFormat {
    /// How users name it.
    pub name: String,
    /// Which models speak it, for people.
    pub title: String,
    /// Where the description was read.
    pub sources: Vec<String>,
    /// Special tokens that end a turn, by text; those the vocabulary lacks do not matter.
    pub stop_tokens: Vec<String>,
    /// Free text.
    pub text: TextFormat,
    /// The reasoning block, in families that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningFormat>,
    /// What encloses all calls of a turn, in families that enclose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<SectionFormat>,
    /// One call.
    pub call: CallFormat,
    /// How to recognise a model of this family: any of these.
    #[serde(default)]
    pub detect: Vec<DetectRule>,
}

/// Free text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFormat {
    /// Where it may stand.
    pub place: TextPlace,
    /// What it never contains (calls' begin markers need not be listed: they begin calls, or are excluded where no
    /// call may begin).
    #[serde(default)]
    pub excludes: Vec<String>,
}

/// Where free text may stand in a turn whose calls are not forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextPlace {
    /// Before, between and behind calls.
    Anywhere,
    /// Before the first call only.
    BeforeCalls,
    /// A turn is text or calls.
    InsteadOfCalls,
}

/// The reasoning block: `begin lead TEXT trail end after`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasoningFormat {
    /// Opens the block.
    pub begin: Marker,
    /// What the family's template writes behind `begin`. Generation may differ; extraction strips it where present.
    #[serde(default)]
    pub lead: String,
    /// As `lead`, before `end`.
    #[serde(default)]
    pub trail: String,
    /// Closes the block.
    pub end: Marker,
    /// What stands between the block and the rest of the turn; generation always has it.
    #[serde(default)]
    pub after: String,
    /// What reasoning never contains.
    #[serde(default)]
    pub excludes: Vec<String>,
}

/// What encloses all calls of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionFormat {
    /// Opens the section.
    pub begin: Marker,
    /// Closes it.
    pub end: Marker,
}

/// One call: `begin header ARGUMENTS trailer end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFormat {
    /// Opens a call. Without a section, reading it in free text is what starts a call.
    pub begin: Marker,
    /// From `begin` to the arguments; names the tool exactly once.
    pub header: Vec<Part>,
    /// How arguments are written.
    pub arguments: ArgumentStyle,
    /// From the arguments to `end`.
    #[serde(default)]
    pub trailer: Vec<Part>,
    /// Closes the call, in families that mark it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// What stands between two calls, and between text and a call.
    #[serde(default)]
    pub separator: String,
    /// How many calls a turn may have.
    pub parallel: ParallelPolicy,
}

/// A delimiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marker {
    /// Spelled in bytes.
    Text(String),
    /// The special token of this text, and never its spelling.
    Token(String),
    /// Either. [`WireFormat::bind`] settles it for a vocabulary.
    Either(String),
}

impl Marker {
    /// Its text, whichever way it is written.
    pub fn text(&self) -> &str {
        match self {
            Marker::Text(text) | Marker::Token(text) | Marker::Either(text) => text,
        }
    }

    /// Its spelling, unless only the token counts.
    pub fn spelled(&self) -> Option<&str> {
        match self {
            Marker::Text(text) | Marker::Either(text) => Some(text),
            Marker::Token(_) => None,
        }
    }

    fn bind(&mut self, vocab: &Vocabulary) {
        if let Marker::Either(text) = self
            && vocab.special(text).is_none()
        {
            *self = Marker::Text(std::mem::take(text));
        }
    }
}

/// A piece of a header or trailer: a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// Text.
    Text(String),
    /// The tool's name.
    Name(NamePart),
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
    /// As it is.
    Raw,
}

/// How arguments are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentStyle {
    /// One JSON value.
    Json,
}

/// How many calls a turn of the family may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParallelPolicy {
    /// Any number.
    Many,
    /// One at most.
    One,
}

/// A way to recognise a family: all of it must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectRule {
    /// The chat template contains all of these (its escapes `\n` and `\"` count as what they stand for).
    #[serde(default)]
    pub template: Vec<String>,
    /// The chat template contains none of these.
    #[serde(default)]
    pub absent: Vec<String>,
    /// The tokenizer has all of these special or added tokens.
    #[serde(default)]
    pub tokens: Vec<String>,
}

/// Why a description is not a wire format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Not TOML, or not of this shape; the message has line and column.
    #[error("not a wire format: {0}")]
    Parse(#[from] toml::de::Error),
    /// Of this shape, but without sense.
    #[error("wire format `{format}`: {pointer}: {what}")]
    Invalid {
        /// The format's name.
        format: String,
        /// JSON pointer of the field.
        pointer: &'static str,
        /// What is wrong.
        what: &'static str,
    },
}

impl WireFormat {
    /// Reads and checks a description. Cost: linear.
    pub fn from_toml(text: &str) -> Result<WireFormat, FormatError> {
        let format: WireFormat = toml::from_str(text)?;
        format.check()?;
        Ok(format)
    }

    /// Checks what the shape does not say: markers have text, and a header names its tool once.
    pub fn check(&self) -> Result<(), FormatError> {
        let fail = |pointer, what| Err(FormatError::Invalid { format: self.name.clone(), pointer, what });
        if self.name.is_empty() {
            return fail("/name", "is empty");
        }
        let reasoning = self.reasoning.iter().flat_map(|r| {
            [("/reasoning/begin", r.begin.text()), ("/reasoning/end", r.end.text())]
                .into_iter()
                .chain(r.excludes.iter().map(|e| ("/reasoning/excludes", e.as_str())))
        });
        let section =
            self.section.iter().flat_map(|s| [("/section/begin", s.begin.text()), ("/section/end", s.end.text())]);
        let call = [("/call/begin", self.call.begin.text())]
            .into_iter()
            .chain(self.call.end.iter().map(|m| ("/call/end", m.text())))
            .chain(self.call.header.iter().filter_map(|p| part_text("/call/header", p)))
            .chain(self.call.trailer.iter().filter_map(|p| part_text("/call/trailer", p)));
        let rest = (self.text.excludes.iter().map(|e| ("/text/excludes", e.as_str())))
            .chain(self.stop_tokens.iter().map(|t| ("/stop_tokens", t.as_str())));
        if let Some((pointer, _)) = reasoning.chain(section).chain(call).chain(rest).find(|(_, text)| text.is_empty()) {
            return fail(pointer, "is or contains an empty text");
        }
        let names = |parts: &[Part]| parts.iter().filter(|p| matches!(p, Part::Name(_))).count();
        if names(&self.call.header) != 1 {
            return fail("/call/header", "must have the tool's name exactly once");
        }
        if names(&self.call.trailer) != 0 {
            return fail("/call/trailer", "must not have the tool's name");
        }
        if self.call.trailer.is_empty() && self.call.end.is_none() {
            return fail("/call/end", "a call needs a trailer or an end marker, or its end is never seen");
        }
        for rule in &self.detect {
            if rule.template.is_empty() && rule.tokens.is_empty() {
                return fail("/detect", "a rule needs `template` or `tokens`");
            }
        }
        Ok(())
    }

    /// Settles [`Marker::Either`] for a vocabulary: text alone where the vocabulary has no such special token. Do this
    /// before lowering for an engine; a grammar that names a token the vocabulary lacks does not compile against it.
    pub fn bind(&self, vocab: &Vocabulary) -> WireFormat {
        let mut format = self.clone();
        let parts = format.call.header.iter_mut().chain(&mut format.call.trailer).filter_map(|part| match part {
            Part::Marker(marker) => Some(marker),
            Part::Text(_) | Part::Name(_) => None,
        });
        let reasoning = format.reasoning.iter_mut().flat_map(|r| [&mut r.begin, &mut r.end]);
        let section = format.section.iter_mut().flat_map(|s| [&mut s.begin, &mut s.end]);
        let call = [&mut format.call.begin].into_iter().chain(&mut format.call.end);
        parts.chain(reasoning).chain(section).chain(call).for_each(|marker| marker.bind(vocab));
        format
    }
}

fn part_text<'a>(pointer: &'static str, part: &'a Part) -> Option<(&'static str, &'a str)> {
    match part {
        Part::Text(text) => Some((pointer, text)),
        Part::Marker(marker) => Some((pointer, marker.text())),
        Part::Name(_) => None,
    }
}
