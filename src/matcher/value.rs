//! JSON texts by value: what a finished text says, and whether an unfinished one may still become the same as a finished one.

use crate::fsm::ByteSet;

/// Deepest nesting of a value that can be compared.
const MAX_DEPTH: usize = 128;
/// Exponents beyond this are all the same.
const MAX_EXPONENT: i64 = 1 << 40;

/// What a text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `null`, `true` or `false`.
    Word(&'static [u8]),
    Number(Decimal),
    /// Without its escapes.
    String(Vec<u8>),
    Array(Vec<Value>),
    /// In the order of the text. No name is there twice.
    Object(Vec<(Vec<u8>, Value)>),
    /// No JSON: bytes, and special tokens as numbers from 256 on.
    Other(Vec<u32>),
}

/// `0.d1 d2 ... dn * 10^exponent`; `d1` and `dn` are not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// The text's value is nested too deeply to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooDeep;

impl Value {
    /// What a text says: bytes, and special tokens as numbers from 256 on.
    pub(super) fn read(text: &[u32]) -> Result<Value, TooDeep> {
        let other = || Ok(Value::Other(text.to_vec()));
        let Some(bytes) = bytes(text) else { return other() };
        let mut reader = Reader { text: &bytes, at: 0, finished: true };
        match reader.value(0) {
            Ok(value) => {
                reader.space();
                if reader.at == bytes.len() { Ok(value) } else { other() }
            }
            Err(Wrong::Deep) => Err(TooDeep),
            Err(Wrong::Text) => other(),
        }
    }

    /// Whether a finished text says the same.
    pub(super) fn is_said_by(&self, text: &[u32]) -> bool {
        if let Value::Other(own) = self {
            return own == text;
        }
        let Some(bytes) = bytes(text) else { return false };
        let mut reader = Reader { text: &bytes, at: 0, finished: true };
        reader.follow(self).is_ok() && {
            reader.space();
            reader.at == bytes.len()
        }
    }

    /// The bytes (and perhaps others) with which a text may go on so that it may still come to say the same, or has come to do so.
    /// `None` if it cannot.
    pub(super) fn next_of(&self, text: &Unfinished) -> Option<ByteSet> {
        if let Value::Other(own) = self {
            let next = own.strip_prefix(&text.symbols[..])?.first().and_then(|&next| u8::try_from(next).ok());
            return Some(next.map_or(ByteSet::of(SPACE), |next| ByteSet::range(next, next)));
        }
        let bytes = text.bytes.as_deref()?;
        let mut reader = Reader { text: bytes, at: 0, finished: false };
        match reader.follow(self) {
            Ok(()) => {
                reader.space();
                (reader.at == bytes.len()).then(|| ByteSet::of(SPACE))
            }
            Err(Stop::Open(next)) => Some(next),
            Err(Stop::Differs) => None,
        }
    }
}

/// An unfinished text.
pub(super) struct Unfinished {
    symbols: Vec<u32>,
    /// If it has no special tokens.
    bytes: Option<Vec<u8>>,
}

impl Unfinished {
    pub(super) fn new(symbols: Vec<u32>) -> Unfinished {
        Unfinished { bytes: bytes(&symbols), symbols }
    }
}

fn bytes(text: &[u32]) -> Option<Vec<u8>> {
    text.iter().map(|&symbol| u8::try_from(symbol).ok()).collect()
}

const SPACE: &[u8] = b" \t\r\n";
const NUMBER: &[u8] = b"0123456789+-.eE";
/// White space, and what may follow a number.
const BEHIND: &[u8] = b" \t\r\n,]}";
/// Inside an escape.
const ESCAPE: &[u8] = b"0123456789abcdefABCDEFu\"\\/nrt";

fn open(bytes: &[u8]) -> Stop {
    Stop::Open(ByteSet::of(bytes))
}

/// Why a text does not say a value.
enum Stop {
    Differs,
    /// It ends too early; these may follow.
    Open(ByteSet),
}

/// Why a text has no value.
enum Wrong {
    Text,
    Deep,
}

/// A piece of a string.
enum Piece {
    Quote,
    /// So many of these.
    Bytes([u8; 4], usize),
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    /// The text ends where it does: its last number is complete.
    finished: bool,
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
    fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        self.space();
        match self.peek() {
            None => Err(open(&[byte, b' ', b'\t', b'\r', b'\n'])),
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Stop::Differs),
        }
    }

    fn follow(&mut self, value: &Value) -> Result<(), Stop> {
        match value {
            Value::Word(word) => {
                self.expect(word[0])?;
                for &byte in &word[1..] {
                    match self.peek() {
                        None => return Err(Stop::Open(ByteSet::range(byte, byte))),
                        Some(found) if found == byte => self.at += 1,
                        Some(_) => return Err(Stop::Differs),
                    }
                }
                Ok(())
            }
            Value::Number(number) => {
                self.space();
                let chunk = self.number();
                if self.at == self.text.len() && !self.finished {
                    return Err(if number.may_begin(chunk) { number.open(chunk) } else { Stop::Differs });
                }
                if Decimal::read(chunk).as_ref() == Some(number) { Ok(()) } else { Err(Stop::Differs) }
            }
            Value::String(string) => {
                self.expect(b'"')?;
                self.string(string)
            }
            Value::Array(items) => {
                self.expect(b'[')?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        self.expect(b',')?;
                    }
                    self.follow(item)?;
                }
                self.expect(b']')
            }
            Value::Object(members) => {
                self.expect(b'{')?;
                let mut left: Vec<&(Vec<u8>, Value)> = members.iter().collect();
                while !left.is_empty() {
                    if left.len() < members.len() {
                        self.expect(b',')?;
                    }
                    self.expect(b'"')?;
                    let at = self.name(&left)?;
                    let (_, value) = left.swap_remove(at);
                    self.expect(b':')?;
                    self.follow(value)?;
                }
                self.expect(b'}')
            }
            Value::Other(_) => Err(Stop::Differs),
        }
    }

    /// The rest of a string behind its quote.
    fn string(&mut self, string: &[u8]) -> Result<(), Stop> {
        let mut left = string;
        loop {
            // What is spelt as it is.
            let plain = |&(said, own): &(&u8, &u8)| said == own && !matches!(said, b'"' | b'\\' | 0..0x20);
            let same = self.text[self.at..].iter().zip(left).take_while(plain).count();
            self.at += same;
            left = &left[same..];
            if self.at == self.text.len() {
                return Err(Stop::Open(begin_of(left)));
            }
            let at = self.at;
            match self.piece().map_err(|stop| self.open_escape(at, left, stop))? {
                Piece::Quote if left.is_empty() => return Ok(()),
                Piece::Quote => return Err(Stop::Differs),
                Piece::Bytes(bytes, n) => left = left.strip_prefix(&bytes[..n]).ok_or(Stop::Differs)?,
            }
        }
    }

    /// How an escape that begins here and is not complete goes on, if it is to spell the next character.
    fn open_escape(&self, at: usize, left: &[u8], stop: Stop) -> Stop {
        let next =
            std::str::from_utf8(&left[..left.len().min(4)]).or_else(|e| std::str::from_utf8(&left[..e.valid_up_to()]));
        let (Stop::Open(open), Ok(next)) = (&stop, next) else { return stop };
        let Some(c) = next.chars().next() else {
            // Half a pair, or the string's end, which no escape spells.
            return if left.is_empty() { Stop::Differs } else { stop };
        };
        let mut units = [0; 2];
        let unit = format!("{:04x}", c.encode_utf16(&mut units)[0]);
        // Behind the backslash.
        let begun = &self.text[at + 1..];
        match begun {
            [] => {
                let short: Vec<u8> = match c {
                    '"' | '\\' | '/' => vec![c as u8, b'u'],
                    '\n' => b"nu".to_vec(),
                    '\r' => b"ru".to_vec(),
                    '\t' => b"tu".to_vec(),
                    '\u{8}' => b"bu".to_vec(),
                    '\u{c}' => b"fu".to_vec(),
                    _ => b"u".to_vec(),
                };
                Stop::Open(ByteSet::of(&short))
            }
            [b'u', hex @ ..] if hex.len() < 4 => match unit.as_bytes()[..hex.len()].eq_ignore_ascii_case(hex) {
                true => {
                    let next = unit.as_bytes()[hex.len()];
                    Stop::Open(ByteSet::of(&[next, next.to_ascii_uppercase()]))
                }
                false => Stop::Differs,
            },
            // The other half of a pair.
            _ => Stop::Open(*open),
        }
    }

    /// Which of some members has the name that is here.
    fn name(&mut self, members: &[&(Vec<u8>, Value)]) -> Result<usize, Stop> {
        let mut read: Vec<u8> = Vec::new();
        let may_be = |read: &[u8]| {
            members.iter().filter_map(|(name, _)| name.strip_prefix(read)).map(begin_of).collect::<Vec<_>>()
        };
        loop {
            if self.at == self.text.len() {
                let next = may_be(&read).into_iter().reduce(|a, b| a.union(&b));
                return Err(next.map_or(Stop::Differs, Stop::Open));
            }
            match self.piece() {
                Ok(Piece::Quote) => return members.iter().position(|(name, _)| *name == read).ok_or(Stop::Differs),
                Ok(Piece::Bytes(bytes, n)) => read.extend_from_slice(&bytes[..n]),
                Err(Stop::Open(next)) if !may_be(&read).is_empty() => return Err(Stop::Open(next)),
                Err(_) => return Err(Stop::Differs),
            }
        }
    }

    /// One byte or escape of a string, or its end.
    fn piece(&mut self) -> Result<Piece, Stop> {
        let byte = self.peek().ok_or(Stop::Open(ByteSet::EMPTY))?;
        self.at += 1;
        match byte {
            b'"' => Ok(Piece::Quote),
            b'\\' => self.escape(),
            0..0x20 => Err(Stop::Differs),
            _ => Ok(Piece::Bytes([byte, 0, 0, 0], 1)),
        }
    }

    fn escape(&mut self) -> Result<Piece, Stop> {
        let byte = self.peek().ok_or_else(|| open(ESCAPE))?;
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let first = self.hex()?;
                return Ok(code_point(self.low_half(first)?));
            }
            _ => return Err(Stop::Differs),
        };
        Ok(Piece::Bytes([plain, 0, 0, 0], 1))
    }

    /// The code point of a surrogate pair, if its other half follows.
    fn low_half(&mut self, first: u32) -> Result<u32, Stop> {
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(first);
        }
        let at = self.at;
        for expected in *b"\\u" {
            match self.peek() {
                None if self.finished => return Ok(first),
                // Whether it is one half alone is not known yet.
                None => return Err(Stop::Open(ByteSet::ALL)),
                Some(found) if found == expected => self.at += 1,
                Some(_) => {
                    self.at = at;
                    return Ok(first);
                }
            }
        }
        let second = self.hex()?;
        if (0xDC00..0xE000).contains(&second) {
            return Ok(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
        }
        self.at = at;
        Ok(first)
    }

    fn hex(&mut self) -> Result<u32, Stop> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.peek().ok_or_else(|| open(ESCAPE))?;
            self.at += 1;
            code = code * 16 + char::from(byte).to_digit(16).ok_or(Stop::Differs)?;
        }
        Ok(code)
    }

    fn number(&mut self) -> &'t [u8] {
        let from = self.at;
        while self.peek().is_some_and(|byte| NUMBER.contains(&byte)) {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    fn value(&mut self, depth: usize) -> Result<Value, Wrong> {
        if depth > MAX_DEPTH {
            return Err(Wrong::Deep);
        }
        self.space();
        match self.peek().ok_or(Wrong::Text)? {
            b'"' => self.text().map(Value::String),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while self.goes_on(b']', items.is_empty())? {
                    items.push(self.value(depth + 1)?);
                }
                Ok(Value::Array(items))
            }
            b'{' => {
                self.at += 1;
                let mut members: Vec<(Vec<u8>, Value)> = Vec::new();
                let mut names = rustc_hash::FxHashSet::default();
                while self.goes_on(b'}', members.is_empty())? {
                    self.space();
                    let name = self.text()?;
                    self.punctuation(b':')?;
                    if !names.insert(name.clone()) {
                        return Err(Wrong::Text);
                    }
                    members.push((name, self.value(depth + 1)?));
                }
                Ok(Value::Object(members))
            }
            b'-' | b'0'..=b'9' => Decimal::read(self.number()).map(Value::Number).ok_or(Wrong::Text),
            _ => {
                for word in [&b"null"[..], b"true", b"false"] {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(Value::Word(word));
                    }
                }
                Err(Wrong::Text)
            }
        }
    }

    /// Whether another one comes, behind its comma, before a list's end.
    fn goes_on(&mut self, end: u8, first: bool) -> Result<bool, Wrong> {
        self.space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if !first {
            self.punctuation(b',')?;
        }
        Ok(true)
    }

    fn punctuation(&mut self, byte: u8) -> Result<(), Wrong> {
        self.expect(byte).map_err(|_| Wrong::Text)
    }

    fn text(&mut self) -> Result<Vec<u8>, Wrong> {
        self.punctuation(b'"')?;
        let mut out = Vec::new();
        loop {
            match self.piece().map_err(|_| Wrong::Text)? {
                Piece::Quote => return Ok(out),
                Piece::Bytes(bytes, n) => out.extend_from_slice(&bytes[..n]),
            }
        }
    }
}

/// How the rest of a string may begin.
fn begin_of(left: &[u8]) -> ByteSet {
    let next = left.first().copied().unwrap_or(b'"');
    ByteSet::range(next, next).union(&ByteSet::of(b"\\"))
}

/// UTF-8 of a code point; of half a surrogate pair, three bytes of the same kind.
fn code_point(code: u32) -> Piece {
    let mut bytes = [0; 4];
    if let Some(c) = char::from_u32(code) {
        let n = c.encode_utf8(&mut bytes).len();
        return Piece::Bytes(bytes, n);
    }
    Piece::Bytes([0xE0 | (code >> 12) as u8, 0x80 | (code >> 6 & 63) as u8, 0x80 | (code & 63) as u8, 0], 3)
}

impl Decimal {
    /// A JSON number.
    fn read(text: &[u8]) -> Option<Decimal> {
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
        Some(Decimal { negative, digits: all, exponent: exponent + integer.len() as i64 - leading as i64 })
    }

    /// How a number that begins so may go on.
    fn open(&self, text: &[u8]) -> Stop {
        let mut longer = text.to_vec();
        longer.push(0);
        let mut next = ByteSet::EMPTY;
        for &byte in NUMBER {
            longer[text.len()] = byte;
            if self.may_begin(&longer) {
                next.insert(byte);
            }
        }
        if text.is_empty() || Decimal::read(text).as_ref() == Some(self) {
            next = next.union(&ByteSet::of(BEHIND));
        }
        Stop::Open(next)
    }

    /// Whether a number that begins so may be this one, as far as its digits tell.
    fn may_begin(&self, text: &[u8]) -> bool {
        let (negative, rest) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
        if !self.digits.is_empty() && !text.is_empty() && negative != self.negative {
            return false;
        }
        let end = rest.iter().position(|b| matches!(b, b'e' | b'E'));
        let mantissa = rest[..end.unwrap_or(rest.len())].iter().copied().filter(u8::is_ascii_digit);
        let digits: Vec<u8> = mantissa.skip_while(|&d| d == b'0').collect();
        let common = digits.len().min(self.digits.len());
        let more = digits[common..].iter().all(|&d| d == b'0');
        digits[..common] == self.digits[..common] && more && (end.is_none() || digits.len() >= self.digits.len())
    }
}
