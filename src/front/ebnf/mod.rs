//! Grammars as people write them: EBNF.
//!
//! One language that contains GBNF (llama.cpp), the EBNF of xgrammar and the terminals of KBNF; the form in which grammars
//! are printed is part of it. docs/EBNF.md is the reference.
//!
//! ```text
//! root  ::= "[" item ("," item)* "]"     # a rule; it ends where the next one begins
//! item  ::= number | string
//! number[capture="n"] ::= "-"? [0-9]{1,18}
//! string ::= "\"" [^"\\\x00-\x1f]* "\""
//! ```
//!
//! `ast` is what a text says, `parse` and `macros` read it from the characters of `cursor`, `lower` gives names their
//! meaning, `warn` looks at the result. All errors of a text are reported at once.

mod ast;
mod cursor;
mod lower;
mod macros;
mod parse;
mod warn;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::diagnostic::{Diagnostic, Diagnostics};
use super::{Lowered, within_fuel};
use crate::ir::Grammar;
use crate::limits::Limits;

/// Whose reading counts where the notations contradict each other. Everything else is read in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// What most grammars in use expect, the printed form among them: `\x` takes all hexadecimal digits that follow, as in xgrammar; names may have
    /// dots inside; a `#` begins a comment, unless a quote follows it, which is an error; `.` is
    /// any character.
    #[default]
    Common,
    /// llama.cpp: `\x` takes two digits, names have no dots, every `#` begins a comment, strings may span lines, repetitions may follow
    /// each other.
    Gbnf,
    /// xgrammar: as [`Dialect::Common`], but every `#` begins a comment, and names may begin and end with dots; a dot alone is a name too
    /// where a rule is called so.
    Xgrammar,
    /// KBNF: as [`Dialect::Common`], but a `#` begins a terminal (`#"regex"`, `#e`, `#ex`,
    /// `#substrs`), commas concatenate, rules of one name are alternatives, `\x` takes two digits,
    /// `[a]` is an optional and `{a}` a repeated expression, strings may span lines.
    Kbnf,
}

/// How a grammar is read.
#[derive(Clone, Debug, PartialEq)]
pub struct EbnfOptions {
    /// The rule in which derivations begin, unless a rule has the option `start`.
    pub root: String,
    /// Whose reading counts where notations contradict each other.
    pub dialect: Dialect,
    /// What the text is called in messages.
    pub name: String,
    /// Grammars that the text may name as `@name`.
    pub grammars: BTreeMap<String, Arc<Grammar>>,
}

impl Default for EbnfOptions {
    fn default() -> Self {
        EbnfOptions {
            root: "root".to_owned(),
            dialect: Dialect::default(),
            name: "grammar".to_owned(),
            grammars: BTreeMap::new(),
        }
    }
}

/// Reads a grammar. Errors are all that are wrong with the text; warnings come beside the grammar. Cost: linear in the text, except for
/// what needs an automaton (`lazy`, `#e`, `#ex`, `except!`), which [`Limits::automaton_states`]
/// bounds.
pub fn lower(text: &str, options: &EbnfOptions, limits: &Limits) -> Result<Lowered, Diagnostics> {
    if text.len() > limits.source_bytes {
        let mut diagnostics = Diagnostics::new(&options.name, "");
        let message =
            format!("the text has {} bytes; at most {} are read", text.len(), limits.source_bytes);
        diagnostics.push(Diagnostic::error(0..0, message));
        return Err(diagnostics);
    }
    within_fuel(text, limits, || lower::lower(parse::parse(text, options, limits), options, limits))
}
