//! The clock of timestamps in responses.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time in seconds.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
