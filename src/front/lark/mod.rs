//! Lark front end: lowers grammars in the Lark dialect that llguidance documents. Rules have
//! lower-case names, terminals upper-case ones.
//!
//! ```text
//! start: "[" [item ("," item)*] "]"      // rules: strings, terminals, ? * + ~2..4 {2,4} ( ) [ ] |
//! item: NAME | <|image|> | %json {"type": "integer"} | @other
//! NAME: /[a-z]+/i & ~"if"                // terminals: regular, without rules
//! quote[capture, suffix="\""]: /.*/      // ends at the first quote
//! %import common.WS
//! %ignore WS                             // allowed after every terminal
//! ```
//!
//! There is no lexer. A terminal is a regular language, and a parse follows all readings of a text
//! at once. Terminal priorities therefore have no meaning and are errors.
//!
//! Differences from a plain context-free grammar:
//! * `lazy`, `suffix=` and `stop=` make a rule a single shortest match. With a budget
//!   (`max_tokens`, `max_chars`), the match is cut where the budget is spent, without its marker.
//! * The marker of `stop=` is read by what follows the rule if nothing else can follow, and by the
//!   rule otherwise.
//! * Free text next to such rules does not read past the end of a shortest match. In
//!   `(tool | other)* rest`, where tools begin with any text up to a marker and `rest` is any text,
//!   a marker always begins a tool. Where all markers are fixed texts, this becomes a tag dispatch.
//! * Flag `i` affects ASCII letters only; `\d`, `\w`, `\s` are ASCII; `.` is any code point except
//!   a line feed. `~A` is any byte string that `A` does not match, invalid UTF-8 included.
//!
//! Errors, with their position: templates and parameters, priorities, `%declare`, `%override`,
//! `%extend`, imports from other libraries than `common`, look-around and word boundaries, flags
//! `l`, `m` and `x` after a regular expression, operations on classes, `stop=""`, recursive
//! terminals, attributes given twice.

mod ast;
mod common;
mod escapes;
mod lazy;
mod lower;
mod names;
mod parse;
mod pattern;
mod session;
mod stop;
mod substring;
mod terminal;
mod token;

use std::collections::BTreeMap;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::json_schema::SchemaOptions;
use super::{LoweredGrammar, within_fuel};
use crate::ir::Grammar;
use crate::limits::Limits;
use crate::setters::with_methods;

/// Options of the Lark front end.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LarkOptions {
    /// The grammars that `@name` refers to.
    pub named: BTreeMap<String, NamedGrammar>,
    /// Options of the schemas inside `%json`. Always strict, regardless of the policy.
    pub schema: SchemaOptions,
}

with_methods!(LarkOptions {
    with_named: named = BTreeMap<String, NamedGrammar>,
    with_schema: schema = SchemaOptions,
});

/// A grammar to which others refer by name.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedGrammar {
    /// A Lark text, which may refer to further named grammars and to itself.
    Lark(String),
    /// A lowered grammar.
    Grammar(Grammar),
}

/// Lowers a Lark text to a grammar that begins at the rule `start`.
///
/// All errors are reported at once; those of a named grammar at the first reference to it. Cost:
/// close to linear, except for `&`, `~` and lazy rules, which need automata.
///
/// ```
/// use louver::front::lark;
/// use louver::{LarkOptions, Limits};
///
/// let lower = |text| lark::lower(text, &LarkOptions::default(), &Limits::default());
/// let lowered = lower("start: item (\",\" item)*\nitem: /[a-z]+/\n").expect("a grammar");
/// assert!(lowered.warnings.is_empty());
/// assert!(lower("start: itm\n").is_err());
/// ```
pub fn lower(
    text: &str,
    options: &LarkOptions,
    limits: &Limits,
) -> Result<LoweredGrammar, Diagnostics> {
    let mut diagnostics = Diagnostics::new("grammar", text);
    if text.len() > limits.source_bytes {
        diagnostics.push(Diagnostic::error(
            0..0,
            format!("the text is longer than {} bytes", limits.source_bytes),
        ));
        return Err(diagnostics);
    }
    within_fuel(text, limits, || {
        let tokens = token::tokenize(text, &mut diagnostics);
        let file = parse::parse(&tokens, &mut diagnostics, limits);
        session::Session::new(diagnostics, options, limits).run(&file)
    })
}

#[cfg(test)]
mod tests;
