//! A streaming reader of arguments between tags.

use std::sync::{Arc, LazyLock};

use louver::front::json_schema::{JsonTypes, LazyTypes, ValueTypes};
use louver::spec::json::Json;

use super::literal::LiteralReader;
use super::scalar::ScalarPrefix;
use crate::channel::{SearchBuffer, decode, leading_spaces, partial_match_len};
use crate::format::{
    KindWords, MAX_GAP, NameStyle, Part, PythonLiterals, StringQuotes, TagPart, TaggedStyle,
    escape_json,
};

/// A part of an argument's opening tag, after the argument's name.
#[derive(Clone, Debug)]
enum TagPiece {
    Text(Vec<u8>),
    Gap,
    Kind(Vec<(JsonTypes, Vec<u8>)>),
}

#[derive(Clone, Debug, PartialEq)]
enum TaggedState {
    /// Before an argument, or after the last.
    Between,
    /// In its name.
    Key,
    /// After its name, before this piece of the opening tag.
    Open(usize),
    /// Before its value and the lead.
    Lead,
    /// In a value whose type is not decided. The buffer is its text so far, as far as it may be a
    /// scalar.
    Undecided,
    /// In a string.
    Text,
    /// In a string in quotes.
    Quoted,
    /// After the quotes of a string.
    Unquoted,
    /// In a value in JSON or Python. `seen`: bytes of the buffer that were scanned. `string`: in a
    /// string of the value, its quote and whether after a backslash.
    Value { seen: usize, string: Option<(u8, bool)> },
}

/// The texts around a value.
#[derive(Clone, Debug)]
struct ValueDelimiters {
    lead: Vec<u8>,
    trail: Vec<u8>,
    close: Vec<u8>,
    /// Around a string.
    quotes: Option<[Vec<u8>; 2]>,
    /// Whether strings in arrays and objects may have single quotes.
    has_single_quotes: bool,
}

/// The texts before a value.
#[derive(Clone, Debug)]
struct ArgumentBegin {
    /// What stands before the first argument.
    before: Vec<Part>,
    /// What stands between two arguments.
    between: Vec<Part>,
    /// The opening tag up to the argument's name.
    first: String,
    key: NameStyle,
    /// The opening tag after the argument's name.
    pieces: Vec<TagPiece>,
}

/// Reads arguments in chunks, and writes them as JSON text. The grammar must allow what it reads;
/// after anything else it writes nothing.
#[derive(Clone, Debug)]
pub(crate) struct TaggedReader {
    begin: ArgumentBegin,
    delimiters: ValueDelimiters,
    /// The types of the arguments.
    types: LazyTypes,
    state: TaggedState,
    buffer: SearchBuffer,
    /// The scalars that an undecided value may be.
    scalar: ScalarPrefix,
    /// The types that the open value may have.
    value: JsonTypes,
    /// Reads the open value, if it is not a string.
    literal: LiteralReader,
    has_argument: bool,
    out: String,
}

/// Types that are known from the start.
pub(crate) fn known_types(types: ValueTypes) -> LazyTypes {
    Arc::new(LazyLock::new(Box::new(move || types)))
}

/// The types that each word stands for.
pub(crate) fn types_by_word(words: &KindWords) -> Vec<(JsonTypes, Vec<u8>)> {
    let mut out: Vec<(JsonTypes, Vec<u8>)> = Vec::new();
    for (kind, word) in [
        (JsonTypes::STRING, &words.string),
        (JsonTypes::NUMBER, &words.number),
        (JsonTypes::BOOLEAN, &words.boolean),
        (JsonTypes::NULL, &words.null),
        (JsonTypes::ARRAY, &words.array),
        (JsonTypes::OBJECT, &words.object),
    ] {
        match out.iter_mut().find(|(_, known)| known == word.as_bytes()) {
            Some((types, _)) => *types = types.union(kind),
            None => out.push((kind, word.clone().into_bytes())),
        }
    }
    out
}

/// How the names of arguments are written.
fn key_style(style: &TaggedStyle) -> NameStyle {
    match style.open.get(1) {
        Some(TagPart::Key { key }) => *key,
        _ => NameStyle::Raw,
    }
}

/// The name of an argument on the wire. `None` if it is empty or contains the text that ends names.
pub(crate) fn written_name(style: &TaggedStyle, name: &str) -> Option<String> {
    let end = style.open.get(2).map(written).unwrap_or_default();
    let written = key_style(style).write(name);
    (!written.is_empty() && !written.contains(&end)).then_some(written)
}

/// The text that the renderer writes for a part, without names and words.
pub(super) fn written(part: &TagPart) -> String {
    match part {
        TagPart::Text(text) => text.clone(),
        TagPart::Marker(marker) => marker.write(),
        TagPart::Gap { gap } => gap.clone(),
        TagPart::Key { .. } | TagPart::Kind { .. } => String::new(),
    }
}

impl TaggedReader {
    pub(crate) fn new(style: &TaggedStyle, types: LazyTypes) -> Self {
        let mut pieces: Vec<TagPiece> = Vec::new();
        for part in style.open.iter().skip(2) {
            match part {
                TagPart::Key { .. } => {}
                TagPart::Kind { kind } => pieces.push(TagPiece::Kind(types_by_word(kind))),
                TagPart::Gap { .. } => pieces.push(TagPiece::Gap),
                TagPart::Text(_) | TagPart::Marker(_) => match pieces.last_mut() {
                    Some(TagPiece::Text(text)) => text.extend_from_slice(written(part).as_bytes()),
                    _ => pieces.push(TagPiece::Text(written(part).into_bytes())),
                },
            }
        }
        TaggedReader {
            begin: ArgumentBegin {
                before: style.before.parts(),
                between: style.between.parts(),
                first: style.open.first().map(written).unwrap_or_default(),
                key: key_style(style),
                pieces,
            },
            delimiters: ValueDelimiters {
                lead: style.lead.clone().into_bytes(),
                trail: style.trail.clone().into_bytes(),
                close: style.close.write().into_bytes(),
                quotes: style.quotes.as_ref().map(|StringQuotes { begin, end, .. }| {
                    [begin.clone().into_bytes(), end.clone().into_bytes()]
                }),
                has_single_quotes: style.python == Some(PythonLiterals::Values),
            },
            types,
            state: TaggedState::Between,
            buffer: SearchBuffer::default(),
            scalar: ScalarPrefix::default(),
            value: JsonTypes::default(),
            literal: LiteralReader::value(),
            has_argument: false,
            out: String::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.buffer.push(bytes);
        while self.step() {}
        std::mem::take(&mut self.out)
    }

    pub(crate) fn close(&mut self) -> String {
        let out = if self.has_argument { "}" } else { "{}" };
        self.has_argument = false;
        self.state = TaggedState::Between;
        self.buffer.take();
        out.to_owned()
    }

    pub(crate) fn cut(&mut self) -> String {
        let begun = if self.has_argument { "" } else { "{" };
        let rest = self.buffer.take();
        let rest = match self.state {
            TaggedState::Text | TaggedState::Quoted => escape_json(&String::from_utf8_lossy(&rest)),
            TaggedState::Value { .. } => self.literal.push(&rest) + &self.literal.cut(),
            _ => String::new(),
        };
        begun.to_owned() + &rest
    }

    /// Takes one step on the buffer. Returns whether another may follow.
    fn step(&mut self) -> bool {
        match self.state {
            TaggedState::Between => {
                let Some(len) = self.first_len() else { return false };
                self.buffer.drop_front(len);
                self.state = TaggedState::Key;
                true
            }
            TaggedState::Key => {
                let Some(TagPiece::Text(text)) = self.begin.pieces.first() else { return false };
                let Some(at) = self.buffer.find(text, 0) else { return false };
                let key = self.begin.key.read(&String::from_utf8_lossy(&self.buffer[..at]));
                self.buffer.drop_front(at + text.len());
                self.value = self.types.of_member(&key);
                self.out.push_str(if std::mem::replace(&mut self.has_argument, true) {
                    ", "
                } else {
                    "{"
                });
                self.out.push('"');
                self.out.push_str(&escape_json(&key));
                self.out.push_str("\": ");
                self.state = TaggedState::Open(1);
                true
            }
            TaggedState::Open(k) => self.open(k),
            TaggedState::Lead => self.lead(),
            TaggedState::Undecided => self.undecided(),
            TaggedState::Text => self.text(),
            TaggedState::Quoted => self.quoted(),
            TaggedState::Unquoted => {
                let Some(at) = self.buffer.find(&self.delimiters.close, 0) else { return false };
                self.end_value(at);
                true
            }
            TaggedState::Value { seen, string } => self.other_value(seen, string),
        }
    }

    /// The length of the text up to the name of the next argument, if all of that is there.
    fn first_len(&self) -> Option<usize> {
        let ArgumentBegin { before, between, first, .. } = &self.begin;
        let parts = if self.has_argument { between } else { before };
        let ends = part_ends(&self.buffer, vec![0], parts).into_iter();
        ends.flat_map(|end| text_ends(&self.buffer, end, first)).min()
    }

    /// Reads piece `k` of the opening tag.
    fn open(&mut self, k: usize) -> bool {
        let len = match self.begin.pieces.get(k) {
            None => {
                self.state = TaggedState::Lead;
                return true;
            }
            Some(TagPiece::Gap) => {
                let spaces = leading_spaces(&self.buffer);
                Some(spaces).filter(|spaces| *spaces < self.buffer.len())
            }
            Some(TagPiece::Text(text)) => {
                Some(text.len()).filter(|_| self.buffer.starts_with(text))
            }
            Some(TagPiece::Kind(words)) => {
                let Some(TagPiece::Text(after)) = self.begin.pieces.get(k + 1) else {
                    return false;
                };
                let Some(at) = self.buffer.find(after, 0) else { return false };
                let types = words.iter().find(|(_, word)| self.buffer[..at] == **word);
                self.value = types.map_or(self.value, |(types, _)| *types);
                types.map(|_| at)
            }
        };
        let Some(len) = len else { return false };
        self.buffer.drop_front(len);
        self.state = TaggedState::Open(k + 1);
        true
    }

    /// Reads the lead, and the opening quote of a string.
    fn lead(&mut self) -> bool {
        let ValueDelimiters { lead, quotes, .. } = &self.delimiters;
        let is_part = |of: &[u8], text: &[u8]| text.len() < of.len() && of.starts_with(text);
        if is_part(lead, &self.buffer) {
            return false;
        }
        let lead = if self.buffer.starts_with(lead) { lead.len() } else { 0 };
        let may_be_text = self.value.meets(JsonTypes::STRING) || self.value == JsonTypes::default();
        if let Some([begin, _]) = quotes.as_ref().filter(|_| may_be_text) {
            let rest = &self.buffer[lead..];
            if is_part(begin, rest) {
                return false;
            }
            if rest.starts_with(begin) {
                self.buffer.drop_front(lead + begin.len());
                self.out.push('"');
                self.state = TaggedState::Quoted;
                return true;
            }
        }
        self.buffer.drop_front(lead);
        self.state = if !may_be_text {
            TaggedState::Value { seen: 0, string: None }
        } else if self.value.intersect(JsonTypes::STRING) == self.value {
            self.out.push('"');
            TaggedState::Text
        } else {
            self.scalar = ScalarPrefix::default();
            TaggedState::Undecided
        };
        true
    }

    /// Reads a string up to its closing quote.
    fn quoted(&mut self) -> bool {
        let Some([_, end]) = &self.delimiters.quotes else { return false };
        let (quote, found) = (end.len(), self.buffer.find(end, 0));
        let len =
            found.unwrap_or_else(|| self.buffer.len() - partial_match_len(&self.buffer, &[end]));
        let text = self.take_text(len);
        self.out.push_str(&escape_json(&text));
        if found.is_some() {
            self.buffer.drop_front(quote);
            self.out.push('"');
            self.state = TaggedState::Unquoted;
        }
        found.is_some()
    }

    /// Takes the value that ends at `at` and its end marker from the buffer. Returns the value
    /// without the trail.
    fn end_value(&mut self, at: usize) -> String {
        let text = self.value_before(at);
        self.buffer.drop_front(at + self.delimiters.close.len());
        self.state = TaggedState::Between;
        text
    }

    /// The value that ends at `at`, without the trail.
    fn value_before(&self, at: usize) -> String {
        let value = &self.buffer[..at];
        let value = value.strip_suffix(&self.delimiters.trail[..]).unwrap_or(value);
        String::from_utf8_lossy(value).into_owned()
    }

    /// Takes the code points of the first `len` bytes from the buffer. A code point that is not
    /// complete stays.
    fn take_text(&mut self, len: usize) -> String {
        let (text, rest) = decode(&self.buffer[..len]);
        self.buffer.drop_front(len - rest);
        text
    }

    /// The number of bytes at the end of the buffer that may belong to the trail and the end
    /// marker.
    fn held(&self) -> usize {
        let end: Vec<u8> = [&self.delimiters.trail[..], &self.delimiters.close[..]].concat();
        partial_match_len(&self.buffer, &[&end, &self.delimiters.close])
    }

    fn text(&mut self) -> bool {
        if let Some(at) = self.buffer.find(&self.delimiters.close, 0) {
            let text = self.end_value(at);
            self.out.push_str(&escape_json(&text));
            self.out.push('"');
            return true;
        }
        let text = self.take_text(self.buffer.len() - self.held());
        self.out.push_str(&escape_json(&text));
        false
    }

    /// Reads a value in JSON or Python up to an end marker that is not in a string.
    fn other_value(&mut self, mut seen: usize, mut string: Option<(u8, bool)>) -> bool {
        while seen < self.buffer.len() {
            if string.is_none() {
                let rest = &self.buffer[seen..];
                if rest.starts_with(&self.delimiters.close) {
                    let text = self.end_value(seen);
                    self.write_value(&text);
                    return true;
                }
                if self.delimiters.close.starts_with(rest) {
                    break;
                }
            }
            string = match (string, self.buffer[seen]) {
                (None, b'"') => Some((b'"', false)),
                (None, b'\'') if self.delimiters.has_single_quotes => Some((b'\'', false)),
                (None, _) => None,
                (Some((quote, false)), byte) if byte == quote => None,
                (Some((quote, escaped)), byte) => Some((quote, byte == b'\\' && !escaped)),
            };
            seen += 1;
        }
        let unseen = self.buffer.len() - seen;
        let held = unseen + if string.is_none() { self.delimiters.trail.len() } else { 0 };
        let text = self.take_text(self.buffer.len().saturating_sub(held));
        self.out.push_str(&self.literal.push(text.as_bytes()));
        self.state = TaggedState::Value { seen: self.buffer.len() - unseen, string };
        false
    }

    /// Writes the rest of a value.
    fn write_value(&mut self, rest: &str) {
        self.out.push_str(&self.literal.push(rest.as_bytes()));
        self.out.push_str(&self.literal.close());
    }

    fn undecided(&mut self) -> bool {
        let opens =
            |bracket: u8, kind| self.buffer.first() == Some(&bracket) && self.value.meets(kind);
        if opens(b'[', JsonTypes::ARRAY) || opens(b'{', JsonTypes::OBJECT) {
            self.state = TaggedState::Value { seen: 0, string: None };
            return true;
        }
        let end = self.buffer.find(&self.delimiters.close, 0);
        if let Some(at) = end
            && looks_like(&self.value_before(at), self.value)
        {
            let text = self.end_value(at);
            self.write_value(&text);
            return true;
        }
        self.scalar.read_to(&self.buffer[..self.buffer.len() - self.held()]);
        if self.buffer.is_empty() || end.is_none() && self.scalar.may_be(self.value) {
            return false;
        }
        self.out.push('"');
        self.state = TaggedState::Text;
        true
    }
}

/// Where fixed parts may end that begin at one of these offsets.
fn part_ends(buffer: &[u8], begins: Vec<usize>, parts: &[Part]) -> Vec<usize> {
    parts.iter().fold(begins, |begins, part| {
        let ends = |begin: usize| match part {
            Part::Text(text) => text_ends(buffer, begin, text).collect(),
            Part::Marker(marker) => {
                let texts = marker.as_texts();
                texts.iter().flat_map(|text| text_ends(buffer, begin, text)).collect()
            }
            Part::Gap { .. } => {
                let spaces = leading_spaces(&buffer[begin..]).min(MAX_GAP as usize);
                (begin..=begin + spaces).collect()
            }
            Part::Maybe { maybe } => [vec![begin], part_ends(buffer, vec![begin], maybe)].concat(),
            Part::Name { .. } | Part::Id { .. } => vec![begin],
        };
        let mut ends: Vec<usize> = begins.into_iter().flat_map(ends).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    })
}

/// Where a text may end that begins at an offset. Other white space before its first letter is
/// accepted, too: output that was not constrained may have it.
fn text_ends(buffer: &[u8], begin: usize, text: &str) -> impl Iterator<Item = usize> {
    let word = text.trim_start();
    let at = begin + leading_spaces(&buffer[begin..]);
    let exact = buffer[begin..].starts_with(text.as_bytes()).then_some(begin + text.len());
    let loose = !word.is_empty() && buffer[at..].starts_with(word.as_bytes());
    exact.or(loose.then_some(at + word.len())).into_iter()
}

/// Whether a number has no other fraction than zeros, whatever its exponent.
fn is_whole(number: &str) -> bool {
    let digits = number.split(['e', 'E']).next().unwrap_or(number);
    digits.split_once('.').is_none_or(|(_, fraction)| fraction.bytes().all(|digit| digit == b'0'))
}

/// Whether a text is a JSON value of one of these types, and not a string. The grammar has the same
/// rule.
pub(super) fn looks_like(text: &str, types: JsonTypes) -> bool {
    match text.as_bytes().first() {
        Some(b'[') => types.meets(JsonTypes::ARRAY),
        Some(b'{') => types.meets(JsonTypes::OBJECT),
        Some(_) if text.trim() != text || text.starts_with('"') => false,
        _ => match Json::parse(text, &louver::limits::Limits::default()) {
            Ok(Json::Null) => types.meets(JsonTypes::NULL),
            Ok(Json::Bool(_)) => types.meets(JsonTypes::BOOLEAN),
            Ok(Json::Number(number)) => {
                types.meets(JsonTypes::FRACTION)
                    || types.meets(JsonTypes::INTEGER) && is_whole(number.as_str())
            }
            _ => false,
        },
    }
}
