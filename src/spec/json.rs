//! JSON values with exact numbers: keeps member order and the text of numbers, rejects duplicate
//! keys.
//!
//! `serde_json::Value` does not fit: without the feature `arbitrary_precision` numbers lose digits,
//! and with it every crate of the host program would get that feature.

mod parse;
mod write;

use std::borrow::Cow;

use crate::decimal::Decimal;

pub use self::parse::{JsonError, JsonErrorReason};
pub use self::write::{short_escape, write_spaced, write_string};

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Hash)]
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
    /// Whether it has the value of `text`, which is that of a JSON number, exactly.
    ///
    /// ```
    /// use louver::{Json, Limits};
    ///
    /// # fn main() -> Result<(), louver::JsonError> {
    /// let Json::Number(number) = Json::parse("10e-1", &Limits::default())? else { panic!() };
    /// assert!(number.is_equal_to("1.0") && !number.is_equal_to("1.00000000000000000000001"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_equal_to(&self, text: &str) -> bool {
        Decimal::parse(&self.0) == Decimal::parse(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Minimum number of members of an object with a sorted index.
const INDEXED: usize = 12;

/// The members of a JSON object in source order; keys are distinct.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub struct Object {
    // Boxed slices keep a value small: 40 bytes.
    members: Box<[(String, Json)]>,
    /// Positions sorted by key; empty in small objects.
    index: Box<[u32]>,
}

/// A key that an object has twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate key {key:?}")]
pub struct RepeatedKey {
    /// The key.
    pub key: String,
    /// The index of a later one of the members with the key.
    pub at: usize,
}

impl Object {
    /// An object of members. Errors: a repeated key.
    pub fn new(members: Vec<(String, Json)>) -> Result<Object, RepeatedKey> {
        let mut index = Vec::new();
        let repeated = if members.len() < INDEXED {
            let is_repeated = |&at: &usize| members[..at].iter().any(|m| m.0 == members[at].0);
            (0..members.len()).find(is_repeated)
        } else {
            index = (0..members.len() as u32).collect();
            index.sort_by(|a, b| members[*a as usize].0.cmp(&members[*b as usize].0));
            let twice =
                index.windows(2).find(|w| members[w[0] as usize].0 == members[w[1] as usize].0);
            twice.map(|w| w[1] as usize)
        };
        match repeated {
            Some(at) => Err(RepeatedKey { key: members[at].0.clone(), at }),
            None => Ok(Object { members: members.into(), index: index.into() }),
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

    /// The value of a key, unless it is `null`.
    pub fn get_non_null(&self, key: &str) -> Option<&Json> {
        self.get(key).filter(|value| **value != Json::Null)
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

impl Json {
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

    /// A member of an object, unless it is `null`.
    pub fn get_non_null(&self, key: &str) -> Option<&Json> {
        self.as_object()?.get_non_null(key)
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

    /// All values in this one, itself included, in no particular order. Iterative.
    pub fn values(&self) -> impl Iterator<Item = &Json> {
        let mut stack = vec![self];
        std::iter::from_fn(move || {
            let value = stack.pop()?;
            match value {
                Json::Array(items) => stack.extend(items),
                Json::Object(object) => stack.extend(object.iter().map(|(_, value)| value)),
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
            }
            Some(value)
        })
    }

    /// Approximate memory size in bytes. Iterative.
    pub fn bytes(&self) -> usize {
        let content = |value: &Json| match value {
            Json::Null | Json::Bool(_) | Json::Array(_) => 0,
            Json::Number(number) => number.0.len(),
            Json::String(text) => text.len(),
            Json::Object(object) => {
                object.iter().map(|(name, _)| size_of::<String>() + name.len()).sum()
            }
        };
        self.values().map(|value| size_of::<Json>() + content(value)).sum()
    }

    /// The length of its compact JSON text in bytes, with all characters of strings raw. Iterative.
    ///
    /// ```
    /// use louver::{Json, Limits};
    ///
    /// let json = Json::parse(r#"{ "a": [1, "b", null] }"#, &Limits::default()).unwrap();
    /// assert_eq!(json.text_len(), r#"{"a":[1,"b",null]}"#.len());
    /// ```
    pub fn text_len(&self) -> usize {
        let own_len = |value: &Json| match value {
            Json::Null | Json::Bool(true) => 4,
            Json::Bool(false) => 5,
            Json::Number(number) => number.0.len(),
            Json::String(text) => text.len() + 2,
            Json::Array(items) => 2 + items.len().saturating_sub(1),
            Json::Object(object) => {
                // Quotes and colon.
                let names = object.iter().map(|(name, _)| name.len() + 3);
                2 + names.sum::<usize>() + object.len().saturating_sub(1)
            }
        };
        self.values().map(own_len).sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn parse(text: &str) -> Result<Json, JsonError> {
        Json::parse(text, &Limits::default())
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (one, other, is_same) in [
            ("0", "-0.00e7", true),
            ("1", "1.0", true),
            ("1", "10e-1", true),
            ("-1", "1", false),
            ("1", "1.00000000000000000000001", false),
            ("12", "120", false),
        ] {
            let Json::Number(number) = parse(one).unwrap() else { panic!("{one}") };
            assert_eq!(number.is_equal_to(other), is_same, "{one} {other}");
        }
    }

    /// Bodies of many small values take this for each.
    #[test]
    fn a_value_is_small() {
        assert_eq!(size_of::<Json>(), 40);
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
    fn a_byte_order_mark_is_ignored() {
        assert_eq!(parse("\u{feff} [1]").unwrap(), parse("[1]").unwrap());
        assert!(parse("[\u{feff}1]").is_err() && parse("\u{feff}").is_err());
    }

    #[test]
    fn errors_state_line_and_column() {
        let error = parse("{\n  \"é\": tru\n}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 8));
        let error = parse("{\"a\":1,\n \"a\":2}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 2));
        assert_eq!(error.reason, JsonErrorReason::DuplicateKey("a".into()));
    }

    #[test]
    fn the_last_of_repeated_keys_counts_where_they_are_allowed() {
        for (text, expected, keys) in [
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#, &[][..]),
            (r#"{"a":1,"b":2,"a":3,"a":4}"#, r#"{"a":4,"b":2}"#, &["a", "a"]),
            (r#"[{"x":{"k":1,"k":2},"x":{"k":3}}]"#, r#"[{"x":{"k":3}}]"#, &["k", "x"]),
        ] {
            let (value, repeated) = Json::parse_repeated(text, &Limits::default()).unwrap();
            assert_eq!(value, parse(expected).unwrap(), "{text}");
            assert_eq!(repeated, keys, "{text}");
        }
        assert!(Json::parse_repeated("{\"a\":1,}", &Limits::default()).is_err());
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
