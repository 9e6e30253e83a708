//! Arguments between tags, read as JSON.

use louver::front::json_schema::Kinds;
use louver::spec::json::Json;

use super::escaped;
use crate::channel::decode;
use crate::format::{KindWords, TagPart, TaggedStyle};
use crate::marker::NameStyle;

/// A piece of an argument's beginning, behind its name.
#[derive(Clone, Debug)]
enum Piece {
    Text(Vec<u8>),
    Gap,
    Kind(Vec<(Kinds, Vec<u8>)>),
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// Before an argument, or behind all of them.
    Between,
    /// In its name.
    Key,
    /// Behind its name, at this piece.
    Open(usize),
    /// Before its value: what may stand there and is no part of it.
    Lead,
    /// In a value that is one of several types; its text so far is the buffer.
    Undecided,
    /// In a string.
    Text,
    /// In JSON: bytes of the buffer looked at, and where in a string it is.
    Json { seen: usize, string: Option<bool> },
}

/// Reads arguments in any chunks. What it reads has been accepted by the grammar; on anything else it holds back the
/// rest.
#[derive(Clone, Debug)]
pub(crate) struct TaggedReader {
    first: Vec<u8>,
    key: NameStyle,
    pieces: Vec<Piece>,
    lead: Vec<u8>,
    trail: Vec<u8>,
    close: Vec<u8>,
    kinds: Vec<(String, Kinds)>,
    others: Kinds,
    state: State,
    buffer: Vec<u8>,
    value: Kinds,
    any: bool,
    out: String,
}

/// What each word for a type stands for.
pub(crate) fn kinds_by_word(words: &KindWords) -> Vec<(Kinds, Vec<u8>)> {
    let mut out: Vec<(Kinds, Vec<u8>)> = Vec::new();
    for (kind, word) in [
        (Kinds::STRING, &words.string),
        (Kinds::NUMBER, &words.number),
        (Kinds::BOOLEAN, &words.boolean),
        (Kinds::NULL, &words.null),
        (Kinds::ARRAY, &words.array),
        (Kinds::OBJECT, &words.object),
    ] {
        match out.iter_mut().find(|(_, known)| known == word.as_bytes()) {
            Some((kinds, _)) => *kinds = kinds.with(kind),
            None => out.push((kind, word.clone().into_bytes())),
        }
    }
    out
}

/// What a name cannot contain.
pub(crate) fn text_behind_name(style: &TaggedStyle) -> String {
    style.open.get(2).map(text_of).unwrap_or_default()
}

fn text_of(part: &TagPart) -> String {
    match part {
        TagPart::Text(text) => text.clone(),
        TagPart::Marker(marker) => marker.write(),
        TagPart::Gap(gap) => gap.gap.clone(),
        TagPart::Key(_) | TagPart::Kind(_) => String::new(),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len().max(1)).position(|window| window == needle)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

impl TaggedReader {
    pub(crate) fn new(style: &TaggedStyle, kinds: Vec<(String, Kinds)>, others: Kinds) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        for part in style.open.iter().skip(2) {
            match part {
                TagPart::Key(_) => {}
                TagPart::Kind(part) => pieces.push(Piece::Kind(kinds_by_word(&part.kind))),
                TagPart::Gap(_) => pieces.push(Piece::Gap),
                TagPart::Text(_) | TagPart::Marker(_) => match pieces.last_mut() {
                    Some(Piece::Text(text)) => text.extend_from_slice(text_of(part).as_bytes()),
                    _ => pieces.push(Piece::Text(text_of(part).into_bytes())),
                },
            }
        }
        let key = match style.open.get(1) {
            Some(TagPart::Key(part)) => part.key,
            _ => NameStyle::Raw,
        };
        TaggedReader {
            first: style.open.first().map(text_of).unwrap_or_default().into_bytes(),
            key,
            pieces,
            lead: style.lead.clone().into_bytes(),
            trail: style.trail.clone().into_bytes(),
            close: style.close.write().into_bytes(),
            kinds,
            others,
            state: State::Between,
            buffer: Vec::new(),
            value: Kinds::default(),
            any: false,
            out: String::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.buffer.extend_from_slice(bytes);
        while self.step() {}
        std::mem::take(&mut self.out)
    }

    pub(crate) fn close(&mut self) -> String {
        let out = if self.any { "}" } else { "{}" };
        self.any = false;
        self.state = State::Between;
        self.buffer.clear();
        out.to_owned()
    }

    pub(crate) fn cut(&mut self) -> String {
        let begun = if self.any { "" } else { "{" };
        let rest = std::mem::take(&mut self.buffer);
        let rest = match self.state {
            State::Text => escaped(&String::from_utf8_lossy(&rest)),
            State::Json { .. } => String::from_utf8_lossy(&rest).into_owned(),
            _ => String::new(),
        };
        begun.to_owned() + &rest
    }

    /// One step on the buffer; whether another may follow.
    fn step(&mut self) -> bool {
        match self.state {
            State::Between => {
                let spaces = self.buffer.iter().take_while(|b| is_space(**b)).count();
                if self.buffer.len() < spaces + self.first.len() {
                    return false;
                }
                if !self.buffer[spaces..].starts_with(&self.first) {
                    return false;
                }
                self.buffer.drain(..spaces + self.first.len());
                self.state = State::Key;
                true
            }
            State::Key => {
                let Some(Piece::Text(text)) = self.pieces.first() else { return false };
                let Some(at) = find(&self.buffer, text) else { return false };
                let key = self.key.read(&String::from_utf8_lossy(&self.buffer[..at]));
                self.buffer.drain(..at + text.len());
                self.value = match self.kinds.iter().find(|(name, _)| *name == key) {
                    Some((_, kinds)) => *kinds,
                    None => self.others,
                };
                self.out.push_str(if std::mem::replace(&mut self.any, true) { ", " } else { "{" });
                self.out.push('"');
                self.out.push_str(&escaped(&key));
                self.out.push_str("\": ");
                self.state = State::Open(1);
                true
            }
            State::Open(k) => self.open(k),
            State::Lead => {
                if self.buffer.len() < self.lead.len() && self.lead.starts_with(&self.buffer) {
                    return false;
                }
                if self.buffer.starts_with(&self.lead) {
                    self.buffer.drain(..self.lead.len());
                }
                self.state = if !self.value.meets(Kinds::STRING) && self.value != Kinds::default() {
                    State::Json { seen: 0, string: None }
                } else if self.value.within(Kinds::STRING) == self.value {
                    self.out.push('"');
                    State::Text
                } else {
                    State::Undecided
                };
                true
            }
            State::Undecided => self.undecided(),
            State::Text => self.text(),
            State::Json { seen, string } => self.json(seen, string),
        }
    }

    fn open(&mut self, k: usize) -> bool {
        match self.pieces.get(k) {
            None => self.state = State::Lead,
            Some(Piece::Gap) => {
                let spaces = self.buffer.iter().take_while(|b| is_space(**b)).count();
                if spaces == self.buffer.len() {
                    return false;
                }
                self.buffer.drain(..spaces);
                self.state = State::Open(k + 1);
            }
            Some(Piece::Text(text)) => {
                if !self.buffer.starts_with(text) {
                    return false;
                }
                self.buffer.drain(..text.len());
                self.state = State::Open(k + 1);
            }
            Some(Piece::Kind(words)) => {
                let Some(Piece::Text(behind)) = self.pieces.get(k + 1) else { return false };
                let Some(at) = find(&self.buffer, behind) else { return false };
                let Some((kinds, _)) = words.iter().find(|(_, word)| self.buffer[..at] == **word)
                else {
                    return false;
                };
                self.value = *kinds;
                self.buffer.drain(..at);
                self.state = State::Open(k + 1);
            }
        }
        true
    }

    /// The value is whole: what it says and how long it and its end are.
    fn ended(&self, at: usize) -> (&[u8], usize) {
        let value = &self.buffer[..at];
        (value.strip_suffix(&self.trail[..]).unwrap_or(value), at + self.close.len())
    }

    /// How many bytes at the buffer's end may be the value's frame.
    fn held(&self) -> usize {
        let framed: Vec<u8> = [&self.trail[..], &self.close[..]].concat();
        let may_end = |n: &usize| {
            let tail = &self.buffer[self.buffer.len() - n..];
            framed.starts_with(tail) || self.close.starts_with(tail)
        };
        (1..=framed.len().min(self.buffer.len())).rev().find(may_end).unwrap_or(0)
    }

    fn text(&mut self) -> bool {
        if let Some(at) = find(&self.buffer, &self.close) {
            let (value, used) = self.ended(at);
            let text = escaped(&String::from_utf8_lossy(value));
            self.out.push_str(&text);
            self.out.push('"');
            self.buffer.drain(..used);
            self.state = State::Between;
            return true;
        }
        let free = self.buffer.len() - self.held();
        let (text, rest) = decode(&self.buffer[..free]);
        self.out.push_str(&escaped(&text));
        self.buffer.drain(..free - rest);
        false
    }

    /// JSON: the end counts outside strings only. `string`: within one, and whether behind a backslash.
    fn json(&mut self, mut seen: usize, mut string: Option<bool>) -> bool {
        while seen < self.buffer.len() {
            if string.is_none() {
                let rest = &self.buffer[seen..];
                if rest.starts_with(&self.close) {
                    let (value, used) = self.ended(seen);
                    let text = String::from_utf8_lossy(value).into_owned();
                    self.out.push_str(&text);
                    self.buffer.drain(..used);
                    self.state = State::Between;
                    return true;
                }
                if self.close.starts_with(rest) {
                    break;
                }
            }
            string = match (string, self.buffer[seen]) {
                (None, b'"') => Some(false),
                (Some(false), b'"') | (None, _) => None,
                (Some(false), b'\\') => Some(true),
                (Some(_), _) => Some(false),
            };
            seen += 1;
        }
        let held = self.buffer.len() - seen + if string.is_none() { self.trail.len() } else { 0 };
        let free = self.buffer.len().saturating_sub(held);
        let (text, rest) = decode(&self.buffer[..free]);
        self.out.push_str(&text);
        self.buffer.drain(..free - rest);
        self.state = State::Json { seen: seen - (free - rest), string };
        false
    }

    fn undecided(&mut self) -> bool {
        if let Some(at) = find(&self.buffer, &self.close) {
            let (value, used) = self.ended(at);
            let text = String::from_utf8_lossy(value).into_owned();
            if looks_like(&text, self.value) {
                self.out.push_str(&text);
                self.buffer.drain(..used);
                self.state = State::Between;
                return true;
            }
        }
        match self.buffer.first() {
            None => false,
            Some(b'[') if self.value.meets(Kinds::ARRAY) => {
                self.decide(State::Json { seen: 0, string: None })
            }
            Some(b'{') if self.value.meets(Kinds::OBJECT) => {
                self.decide(State::Json { seen: 0, string: None })
            }
            Some(_) if self.may_be_scalar() => false,
            Some(_) => {
                self.out.push('"');
                self.decide(State::Text)
            }
        }
    }

    fn decide(&mut self, state: State) -> bool {
        self.state = state;
        true
    }

    /// Whether the buffer, its end marker apart, may still become a value that is no string.
    fn may_be_scalar(&self) -> bool {
        if find(&self.buffer, &self.close).is_some() {
            return false;
        }
        let text = &self.buffer[..self.buffer.len() - self.held()];
        let word = |kind, words: &[&str]| {
            self.value.meets(kind) && words.iter().any(|word| word.as_bytes().starts_with(text))
        };
        word(Kinds::NULL, &["null"])
            || word(Kinds::BOOLEAN, &["true", "false"])
            || self.value.meets(Kinds::NUMBER)
                && text.iter().all(|b| b"0123456789+-.eE".contains(b))
    }
}

/// Whether a text is read as a value of these types rather than as a string; the same rule that the grammar has.
pub(crate) fn looks_like(text: &str, kinds: Kinds) -> bool {
    match text.as_bytes().first() {
        Some(b'[') => kinds.meets(Kinds::ARRAY),
        Some(b'{') => kinds.meets(Kinds::OBJECT),
        Some(_) if text.trim() != text || text.starts_with('"') => false,
        _ => match Json::parse(text, &louver::limits::Limits::default()) {
            Ok(Json::Null) => kinds.meets(Kinds::NULL),
            Ok(Json::Bool(_)) => kinds.meets(Kinds::BOOLEAN),
            Ok(Json::Number(_)) => kinds.meets(Kinds::NUMBER),
            _ => false,
        },
    }
}
