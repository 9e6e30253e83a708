//! Rivals: the earlier values that a text may still equal.
//!
//! A *block* is an interned list of values. Its rivals after a text are found from those after the
//! text without its last symbol, once for each symbol: a trie of the block's values, of which only
//! the visited part exists. Edges go by symbols of the text, and values are followed by cursors
//! (see [`super::value_cursor`]), so a value is on the path of each of its spellings. Rivals with
//! the same cursor form a group. Texts with equal groups share a node, however they are spelled.

use std::ops::Deref;
use std::sync::Arc;

use super::json_value::JsonValue;
use super::number_prefix::NumberPrefix;
use super::value_cursor::{CursorTable, ValueCursor};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{HashMap, IndexMap};
use crate::ids::id;
use crate::matcher::symbol::SymbolCode;

/// Fuel to follow one rival by one symbol, and to intern it.
const FUEL_PER_RIVAL: usize = 2;

id! {
    /// The value of an element: an index into [`RivalTable::values`].
    ValueId
}

id! {
    /// The values of a block that a text may still equal: an index into [`RivalTable::rivals`].
    /// After no text, these are all of them.
    pub(super) RivalsId
}

impl RivalsId {
    /// No values.
    pub(super) const NONE: RivalsId = RivalsId::from_raw(0);
}

/// Rivals with the same cursor.
type RivalGroup = (ValueCursor, Arc<[ValueId]>);

/// What determines the continuations of a text, as far as it may still equal values of a block.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Rivals {
    groups: Arc<[RivalGroup]>,
    /// Inside of a number: the part of its prefix that matters.
    number: Option<NumberPrefix>,
}

/// What follows from rivals.
#[derive(Debug)]
pub(super) struct RivalFacts {
    /// A superset of the bytes that lead towards one of them.
    pub(super) next_bytes: ByteSet,
    /// The text equals one of them.
    pub(super) has_equal: bool,
}

/// The values of one parser, and the rivals of its texts.
#[derive(Debug)]
pub(super) struct RivalTable {
    values: Vec<JsonValue>,
    cursors: CursorTable,
    rivals: IndexMap<Rivals, RivalFacts>,
    /// Rivals after one more symbol.
    steps: HashMap<(RivalsId, SymbolCode), RivalsId>,
    /// Approximate memory of values and lists of them, in bytes.
    held_bytes: usize,
}

impl RivalTable {
    /// No values.
    pub(super) fn new() -> RivalTable {
        let mut table = RivalTable {
            values: Vec::new(),
            cursors: CursorTable::new(),
            rivals: IndexMap::default(),
            steps: HashMap::default(),
            held_bytes: 0,
        };
        table.intern(Vec::new(), &[], &&NumberPrefix::NONE);
        table
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.rivals.len() * (size_of::<(Rivals, RivalFacts)>() + 16)
            + self.steps.len() * 16
            + self.held_bytes
            + self.cursors.bytes()
    }

    /// The block of one value, which was read from `symbols` symbols.
    pub(super) fn block_of_value(&mut self, value: JsonValue, symbols: usize) -> RivalsId {
        let id = ValueId::new(self.values.len());
        self.held_bytes += symbols * 8 + 128;
        let cursor = CursorTable::begin(&value);
        self.values.push(value);
        self.intern(vec![(cursor, id)], &[], &&NumberPrefix::NONE)
    }

    /// The block of all values of two blocks. Cost: their number.
    pub(super) fn merge_blocks(&mut self, a: RivalsId, b: RivalsId) -> RivalsId {
        let groups = [a, b].map(|block| self.groups(block));
        let values = groups.iter().flat_map(|groups| values_of(groups)).collect();
        self.intern(values, &[], &&NumberPrefix::NONE)
    }

    /// The rivals after one more symbol. `number_before` and `number` are the number prefixes at
    /// the ends of the texts before and after it. Cost: a look-up, or the number of rivals where
    /// the symbol is read for the first time.
    pub(super) fn step<N: Deref<Target = NumberPrefix>>(
        &mut self,
        rivals: RivalsId,
        symbol: SymbolCode,
        number_before: &N,
        number: &N,
    ) -> RivalsId {
        fuel::charge(1);
        if let Some(&cached) = self.steps.get(&(rivals, symbol)) {
            return cached;
        }
        let (groups, mut followed) = (self.groups(rivals), Vec::new());
        for (cursor, value) in values_of(&groups) {
            fuel::charge(FUEL_PER_RIVAL);
            let json = &self.values[value.index()];
            let cursor = self.cursors.step(json, cursor, symbol, number_before);
            followed.extend(cursor.map(|cursor| (cursor, value)));
        }
        let next = self.intern(followed, &groups, number);
        self.steps.insert((rivals, symbol), next);
        next
    }

    /// Interns rivals after a text. `before`: those after the text without its last symbol, whose
    /// list is shared if it stays the same.
    fn intern(
        &mut self,
        mut followed: Vec<(ValueCursor, ValueId)>,
        before: &[RivalGroup],
        number: &impl Deref<Target = NumberPrefix>,
    ) -> RivalsId {
        fuel::charge(FUEL_PER_RIVAL * followed.len());
        let (mut next_bytes, mut has_equal, mut in_zero) = (ByteSet::EMPTY, false, None);
        followed.retain(|&(cursor, value)| {
            let value = &self.values[value.index()];
            let next = self.cursors.next_bytes(value, cursor, number);
            if next.is_empty() {
                return false;
            }
            next_bytes = next_bytes.union(&next);
            has_equal |= CursorTable::is_equal(value, cursor, number);
            if let Some(zero) = CursorTable::in_number(value, cursor) {
                in_zero = Some(zero && in_zero.unwrap_or(true));
            }
            true
        });
        followed.sort_by_key(|(cursor, _)| *cursor);
        let mut listed = 0;
        let groups = followed.chunk_by(|a, b| a.0 == b.0).map(|group| {
            let values = match before {
                [(_, all)] if all.len() == group.len() => all.clone(),
                _ => {
                    listed += group.len();
                    group.iter().map(|(_, value)| *value).collect()
                }
            };
            (group[0].0, values)
        });
        let groups: Arc<[RivalGroup]> = groups.collect();
        let number = in_zero.map(|zero| (**number).clone().relevant_to(zero));
        let held = groups.len() * size_of::<RivalGroup>() + listed * 4;
        let facts = RivalFacts { next_bytes, has_equal };
        let (index, known) = self.rivals.insert_full(Rivals { groups, number }, facts);
        self.held_bytes += if known.is_none() { held } else { 0 };
        RivalsId::new(index)
    }

    fn groups(&self, rivals: RivalsId) -> Arc<[RivalGroup]> {
        self.rivals.get_index(rivals.index()).map_or_else(Arc::default, |(r, _)| r.groups.clone())
    }

    /// What follows from some rivals.
    pub(super) fn facts(&self, rivals: RivalsId) -> &RivalFacts {
        &self.rivals[rivals.index()]
    }
}

/// Each value of some groups, with its cursor.
fn values_of(groups: &[RivalGroup]) -> impl Iterator<Item = (ValueCursor, ValueId)> + use<'_> {
    groups.iter().flat_map(|(cursor, values)| values.iter().map(|&value| (*cursor, value)))
}
