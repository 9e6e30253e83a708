//! JSON values with exact numbers: keeps member order and the text of numbers, rejects duplicate
//! keys.
//!
//! `serde_json::Value` does not fit: without the feature `arbitrary_precision` numbers lose digits,
//! and with it every crate of the host program would get that feature.

use std::borrow::Cow;
use std::fmt;

use crate::limits::Limits;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as its exact text.
    Number(Number),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, members in source order.
    Object(Object),
}

/// The exact text of a JSON number. Equality is textual: `1` and `1.0` differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

impl Number {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Minimum number of members of an object with a sorted index.
const INDEXED: usize = 12;

/// The members of a JSON object in source order; keys are distinct.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    members: Vec<(String, Json)>,
    /// Positions sorted by key; empty in small objects.
    index: Vec<u32>,
}

impl Object {
    /// An object of members. Errors: a repeated key.
    pub fn new(members: Vec<(String, Json)>) -> Result<Object, String> {
        let mut index = Vec::new();
        let repeated = if members.len() < INDEXED {
            members
                .iter()
                .enumerate()
                .find(|(i, (k, _))| members[..*i].iter().any(|(other, _)| other == k))
        } else {
            index = (0..members.len() as u32).collect();
            index.sort_by(|a, b| members[*a as usize].0.cmp(&members[*b as usize].0));
            let twice =
                index.windows(2).find(|w| members[w[0] as usize].0 == members[w[1] as usize].0);
            twice.map(|w| (w[1] as usize, &members[w[1] as usize]))
        };
        match repeated {
            Some((_, (key, _))) => Err(key.clone()),
            None => Ok(Object { members, index }),
        }
    }

    /// The value of a key. Cost: logarithmic.
    pub fn get(&self, key: &str) -> Option<&Json> {
        if self.index.is_empty() {
            return self.members.iter().find(|(k, _)| k == key).map(|(_, v)| v);
        }
        let at =
            self.index.binary_search_by(|&i| self.members[i as usize].0.as_str().cmp(key)).ok()?;
        Some(&self.members[self.index[at] as usize].1)
    }

    /// The members in source order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.members.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Names of members that are not in `known` and whose value is not `null`.
    pub fn unknown<'a>(&'a self, known: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let unknown =
            self.iter().filter(|(name, value)| !known.contains(name) && **value != Json::Null);
        unknown.map(|(name, _)| name)
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// Error of a text that is not JSON or exceeds a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
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
        let mut parser = JsonParser { text: text.as_bytes(), offset: 0, depth: limits.depth };
        let result = if text.len() > limits.source_bytes {
            Err(JsonErrorReason::TooLong(limits.source_bytes))
        } else {
            parser.document(text)
        };
        result.map_err(|reason| {
            let before = &text.as_bytes()[..parser.offset.min(text.len())];
            let line_begin = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
            JsonError {
                line: before.iter().filter(|&&b| b == b'\n').count() + 1,
                column: before[line_begin..].iter().filter(|&&b| b & 0xC0 != 0x80).count() + 1,
                reason,
            }
        })
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Json::String(s) = self { Some(s) } else { None }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        if let Json::Array(a) = self { Some(a) } else { None }
    }

    /// The members, if it is an object.
    pub fn as_object(&self) -> Option<&Object> {
        if let Json::Object(o) = self { Some(o) } else { None }
    }

    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.as_object()?.get(key)
    }

    /// The value at an RFC 6901 JSON pointer (not percent-encoded; `""` is the value itself).
    pub fn pointer(&self, pointer: &str) -> Option<&Json> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer
            .strip_prefix('/')?
            .split('/')
            .try_fold(self, |value, token| value.step(&unescape_token(token)))
    }

    /// The value at one token of a JSON pointer; the token is unescaped.
    pub fn step(&self, token: &str) -> Option<&Json> {
        match self {
            Json::Object(object) => object.get(token),
            Json::Array(items) => {
                let canonical = token == "0"
                    || (!token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
                items.get(token.parse::<usize>().ok().filter(|_| canonical)?)
            }
            _ => None,
        }
    }

    /// Approximate memory size in bytes. Iterative.
    pub fn bytes(&self) -> usize {
        let mut bytes = 0;
        let mut stack = vec![self];
        while let Some(value) = stack.pop() {
            bytes += size_of::<Json>();
            match value {
                Json::Null | Json::Bool(_) => {}
                Json::Number(number) => bytes += number.0.len(),
                Json::String(text) => bytes += text.len(),
                Json::Array(items) => stack.extend(items),
                Json::Object(object) => {
                    bytes += object
                        .members
                        .iter()
                        .map(|(name, _)| size_of::<String>() + name.len())
                        .sum::<usize>();
                    stack.extend(object.members.iter().map(|(_, value)| value));
                }
            }
        }
        bytes
    }

    /// The depth of nesting, at most `cap`. Iterative.
    pub fn depth(&self, cap: usize) -> usize {
        let mut deepest = 0;
        let mut stack = vec![(self, 1)];
        while let Some((value, depth)) = stack.pop() {
            deepest = deepest.max(depth);
            if deepest >= cap {
                return cap;
            }
            let children: &mut dyn Iterator<Item = &Json> = match value {
                Json::Array(items) => &mut items.iter(),
                Json::Object(object) => &mut object.iter().map(|(_, value)| value),
                _ => continue,
            };
            for value in children {
                match value {
                    Json::Array(_) | Json::Object(_) => stack.push((value, depth + 1)),
                    _ => deepest = deepest.max(depth + 1).min(cap),
                }
            }
        }
        deepest
    }
}

/// Appends `/token` to a JSON pointer, escaped (RFC 6901).
pub fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Unescapes the `~` escapes of a JSON pointer token.
pub fn unescape_token(token: &str) -> Cow<'_, str> {
    match token.contains('~') {
        true => token.replace("~1", "/").replace("~0", "~").into(),
        false => token.into(),
    }
}

/// The two-character escape of a character in JSON (RFC 8259, section 7) and Python; `None` if it
/// has none.
pub fn short_escape(c: char) -> Option<&'static str> {
    Some(match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        _ => return None,
    })
}

/// Writes a value with `", "` between elements and members and `": "` after names, as Python does.
/// `string` writes strings and names, `scalar` other scalars.
pub fn write_spaced(
    out: &mut String,
    value: &Json,
    string: fn(&mut String, &str),
    scalar: fn(&mut String, &Json),
) {
    match value {
        Json::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_spaced(out, item, string, scalar);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (i, (name, item)) in members.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                string(out, name);
                out.push_str(": ");
                write_spaced(out, item, string, scalar);
            }
            out.push('}');
        }
        Json::String(text) => string(out, text),
        Json::Null | Json::Bool(_) | Json::Number(_) => scalar(out, value),
    }
}

/// Writes a JSON string with only the escapes that JSON requires.
pub fn write_string(out: &mut String, text: &str) {
    use fmt::Write;
    out.push('"');
    for c in text.chars() {
        match (short_escape(c), c) {
            (Some(escape), _) => out.push_str(escape),
            (None, c) if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            (None, c) => out.push(c),
        }
    }
    out.push('"');
}

/// Compact JSON.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(b) => write!(f, "{b}"),
            Json::Number(n) => f.write_str(n.as_str()),
            Json::String(s) => {
                let mut out = String::new();
                write_string(&mut out, s);
                f.write_str(&out)
            }
            Json::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Json::Object(object) => {
                f.write_str("{")?;
                for (i, (key, value)) in object.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    let mut out = String::new();
                    write_string(&mut out, key);
                    write!(f, "{out}:{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Json {
        use serde_json::Value;
        match value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number(n) => Json::Number(Number(n.to_string().into())),
            Value::String(s) => Json::String(s.clone()),
            Value::Array(items) => Json::Array(items.iter().map(Json::from).collect()),
            Value::Object(map) => {
                let members = map.iter().map(|(k, v)| (k.clone(), Json::from(v))).collect();
                Json::Object(Object::new(members).unwrap_or_default()) // Map keys are distinct.
            }
        }
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        Json::from(&value)
    }
}

/// State of the parser.
struct JsonParser<'t> {
    text: &'t [u8],
    /// Offset of the next byte.
    offset: usize,
    /// Limit on nesting.
    depth: usize,
}

/// Result of parsing a construct.
type ParseResult<T> = Result<T, JsonErrorReason>;

impl JsonParser<'_> {
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
        let begin = self.offset;
        self.offset += 1;
        let mut members = Vec::new();
        if !self.take(b'}') {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err(JsonErrorReason::Expected("a key in double quotes"));
                }
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
        match Object::new(members) {
            Ok(object) => Ok(Json::Object(object)),
            Err(key) => {
                self.offset = begin;
                Err(JsonErrorReason::DuplicateKey(key))
            }
        }
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
        let code =
            if (0xD800..0xDC00).contains(&first) && self.text[self.offset..].starts_with(b"\\u") {
                self.offset += 1;
                let second = self.hex4()?;
                if !(0xDC00..0xE000).contains(&second) {
                    return Err(JsonErrorReason::LoneSurrogate);
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            } else {
                first
            };
        char::from_u32(code).ok_or(JsonErrorReason::LoneSurrogate)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Json, JsonError> {
        Json::parse(text, &Limits::default())
    }

    #[test]
    fn display_keeps_member_order_and_number_text() {
        let text = r#"{"b":1.50,"a":[123456789012345678901234567890,-0,1E+2],"c":{"":null}}"#;
        assert_eq!(parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn strings_decode_escapes_and_surrogate_pairs() {
        assert_eq!(parse(r#""\u0041\n\/\ud83d\ude00""#).unwrap(), Json::String("A\n/😀".into()));
        for text in
            [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dA""#, r#""\ud83dA""#, r#""\x""#, r#""\u12g4""#]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn malformed_json_is_an_error() {
        for text in [
            "",
            "01",
            "1.",
            "-",
            ".5",
            "1e",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "tru",
            "1 2",
            "\"\n\"",
            "[",
            "\"a",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_state_line_and_column() {
        let error = parse("{\n  \"é\": tru\n}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 8));
        let error = parse("{\"a\":1,\n\"a\":2}").unwrap_err();
        assert_eq!(error.reason, JsonErrorReason::DuplicateKey("a".into()));
    }

    #[test]
    fn duplicate_keys_in_large_objects_are_errors() {
        let members: Vec<String> = (0..500).map(|i| format!("\"k{i}\":{i}")).collect();
        let text = format!("{{{}}}", members.join(","));
        assert_eq!(parse(&text).unwrap().get("k499"), parse("499").ok().as_ref());
        let twice = format!("{{{},\"k7\":0}}", members.join(","));
        assert_eq!(parse(&twice).unwrap_err().reason, JsonErrorReason::DuplicateKey("k7".into()));
    }

    #[test]
    fn limits_on_depth_and_length_hold() {
        let limits = Limits { depth: 3, source_bytes: 20, ..Limits::default() };
        assert!(Json::parse("[[1]]", &limits).is_ok());
        assert_eq!(
            Json::parse("[[[1]]]", &limits).unwrap_err().reason,
            JsonErrorReason::TooDeep(3)
        );
        assert_eq!(
            Json::parse(&"1".repeat(21), &limits).unwrap_err().reason,
            JsonErrorReason::TooLong(20)
        );
    }

    #[test]
    fn json_pointers_resolve_and_escape() {
        let json = parse(r#"{"a/b":[1,{"~":2}]}"#).unwrap();
        assert_eq!(json.pointer("/a~1b/1/~0").unwrap().to_string(), "2");
        assert_eq!(json.pointer("/a~1b/01"), None);
        assert_eq!(json.pointer(""), Some(&json));
        let mut pointer = String::new();
        push_token(&mut pointer, "a/b~");
        assert_eq!(pointer, "/a~1b~0");
    }
}
