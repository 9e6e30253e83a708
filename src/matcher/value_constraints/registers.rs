//! Registers: the values of an open scope, and the text of its open element.
//!
//! Registers, texts and sets of values are interned, so a register is a number that fits into an
//! item. A set is a list of blocks, whose sizes are powers of two: two blocks of one size are
//! merged, up to [`MAX_BLOCK`] values. Each block finds those of its values that the open text may
//! still equal (its *rivals*; see [`super::rivals`]). See `docs/internals/DISTINCT_VALUES.md`.

use std::cell::LazyCell;

use smallvec::SmallVec;

use super::json_value::JsonValue;
use super::number_prefix::NumberPrefix;
use super::rivals::{RivalTable, RivalsId};
use crate::capacity::ReserveMore;
use crate::compile::RegisterId;
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::ids::id;
use crate::matcher::symbol::SymbolCode;

/// Capacity that the first register reserves.
const INITIAL_REGISTERS: usize = 64;
/// The largest size of a block. The rivals in a merged block are found anew, all within the first
/// mask or token after the merge.
const MAX_BLOCK: usize = 128;
/// Rivals of a text, one for each block of the set that has any.
type BlockRivals = SmallVec<[RivalsId; 4]>;

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

/// A set of values as a linked list: another set and one block of values.
#[derive(Clone, Copy, Debug)]
struct ValueSet {
    before: ValueSetId,
    block: RivalsId,
    /// Number of values of the block: no more than that of the block before.
    block_size: usize,
}

/// A set of values, and the text of the open element.
#[derive(Clone, Debug)]
struct Register {
    set: ValueSetId,
    /// The text of the open element, or [`TextId::NONE`].
    text: TextId,
    /// The values of the set that the open text may still equal.
    rivals: BlockRivals,
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
    rivals: BlockRivals,
}

/// The registers of one parser.
#[derive(Debug)]
pub(crate) struct Registers {
    texts: Vec<TextNode>,
    /// Texts by the text before and the last symbol.
    text_ids: HashMap<(TextId, SymbolCode), TextId>,
    /// Blocks of one value, by its text.
    value_blocks: HashMap<TextId, RivalsId>,
    rivals: RivalTable,
    sets: Vec<ValueSet>,
    /// Sets by the set before and the text of the last value.
    set_ids: HashMap<(ValueSetId, TextId), ValueSetId>,
    registers: Vec<Register>,
    ids: HashMap<(ValueSetId, TextId), RegisterId>,
    /// The last value was nested too deeply to be compared.
    pub(in crate::matcher) too_deep: bool,
}

impl Registers {
    /// No registers but the empty one.
    pub(in crate::matcher) fn new() -> Registers {
        let empty =
            Register { set: ValueSetId::EMPTY, text: TextId::NONE, rivals: BlockRivals::new() };
        Registers {
            texts: vec![TextNode {
                before: TextId::EMPTY,
                symbol: 0.into(),
                quoted: QuoteState::No,
            }],
            text_ids: HashMap::default(),
            value_blocks: HashMap::default(),
            rivals: RivalTable::new(),
            sets: vec![ValueSet {
                before: ValueSetId::EMPTY,
                block: RivalsId::NONE,
                block_size: 0,
            }],
            set_ids: HashMap::default(),
            registers: vec![empty; RegisterId::FIRST_FREE.index()],
            ids: [((ValueSetId::EMPTY, TextId::NONE), RegisterId::EMPTY)].into_iter().collect(),
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
            + self.rivals.bytes()
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
        let Register { set, text, ref rivals } = self.registers[register.index()];
        if text == TextId::NONE {
            return Some(register);
        }
        if rivals.iter().any(|&rivals| self.rivals.facts(rivals).has_equal) {
            return None;
        }
        let set = match self.set_ids.get(&(set, text)) {
            Some(&cached) => cached,
            None => self.extend_set(set, text)?,
        };
        Some(self.intern_register(set, TextId::NONE))
    }

    /// A set and the value of a text; `None` (and `too_deep`) if it is nested too deeply.
    fn extend_set(&mut self, set: ValueSetId, text: TextId) -> Option<ValueSetId> {
        let (mut before, mut block, mut block_size) = (set, self.value_block(text)?, 1);
        while block_size < MAX_BLOCK && self.sets[before.index()].block_size == block_size {
            let last = self.sets[before.index()];
            block = self.rivals.merge_blocks(last.block, block);
            (before, block_size) = (last.before, 2 * block_size);
        }
        let id = ValueSetId::new(self.sets.len());
        self.sets.push(ValueSet { before, block, block_size });
        self.set_ids.insert((set, text), id);
        Some(id)
    }

    /// The block of the value of a text; `None` (and `too_deep`) if it is nested too deeply.
    fn value_block(&mut self, text: TextId) -> Option<RivalsId> {
        if let Some(&cached) = self.value_blocks.get(&text) {
            return Some(cached);
        }
        let mut symbols: Vec<SymbolCode> = symbols_reversed(&self.texts, text).collect();
        symbols.reverse();
        let Ok(value) = JsonValue::read(&symbols) else {
            self.too_deep = true;
            return None;
        };
        let block = self.rivals.block_of_value(value, symbols.len());
        self.value_blocks.insert(text, block);
        Some(block)
    }

    /// A superset of the bytes that lead towards a rival; empty without rivals. An element without
    /// any byte counts only if `begin`.
    pub(in crate::matcher) fn rival_bytes(&self, register: RegisterId, begin: bool) -> ByteSet {
        if !self.status(register).has_rivals {
            return ByteSet::EMPTY;
        }
        let Register { text, rivals, .. } = &self.registers[register.index()];
        if *text == TextId::EMPTY && !begin {
            return ByteSet::EMPTY;
        }
        let next = rivals.iter().map(|&rivals| self.rivals.facts(rivals).next_bytes);
        next.fold(ByteSet::EMPTY, |all, next| all.union(&next))
    }

    /// See [`RivalState`]; `None` without rivals.
    pub(in crate::matcher) fn rival_state(&self, register: RegisterId) -> Option<RivalState> {
        self.status(register).has_rivals.then(|| {
            let Register { set, rivals, .. } = &self.registers[register.index()];
            RivalState { set: *set, rivals: rivals.clone() }
        })
    }

    /// Interns a register and finds its rivals.
    fn intern_register(&mut self, set: ValueSetId, text: TextId) -> RegisterId {
        if let Some(&cached) = self.ids.get(&(set, text)) {
            return cached;
        }
        let rivals = match text {
            TextId::NONE => BlockRivals::new(),
            TextId::EMPTY => self.blocks(set).collect(),
            _ => self.rivals_of_text(set, text),
        };
        let id = RegisterId::new(self.registers.len());
        self.reserve_initial();
        self.registers.push(Register { set, text, rivals });
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

    /// The blocks of a set: the rivals of an empty text.
    fn blocks(&self, set: ValueSetId) -> impl Iterator<Item = RivalsId> + use<'_> {
        let mut at = set;
        std::iter::from_fn(move || {
            let ValueSet { before, block, .. } = self.sets[at.index()];
            at = before;
            (block != RivalsId::NONE).then_some(block)
        })
    }

    /// The rivals of a text that is not empty.
    fn rivals_of_text(&mut self, set: ValueSetId, text: TextId) -> BlockRivals {
        let TextNode { before, symbol, .. } = self.texts[text.index()];
        // Texts grow symbol by symbol, so the prefix has a register.
        let mut rivals = self.registers[self.ids[&(set, before)].index()].rivals.clone();
        let texts = &self.texts;
        let number =
            |text| LazyCell::new(move || NumberPrefix::at_end_of(symbols_reversed(texts, text)));
        let (number_before, number) = (number(before), number(text));
        rivals.retain(|rivals| {
            *rivals = self.rivals.step(*rivals, symbol, &number_before, &number);
            *rivals != RivalsId::NONE
        });
        rivals
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

#[cfg(test)]
mod tests;
