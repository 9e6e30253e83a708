//! Registers of open scopes: which values there have been, and the text of the element under way. Interned, so that a register is
//! a number, which stands in the frame behind the scope.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::value::{TooDeep, Unfinished, Value};
use crate::compile::{EMPTY, NONE};
use crate::fsm::ByteSet;

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

/// Values that there have been: a set and one more, by a text that says it.
#[derive(Clone, Copy, Debug)]
struct Set {
    before: u32,
    text: u32,
}

#[derive(Clone, Debug)]
struct Register {
    set: u32,
    text: u32,
    /// Texts of the set's values that the text under way may still come to say.
    rivals: Arc<[u32]>,
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

/// The registers of one parser.
#[derive(Debug)]
pub(crate) struct Registers {
    texts: Vec<Text>,
    text_ids: FxHashMap<(u32, u32), u32>,
    values: FxHashMap<u32, Arc<Value>>,
    sets: Vec<Set>,
    set_ids: FxHashMap<(u32, u32), u32>,
    registers: Vec<Register>,
    ids: FxHashMap<(u32, u32), u32>,
    /// Memory of values and rivals, roughly.
    held: usize,
    /// A value could not be compared.
    pub(super) too_deep: bool,
}

impl Registers {
    pub(super) fn new() -> Registers {
        let empty = Register { set: NOTHING, text: IDLE, rivals: Arc::default(), towards: ByteSet::EMPTY };
        Registers {
            texts: vec![Text { before: NO_TEXT, symbol: 0, quoted: Quoted::No }],
            text_ids: FxHashMap::default(),
            values: FxHashMap::default(),
            sets: vec![Set { before: NOTHING, text: NO_TEXT }],
            set_ids: FxHashMap::default(),
            registers: vec![empty; FIRST as usize],
            ids: [((NOTHING, IDLE), EMPTY)].into_iter().collect(),
            held: 0,
            too_deep: false,
        }
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.texts.len() * 32 + self.sets.len() * 32 + self.registers.len() * 64 + self.held
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
        let Register { set, text: before, .. } = self.registers[register as usize];
        let last = self.texts[before as usize];
        let byte = u8::try_from(symbol).unwrap_or(b'?');
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n') && last.quoted == Quoted::No;
        // White space outside of strings says nothing; between two words of what is no JSON, that it is there. At the beginning it
        // tells an element that has begun from one that has not.
        let alone = matches!(u8::try_from(last.symbol), Ok(b'[' | b'{' | b',' | b':' | b'"' | b']' | b'}' | b' '));
        if is_space && alone {
            return register;
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
        self.register(set, text)
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
        let rivals = rivals.clone();
        let said = self.symbols(text);
        if rivals.iter().any(|rival| self.values[rival].is_said_by(&said)) {
            return None;
        }
        if !self.values.contains_key(&text) {
            match Value::read(&said) {
                Ok(value) => {
                    self.held += said.len() * 8 + 128;
                    self.values.insert(text, Arc::new(value));
                }
                Err(TooDeep) => {
                    self.too_deep = true;
                    return None;
                }
            }
        }
        let next = self.sets.len() as u32;
        let set = *self.set_ids.entry((set, text)).or_insert(next);
        if set == next {
            self.sets.push(Set { before: self.registers[register as usize].set, text });
        }
        Some(self.register(set, IDLE))
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

    fn symbols(&self, text: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut at = text;
        while at != NO_TEXT {
            let Text { before, symbol, .. } = self.texts[at as usize];
            out.push(symbol);
            at = before;
        }
        out.reverse();
        out
    }

    fn register(&mut self, set: u32, text: u32) -> u32 {
        if let Some(&known) = self.ids.get(&(set, text)) {
            return known;
        }
        let (mut left, mut towards) = (Vec::new(), ByteSet::EMPTY);
        let mut look = |values: &FxHashMap<u32, Arc<Value>>, said: &Unfinished, rival: u32| {
            if let Some(next) = values[&rival].next_of(said) {
                left.push(rival);
                towards = towards.union(&next);
            }
        };
        match text {
            IDLE => {}
            NO_TEXT => {
                let mut at = set;
                let said = Unfinished::new(Vec::new());
                while at != NOTHING {
                    look(&self.values, &said, self.sets[at as usize].text);
                    at = self.sets[at as usize].before;
                }
            }
            _ => {
                // A text is read symbol by symbol, so the one before it has a register.
                let before = self.ids[&(set, self.texts[text as usize].before)];
                let before = self.registers[before as usize].rivals.clone();
                if !before.is_empty() {
                    let said = Unfinished::new(self.symbols(text));
                    before.iter().for_each(|&rival| look(&self.values, &said, rival));
                }
            }
        }
        let rivals: Arc<[u32]> = left.into();
        self.held += rivals.len() * 4;
        let id = self.registers.len() as u32;
        self.registers.push(Register { set, text, rivals, towards });
        self.ids.insert((set, text), id);
        id
    }
}
