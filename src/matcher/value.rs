//! JSON texts by value: what a finished text says.

use super::escape::Escape;

/// Deepest nesting of a value that can be compared.
const MAX_DEPTH: usize = 128;
/// Exponents beyond this are all the same.
pub(super) const MAX_EXPONENT: i64 = 1 << 40;

/// What a text says: the first node, and the others below it, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// `null`, `true` or `false`.
    Word(&'static [u8]),
    Number(Decimal),
    /// Without its escapes.
    String(Vec<u8>),
    Array(Vec<u32>),
    /// By name. No name is there twice.
    Object(Vec<(Vec<u8>, u32)>),
    /// No JSON, alone: bytes, and special tokens as numbers from 256 on.
    Other(Vec<u32>),
}

/// `0.d1 d2 ... dn * 10^exponent`; `d1` and `dn` are not zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    pub(super) digits: Vec<u8>,
    pub(super) exponent: i64,
}

/// The text's value is nested too deeply to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooDeep;

/// White space between the parts of a value.
pub(super) const SPACE: &[u8] = b" \t\r\n";
/// What numbers are written with.
pub(super) const NUMBER: &[u8] = b"0123456789+-.eE";

impl Value {
    /// What a text says: bytes, and special tokens as numbers from 256 on.
    pub(super) fn read(text: &[u32]) -> Result<Value, TooDeep> {
        let other = || Ok(Value { nodes: vec![Node::Other(text.to_vec())] });
        let bytes: Option<Vec<u8>> = text.iter().map(|&symbol| u8::try_from(symbol).ok()).collect();
        let Some(bytes) = bytes else { return other() };
        let mut reader = Reader { text: &bytes, at: 0, nodes: Vec::new() };
        match reader.value(0) {
            Ok(_) => {
                reader.space();
                if reader.at == bytes.len() { Ok(Value { nodes: reader.nodes }) } else { other() }
            }
            Err(Wrong::Deep) => Err(TooDeep),
            Err(Wrong::Text) => other(),
        }
    }
}

/// Why a text has no value.
enum Wrong {
    Text,
    Deep,
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| SPACE.contains(&byte)) {
            self.at += 1;
        }
    }

    /// A byte, perhaps behind white space.
    fn expect(&mut self, byte: u8) -> Result<(), Wrong> {
        self.space();
        if self.peek() != Some(byte) {
            return Err(Wrong::Text);
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> &'t [u8] {
        let from = self.at;
        while self.peek().is_some_and(|byte| NUMBER.contains(&byte)) {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    /// Reads a value; its node.
    fn value(&mut self, depth: usize) -> Result<u32, Wrong> {
        if depth > MAX_DEPTH {
            return Err(Wrong::Deep);
        }
        let node = self.nodes.len();
        // Those below it come behind it.
        self.nodes.push(Node::Word(b""));
        self.space();
        self.nodes[node] = match self.peek().ok_or(Wrong::Text)? {
            b'"' => Node::String(self.text()?),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while self.goes_on(b']', items.is_empty())? {
                    items.push(self.value(depth + 1)?);
                }
                Node::Array(items)
            }
            b'{' => {
                self.at += 1;
                let mut members: Vec<(Vec<u8>, u32)> = Vec::new();
                while self.goes_on(b'}', members.is_empty())? {
                    self.space();
                    let name = self.text()?;
                    self.expect(b':')?;
                    members.push((name, self.value(depth + 1)?));
                }
                members.sort_unstable();
                if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return Err(Wrong::Text);
                }
                Node::Object(members)
            }
            b'-' | b'0'..=b'9' => {
                Decimal::read(self.number()).map(Node::Number).ok_or(Wrong::Text)?
            }
            _ => {
                let words = [&b"null"[..], b"true", b"false"];
                let word = words
                    .into_iter()
                    .find(|word| self.text[self.at..].starts_with(word))
                    .ok_or(Wrong::Text)?;
                self.at += word.len();
                Node::Word(word)
            }
        };
        Ok(node as u32)
    }

    /// Whether another one comes, behind its comma, before a list's end.
    fn goes_on(&mut self, end: u8, first: bool) -> Result<bool, Wrong> {
        self.space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if !first {
            self.expect(b',')?;
        }
        Ok(true)
    }

    fn text(&mut self) -> Result<Vec<u8>, Wrong> {
        self.expect(b'"')?;
        let mut out = Vec::new();
        let mut escape = Escape::NONE;
        loop {
            let byte = self.peek().ok_or(Wrong::Text)?;
            self.at += 1;
            let said = escape.read(byte).ok_or(Wrong::Text)?;
            out.extend_from_slice(said.bytes());
            if said.ends {
                return Ok(out);
            }
        }
    }
}

impl Decimal {
    /// A JSON number.
    pub(super) fn read(text: &[u8]) -> Option<Decimal> {
        let (negative, rest) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (integer, rest) = rest.split_at(digits(rest));
        if integer.is_empty() || integer.len() > 1 && integer[0] == b'0' {
            return None;
        }
        let (fraction, rest) = match rest.strip_prefix(b".") {
            Some(rest) => rest.split_at(digits(rest)),
            None => (&b"0"[..], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => {
                let (sign, rest) = match rest {
                    [b'-', rest @ ..] => (-1, rest),
                    [b'+', rest @ ..] => (1, rest),
                    rest => (1, rest),
                };
                if rest.is_empty() || digits(rest) < rest.len() {
                    return None;
                }
                let add = |n: i64, d: &u8| (n * 10 + i64::from(d - b'0')).min(MAX_EXPONENT);
                sign * rest.iter().fold(0, add)
            }
            _ => return None,
        };
        if fraction.is_empty() {
            return None;
        }
        let mut all: Vec<u8> = integer.iter().chain(fraction).copied().collect();
        while all.last() == Some(&b'0') {
            all.pop();
        }
        let leading = all.iter().take_while(|&&d| d == b'0').count();
        if leading == all.len() {
            return Some(Decimal { negative: false, digits: Vec::new(), exponent: 0 });
        }
        all.drain(..leading);
        Some(Decimal {
            negative,
            digits: all,
            exponent: exponent + integer.len() as i64 - leading as i64,
        })
    }
}
