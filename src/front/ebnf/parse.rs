//! EBNF parser: parses rules and expressions by recursive descent. A rule with an error is reported
//! and dropped; parsing resumes at the next one.

use super::ast::{ByteSpan, Name, Node, RuleDef, SyntaxKind};
use super::cursor::{Cursor, EscapeMode, Reported, join};
use super::{EbnfDialect, EbnfOptions};
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::fuel;
use crate::hash::HashMap;
use crate::ir::{Attributes, MACROS, MAX_COUNT, SpecialToken};
use crate::limits::Limits;

/// Upper bound of the nesting limit, because the parser is recursive.
const MAX_DEPTH: usize = 300;

/// State of the parser.
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    /// Limit on the states of an automaton or graph.
    pub(super) states: usize,
    /// Current nesting.
    pub(super) depth: usize,
    max_depth: usize,
    /// Number of expressions so far.
    nodes: usize,
    max_nodes: usize,
    /// Names of rules with errors: references to them are not errors.
    broken: Vec<String>,
}

/// A parsed text.
pub(super) struct ParsedText {
    pub(super) rules: Vec<RuleDef>,
    /// Names of rules with errors.
    pub(super) broken: Vec<String>,
    pub(super) diagnostics: Diagnostics,
}

/// Parses the rules of a text. Linear.
pub(super) fn parse(text: &str, options: &EbnfOptions, limits: &Limits) -> ParsedText {
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
    // What has no rule because the work was cancelled is an error; see `within_fuel`.
    while !fuel::is_cancelled() {
        let begin = parser.cursor.offset;
        match parser.rule() {
            Ok(Some(rule)) => match heads.get(&rule.name.text) {
                Some(&first) if options.dialect == EbnfDialect::Kbnf => {
                    parser.append_alternative(&mut rules, first, rule)
                }
                _ => {
                    heads.entry(rule.name.text.clone()).or_insert(rules.len());
                    rules.push(rule);
                }
            },
            Ok(None) => break,
            Err(Reported) if parser.nodes > parser.max_nodes => break,
            Err(Reported) => {
                // The parser may have stopped at the next rule already.
                if !(parser.cursor.at_line_start
                    && parser.cursor.offset > begin
                    && parser.cursor.is_rule_head())
                {
                    parser.cursor.recover();
                }
            }
        }
        parser.depth = 0;
    }
    ParsedText { rules, broken: parser.broken, diagnostics: parser.cursor.diagnostics }
}

impl Parser<'_> {
    /// Parses the next rule; `None` at the end of the text.
    fn rule(&mut self) -> Result<Option<RuleDef>, Reported> {
        self.cursor.skip()?;
        while self.cursor.eat(";") {
            self.cursor.skip()?;
        }
        if self.cursor.peek().is_none() {
            return Ok(None);
        }
        let begin = self.cursor.offset;
        let Some(name) = self.cursor.name()? else {
            self.cursor.check_bracketed_head()?;
            if self.cursor.foreign_sign().is_some() {
                return self.unexpected();
            }
            return self.cursor.expected(match self.cursor.dialect {
                EbnfDialect::Kbnf => "a rule: `name ::= ...;`; comments are `(* ... *)`",
                _ => "a rule: `name ::= ...`",
            });
        };
        self.broken.push(name.text.clone());
        self.skip_in_head()?;
        let mut options =
            if self.cursor.eat("[") { self.rule_options()? } else { Default::default() };
        self.skip_in_head()?;
        if !self.cursor.eat("::=") {
            self.cursor.offset = begin;
            if self.cursor.is_foreign_head() {
                let span = name.span;
                return self.cursor.error(
                    Diagnostic::error(span, "a rule of another notation")
                        .help("rules are written `name ::= ...`"),
                );
            }
            self.cursor.offset = name.span.end;
            self.cursor.skip_blanks();
            return self.cursor.expected("`::=`");
        }
        if options.capture_by_rule_name {
            options.attributes.capture = Some(name.text.clone());
        }
        let body = self.alternatives()?;
        let look_ahead = self.look_ahead()?;
        self.cursor.skip()?;
        if !self.cursor.eat(";") && !self.at_end() {
            return self.unexpected();
        }
        self.broken.pop();
        Ok(Some(RuleDef {
            name,
            attributes: options.attributes,
            lazy: options.lazy,
            start: options.start,
            body,
            look_ahead,
        }))
    }

    /// Skips blanks within a rule head. In KBNF, where rules end with `;`, a head may span lines.
    fn skip_in_head(&mut self) -> Result<(), Reported> {
        if self.cursor.dialect == EbnfDialect::Kbnf {
            return self.cursor.skip();
        }
        self.cursor.skip_blanks();
        Ok(())
    }

    /// Appends a further rule of the same name as an alternative of the first one, as in KBNF.
    fn append_alternative(&mut self, rules: &mut [RuleDef], first: usize, rule: RuleDef) {
        if rule.attributes != Attributes::default() || rule.lazy.is_some() || rule.start.is_some() {
            let message = format!("options of `{}` after its first definition", rule.name.text);
            let first = rules[first].name.span.clone();
            self.cursor.diagnostics.push(
                Diagnostic::error(rule.name.span, message)
                    .related(first, "options stand here, and hold for all of them"),
            );
            return;
        }
        let body = &mut rules[first].body;
        if !matches!(body.kind, SyntaxKind::Alt(_)) {
            let first_alternative = Node {
                kind: std::mem::replace(&mut body.kind, SyntaxKind::Empty),
                span: body.span.clone(),
            };
            body.kind = SyntaxKind::Alt(vec![first_alternative]);
        }
        if let SyntaxKind::Alt(parts) = &mut body.kind {
            parts.push(rule.body);
        }
    }

    /// Whether the rule ends here: at the end of the text, or where another rule begins.
    fn at_end(&self) -> bool {
        self.cursor.peek().is_none() || self.cursor.at_line_start && self.cursor.is_rule_head()
    }

    /// Reports an unexpected character after an expression.
    fn unexpected<T>(&mut self) -> Result<T, Reported> {
        let at = self.cursor.offset;
        self.cursor.check_braces()?;
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
                    .help("a repetition stands after what it repeats, and only one: `(\"a\"+)?`"),
            ),
            Some(c @ ('=' | ':')) => self.cursor.error(
                Diagnostic::error(at..at + 1, format!("unexpected `{c}`"))
                    .help("rules are written `name ::= ...`"),
            ),
            Some('-') => self.cursor.error(Diagnostic::error(
                at..at + 1,
                "a difference of two expressions is not supported",
            )),
            _ => {
                let Some((sign, help)) = self.cursor.foreign_sign() else {
                    return self.cursor.expected("an expression");
                };
                let span = at..at + sign.len();
                self.cursor
                    .error(Diagnostic::error(span, format!("unexpected `{sign}`")).help(help))
            }
        }
    }

    /// Parses a look-ahead at the end of a rule, as in xgrammar. It describes what follows, which
    /// the grammar determines already.
    fn look_ahead(&mut self) -> Result<Option<Node>, Reported> {
        self.cursor.skip()?;
        let begin = self.cursor.offset;
        if !self.cursor.eat("(=") {
            return Ok(None);
        }
        let sign = begin..begin + 2;
        if let EbnfDialect::Gbnf | EbnfDialect::Kbnf = self.cursor.dialect {
            let message = "the dialects `gbnf` and `kbnf` have no look-ahead";
            return self.cursor.error(Diagnostic::error(sign, message));
        }
        let node = self.alternatives()?;
        self.close(')', begin)?;
        let message = "a look-ahead has no effect";
        self.cursor.diagnostics.push(Diagnostic::warning(sign, message));
        Ok(Some(node))
    }

    /// Makes a node, within the limit on nodes.
    pub(super) fn node(&mut self, kind: SyntaxKind, span: ByteSpan) -> Result<Node, Reported> {
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

    /// Enters a level of nesting, for a construct at `at`.
    pub(super) fn enter(&mut self, at: usize) -> Result<(), Reported> {
        self.depth += 1;
        if self.depth > self.max_depth {
            let message = format!("nested more than {} deep", self.max_depth);
            return self.cursor.error(Diagnostic::error(at..at, message));
        }
        Ok(())
    }

    /// Parses `a | b | c`.
    pub(super) fn alternatives(&mut self) -> Result<Node, Reported> {
        let begin = self.cursor.offset;
        self.enter(begin)?;
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
        self.node(SyntaxKind::Alt(parts), span)
    }

    /// Parses `a b c`. No items are the empty text.
    fn sequence(&mut self) -> Result<Node, Reported> {
        self.cursor.skip()?;
        let begin = self.cursor.offset;
        let mut parts: Vec<Node> = Vec::new();
        let mut comma = false;
        loop {
            self.cursor.skip()?;
            if !comma && (self.at_end() || self.cursor.rest().starts_with("(=")) {
                break;
            }
            match self.atom()? {
                Some(atom) => parts.push(self.repeated(atom)?),
                None if comma => return self.cursor.expected("an expression after the comma"),
                None => break,
            }
            comma = false;
            if self.cursor.dialect == EbnfDialect::Kbnf {
                self.cursor.skip()?;
                comma = self.cursor.eat(",");
            }
        }
        match parts.len() {
            0 => self.node(SyntaxKind::Empty, begin..begin),
            1 => Ok(parts.remove(0)),
            _ => {
                let span = join(&parts[0].span, &parts[parts.len() - 1].span);
                self.node(SyntaxKind::Seq(parts), span)
            }
        }
    }

    /// Parses the postfix operators of an atom: `?`, `*`, `+`, `{n}`, `{n,}`, `{n,m}`, `{,m}`.
    fn repeated(&mut self, mut body: Node) -> Result<Node, Reported> {
        let (mut times, depth) = (0, self.depth);
        loop {
            self.cursor.skip_blanks();
            let begin = self.cursor.offset;
            let (min, max) = match self.cursor.peek() {
                Some('?') => (0, Some(1)),
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('{') if self.cursor.dialect != EbnfDialect::Kbnf => (0, None),
                _ => {
                    self.depth = depth;
                    return Ok(body);
                }
            };
            self.cursor.check_braces()?;
            times += 1;
            if times > 1 && self.cursor.dialect != EbnfDialect::Gbnf {
                return self.cursor.error(
                    Diagnostic::error(begin..begin + 1, "a repetition of a repetition")
                        .help("if it is meant, write parentheses: `(\"a\"+)?`"),
                );
            }
            let (min, max) =
                if self.cursor.eat("{") { self.repeat_bounds(begin)? } else { (min, max) };
            if self.cursor.offset == begin {
                self.cursor.next();
            }
            self.enter(begin)?;
            let span = body.span.start..self.cursor.offset;
            body = self.node(SyntaxKind::Repeat { body: Box::new(body), min, max }, span)?;
        }
    }

    /// Parses the bounds of a repeat, after its `{`.
    fn repeat_bounds(&mut self, begin: usize) -> Result<(u32, Option<u32>), Reported> {
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
        let at = self.cursor.offset;
        match (min, max) {
            (None, None) => self.cursor.error(Diagnostic::error(begin..at, "no count at all")),
            (Some(min), Some(max)) if min > max => {
                self.cursor.error(Diagnostic::error(begin..at, "counts out of order"))
            }
            (Some(min), _) if min > MAX_COUNT => {
                let error = Diagnostic::error(begin..at, "the least count is too large");
                self.cursor.error(error.help(format!("it is at most {MAX_COUNT}")))
            }
            (min, max) => Ok((min.unwrap_or(0), max)),
        }
    }

    /// Parses an atom; `None` where none begins.
    pub(super) fn atom(&mut self) -> Result<Option<Node>, Reported> {
        let begin = self.cursor.offset;
        let Some(c) = self.cursor.peek() else { return Ok(None) };
        let kind = match c {
            '"' | '\'' => {
                self.cursor.next();
                let text = self.cursor.quoted(c, begin, EscapeMode::Text)?;
                self.cursor.check_range()?;
                SyntaxKind::Bytes(text)
            }
            '[' if self.cursor.dialect == EbnfDialect::Kbnf => {
                return self.bracketed(']', 1).map(Some);
            }
            '{' if self.cursor.dialect == EbnfDialect::Kbnf => {
                return self.bracketed('}', u32::MAX).map(Some);
            }
            '[' => {
                self.cursor.next();
                self.cursor.check_class(begin)?;
                let (ranges, negated) = self.cursor.class(begin, EscapeMode::Text)?;
                SyntaxKind::Class { ranges, negated }
            }
            '(' => {
                self.cursor.next();
                let inner = self.alternatives()?;
                self.close(')', begin)?;
                return Ok(Some(Node { kind: inner.kind, span: begin..self.cursor.offset }));
            }
            '@' => self.at_sign(begin)?,
            '<' => SyntaxKind::Token(self.token()?),
            '!' => {
                self.cursor.next();
                if self.cursor.peek() != Some('<') {
                    return self.cursor.expected("a token, as in `!<think>`");
                }
                SyntaxKind::Token(SpecialToken::AnyBut(vec![self.token()?]))
            }
            '#' => self.terminal()?,
            '.' if self.cursor.dialect != EbnfDialect::Xgrammar => {
                self.cursor.next();
                SyntaxKind::Any
            }
            _ => match self.cursor.name()? {
                Some(name) => self.reference_or_macro(name)?,
                None if c == '.' => {
                    self.cursor.next();
                    SyntaxKind::Any
                }
                None => return Ok(None),
            },
        };
        self.node(kind, begin..self.cursor.offset).map(Some)
    }

    /// Consumes the bracket that closes the one at `begin`.
    pub(super) fn close(&mut self, sign: char, begin: usize) -> Result<(), Reported> {
        self.cursor.skip()?;
        if self.cursor.peek() == Some(sign)
            && !(self.cursor.at_line_start && self.cursor.is_rule_head())
        {
            self.cursor.next();
            return Ok(());
        }
        if !self.at_end() {
            return self.unexpected();
        }
        let message = format!("a `{}` without end", &self.cursor.text[begin..begin + 1]);
        let label = format!("expected `{sign}` before the rule ends");
        self.cursor.error(Diagnostic::error(begin..begin + 1, message).label(label))
    }

    /// Parses `[a]`, at most one `a`, or `{a}`, any number of them.
    fn bracketed(&mut self, end: char, max: u32) -> Result<Node, Reported> {
        let begin = self.cursor.offset;
        self.cursor.next();
        self.cursor.check_counts(begin)?;
        self.cursor.check_negated_class(begin)?;
        let body = Box::new(self.alternatives()?);
        self.close(end, begin)?;
        let max = (max == 1).then_some(1);
        self.node(SyntaxKind::Repeat { body, min: 0, max }, begin..self.cursor.offset)
    }

    /// Parses the rest of a reference, a macro, `any!` or `except!(...)`. References to a rule with
    /// the name of a macro need backquotes before a `(`.
    fn reference_or_macro(&mut self, name: Name) -> Result<SyntaxKind, Reported> {
        let quoted = self.cursor.text[name.span.clone()].starts_with('`');
        if !quoted && self.cursor.rest().starts_with('!') && !self.cursor.rest().starts_with("!<") {
            return self.bang_terminal(&name);
        }
        let rest = self.cursor.rest().trim_start_matches([' ', '\t']);
        if !quoted
            && rest.starts_with('(')
            && !rest.starts_with("(=")
            && MACROS.contains(&&*name.text)
        {
            self.cursor.skip_blanks();
            return self.call(&name);
        }
        Ok(SyntaxKind::Ref(name.text))
    }
}
