//! The memo of where bytes lead: with it, the parser is a lazily built deterministic pushdown automaton.

use super::store::{ConfigId, DEAD};

/// Not known.
const UNKNOWN: u32 = u32::MAX;
/// In [`Known::row`]: there is no row, but the one transition of this class. Most configurations that a walk comes by are left by one
/// class of bytes only, and a row is as wide as there are classes.
const ONE: u32 = 0x8000_0000;

/// What is known of one configuration.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Where its row begins; [`ONE`] and a class; or [`UNKNOWN`].
    row: u32,
    /// Where the one class leads.
    next: ConfigId,
}

/// (configuration, class of bytes) to configuration.
#[derive(Debug, Default)]
pub(super) struct Transitions {
    known: Vec<Known>,
    rows: Vec<ConfigId>,
}

impl Transitions {
    /// Where a class leads, if that is known.
    #[inline]
    pub(super) fn get(&self, config: ConfigId, class: u32) -> Option<ConfigId> {
        let &Known { row, next } = self.known.get(config as usize)?;
        if row & ONE == 0 {
            let next = self.rows[(row + class) as usize];
            return (next != UNKNOWN).then_some(next);
        }
        (row == ONE | class).then_some(next)
    }

    /// Notes where a class leads; there are `classes` of them.
    pub(super) fn insert(&mut self, config: ConfigId, (class, classes): (u32, usize), next: ConfigId) {
        if self.known.len() <= config as usize {
            self.known.resize(config as usize + 1, Known { row: UNKNOWN, next: DEAD });
        }
        let known = &mut self.known[config as usize];
        if known.row == UNKNOWN {
            *known = Known { row: ONE | class, next };
            return;
        }
        if known.row & ONE != 0 {
            let (first, row) = ((known.row & !ONE) as usize, self.rows.len());
            self.rows.resize(row + classes, UNKNOWN);
            self.rows[row + first] = known.next;
            known.row = row as u32;
        }
        self.rows[(known.row + class) as usize] = next;
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.rows.clear();
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.known.len() * size_of::<Known>() + self.rows.len() * size_of::<ConfigId>()
    }
}
