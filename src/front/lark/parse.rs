//! Lark parser: parses tokens to a [`File`]. After an error it recovers at the next statement, so
//! that all errors of a text are reported.

mod expression;

use std::ops::Range;

use super::ast::{
    Definition, File, Import, Marker, MarkerKind, NodeKind, Options, RuleAttributes, Spanned,
};
use super::token::{Token, TokenKind};
use crate::front::diagnostic::{Diagnostic, Diagnostics, Severity, UniqueKeys};
use crate::ir::MAX_COUNT;
use crate::limits::Limits;
use crate::spec::json::Json;

/// The attributes of rules.
const ATTRIBUTES: [&str; 8] =
    ["lazy", "suffix", "stop", "stop_capture", "max_tokens", "max_chars", "capture", "temperature"];

/// A statement could not be parsed; the error is reported.
struct StatementFailed;

/// Result of parsing a construct; the error is reported already.
type Parsed<T> = Result<T, StatementFailed>;

/// Parses a whole text. Errors are pushed to `diagnostics`. Linear.
pub(super) fn parse<'t>(
    tokens: &[Token<'t>],
    diagnostics: &mut Diagnostics,
    limits: &Limits,
) -> File<'t> {
    let mut parser = Parser { tokens, position: 0, depth: 0, diagnostics, limits };
    parser.file(false)
}

/// State of the parser.
struct Parser<'t, 'p> {
    tokens: &'p [Token<'t>],
    /// Index of the current token.
    position: usize,
    /// Current nesting.
    depth: usize,
    diagnostics: &'p mut Diagnostics,
    limits: &'p Limits,
}

impl<'t> Parser<'t, '_> {
    /// The current token.
    fn kind(&self) -> &TokenKind<'t> {
        &self.tokens[self.position].kind
    }

    /// The range of the current token.
    fn span(&self) -> Range<usize> {
        self.tokens[self.position].span.clone()
    }

    /// The range from `start` to the end of the last consumed token.
    fn since(&self, start: usize) -> Range<usize> {
        start..self.tokens[self.position.saturating_sub(1)].span.end.max(start)
    }

    /// The range of the current token; of the end of the text, the place after the last token, as
    /// nothing stands in the lines after it.
    fn shown_span(&self) -> Range<usize> {
        let before = &self.tokens[..self.position];
        let last = before.iter().rev().find(|token| token.kind != TokenKind::Newline);
        match (self.kind(), last) {
            (TokenKind::End, Some(last)) => last.span.end..last.span.end,
            _ => self.span(),
        }
    }

    /// Consumes a token.
    fn bump(&mut self) {
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
    }

    /// Whether the current token is a sign.
    fn is(&self, sign: char) -> bool {
        *self.kind() == TokenKind::Sign(sign)
    }

    /// Consumes a sign, if it is the current token.
    fn eat(&mut self, sign: char) -> bool {
        let is_next = self.is(sign);
        if is_next {
            self.bump();
        }
        is_next
    }

    /// Consumes line ends.
    fn newlines(&mut self) {
        while *self.kind() == TokenKind::Newline {
            self.bump();
        }
    }

    /// Reports an error.
    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.diagnostics.push(diagnostic);
        Err(StatementFailed)
    }

    /// Reports that `what` was expected instead of the current token.
    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        let found = match self.kind() {
            TokenKind::Newline => "end of the line".to_owned(),
            TokenKind::End => "end of the text".to_owned(),
            TokenKind::Sign(c) => format!("`{c}`"),
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::Text(..) => "a string".to_owned(),
            TokenKind::Regex(..) => "a regular expression".to_owned(),
            TokenKind::Number(digits) => format!("`{digits}`"),
            TokenKind::Special(token) => format!("`{token}`"),
            TokenKind::Grammar(name) => format!("`@{name}`"),
            TokenKind::Directive(word) => format!("`%{word}`"),
            TokenKind::Json(_) => "a JSON value".to_owned(),
            TokenKind::Range => "`..`".to_owned(),
            TokenKind::Arrow => "`->`".to_owned(),
            TokenKind::Parameter => "`::`".to_owned(),
        };
        let diagnostic = Diagnostic::error(self.shown_span(), format!("unexpected {found}"))
            .label(format!("expected {what}"));
        self.fail(diagnostic)
    }

    /// Reports a template at the current token.
    fn refuse_template<T>(&mut self) -> Parsed<T> {
        let error = Diagnostic::error(self.span(), "templates are not supported");
        self.fail(error.help("write one rule for each use"))
    }

    /// Reports the parameters of a rule at the current token.
    fn refuse_parameters<T>(&mut self) -> Parsed<T> {
        let next = self.tokens.get(self.position + 1).map(|token| &token.kind);
        if next == Some(&TokenKind::Sign('=')) {
            let error = Diagnostic::error(self.span(), "a rule of EBNF");
            let help = "a rule of Lark is written `name: ...`; a text with `::=` is of the kind \
                        `ebnf`";
            return self.fail(error.help(help));
        }
        let error = Diagnostic::error(self.span(), "rules with parameters are not supported");
        self.fail(error.help("write one rule for each value"))
    }

    /// Warns of something without effect, once per text.
    fn without_effect(&mut self, span: Range<usize>, what: &str) {
        let message = format!("{what} has no effect");
        if self.diagnostics.list().iter().all(|known| known.message != message) {
            self.diagnostics.push(Diagnostic::warning(span, message));
        }
    }

    /// Consumes a required sign.
    fn sign(&mut self, sign: char, what: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { self.expected(what) }
    }

    /// Consumes a required name.
    fn name(&mut self, what: &str) -> Parsed<Spanned<&'t str>> {
        match *self.kind() {
            TokenKind::Name(value) => {
                let span = self.span();
                self.bump();
                Ok(Spanned { value, span })
            }
            _ => self.expected(what),
        }
    }

    /// Parses statements up to the end of the text, or up to the `}` of a nested grammar.
    fn file(&mut self, inner: bool) -> File<'t> {
        let mut file = File { span: self.span(), ..File::default() };
        loop {
            self.newlines();
            match self.kind() {
                TokenKind::End => break,
                TokenKind::Sign('}') if inner => break,
                _ => {}
            }
            if self.statement(&mut file).is_err() {
                self.recover(inner);
            }
        }
        file
    }

    /// Skips to the line end before a token that can begin a statement.
    fn recover(&mut self, inner: bool) {
        let mut open = 0usize;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Sign('}') if inner && open == 0 => return,
                TokenKind::Sign('{') => open += 1,
                TokenKind::Sign('}') => open = open.saturating_sub(1),
                TokenKind::Newline if self.begins_statement() => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Whether this line end is followed by a directive, or by a name and `:` or `[`.
    fn begins_statement(&self) -> bool {
        let mut rest = self.tokens[self.position..]
            .iter()
            .map(|t| &t.kind)
            .skip_while(|k| **k == TokenKind::Newline)
            .peekable();
        while rest.next_if(|k| matches!(k, TokenKind::Sign('?' | '!'))).is_some() {}
        match rest.next() {
            Some(TokenKind::Directive(word)) => !matches!(*word, "json" | "regex" | "lark"),
            Some(TokenKind::Name(_)) => matches!(rest.next(), Some(TokenKind::Sign(':' | '['))),
            _ => false,
        }
    }

    /// Parses a statement.
    fn statement(&mut self, file: &mut File<'t>) -> Parsed<()> {
        match *self.kind() {
            TokenKind::Directive(word) => self.directive(word, file)?,
            TokenKind::Name(_) | TokenKind::Sign('?' | '!') => {
                let definition = self.definition()?;
                file.definitions.push(definition);
            }
            _ => return self.expected("a rule, a terminal or a directive"),
        }
        match self.kind() {
            TokenKind::Newline | TokenKind::End => Ok(()),
            TokenKind::Sign('}') => Ok(()),
            _ => self.expected("the end of the line"),
        }
    }

    /// Parses a directive that is a statement.
    fn directive(&mut self, word: &str, file: &mut File<'t>) -> Parsed<()> {
        let span = self.span();
        self.bump();
        let refuse = |reason: &str, help: &str| {
            Diagnostic::error(span.clone(), format!("`%{word}` is not supported: {reason}"))
                .help(help)
        };
        match word {
            "ignore" => {
                let node = self.alternatives(false)?;
                file.ignores.push(node);
                Ok(())
            }
            "import" => self.import(file),
            "llguidance" | "grammar_options" => self.options(&mut file.options),
            "declare" => self.fail(refuse("a terminal needs a definition", "define the terminal")),
            "override" | "extend" => self.fail(refuse(
                "nothing imported can be changed",
                "define a terminal with a name of its own",
            )),
            "if" => self.fail(refuse("rules have no parameters", "write one rule for each case")),
            _ => {
                let directives = ["ignore", "import", "llguidance", "grammar_options"];
                let help = match self.diagnostics.similar(word, directives) {
                    Some(name) => format!("is `%{name}` meant?"),
                    None => {
                        "known are %ignore, %import, %llguidance and %grammar_options".to_owned()
                    }
                };
                self.fail(
                    Diagnostic::error(span, format!("`%{word}` begins no statement")).help(help),
                )
            }
        }
    }

    /// Parses the rest of `%import`.
    fn import(&mut self, file: &mut File<'t>) -> Parsed<()> {
        let start = self.span();
        if let TokenKind::Grammar(name) = *self.kind() {
            let message = format!("`@{name}` cannot be imported");
            return self.fail(
                Diagnostic::error(start, message)
                    .help(format!("write `@{name}` where it is meant")),
            );
        }
        let dotted = self.eat('.');
        let library = self.name("`common`")?;
        if dotted || library.value != "common" {
            let message = format!("only `common` can be imported, not `{}`", library.value);
            return self.fail(
                Diagnostic::error(library.span, message)
                    .help("write its terminals into this grammar"),
            );
        }
        if self.eat('.') {
            let name = self.name("a terminal of `common`")?;
            if self.is('.') {
                return self.expected("the end of the line");
            }
            let mut alias = name.clone();
            if *self.kind() == TokenKind::Arrow {
                self.bump();
                alias = self.name("the name to import it under")?;
            }
            file.imports.push(Import { name, alias });
            return Ok(());
        }
        self.sign('(', "`.NAME` or `(NAME, ...)`")?;
        loop {
            self.newlines();
            if self.eat(')') {
                return Ok(());
            }
            let name = self.name("a terminal of `common`")?;
            file.imports.push(Import { alias: name.clone(), name });
            self.newlines();
            if !self.is(')') {
                self.sign(',', "`,` or `)`")?;
            }
        }
    }

    /// Parses the JSON object of `%llguidance` and `%grammar_options`.
    fn options(&mut self, options: &mut Options) -> Parsed<()> {
        let TokenKind::Json(text) = *self.kind() else { return self.expected("a JSON object") };
        let span = self.span();
        self.bump();
        let json = match Json::parse(text, self.limits) {
            Ok(json) => json,
            Err(error) => {
                return self
                    .fail(Diagnostic::error(span, format!("the options are not JSON: {error}")));
            }
        };
        for (key, value) in json.as_object().into_iter().flat_map(|object| object.iter()) {
            // As in llguidance, whose grammars rely on it.
            if let Some(repeated) = options.keys.add(key, &span) {
                let repeated = Diagnostic { severity: Severity::Warning, ..repeated };
                self.diagnostics.push(repeated.help("the last value counts"));
            }
            let wrong = match (key, value) {
                ("allow_initial_skip", Json::Bool(value)) => {
                    options.initial_skip = *value;
                    continue;
                }
                // Forced tokens do not affect masks.
                ("no_forcing", Json::Bool(true)) => {
                    self.without_effect(span.clone(), "the option `no_forcing`");
                    continue;
                }
                ("no_forcing" | "allow_invalid_utf8", Json::Bool(false)) => continue,
                ("allow_invalid_utf8", Json::Bool(true)) => {
                    "regular expressions match UTF-8 only".to_owned()
                }
                ("ignore_once", Json::Bool(value)) => {
                    options.skip_once = *value;
                    continue;
                }
                ("skip_repetition", Json::String(text))
                    if ["once", "repeat", "unbounded"].contains(&&**text) =>
                {
                    options.skip_once = text == "once";
                    continue;
                }
                ("allow_initial_skip" | "no_forcing" | "allow_invalid_utf8" | "ignore_once", _) => {
                    "expected true or false".to_owned()
                }
                ("skip_repetition", _) => "expected \"once\" or \"unbounded\"".to_owned(),
                _ => "there is no such option".to_owned(),
            };
            self.diagnostics
                .push(Diagnostic::error(span.clone(), format!("option `{key}`: {wrong}")));
        }
        Ok(())
    }

    /// Parses the definition of a rule or a terminal.
    fn definition(&mut self) -> Parsed<Definition<'t>> {
        // `?` and `!` affect only the shape of parse trees, which are not built.
        while self.is('?') || self.is('!') {
            self.without_effect(self.span(), "`?` or `!` before a name");
            self.bump();
        }
        let name = self.name("the name of a rule")?;
        let span = self.span();
        match self.kind() {
            TokenKind::Sign('{') => return self.refuse_template(),
            TokenKind::Parameter => return self.refuse_parameters(),
            _ => {}
        }
        let attributes =
            if self.is('[') { self.attributes(name.value)? } else { RuleAttributes::default() };
        if super::ast::is_terminal(name.value) && !attributes.is_empty() {
            let message = format!("terminal `{}` cannot have attributes", name.value);
            self.diagnostics.push(
                Diagnostic::error(span, message).help("give them to a rule that is this terminal"),
            );
        }
        if self.is('.') {
            let message =
                "priorities are not supported: all ways to read a text are followed at once";
            return self
                .fail(Diagnostic::error(self.span(), message).help("leave the priority out"));
        }
        self.sign(':', "`:`")?;
        if *self.kind() == TokenKind::Newline && self.bar_follows() {
            let message = format!("`{}` begins with `|`, so it may be empty", name.value);
            self.diagnostics.push(
                Diagnostic::warning(name.span.clone(), message).help("begin with an alternative"),
            );
        }
        let body = self.alternatives(false)?;
        Ok(Definition { name, attributes, body })
    }

    /// Parses the attributes of a rule.
    fn attributes(&mut self, rule: &str) -> Parsed<RuleAttributes<'t>> {
        let (mut out, mut keys) = (RuleAttributes::default(), UniqueKeys::default());
        self.bump();
        loop {
            self.newlines();
            if self.eat(']') {
                break;
            }
            let key = self.name("an attribute, such as `lazy`")?;
            keys.add(key.value, &key.span).map_or(Ok(()), |repeated| self.fail(repeated))?;
            self.attribute(rule, &key, &mut out)?;
            self.newlines();
            if !self.is(']') {
                self.sign(',', "`,` or `]`")?;
            }
        }
        if let (Some(name), None) = (&out.stop_capture, &out.marker) {
            let message = "`stop_capture` without `stop` or `suffix` captures nothing";
            self.diagnostics.push(Diagnostic::error(name.span.clone(), message));
        }
        Ok(out)
    }

    /// Parses one attribute.
    fn attribute(
        &mut self,
        rule: &str,
        key: &Spanned<&'t str>,
        out: &mut RuleAttributes<'t>,
    ) -> Parsed<()> {
        let has_value = self.eat('=');
        let needs_value = !matches!(key.value, "lazy" | "capture");
        if !has_value && needs_value && ATTRIBUTES.contains(&key.value) {
            return self.expected("`=` and a value");
        }
        match key.value {
            "lazy" if !has_value => out.lazy = true,
            "capture" if !has_value => out.capture = Some(rule.to_owned()),
            "capture" => out.capture = Some(self.string()?.value),
            "stop_capture" => out.stop_capture = Some(self.string()?),
            "max_tokens" => out.max_tokens = Some(self.count()?),
            "max_chars" => out.max_chars = Some(self.count()?),
            "temperature" => match *self.kind() {
                TokenKind::Number(digits) => {
                    // Digits with an optional fraction: always a number, possibly infinite.
                    let value = digits.parse::<f32>().unwrap_or(f32::INFINITY);
                    if !value.is_finite() {
                        return self.expected("a finite number");
                    }
                    self.bump();
                    out.temperature = Some(value);
                }
                _ => return self.expected("a number that is not negative"),
            },
            "suffix" | "stop" if out.marker.is_some() => {
                let message = "a rule has one `suffix` or `stop`";
                return self.fail(Diagnostic::error(key.span.clone(), message));
            }
            "suffix" => out.marker = Some(self.marker(MarkerKind::Suffix)?),
            "stop" => out.marker = Some(self.marker(MarkerKind::Stop)?),
            _ => {
                let similar = self.diagnostics.suggest(key.value, ATTRIBUTES);
                let help =
                    similar.unwrap_or_else(|| format!("known are {}", ATTRIBUTES.join(", ")));
                let message = format!("there is no attribute `{}`", key.value);
                return self.fail(Diagnostic::error(key.span.clone(), message).help(help));
            }
        }
        Ok(())
    }

    /// Parses the value of `suffix` or `stop`.
    fn marker(&mut self, kind: MarkerKind) -> Parsed<Marker<'t>> {
        let node = match self.kind() {
            TokenKind::Text(..) | TokenKind::Regex(..) | TokenKind::Name(_) => self.atom()?,
            _ => return self.expected("a string, a regular expression or a terminal"),
        };
        if kind == MarkerKind::Stop
            && matches!(&node.kind, NodeKind::Text(text, _) if text.is_empty())
        {
            let message = "`stop=\"\"` stands for the end of the sequence, \
                           after which nothing can follow";
            return self.fail(Diagnostic::error(node.span, message).help("leave it out"));
        }
        Ok(Marker { kind, node })
    }

    /// Consumes a required string.
    fn string(&mut self) -> Parsed<Spanned<String>> {
        match self.kind().clone() {
            TokenKind::Text(value, false) => {
                let span = self.span();
                self.bump();
                Ok(Spanned { value, span })
            }
            _ => self.expected("a string"),
        }
    }

    /// Consumes a required integer.
    fn count(&mut self) -> Parsed<u32> {
        match *self.kind() {
            TokenKind::Number(digits) if !digits.contains('.') => {
                match digits.parse().ok().filter(|count| *count <= MAX_COUNT) {
                    Some(count) => {
                        self.bump();
                        Ok(count)
                    }
                    None => self.expected(&format!("a number of at most {MAX_COUNT}")),
                }
            }
            _ => self.expected("a number"),
        }
    }
}
