//! Plan changes: continues a running turn under another plan, for tools discovered during
//! generation.
//!
//! The hook applies the new plan at the model's next step, when the context holds every sampled
//! token. Only then is it known whether the output so far is a valid prefix under the new plan. The
//! reader switches at the same token.

use louver::engine::Constraint;
use tokio::sync::oneshot;

use crate::error::ExtendError;

/// A requested plan change.
pub(crate) struct PlanChange {
    pub(crate) constraint: Constraint,
    pub(crate) lowered: louver_formats::LoweredRequest,
    /// Receives the number of generated tokens at which the change took effect, or the error.
    pub(crate) reply: oneshot::Sender<Result<usize, ExtendError>>,
}

/// The plan change that waits for the next step, if there is one.
#[derive(Default)]
pub(crate) struct PlanChanges {
    is_over: bool,
    pending: Option<PlanChange>,
}

impl std::fmt::Debug for PlanChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanChanges").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

impl PlanChanges {
    pub(crate) fn request(&mut self, change: PlanChange) {
        // After the generation has ended, the reply channel is dropped immediately.
        self.pending = (!self.is_over).then_some(change);
    }

    /// Takes the change, for the hook.
    pub(crate) fn take(&mut self) -> Option<PlanChange> {
        self.pending.take()
    }

    /// Ends pending changes, because no step follows.
    pub(crate) fn close(&mut self) {
        (self.is_over, self.pending) = (true, None);
    }
}
