//! The fuel of one sequence: of its masks and tokens together.
//!
//! [`Limits::mask_fuel`] bounds one decoding step, and
//! [`Limits::sequence_fuel`](crate::limits::Limits::sequence_fuel) what the steps of a sequence
//! take on average. So a sequence whose masks all cost close to their limit delays a batch for a
//! few steps only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::Limits;

/// What a sequence has spent.
#[derive(Debug, Default)]
pub(super) struct SequenceFuel {
    spent: u64,
    /// What its prefetches have spent on background threads. Past the same budget there are no
    /// more; the sequence itself is not affected, as it would depend on their timing.
    prefetched: Arc<AtomicU64>,
    /// The most tokens that the sequence has had.
    longest: u64,
}

/// A fork goes on from what was spent, by itself.
impl Clone for SequenceFuel {
    fn clone(&self) -> Self {
        let prefetched = Arc::new(AtomicU64::new(self.prefetched.load(Ordering::Relaxed)));
        SequenceFuel { prefetched, ..*self }
    }
}

impl SequenceFuel {
    /// Notes the length of the sequence, in tokens.
    pub(super) fn reach(&mut self, tokens: usize) {
        self.longest = self.longest.max(tokens as u64);
    }

    /// What the sequence may still spend, in units.
    pub(super) fn left(&self, limits: &Limits) -> u64 {
        limits.sequence_budget(self.longest).saturating_sub(self.spent)
    }

    /// Charges the sequence for work.
    pub(super) fn charge(&mut self, units: u64) {
        self.spent += units;
    }

    /// The account of prefetches, or `None` once it is spent.
    pub(super) fn prefetches(&self, limits: &Limits) -> Option<Arc<AtomicU64>> {
        let spent = self.prefetched.load(Ordering::Relaxed);
        (spent < limits.sequence_budget(self.longest)).then(|| self.prefetched.clone())
    }
}

/// Whose fuel the work of a matcher spends, beside the budget of one mask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Payer {
    /// That of the sequence: masks and tokens.
    Sequence,
    /// No one's: other queries.
    Nobody,
}
