//! What a model family writes on the wire, as data. Read from TOML; the only place that knows a family's markers.

use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

use crate::builtin::BuiltinFormat;
use crate::marker::{Glue, Marker, NameStyle, Part, Settle};
use crate::messages::MessagesFormat;
use crate::spelling::CallSpelling;

/// Most bytes of white space where a format leaves it open.
pub const MAX_GAP: u32 = 40;

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
    /// What the family's models are known to write instead of the template's spelling of calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spellings: Vec<CallSpelling>,
    /// Calls of the model's own tools, in families that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<BuiltinFormat>,
    /// What encloses text and calls, in families that write something there. Turns without it are accepted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameFormat>,
    /// What ends every turn before its stop token, in families that write something there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// In families whose turn is a row of messages: what stands between and beside them. Each of reasoning, text and
    /// call is then a message of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesFormat>,
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
    /// Opens it, in families that mark it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Marker>,
    /// Closes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
}

/// What encloses text and calls behind the reasoning block: `begin REST end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameFormat {
    /// Opens it.
    pub begin: Marker,
    /// Closes it.
    pub end: Marker,
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
    /// Who writes `begin`.
    #[serde(default)]
    pub opened_by: Opener,
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

/// Who opens the reasoning block when it is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opener {
    /// The model: the turn begins with the marker.
    #[default]
    Model,
    /// The chat template: the prompt ends with the marker and the turn begins inside.
    Template,
}

/// What encloses all calls of a turn: `before begin lead CALLS trail end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionFormat {
    /// What stands between text and the section. A turn of calls alone may begin with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// Opens the section.
    pub begin: Marker,
    /// Behind `begin`.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub lead: Glue,
    /// Behind the last call.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub trail: Glue,
    /// Closes the section, in families that mark it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
}

/// One call: `begin header ARGUMENTS trailer end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFormat {
    /// Opens a call. Without a section, reading it in free text is what starts a call; with one it may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Marker>,
    /// From `begin` to the arguments; names the tool exactly once.
    pub header: Vec<Part>,
    /// Other headers that are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Part>>,
    /// How arguments are written.
    pub arguments: ArgumentStyle,
    /// From the arguments to `end`.
    #[serde(default)]
    pub trailer: Vec<Part>,
    /// Closes the call, in families that mark it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// What stands between two calls, and (without a section) between text and a call.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub separator: Glue,
    /// How many calls a turn may have.
    pub parallel: ParallelPolicy,
    /// Where a call's id comes from.
    #[serde(default)]
    pub id: WireId,
}

/// Where a call's id comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireId {
    /// It is made up.
    #[default]
    Made,
    /// It is the header's id.
    Id,
    /// It is the header from its first part to its id.
    Header,
}

/// How arguments are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentStyle {
    /// One JSON object.
    Json,
    /// As Python's keyword arguments: `a=1, b='x', c=[True, None]`.
    Keywords,
    /// An object whose strings stand as they are between two of these markers, and whose names stand bare:
    /// `{a:1,b:<q>x<q>}`.
    Delimited(Marker),
    /// Each argument between tags of its own.
    Tagged(Box<TaggedStyle>),
}

/// Arguments between tags: `before (ARGUMENT (between ARGUMENT)*)? behind`, an argument being `open lead VALUE trail
/// close`. Strings stand as they are up to `close`; other values are JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaggedStyle {
    /// From an argument's beginning to its value; names it exactly once, as its second part.
    pub open: Vec<TagPart>,
    /// What the family's template writes before a value. Generation may differ; extraction strips it where present.
    #[serde(default)]
    pub lead: String,
    /// As `lead`, behind a value.
    #[serde(default)]
    pub trail: String,
    /// Ends a value. No string that stands as it is contains it; within other values, which are JSON, a string may.
    pub close: Marker,
    /// Before the first argument.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub before: Glue,
    /// Between two arguments.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub between: Glue,
    /// Behind the last argument; accepted where there is none, but not written.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub behind: Glue,
    /// What a string never contains, beside the markers of calls and of other arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// A piece of an argument's beginning: a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TagPart {
    /// Text.
    Text(String),
    /// The argument's name.
    Key(KeyPart),
    /// A word for the value's type.
    Kind(KindPart),
    /// White space, as in [`Part::Gap`].
    Gap(crate::marker::GapPart),
    /// A delimiter that may be a special token.
    Marker(Marker),
}

/// The place of an argument's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyPart {
    /// How the name is written.
    pub key: NameStyle,
}

/// The place of a word for the value's type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindPart {
    /// The words.
    pub kind: KindWords,
}

/// What each JSON type is called. A string always has a word of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindWords {
    /// Strings.
    pub string: String,
    /// Numbers.
    pub number: String,
    /// `true` and `false`.
    pub boolean: String,
    /// `null`.
    pub null: String,
    /// Arrays.
    pub array: String,
    /// Objects.
    pub object: String,
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub template: Vec<String>,
    /// The chat template contains none of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// The tokenizer has all of these special or added tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<String>,
    /// The configuration's `model_type` is one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_type: Vec<String>,
    /// One of the configuration's `architectures` is one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
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
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
}

impl WireFormat {
    /// Reads and checks a description. Cost: linear.
    pub fn from_toml(text: &str) -> Result<WireFormat, FormatError> {
        let format: WireFormat = toml::from_str(text)?;
        format.check()?;
        Ok(format)
    }

    /// As [`WireFormat::from_toml`], from a file.
    pub fn from_file(path: &std::path::Path) -> Result<WireFormat, FormatError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| FormatError::File { path: path.display().to_string(), error })?;
        WireFormat::from_toml(&text)
    }

    /// Settles [`Marker::Either`] for a vocabulary: text alone where the vocabulary has no such special token. Do this
    /// before lowering for an engine; a grammar that names a token the vocabulary lacks does not compile against it.
    pub fn bind(&self, vocab: &Vocabulary) -> WireFormat {
        self.settled(Settle::For(vocab))
    }

    /// With every marker as text, special tokens too: for checking texts without a vocabulary. Text that spells a
    /// marker cannot be told from the marker then.
    pub fn spelled(&self) -> WireFormat {
        self.settled(Settle::Spelled)
    }

    fn settled(&self, how: Settle<'_>) -> WireFormat {
        let mut format = self.clone();
        let call = &mut format.call;
        let headers =
            call.header.iter_mut().chain(call.also.iter_mut().flatten()).chain(&mut call.trailer);
        headers.for_each(|part| part.bind(how));
        call.separator.bind(how);
        call.begin.iter_mut().chain(&mut call.end).for_each(|marker| marker.bind(how));
        call.arguments.bind(how);
        format.builtin.iter_mut().for_each(|builtin| builtin.bind(how));
        format.spellings.iter_mut().for_each(|spelling| spelling.bind(how));
        for marker in format.frame.iter_mut().flat_map(|f| [&mut f.begin, &mut f.end]) {
            marker.bind(how);
        }
        for marker in format.reasoning.iter_mut().flat_map(|r| [&mut r.begin, &mut r.end]) {
            marker.bind(how);
        }
        if let Some(section) = &mut format.section {
            section.begin.bind(how);
            section.end.iter_mut().for_each(|marker| marker.bind(how));
            section.lead.bind(how);
            section.trail.bind(how);
        }
        let rest = format.text.begin.iter_mut().chain(&mut format.text.end).chain(&mut format.end);
        rest.for_each(|marker| marker.bind(how));
        format.messages.iter_mut().for_each(|messages| messages.bind(how));
        format
    }
}

impl ArgumentStyle {
    pub(crate) fn bind(&mut self, how: Settle<'_>) {
        match self {
            ArgumentStyle::Json | ArgumentStyle::Keywords => {}
            ArgumentStyle::Delimited(marker) => marker.bind(how),
            ArgumentStyle::Tagged(style) => style.bind(how),
        }
    }
}

impl TaggedStyle {
    fn bind(&mut self, how: Settle<'_>) {
        self.close.bind(how);
        for glue in [&mut self.before, &mut self.between, &mut self.behind] {
            glue.bind(how);
        }
        for part in &mut self.open {
            if let TagPart::Marker(marker) = part {
                marker.bind(how);
            }
        }
    }
}
