//! EBNF front end: lowers grammars in EBNF notation.
//!
//! One language contains GBNF (llama.cpp), the EBNF of xgrammar, the terminals of KBNF, and the
//! form in which grammars are printed. docs/EBNF.md is the reference.
//!
//! ```text
//! root  ::= "[" item ("," item)* "]"     # a rule; it ends where the next one begins
//! item  ::= number | string
//! number[capture="n"] ::= "-"? [0-9]{1,18}
//! string ::= "\"" [^"\\\x00-\x1f]* "\""
//! ```
//!
//! `parse` and `macros` parse the characters of `cursor` to the syntax tree of `ast`. `lower`
//! resolves names and makes the grammar, `warn` checks it. All errors of a text are reported at
//! once.

mod arguments;
mod ast;
mod cursor;
mod foreign;
mod lower;
mod macros;
mod parse;
mod rule_options;
mod terminals;
mod warn;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::diagnostic::{Diagnostic, Diagnostics};
use super::{LoweredGrammar, within_fuel};
use crate::ir::Grammar;
use crate::limits::Limits;
use crate::setters::with_methods;

/// The notation that decides where notations contradict each other. All other syntax is available
/// in every dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EbnfDialect {
    /// For most grammars in use and for printed grammars. Names may contain dots. A `#` begins a
    /// comment; followed by a quote it is an error, as `\x` with more than two digits is. `.` is
    /// any character.
    #[default]
    Common,
    /// llama.cpp: `\x` takes two digits, names have no dots, every `#` begins a comment, strings
    /// may span lines, and repetitions may follow each other.
    Gbnf,
    /// xgrammar: as [`EbnfDialect::Common`], but every `#` begins a comment, `\x` takes all
    /// hexadecimal digits that follow, and names may begin and end with dots. A single dot is a
    /// name if a rule has that name.
    Xgrammar,
    /// KBNF: as [`EbnfDialect::Common`], but a `#` begins a terminal (`#"regex"`, `#e`, `#ex`,
    /// `#substrs`), and commas concatenate. Rules of one name are alternatives, `\x` takes two
    /// digits, and strings may span lines. `[a]` is an optional and `{a}` a repeated expression.
    Kbnf,
}

/// Options of the EBNF front end.
///
/// ```
/// use louver::EbnfOptions;
/// use louver::front::ebnf::EbnfDialect;
///
/// let options = EbnfOptions::default().with_root("list").with_dialect(EbnfDialect::Gbnf);
/// assert_eq!(options.root, "list");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EbnfOptions {
    /// The start rule, unless a rule has the option `start`.
    pub root: String,
    /// The notation that decides where notations contradict each other.
    pub dialect: EbnfDialect,
    /// The name of the text in messages.
    pub name: String,
    /// Grammars to which the text may refer as `@name`.
    pub grammars: BTreeMap<String, Arc<Grammar>>,
}

impl Default for EbnfOptions {
    fn default() -> Self {
        EbnfOptions {
            root: "root".to_owned(),
            dialect: EbnfDialect::default(),
            name: "grammar".to_owned(),
            grammars: BTreeMap::new(),
        }
    }
}

with_methods!(EbnfOptions {
    with_root: root = impl Into<String>,
    with_dialect: dialect = EbnfDialect,
    with_name: name = impl Into<String>,
    with_grammars: grammars = BTreeMap<String, Arc<Grammar>>,
});

/// Lowers an EBNF text to a grammar.
///
/// Returns all errors of the text, or the grammar with warnings. Cost: linear in the text, except
/// for constructs that need an automaton (`lazy`, `#e`, `#ex`, `except!`), which
/// [`Limits::automaton_states`] bounds.
///
/// ```
/// use louver::front::ebnf;
/// use louver::{EbnfOptions, Limits};
///
/// let lower = |text| ebnf::lower(text, &EbnfOptions::default(), &Limits::default());
/// let lowered = lower("root ::= item (\",\" item)*\nitem ::= [a-z]+\n").expect("a grammar");
/// assert!(lowered.warnings.is_empty());
/// let errors = lower("root ::= itm\nitem ::= [a-z]+\n").unwrap_err();
/// // Line and column of the undefined name.
/// assert_eq!(errors.place(errors.list()[0].span.start), (1, 10));
/// ```
pub fn lower(
    text: &str,
    options: &EbnfOptions,
    limits: &Limits,
) -> Result<LoweredGrammar, Diagnostics> {
    if text.len() > limits.source_bytes {
        let mut diagnostics = Diagnostics::new(&options.name, "");
        let message =
            format!("the text has {} bytes; at most {} are read", text.len(), limits.source_bytes);
        diagnostics.push(Diagnostic::error(0..0, message));
        return Err(diagnostics);
    }
    within_fuel(text, limits, || lower::lower(parse::parse(text, options, limits), options, limits))
}
