//! Cancellation of the work of a parser.

/// Ends the work of the parsers that hold it, for good. Clones share the flag.
///
/// ```
/// use llguidance::CancellationHandle;
///
/// let handle = CancellationHandle::default();
/// handle.clone().cancel();
/// assert!(handle.is_cancelled());
/// ```
pub type CancellationHandle = louver::CancelToken;

/// The error of work that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation cancelled")]
pub struct Cancelled;

/// The handle of one parser, if it has one. A clone has a flag of its own, set if this one is.
#[derive(Debug, Default)]
pub(crate) struct Cancellation(pub(crate) Option<CancellationHandle>);

impl Cancellation {
    /// Whether the handle was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(CancellationHandle::is_cancelled)
    }

    /// The handle, made if there is none.
    pub(crate) fn enable(&mut self) -> CancellationHandle {
        self.0.get_or_insert_default().clone()
    }
}

impl Clone for Cancellation {
    fn clone(&self) -> Self {
        // A cancelled handle stays cancelled, so the clone can share it.
        Cancellation(match &self.0 {
            Some(handle) if !handle.is_cancelled() => Some(CancellationHandle::default()),
            other => other.clone(),
        })
    }
}
