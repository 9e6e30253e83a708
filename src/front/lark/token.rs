//! Text to tokens. White space and comments are dropped, line ends are kept: they end rules.

use std::ops::Range;

use crate::front::diagnostic::{Diagnostic, Diagnostics};

/// A token and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) span: Range<usize>,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'t> {
    /// The end of a line; several in a row are one.
    Newline,
    /// A name of a rule or a terminal, or a word.
    Name(&'t str),
    /// A string, its escapes read; whether it ends in `i`.
    Text(String, bool),
    /// A regular expression without its slashes, and its flags.
    Regex(&'t str, &'t str),
    /// Digits, perhaps with a fraction.
    Number(&'t str),
    /// `<...>`, brackets included.
    Special(&'t str),
    /// `@name`, without the sign.
    Grammar(&'t str),
    /// `%word`, without the sign.
    Directive(&'t str),
    /// A JSON value behind a directive that takes one.
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

/// Directives that a JSON value follows.
const WITH_JSON: [&str; 4] = ["json", "regex", "llguidance", "grammar_options"];

/// All tokens of a text, the last one [`Kind::End`]. What is no token is reported and left out. Linear.
pub(super) fn tokens<'t>(text: &'t str, diagnostics: &mut Diagnostics) -> Vec<Token<'t>> {
    let mut lexer = Lexer { text, at: 0, out: Vec::new(), diagnostics };
    while lexer.at < text.len() {
        lexer.next();
    }
    lexer.push(Kind::End, text.len());
    lexer.out
}

struct Lexer<'t, 'd> {
    text: &'t str,
    at: usize,
    out: Vec<Token<'t>>,
    diagnostics: &'d mut Diagnostics,
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'t> Lexer<'t, '_> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: Kind<'t>, start: usize) {
        self.out.push(Token { kind, span: start..self.at });
    }

    fn error(&mut self, start: usize, message: impl Into<String>, label: &str) {
        self.diagnostics.push(Diagnostic::error(start..self.at, message).label(label));
    }

    /// Moves past what fits; returns it.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn next(&mut self) {
        let start = self.at;
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return };
        match c {
            '\n' => {
                self.at += 1;
                if self.out.last().is_none_or(|last| last.kind != Kind::Newline) {
                    self.push(Kind::Newline, start);
                }
            }
            ' ' | '\t' | '\r' | '\u{FEFF}' => self.at += c.len_utf8(),
            '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("//") => self.at += rest.find('\n').unwrap_or(rest.len()),
            '/' => self.regex(),
            '"' => self.string(),
            '<' => self.special(),
            '%' => self.directive(),
            '@' => {
                self.at += 1;
                let name = self.name();
                if name.is_empty() {
                    self.error(start, "a grammar without a name", "expected `@name`");
                } else {
                    self.push(Kind::Grammar(name), start);
                }
            }
            '.' if rest.starts_with("..") => {
                self.at += 2;
                self.push(Kind::Range, start);
            }
            '-' if rest.starts_with("->") => {
                self.at += 2;
                self.push(Kind::Arrow, start);
            }
            ':' if rest.starts_with("::") => {
                self.at += 2;
                self.push(Kind::Parameter, start);
            }
            c if is_name_start(c) => {
                let name = self.name();
                self.push(Kind::Name(name), start);
            }
            c if c.is_ascii_digit() => self.number(start),
            ':' | ',' | '.' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '~' | '?' | '*' | '+'
            | '&' | '=' | '!' | '-' => {
                self.at += 1;
                self.push(Kind::Sign(c), start);
            }
            c => {
                self.at += c.len_utf8();
                self.error(start, format!("{c:?} begins nothing"), "not part of the language");
            }
        }
    }

    /// Letters, digits, underscores, and hyphens between them.
    fn name(&mut self) -> &'t str {
        let start = self.at;
        if !self.rest().starts_with(is_name_start) {
            return "";
        }
        loop {
            self.take(is_name);
            let rest = self.rest();
            if rest.starts_with('-') && rest[1..].starts_with(is_name) {
                self.at += 1;
            } else {
                return &self.text[start..self.at];
            }
        }
    }

    fn number(&mut self, start: usize) {
        self.take(|c| c.is_ascii_digit());
        let rest = self.rest();
        if rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            self.at += 1;
            self.take(|c| c.is_ascii_digit());
        }
        self.push(Kind::Number(&self.text[start..self.at]), start);
    }

    fn regex(&mut self) {
        let start = self.at;
        let mut chars = self.rest().char_indices().skip(1);
        let mut end = None;
        while let Some((i, c)) = chars.next() {
            match c {
                '/' => {
                    end = Some(i);
                    break;
                }
                '\n' => break,
                // The next one is escaped, whatever it is.
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
        self.at = start + end + 1;
        let flags = self.take(|c| c.is_ascii_alphabetic());
        self.push(Kind::Regex(pattern, flags), start);
    }

    fn string(&mut self) {
        let start = self.at;
        let mut value = String::new();
        self.at += 1;
        loop {
            let at = self.at;
            let Some(c) = self.rest().chars().next().filter(|&c| c != '\n') else {
                return self.error(start, "a string without end", "expected `\"` on this line");
            };
            self.at += c.len_utf8();
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
        self.at += usize::from(fold);
        self.push(Kind::Text(value, fold), start);
    }

    /// An escape behind its backslash.
    fn escape(&mut self) -> Result<char, &'static str> {
        const EXPECTED: &str =
            "known are \\n \\r \\t \\b \\f \\v \\a \\0 \\\\ \\\" \\' \\/ \\xHH \\uHHHH \\UHHHHHHHH";
        let Some(c) = self.rest().chars().next().filter(|&c| c != '\n') else {
            return Err(EXPECTED);
        };
        self.at += c.len_utf8();
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
                let pair = (0xD800..0xDC00).contains(&first) && self.rest().starts_with("\\u");
                let code = if pair {
                    self.at += 2;
                    let second = self.hex(4)?;
                    if !(0xDC00..0xE000).contains(&second) {
                        return Err("half of a surrogate pair");
                    }
                    0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                } else {
                    first
                };
                char::from_u32(code).ok_or("half of a surrogate pair")?
            }
            _ => return Err(EXPECTED),
        })
    }

    fn code(&mut self, digits: usize) -> Result<char, &'static str> {
        char::from_u32(self.hex(digits)?).ok_or("not a code point")
    }

    fn hex(&mut self, digits: usize) -> Result<u32, &'static str> {
        let found = self.rest().get(..digits).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = found
            .and_then(|d| u32::from_str_radix(d, 16).ok())
            .ok_or("expected hexadecimal digits")?;
        self.at += digits;
        Ok(code)
    }

    fn special(&mut self) {
        let start = self.at;
        let rest = self.rest();
        let end =
            rest[1..].find(|c: char| c == '>' || c == '<' || c.is_whitespace()).map(|n| n + 1);
        match end.filter(|&end| rest[end..].starts_with('>') && end > 1) {
            Some(end) => {
                self.at += end + 1;
                self.push(Kind::Special(&rest[..=end]), start);
            }
            None => {
                self.at += 1;
                self.error(start, "a special token without end", "expected `<name>` or `<[ids]>`");
            }
        }
    }

    fn directive(&mut self) {
        let start = self.at;
        self.at += 1;
        let word = self.name();
        self.push(Kind::Directive(word), start);
        if !WITH_JSON.contains(&word) {
            return;
        }
        self.take(char::is_whitespace);
        let json = self.at;
        if self.rest().starts_with('{') {
            match json_end(self.rest()) {
                Some(end) => {
                    self.at += end;
                    self.push(Kind::Json(&self.text[json..self.at]), json);
                }
                None => {
                    self.at = self.text.len();
                    self.diagnostics.push(
                        Diagnostic::error(json..json + 1, "a JSON value without end")
                            .label("opened here"),
                    );
                }
            }
        }
    }
}

/// Where the JSON value at the beginning of a text ends, by its brackets alone.
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
