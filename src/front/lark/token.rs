//! Lark tokenizer. Drops white space and comments, but not line ends, which end statements.

use std::ops::Range;

use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::utf16::{HIGH_SURROGATES, surrogate_pair};

/// A token with its byte range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind<'t>,
    pub(super) span: Range<usize>,
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'t> {
    /// One or more line ends.
    Newline,
    /// A name of a rule or a terminal, or a keyword.
    Name(&'t str),
    /// A string with its escapes decoded, and whether it has the flag `i`.
    Text(String, bool),
    /// A regular expression without its slashes, and its flags.
    Regex(&'t str, &'t str),
    /// Digits with an optional fraction.
    Number(&'t str),
    /// `<...>`, brackets included.
    Special(&'t str),
    /// `@name`, without the sign.
    Grammar(&'t str),
    /// `%word`, without the sign.
    Directive(&'t str),
    /// The JSON object of a directive.
    Json(&'t str),
    /// `..`
    Range,
    /// `->`
    Arrow,
    /// `::`
    Parameter,
    /// Any other single character.
    Sign(char),
    /// The end of the text.
    End,
}

/// Directives that take a JSON object.
const JSON_DIRECTIVES: [&str; 4] = ["json", "regex", "llguidance", "grammar_options"];

/// Signs of several characters.
const LONG_SIGNS: [(&str, TokenKind<'_>); 3] =
    [("..", TokenKind::Range), ("->", TokenKind::Arrow), ("::", TokenKind::Parameter)];

/// Splits a text into tokens; the last one is [`TokenKind::End`]. Reports and skips invalid
/// characters. Linear.
pub(super) fn tokenize<'t>(text: &'t str, diagnostics: &mut Diagnostics) -> Vec<Token<'t>> {
    let mut lexer = Lexer { text, offset: 0, out: Vec::new(), diagnostics };
    while lexer.offset < text.len() {
        lexer.next();
    }
    lexer.push(TokenKind::End, text.len());
    lexer.out
}

/// State of the tokenizer.
struct Lexer<'t, 'd> {
    text: &'t str,
    /// Offset of the next character.
    offset: usize,
    out: Vec<Token<'t>>,
    diagnostics: &'d mut Diagnostics,
}

/// Whether a character begins a name.
fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether a character continues a name.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'t> Lexer<'t, '_> {
    /// The text from the current position on.
    fn rest(&self) -> &'t str {
        &self.text[self.offset..]
    }

    /// Appends a token that ends at the current position.
    fn push(&mut self, kind: TokenKind<'t>, start: usize) {
        self.out.push(Token { kind, span: start..self.offset });
    }

    /// Reports an error.
    fn error(&mut self, start: usize, message: impl Into<String>, label: &str) {
        self.diagnostics.push(Diagnostic::error(start..self.offset, message).label(label));
    }

    /// Skips and returns all characters that satisfy a predicate.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    /// Reads one token.
    fn next(&mut self) {
        let start = self.offset;
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return };
        if let Some((sign, kind)) = LONG_SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            self.offset += sign.len();
            return self.push(kind.clone(), start);
        }
        match c {
            '\n' => {
                self.offset += 1;
                if self.out.last().is_none_or(|last| last.kind != TokenKind::Newline) {
                    self.push(TokenKind::Newline, start);
                }
            }
            ' ' | '\t' | '\r' => self.offset += 1,
            '\u{FEFF}' if start == 0 => self.offset += c.len_utf8(),
            '#' => self.offset += rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("//") => self.comment(),
            '/' => self.regex(),
            '"' => self.string(),
            '\'' => self.single_quoted(),
            '<' => self.special(),
            '%' => self.directive(),
            '@' => {
                self.offset += 1;
                let name = self.name();
                if name.is_empty() {
                    self.error(start, "a grammar without a name", "expected `@name`");
                } else {
                    self.push(TokenKind::Grammar(name), start);
                }
            }
            c if is_name_start(c) => {
                let name = self.name();
                self.push(TokenKind::Name(name), start);
            }
            c if c.is_ascii_digit() => self.number(start),
            ':' | ',' | '.' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '~' | '?' | '*' | '+'
            | '&' | '=' | '!' | '-' => {
                self.offset += 1;
                self.push(TokenKind::Sign(c), start);
            }
            c => {
                self.offset += c.len_utf8();
                self.error(start, format!("{c:?} begins nothing"), "not part of the language");
            }
        }
    }

    /// Reports a string in single quotes, which Lark does not have.
    fn single_quoted(&mut self) {
        let start = self.offset;
        self.offset += 1;
        let text = self.take(|c| c != '\'' && c != '\n');
        self.offset += usize::from(self.rest().starts_with('\''));
        let help = format!("write \"{}\"", text.replace('"', "\\\""));
        let error = Diagnostic::error(start..self.offset, "strings have double quotes");
        self.diagnostics.push(Diagnostic { help: Some(help), ..error });
    }

    /// Reads a name: letters, digits, underscores, and hyphens between them.
    fn name(&mut self) -> &'t str {
        let start = self.offset;
        if !self.rest().starts_with(is_name_start) {
            return "";
        }
        loop {
            self.take(is_name);
            let rest = self.rest();
            if rest.starts_with('-') && rest[1..].starts_with(is_name) {
                self.offset += 1;
            } else {
                return &self.text[start..self.offset];
            }
        }
    }

    /// Skips a comment that begins with `//`. Errors: it may be meant as a regular expression.
    fn comment(&mut self) {
        let start = self.offset;
        let line = self.take(|c| c != '\n');
        let last = self.out.last().map(|token| &token.kind);
        // After these, an expression begins here or in a later line.
        let expects = matches!(last, Some(TokenKind::Sign(':' | '|' | '=' | '&' | '~')));
        if expects && is_empty_regex(line) {
            let label = "write `\"\"`, or a comment with text";
            self.error(start, "an empty regular expression, or a comment", label);
        }
    }

    /// Reads a number.
    fn number(&mut self, start: usize) {
        self.take(|c| c.is_ascii_digit());
        let rest = self.rest();
        if rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            self.offset += 1;
            self.take(|c| c.is_ascii_digit());
        }
        self.push(TokenKind::Number(&self.text[start..self.offset]), start);
    }

    /// Reads a regular expression.
    fn regex(&mut self) {
        let start = self.offset;
        let mut chars = self.rest().char_indices().skip(1);
        let mut end = None;
        while let Some((i, c)) = chars.next() {
            match c {
                '/' => {
                    end = Some(i);
                    break;
                }
                '\n' => break,
                // Skip the escaped character.
                '\\' if chars.next().is_none_or(|(_, c)| c == '\n') => break,
                _ => {}
            }
        }
        let Some(end) = end else {
            self.take(|c| c != '\n');
            return self.error(
                start,
                "a regular expression without end",
                "expected `/` on this line",
            );
        };
        let pattern = &self.text[start + 1..start + end];
        self.offset = start + end + 1;
        let flags = self.take(|c| c.is_ascii_alphabetic());
        self.push(TokenKind::Regex(pattern, flags), start);
    }

    /// Reads a string.
    fn string(&mut self) {
        let start = self.offset;
        let mut value = String::new();
        self.offset += 1;
        loop {
            let at = self.offset;
            let Some(c) = self.rest().chars().next().filter(|&c| c != '\n') else {
                return self.error(start, "a string without end", "expected `\"` on this line");
            };
            self.offset += c.len_utf8();
            match c {
                '"' => break,
                '\\' => match self.escape() {
                    Ok(c) => value.push(c),
                    Err(expected) => self.error(at, "an escape that strings do not have", expected),
                },
                c => value.push(c),
            }
        }
        let fold = self.rest().starts_with('i') && !self.rest()[1..].starts_with(is_name);
        self.offset += usize::from(fold);
        self.push(TokenKind::Text(value, fold), start);
    }

    /// Reads an escape, after its backslash.
    fn escape(&mut self) -> Result<char, &'static str> {
        const EXPECTED: &str =
            "known are \\n \\r \\t \\b \\f \\v \\a \\0 \\\\ \\\" \\' \\/ \\xHH \\uHHHH \\UHHHHHHHH";
        let Some(c) = self.rest().chars().next().filter(|&c| c != '\n') else {
            return Err(EXPECTED);
        };
        self.offset += c.len_utf8();
        Ok(match c {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\u{8}',
            'f' => '\u{C}',
            'v' => '\u{B}',
            'a' => '\u{7}',
            '0' => '\0',
            '\\' | '"' | '\'' | '/' => c,
            'x' => self.code(2)?,
            'U' => self.code(8)?,
            'u' => {
                let first = self.hex(4)?;
                let code_point =
                    if HIGH_SURROGATES.contains(&first) && self.rest().starts_with("\\u") {
                        self.offset += 2;
                        surrogate_pair(first, self.hex(4)?)
                    } else {
                        char::from_u32(first)
                    };
                code_point.ok_or("half of a surrogate pair")?
            }
            _ => return Err(EXPECTED),
        })
    }

    /// Reads a code point in hexadecimal digits.
    fn code(&mut self, digits: usize) -> Result<char, &'static str> {
        char::from_u32(self.hex(digits)?).ok_or("not a code point")
    }

    /// Reads hexadecimal digits.
    fn hex(&mut self, digits: usize) -> Result<u32, &'static str> {
        let text = self.rest().get(..digits).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = text
            .and_then(|d| u32::from_str_radix(d, 16).ok())
            .ok_or("expected hexadecimal digits")?;
        self.offset += digits;
        Ok(code)
    }

    /// Reads a special token.
    fn special(&mut self) {
        let start = self.offset;
        let rest = self.rest();
        let end =
            rest[1..].find(|c: char| c == '>' || c == '<' || c.is_whitespace()).map(|n| n + 1);
        match end.filter(|&end| rest[end..].starts_with('>') && end > 1) {
            Some(end) => {
                self.offset += end + 1;
                self.push(TokenKind::Special(&rest[..=end]), start);
            }
            None => {
                self.offset += 1;
                self.error(start, "a special token without end", "expected `<name>` or `<[ids]>`");
            }
        }
    }

    /// Reads a directive, and its JSON object if it takes one.
    fn directive(&mut self) {
        let start = self.offset;
        self.offset += 1;
        let word = self.name();
        self.push(TokenKind::Directive(word), start);
        if !JSON_DIRECTIVES.contains(&word) {
            return;
        }
        self.take(char::is_whitespace);
        let json = self.offset;
        if self.rest().starts_with('{') {
            match json_end(self.rest()) {
                Some(end) => {
                    self.offset += end;
                    self.push(TokenKind::Json(&self.text[json..self.offset]), json);
                }
                None => {
                    self.offset = self.text.len();
                    self.diagnostics.push(
                        Diagnostic::error(json..json + 1, "a JSON value without end")
                            .label("opened here"),
                    );
                }
            }
        }
    }
}

/// Whether a `//` and the rest of its line are the slashes and flags of a regular expression, at
/// the end of an alternative.
fn is_empty_regex(line: &str) -> bool {
    let after = line[2..].trim_start_matches(['i', 'l', 'm', 's', 'u', 'x']).trim_start();
    after.is_empty() || after.starts_with(['|', ')', ']', ',', '&'])
}

/// The end of the JSON value at the beginning of a text, found by matching brackets.
fn json_end(text: &str) -> Option<usize> {
    let (mut open, mut quoted, mut escaped) = (0usize, false, false);
    for (i, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => open += 1,
            b'}' | b']' if !quoted => {
                open -= 1;
                if open == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}
