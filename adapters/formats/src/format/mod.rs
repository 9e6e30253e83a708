//! Wire formats: what the models of a family write, as data that is read from TOML. No other code
//! knows a family's markers.

mod argument_style;
mod binding;
mod builtin;
mod call_syntax;
mod catalog;
mod check;
mod detection;
mod json_objects;
mod marker;
mod messages;
mod part;
mod spelling;
mod suffix;

pub use self::argument_style::{
    ArgumentStyle, KindWords, NestedTags, PythonLiterals, StringQuotes, TagPart, TaggedStyle,
};
pub use self::builtin::BuiltinFormat;
pub(crate) use self::call_syntax::{CallSyntax, fixed_prefix};
pub use self::catalog::Catalog;
pub use self::detection::{DetectError, DetectRule, Detected, ModelHints};
pub(crate) use self::marker::{Atom, unique};
pub use self::marker::{Marker, MarkerPart};
pub use self::messages::{MessagesFormat, PreambleFormat};
pub(crate) use self::part::escape_json;
pub use self::part::{FixedParts, IdStyle, NameStyle, Part};
pub use self::spelling::CallSpelling;

use louver::front::diagnostic::similar;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

/// The most bytes of white space that the grammar accepts in a gap.
pub const MAX_GAP: u32 = 40;

/// The wire format of one model family: the source of the grammar, the extractor and the renderer.
// Many fields: a description file, with its members as they are written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WireFormat {
    /// The name by which users choose it.
    pub name: String,
    /// The models that write it, for people.
    pub title: String,
    /// The documents and templates that the description was taken from.
    pub sources: Vec<String>,
    /// Special tokens that end a turn, by text. Those that a vocabulary lacks are ignored.
    pub stop_tokens: Vec<String>,
    /// A part of the format's texts that each checkpoint chooses, as the description has it:
    /// `:opensource` in `<think:opensource>`. [`WireFormat::bind`] replaces it by the one with
    /// which the vocabulary has the markers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// Free text.
    pub text: TextFormat,
    /// The reasoning block, if the family has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningFormat>,
    /// The section that encloses all calls of a turn, if the family has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<SectionFormat>,
    /// Calls, as the chat template writes them.
    pub call: CallFormat,
    /// Other spellings of calls that the family's models are known to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spellings: Vec<CallSpelling>,
    /// Whether a JSON object in free text with the name of an offered tool and arguments is a call.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub json_objects: bool,
    /// Calls of built-in tools, if the family has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<BuiltinFormat>,
    /// The markers around text and calls, if the family writes any. Turns without them are
    /// accepted, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Delimiters>,
    /// The marker that ends every turn, before the stop token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// The messages of a turn, if turns are sequences of messages: reasoning, text and each call
    /// are then messages of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesFormat>,
    /// Rules that recognise a model of this family. One that holds is enough.
    #[serde(default)]
    pub detect: Vec<DetectRule>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_yes(value: &bool) -> bool {
    *value
}

/// Free text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TextFormat {
    /// Where it may stand.
    pub place: TextPlace,
    /// Texts that it never contains. The begin markers of calls need not be listed: they begin a
    /// call, or are excluded where no call may begin.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// Opens it, if the family marks it. Text that stands before calls is always written then, if
    /// only as its markers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Marker>,
    /// Closes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
}

/// A pair of markers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delimiters {
    /// Opens.
    pub begin: Marker,
    /// Closes.
    pub end: Marker,
}

/// The place of free text in a turn whose calls are not forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextPlace {
    /// Before, between and after calls.
    Anywhere,
    /// Before the first call only.
    BeforeCalls,
    /// A turn is either text or calls.
    InsteadOfCalls,
}

/// The reasoning block: `begin lead TEXT trail end after`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasoningFormat {
    /// Whether the model or the chat template writes `begin`.
    #[serde(default)]
    pub opened_by: Opener,
    /// Opens the block.
    pub begin: Marker,
    /// What the chat template writes after `begin`. The model need not; the extractor strips it.
    #[serde(default)]
    pub lead: String,
    /// As `lead`, before `end`.
    #[serde(default)]
    pub trail: String,
    /// Closes the block.
    pub end: Marker,
    /// Between the block and the rest of the turn. The model always writes it.
    #[serde(default)]
    pub after: String,
    /// Texts that reasoning never contains.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// What a turn without the block may begin with. The renderer does not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Marker>,
}

/// What opens the reasoning block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opener {
    /// The model: a turn with reasoning begins with the marker.
    #[default]
    Model,
    /// The chat template: the prompt ends with the marker, and the turn begins inside the block.
    Template,
}

/// The section of all calls of a turn: `before begin lead CALLS trail end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionFormat {
    /// Between text and the section. A turn without text may begin with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// Opens the section.
    pub begin: Marker,
    /// After `begin`.
    #[serde(default, skip_serializing_if = "FixedParts::is_empty")]
    pub lead: FixedParts,
    /// After the last call.
    #[serde(default, skip_serializing_if = "FixedParts::is_empty")]
    pub trail: FixedParts,
    /// Closes the section, if the family marks its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
}

/// One call: `begin header ARGUMENTS trailer end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFormat {
    /// Opens a call. In formats without a section, it starts a call in free text; with one, it may
    /// be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Marker>,
    /// From `begin` to the arguments. Names the tool.
    pub header: Vec<Part>,
    /// Other headers that are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Part>>,
    /// How arguments are written.
    pub arguments: ArgumentStyle,
    /// From the arguments to `end`.
    #[serde(default)]
    pub trailer: Vec<Part>,
    /// Closes the call, if the family marks its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// Between two calls, and in formats without a section between text and a call.
    #[serde(default, skip_serializing_if = "FixedParts::is_empty")]
    pub separator: FixedParts,
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
    /// The extractor makes it up.
    #[default]
    Made,
    /// The header's id part.
    Id,
    /// The header, from its first part to its id part.
    Header,
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

/// No format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no wire format is called `{name}`; {}", self.known_names())]
#[non_exhaustive]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
    /// The names of the catalog.
    pub known: Vec<String>,
}

impl UnknownFormat {
    /// The nearest name, if one is similar; otherwise all.
    fn known_names(&self) -> String {
        match similar(&self.name, self.known.iter().map(String::as_str), 0) {
            Some(nearest) => format!("the nearest name is `{nearest}`"),
            None => format!("known: {}", self.known.join(", ")),
        }
    }
}

/// Why a description is not a wire format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Not TOML, or not the fields of a wire format. The message has line and column.
    #[error("not a wire format: {0}")]
    Parse(#[from] toml::de::Error),
    /// The fields of a wire format, with a value that is not allowed.
    #[error("wire format `{format}`{}: {pointer}: {what}", line_prefix(*line))]
    Invalid {
        /// The format's name.
        format: String,
        /// Its line in the TOML text, counted from 1; that of the table where the field is
        /// missing.
        line: Option<usize>,
        /// JSON pointer of the field.
        pointer: String,
        /// What is wrong.
        what: &'static str,
    },
    /// No format has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownFormat),
    /// The file cannot be read, or is not a wire format.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: FormatFileError,
    },
}

fn line_prefix(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

/// The line of a field in a TOML text, counted from 1; that of the table where the field is
/// missing.
fn line_of(text: &str, pointer: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut names = pointer.split('/').skip(1);
    let (key, mut value) = document.get_ref().get_key_value(names.next()?)?;
    let mut at = key.span().start;
    for name in names {
        let inner = match value.get_ref() {
            DeValue::Table(table) => table.get_key_value(name).map(|(k, v)| (k.span(), v)),
            DeValue::Array(items) => {
                name.parse().ok().and_then(|k: usize| items.get(k)).map(|v| (v.span(), v))
            }
            _ => None,
        };
        let Some((span, found)) = inner else { break };
        (at, value) = (span.start, found);
    }
    Some(text[..at].matches('\n').count() + 1)
}

/// Why the file of a description cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is not a wire format.
    #[error(transparent)]
    Format(Box<FormatError>),
}

impl WireFormat {
    /// A format of output that is only text or a response, for prompts without a chat template:
    /// text excludes nothing, and there are neither reasoning nor calls. Requests that offer tools
    /// need a family's format.
    pub fn plain() -> WireFormat {
        WireFormat {
            name: "plain".to_owned(),
            title: "Text without calls".to_owned(),
            sources: Vec::new(),
            stop_tokens: Vec::new(),
            suffix: None,
            text: TextFormat {
                place: TextPlace::InsteadOfCalls,
                excludes: Vec::new(),
                begin: None,
                end: None,
            },
            reasoning: None,
            section: None,
            call: CallFormat {
                begin: None,
                header: vec![Part::Name { name: NameStyle::Raw }],
                also: Vec::new(),
                arguments: ArgumentStyle::Json,
                trailer: Vec::new(),
                end: None,
                separator: FixedParts::default(),
                parallel: ParallelPolicy::One,
                id: WireId::Made,
            },
            spellings: Vec::new(),
            json_objects: true,
            builtin: None,
            frame: None,
            end: None,
            messages: None,
            detect: Vec::new(),
        }
    }

    /// Reads and checks a description. Cost: linear.
    pub fn from_toml(text: &str) -> Result<WireFormat, FormatError> {
        let format: WireFormat = toml::from_str(text)?;
        match format.check() {
            Err(FormatError::Invalid { format, pointer, what, .. }) => {
                let line = line_of(text, &pointer);
                Err(FormatError::Invalid { format, line, pointer, what })
            }
            checked => checked.map(|()| format),
        }
    }

    /// As [`WireFormat::from_toml`], from a file.
    pub fn from_file(path: &std::path::Path) -> Result<WireFormat, FormatError> {
        let text = std::fs::read_to_string(path).map_err(FormatFileError::from);
        let read = text.and_then(|text| {
            WireFormat::from_toml(&text).map_err(|error| FormatFileError::Format(Box::new(error)))
        });
        read.map_err(|error| FormatError::File { path: path.display().to_string(), error })
    }

    /// The marker that opens calls, or the section of calls.
    pub fn calls_begin_marker(&self) -> Option<&Marker> {
        self.section.as_ref().map(|section| &section.begin).or(self.call.begin.as_ref())
    }

    /// The marker that closes the section of calls, or a call.
    pub fn calls_end_marker(&self) -> Option<&Marker> {
        let section = self.section.as_ref().and_then(|section| section.end.as_ref());
        section.or(self.call.end.as_ref())
    }

    /// What the chat template writes between text and calls.
    pub(crate) fn text_separator(&self) -> String {
        match &self.section {
            Some(section) => section.before.clone(),
            None => self.call.separator.write(),
        }
    }
}
