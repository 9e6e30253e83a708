//! Lark, in the dialect that llguidance documents: rules in small letters, terminals in capital ones.
//!
//! ```text
//! start: "[" [item ("," item)*] "]"      // rules: strings, terminals, ? * + ~2..4 {2,4} ( ) [ ] |
//! item: NAME | <|image|> | %json {"type": "integer"} | @other
//! NAME: /[a-z]+/i & ~"if"                // terminals: regular, without rules
//! quote[capture, suffix="\""]: /.*/      // ends at the first quote
//! %import common.WS
//! %ignore WS                             // may stand behind every terminal
//! ```
//!
//! There is no lexer: a terminal is a regular language, all ways to read a text are followed at once, and a byte is right if
//! any of them goes on. So priorities have no meaning and are refused.
//!
//! What differs from a grammar without a lexer:
//! * `lazy`, `suffix=` and `stop=` make a rule one match that ends as early as it can. With a budget (`max_tokens`, `max_chars`) it
//!   is cut where the budget is spent, its marker left out.
//! * Free text beside such rules never reads over where one of them ends: in `(tool | other)* rest`, where the tools begin with any text up
//!   to a marker and `rest` is any text, the markers always begin tools. Plain ones become a tag dispatch.
//! * Flag `i` is about ASCII letters; `\d`, `\w`, `\s` are ASCII; `.` is any code point but a line feed. `~A` is any bytes that
//!   `A` does not match, invalid UTF-8 included.
//!
//! Refused, with the place: templates and parameters, priorities, `%declare`, `%override`, `%extend`, imports but of `common`, look-around and word
//! boundaries, flags `l`, `m` and `x` behind a regular expression, `stop=""`, recursive terminals.

mod ast;
mod common;
mod escapes;
mod lazy;
mod lower;
mod parse;
mod pattern;
mod substring;
mod terminal;
mod token;

use std::collections::BTreeMap;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::json_schema::SchemaOptions;
use super::{Lowered, within_fuel};
use crate::ir::Grammar;
use crate::limits::Limits;

/// How a Lark text is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LarkOptions {
    /// What `@name` stands for.
    pub named: BTreeMap<String, NamedGrammar>,
    /// How schemas inside `%json` are lowered.
    pub schema: SchemaOptions,
}

/// A grammar that others refer to by name.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedGrammar {
    /// Lark, which may refer to further ones, itself included.
    Lark(String),
    /// Any grammar.
    Grammar(Grammar),
}

/// The grammar of a Lark text, beginning at its rule `start`. All errors are reported at once; those of a named grammar at the first
/// reference to it. Cost: close to linear, but for `&`, `~` and lazy rules, which need automata.
pub fn lower(text: &str, options: &LarkOptions, limits: &Limits) -> Result<Lowered, Diagnostics> {
    let mut diagnostics = Diagnostics::new("grammar", text);
    if text.len() > limits.source_bytes {
        diagnostics.push(Diagnostic::error(
            0..0,
            format!("the text is longer than {} bytes", limits.source_bytes),
        ));
        return Err(diagnostics);
    }
    within_fuel(text, limits, || {
        let tokens = token::tokens(text, &mut diagnostics);
        let file = parse::parse(&tokens, &mut diagnostics, limits);
        lower::Session::new(diagnostics, options, limits).run(&file)
    })
}

#[cfg(test)]
mod tests;
