//! EBNF scanner: a cursor over the characters of a text that reads blanks, comments, names,
//! numbers, strings and classes.

use std::ops::Range;

use super::EbnfDialect;
use super::ast::ByteSpan;
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::fsm::ByteSet;
use crate::utf16::surrogate_pair;

/// An error that has been reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

/// A position in the text that moves forward, with the diagnostics so far.
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    /// Byte offset of the next character.
    pub(super) offset: usize,
    pub(super) dialect: EbnfDialect,
    /// Whether only blanks precede `offset` in its line.
    pub(super) at_line_start: bool,
    pub(super) diagnostics: Diagnostics,
}

/// Whether a character is allowed in names.
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl<'t> Cursor<'t> {
    /// A cursor at the beginning of a text.
    pub(super) fn new(text: &'t str, dialect: EbnfDialect, diagnostics: Diagnostics) -> Self {
        Cursor { text, offset: 0, dialect, at_line_start: true, diagnostics }
    }

    /// The text from the cursor on.
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.offset..]
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes the next character.
    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.offset += c.len_utf8();
        self.at_line_start = false;
        Some(c)
    }

    /// Consumes a text, if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next && !text.is_empty() {
            self.offset += text.len();
            self.at_line_start = false;
        }
        is_next
    }

    /// Reports an error.
    pub(super) fn error<T>(&mut self, diagnostic: Diagnostic) -> Result<T, Reported> {
        self.diagnostics.push(diagnostic);
        Err(Reported)
    }

    /// Reports that `what` was expected here.
    pub(super) fn expected<T>(&mut self, what: &str) -> Result<T, Reported> {
        let (found, len) = match self.peek() {
            None => ("the text ends".to_owned(), 0),
            Some('\n' | '\r') => ("the line ends".to_owned(), 0),
            Some(c) => (format!("unexpected `{c}`"), c.len_utf8()),
        };
        let at = self.offset;
        self.error(Diagnostic::error(at..at + len, found).label(format!("expected {what}")))
    }

    /// Skips blanks, line ends and comments.
    pub(super) fn skip(&mut self) -> Result<(), Reported> {
        loop {
            match self.peek() {
                Some('\n') => {
                    self.offset += 1;
                    self.at_line_start = true;
                }
                Some(c) if c.is_whitespace() => self.offset += c.len_utf8(),
                Some(c @ '\u{FEFF}') if self.offset == 0 => self.offset += c.len_utf8(),
                Some('#') if self.dialect == EbnfDialect::Kbnf => return Ok(()),
                Some('#') => {
                    self.check_comment()?;
                    self.offset += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                Some('(') if self.rest().starts_with("(*") => {
                    let Some(end) = self.rest()[2..].find("*)") else {
                        let at = self.offset;
                        self.offset = self.text.len();
                        return self.error(
                            Diagnostic::error(at..at + 2, "a comment without end")
                                .label("expected `*)`"),
                        );
                    };
                    self.offset += end + 4;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips blanks within a line.
    pub(super) fn skip_blanks(&mut self) {
        while let Some(' ' | '\t') = self.peek() {
            self.offset += 1;
        }
    }

    /// The end of the name that begins at `at`; `at` if none begins there.
    fn name_end(&self, at: usize) -> usize {
        let dots = self.dialect != EbnfDialect::Gbnf;
        let leading = self.dialect == EbnfDialect::Xgrammar;
        let text = &self.text[at..];
        if !text.starts_with(|c: char| is_word(c) || leading && c == '.') {
            return at;
        }
        let end = text.find(|c: char| !(is_word(c) || dots && c == '.')).unwrap_or(text.len());
        // A trailing dot is any character, and hyphens alone are not a name.
        let name = if leading { &text[..end] } else { text[..end].trim_end_matches('.') };
        if name.chars().all(|c| c == '-') { at } else { at + name.len() }
    }

    /// Consumes a name, if one begins here: a plain one, or any text between backquotes.
    pub(super) fn name(&mut self) -> Result<Option<super::ast::Name>, Reported> {
        let begin = self.offset;
        if self.eat("`") {
            let bytes = self.quoted('`', begin, EscapeMode::Text)?;
            let text = String::from_utf8(bytes).unwrap_or_default();
            return Ok(Some(super::ast::Name { text, span: begin..self.offset }));
        }
        let end = self.name_end(begin);
        if end == begin {
            return Ok(None);
        }
        self.offset = end;
        self.at_line_start = false;
        Ok(Some(super::ast::Name { text: self.text[begin..end].to_owned(), span: begin..end }))
    }

    /// Whether a rule head begins here: a name, optional options, and `::=` in one line. Cost:
    /// linear in the line.
    pub(super) fn is_rule_head(&self) -> bool {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let name = match line.strip_prefix('`') {
            Some(inner) => match closing(inner, '`') {
                Some(end) => end + 2,
                None => return false,
            },
            None => self.name_end(self.offset) - self.offset,
        };
        if name == 0 {
            return false;
        }
        let mut rest = line[name..].trim_start_matches([' ', '\t']);
        if let Some(options) = rest.strip_prefix('[') {
            let Some(end) = closing_bracket(options) else { return false };
            rest = options[end + 1..].trim_start_matches([' ', '\t']);
        }
        rest.starts_with("::=")
    }

    /// Whether a rule of another notation begins here: a name and `=`, `:=`, `:`, or an
    /// arrow.
    pub(super) fn is_foreign_head(&self) -> bool {
        let rest = self.text[self.name_end(self.offset)..].trim_start_matches([' ', '\t']);
        self.name_end(self.offset) > self.offset
            && ["=", ":", "->", "<-", "\u{2192}", "\u{2190}"]
                .iter()
                .any(|sign| rest.starts_with(sign))
    }

    /// Skips to the next line in which a rule begins, or to the end.
    pub(super) fn recover(&mut self) {
        loop {
            match self.rest().find('\n') {
                None => {
                    self.offset = self.text.len();
                    return;
                }
                Some(n) => self.offset += n + 1,
            }
            self.skip_blanks();
            self.at_line_start = true;
            if self.is_rule_head() {
                return;
            }
        }
    }

    /// Consumes an unsigned number.
    pub(super) fn number(&mut self) -> Result<u32, Reported> {
        let begin = self.offset;
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return self.expected("a number");
        }
        self.offset += digits;
        match self.text[begin..self.offset].parse() {
            Ok(number) => Ok(number),
            Err(_) => self.error(
                Diagnostic::error(begin..begin + digits, "the number is too large")
                    .help(format!("the largest count is {}", u32::MAX)),
            ),
        }
    }

    /// Consumes a string after its opening quote, which is at `begin`.
    pub(super) fn quoted(
        &mut self,
        quote: char,
        begin: usize,
        mode: EscapeMode,
    ) -> Result<Vec<u8>, Reported> {
        let mut out = Vec::new();
        let mut has_errors = false;
        loop {
            let at = self.offset;
            match self.peek() {
                Some(c) if c == quote => {
                    self.next();
                    return if has_errors { Err(Reported) } else { Ok(out) };
                }
                Some('\n') if !matches!(self.dialect, EbnfDialect::Gbnf | EbnfDialect::Kbnf) => {
                    break;
                }
                None => break,
                Some('\\') if mode == EscapeMode::Pattern && !self.is_string_escape() => {
                    self.next();
                    out.push(b'\\');
                    let rest = self.peek().filter(|&c| c != '\n').map_or(0, char::len_utf8);
                    out.extend_from_slice(&self.rest().as_bytes()[..rest]);
                    self.offset += rest;
                }
                Some('\\') => {
                    self.next();
                    match self.escape(at, mode) {
                        Ok(EscapeValue::Byte(byte)) => out.push(byte),
                        Ok(EscapeValue::Point(c)) => {
                            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes())
                        }
                        Err(Reported) => has_errors = true,
                    }
                }
                Some(c) => {
                    self.next();
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        let label = format!("expected `{quote}` before the line ends");
        let mut diagnostic =
            Diagnostic::error(begin..self.offset, "a string without end").label(label);
        if quote == '"' {
            diagnostic = diagnostic.help("a line break inside a string is written `\\n`");
        }
        self.error(diagnostic)
    }

    /// Whether the backslash here begins a string escape, rather than one of regular expressions
    /// only.
    fn is_string_escape(&self) -> bool {
        self.rest()[1..]
            .starts_with(['n', 'r', 't', 'b', 'f', 'v', '0', 'x', 'u', 'c', '/', '\\', '\'', '"'])
    }

    /// Consumes an escape after its backslash, which is at `begin`.
    fn escape(&mut self, begin: usize, mode: EscapeMode) -> Result<EscapeValue, Reported> {
        let Some(c) = self.next() else {
            return self.error(Diagnostic::error(
                begin..self.offset,
                "a backslash at the end of the text",
            ));
        };
        let code = match c {
            'n' => 10,
            'r' => 13,
            't' => 9,
            'b' => 8,
            'f' => 12,
            'a' => 7,
            'v' => 11,
            '0' => 0,
            'e' => 27,
            'x' if mode == EscapeMode::Raw => {
                let code = self.hex(begin, 2..3)?;
                return Ok(EscapeValue::Byte(code as u8));
            }
            'x' if matches!(self.dialect, EbnfDialect::Gbnf | EbnfDialect::Kbnf) => {
                self.hex(begin, 2..3)?
            }
            'x' => {
                let code = self.hex(begin, 1..usize::MAX)?;
                self.check_hex_escape(begin, code)?;
                code
            }
            'u' => self.unicode(begin)?,
            'U' => self.hex(begin, 8..9)?,
            'c' if self.dialect == EbnfDialect::Kbnf
                && self.peek().is_some_and(|c| c.is_ascii_alphabetic()) =>
            {
                self.next().map_or(0, |letter| u32::from(letter) % 32)
            }
            c if c.is_ascii_punctuation() => u32::from(c),
            c => return self.unknown_escape(begin, c),
        };
        match char::from_u32(code) {
            Some(c) => Ok(EscapeValue::Point(c)),
            None => self.error(Diagnostic::error(
                begin..self.offset,
                format!("U+{code:04X} is no character"),
            )),
        }
    }

    /// Consumes the rest of `\u{...}`, `\uXXXX` or a surrogate pair.
    fn unicode(&mut self, begin: usize) -> Result<u32, Reported> {
        if self.eat("{") {
            let code = self.hex(begin, 1..usize::MAX)?;
            return if self.eat("}") { Ok(code) } else { self.expected("`}`") };
        }
        let first = self.hex(begin, 4..5)?;
        if self.rest().starts_with("\\u")
            && let Some(second) =
                self.rest().get(2..6).and_then(|d| u32::from_str_radix(d, 16).ok())
            && let Some(code_point) = surrogate_pair(first, second)
        {
            self.offset += 6;
            return Ok(code_point.into());
        }
        Ok(first)
    }

    /// Reports an escape that strings do not have.
    fn unknown_escape<T>(&mut self, begin: usize, c: char) -> Result<T, Reported> {
        let at = begin..self.offset;
        self.error(match c {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'p' | 'P' => {
                Diagnostic::error(at, format!("`\\{c}` is an escape of regular expressions"))
                    .help("write the characters out, as in `[0-9]`, or use `Regex(\"...\")`")
            }
            c => Diagnostic::error(at, format!("unknown escape `\\{}`", c.escape_default()))
                .help("a backslash itself is written `\\\\`"),
        })
    }

    /// Consumes as many hexadecimal digits as possible, within the range `count`.
    fn hex(&mut self, begin: usize, count: Range<usize>) -> Result<u32, Reported> {
        let digits =
            self.rest().bytes().take(count.end - 1).take_while(u8::is_ascii_hexdigit).count();
        let code = u32::from_str_radix(&self.rest()[..digits], 16);
        self.offset += digits;
        match code {
            Ok(code) if digits >= count.start => Ok(code),
            _ => {
                let at = self.offset;
                let message = match (count.start, digits) {
                    (1, 1..) => "no character has so large a code".to_owned(),
                    (1, _) => "a hexadecimal digit is missing".to_owned(),
                    (n, _) => format!("{n} hexadecimal digits are needed here"),
                };
                self.error(Diagnostic::error(begin..at, message))
            }
        }
    }

    /// Consumes a class after its `[`, which is at `begin`. Returns its ranges, and whether it is
    /// negated.
    pub(super) fn class(
        &mut self,
        begin: usize,
        mode: EscapeMode,
    ) -> Result<(Vec<(u32, u32)>, bool), Reported> {
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        let mut has_errors = false;
        loop {
            let at = self.offset;
            match self.peek() {
                Some(']') => {
                    self.next();
                    return if has_errors { Err(Reported) } else { Ok((ranges, negated)) };
                }
                None | Some('\n') => {
                    return self.error(
                        Diagnostic::error(begin..at, "a class without end")
                            .label("expected `]` before the line ends"),
                    );
                }
                Some(_) => {}
            }
            let Ok(low) = self.class_code(mode) else {
                has_errors = true;
                continue;
            };
            let mut high = low;
            if self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                self.next();
                match self.peek() {
                    None | Some('\n') => continue,
                    Some(_) => match self.class_code(mode) {
                        Ok(code) => high = code,
                        Err(Reported) => {
                            has_errors = true;
                            continue;
                        }
                    },
                }
            }
            if high < low {
                has_errors = true;
                self.diagnostics.push(Diagnostic::error(at..self.offset, "a range out of order"));
            } else {
                ranges.push((low, high));
            }
        }
    }

    /// Consumes one code of a class.
    fn class_code(&mut self, mode: EscapeMode) -> Result<u32, Reported> {
        let begin = self.offset;
        let code = match self.next() {
            Some('\\') => self.escape(begin, mode)?,
            Some(c) => EscapeValue::Point(c),
            None => return Err(Reported),
        };
        match (code, mode) {
            (EscapeValue::Byte(byte), _) => Ok(byte.into()),
            (EscapeValue::Point(c), EscapeMode::Raw) if !c.is_ascii() => {
                self.error(Diagnostic::error(
                    begin..self.offset,
                    "a class of bytes has only ASCII characters and `\\xHH`",
                ))
            }
            (EscapeValue::Point(c), _) => Ok(c.into()),
        }
    }
}

/// Meaning of escapes in a string or a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeMode {
    /// Escapes are code points.
    Text,
    /// As `Text`, but `\x` is a byte.
    Raw,
    /// As `Text`, in a regular expression of KBNF: escapes that strings do not have are kept for
    /// the expression.
    Pattern,
}

/// The value of an escape.
enum EscapeValue {
    Point(char),
    Byte(u8),
}

/// The byte set of a class of bytes.
pub(super) fn byte_set(ranges: &[(u32, u32)], negated: bool) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    for &(lo, hi) in ranges {
        set.insert_range(lo.min(255) as u8, hi.min(255) as u8);
    }
    if negated { set.complement() } else { set }
}

/// Kinds of KBNF terminals, as written after the `#`; longer ones first.
pub(super) const KBNF_TERMINALS: [&str; 4] = ["substrs", "ex", "e", ""];

/// The offset of the quote that ends a string.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices()
        .find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })
        .map(|(at, _)| at)
}

/// The offset of the `]` that ends options; skips strings.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.as_bytes().get(at)? {
            b']' => return Some(at),
            b'"' => at += closing(&text[at + 1..], '"')? + 2,
            _ => at += 1,
        }
    }
}

/// The range from the start of `a` to the end of `b`.
pub(super) fn join(a: &ByteSpan, b: &ByteSpan) -> ByteSpan {
    a.start..b.end
}
