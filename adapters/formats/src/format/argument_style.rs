//! Argument styles: how a family writes the arguments of a call.

use serde::{Deserialize, Serialize};

use super::{FixedParts, Marker, NameStyle};

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

impl ArgumentStyle {
    /// Whether arguments have words for the types of their values.
    pub fn has_type_words(&self) -> bool {
        let is_word = |part: &TagPart| matches!(part, TagPart::Kind { .. });
        matches!(self, ArgumentStyle::Tagged(style) if style.open.iter().any(is_word))
    }
}

/// Values between tags that have their names: `mark <NAME> VALUE mark </NAME>`. The value of an
/// object is its members and that of an array its elements, written in the same way. Strings are
/// unescaped, up to `mark`; other values are JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
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
    #[serde(default, skip_serializing_if = "FixedParts::is_empty")]
    pub before: FixedParts,
    /// Between two arguments.
    #[serde(default, skip_serializing_if = "FixedParts::is_empty")]
    pub between: FixedParts,
    /// After the last argument, or after `before`. Without arguments, the renderer leaves out its
    /// gaps.
    #[serde(default, skip_serializing_if = "FixedParts::is_empty")]
    pub after: FixedParts,
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
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected parts: a text, a marker, { key = \"json\", \"xml\" or \"raw\" }, { gap = \
                 \"SPACES\" } or { kind = { string = WORD, number = WORD, boolean = WORD, \
                 null = WORD, array = WORD, object = WORD } }"
)]
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
    /// White space, as in [`Part::Gap`](super::Part::Gap).
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
