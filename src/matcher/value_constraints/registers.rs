//! Registers: the values of an open scope, and the text of its open element.
//!
//! Registers, texts and sets of values are interned, so a register is a number that fits into an
//! item. The values of a set that the open text may still equal (its *rivals*) are followed by
//! cursors (see [`super::value_cursor`]); rivals with equal cursors form a group. See
//! `docs/internals/DISTINCT_VALUES.md`.

use std::cell::LazyCell;
use std::sync::Arc;

use super::json_value::JsonValue;
use super::number_prefix::NumberPrefix;
use super::value_cursor::{CursorTable, ValueCursor};
use crate::capacity::ReserveMore;
use crate::compile::RegisterId;
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{ByAddress, HashMap};
use crate::ids::id;
use crate::matcher::symbol::SymbolCode;

/// Capacity that the first register reserves.
const INITIAL_REGISTERS: usize = 64;
/// Fuel to follow one rival by one symbol.
const FUEL_PER_RIVAL: usize = 4;

id! {
    /// A text of an element: an index into [`Registers::texts`].
    TextId
}

impl TextId {
    /// The empty text.
    const EMPTY: TextId = TextId::from_raw(0);
    /// No text: no element is open.
    const NONE: TextId = TextId::from_raw(u32::MAX);
}

id! {
    /// The value of an element: an index into [`Registers::values`].
    ValueId
}

id! {
    /// A set of values: an index into [`Registers::sets`].
    ValueSetId
}

impl ValueSetId {
    /// The empty set.
    const EMPTY: ValueSetId = ValueSetId::from_raw(0);
}

/// A text as a linked list: another text and one symbol.
#[derive(Clone, Copy, Debug)]
struct TextNode {
    before: TextId,
    symbol: SymbolCode,
    quoted: QuoteState,
}

/// Whether a text ends inside of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuoteState {
    No,
    Yes,
    /// After a backslash in a string.
    Escape,
}

/// A set of values as a linked list: another set and one value.
#[derive(Clone, Copy, Debug)]
struct ValueSet {
    before: ValueSetId,
    value: ValueId,
}

/// Rivals with the same cursor.
#[derive(Clone, Debug)]
struct RivalGroup {
    cursor: ValueCursor,
    values: Arc<[ValueId]>,
}

/// A set of values, and the text of the open element.
#[derive(Clone, Debug)]
struct Register {
    set: ValueSetId,
    /// The text of the open element, or [`TextId::NONE`].
    text: TextId,
    /// The values of the set that the open text may still equal.
    rivals: Arc<[RivalGroup]>,
    /// A superset of the bytes that lead towards a rival.
    rival_bytes: ByteSet,
}

/// Properties of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::matcher) struct RegisterStatus {
    /// It holds values (it is none of the counting registers).
    pub(in crate::matcher) holds_values: bool,
    /// An element is open.
    pub(in crate::matcher) element_open: bool,
    /// The open element has rivals.
    pub(in crate::matcher) has_rivals: bool,
}

/// What determines the continuations of an open element with rivals. Equal states have equal
/// continuations, regardless of the spelling of the text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::matcher) struct RivalState {
    set: ValueSetId,
    /// Cursors of the groups, with the shared value lists.
    rivals: Vec<(ValueCursor, ByAddress<[ValueId]>)>,
    /// Inside of a number: the part of its prefix that matters.
    number: Option<NumberPrefix>,
}

/// The registers of one parser.
#[derive(Debug)]
pub(crate) struct Registers {
    texts: Vec<TextNode>,
    /// Texts by the text before and the last symbol.
    text_ids: HashMap<(TextId, SymbolCode), TextId>,
    values: Vec<JsonValue>,
    /// Values by text.
    value_ids: HashMap<TextId, ValueId>,
    cursors: CursorTable,
    sets: Vec<ValueSet>,
    /// Sets by the set before and the text of the last value.
    set_ids: HashMap<(ValueSetId, TextId), ValueSetId>,
    registers: Vec<Register>,
    ids: HashMap<(ValueSetId, TextId), RegisterId>,
    /// Approximate memory of values and rivals, in bytes.
    held_bytes: usize,
    /// The last value was nested too deeply to be compared.
    pub(in crate::matcher) too_deep: bool,
}

impl Registers {
    /// No registers but the empty one.
    pub(in crate::matcher) fn new() -> Registers {
        let empty = Register {
            set: ValueSetId::EMPTY,
            text: TextId::NONE,
            rivals: Arc::default(),
            rival_bytes: ByteSet::EMPTY,
        };
        Registers {
            texts: vec![TextNode {
                before: TextId::EMPTY,
                symbol: 0.into(),
                quoted: QuoteState::No,
            }],
            text_ids: HashMap::default(),
            values: Vec::new(),
            value_ids: HashMap::default(),
            cursors: CursorTable::new(),
            sets: vec![ValueSet { before: ValueSetId::EMPTY, value: ValueId::from_raw(0) }],
            set_ids: HashMap::default(),
            registers: vec![empty; RegisterId::FIRST_FREE.index()],
            ids: [((ValueSetId::EMPTY, TextId::NONE), RegisterId::EMPTY)].into_iter().collect(),
            held_bytes: 0,
            too_deep: false,
        }
    }

    /// Reserves capacity; see [`crate::capacity`].
    pub(in crate::matcher) fn reserve_more(&mut self) {
        self.texts.reserve_more();
        self.text_ids.reserve_more();
        self.sets.reserve_more();
        self.set_ids.reserve_more();
        self.registers.reserve_more();
        self.ids.reserve_more();
    }

    /// Approximate memory in bytes.
    pub(in crate::matcher) fn bytes(&self) -> usize {
        self.texts.len() * 32
            + self.sets.len() * 32
            + self.registers.len() * 80
            + self.held_bytes
            + self.cursors.bytes()
    }

    /// The canonical register for masks: registers with values count as none.
    pub(in crate::matcher) fn canonical(register: RegisterId) -> RegisterId {
        if register.holds_values() { RegisterId::UNKNOWN } else { register }
    }

    /// The properties of a register.
    pub(in crate::matcher) fn status(&self, register: RegisterId) -> RegisterStatus {
        if !register.holds_values() {
            return RegisterStatus::default();
        }
        let Register { text, rivals, .. } = &self.registers[register.index()];
        RegisterStatus {
            holds_values: true,
            element_open: *text != TextId::NONE,
            has_rivals: !rivals.is_empty(),
        }
    }

    /// The counting register for masks: it compares nothing, and allows only as many elements as a
    /// token that needs no individual check. `inexhaustible`: see [`crate::compile::DistinctRole`].
    pub(in crate::matcher) fn counting_register(
        &self,
        register: RegisterId,
        inexhaustible: bool,
    ) -> RegisterId {
        if !register.holds_values() {
            return register;
        }
        let idle = self.registers[register.index()].text == TextId::NONE;
        match (inexhaustible, idle) {
            (true, true) if register != RegisterId::EMPTY => RegisterId::MAY_NOT_END,
            (true, _) => RegisterId::MAY_END_ONCE,
            (false, true) if register != RegisterId::EMPTY => RegisterId::MAY_NOT_BEGIN,
            (false, _) => RegisterId::FINAL_ELEMENT,
        }
    }

    /// An element begins. `None` if the scope allows no further one.
    pub(in crate::matcher) fn begin_element(&mut self, register: RegisterId) -> Option<RegisterId> {
        match register {
            RegisterId::MAY_NOT_BEGIN => None,
            RegisterId::UNKNOWN
            | RegisterId::MAY_END_ONCE
            | RegisterId::MAY_NOT_END
            | RegisterId::FINAL_ELEMENT => Some(register),
            _ => {
                let set = self.registers[register.index()].set;
                Some(self.intern_register(set, TextId::EMPTY))
            }
        }
    }

    /// The open element is abandoned.
    pub(in crate::matcher) fn discard_element(&mut self, register: RegisterId) -> RegisterId {
        match register.holds_values() {
            true => self.intern_register(self.registers[register.index()].set, TextId::NONE),
            false => register,
        }
    }

    /// Extends the open element by a symbol.
    pub(in crate::matcher) fn read_symbol(
        &mut self,
        register: RegisterId,
        symbol: SymbolCode,
    ) -> RegisterId {
        if !self.status(register).element_open {
            return register;
        }
        let Register { set, text, .. } = self.registers[register.index()];
        let text = self.append_symbol(text, symbol);
        self.intern_register(set, text)
    }

    /// A text extended by a symbol; the same text if the symbol is redundant white space.
    fn append_symbol(&mut self, before: TextId, symbol: SymbolCode) -> TextId {
        let last = self.texts[before.index()];
        let byte = symbol.byte().unwrap_or(b'?');
        let is_space =
            matches!(byte, b' ' | b'\t' | b'\r' | b'\n') && last.quoted == QuoteState::No;
        // White space outside of strings is redundant after punctuation and after white space. It
        // is kept between the words of a text that is not JSON, and at the beginning, where it
        // distinguishes an element that has begun.
        let is_redundant = matches!(
            last.symbol.byte(),
            Some(b'[' | b'{' | b',' | b':' | b'"' | b']' | b'}' | b' ')
        );
        if is_space && is_redundant {
            return before;
        }
        let symbol = if is_space { b' '.into() } else { symbol };
        let quoted = match (last.quoted, byte) {
            (QuoteState::No, b'"') | (QuoteState::Escape, _) => QuoteState::Yes,
            (QuoteState::Yes, b'"') => QuoteState::No,
            (QuoteState::Yes, b'\\') => QuoteState::Escape,
            (quoted, _) => quoted,
        };
        let next = TextId::new(self.texts.len());
        let text = *self.text_ids.entry((before, symbol)).or_insert(next);
        if text == next {
            self.texts.push(TextNode { before, symbol, quoted });
        }
        text
    }

    /// The open element ends. `None` if the scope does not allow that, or the value is in the set.
    pub(in crate::matcher) fn end_element(&mut self, register: RegisterId) -> Option<RegisterId> {
        match register {
            RegisterId::UNKNOWN => return Some(RegisterId::UNKNOWN),
            RegisterId::MAY_END_ONCE => return Some(RegisterId::MAY_NOT_END),
            RegisterId::FINAL_ELEMENT => return Some(RegisterId::MAY_NOT_BEGIN),
            RegisterId::MAY_NOT_END | RegisterId::MAY_NOT_BEGIN => return None,
            _ => {}
        }
        let Register { set, text, ref rivals, .. } = self.registers[register.index()];
        if text == TextId::NONE {
            return Some(register);
        }
        let number = LazyCell::new(|| NumberPrefix::at_end_of(symbols_reversed(&self.texts, text)));
        let is_equal = |rivals: &RivalGroup| {
            let mut values = rivals.values.iter().map(|&value| &self.values[value.index()]);
            values.any(|value| CursorTable::is_equal(value, rivals.cursor, &number))
        };
        if rivals.iter().any(is_equal) {
            return None;
        }
        let value = self.intern_value(text)?;
        let next = ValueSetId::new(self.sets.len());
        let cached = *self.set_ids.entry((set, text)).or_insert(next);
        if cached == next {
            self.sets.push(ValueSet { before: set, value });
        }
        Some(self.intern_register(cached, TextId::NONE))
    }

    /// The value of a text; `None` (and `too_deep`) if it is nested too deeply.
    fn intern_value(&mut self, text: TextId) -> Option<ValueId> {
        if let Some(&cached) = self.value_ids.get(&text) {
            return Some(cached);
        }
        let mut symbols: Vec<SymbolCode> = symbols_reversed(&self.texts, text).collect();
        symbols.reverse();
        let Ok(value) = JsonValue::read(&symbols) else {
            self.too_deep = true;
            return None;
        };
        let id = ValueId::new(self.values.len());
        self.held_bytes += symbols.len() * 8 + 128;
        self.values.push(value);
        self.value_ids.insert(text, id);
        Some(id)
    }

    /// A superset of the bytes that lead towards a rival; empty without rivals. An element without
    /// any byte counts only if `begin`.
    pub(in crate::matcher) fn rival_bytes(&self, register: RegisterId, begin: bool) -> ByteSet {
        if !self.status(register).has_rivals {
            return ByteSet::EMPTY;
        }
        let Register { text, rival_bytes, .. } = &self.registers[register.index()];
        if *text == TextId::EMPTY && !begin { ByteSet::EMPTY } else { *rival_bytes }
    }

    /// See [`RivalState`]; `None` without rivals.
    pub(in crate::matcher) fn rival_state(&self, register: RegisterId) -> Option<RivalState> {
        if !self.status(register).has_rivals {
            return None;
        }
        let Register { set, text, rivals, .. } = &self.registers[register.index()];
        let all =
            rivals.iter().flat_map(|group| group.values.iter().map(|&value| (group.cursor, value)));
        let zero = all.filter_map(|(cursor, value)| {
            CursorTable::in_number(&self.values[value.index()], cursor)
        });
        let zero = zero.reduce(|a, b| a && b);
        let number = zero.map(|zero| {
            NumberPrefix::at_end_of(symbols_reversed(&self.texts, *text)).relevant_to(zero)
        });
        let rivals =
            rivals.iter().map(|group| (group.cursor, ByAddress(group.values.clone()))).collect();
        Some(RivalState { set: *set, rivals, number })
    }

    /// Interns a register and computes its rivals.
    fn intern_register(&mut self, set: ValueSetId, text: TextId) -> RegisterId {
        if let Some(&cached) = self.ids.get(&(set, text)) {
            return cached;
        }
        let (rivals, rival_bytes) = match text {
            // No values to compare with.
            _ if set == ValueSetId::EMPTY || text == TextId::NONE => (Vec::new(), ByteSet::EMPTY),
            TextId::EMPTY => self.initial_rivals(set),
            _ => self.advance_rivals(set, text),
        };
        self.held_bytes += rivals.len() * size_of::<RivalGroup>();
        let id = RegisterId::new(self.registers.len());
        let rivals = if rivals.is_empty() {
            self.registers[RegisterId::EMPTY.index()].rivals.clone()
        } else {
            rivals.into()
        };
        self.reserve_initial();
        self.registers.push(Register { set, text, rivals, rival_bytes });
        self.ids.insert((set, text), id);
        id
    }

    /// Reserves capacity for the first keys at once.
    fn reserve_initial(&mut self) {
        if self.registers.capacity() < INITIAL_REGISTERS {
            self.registers.reserve(INITIAL_REGISTERS);
            self.ids.reserve(INITIAL_REGISTERS);
            self.texts.reserve(INITIAL_REGISTERS);
            self.text_ids.reserve(INITIAL_REGISTERS);
        }
    }

    /// The rivals of an empty text (all values of the set), and the bytes that lead towards them.
    fn initial_rivals(&mut self, set: ValueSetId) -> (Vec<RivalGroup>, ByteSet) {
        let number = LazyCell::new(|| NumberPrefix::NONE);
        let (mut followed, mut rival_bytes) = (Vec::new(), ByteSet::EMPTY);
        let mut at = set;
        while at != ValueSetId::EMPTY {
            let ValueSet { before, value } = self.sets[at.index()];
            let cursor = CursorTable::begin(&self.values[value.index()]);
            rival_bytes = rival_bytes.union(&self.cursors.next_bytes(
                &self.values[value.index()],
                cursor,
                &number,
            ));
            followed.push((cursor, value));
            at = before;
        }
        fuel::charge(FUEL_PER_RIVAL * followed.len());
        let mut rivals = Vec::new();
        group_by_cursor(followed, None, (&mut rivals, &mut self.held_bytes));
        (rivals, rival_bytes)
    }

    /// The rivals of a text, as a subset of those of its prefix, and the bytes that lead towards
    /// them.
    fn advance_rivals(&mut self, set: ValueSetId, text: TextId) -> (Vec<RivalGroup>, ByteSet) {
        let TextNode { before, symbol, .. } = self.texts[text.index()];
        // Texts grow symbol by symbol, so the prefix has a register.
        let previous = self.registers[self.ids[&(set, before)].index()].rivals.clone();
        let number = |text| {
            let texts = &self.texts;
            LazyCell::new(move || NumberPrefix::at_end_of(symbols_reversed(texts, text)))
        };
        let (number_before, number) = (number(before), number(text));
        let (mut rivals, mut rival_bytes) = (Vec::new(), ByteSet::EMPTY);
        for group in previous.iter() {
            fuel::charge(FUEL_PER_RIVAL * group.values.len());
            let mut followed = Vec::with_capacity(group.values.len());
            for &value in group.values.iter() {
                let rival = &self.values[value.index()];
                let Some(cursor) = self.cursors.step(rival, group.cursor, symbol, &number_before)
                else {
                    continue;
                };
                let next = self.cursors.next_bytes(rival, cursor, &number);
                if !next.is_empty() {
                    rival_bytes = rival_bytes.union(&next);
                    followed.push((cursor, value));
                }
            }
            group_by_cursor(followed, Some(&group.values), (&mut rivals, &mut self.held_bytes));
        }
        (rivals, rival_bytes)
    }
}

/// Groups values by cursor. A group that equals `all` shares its list.
fn group_by_cursor(
    mut followed: Vec<(ValueCursor, ValueId)>,
    all: Option<&Arc<[ValueId]>>,
    (groups, held_bytes): (&mut Vec<RivalGroup>, &mut usize),
) {
    if !followed.is_sorted_by_key(|(cursor, _)| *cursor) {
        followed.sort_by_key(|(cursor, _)| *cursor);
    }
    for group in followed.chunk_by(|a, b| a.0 == b.0) {
        let cursor = group[0].0;
        let values = match all {
            Some(all) if all.len() == group.len() => all.clone(),
            _ => {
                *held_bytes += group.len() * 4 + 32;
                group.iter().map(|(_, value)| *value).collect()
            }
        };
        groups.push(RivalGroup { cursor, values });
    }
}

/// The symbols of a text, last one first.
fn symbols_reversed(texts: &[TextNode], text: TextId) -> impl Iterator<Item = SymbolCode> {
    let mut at = text;
    std::iter::from_fn(move || {
        let TextNode { before, symbol, .. } =
            *texts.get(at.index()).filter(|_| at != TextId::EMPTY)?;
        at = before;
        Some(symbol)
    })
}
