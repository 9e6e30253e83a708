//! Registers of open scopes: which values there have been, and the text of the element under way. Interned, so that a register is
//! a number, which stands in the frame behind the scope.

use std::cell::LazyCell;
use std::sync::Arc;

use super::place::{Number, Place, Places};
use super::value::Value;
use crate::capacity::ReserveMore;
use crate::compile::{EMPTY, NONE};
use crate::fsm::ByteSet;
use crate::hash::HashMap;

/// One more element may end; a second end does not happen. Nothing is compared.
pub(crate) const ONE_END: u32 = 2;
/// No element ends any more.
pub(crate) const NO_END: u32 = 3;
/// One more element may end; none begins behind it.
pub(crate) const LAST: u32 = 4;
/// No element begins any more.
pub(crate) const NO_BEGIN: u32 = 5;
/// Registers of values come from here on, and [`EMPTY`] is one of those.
const FIRST: u32 = 6;

/// Registers for which there is room as soon as there is one.
const SOME: usize = 64;

/// No element is under way.
const IDLE: u32 = u32::MAX;
/// The text that is empty.
const NO_TEXT: u32 = 0;
/// The set that is empty.
const NOTHING: u32 = 0;

/// A text: another one and a byte, or a special token as a number from 256 on.
#[derive(Clone, Copy, Debug)]
struct Text {
    before: u32,
    symbol: u32,
    quoted: Quoted,
}

/// Whether a text ends in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoted {
    No,
    Yes,
    /// Behind a backslash.
    Escape,
}

/// Values that there have been: a set and one more.
#[derive(Clone, Copy, Debug)]
struct Set {
    before: u32,
    value: u32,
}

/// Values that a text may still come to say, all of which it has got equally far in.
#[derive(Clone, Debug)]
struct Rivals {
    place: Place,
    values: Arc<[u32]>,
}

#[derive(Clone, Debug)]
struct Register {
    set: u32,
    text: u32,
    /// The set's values that the text under way may still come to say.
    rivals: Arc<[Rivals]>,
    /// How the text may go on to say one of those, and perhaps in other ways.
    towards: ByteSet,
}

/// What is said of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// It is of values.
    pub(super) real: bool,
    /// An element is under way.
    pub(super) reading: bool,
    /// The element under way may still become one that there has been.
    pub(super) rivalled: bool,
}

/// What tells how an element under way goes on as long as it may still become one that there has been.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Outlook {
    set: u32,
    /// Places, and where in memory the values are that share them.
    rivals: Vec<(Place, usize)>,
    /// In a number: what of it matters.
    number: Option<Number>,
}

/// The registers of one parser.
#[derive(Debug)]
pub(crate) struct Registers {
    texts: Vec<Text>,
    text_ids: HashMap<(u32, u32), u32>,
    values: Vec<Value>,
    /// By the texts that say them.
    value_ids: HashMap<u32, u32>,
    places: Places,
    sets: Vec<Set>,
    set_ids: HashMap<(u32, u32), u32>,
    registers: Vec<Register>,
    ids: HashMap<(u32, u32), u32>,
    /// Memory of values and rivals, roughly.
    held: usize,
    /// A value could not be compared.
    pub(super) too_deep: bool,
}

impl Registers {
    pub(super) fn new() -> Registers {
        let empty =
            Register { set: NOTHING, text: IDLE, rivals: Arc::default(), towards: ByteSet::EMPTY };
        Registers {
            texts: vec![Text { before: NO_TEXT, symbol: 0, quoted: Quoted::No }],
            text_ids: HashMap::default(),
            values: Vec::new(),
            value_ids: HashMap::default(),
            places: Places::new(),
            sets: vec![Set { before: NOTHING, value: 0 }],
            set_ids: HashMap::default(),
            registers: vec![empty; FIRST as usize],
            ids: [((NOTHING, IDLE), EMPTY)].into_iter().collect(),
            held: 0,
            too_deep: false,
        }
    }

    /// Makes room for more: see [`crate::capacity`].
    pub(super) fn reserve_more(&mut self) {
        self.texts.reserve_more();
        self.text_ids.reserve_more();
        self.sets.reserve_more();
        self.set_ids.reserve_more();
        self.registers.reserve_more();
        self.ids.reserve_more();
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.texts.len() * 32
            + self.sets.len() * 32
            + self.registers.len() * 80
            + self.held
            + self.places.bytes()
    }

    /// The register that stands for this one where masks are concerned.
    pub(super) fn normal(register: u32) -> u32 {
        if Registers::is_real(register) { NONE } else { register }
    }

    fn is_real(register: u32) -> bool {
        register == EMPTY || register >= FIRST
    }

    pub(super) fn said(&self, register: u32) -> Said {
        if !Registers::is_real(register) {
            return Said::default();
        }
        let Register { text, rivals, .. } = &self.registers[register as usize];
        Said { real: true, reading: *text != IDLE, rivalled: !rivals.is_empty() }
    }

    /// The register in which only so much may happen as in tokens that need not be looked at one by one. `open`: see
    /// [`crate::compile::Role`].
    pub(super) fn limited(&self, register: u32, open: bool) -> u32 {
        if !Registers::is_real(register) {
            return register;
        }
        let idle = self.registers[register as usize].text == IDLE;
        match (open, idle) {
            (true, true) if register != EMPTY => NO_END,
            (true, _) => ONE_END,
            (false, true) if register != EMPTY => NO_BEGIN,
            (false, _) => LAST,
        }
    }

    /// An element begins; `None` where none may.
    pub(super) fn begin(&mut self, register: u32) -> Option<u32> {
        match register {
            NO_BEGIN => None,
            NONE | ONE_END | NO_END | LAST => Some(register),
            _ => {
                let set = self.registers[register as usize].set;
                Some(self.register(set, NO_TEXT))
            }
        }
    }

    /// The element under way is none.
    pub(super) fn forget(&mut self, register: u32) -> u32 {
        match Registers::is_real(register) {
            true => self.register(self.registers[register as usize].set, IDLE),
            false => register,
        }
    }

    /// The element under way goes on.
    pub(super) fn read(&mut self, register: u32, symbol: u32) -> u32 {
        if !self.said(register).reading {
            return register;
        }
        let Register { set, text, .. } = self.registers[register as usize];
        let text = self.text_behind(text, symbol);
        self.register(set, text)
    }

    /// As [`Registers::read`] byte by byte, where that needs no register for what is between: an element is under way that there is nothing
    /// to be told apart from.
    pub(super) fn read_all(&mut self, register: u32, bytes: &[u8]) -> u32 {
        debug_assert!(self.reads_first(register), "an element that is the first");
        let Register { set, mut text, .. } = self.registers[register as usize];
        for &byte in bytes {
            text = self.text_behind(text, u32::from(byte));
        }
        self.register(set, text)
    }

    /// Whether an element is under way, and there have been no others.
    pub(super) fn reads_first(&self, register: u32) -> bool {
        self.said(register).reading
            && self.registers.get(register as usize).is_some_and(|known| known.set == NOTHING)
    }

    /// A text and one more symbol; the same text where that says nothing.
    fn text_behind(&mut self, before: u32, symbol: u32) -> u32 {
        let last = self.texts[before as usize];
        let byte = u8::try_from(symbol).unwrap_or(b'?');
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n') && last.quoted == Quoted::No;
        // White space outside of strings says nothing; between two words of what is no JSON, that it is there. At the beginning it
        // tells an element that has begun from one that has not.
        let alone = matches!(
            u8::try_from(last.symbol),
            Ok(b'[' | b'{' | b',' | b':' | b'"' | b']' | b'}' | b' ')
        );
        if is_space && alone {
            return before;
        }
        let symbol = if is_space { u32::from(b' ') } else { symbol };
        let quoted = match (last.quoted, byte) {
            (Quoted::No, b'"') | (Quoted::Escape, _) => Quoted::Yes,
            (Quoted::Yes, b'"') => Quoted::No,
            (Quoted::Yes, b'\\') => Quoted::Escape,
            (quoted, _) => quoted,
        };
        let next = self.texts.len() as u32;
        let text = *self.text_ids.entry((before, symbol)).or_insert(next);
        if text == next {
            self.texts.push(Text { before, symbol, quoted });
        }
        text
    }

    /// The element under way ends; `None` if it may not, or there has been one of the same value.
    pub(super) fn end(&mut self, register: u32) -> Option<u32> {
        match register {
            NONE => return Some(NONE),
            ONE_END => return Some(NO_END),
            LAST => return Some(NO_BEGIN),
            NO_END | NO_BEGIN => return None,
            _ => {}
        }
        let Register { set, text, ref rivals, .. } = self.registers[register as usize];
        if text == IDLE {
            return Some(register);
        }
        let number = LazyCell::new(|| Number::behind(symbols_before(&self.texts, text)));
        let says = |rivals: &Rivals| {
            let mut values = rivals.values.iter().map(|&value| &self.values[value as usize]);
            values.any(|value| Places::says(value, rivals.place, &number))
        };
        if rivals.iter().any(says) {
            return None;
        }
        let value = self.value(text)?;
        let next = self.sets.len() as u32;
        let known = *self.set_ids.entry((set, text)).or_insert(next);
        if known == next {
            self.sets.push(Set { before: set, value });
        }
        Some(self.register(known, IDLE))
    }

    /// What a text says; `None` if that cannot be compared.
    fn value(&mut self, text: u32) -> Option<u32> {
        if let Some(&known) = self.value_ids.get(&text) {
            return Some(known);
        }
        let mut said: Vec<u32> = symbols_before(&self.texts, text).collect();
        said.reverse();
        let Ok(value) = Value::read(&said) else {
            self.too_deep = true;
            return None;
        };
        let id = self.values.len() as u32;
        self.held += said.len() * 8 + 128;
        self.values.push(value);
        self.value_ids.insert(text, id);
        Some(id)
    }

    /// Bytes (and perhaps others, never none) with which the element under way may still become one that there has been, if it may. Of
    /// elements of which nothing has been read, only if `begin`.
    pub(super) fn towards_rivals(&self, register: u32, begin: bool) -> ByteSet {
        if !self.said(register).rivalled {
            return ByteSet::EMPTY;
        }
        let Register { text, towards, .. } = &self.registers[register as usize];
        if *text == NO_TEXT && !begin { ByteSet::EMPTY } else { *towards }
    }

    /// See [`Outlook`]; `None` where no element may become another.
    pub(super) fn outlook(&self, register: u32) -> Option<Outlook> {
        if !self.said(register).rivalled {
            return None;
        }
        let Register { set, text, rivals, .. } = &self.registers[register as usize];
        let all =
            rivals.iter().flat_map(|group| group.values.iter().map(|&value| (group.place, value)));
        let zero =
            all.filter_map(|(place, value)| Places::in_number(&self.values[value as usize], place));
        let zero = zero.reduce(|a, b| a && b);
        let number =
            zero.map(|zero| Number::behind(symbols_before(&self.texts, *text)).outlook(zero));
        let rivals =
            rivals.iter().map(|group| (group.place, group.values.as_ptr() as usize)).collect();
        Some(Outlook { set: *set, rivals, number })
    }

    fn register(&mut self, set: u32, text: u32) -> u32 {
        if let Some(&known) = self.ids.get(&(set, text)) {
            return known;
        }
        let (rivals, towards) = match text {
            // There is nothing to be told apart from.
            _ if set == NOTHING || text == IDLE => (Vec::new(), ByteSet::EMPTY),
            NO_TEXT => self.begun(set),
            _ => self.followed(set, text),
        };
        self.held += rivals.len() * size_of::<Rivals>();
        let id = self.registers.len() as u32;
        let rivals = if rivals.is_empty() {
            self.registers[EMPTY as usize].rivals.clone()
        } else {
            rivals.into()
        };
        self.make_room();
        self.registers.push(Register { set, text, rivals, towards });
        self.ids.insert((set, text), id);
        id
    }

    /// Makes room for a name or two at once.
    fn make_room(&mut self) {
        if self.registers.capacity() < SOME {
            self.registers.reserve(SOME);
            self.ids.reserve(SOME);
            self.texts.reserve(SOME);
            self.text_ids.reserve(SOME);
        }
    }

    /// All values of a set, for a text of which nothing has been read, and how it may go on.
    fn begun(&mut self, set: u32) -> (Vec<Rivals>, ByteSet) {
        let number = LazyCell::new(|| Number::NONE);
        let (mut found, mut towards) = (Vec::new(), ByteSet::EMPTY);
        let mut at = set;
        while at != NOTHING {
            let Set { before, value } = self.sets[at as usize];
            let place = Places::begin(&self.values[value as usize]);
            towards =
                towards.union(&self.places.next(&self.values[value as usize], place, &number));
            found.push((place, value));
            at = before;
        }
        let mut rivals = Vec::new();
        by_place(found, None, (&mut rivals, &mut self.held));
        (rivals, towards)
    }

    /// Those of the rivals of the text before that are a text's own, and how it may go on.
    fn followed(&mut self, set: u32, text: u32) -> (Vec<Rivals>, ByteSet) {
        let Text { before, symbol, .. } = self.texts[text as usize];
        // A text is read symbol by symbol, so the one before it has a register.
        let old = self.registers[self.ids[&(set, before)] as usize].rivals.clone();
        let number = |text| {
            let texts = &self.texts;
            LazyCell::new(move || Number::behind(symbols_before(texts, text)))
        };
        let (last, number) = (number(before), number(text));
        let (mut rivals, mut towards) = (Vec::new(), ByteSet::EMPTY);
        for group in old.iter() {
            let mut found = Vec::with_capacity(group.values.len());
            for &value in group.values.iter() {
                let own = &self.values[value as usize];
                let Some(place) = self.places.step(own, group.place, symbol, &last) else {
                    continue;
                };
                let next = self.places.next(own, place, &number);
                if !next.is_empty() {
                    towards = towards.union(&next);
                    found.push((place, value));
                }
            }
            by_place(found, Some(&group.values), (&mut rivals, &mut self.held));
        }
        (rivals, towards)
    }
}

/// Values by their places. Where all have the same one, and are those of `all`, these are shared.
fn by_place(
    mut found: Vec<(Place, u32)>,
    all: Option<&Arc<[u32]>>,
    (rivals, held): (&mut Vec<Rivals>, &mut usize),
) {
    if !found.is_sorted_by_key(|(place, _)| *place) {
        found.sort_by_key(|(place, _)| *place);
    }
    for alike in found.chunk_by(|a, b| a.0 == b.0) {
        let place = alike[0].0;
        let values = match all {
            Some(all) if all.len() == alike.len() => all.clone(),
            _ => {
                *held += alike.len() * 4 + 32;
                alike.iter().map(|(_, value)| *value).collect()
            }
        };
        rivals.push(Rivals { place, values });
    }
}

/// The symbols of a text, from its end.
fn symbols_before(texts: &[Text], text: u32) -> impl Iterator<Item = u32> {
    let mut at = text;
    std::iter::from_fn(move || {
        let Text { before, symbol, .. } = *texts.get(at as usize).filter(|_| at != NO_TEXT)?;
        at = before;
        Some(symbol)
    })
}
