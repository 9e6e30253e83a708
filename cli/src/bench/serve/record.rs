//! What one request gave: a line of the output file, in the manner of the other benches.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::http::Answer;

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
    /// Time to lower and compile the grammar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compile_ns: Option<u64>,
    /// The finish reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish: Option<String>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) calls: Option<u64>,
    /// What is wrong with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Of several generations at the same time, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens_per_second: Option<f64>,
}

impl Record {
    /// What an answer gave, or that there was none. `fault`: what is wrong with an answer.
    pub(super) fn of(
        id: String,
        answer: &Result<Answer>,
        fault: impl FnOnce(&Answer) -> Option<String>,
    ) -> Record {
        match answer {
            Err(error) => Record { id, error: Some(format!("{error:#}")), ..Record::default() },
            Ok(answer) => Record {
                id,
                status: Some(answer.status),
                took_ns: nanos(answer.took),
                tokens: Some(answer.tokens),
                louver_ns: answer.timing_ns("louver_us"),
                steps_ns: answer.timing_ns("steps_us"),
                compile_ns: answer.timing_ns("compile_us"),
                finish: answer.finish.clone(),
                calls: Some(answer.calls.len() as u64),
                error: fault(answer),
                tokens_per_second: None,
            },
        }
    }
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
