//! Parses terminals that begin with a sign: bytes, tokens, and the terminals of KBNF.

use super::ast::{Name, RegexNode, SyntaxKind};
use super::cursor::{EscapeMode, KBNF_TERMINALS, Reported, byte_set};
use super::parse::Parser;
use crate::front::diagnostic::Diagnostic;
use crate::front::regex::{Classes, Dot, LookAround, RegexOptions};
use crate::ir::SpecialToken;

impl Parser<'_> {
    /// Parses `@"bytes"`, `@[bytes]` or `@grammar`.
    pub(super) fn at_sign(&mut self, begin: usize) -> Result<SyntaxKind, Reported> {
        self.cursor.next();
        if self.cursor.eat("\"") {
            return Ok(SyntaxKind::Bytes(self.cursor.quoted('"', begin, EscapeMode::Raw)?));
        }
        if self.cursor.eat("[") {
            let (ranges, negated) = self.cursor.class(begin, EscapeMode::Raw)?;
            return Ok(SyntaxKind::ByteClass(byte_set(&ranges, negated)));
        }
        match self.cursor.name()? {
            Some(name) => Ok(SyntaxKind::Import(name.text)),
            None => self.cursor.expected("a string or a class of bytes, or the name of a grammar"),
        }
    }

    /// Parses a token: `<text>` by its text, `<[id]>` by its id.
    pub(super) fn token(&mut self) -> Result<SpecialToken, Reported> {
        let begin = self.cursor.offset;
        let inside = self.cursor.rest().split(['\n', '>']).next().unwrap_or_default();
        let end = begin + inside.len();
        if !self.cursor.text[end..].starts_with('>') || inside.len() < 2 {
            return self.cursor.error(
                Diagnostic::error(begin..end, "a token without end")
                    .label("expected `<text>` or `<[id]>` in one line"),
            );
        }
        self.cursor.offset = end + 1;
        self.cursor.at_line_start = false;
        let id = inside.strip_prefix("<[").and_then(|inside| inside.strip_suffix(']'));
        match id {
            None => Ok(SpecialToken::Name(self.cursor.text[begin..=end].to_owned())),
            Some(id) => match id.trim().parse() {
                Ok(id) => Ok(SpecialToken::Id(id)),
                Err(_) => self.cursor.error(
                    Diagnostic::error(begin + 2..end - 1, "no token id").label("expected a number"),
                ),
            },
        }
    }

    /// Parses a terminal of KBNF, with quotes of either kind: `#"regex"`, `#e"shortest match"`,
    /// `#ex"excluded regex"`, `#substrs"text"`.
    pub(super) fn terminal(&mut self) -> Result<SyntaxKind, Reported> {
        let begin = self.cursor.offset;
        self.cursor.next();
        let kind =
            KBNF_TERMINALS.into_iter().find(|kind| self.cursor.eat(kind)).unwrap_or_default();
        let open = self.cursor.offset;
        let Some(quote @ ('"' | '\'')) = self.cursor.peek() else {
            let terminals = "`#\"regex\"`, `#e\"...\"`, `#ex\"...\"` or `#substrs\"...\"`";
            return self
                .cursor
                .expected(&format!("a terminal: {terminals}; comments are `(* ... *)`"));
        };
        self.cursor.next();
        if kind == "substrs" {
            let bytes = self.cursor.quoted(quote, open, EscapeMode::Text)?;
            let text = String::from_utf8(bytes).unwrap_or_default();
            return Ok(SyntaxKind::Substring(
                text.chars().map(|c| c.to_string().into_bytes()).collect(),
            ));
        }
        let pattern = String::from_utf8(self.cursor.quoted(quote, begin, EscapeMode::Pattern)?)
            .unwrap_or_default();
        let verbatim = self.cursor.text[open + 1..self.cursor.offset - 1] == *pattern;
        let options = RegexOptions {
            classes: Classes::Unicode,
            dot: Dot::NoLineFeed,
            look_around: LookAround::Refused,
            ..RegexOptions::default()
        };
        let verbatim = verbatim.then_some(open + 1);
        let regex = RegexNode { pattern, verbatim, options, json_string: false, lazy: kind == "e" };
        let regex = SyntaxKind::Regex(Box::new(regex));
        if kind != "ex" {
            return Ok(regex);
        }
        let excluded = self.node(regex, begin..self.cursor.offset)?;
        Ok(SyntaxKind::Except { excluded: Box::new(excluded), max: None })
    }

    /// Parses the rest of `any!` or `except!(...)`.
    pub(super) fn bang_terminal(&mut self, name: &Name) -> Result<SyntaxKind, Reported> {
        match &*name.text {
            "any" => {
                self.cursor.next();
                let at = self.cursor.offset;
                if self.cursor.rest().starts_with('(') {
                    return self.cursor.error(
                        Diagnostic::error(at..at + 1, "`any!` has no arguments")
                            .help("a space separates it from a group: `any! (...)`"),
                    );
                }
                Ok(SyntaxKind::Any)
            }
            "except" => {
                self.cursor.next();
                if !self.cursor.rest().starts_with('(') {
                    return self.cursor.expected("`(`");
                }
                self.except(name)
            }
            _ => {
                let span = name.span.start..name.span.end + 1;
                let message = format!("there is no terminal `{}!`", name.text);
                self.cursor.error(
                    Diagnostic::error(span, message).help("there are `any!` and `except!(...)`"),
                )
            }
        }
    }
}
