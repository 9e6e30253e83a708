//! Literals that are not JSON, read as JSON: Python's, and strings between delimiters.

use crate::channel::decode;

/// What literals look like.
#[derive(Clone, Debug, PartialEq)]
enum Style {
    /// `a=1, b='x'`: keyword arguments, Python's literals.
    Keywords,
    /// `{a:1,b:<q>x<q>}`: strings between two of these.
    Delimited(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// Between tokens, or in a word.
    Plain,
    /// In a Python string.
    Quoted(u8),
    /// Behind a backslash in a Python string; the escape so far.
    Escape(u8, Vec<u8>),
    /// In a delimited string; bytes that may be its end.
    Marked(Vec<u8>),
}

/// Reads literals in any chunks. What it reads has been accepted by the grammar; on anything else its output is
/// unspecified.
#[derive(Clone, Debug)]
pub(crate) struct LiteralReader {
    style: Style,
    state: State,
    /// A word, number, name or begun delimiter.
    word: Vec<u8>,
    open: Vec<u8>,
    /// A name comes next, in styles where names are not strings.
    name_next: bool,
    /// Whether a keyword argument has been read.
    any: bool,
    out: Vec<u8>,
}

impl LiteralReader {
    fn new(style: Style) -> Self {
        let name_next = style == Style::Keywords;
        let (word, open, out) = (Vec::new(), Vec::new(), Vec::new());
        LiteralReader { style, state: State::Plain, word, open, name_next, any: false, out }
    }

    pub(crate) fn keywords() -> Self {
        Self::new(Style::Keywords)
    }

    pub(crate) fn delimited(mark: &str) -> Self {
        Self::new(Style::Delimited(mark.as_bytes().to_vec()))
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        for &byte in bytes {
            match std::mem::replace(&mut self.state, State::Plain) {
                State::Plain => self.plain(byte),
                State::Quoted(quote) => self.quoted(quote, byte),
                State::Escape(quote, begun) => self.escape(quote, begun, byte),
                State::Marked(held) => self.marked(held, byte),
            }
        }
        let (text, rest) = decode(&self.out);
        let kept = self.out.split_off(self.out.len() - rest);
        self.out = kept;
        text
    }

    pub(crate) fn close(&mut self) -> String {
        self.word_ends();
        if self.style == Style::Keywords {
            self.out.extend_from_slice(if self.any { b"}" } else { b"{}" });
        }
        let text = String::from_utf8_lossy(&self.out).into_owned();
        *self = Self::new(self.style.clone());
        text
    }

    fn plain(&mut self, byte: u8) {
        let top = self.open.is_empty();
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.word_ends(),
            b'=' if self.style == Style::Keywords && top && self.name_next => {
                if !std::mem::replace(&mut self.any, true) {
                    self.out.push(b'{');
                }
                self.name();
                self.out.extend_from_slice(b": ");
                self.name_next = false;
            }
            b',' => {
                self.word_ends();
                self.out.extend_from_slice(b", ");
                self.name_next = match self.style {
                    Style::Keywords => top,
                    Style::Delimited(_) => self.open.last() == Some(&b'{'),
                };
            }
            b':' => {
                if self.name_next {
                    self.name();
                }
                self.out.extend_from_slice(b": ");
                self.name_next = false;
            }
            b'[' | b'{' => {
                self.open.push(byte);
                self.out.push(byte);
                self.name_next = byte == b'{' && self.style != Style::Keywords;
            }
            b']' | b'}' => {
                self.word_ends();
                self.open.pop();
                self.out.push(byte);
                self.name_next = false;
            }
            b'"' | b'\'' if self.style == Style::Keywords => {
                self.out.push(b'"');
                self.state = State::Quoted(byte);
            }
            _ => {
                self.word.push(byte);
                if matches!(&self.style, Style::Delimited(mark) if *mark == self.word) {
                    self.word.clear();
                    self.out.push(b'"');
                    self.state = State::Marked(Vec::new());
                }
            }
        }
    }

    fn name(&mut self) {
        self.out.push(b'"');
        for byte in std::mem::take(&mut self.word) {
            self.char_byte(byte);
        }
        self.out.push(b'"');
    }

    fn word_ends(&mut self) {
        if self.name_next {
            return;
        }
        let word = std::mem::take(&mut self.word);
        self.out.extend_from_slice(match (&self.style, &word[..]) {
            (Style::Keywords, b"True") => b"true",
            (Style::Keywords, b"False") => b"false",
            (Style::Keywords, b"None") => b"null",
            (_, other) => other,
        });
    }

    fn quoted(&mut self, quote: u8, byte: u8) {
        match byte {
            b'\\' => self.state = State::Escape(quote, Vec::new()),
            _ if byte == quote => self.out.push(b'"'),
            _ => {
                self.char_byte(byte);
                self.state = State::Quoted(quote);
            }
        }
    }

    fn escape(&mut self, quote: u8, mut begun: Vec<u8>, byte: u8) {
        begun.push(byte);
        let wanted = match begun[0] {
            b'x' => 3,
            b'u' => 5,
            _ => 1,
        };
        if begun.len() < wanted {
            self.state = State::Escape(quote, begun);
            return;
        }
        self.state = State::Quoted(quote);
        match begun[0] {
            letter @ (b'n' | b't' | b'r' | b'b' | b'f') => {
                self.out.extend_from_slice(&[b'\\', letter])
            }
            b'x' | b'u' => {
                let digits = std::str::from_utf8(&begun[1..])
                    .ok()
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                let c = digits.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.char_byte(byte));
            }
            other => self.char_byte(other),
        }
    }

    fn marked(&mut self, mut held: Vec<u8>, byte: u8) {
        let Style::Delimited(mark) = &self.style else { return };
        held.push(byte);
        if held == *mark {
            self.out.push(b'"');
            return;
        }
        // What cannot be the beginning of the end is text.
        let from =
            (0..held.len()).find(|&from| mark.starts_with(&held[from..])).unwrap_or(held.len());
        let rest = held.split_off(from);
        held.into_iter().for_each(|byte| self.char_byte(byte));
        self.state = State::Marked(rest);
    }

    /// A byte of a string's content.
    fn char_byte(&mut self, byte: u8) {
        match byte {
            b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', byte]),
            b'\n' => self.out.extend_from_slice(b"\\n"),
            b'\r' => self.out.extend_from_slice(b"\\r"),
            b'\t' => self.out.extend_from_slice(b"\\t"),
            8 => self.out.extend_from_slice(b"\\b"),
            12 => self.out.extend_from_slice(b"\\f"),
            0..0x20 => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => self.out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_cut(make: impl Fn() -> LiteralReader, text: &str, want: &str) {
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
    fn keyword_arguments() {
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
        ] {
            every_cut(LiteralReader::keywords, text, want);
        }
    }

    #[test]
    fn delimited_strings() {
        for (text, want) in [
            ("{}", "{}"),
            (r#"{a:1,b:<|"|>x<|"|>}"#, r#"{"a": 1, "b": "x"}"#),
            (
                r#"{a:<|"|><|<|"|>,o:{k:[<|"|>é"\<|"|>,true]}}"#,
                r#"{"a": "<|", "o": {"k": ["é\"\\", true]}}"#,
            ),
        ] {
            every_cut(|| LiteralReader::delimited("<|\"|>"), text, want);
        }
    }
}
