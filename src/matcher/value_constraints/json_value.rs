//! JSON values of complete texts, for comparison.
//!
//! Numbers are compared by value, strings after decoding, and objects regardless of order.

use super::json_string::EscapeState;
use crate::decimal::Decimal;
use crate::ids::id;
use crate::matcher::symbol::SymbolCode;

/// Deepest nesting of a value that can be compared.
const MAX_DEPTH: usize = 128;

id! {
    /// A node of a value: its index in [`JsonValue::nodes`].
    pub(super) JsonNodeId
}

impl JsonNodeId {
    /// The whole value.
    pub(super) const ROOT: JsonNodeId = JsonNodeId::from_raw(0);
}

/// A value: nodes in text order; the first one is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonValue {
    nodes: Vec<JsonNode>,
}

/// What a node of a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JsonNode {
    /// `null`, `true` or `false`.
    Word(&'static [u8]),
    Number(Decimal),
    /// Decoded.
    String(Vec<u8>),
    Array(Vec<JsonNodeId>),
    /// Sorted by name, without duplicates.
    Object(Vec<(Vec<u8>, JsonNodeId)>),
    /// A text that is not JSON. Only as root.
    Other(Vec<SymbolCode>),
}

/// The value is nested more than [`MAX_DEPTH`] levels deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooDeep;

/// JSON white space.
pub(super) const WHITE_SPACE_BYTES: &[u8] = b" \t\r\n";
/// Bytes that numbers consist of.
pub(super) const NUMBER_BYTES: &[u8] = b"0123456789+-.eE";

impl JsonValue {
    /// A node of the value.
    pub(super) fn node(&self, node: JsonNodeId) -> &JsonNode {
        &self.nodes[node.index()]
    }

    /// Reads a text.
    pub(super) fn read(text: &[SymbolCode]) -> Result<JsonValue, TooDeep> {
        let other = || Ok(JsonValue { nodes: vec![JsonNode::Other(text.to_vec())] });
        let bytes: Option<Vec<u8>> = text.iter().map(|symbol| symbol.byte()).collect();
        let Some(bytes) = bytes else { return other() };
        let mut reader = ValueReader { text: &bytes, offset: 0, nodes: Vec::new() };
        match reader.value(0) {
            Ok(_) => {
                reader.skip_white_space();
                if reader.offset == bytes.len() {
                    Ok(JsonValue { nodes: reader.nodes })
                } else {
                    other()
                }
            }
            Err(ReadError::TooDeep) => Err(TooDeep),
            Err(ReadError::NotJson) => other(),
        }
    }
}

/// Why a text is not read as a value.
enum ReadError {
    NotJson,
    TooDeep,
}

/// Reader of one text.
struct ValueReader<'t> {
    text: &'t [u8],
    offset: usize,
    nodes: Vec<JsonNode>,
}

impl<'t> ValueReader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    fn skip_white_space(&mut self) {
        while self.peek().is_some_and(|byte| WHITE_SPACE_BYTES.contains(&byte)) {
            self.offset += 1;
        }
    }

    /// Reads a byte, perhaps after white space.
    fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        self.skip_white_space();
        if self.peek() != Some(byte) {
            return Err(ReadError::NotJson);
        }
        self.offset += 1;
        Ok(())
    }

    fn number(&mut self) -> &'t [u8] {
        let from = self.offset;
        while self.peek().is_some_and(|byte| NUMBER_BYTES.contains(&byte)) {
            self.offset += 1;
        }
        &self.text[from..self.offset]
    }

    /// Reads a value; returns its node.
    fn value(&mut self, depth: usize) -> Result<JsonNodeId, ReadError> {
        if depth > MAX_DEPTH {
            return Err(ReadError::TooDeep);
        }
        let node = JsonNodeId::new(self.nodes.len());
        // Placeholder: children come after their parent.
        self.nodes.push(JsonNode::Word(b""));
        self.skip_white_space();
        self.nodes[node.index()] = match self.peek().ok_or(ReadError::NotJson)? {
            b'"' => JsonNode::String(self.string()?),
            b'[' => {
                self.offset += 1;
                let mut items = Vec::new();
                while self.has_next(b']', items.is_empty())? {
                    items.push(self.value(depth + 1)?);
                }
                JsonNode::Array(items)
            }
            b'{' => {
                self.offset += 1;
                let mut members: Vec<(Vec<u8>, JsonNodeId)> = Vec::new();
                while self.has_next(b'}', members.is_empty())? {
                    self.skip_white_space();
                    let name = self.string()?;
                    self.expect(b':')?;
                    members.push((name, self.value(depth + 1)?));
                }
                members.sort_unstable();
                if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return Err(ReadError::NotJson);
                }
                JsonNode::Object(members)
            }
            b'-' | b'0'..=b'9' => {
                Decimal::read(self.number()).map(JsonNode::Number).ok_or(ReadError::NotJson)?
            }
            _ => {
                let words = [&b"null"[..], b"true", b"false"];
                let word = words
                    .into_iter()
                    .find(|word| self.text[self.offset..].starts_with(word))
                    .ok_or(ReadError::NotJson)?;
                self.offset += word.len();
                JsonNode::Word(word)
            }
        };
        Ok(node)
    }

    /// Whether another child follows in a container; reads the comma or the closing bracket.
    fn has_next(&mut self, end: u8, first: bool) -> Result<bool, ReadError> {
        self.skip_white_space();
        if self.peek() == Some(end) {
            self.offset += 1;
            return Ok(false);
        }
        if !first {
            self.expect(b',')?;
        }
        Ok(true)
    }

    fn string(&mut self) -> Result<Vec<u8>, ReadError> {
        self.expect(b'"')?;
        let mut out = Vec::new();
        let mut escape = EscapeState::NONE;
        loop {
            let byte = self.peek().ok_or(ReadError::NotJson)?;
            self.offset += 1;
            let decoded = escape.read(byte).ok_or(ReadError::NotJson)?;
            out.extend_from_slice(decoded.bytes());
            if decoded.ends_string {
                return Ok(out);
            }
        }
    }
}
