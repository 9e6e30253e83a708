//! Options of a regular expression: scope, look-around, classes, case, dot.

use serde::{Deserialize, Serialize};

use crate::setters::with_methods;

/// The part of a text that a pattern describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// The whole text must match.
    #[default]
    Match,
    /// The text must contain a match; `^` and `$` are the ends of the text.
    Search,
}

/// Whether look-ahead and word boundaries are allowed. They examine the text around a position, up
/// to the ends of the pattern's own text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LookAround {
    /// Allowed.
    #[default]
    Allowed,
    /// Rejected: the pattern is a terminal of a grammar, surrounded by text that is not its own.
    Refused,
}

/// Meaning of `\d`, `\w` and `\s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Classes {
    /// As in ECMA-262: `\d` and `\w` are ASCII, `\s` is all Unicode white space and the byte order
    /// mark.
    #[default]
    Ecma,
    /// All three are ASCII.
    Ascii,
    /// All three are Unicode: decimal numbers; letters, marks, numbers and connectors; white space.
    Unicode,
}

/// Case sensitivity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Case {
    /// Upper and lower case differ.
    #[default]
    Sensitive,
    /// Case is ignored, by Unicode's simple folding: `k` also matches the Kelvin sign. As a leading
    /// `(?i)`.
    Insensitive,
}

/// Code points that `.` does not match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dot {
    /// The four line terminators of ECMA-262: LF, CR, U+2028, U+2029.
    #[default]
    NoLineTerminators,
    /// LF only, as in most other engines.
    NoLineFeed,
    /// None: `.` matches any code point. As a leading `(?s)`.
    Any,
}

/// Meaning of what Rust's or Python's engine reads otherwise than ECMA-262: `&&`, `--`, `~~` and a
/// class in a class, `[]` and `[^]` where a further `]` follows, `\<` and `\>` outside of classes,
/// and a whole pattern between slashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ambiguous {
    /// Rejected.
    #[default]
    Refused,
    /// Characters, as in ECMA-262.
    Literal,
}

/// Options of a regular expression. docs/REGEX.md has the syntax, which is the same for all
/// options. The default is a match of the whole text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RegexOptions {
    /// The part of a text that the pattern describes.
    pub scope: Scope,
    /// Whether look-ahead and word boundaries are allowed.
    pub look_around: LookAround,
    /// Meaning of `\d`, `\w` and `\s`.
    pub classes: Classes,
    /// Case sensitivity.
    pub case: Case,
    /// Code points that `.` does not match.
    pub dot: Dot,
    /// Meaning of what other engines read otherwise.
    pub ambiguous: Ambiguous,
}

with_methods!(RegexOptions {
    with_scope: scope = Scope,
    with_look_around: look_around = LookAround,
    with_classes: classes = Classes,
    with_case: case = Case,
    with_dot: dot = Dot,
    with_ambiguous: ambiguous = Ambiguous,
});

impl RegexOptions {
    /// Options of JSON Schema's `pattern`: a search, with the classes of ECMA-262.
    pub const ECMA: RegexOptions = RegexOptions {
        scope: Scope::Search,
        look_around: LookAround::Allowed,
        classes: Classes::Ecma,
        case: Case::Sensitive,
        dot: Dot::NoLineTerminators,
        ambiguous: Ambiguous::Literal,
    };
}
