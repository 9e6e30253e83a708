//! Rules and expressions, by recursive descent. A rule that cannot be read is reported and left out; reading goes on at
//! the next one.

use std::ops::Range;

use super::ast::{Kind, Name, Node, Regex, RuleDef, Span};
use super::cursor::{Bytes, Cursor, Reported, TERMINALS, byte_set, join};
use super::{Dialect, EbnfOptions};
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::front::regex::{Classes, Dot, LookAround, RegexOptions};
use crate::hash::HashMap;
use crate::ir::{Attributes, SpecialToken};
use crate::limits::Limits;

/// Deepest nesting that is read by recursion, whatever the limits say.
const MAX_DEPTH: usize = 300;

pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) states: usize,
    pub(super) depth: usize,
    max_depth: usize,
    nodes: usize,
    max_nodes: usize,
    /// Names of rules that could not be read: references to them are no errors.
    broken: Vec<String>,
}

/// What was read.
pub(super) struct Text {
    pub(super) rules: Vec<RuleDef>,
    /// Names of rules that could not be read.
    pub(super) broken: Vec<String>,
    pub(super) diagnostics: Diagnostics,
}

/// The rules of a text, and what is wrong with it. Cost: linear.
pub(super) fn parse(text: &str, options: &EbnfOptions, limits: &Limits) -> Text {
    let cursor = Cursor::new(text, options.dialect, Diagnostics::new(&options.name, text));
    let mut parser = Parser {
        cursor,
        states: limits.automaton_states,
        depth: 0,
        max_depth: limits.depth.min(MAX_DEPTH),
        nodes: 0,
        max_nodes: limits.nodes,
        broken: Vec::new(),
    };
    let mut rules: Vec<RuleDef> = Vec::new();
    let mut heads: HashMap<String, usize> = HashMap::default();
    loop {
        let begin = parser.cursor.at;
        match parser.rule() {
            Ok(Some(rule)) => match heads.get(&rule.name.text) {
                Some(&first) if options.dialect == Dialect::Kbnf => {
                    parser.alternative(&mut rules, first, rule)
                }
                _ => {
                    heads.entry(rule.name.text.clone()).or_insert(rules.len());
                    rules.push(rule);
                }
            },
            Ok(None) => break,
            Err(Reported) if parser.nodes > parser.max_nodes => break,
            Err(Reported) => {
                // The rule may have ended where the next one begins.
                if !(parser.cursor.fresh && parser.cursor.at > begin && parser.cursor.is_head()) {
                    parser.cursor.recover();
                }
            }
        }
        parser.depth = 0;
    }
    Text { rules, broken: parser.broken, diagnostics: parser.cursor.diagnostics }
}

impl Parser<'_> {
    /// The next rule; `None` at the end of the text.
    fn rule(&mut self) -> Result<Option<RuleDef>, Reported> {
        self.cursor.skip()?;
        while self.cursor.eat(";") {
            self.cursor.skip()?;
        }
        if self.cursor.peek().is_none() {
            return Ok(None);
        }
        let begin = self.cursor.at;
        let Some(name) = self.cursor.name()? else {
            return self.cursor.expected(match self.cursor.dialect {
                Dialect::Kbnf => "a rule: `name ::= ...;`; comments are `(* ... *)`",
                _ => "a rule: `name ::= ...`",
            });
        };
        self.broken.push(name.text.clone());
        self.skip_in_head()?;
        let mut options =
            if self.cursor.eat("[") { self.rule_options()? } else { Default::default() };
        self.skip_in_head()?;
        if !self.cursor.eat("::=") {
            self.cursor.at = begin;
            if self.cursor.is_foreign_head() {
                let span = name.span;
                return self.cursor.error(
                    Diagnostic::error(span, "a rule of another notation")
                        .help("rules are written `name ::= ...`"),
                );
            }
            self.cursor.at = name.span.end;
            self.cursor.skip_blanks();
            return self.cursor.expected("`::=`");
        }
        if options.own_capture {
            options.attributes.capture = Some(name.text.clone());
        }
        let body = self.alternatives()?;
        let body = self.hint(body)?;
        self.cursor.skip()?;
        if !self.cursor.eat(";") && !self.at_end() {
            return self.stray();
        }
        self.broken.pop();
        Ok(Some(RuleDef {
            name,
            attributes: options.attributes,
            lazy: options.lazy,
            start: options.start,
            body,
        }))
    }

    /// Skips blanks within the head of a rule. In KBNF, where rules end with `;`, it may have
    /// several lines.
    fn skip_in_head(&mut self) -> Result<(), Reported> {
        if self.cursor.dialect == Dialect::Kbnf {
            return self.cursor.skip();
        }
        self.cursor.skip_blanks();
        Ok(())
    }

    /// In KBNF, a further rule of a name has more alternatives of the first one.
    fn alternative(&mut self, rules: &mut [RuleDef], first: usize, rule: RuleDef) {
        if rule.attributes != Attributes::default() || rule.lazy.is_some() || rule.start.is_some() {
            let message = format!("options of `{}` behind its first definition", rule.name.text);
            let first = rules[first].name.span.clone();
            self.cursor.diagnostics.push(
                Diagnostic::error(rule.name.span, message)
                    .related(first, "options stand here, and hold for all of them"),
            );
            return;
        }
        let body = &mut rules[first].body;
        if !matches!(body.kind, Kind::Alt(_)) {
            let one = Node {
                kind: std::mem::replace(&mut body.kind, Kind::Empty),
                span: body.span.clone(),
            };
            body.kind = Kind::Alt(vec![one]);
        }
        if let Kind::Alt(parts) = &mut body.kind {
            parts.push(rule.body);
        }
    }

    /// Whether the rule has ended: so has the text, or another rule begins.
    fn at_end(&self) -> bool {
        self.cursor.peek().is_none() || self.cursor.fresh && self.cursor.is_head()
    }

    /// Something that fits nowhere follows an expression.
    fn stray<T>(&mut self) -> Result<T, Reported> {
        let at = self.cursor.at;
        if self.cursor.rest().starts_with("::=") {
            return self.cursor.error(
                Diagnostic::error(at..at + 3, "a rule begins in the middle of a line")
                    .help("begin it in a line of its own"),
            );
        }
        match self.cursor.peek() {
            Some(')') => self.cursor.error(Diagnostic::error(at..at + 1, "a `)` without its `(`")),
            Some(']') => self.cursor.error(Diagnostic::error(at..at + 1, "a `]` without its `[`")),
            Some('*' | '+' | '?' | '{') => self.cursor.error(
                Diagnostic::error(at..at + 1, "nothing to repeat")
                    .help("a repetition stands behind what it repeats, and only one: `(\"a\"+)?`"),
            ),
            Some(c @ ('=' | ':')) => self.cursor.error(
                Diagnostic::error(at..at + 1, format!("unexpected `{c}`"))
                    .help("rules are written `name ::= ...`"),
            ),
            Some('/') => self.cursor.error(
                Diagnostic::error(at..at + 1, "unexpected `/`")
                    .help("a regular expression is written `Regex(\"...\")`, a comment `# ...`"),
            ),
            Some(',') => self.cursor.error(Diagnostic::error(at..at + 1, "unexpected `,`").help(
                "expressions follow each other without a comma; the dialect `kbnf` reads one",
            )),
            Some('-') => self.cursor.error(Diagnostic::error(
                at..at + 1,
                "a difference of two expressions is not supported",
            )),
            _ => self.cursor.expected("an expression"),
        }
    }

    /// A look-ahead at the end of a rule says something about what follows, which the grammar says already: it is read and
    /// left out.
    fn hint(&mut self, body: Node) -> Result<Node, Reported> {
        self.cursor.skip()?;
        if self.cursor.eat("(=") {
            self.alternatives()?;
            self.cursor.skip()?;
            if !self.cursor.eat(")") {
                return self.cursor.expected("`)`");
            }
        }
        Ok(body)
    }

    pub(super) fn node(&mut self, kind: Kind, span: Span) -> Result<Node, Reported> {
        self.nodes += 1;
        if self.nodes > self.max_nodes {
            let limit = self.max_nodes;
            return self.cursor.error(Diagnostic::error(
                span,
                format!("the grammar has more than {limit} expressions"),
            ));
        }
        Ok(Node { kind, span })
    }

    /// One level deeper, for what stands at `at`.
    pub(super) fn deeper(&mut self, at: usize) -> Result<(), Reported> {
        self.depth += 1;
        if self.depth > self.max_depth {
            let message = format!("nested more than {} deep", self.max_depth);
            return self.cursor.error(Diagnostic::error(at..at, message));
        }
        Ok(())
    }

    /// `a | b | c`.
    pub(super) fn alternatives(&mut self) -> Result<Node, Reported> {
        let begin = self.cursor.at;
        self.deeper(begin)?;
        let mut parts = vec![self.sequence()?];
        self.cursor.skip()?;
        while !self.at_end() && self.cursor.eat("|") {
            parts.push(self.sequence()?);
            self.cursor.skip()?;
        }
        self.depth -= 1;
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let span = begin..parts[parts.len() - 1].span.end;
        self.node(Kind::Alt(parts), span)
    }

    /// `a b c`; nothing at all is the empty string.
    fn sequence(&mut self) -> Result<Node, Reported> {
        self.cursor.skip()?;
        let begin = self.cursor.at;
        let mut parts: Vec<Node> = Vec::new();
        let mut comma = false;
        loop {
            self.cursor.skip()?;
            if !comma && (self.at_end() || self.cursor.rest().starts_with("(=")) {
                break;
            }
            match self.atom()? {
                Some(atom) => parts.push(self.repeated(atom)?),
                None if comma => return self.cursor.expected("an expression behind the comma"),
                None => break,
            }
            comma = false;
            if self.cursor.dialect == Dialect::Kbnf {
                self.cursor.skip()?;
                comma = self.cursor.eat(",");
            }
        }
        match parts.len() {
            0 => self.node(Kind::Empty, begin..begin),
            1 => Ok(parts.remove(0)),
            _ => {
                let span = join(&parts[0].span, &parts[parts.len() - 1].span);
                self.node(Kind::Seq(parts), span)
            }
        }
    }

    /// What follows an atom: `?`, `*`, `+`, `{n}`, `{n,}`, `{n,m}`, `{,m}`.
    fn repeated(&mut self, mut body: Node) -> Result<Node, Reported> {
        let (mut times, depth) = (0, self.depth);
        loop {
            self.cursor.skip_blanks();
            let begin = self.cursor.at;
            let (min, max) = match self.cursor.peek() {
                Some('?') => (0, Some(1)),
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('{') if self.cursor.dialect != Dialect::Kbnf => (0, None),
                _ => {
                    self.depth = depth;
                    return Ok(body);
                }
            };
            times += 1;
            if times > 1 && self.cursor.dialect != Dialect::Gbnf {
                return self.cursor.error(
                    Diagnostic::error(begin..begin + 1, "a repetition of a repetition")
                        .help("if it is meant, write parentheses: `(\"a\"+)?`"),
                );
            }
            let (min, max) = if self.cursor.eat("{") { self.counts(begin)? } else { (min, max) };
            if self.cursor.at == begin {
                self.cursor.next();
            }
            self.deeper(begin)?;
            let span = body.span.start..self.cursor.at;
            body = self.node(Kind::Repeat { body: Box::new(body), min, max }, span)?;
        }
    }

    /// The inside of `{...}` behind a repeated expression.
    fn counts(&mut self, begin: usize) -> Result<(u32, Option<u32>), Reported> {
        self.cursor.skip()?;
        let min =
            if self.cursor.rest().starts_with(',') { None } else { Some(self.cursor.number()?) };
        self.cursor.skip()?;
        let max = if self.cursor.eat(",") {
            self.cursor.skip()?;
            if self.cursor.rest().starts_with('}') { None } else { Some(self.cursor.number()?) }
        } else {
            min
        };
        self.cursor.skip()?;
        if !self.cursor.eat("}") {
            return self.cursor.expected("`}`");
        }
        let at = self.cursor.at;
        match (min, max) {
            (None, None) => self.cursor.error(Diagnostic::error(begin..at, "no count at all")),
            (Some(min), Some(max)) if min > max => {
                self.cursor.error(Diagnostic::error(begin..at, "counts out of order"))
            }
            (min, max) => Ok((min.unwrap_or(0), max)),
        }
    }

    /// One expression that is not a list; `None` where none begins.
    pub(super) fn atom(&mut self) -> Result<Option<Node>, Reported> {
        let begin = self.cursor.at;
        let Some(c) = self.cursor.peek() else { return Ok(None) };
        let kind = match c {
            '"' | '\'' => {
                self.cursor.next();
                Kind::Bytes(self.cursor.quoted(c, begin, Bytes::Text)?)
            }
            '[' if self.cursor.dialect == Dialect::Kbnf => return self.bracketed(']', 1).map(Some),
            '{' if self.cursor.dialect == Dialect::Kbnf => {
                return self.bracketed('}', u32::MAX).map(Some);
            }
            '[' => {
                self.cursor.next();
                let (ranges, negated) = self.cursor.class(begin, Bytes::Text)?;
                Kind::Class { ranges, negated }
            }
            '(' => {
                self.cursor.next();
                let inner = self.alternatives()?;
                self.close(')', begin)?;
                return Ok(Some(Node { kind: inner.kind, span: begin..self.cursor.at }));
            }
            '@' => self.at_sign(begin)?,
            '<' => Kind::Token(self.token()?),
            '!' => {
                self.cursor.next();
                if self.cursor.peek() != Some('<') {
                    return self.cursor.expected("a token, as in `!<think>`");
                }
                Kind::Token(SpecialToken::AnyBut(vec![self.token()?]))
            }
            '#' => self.terminal()?,
            '.' if self.cursor.dialect != Dialect::Xgrammar => {
                self.cursor.next();
                Kind::Any
            }
            _ => match self.cursor.name()? {
                Some(name) => self.named(name)?,
                None if c == '.' => {
                    self.cursor.next();
                    Kind::Any
                }
                None => return Ok(None),
            },
        };
        self.node(kind, begin..self.cursor.at).map(Some)
    }

    /// The end of what was opened at `begin`.
    pub(super) fn close(&mut self, sign: char, begin: usize) -> Result<(), Reported> {
        self.cursor.skip()?;
        if self.cursor.peek() == Some(sign) && !(self.cursor.fresh && self.cursor.is_head()) {
            self.cursor.next();
            return Ok(());
        }
        if !self.at_end() {
            return self.stray();
        }
        let message = format!("a `{}` without end", &self.cursor.text[begin..begin + 1]);
        let label = format!("expected `{sign}` before the rule ends");
        self.cursor.error(Diagnostic::error(begin..begin + 1, message).label(label))
    }

    /// `[a]` is at most one of `a`, `{a}` any number.
    fn bracketed(&mut self, end: char, max: u32) -> Result<Node, Reported> {
        let begin = self.cursor.at;
        self.cursor.next();
        let body = Box::new(self.alternatives()?);
        self.close(end, begin)?;
        let max = (max == 1).then_some(1);
        self.node(Kind::Repeat { body, min: 0, max }, begin..self.cursor.at)
    }

    /// `@"bytes"`, `@[bytes]`, `@grammar`.
    fn at_sign(&mut self, begin: usize) -> Result<Kind, Reported> {
        self.cursor.next();
        if self.cursor.eat("\"") {
            return Ok(Kind::Bytes(self.cursor.quoted('"', begin, Bytes::Raw)?));
        }
        if self.cursor.eat("[") {
            let (ranges, negated) = self.cursor.class(begin, Bytes::Raw)?;
            return Ok(Kind::ByteClass(byte_set(&ranges, negated)));
        }
        match self.cursor.name()? {
            Some(name) => Ok(Kind::Import(name.text)),
            None => self.cursor.expected("a string or a class of bytes, or the name of a grammar"),
        }
    }

    /// `<text>` is the token with just this text, `<[id]>` the token with this id.
    pub(super) fn token(&mut self) -> Result<SpecialToken, Reported> {
        let begin = self.cursor.at;
        let inside = self.cursor.rest().split(['\n', '>']).next().unwrap_or_default();
        let end = begin + inside.len();
        if !self.cursor.text[end..].starts_with('>') || inside.len() < 2 {
            return self.cursor.error(
                Diagnostic::error(begin..end, "a token without end")
                    .label("expected `<text>` or `<[id]>` in one line"),
            );
        }
        self.cursor.at = end + 1;
        self.cursor.fresh = false;
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

    /// A terminal of KBNF: `#"regex"`, `#e"regex that stops as early as it can"`,
    /// `#ex"regex that matches nowhere"`, `#substrs"text"`, between quotes of either kind.
    pub(super) fn terminal(&mut self) -> Result<Kind, Reported> {
        let begin = self.cursor.at;
        self.cursor.next();
        let kind = TERMINALS.into_iter().find(|kind| self.cursor.eat(kind)).unwrap_or_default();
        let open = self.cursor.at;
        let Some(quote @ ('"' | '\'')) = self.cursor.peek() else {
            let known = "`#\"regex\"`, `#e\"...\"`, `#ex\"...\"` or `#substrs\"...\"`";
            return self.cursor.expected(&format!("a terminal: {known}; comments are `(* ... *)`"));
        };
        self.cursor.next();
        if kind == "substrs" {
            let bytes = self.cursor.quoted(quote, open, Bytes::Text)?;
            let text = String::from_utf8(bytes).unwrap_or_default();
            return Ok(Kind::Substring(text.chars().map(|c| c.to_string().into_bytes()).collect()));
        }
        let pattern = String::from_utf8(self.cursor.quoted(quote, begin, Bytes::Pattern)?)
            .unwrap_or_default();
        let verbatim = self.cursor.text[open + 1..self.cursor.at - 1] == *pattern;
        let options = RegexOptions {
            classes: Classes::Unicode,
            dot: Dot::NoLineFeed,
            look_around: LookAround::Refused,
            ..RegexOptions::default()
        };
        let verbatim = verbatim.then_some(open + 1);
        let regex = Regex { pattern, verbatim, options, json_string: false, lazy: kind == "e" };
        let regex = Kind::Regex(Box::new(regex));
        if kind != "ex" {
            return Ok(regex);
        }
        let excluded = self.node(regex, begin..self.cursor.at)?;
        Ok(Kind::Except { excluded: Box::new(excluded), max: None })
    }

    /// A reference, a macro, `any!` or `except!(...)`.
    fn named(&mut self, name: Name) -> Result<Kind, Reported> {
        let quoted = self.cursor.text[name.span.clone()].starts_with('`');
        if !quoted && self.cursor.rest().starts_with('!') && !self.cursor.rest().starts_with("!<") {
            return self.bang(&name);
        }
        let rest = self.cursor.rest().trim_start_matches([' ', '\t']);
        if !quoted
            && rest.starts_with('(')
            && !rest.starts_with("(=")
            && super::macros::is_macro(&name.text)
        {
            self.cursor.skip_blanks();
            return self.call(&name);
        }
        Ok(Kind::Ref(name.text))
    }

    fn bang(&mut self, name: &Name) -> Result<Kind, Reported> {
        match &*name.text {
            "any" => {
                self.cursor.next();
                Ok(Kind::Any)
            }
            "except" => {
                self.cursor.next();
                if !self.cursor.rest().starts_with('(') {
                    return self.cursor.expected("`(`");
                }
                self.except(name)
            }
            _ => {
                let span: Range<usize> = name.span.start..name.span.end + 1;
                let message = format!("there is no terminal `{}!`", name.text);
                self.cursor.error(
                    Diagnostic::error(span, message).help("there are `any!` and `except!(...)`"),
                )
            }
        }
    }
}
