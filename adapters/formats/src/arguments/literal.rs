//! A streaming reader of literals that are not JSON: Python's, and strings between delimiters.

use louver::spec::json::short_escape;

use crate::channel::{decode, is_space};

/// The syntax of literals.
#[derive(Clone, Debug, PartialEq)]
enum LiteralSyntax {
    /// Keyword arguments with Python's literals: `a=1, b='x'`.
    Keywords,
    /// Bare names and strings between two of these: `{a:1,b:<q>x<q>}`.
    Delimited(Vec<u8>),
    /// One value, in JSON or as a Python literal: `{"a": null}`, `{'a': None}`. JSON is copied.
    Value,
}

#[derive(Clone, Debug, PartialEq)]
enum LiteralState {
    /// Between tokens, or in a word.
    Plain,
    /// In a Python string.
    Quoted(u8),
    /// After a backslash in a Python string. Has the escape so far.
    Escape(u8, Vec<u8>),
    /// In a delimited string. Has the bytes that may begin the end marker.
    Marked(Vec<u8>),
}

/// Reads literals in chunks, and writes them as JSON text. The grammar must allow what it reads;
/// the output for anything else is unspecified.
#[derive(Clone, Debug)]
pub(crate) struct LiteralReader {
    syntax: LiteralSyntax,
    state: LiteralState,
    /// The bytes of a word, number, name or delimiter so far.
    word: Vec<u8>,
    /// The open brackets.
    open: Vec<u8>,
    /// Whether the next word is a name that is not a string.
    name_next: bool,
    /// Whether a keyword argument has been read.
    has_argument: bool,
    out: Vec<u8>,
}

impl LiteralReader {
    fn new(syntax: LiteralSyntax) -> Self {
        let name_next = syntax == LiteralSyntax::Keywords;
        let (word, open, out) = (Vec::new(), Vec::new(), Vec::new());
        LiteralReader {
            syntax,
            state: LiteralState::Plain,
            word,
            open,
            name_next,
            has_argument: false,
            out,
        }
    }

    pub(crate) fn keywords() -> Self {
        Self::new(LiteralSyntax::Keywords)
    }

    pub(crate) fn delimited(mark: &str) -> Self {
        Self::new(LiteralSyntax::Delimited(mark.as_bytes().to_vec()))
    }

    pub(crate) fn value() -> Self {
        Self::new(LiteralSyntax::Value)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        for &byte in bytes {
            match std::mem::replace(&mut self.state, LiteralState::Plain) {
                LiteralState::Plain => self.plain(byte),
                LiteralState::Quoted(quote) => self.quoted(quote, byte),
                LiteralState::Escape(quote, escape) => self.escape(quote, escape, byte),
                LiteralState::Marked(held) => self.marked(held, byte),
            }
        }
        let (text, rest) = decode(&self.out);
        self.out = self.out.split_off(self.out.len() - rest);
        text
    }

    pub(crate) fn close(&mut self) -> String {
        self.end_word();
        if self.syntax == LiteralSyntax::Keywords {
            self.out.extend_from_slice(if self.has_argument { b"}" } else { b"{}" });
        }
        let text = String::from_utf8_lossy(&self.out).into_owned();
        *self = Self::new(self.syntax.clone());
        text
    }

    /// Ends a value that was cut off, and returns what is decided of the rest.
    pub(crate) fn cut(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.out).into_owned();
        *self = Self::new(self.syntax.clone());
        text
    }

    fn plain(&mut self, byte: u8) {
        if self.syntax == LiteralSyntax::Value && !matches!(byte, b'"' | b'\'') {
            return self.plain_of_value(byte);
        }
        let top = self.open.is_empty();
        match byte {
            _ if self.name_next && !self.ends_name(byte) => self.word.push(byte),
            _ if is_space(byte) => self.end_word(),
            b'=' if self.name_next => {
                if !std::mem::replace(&mut self.has_argument, true) {
                    self.out.push(b'{');
                }
                self.name();
            }
            b',' => {
                self.end_word();
                self.out.extend_from_slice(b", ");
                self.name_next = match self.syntax {
                    LiteralSyntax::Keywords => top,
                    _ => self.open.last() == Some(&b'{'),
                };
            }
            b':' if self.name_next => self.name(),
            b':' => self.out.extend_from_slice(b": "),
            b'[' | b'{' => {
                self.open.push(byte);
                self.out.push(byte);
                self.name_next = byte == b'{' && self.syntax != LiteralSyntax::Keywords;
            }
            b']' | b'}' => {
                self.end_word();
                self.open.pop();
                self.out.push(byte);
                self.name_next = false;
            }
            b'"' | b'\'' if !matches!(self.syntax, LiteralSyntax::Delimited(_)) => {
                self.out.push(b'"');
                self.state = LiteralState::Quoted(byte);
            }
            _ => {
                self.word.push(byte);
                if matches!(&self.syntax, LiteralSyntax::Delimited(mark) if *mark == self.word) {
                    self.word.clear();
                    self.out.push(b'"');
                    self.state = LiteralState::Marked(Vec::new());
                }
            }
        }
    }

    /// Copies a byte between strings, unless it belongs to a word of Python.
    fn plain_of_value(&mut self, byte: u8) {
        let is_letter = byte.is_ascii_alphabetic();
        if is_letter && (!self.word.is_empty() || matches!(byte, b'T' | b'F' | b'N')) {
            return self.word.push(byte);
        }
        self.end_word();
        self.out.push(byte);
    }

    /// Whether a byte ends a name that is not a string. All others belong to it.
    fn ends_name(&self, byte: u8) -> bool {
        match self.syntax {
            LiteralSyntax::Keywords => byte == b'=',
            // An object may have no member.
            _ => matches!(byte, b':' | b'}'),
        }
    }

    /// Writes the word as a name, without the white space around it.
    fn name(&mut self) {
        self.out.push(b'"');
        for &byte in std::mem::take(&mut self.word).trim_ascii() {
            self.char_byte(byte);
        }
        self.out.extend_from_slice(b"\": ");
        self.name_next = false;
    }

    fn end_word(&mut self) {
        let mut word = std::mem::take(&mut self.word);
        if self.name_next {
            // A name without a value, as in `f("x")`: no JSON, so that it is not lost.
            word.retain(|&byte| !is_space(byte));
            return self.out.extend_from_slice(&word);
        }
        self.out.extend_from_slice(match (&self.syntax, &word[..]) {
            (LiteralSyntax::Delimited(_), other) => other,
            (_, b"True") => b"true",
            (_, b"False") => b"false",
            (_, b"None") => b"null",
            (_, other) => other,
        });
    }

    fn quoted(&mut self, quote: u8, byte: u8) {
        match byte {
            b'\\' => self.state = LiteralState::Escape(quote, Vec::new()),
            _ if byte == quote => self.out.push(b'"'),
            _ => {
                self.char_byte(byte);
                self.state = LiteralState::Quoted(quote);
            }
        }
    }

    fn escape(&mut self, quote: u8, mut escape: Vec<u8>, byte: u8) {
        escape.push(byte);
        let len = match escape[0] {
            b'x' => 3,
            b'u' => 5,
            _ => 1,
        };
        if escape.len() < len {
            self.state = LiteralState::Escape(quote, escape);
            return;
        }
        self.state = LiteralState::Quoted(quote);
        let may_be_json = self.syntax == LiteralSyntax::Value && quote == b'"';
        match escape[0] {
            b'u' | b'/' if may_be_json => {
                self.out.push(b'\\');
                self.out.extend_from_slice(&escape);
            }
            letter @ (b'n' | b't' | b'r' | b'b' | b'f') => {
                self.out.extend_from_slice(&[b'\\', letter])
            }
            b'x' | b'u' => {
                let digits = std::str::from_utf8(&escape[1..])
                    .ok()
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                let c = digits.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.char_byte(byte));
            }
            other => self.char_byte(other),
        }
    }

    fn marked(&mut self, mut held: Vec<u8>, byte: u8) {
        let LiteralSyntax::Delimited(mark) = &self.syntax else { return };
        held.push(byte);
        if held == *mark {
            self.out.push(b'"');
            return;
        }
        // Bytes that cannot begin the end marker are text.
        let from =
            (0..held.len()).find(|&from| mark.starts_with(&held[from..])).unwrap_or(held.len());
        let rest = held.split_off(from);
        held.into_iter().for_each(|byte| self.char_byte(byte));
        self.state = LiteralState::Marked(rest);
    }

    /// Writes a byte of a string's content.
    fn char_byte(&mut self, byte: u8) {
        match short_escape(char::from(byte)) {
            Some(escape) => self.out.extend_from_slice(escape.as_bytes()),
            None if byte < 0x20 => {
                self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            }
            None => self.out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_reads_in_two_chunks(make: impl Fn() -> LiteralReader, text: &str, want: &str) {
        for cut in 0..=text.len() {
            let mut reader = make();
            let parts = [
                reader.push(&text.as_bytes()[..cut]),
                reader.push(&text.as_bytes()[cut..]),
                reader.close(),
            ];
            assert_eq!(parts.concat(), want, "{text} cut at {cut}");
        }
    }

    #[test]
    fn keyword_arguments_become_json() {
        for (text, want) in [
            ("", "{}"),
            ("a=1", r#"{"a": 1}"#),
            (
                "a=True, b=[None, False],c={'x': 1.5e3}",
                r#"{"a": true, "b": [null, false], "c": {"x": 1.5e3}}"#,
            ),
            (
                r#"s='it"s \'\\\n\x7f\u00e9é', t="""#,
                "{\"s\": \"it\\\"s '\\\\\\n\u{7f}éé\", \"t\": \"\"}",
            ),
            ("a={}, b=[[], {}]", r#"{"a": {}, "b": [[], {}]}"#),
            ("n=-1", r#"{"n": -1}"#),
            ("s='None, x=1'", r#"{"s": "None, x=1"}"#),
            ("x:y=1, [a={'b': 2}, }{=[3]", r#"{"x:y": 1, "[a": {"b": 2}, "}{": [3]}"#),
        ] {
            assert_reads_in_two_chunks(LiteralReader::keywords, text, want);
        }
    }

    #[test]
    fn values_of_json_are_copied_and_those_of_python_become_json() {
        for text in [
            "12",
            "-1.5e+3",
            "true",
            "null",
            r#" {"a":[1, null ],"b" : {}} "#,
            r#"["it's \"\/\\\n\ud83d\ude00\u0001é", "True", "[None"]"#,
        ] {
            assert_reads_in_two_chunks(LiteralReader::value, text, text);
        }
        for (text, want) in [
            ("True", "true"),
            ("None", "null"),
            ("[True, False,None]", "[true, false,null]"),
            ("{'a': ['b', {}], 'c d': 1.5}", r#"{"a": ["b", {}], "c d": 1.5}"#),
            (r#"['say "x"', "it's \x07", '\'\\\n']"#, r#"["say \"x\"", "it's \u0007", "'\\\n"]"#),
            ("['None', 'é, True']", r#"["None", "é, True"]"#),
        ] {
            assert_reads_in_two_chunks(LiteralReader::value, text, want);
        }
    }

    #[test]
    fn delimited_strings_become_json() {
        for (text, want) in [
            ("{}", "{}"),
            (r#"{a:1,b:<|"|>x<|"|>}"#, r#"{"a": 1, "b": "x"}"#),
            (
                r#"{a:<|"|><|<|"|>,o:{k:[<|"|>é"\<|"|>,true]}}"#,
                r#"{"a": "<|", "o": {"k": ["é\"\\", true]}}"#,
            ),
            ("{ a  b : 1, c\td:{ },e: [{\n}] }", r#"{"a  b": 1, "c\td": {}, "e": [{}]}"#),
        ] {
            assert_reads_in_two_chunks(|| LiteralReader::delimited("<|\"|>"), text, want);
        }
    }
}
