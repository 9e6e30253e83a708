//! The memo of where bytes lead: with it, the parser is a lazily built deterministic pushdown automaton.

use std::ops::RangeInclusive;

use super::store::{ConfigId, DEAD};
use crate::capacity::{PagedVec, ReserveMore};
use crate::fsm::ByteSet;
use crate::switches::Switch;

/// Not known.
const UNKNOWN: u32 = u32::MAX;
/// In [`Known::row`]: there is no row, but the one transition of these classes, neighbours, from the lowest byte to the next. Most
/// configurations that a walk comes by are left by one class of bytes only, and a row is as wide as there are classes.
const ONE: u32 = 0x8000_0000;

/// Transitions on a page of rows.
const PAGE: usize = 1 << 18;

/// What is known of one configuration.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Where its row begins; [`ONE`] and classes; or [`UNKNOWN`].
    row: u32,
    /// Where the ones lead.
    next: ConfigId,
    /// The number of the set of bytes that it reads, or [`UNKNOWN`].
    reads: u32,
}

impl Known {
    const NOTHING: Known = Known { row: UNKNOWN, next: DEAD, reads: UNKNOWN };
}

/// The classes of [`ONE`].
#[inline]
fn ones(row: u32) -> RangeInclusive<u8> {
    row as u8..=(row >> 8) as u8
}

/// (configuration, class of bytes) to configuration.
#[derive(Debug, Default)]
pub(super) struct Transitions {
    switch: Switch,
    known: Vec<Known>,
    rows: PagedVec<ConfigId, PAGE>,
    reads: Vec<ByteSet>,
}

impl Transitions {
    /// None yet, and room for those of some configurations.
    pub(super) fn with_capacity(configs: usize) -> Transitions {
        Transitions {
            known: Vec::with_capacity(configs),
            rows: PagedVec::with_capacity(configs),
            reads: Vec::with_capacity(configs / 8),
            ..Transitions::default()
        }
    }

    /// Keeps them or not, from now on.
    pub(super) fn switch(&mut self, switch: Switch) {
        self.clear();
        self.switch = switch;
    }

    /// Where a class leads, if that is known.
    #[inline]
    pub(super) fn get(&self, config: ConfigId, class: u8) -> Option<ConfigId> {
        let &Known { row, next, .. } = self.known.get(config as usize)?;
        if row & ONE == 0 {
            let next = self.rows[(row + u32::from(class)) as usize];
            return (next != UNKNOWN).then_some(next);
        }
        (row != UNKNOWN && ones(row).contains(&class)).then_some(next)
    }

    /// Notes where classes that are neighbours lead; there are `count` of them in all.
    pub(super) fn insert(
        &mut self,
        config: ConfigId,
        (classes, count): (RangeInclusive<u8>, usize),
        next: ConfigId,
    ) {
        if !self.switch.is_on() {
            return;
        }
        let known = Self::at(&mut self.known, config);
        let (from, to) = (usize::from(*classes.start()), usize::from(*classes.end()));
        if known.row == UNKNOWN {
            (known.row, known.next) = (ONE | (to << 8 | from) as u32, next);
            return;
        }
        if known.row & ONE != 0 {
            let (first, row) = (ones(known.row), self.rows.push_run(UNKNOWN, count));
            self.rows
                .run_mut(row + usize::from(*first.start())..=row + usize::from(*first.end()))
                .fill(known.next);
            known.row = row as u32;
        }
        let row = known.row as usize;
        self.rows.run_mut(row + from..=row + to).fill(next);
    }

    /// Whether a byte is known to lead nowhere. Most that a walk tries do, and need no place in a row.
    #[inline]
    pub(super) fn refuse(&self, config: ConfigId, byte: u8) -> bool {
        let known = self.known.get(config as usize);
        known
            .and_then(|known| self.reads.get(known.reads as usize))
            .is_some_and(|reads| !reads.contains(byte))
    }

    /// Notes the bytes that lead somewhere.
    pub(super) fn limit(&mut self, config: ConfigId, reads: ByteSet) {
        if !self.switch.is_on() {
            return;
        }
        Self::at(&mut self.known, config).reads = self.reads.len() as u32;
        self.reads.push(reads);
    }

    fn at(known: &mut Vec<Known>, config: ConfigId) -> &mut Known {
        if known.len() <= config as usize {
            known.resize(config as usize + 1, Known::NOTHING);
        }
        &mut known[config as usize]
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.reads.clear();
        self.rows.clear();
    }

    /// Makes room for more: see [`crate::capacity`].
    pub(super) fn reserve_more(&mut self) {
        self.known.reserve_more();
        self.reads.reserve_more();
        self.rows.reserve_more();
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.known.len() * size_of::<Known>()
            + self.rows.len() * size_of::<ConfigId>()
            + self.reads.len() * size_of::<ByteSet>()
    }
}
