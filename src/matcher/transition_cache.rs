//! Transition cache: (configuration, byte class) to configuration.
//!
//! With the cache, the parser works as a lazily built deterministic pushdown automaton. A row has
//! one entry for each byte class. Most configurations that a trie walk visits have transitions for
//! one range of classes only; they take no row.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::store::ConfigId;
use crate::capacity::{IdTable, PagedVec, ReserveMore};
use crate::compile::ByteClasses;
use crate::fsm::ByteSet;
use crate::switches::Switch;

/// Not computed yet.
const UNKNOWN: u32 = u32::MAX;
/// Flag in [`ConfigTransitions::row`]: there is no row, only one range of classes that all lead to
/// [`ConfigTransitions::next`]. Bits 0 to 7 are the first class, bits 8 to 15 the last one. A row
/// is as wide as there are classes.
const SINGLE_RANGE: u32 = 0x8000_0000;

/// Transitions in a page of rows.
const ROW_PAGE: usize = 1 << 18;

/// Cached transitions of one configuration.
#[derive(Clone, Copy, Debug)]
struct ConfigTransitions {
    /// Index of the first transition of its row; or [`SINGLE_RANGE`] and the classes; or
    /// [`UNKNOWN`].
    row: u32,
    /// Target of the single range.
    next: ConfigId,
    /// Index of the set of bytes that it reads; or [`UNKNOWN`].
    reads: u32,
}

impl Default for ConfigTransitions {
    fn default() -> ConfigTransitions {
        ConfigTransitions { row: UNKNOWN, next: ConfigId::DEAD, reads: UNKNOWN }
    }
}

/// The classes of a [`SINGLE_RANGE`] entry.
#[inline]
fn single_range(row: u32) -> RangeInclusive<u8> {
    row as u8..=(row >> 8) as u8
}

/// The cache of one parser.
#[derive(Debug)]
pub(super) struct TransitionCache {
    switch: Switch,
    /// The byte classes of the cached transitions. They lag after the program's classes until a
    /// missing transition needs the finer ones.
    classes: Arc<ByteClasses>,
    configs: IdTable<ConfigId, ConfigTransitions>,
    rows: PagedVec<ConfigId, ROW_PAGE>,
    reads: Vec<ByteSet>,
}

impl TransitionCache {
    /// An empty cache for these byte classes with capacity for some configurations.
    pub(super) fn new(classes: Arc<ByteClasses>, configs: usize) -> TransitionCache {
        TransitionCache {
            switch: Switch::default(),
            classes,
            configs: IdTable::with_capacity(configs),
            rows: PagedVec::with_capacity(configs),
            reads: Vec::with_capacity(configs / 8),
        }
    }

    /// Switches the cache on or off, and empties it.
    pub(super) fn switch(&mut self, switch: Switch) {
        self.clear();
        self.switch = switch;
    }

    /// The class of a byte.
    #[inline]
    pub(super) fn class(&self, byte: u8) -> u8 {
        self.classes.class_of(byte)
    }

    /// The first byte of the class of a byte.
    pub(super) fn first_of_class(&self, byte: u8) -> u8 {
        self.classes.first(u32::from(self.class(byte)))
    }

    /// Adopts the program's byte classes. A deferred body may have split a class; the cached
    /// transitions are then invalid.
    pub(super) fn adopt_classes(&mut self, classes: &Arc<ByteClasses>) {
        if !Arc::ptr_eq(&self.classes, classes) {
            self.classes = classes.clone();
            self.clear();
        }
    }

    /// The target of a byte, if cached.
    #[inline]
    pub(super) fn get(&self, config: ConfigId, byte: u8) -> Option<ConfigId> {
        let class = self.class(byte);
        let &ConfigTransitions { row, next, .. } = self.configs.find(config)?;
        if row & SINGLE_RANGE == 0 {
            let next = self.rows[(row + u32::from(class)) as usize];
            return (next != ConfigId::UNKNOWN).then_some(next);
        }
        (row != UNKNOWN && single_range(row).contains(&class)).then_some(next)
    }

    /// Caches the target of the classes of a range of bytes.
    pub(super) fn insert(&mut self, config: ConfigId, bytes: RangeInclusive<u8>, next: ConfigId) {
        if !self.switch.is_on() {
            return;
        }
        // Classes are numbered in byte order, so a range of bytes is a range of classes.
        let (from, to) = (self.class(*bytes.start()), self.class(*bytes.end()));
        let (from, to) = (usize::from(from), usize::from(to));
        let entry = self.configs.entry(config);
        if entry.row == UNKNOWN {
            (entry.row, entry.next) = (SINGLE_RANGE | (to << 8 | from) as u32, next);
            return;
        }
        if entry.row & SINGLE_RANGE != 0 {
            let (first, row) = (
                single_range(entry.row),
                self.rows.push_run(ConfigId::UNKNOWN, self.classes.len()),
            );
            self.rows
                .run_mut(row + usize::from(*first.start())..=row + usize::from(*first.end()))
                .fill(entry.next);
            entry.row = row as u32;
        }
        let row = entry.row as usize;
        self.rows.run_mut(row + from..=row + to).fill(next);
    }

    /// Whether a byte is known to be rejected. Most bytes that a walk tries are, and need no row.
    #[inline]
    pub(super) fn is_rejected(&self, config: ConfigId, byte: u8) -> bool {
        let entry = self.configs.find(config);
        entry
            .and_then(|entry| self.reads.get(entry.reads as usize))
            .is_some_and(|reads| !reads.contains(byte))
    }

    /// Caches the set of bytes that a configuration reads.
    pub(super) fn set_reads(&mut self, config: ConfigId, reads: ByteSet) {
        if !self.switch.is_on() {
            return;
        }
        self.configs.entry(config).reads = self.reads.len() as u32;
        self.reads.push(reads);
    }

    /// Drops all transitions.
    pub(super) fn clear(&mut self) {
        self.configs.clear();
        self.reads.clear();
        self.rows.clear();
    }

    /// Reserves capacity; see [`crate::capacity`].
    pub(super) fn reserve_more(&mut self) {
        self.configs.reserve_more();
        self.reads.reserve_more();
        self.rows.reserve_more();
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.configs.len() * size_of::<ConfigTransitions>()
            + self.rows.len() * size_of::<ConfigId>()
            + self.reads.len() * size_of::<ByteSet>()
    }
}
