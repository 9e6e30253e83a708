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

/// What may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Syntax {
    /// ECMA-262 and what other engines agree on beside it: the flags `i` and `s` inside groups, `\a`, `\e`, `\A`, `\z`,
    /// `(?P<name>...)`.
    #[default]
    Extended,
    /// ECMA-262 as JSON Schema's `pattern` has it, without flags.
    Ecma,
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

/// How a pattern is read. The default is a whole match in the extended syntax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegexOptions {
    /// What of the text the pattern is about.
    pub scope: Scope,
    /// What may be written.
    pub syntax: Syntax,
    /// What `\d`, `\w` and `\s` stand for.
    pub classes: Classes,
    /// Whether upper and lower case are told apart.
    pub case: Case,
    /// What `.` leaves out.
    pub dot: Dot,
}

impl RegexOptions {
    /// As JSON Schema's `pattern` is read: ECMA-262, searched for.
    pub const ECMA: RegexOptions = RegexOptions {
        scope: Scope::Search,
        syntax: Syntax::Ecma,
        classes: Classes::Ecma,
        case: Case::Sensitive,
        dot: Dot::NoLineTerminators,
    };
}
