//! How a pattern is read.

use serde::{Deserialize, Serialize};

/// What of a text a pattern is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole text matches.
    #[default]
    Match,
    /// The text contains a match; `^` and `$` are its ends.
    Search,
}

/// Whether look-ahead and word boundaries are read. They look at the text around a place, up to the
/// ends of the pattern's own text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookAround {
    /// They are.
    #[default]
    Allowed,
    /// They are refused: the pattern is a terminal of a grammar, and text that is not its own
    /// stands around it.
    Refused,
}

/// What `\d`, `\w` and `\s` stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Classes {
    /// As in ECMA-262: `\d` and `\w` are ASCII, `\s` is all of Unicode's white space and the byte order mark.
    #[default]
    Ecma,
    /// All ASCII.
    Ascii,
    /// All Unicode: decimal numbers; letters, marks, numbers and connectors; white space.
    Unicode,
}

/// Whether upper and lower case are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// They are.
    #[default]
    Sensitive,
    /// They are not, by Unicode's simple folding: `k` is also the Kelvin sign. As `(?i)` in front.
    Insensitive,
}

/// What `.` leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dot {
    /// The four line terminators of ECMA-262: LF, CR, U+2028, U+2029.
    #[default]
    NoLineTerminators,
    /// Only LF, as most other engines do.
    NoLineFeed,
    /// Nothing. As `(?s)` in front.
    Any,
}

/// How a pattern is read; docs/REGEX.md has the syntax, which is one for all. The default is a
/// whole match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegexOptions {
    /// What of the text the pattern is about.
    pub scope: Scope,
    /// Whether look-ahead and word boundaries are read.
    pub look_around: LookAround,
    /// What `\d`, `\w` and `\s` stand for.
    pub classes: Classes,
    /// Whether upper and lower case are told apart.
    pub case: Case,
    /// What `.` leaves out.
    pub dot: Dot,
}

impl RegexOptions {
    /// As JSON Schema's `pattern` is read: searched for, with the classes of ECMA-262.
    pub const ECMA: RegexOptions = RegexOptions {
        scope: Scope::Search,
        look_around: LookAround::Allowed,
        classes: Classes::Ecma,
        case: Case::Sensitive,
        dot: Dot::NoLineTerminators,
    };
}
