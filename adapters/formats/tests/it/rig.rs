//! Runs wire text with special tokens through a request's grammar and extractor, cut into tokens in
//! any way.

use std::collections::HashMap;
use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions, Matcher};
use louver::ids::TokenId;
use louver::matcher::Tracer;
use louver::vocab::Vocabulary;
use louver_formats::{Event, LoweredRequest, Turn, WireFormat};
use serde_json::Value;

use crate::harness::{SEED, joined, pieces};

/// The markers of a format that are special tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Specials {
    /// Those that are never text.
    Fewest,
    /// Those that may be special tokens, too.
    Most,
}

pub(crate) const BOTH: [Specials; 2] = [Specials::Fewest, Specials::Most];

/// A format bound to one of two vocabularies.
pub(crate) struct Rig {
    pub(crate) format: WireFormat,
    pub(crate) specials: Vec<String>,
}

/// A piece of wire text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit<'a> {
    Special(&'a str),
    Bytes(&'a [u8]),
}

impl Unit<'_> {
    /// The number of bytes of text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Unit::Special(_) => 0,
            Unit::Bytes(bytes) => bytes.len(),
        }
    }
}

/// The texts of markers under these keys, longest first.
pub(crate) fn marker_texts(value: &Value, keys: &[&str], out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, inner) in members {
                match inner.as_str() {
                    Some(text) if keys.contains(&key.as_str()) => out.push(text.to_owned()),
                    _ => marker_texts(inner, keys, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| marker_texts(item, keys, out)),
        _ => {}
    }
}

impl Rig {
    pub(crate) fn new(format: &WireFormat, which: Specials) -> Rig {
        let value = serde_json::to_value(format).expect("JSON");
        let keys: &[&str] = if which == Specials::Most { &["token", "either"] } else { &["token"] };
        let mut specials = Vec::new();
        marker_texts(&value, keys, &mut specials);
        specials.sort_by(|a: &String, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        specials.dedup();
        let mut rig = Rig { format: format.clone(), specials };
        rig.format = format.bind(&rig.vocabulary(&[]));
        rig
    }

    fn vocabulary(&self, pieces: &[&[u8]]) -> Vocabulary {
        let first = 257 + self.specials.len();
        let mut builder = Vocabulary::builder(first + pieces.len());
        for byte in 0..=255u8 {
            builder.token(u32::from(byte), &[byte]);
        }
        builder.special(256, "<stop>").stop(256);
        for (id, special) in (257..).zip(&self.specials) {
            builder.special(id, special);
        }
        for (id, piece) in (first as u32..).zip(pieces) {
            builder.token(id, piece);
        }
        builder.build().expect("vocabulary")
    }

    /// The units of a wire text. U+0000 before the text of a special token makes it text.
    pub(crate) fn units<'a>(&self, wire: &'a str) -> Vec<Unit<'a>> {
        let mut out = Vec::new();
        let (mut from, mut at) = (0, 0);
        let bytes = |out: &mut Vec<Unit<'a>>, from: usize, to: usize| {
            if from < to {
                out.push(Unit::Bytes(&wire.as_bytes()[from..to]));
            }
        };
        while let Some(c) = wire[at..].chars().next() {
            if c == '\0' {
                bytes(&mut out, from, at);
                from = at + 1;
                at += 1 + wire[at + 1..].chars().next().map_or(0, char::len_utf8);
                continue;
            }
            match self.specials.iter().find(|special| wire[at..].starts_with(special.as_str())) {
                Some(special) => {
                    bytes(&mut out, from, at);
                    out.push(Unit::Special(&wire[at..at + special.len()]));
                    at += special.len();
                    from = at;
                }
                None => at += c.len_utf8(),
            }
        }
        bytes(&mut out, from, wire.len());
        out
    }

    /// A session for these units, cut by the seeds (seed 0: single bytes).
    pub(crate) fn session<'a>(
        &'a self,
        lowered: &'a LoweredRequest,
        units: &[Unit<'_>],
        seeds: &[u64],
    ) -> Session<'a> {
        self.session_of(
            lowered,
            seeds.iter().flat_map(|&seed| units.iter().flat_map(move |unit| cut(unit, seed))),
        )
    }

    /// A session whose tokens are these pieces and single bytes.
    pub(crate) fn session_of<'a>(
        &'a self,
        lowered: &'a LoweredRequest,
        pieces: impl Iterator<Item = Vec<u8>>,
    ) -> Session<'a> {
        let mut known: HashMap<Vec<u8>, TokenId> = HashMap::new();
        let mut extra: Vec<Vec<u8>> = Vec::new();
        let first = 257 + self.specials.len();
        for piece in pieces {
            if piece.len() > 1 && !known.contains_key(&piece) {
                known.insert(piece.clone(), TokenId::new(first + extra.len()));
                extra.push(piece);
            }
        }
        let pieces: Vec<&[u8]> = extra.iter().map(Vec::as_slice).collect();
        let engine = Engine::new(Arc::new(self.vocabulary(&pieces)), EngineOptions::default());
        let constraint = engine.compile(lowered.grammar().clone()).expect("compiles");
        Session { rig: self, lowered, constraint, known }
    }
}

/// The unit's bytes in one piece, or in two if the offset is inside of it. Offsets count the units'
/// bytes.
pub(crate) fn split(unit: &Unit<'_>, from: usize, place: usize) -> Vec<Vec<u8>> {
    let Unit::Bytes(bytes) = unit else { return Vec::new() };
    match place.checked_sub(from).filter(|at| (1..bytes.len()).contains(at)) {
        Some(at) => vec![bytes[..at].to_vec(), bytes[at..].to_vec()],
        None => vec![bytes.to_vec()],
    }
}

fn cut(unit: &Unit<'_>, seed: u64) -> Vec<Vec<u8>> {
    let Unit::Bytes(bytes) = unit else { return Vec::new() };
    match seed {
        0 => bytes.chunks(1).map(<[u8]>::to_vec).collect(),
        seed => pieces(bytes, seed, 1 + (3 * seed % 23) as usize)
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect(),
    }
}

pub(crate) struct Session<'a> {
    rig: &'a Rig,
    lowered: &'a LoweredRequest,
    constraint: Constraint,
    known: HashMap<Vec<u8>, TokenId>,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) turn: Turn,
    pub(crate) events: Vec<Event>,
    /// The number of bytes and special tokens that were accepted before one was refused, or all.
    pub(crate) taken: Result<(), usize>,
    pub(crate) complete: bool,
}

impl Session<'_> {
    pub(crate) fn matcher(&self) -> Matcher {
        self.constraint.matcher()
    }

    /// The token of a piece of the session, or of a byte.
    pub(crate) fn token(&self, piece: &[u8]) -> TokenId {
        match piece {
            [byte] => TokenId::from_raw(u32::from(*byte)),
            _ => self.known[piece],
        }
    }

    /// The tokens of the units, cut by the seed.
    pub(crate) fn tokens(&self, units: &[Unit<'_>], seed: u64) -> Vec<TokenId> {
        self.tokens_of(units, |unit, _| cut(unit, seed))
    }

    /// The tokens of the units, cut in two at this offset of their bytes.
    pub(crate) fn tokens_split(&self, units: &[Unit<'_>], place: usize) -> Vec<TokenId> {
        self.tokens_of(units, |unit, from| split(unit, from, place))
    }

    fn tokens_of(
        &self,
        units: &[Unit<'_>],
        cut: impl Fn(&Unit<'_>, usize) -> Vec<Vec<u8>>,
    ) -> Vec<TokenId> {
        let (mut out, mut from) = (Vec::new(), 0);
        for unit in units {
            match unit {
                Unit::Special(name) => {
                    let at = self.rig.specials.iter().position(|s| s == name).expect("special");
                    out.push(TokenId::new(257 + at));
                }
                Unit::Bytes(_) => {
                    out.extend(cut(unit, from).into_iter().map(|piece| self.token(&piece)));
                    from += unit.bytes();
                }
            }
        }
        out
    }

    /// Takes tokens until one is refused. The extractor gets spans every `chunk` tokens.
    pub(crate) fn run(&self, tokens: &[TokenId], chunk: usize) -> Run {
        self.run_when(tokens, |n| n % chunk == 0)
    }

    /// As [`Session::run`]. The extractor gets spans after the tokens for which `when` is true.
    pub(crate) fn run_when(&self, tokens: &[TokenId], when: impl Fn(usize) -> bool) -> Run {
        let mut matcher = self.matcher();
        let (mut tracer, mut extractor, mut events) =
            (Tracer::new(), self.lowered.extractor(SEED), Vec::new());
        let mut taken = Ok(());
        for (n, &token) in tokens.iter().enumerate() {
            if matcher.advance_traced(token, &mut tracer).is_err() {
                taken = Err(n);
                break;
            }
            if when(n) {
                events.extend(extractor.push(tracer.drain()));
            }
        }
        events.extend(extractor.push(tracer.drain()));
        let complete = taken.is_ok() && matcher.is_complete();
        events.extend(extractor.push(tracer.finish()));
        events.extend(extractor.finish(complete));
        let events = joined(events);
        assert_eq!(events.last(), Some(&Event::End));
        Run { turn: Turn::collect(&events), events, taken, complete }
    }
}
