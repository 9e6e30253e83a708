//! Parses expressions: alternatives of sequences of items.

use super::super::ast::{Node, NodeKind, Spanned};
use super::super::token::TokenKind;
use super::{Parsed, Parser};
use crate::front::diagnostic::Diagnostic;

impl<'t> Parser<'t, '_> {
    /// Parses alternatives. Further ones may begin on a new line. In a group, line ends are white
    /// space.
    pub(super) fn alternatives(&mut self, in_group: bool) -> Parsed<Node<'t>> {
        let start = self.span().start;
        let mut list = vec![self.alternative(in_group)?];
        loop {
            if in_group || self.bar_follows() {
                self.newlines();
            }
            if !self.eat('|') {
                break;
            }
            list.push(self.alternative(in_group)?);
        }
        let span = self.since(start);
        Ok(Node::of_list(list, NodeKind::Alt, span))
    }

    /// Whether the next line begins with `|`.
    pub(super) fn bar_follows(&self) -> bool {
        let next = self.tokens[self.position..].iter().find(|t| t.kind != TokenKind::Newline);
        next.is_some_and(|t| t.kind == TokenKind::Sign('|'))
    }

    /// Parses an intersection of sequences; in a group, line ends are white space. Drops an alias,
    /// which affects only the shape of parse trees.
    fn alternative(&mut self, in_group: bool) -> Parsed<Node<'t>> {
        let start = self.span().start;
        let mut operands = vec![self.sequence(in_group)?];
        while self.is('&') {
            let is_empty =
                |node: &Node<'_>| matches!(&node.kind, NodeKind::Seq(of) if of.is_empty());
            if operands.last().is_some_and(is_empty) {
                return self.expected("a terminal before `&`");
            }
            self.bump();
            let operand = self.sequence(in_group)?;
            if is_empty(&operand) {
                return self.expected("a terminal after `&`");
            }
            operands.push(operand);
        }
        if *self.kind() == TokenKind::Arrow {
            self.without_effect(self.span(), "an alias");
            self.bump();
            self.name("an alias")?;
        }
        let span = self.since(start);
        Ok(Node::of_list(operands, NodeKind::And, span))
    }

    /// Parses a sequence of items; in a group, over several lines.
    fn sequence(&mut self, in_group: bool) -> Parsed<Node<'t>> {
        let start = self.span().start;
        let mut items = Vec::new();
        loop {
            if in_group {
                self.newlines();
            }
            let Some(item) = self.item()? else { break };
            items.push(item);
        }
        let span = if items.is_empty() { start..start } else { self.since(start) };
        Ok(Node::of_list(items, NodeKind::Seq, span))
    }

    /// Parses an atom with its prefix and postfix operators; `None` where no item begins.
    fn item(&mut self) -> Parsed<Option<Node<'t>>> {
        let start = self.span().start;
        let mut negations = 0usize;
        while self.eat('~') {
            negations += 1;
        }
        let begins = match self.kind() {
            TokenKind::Name(_)
            | TokenKind::Text(..)
            | TokenKind::Regex(..)
            | TokenKind::Special(_)
            | TokenKind::Grammar(_) => true,
            TokenKind::Directive(word) => matches!(*word, "json" | "regex" | "lark"),
            TokenKind::Sign('(' | '[') => true,
            _ => false,
        };
        if !begins {
            return if negations > 0 { self.expected("a terminal after `~`") } else { Ok(None) };
        }
        let mut node = self.atom()?;
        // Two complements cancel each other.
        if negations % 2 == 1 {
            node = Node { kind: NodeKind::Not(Box::new(node)), span: self.since(start) };
        }
        let (min, max) = match self.kind() {
            TokenKind::Sign('?') => (0, Some(1)),
            TokenKind::Sign('*') => (0, None),
            TokenKind::Sign('+') => (1, None),
            TokenKind::Sign('~') => return self.tilde(node, start).map(Some),
            TokenKind::Sign('{') => return self.braces(node, start).map(Some),
            _ => return Ok(Some(node)),
        };
        self.bump();
        self.repeated(node, start, min, max).map(Some)
    }

    /// Makes a repeat, and checks its bounds.
    fn repeated(
        &mut self,
        node: Node<'t>,
        start: usize,
        min: u32,
        max: Option<u32>,
    ) -> Parsed<Node<'t>> {
        let span = self.since(start);
        if max.is_some_and(|max| max < min) {
            return self.fail(Diagnostic::error(span, "the bounds of a repeat are out of order"));
        }
        if matches!(self.kind(), TokenKind::Sign('?' | '*' | '+' | '{')) {
            return self.expected("one operator after an item; put the item into parentheses");
        }
        Ok(Node { kind: NodeKind::Repeat(Box::new(node), min, max), span })
    }

    /// Parses `~n` and `~n..m`.
    fn tilde(&mut self, node: Node<'t>, start: usize) -> Parsed<Node<'t>> {
        // `a ~b` is `a`, then the complement of `b`.
        if !matches!(
            self.tokens.get(self.position + 1).map(|t| &t.kind),
            Some(TokenKind::Number(_))
        ) {
            return Ok(node);
        }
        self.bump();
        let min = self.count()?;
        let mut max = min;
        if *self.kind() == TokenKind::Range {
            self.bump();
            max = self.count()?;
        }
        self.repeated(node, start, min, Some(max))
    }

    /// Parses `{n}`, `{n,}`, `{,m}` and `{n,m}`.
    fn braces(&mut self, node: Node<'t>, start: usize) -> Parsed<Node<'t>> {
        self.bump();
        if matches!(self.kind(), TokenKind::Name(_) | TokenKind::Text(..) | TokenKind::Regex(..)) {
            return self.refuse_template();
        }
        let min = if self.is(',') { 0 } else { self.count()? };
        let mut max = Some(min);
        if self.eat(',') {
            max = if self.is('}') { None } else { Some(self.count()?) };
        }
        self.sign('}', "`}`")?;
        self.repeated(node, start, min, max)
    }

    /// Parses an atom within the limit on nesting.
    pub(super) fn atom(&mut self) -> Parsed<Node<'t>> {
        if self.depth >= self.limits.depth {
            let message = format!("nested deeper than {}", self.limits.depth);
            return self.fail(Diagnostic::error(self.span(), message));
        }
        self.depth += 1;
        let node = self.atom_inner();
        self.depth -= 1;
        node
    }

    /// Parses an atom, whose first token can begin one.
    fn atom_inner(&mut self) -> Parsed<Node<'t>> {
        let start = self.span().start;
        let first = self.kind().clone();
        self.bump();
        let kind = match first {
            TokenKind::Name(_) if *self.kind() == TokenKind::Parameter => {
                return self.refuse_parameters();
            }
            TokenKind::Name(name) => NodeKind::Name(name),
            TokenKind::Text(text, fold) if *self.kind() == TokenKind::Range => {
                return self.range(start, text, fold);
            }
            TokenKind::Text(text, fold) => NodeKind::Text(text, fold),
            TokenKind::Regex(pattern, flags) => NodeKind::Regex(pattern, flags),
            TokenKind::Special(token) => NodeKind::Special(token),
            TokenKind::Grammar(name) => NodeKind::Grammar(name),
            TokenKind::Directive(word @ ("json" | "regex")) => {
                let TokenKind::Json(value) = *self.kind() else {
                    return self.expected("a JSON object");
                };
                let json = Spanned { value, span: self.span() };
                self.bump();
                if word == "json" { NodeKind::Json(json) } else { NodeKind::Substring(json) }
            }
            TokenKind::Directive("lark") => {
                self.sign('{', "`{`")?;
                let file = self.file(true);
                self.sign('}', "`}`")?;
                NodeKind::Lark(Box::new(file))
            }
            TokenKind::Sign(open @ ('(' | '[')) => return self.group(open, start),
            _ => return self.expected("an item"),
        };
        Ok(Node { kind, span: self.since(start) })
    }

    /// Parses the rest of a range of characters, after its lower bound. `fold`: the bound is
    /// followed by the flag that ignores case.
    fn range(&mut self, start: usize, low: String, fold: bool) -> Parsed<Node<'t>> {
        self.bump();
        let TokenKind::Text(high, folds) = self.kind().clone() else {
            return self.expected("a string of one character");
        };
        self.bump();
        let span = self.since(start);
        let single_char = |text: &str| {
            let mut chars = text.chars();
            chars.next().filter(|_| chars.next().is_none())
        };
        match (single_char(&low), single_char(&high)) {
            (Some(low), Some(high)) if low <= high && !fold && !folds => {
                Ok(Node { kind: NodeKind::Range(low, high), span })
            }
            (Some(low), Some(high)) if low > high => {
                self.fail(Diagnostic::error(span, "the bounds of a range are out of order"))
            }
            _ => self.fail(Diagnostic::error(
                span,
                "the bounds of a range are single characters, without flags",
            )),
        }
    }

    /// Parses what follows an opening parenthesis, or a bracket around an optional expression. Line
    /// ends inside are ignored.
    fn group(&mut self, open: char, start: usize) -> Parsed<Node<'t>> {
        let body = self.alternatives(true)?;
        match open {
            '(' => self.sign(')', "`)`")?,
            _ => self.sign(']', "`]`")?,
        }
        let span = self.since(start);
        Ok(match open {
            // A node of its own, so that `a (b | c)` and `(a & b) c` keep their structure.
            '(' => Node { kind: body.kind, span },
            _ => Node { kind: NodeKind::Repeat(Box::new(body), 0, Some(1)), span },
        })
    }
}
