//! Cancellation of the work of a parser.

use std::fmt;

use louver::fuel::CancelToken;

/// Ends the work of the parsers that hold it, for good. Clones share the flag.
///
/// ```
/// use llguidance::CancellationHandle;
///
/// let handle = CancellationHandle::default();
/// handle.clone().cancel();
/// assert!(handle.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancellationHandle(CancelToken);

impl CancellationHandle {
    /// Ends the work under way and all later work.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether [`CancellationHandle::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Runs work that ends when the handle is cancelled.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.run(work)
    }
}

/// The error of work that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation cancelled")
    }
}

impl std::error::Error for Cancelled {}
