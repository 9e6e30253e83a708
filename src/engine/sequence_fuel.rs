//! The fuel of one sequence: of its masks and tokens together.
//!
//! [`Limits::mask_fuel`] bounds one decoding step, and
//! [`Limits::sequence_fuel`](crate::limits::Limits::sequence_fuel) what the steps of a sequence
//! take on average. So a sequence whose masks all cost close to their limit delays a batch for a
//! few steps only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fuel;
use crate::limits::Limits;

/// What a sequence has spent, and how many tokens it has taken.
#[derive(Debug, Default)]
pub(super) struct SequenceFuel {
    /// Shared with prefetches of the sequence, which spend on background threads.
    spent: Arc<AtomicU64>,
    /// Those that were rolled back included: a draft costs as much as other tokens.
    tokens: u64,
}

/// A fork goes on from what was spent, by itself.
impl Clone for SequenceFuel {
    fn clone(&self) -> Self {
        let spent = Arc::new(AtomicU64::new(self.spent.load(Ordering::Relaxed)));
        SequenceFuel { spent, tokens: self.tokens }
    }
}

impl SequenceFuel {
    /// Counts a token that the sequence has taken.
    pub(super) fn count_token(&mut self) {
        self.tokens += 1;
    }

    /// What the sequence may still spend, in units.
    pub(super) fn left(&self, limits: &Limits) -> u64 {
        limits.sequence_budget(self.tokens).saturating_sub(self.spent.load(Ordering::Relaxed))
    }

    /// The account that [`spend_from`] charges.
    pub(super) fn account(&self) -> Arc<AtomicU64> {
        self.spent.clone()
    }
}

/// Runs work with a budget of `left` units, and charges the account of a sequence for it.
pub(super) fn spend_from<T>(account: &AtomicU64, left: u64, work: impl FnOnce() -> T) -> T {
    let (result, units) = fuel::measure(|| fuel::with_budget(left, work));
    account.fetch_add(units, Ordering::Relaxed);
    result
}
