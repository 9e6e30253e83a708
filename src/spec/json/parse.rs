//! Parsing of JSON texts.

use super::{Json, Number, Object};
use crate::hash::IndexMap;
use crate::limits::Limits;
use crate::utf16::{HIGH_SURROGATES, surrogate_pair};

/// Error of a text that is not JSON or exceeds a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
#[non_exhaustive]
pub struct JsonError {
    /// Line, from 1.
    pub line: usize,
    /// Column in code points, from 1.
    pub column: usize,
    /// The reason.
    pub reason: JsonErrorReason,
}

/// The reason of a JSON error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorReason {
    /// Something else was expected.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A raw control character in a string.
    #[error("control characters in a string must be escaped")]
    ControlCharacter,
    /// An escape that JSON does not define.
    #[error("invalid escape in a string")]
    Escape,
    /// Half of a surrogate pair.
    #[error("a surrogate escape without its other half")]
    LoneSurrogate,
    /// A key that occurs twice in one object.
    #[error("duplicate key {0:?}")]
    DuplicateKey(String),
    /// Text after the value.
    #[error("text after the end of the value")]
    Trailing,
    /// Longer than [`Limits::source_bytes`].
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// Nested deeper than [`Limits::depth`].
    #[error("nested deeper than {0}")]
    TooDeep(usize),
}

impl Json {
    /// Parses one JSON value, surrounded by optional white space. Linear.
    ///
    /// ```
    /// use louver::{Json, Limits};
    ///
    /// let json = Json::parse(r#"{"a": ["x", 1.50]}"#, &Limits::default())?;
    /// assert_eq!(json.pointer("/a/0").and_then(Json::as_str), Some("x"));
    /// let error = Json::parse(r#"{"a": 1, "a": 2}"#, &Limits::default()).unwrap_err();
    /// assert_eq!(error.line, 1);
    /// # Ok::<(), louver::JsonError>(())
    /// ```
    pub fn parse(text: &str, limits: &Limits) -> Result<Json, JsonError> {
        JsonParser::new(text, limits).whole(text, limits)
    }

    /// As [`Json::parse`], for texts in which a key may occur twice in one object. As in Python's
    /// `json`, the last value counts, at the place of the first. Also returns those keys. Linear.
    pub fn parse_repeated(text: &str, limits: &Limits) -> Result<(Json, Vec<String>), JsonError> {
        let mut parser = JsonParser::new(text, limits);
        parser.repeated = Some(Vec::new());
        let value = parser.whole(text, limits)?;
        Ok((value, parser.repeated.unwrap_or_default()))
    }
}

/// State of the parser.
struct JsonParser<'t> {
    text: &'t [u8],
    /// Offset of the next byte.
    offset: usize,
    /// Limit on nesting.
    depth: usize,
    /// The keys that occur twice in one object. `None`: they are errors.
    repeated: Option<Vec<String>>,
}

/// Result of parsing a construct.
type ParseResult<T> = Result<T, JsonErrorReason>;

/// The members with distinct keys: the last value of each, at the place of the first. Adds keys
/// that occur again to `repeated`.
fn last_of_each(members: Vec<(String, Json)>, repeated: &mut Vec<String>) -> Vec<(String, Json)> {
    let mut out: IndexMap<String, Json> = IndexMap::default();
    for (key, value) in members {
        if out.contains_key(&key) {
            repeated.push(key.clone());
        }
        out.insert(key, value);
    }
    out.into_iter().collect()
}

impl JsonParser<'_> {
    fn new<'t>(text: &'t str, limits: &Limits) -> JsonParser<'t> {
        // A byte order mark, which RFC 8259 allows parsers to ignore.
        let offset = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        JsonParser { text: text.as_bytes(), offset, depth: limits.depth, repeated: None }
    }

    /// Parses the whole text.
    fn whole(&mut self, text: &str, limits: &Limits) -> Result<Json, JsonError> {
        let result = if text.len() > limits.source_bytes {
            Err(JsonErrorReason::TooLong(limits.source_bytes))
        } else {
            self.document(text)
        };
        result.map_err(|reason| {
            let before = &text.as_bytes()[..self.offset.min(text.len())];
            let line_begin = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
            JsonError {
                line: before.iter().filter(|&&b| b == b'\n').count() + 1,
                column: before[line_begin..].iter().filter(|&&b| b & 0xC0 != 0x80).count() + 1,
                reason,
            }
        })
    }

    /// Parses a value and checks that nothing follows it.
    fn document(&mut self, text: &str) -> ParseResult<Json> {
        let value = self.value(text, 0)?;
        self.space();
        if self.offset < self.text.len() {
            return Err(JsonErrorReason::Trailing);
        }
        Ok(value)
    }

    /// Skips white space.
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    /// The next byte.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    /// Skips white space and consumes `byte` if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let is_next = self.peek() == Some(byte);
        self.offset += usize::from(is_next);
        is_next
    }

    /// Parses a value.
    fn value(&mut self, text: &str, depth: usize) -> ParseResult<Json> {
        if depth >= self.depth {
            return Err(JsonErrorReason::TooDeep(self.depth));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(text, depth),
            Some(b'[') => {
                self.offset += 1;
                let mut items = Vec::new();
                if self.take(b']') {
                    return Ok(Json::Array(items));
                }
                loop {
                    items.push(self.value(text, depth + 1)?);
                    if self.take(b']') {
                        items.shrink_to_fit();
                        return Ok(Json::Array(items));
                    }
                    if !self.take(b',') {
                        return Err(JsonErrorReason::Expected("`,` or `]`"));
                    }
                }
            }
            Some(b'"') => Ok(Json::String(self.string(text)?)),
            Some(b'-' | b'0'..=b'9') => self.number(text),
            _ => {
                let words = [
                    ("null", Json::Null),
                    ("true", Json::Bool(true)),
                    ("false", Json::Bool(false)),
                ];
                for (word, value) in words {
                    if self.text[self.offset..].starts_with(word.as_bytes()) {
                        self.offset += word.len();
                        return Ok(value);
                    }
                }
                Err(JsonErrorReason::Expected("a value"))
            }
        }
    }

    /// Parses an object.
    fn object(&mut self, text: &str, depth: usize) -> ParseResult<Json> {
        self.offset += 1;
        let (mut members, mut key_offsets) = (Vec::new(), Vec::new());
        if !self.take(b'}') {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err(JsonErrorReason::Expected("a key in double quotes"));
                }
                key_offsets.push(self.offset);
                let key = self.string(text)?;
                if !self.take(b':') {
                    return Err(JsonErrorReason::Expected("`:`"));
                }
                members.push((key, self.value(text, depth + 1)?));
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(JsonErrorReason::Expected("`,` or `}`"));
                }
            }
        }
        if let Some(repeated) = &mut self.repeated {
            members = last_of_each(members, repeated);
        }
        Object::new(members).map(Json::Object).map_err(|repeated| {
            self.offset = key_offsets[repeated.at];
            JsonErrorReason::DuplicateKey(repeated.key)
        })
    }

    /// Parses a number.
    fn number(&mut self, text: &str) -> ParseResult<Json> {
        let begin = self.offset;
        self.offset += usize::from(self.peek() == Some(b'-'));
        let integer = self.digits()?;
        if integer > 1 && self.text[self.offset - integer] == b'0' {
            self.offset -= integer - 1;
            return Err(JsonErrorReason::Expected("no digit after a leading zero"));
        }
        if self.peek() == Some(b'.') {
            self.offset += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.offset += 1;
            self.offset += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Json::Number(Number(text[begin..self.offset].into())))
    }

    /// Consumes one or more digits; returns their number.
    fn digits(&mut self) -> ParseResult<usize> {
        let count = self.text[self.offset..].iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 {
            return Err(JsonErrorReason::Expected("a digit"));
        }
        self.offset += count;
        Ok(count)
    }

    /// Parses a string.
    fn string(&mut self, text: &str) -> ParseResult<String> {
        self.offset += 1;
        let mut out = String::new();
        loop {
            let plain = self.text[self.offset..]
                .iter()
                .take_while(|&&b| b >= 0x20 && b != b'"' && b != b'\\')
                .count();
            out.push_str(&text[self.offset..self.offset + plain]);
            self.offset += plain;
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.offset += 1;
                    out.push(self.escape()?);
                }
                Some(_) => return Err(JsonErrorReason::ControlCharacter),
                None => return Err(JsonErrorReason::Expected("`\"`")),
            }
        }
    }

    /// Parses an escape, after its backslash.
    fn escape(&mut self) -> ParseResult<char> {
        let kind = self.peek().ok_or(JsonErrorReason::Escape)?;
        let plain = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(JsonErrorReason::Escape),
        };
        self.offset += 1;
        Ok(plain)
    }

    /// Parses `uXXXX` or a surrogate pair.
    fn unicode_escape(&mut self) -> ParseResult<char> {
        let first = self.hex4()?;
        let is_pair =
            HIGH_SURROGATES.contains(&first) && self.text[self.offset..].starts_with(b"\\u");
        let code_point = if is_pair {
            self.offset += 1;
            surrogate_pair(first, self.hex4()?)
        } else {
            char::from_u32(first)
        };
        code_point.ok_or(JsonErrorReason::LoneSurrogate)
    }

    /// Consumes the `u` and four hexadecimal digits.
    fn hex4(&mut self) -> ParseResult<u32> {
        self.offset += 1;
        let mut code = 0;
        for _ in 0..4 {
            let digit = self
                .peek()
                .and_then(|b| char::from(b).to_digit(16))
                .ok_or(JsonErrorReason::Escape)?;
            code = code * 16 + digit;
            self.offset += 1;
        }
        Ok(code)
    }
}
