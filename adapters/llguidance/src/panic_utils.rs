//! Panics as errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind as catch};

use anyhow::{Result, anyhow};

/// The message of a panic, as an error that begins with `panic: `.
pub fn mk_panic_error(info: &Box<dyn Any + Send>) -> String {
    let text = info.downcast_ref::<&str>().copied();
    let message = text.or_else(|| info.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", message.unwrap_or("unknown cause"))
}

/// Runs work, and returns a panic as an error.
///
/// ```
/// use llguidance::panic_utils::catch_unwind;
///
/// assert_eq!(catch_unwind(|| Ok(1)).unwrap(), 1);
/// ```
pub fn catch_unwind<R>(work: impl FnOnce() -> Result<R> + UnwindSafe) -> Result<R> {
    catch(work).unwrap_or_else(|info| Err(anyhow!(mk_panic_error(&info))))
}

/// As [`catch_unwind`]; the caller drops what the work may have left half-made.
pub(crate) fn guard<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work))
}
