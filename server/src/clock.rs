//! The clock of timestamps in responses.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat};

/// A Unix time in seconds as `2026-11-28T05:15:00Z`; the Unix epoch if it has no such date.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Unix time in seconds.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), expected);
        }
    }
}
