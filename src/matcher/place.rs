//! How far a text has got that may still come to say a value, byte by byte.
//!
//! A place says which part of a value is under way, and nothing of what the value says: values that are built alike have the same place
//! in a text, and are followed together.

use std::cmp::Ordering;
use std::ops::Deref;

use super::escape::Escape;
use super::value::{Decimal, MAX_EXPONENT, NUMBER, Node, SPACE, Value};
use crate::fsm::ByteSet;
use crate::hash::HashMap;

/// Nothing is around.
const NOWHERE: u32 = 0;
/// What may follow a number: white space, and what stands behind a node.
const BEHIND: &[u8] = b" \t\r\n,]}";
/// Memory of a list, roughly.
const HELD: usize = 80;

/// Where a text is in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// The innermost list around, and what of it there has been.
    around: u32,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum At {
    /// Before a node, perhaps in white space.
    Before(u32),
    /// Behind so many bytes of it.
    Word(u32, u32),
    /// In it, or behind it.
    Number(u32),
    /// Behind so many bytes of what it says, and what has been read of the next character.
    String(u32, u32, Escape),
    /// Before a name.
    Member,
    /// As in a string, in a name: that of this member, or of another one that begins so.
    Name(u32, u32, Escape),
    /// Before the colon in front of a node.
    Colon(u32),
    /// Behind a node, or an opening bracket that nothing follows.
    Behind,
    /// Behind so many symbols of what is no JSON.
    Other(u32),
}

/// A list or an object that a text is in.
#[derive(Debug)]
struct Around {
    /// What is around it.
    up: u32,
    node: u32,
    /// Elements or members that have begun.
    begun: usize,
    /// Those members, a bit each.
    named: Box<[u64]>,
}

impl Around {
    fn is_named(&self, member: u32) -> bool {
        self.named.get(member as usize / 64).is_some_and(|word| word >> (member % 64) & 1 == 1)
    }
}

/// The number that a text ends in, if it does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Number {
    part: Part,
    /// Digits before the exponent that are not zeros in front.
    digits: usize,
    /// Before the exponent it is `0.d1 d2 ... * 10^point`.
    point: i64,
    /// What has been read of the exponent.
    exponent: u64,
    is_small: bool,
    /// If it may end here.
    value: Option<Decimal>,
}

/// What of a number there has been last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Nothing,
    Minus,
    /// A zero before the point, which is all there is before it.
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
    /// It is no number.
    Wrong,
}

impl Part {
    fn read(self, byte: u8) -> Part {
        match (self, byte) {
            (Part::Nothing, b'-') => Part::Minus,
            (Part::Nothing | Part::Minus, b'0') => Part::Zero,
            (Part::Nothing | Part::Minus | Part::Whole, b'0'..=b'9') => Part::Whole,
            (Part::Zero | Part::Whole, b'.') => Part::Point,
            (Part::Point | Part::Fraction, b'0'..=b'9') => Part::Fraction,
            (Part::Zero | Part::Whole | Part::Fraction, b'e' | b'E') => Part::E,
            (Part::E, b'+' | b'-') => Part::Sign,
            (Part::E | Part::Sign | Part::Exponent, b'0'..=b'9') => Part::Exponent,
            _ => Part::Wrong,
        }
    }
}

impl Number {
    /// No number has begun.
    pub(super) const NONE: Number = Number {
        part: Part::Nothing,
        digits: 0,
        point: 0,
        exponent: 0,
        is_small: false,
        value: None,
    };

    /// The number that a text ends in, given from its end.
    pub(super) fn behind(text: impl Iterator<Item = u32>) -> Number {
        let of_number =
            |symbol: u32| u8::try_from(symbol).ok().filter(|byte| NUMBER.contains(byte));
        let mut bytes: Vec<u8> = text.map_while(of_number).collect();
        bytes.reverse();
        let mut number = Number { value: Decimal::read(&bytes), ..Number::NONE };
        for &byte in &bytes {
            number.part = number.part.read(byte);
            match number.part {
                Part::Zero | Part::Whole | Part::Fraction => {
                    number.digits += usize::from(number.digits > 0 || byte != b'0');
                    // Digits before the point, and zeros in front behind it.
                    number.point += i64::from(number.part != Part::Fraction && number.digits > 0);
                    number.point -= i64::from(number.part == Part::Fraction && number.digits == 0);
                }
                Part::Sign => number.is_small = byte == b'-',
                Part::Exponent => {
                    let more = number.exponent * 10 + u64::from(byte - b'0');
                    number.exponent = more.min(MAX_EXPONENT.unsigned_abs());
                }
                _ => {}
            }
        }
        number
    }

    /// As far as it matters to a text that may still come to say zero, or any number. No exponent changes a zero.
    pub(super) fn outlook(self, zero: bool) -> Number {
        if zero {
            Number { part: self.part, ..Number::NONE }
        } else {
            Number { value: None, ..self }
        }
    }

    /// How the text goes on if it may still come to say this number, as far as digits tell.
    fn next(&self, number: &Decimal) -> ByteSet {
        let mut next = ByteSet::EMPTY;
        let digit = match self.part {
            Part::Nothing => !number.negative,
            Part::Minus | Part::Whole | Part::Point | Part::Fraction => true,
            _ => false,
        };
        if digit {
            next.insert(number.digits.get(self.digits).copied().unwrap_or(b'0'));
            if self.digits == 0 {
                next.insert(b'0');
            }
        }
        match self.part {
            Part::Nothing if number.negative || number.digits.is_empty() => next.insert(b'-'),
            Part::Zero | Part::Whole => next.insert(b'.'),
            Part::E | Part::Sign | Part::Exponent => next = self.next_in_exponent(number),
            _ => {}
        }
        let may_end = matches!(self.part, Part::Zero | Part::Whole | Part::Fraction);
        if may_end && self.digits >= number.digits.len() {
            next.insert(b'e');
            next.insert(b'E');
        }
        if self.value.as_ref() == Some(number) {
            next = next.union(&ByteSet::of(BEHIND));
        }
        next
    }
}

impl Number {
    fn next_in_exponent(&self, number: &Decimal) -> ByteSet {
        let wanted = number.exponent - self.point;
        let (small, large) = (wanted <= 0, wanted >= 0);
        let wanted = wanted.unsigned_abs();
        let mut next = ByteSet::EMPTY;
        // No exponent changes a zero, and those that are too large are all the same.
        let any = number.digits.is_empty() || wanted >= MAX_EXPONENT.unsigned_abs();
        if self.part == Part::E {
            if large || any {
                next.insert(b'+');
            }
            if small || any {
                next.insert(b'-');
            }
        }
        if any {
            next.insert_range(b'0', b'9');
        } else if if self.is_small { small } else { large } {
            let read = if self.exponent == 0 { String::new() } else { self.exponent.to_string() };
            if read.is_empty() {
                next.insert(b'0');
            }
            if let Some(&digit) =
                wanted.to_string().as_bytes().strip_prefix(read.as_bytes()).and_then(<[u8]>::first)
            {
                next.insert(digit);
            }
        }
        next
    }
}

/// The lists that texts have been in.
#[derive(Debug)]
pub(super) struct Places {
    around: Vec<Around>,
    /// By what is around and the node, and by what there has been and what begins.
    opened: HashMap<(u32, u32), u32>,
    begun: HashMap<(u32, u32), u32>,
    held: usize,
}

impl Places {
    pub(super) fn new() -> Places {
        let nowhere = Around { up: NOWHERE, node: 0, begun: 0, named: Box::default() };
        Places {
            around: vec![nowhere],
            opened: HashMap::default(),
            begun: HashMap::default(),
            held: 0,
        }
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.held
    }

    /// Where a text is of which nothing has been read.
    pub(super) fn begin(value: &Value) -> Place {
        let at = if let Node::Other(_) = value.nodes[0] { At::Other(0) } else { At::Before(0) };
        Place { around: NOWHERE, at }
    }

    /// Where a text has got with one symbol more. `number`: the one that the text before ends in. `None`: it does not come to say the
    /// value.
    pub(super) fn step(
        &mut self,
        value: &Value,
        place: Place,
        symbol: u32,
        number: &impl Deref<Target = Number>,
    ) -> Option<Place> {
        let Place { around, at } = place;
        if let (At::Other(read), Node::Other(own)) = (at, &value.nodes[0]) {
            return (own.get(read as usize) == Some(&symbol))
                .then_some(Place { around, at: At::Other(read + 1) });
        }
        let byte = u8::try_from(symbol).ok()?;
        let at = match (at, at.node().map(|node| &value.nodes[node as usize])) {
            (At::Before(_) | At::Member | At::Colon(_) | At::Behind, _)
                if SPACE.contains(&byte) =>
            {
                at
            }
            (At::Before(node), Some(own)) => return self.enter(own, (around, node), byte),
            (At::Colon(node), _) => (byte == b':').then_some(At::Before(node))?,
            (At::Behind, _) => return self.go_on(value, around, byte),
            (At::Member, _) => {
                let first = self.named_so(value, around, (b"", b"")).next()?;
                (byte == b'"').then_some(At::Name(first, 0, Escape::NONE))?
            }
            (At::Name(member, read, escape), _) => {
                return self.name(value, around, (member, read, escape), byte);
            }
            (At::Word(node, read), Some(Node::Word(own))) => {
                (own.get(read as usize) == Some(&byte)).then_some(())?;
                if read as usize + 1 == own.len() { At::Behind } else { At::Word(node, read + 1) }
            }
            (At::Number(_), Some(Node::Number(own))) => match number.next(own).contains(byte) {
                true if NUMBER.contains(&byte) => at,
                true => return self.step(value, Place { around, at: At::Behind }, symbol, number),
                false => return None,
            },
            (At::String(node, read, mut escape), Some(Node::String(own))) => {
                let said = escape.read(byte)?;
                let rest = own[read as usize..].strip_prefix(said.bytes())?;
                match said.ends {
                    true => rest.is_empty().then_some(At::Behind)?,
                    false => At::String(node, (own.len() - rest.len()) as u32, escape),
                }
            }
            _ => return None,
        };
        Some(Place { around, at })
    }

    /// The first byte of a node.
    fn enter(&mut self, own: &Node, (around, node): (u32, u32), byte: u8) -> Option<Place> {
        let at = match (own, byte) {
            (Node::Word(word), _) if word.first() == Some(&byte) => At::Word(node, 1),
            (Node::Number(number), _) if Number::NONE.next(number).contains(byte) => {
                At::Number(node)
            }
            (Node::String(_), b'"') => At::String(node, 0, Escape::NONE),
            (Node::Array(items), b'[') => {
                let around = self.open(around, node);
                let Some(&first) = items.first() else {
                    return Some(Place { around, at: At::Behind });
                };
                return Some(Place { around: self.begin_in(around, 0), at: At::Before(first) });
            }
            (Node::Object(members), b'{') => {
                let at = if members.is_empty() { At::Behind } else { At::Member };
                return Some(Place { around: self.open(around, node), at });
            }
            _ => return None,
        };
        Some(Place { around, at })
    }

    /// The byte behind a node, or behind an opening bracket that nothing follows.
    fn go_on(&mut self, value: &Value, around: u32, byte: u8) -> Option<Place> {
        if byte != self.punctuation(value, around)? {
            return None;
        }
        let Around { up, node, begun, .. } = self.around[around as usize];
        match &value.nodes[node as usize] {
            _ if byte != b',' => Some(Place { around: up, at: At::Behind }),
            Node::Array(items) => {
                Some(Place { around: self.begin_in(around, 0), at: At::Before(items[begun]) })
            }
            _ => Some(Place { around, at: At::Member }),
        }
    }

    /// What comes behind a node, in a list.
    fn punctuation(&self, value: &Value, around: u32) -> Option<u8> {
        let Around { node, begun, .. } = self.around[around as usize];
        match &value.nodes[node as usize] {
            _ if around == NOWHERE => None,
            Node::Array(items) => Some(if begun == items.len() { b']' } else { b',' }),
            Node::Object(members) => Some(if begun == members.len() { b'}' } else { b',' }),
            _ => None,
        }
    }

    /// A byte of a name.
    fn name(
        &mut self,
        value: &Value,
        around: u32,
        (member, read, mut escape): (u32, u32, Escape),
        byte: u8,
    ) -> Option<Place> {
        let said = escape.read(byte)?;
        let members = self.members(value, around);
        let (name, more) = (&members.get(member as usize)?.0, said.bytes());
        let member = match !said.ends && name[read as usize..].starts_with(more) {
            true => member,
            false => self.named_so(value, around, (&name[..read as usize], more)).next()?,
        };
        let read = read + more.len() as u32;
        if !said.ends {
            return Some(Place { around, at: At::Name(member, read, escape) });
        }
        // Of the names that begin so, the one that ends so comes first.
        let (name, node) = &members[member as usize];
        let node = (name.len() == read as usize).then_some(*node)?;
        Some(Place { around: self.begin_in(around, member), at: At::Colon(node) })
    }

    fn members<'v>(&self, value: &'v Value, around: u32) -> &'v [(Vec<u8>, u32)] {
        match &value.nodes[self.around[around as usize].node as usize] {
            Node::Object(members) => members,
            _ => &[],
        }
    }

    /// Members that have not been there and whose names begin with a text and more, by name.
    fn named_so<'v>(
        &self,
        value: &'v Value,
        around: u32,
        (text, more): (&[u8], &[u8]),
    ) -> impl Iterator<Item = u32> + use<'_, 'v> {
        let members = self.members(value, around);
        let so =
            |name: &[u8]| name.iter().take(text.len() + more.len()).cmp(text.iter().chain(more));
        let from = members.partition_point(|(name, _)| so(name) == Ordering::Less);
        let many = members[from..].partition_point(|(name, _)| so(name) == Ordering::Equal);
        let around = &self.around[around as usize];
        (from..from + many).map(|member| member as u32).filter(|&member| !around.is_named(member))
    }

    /// How a text may go on so that it may still come to say the value, or has come to do so; never nothing if it may. `number`: the
    /// one that it ends in.
    pub(super) fn next(
        &self,
        value: &Value,
        place: Place,
        number: &impl Deref<Target = Number>,
    ) -> ByteSet {
        let Place { around, at } = place;
        let spaced = |bytes: &[u8]| ByteSet::of(bytes).union(&ByteSet::WHITE_SPACE);
        match (at, at.node().map(|node| &value.nodes[node as usize])) {
            (At::Before(_), Some(Node::Word(own))) => spaced(&own[..1]),
            (At::Before(_), Some(Node::Number(own))) => {
                Number::NONE.next(own).union(&ByteSet::WHITE_SPACE)
            }
            (At::Before(_), Some(Node::String(_))) | (At::Member, _) => spaced(b"\""),
            (At::Before(_), Some(Node::Array(_))) => spaced(b"["),
            (At::Before(_), Some(Node::Object(_))) => spaced(b"{"),
            (At::Colon(_), _) => spaced(b":"),
            (At::Behind, _) => spaced(self.punctuation(value, around).as_slice()),
            (At::Word(_, read), Some(Node::Word(own))) => ByteSet::of(&own[read as usize..][..1]),
            (At::Number(_), Some(Node::Number(own))) => number.next(own),
            (At::String(_, read, escape), Some(Node::String(own))) => {
                escape.next(&own[read as usize..])
            }
            (At::Name(member, read, escape), _) => {
                let members = self.members(value, around);
                let read = read as usize;
                let so = self.named_so(value, around, (&members[member as usize].0[..read], b""));
                so.map(|member| escape.next(&members[member as usize].0[read..]))
                    .fold(ByteSet::EMPTY, |all, next| all.union(&next))
            }
            (At::Other(read), _) => match &value.nodes[0] {
                // What is no byte has no place here.
                Node::Other(own) => {
                    match own.get(read as usize).map(|&symbol| u8::try_from(symbol)) {
                        Some(Ok(byte)) => ByteSet::range(byte, byte),
                        _ => ByteSet::WHITE_SPACE,
                    }
                }
                _ => ByteSet::EMPTY,
            },
            _ => ByteSet::EMPTY,
        }
    }

    /// Whether a text is in a number of the value, and whether that is zero.
    pub(super) fn in_number(value: &Value, place: Place) -> Option<bool> {
        match (place.at, place.at.node().map(|node| &value.nodes[node as usize])) {
            (At::Number(_), Some(Node::Number(own))) => Some(own.digits.is_empty()),
            _ => None,
        }
    }

    /// Whether a text says the value. `number`: the one that it ends in.
    pub(super) fn says(value: &Value, place: Place, number: &impl Deref<Target = Number>) -> bool {
        match (place.at, &value.nodes[0]) {
            _ if place.around != NOWHERE => false,
            (At::Behind, _) => true,
            (At::Number(_), Node::Number(own)) => number.value.as_ref() == Some(own),
            (At::Other(read), Node::Other(own)) => read as usize == own.len(),
            _ => false,
        }
    }

    /// A list opens.
    fn open(&mut self, up: u32, node: u32) -> u32 {
        let next = self.around.len() as u32;
        let known = *self.opened.entry((up, node)).or_insert(next);
        if known == next {
            self.held += HELD;
            self.around.push(Around { up, node, begun: 0, named: Box::default() });
        }
        known
    }

    /// An element (0) or a member begins in the innermost list.
    fn begin_in(&mut self, around: u32, member: u32) -> u32 {
        let next = self.around.len() as u32;
        let known = *self.begun.entry((around, member)).or_insert(next);
        if known == next {
            let Around { up, node, begun, ref named } = self.around[around as usize];
            let (word, bit) = (member as usize / 64, member % 64);
            let mut named = named.to_vec();
            named.resize(named.len().max(word + 1), 0);
            named[word] |= 1 << bit;
            self.held += HELD + named.len() * 8;
            self.around.push(Around { up, node, begun: begun + 1, named: named.into() });
        }
        known
    }
}

impl At {
    /// The node that is under way, if it is one of its own.
    fn node(self) -> Option<u32> {
        match self {
            At::Before(node) | At::Word(node, _) | At::Number(node) | At::String(node, ..) => {
                Some(node)
            }
            At::Member | At::Name(..) | At::Colon(_) | At::Behind | At::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
