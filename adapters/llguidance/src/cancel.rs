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
