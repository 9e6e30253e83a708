//! What one request gave: a line of the output file, in the manner of the other benches.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// One line.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Record {
    /// What was tried.
    pub(super) id: String,
    /// The status of the answer; none if there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// From the request's first byte to the answer's last.
    pub(super) took_ns: u64,
    /// Generated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<u64>,
    /// Louver's own work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) louver_ns: Option<u64>,
    /// Time of all steps, Louver's work included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps_ns: Option<u64>,
    /// What is wrong with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// More figures.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) more: Option<Value>,
}

/// In nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The value that a share (0 to 1) of the values does not exceed; 0 if there are none. Sorts them.
pub(super) fn quantile(values: &mut [u64], share: f64) -> u64 {
    values.sort_unstable();
    let rank = (share.clamp(0.0, 1.0) * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(
            (quantile(&mut values, 0.5), quantile(&mut values, 0.99), quantile(&mut values, 1.0)),
            (50, 99, 100)
        );
        assert_eq!((quantile(&mut [], 0.5), quantile(&mut [7], 0.0)), (0, 7));
    }
}
