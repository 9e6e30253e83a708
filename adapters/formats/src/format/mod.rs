//! Wire formats: what the models of a family write, as data that is read from TOML. No other code
//! knows a family's markers.

mod builtin;
mod call_syntax;
mod catalog;
mod check;
mod marker;
mod messages;
mod spelling;
mod suffix;

pub use self::builtin::BuiltinFormat;
pub(crate) use self::call_syntax::{CallSyntax, fixed_prefix};
pub use self::catalog::{Catalog, DetectError, Detected, ModelHints, UnknownFormat};
pub(crate) use self::marker::{Atom, escape_json, unique};
pub use self::marker::{Glue, IdStyle, Marker, NameStyle, Part, Step};
pub use self::messages::MessagesFormat;
pub use self::spelling::CallSpelling;

use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

use self::marker::{Binding, markers_in};

/// The most bytes of white space that the grammar accepts in a gap.
pub const MAX_GAP: u32 = 40;

/// The wire format of one model family: the source of the grammar, the extractor and the renderer.
// Many fields: a description file, with its members as they are written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// Free text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFormat {
    /// Where it may stand.
    pub place: TextPlace,
    /// Texts that it never contains. The begin markers of calls need not be listed: they begin a
    /// call, or are excluded where no call may begin.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// Opens it, if the family marks it.
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
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub lead: Glue,
    /// After the last call.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub trail: Glue,
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
    /// The extractor makes it up.
    #[default]
    Made,
    /// The header's id part.
    Id,
    /// The header, from its first part to its id part.
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
    /// The same, but `true`, `false` and `null` may stand for Python's words. The renderer writes
    /// these, as the chat templates do.
    JsonKeywords,
    /// A JSON object, but with strings unescaped between two of these markers and with bare names:
    /// `{a:1,b:<q>x<q>}`.
    Delimited(Marker),
    /// Each argument between tags of its own.
    Tagged(Box<TaggedStyle>),
    /// Each argument, and each value in it, between tags that have its name.
    Nested(Box<NestedTags>),
}

/// Values between tags that have their names: `mark <NAME> VALUE mark </NAME>`. The value of an
/// object is its members and that of an array its elements, written in the same way. Strings are
/// unescaped, up to `mark`; other values are JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NestedTags {
    /// Before every tag. An unescaped string does not contain it.
    pub mark: Marker,
    /// The name of the elements of arrays.
    pub item: String,
}

/// Arguments between tags: `before (ARGUMENT (between ARGUMENT)*)? after`, where an argument is
/// `open lead VALUE trail close`. Strings are unescaped, up to `close`; other values are JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaggedStyle {
    /// From an argument's beginning to its value. The second part is the argument's name.
    pub open: Vec<TagPart>,
    /// What the chat template writes before a value. The model need not; the extractor strips it.
    #[serde(default)]
    pub lead: String,
    /// As `lead`, after a value.
    #[serde(default)]
    pub trail: String,
    /// Ends a value. An unescaped string does not contain it; strings in JSON values may.
    pub close: Marker,
    /// Before the first argument.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub before: Glue,
    /// Between two arguments.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub between: Glue,
    /// After the last argument. Without arguments it is accepted, but not written.
    #[serde(default, skip_serializing_if = "Glue::is_empty")]
    pub after: Glue,
    /// Texts that an unescaped string never contains, beside the markers of calls and arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Values that are accepted as Python prints them, too, as chat templates do. The renderer
    /// writes JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PythonLiterals>,
    /// Quotes between which a string may stand as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quotes: Option<StringQuotes>,
}

/// Values between tags that may be Python literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PythonLiterals {
    /// `True`, `False` and `None` for `true`, `false` and `null`. Where a string may stand, they
    /// are strings.
    Words,
    /// The same, and arrays and objects: `{'a': [True, None]}`.
    Values,
}

/// Texts around a string between tags, as XML's `<![CDATA[` and `]]>`. An unescaped string without
/// them does not begin as one with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StringQuotes {
    /// Before the string.
    pub begin: String,
    /// After the string, which does not contain it.
    pub end: String,
    /// The renderer writes the quotes around strings that contain one of these.
    pub around: Vec<String>,
}

/// A part of an argument's opening tag. In TOML, a string is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum TagPart {
    /// Text.
    Text(String),
    /// The argument's name.
    Key {
        /// How the name is written.
        key: NameStyle,
    },
    /// The word for the value's JSON type.
    Kind {
        /// The words.
        kind: KindWords,
    },
    /// White space, as in [`Part::Gap`].
    Gap {
        /// The white space that the renderer writes.
        gap: String,
    },
    /// A delimiter that may be a special token.
    Marker(Marker),
}

/// The word for each JSON type. No other type has the word of strings.
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

/// A rule that recognises a family. It holds if all of its parts do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectRule {
    /// The chat template contains all of these. Its escapes `\n` and `\"` are decoded first.
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
    /// Not TOML, or not the fields of a wire format. The message has line and column.
    #[error("not a wire format: {0}")]
    Parse(#[from] toml::de::Error),
    /// The fields of a wire format, with a value that is not allowed.
    #[error("wire format `{format}`: {pointer}: {what}")]
    Invalid {
        /// The format's name.
        format: String,
        /// JSON pointer of the field.
        pointer: String,
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
    /// A format of output that is only text or an answer, for prompts without a chat template: text
    /// excludes nothing, and there are neither reasoning nor calls. Requests that offer tools need
    /// a family's format.
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
                separator: Glue::default(),
                parallel: ParallelPolicy::One,
                id: WireId::Made,
            },
            spellings: Vec::new(),
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
        format.check()?;
        Ok(format)
    }

    /// As [`WireFormat::from_toml`], from a file.
    pub fn from_file(path: &std::path::Path) -> Result<WireFormat, FormatError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| FormatError::File { path: path.display().to_string(), error })?;
        WireFormat::from_toml(&text)
    }

    /// Replaces each [`Marker::Either`] by what the vocabulary has: the special token, else text.
    /// A suffix of the markers becomes the vocabulary's.
    /// Bind a format before you lower it for an engine: a grammar with a special token that the
    /// vocabulary lacks does not compile.
    pub fn bind(&self, vocab: &Vocabulary) -> WireFormat {
        self.with_suffix_of(vocab).bound(Binding::Vocabulary(vocab))
    }

    /// Replaces every marker by text, special tokens included, to check texts without a vocabulary.
    /// Text that equals a marker is then taken for the marker.
    pub fn spelled(&self) -> WireFormat {
        self.bound(Binding::Text)
    }

    /// The texts of special tokens in markers: those that the format needs, and those that it takes
    /// where a vocabulary has them.
    pub fn tokens(&self) -> (Vec<String>, Vec<String>) {
        let (mut needed, mut possible) = (Vec::new(), Vec::new());
        for (_, marker) in self.clone().markers_mut() {
            marker.add_tokens(&mut needed, &mut possible);
        }
        (needed, possible)
    }

    fn bound(&self, to: Binding<'_>) -> WireFormat {
        let mut format = self.clone();
        format.markers_mut().into_iter().for_each(|(_, marker)| marker.bind(to));
        format
    }

    /// Every marker of the description, with the JSON pointer of its field.
    pub(crate) fn markers_mut(&mut self) -> Vec<(String, &mut Marker)> {
        let mut out = MarkerList::default();
        if let Some(reasoning) = &mut self.reasoning {
            out.add("/reasoning/begin", [&mut reasoning.begin]);
            out.add("/reasoning/end", [&mut reasoning.end]);
            out.add("/reasoning/skipped", &mut reasoning.skipped);
        }
        out.add("/text/begin", &mut self.text.begin);
        out.add("/text/end", &mut self.text.end);
        if let Some(frame) = &mut self.frame {
            out.add("/frame/begin", [&mut frame.begin]);
            out.add("/frame/end", [&mut frame.end]);
        }
        out.add("/end", &mut self.end);
        if let Some(section) = &mut self.section {
            out.add("/section/begin", [&mut section.begin]);
            out.add("/section/lead", section.lead.markers_mut());
            out.add("/section/trail", section.trail.markers_mut());
            out.add("/section/end", &mut section.end);
        }
        if let Some(messages) = &mut self.messages {
            out.add("/messages/separator", [&mut messages.separator]);
            out.add("/messages/continued_end", &mut messages.continued_end);
            if let Some(block) = &mut messages.preamble {
                out.add("/messages/preamble/begin", [&mut block.begin]);
                out.add("/messages/preamble/end", [&mut block.end]);
            }
        }
        let call = &mut self.call;
        out.add("/call/begin", &mut call.begin);
        out.add("/call/end", &mut call.end);
        out.add("/call/separator", call.separator.markers_mut());
        out.add_call("/call", &mut call.header, &mut call.also, &mut call.trailer);
        out.add_arguments("/call", &mut call.arguments);
        if let Some(builtin) = &mut self.builtin {
            out.add("/builtin/begin", &mut builtin.begin);
            out.add("/builtin/end", &mut builtin.end);
            out.add_call("/builtin", &mut builtin.header, &mut builtin.also, &mut builtin.trailer);
            out.add_arguments("/builtin", &mut builtin.arguments);
        }
        for spelling in &mut self.spellings {
            out.add("/spellings/begin", [&mut spelling.begin]);
            out.add("/spellings/end", &mut spelling.end);
            if let Some(separator) = &mut spelling.separator {
                out.add("/spellings/separator", separator.markers_mut());
            }
            out.add_call("/spellings", &mut spelling.header, &mut [], &mut spelling.trailer);
            if let Some(style) = &mut spelling.arguments {
                out.add_arguments("/spellings", style);
            }
        }
        out.0
    }

    /// The marker that opens calls, or the section of calls.
    pub fn calls_begin(&self) -> Option<&Marker> {
        self.section.as_ref().map(|section| &section.begin).or(self.call.begin.as_ref())
    }

    /// The marker that closes the section of calls, or a call.
    pub fn calls_end(&self) -> Option<&Marker> {
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

/// Markers with the JSON pointers of their fields.
#[derive(Default)]
struct MarkerList<'a>(Vec<(String, &'a mut Marker)>);

impl<'a> MarkerList<'a> {
    fn add(&mut self, pointer: &str, markers: impl IntoIterator<Item = &'a mut Marker>) {
        self.0.extend(markers.into_iter().map(|marker| (pointer.to_owned(), marker)));
    }

    fn add_call(
        &mut self,
        pointer: &str,
        header: &'a mut [Part],
        also: &'a mut [Vec<Part>],
        trailer: &'a mut [Part],
    ) {
        self.add(&format!("{pointer}/header"), markers_in(header));
        for header in also {
            self.add(&format!("{pointer}/also"), markers_in(header));
        }
        self.add(&format!("{pointer}/trailer"), markers_in(trailer));
    }

    fn add_arguments(&mut self, pointer: &str, style: &'a mut ArgumentStyle) {
        match style {
            ArgumentStyle::Json | ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {}
            ArgumentStyle::Delimited(marker) => {
                self.add(&format!("{pointer}/arguments/delimited"), [marker]);
            }
            ArgumentStyle::Nested(tags) => {
                self.add(&format!("{pointer}/arguments/nested/mark"), [&mut tags.mark]);
            }
            ArgumentStyle::Tagged(style) => {
                let pointer = format!("{pointer}/arguments/tagged");
                self.add(&format!("{pointer}/close"), [&mut style.close]);
                self.add(&format!("{pointer}/before"), style.before.markers_mut());
                self.add(&format!("{pointer}/between"), style.between.markers_mut());
                self.add(&format!("{pointer}/after"), style.after.markers_mut());
                let open = style.open.iter_mut().filter_map(|part| match part {
                    TagPart::Marker(marker) => Some(marker),
                    _ => None,
                });
                self.add(&format!("{pointer}/open"), open);
            }
        }
    }
}
