//! The result of one request: a line of the output file, like that of the other benchmarks.

use anyhow::Result;
use serde::Serialize;

use super::client::ChatResponse;
use crate::bench::stats::nanos;

/// Maximum number of faults to show.
const MAX_FAULTS: usize = 10;

/// The result of one request.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct RequestRecord {
    /// A description of the request.
    pub(super) id: String,
    /// The response's status; `None` if there was no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// Time from the request's first byte to the response's last.
    pub(super) took_ns: u64,
    /// Generated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<u64>,
    /// Time of Louver's own work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) louver_ns: Option<u64>,
    /// Time of all steps, including Louver's work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps_ns: Option<u64>,
    /// Time to lower and compile the grammar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compile_ns: Option<u64>,
    /// The finish reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish: Option<String>,
    /// Number of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) calls: Option<u64>,
    /// The fault of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Total rate of concurrent generations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens_per_second: Option<f64>,
    /// How good the calls are.
    #[serde(flatten)]
    pub(super) verdict: Option<CallVerdict>,
}

/// The calls of an answer, judged.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct CallVerdict {
    /// Number of calls that match their tool's schema.
    pub(super) valid: usize,
    /// Whether the calls are the expected ones.
    pub(super) is_right: bool,
    /// The calls, for people.
    pub(super) made: Vec<String>,
    /// The text besides them.
    pub(super) text: String,
}

impl RequestRecord {
    /// Records a response or its absence. `fault` checks a response.
    pub(super) fn new(
        id: String,
        response: &Result<ChatResponse>,
        fault: impl FnOnce(&ChatResponse) -> Option<String>,
    ) -> RequestRecord {
        match response {
            Err(error) => {
                RequestRecord { id, error: Some(format!("{error:#}")), ..RequestRecord::default() }
            }
            Ok(response) => RequestRecord {
                id,
                status: Some(response.status),
                took_ns: nanos(response.took),
                tokens: Some(response.tokens),
                louver_ns: response.timing_ns("louver_us"),
                steps_ns: response.timing_ns("steps_us"),
                compile_ns: response.timing_ns("compile_us"),
                finish: response.finish.clone(),
                calls: Some(response.calls.len() as u64),
                error: fault(response),
                ..RequestRecord::default()
            },
        }
    }
}

/// The records with a fault.
pub(super) fn faulty(records: &[RequestRecord]) -> Vec<&RequestRecord> {
    records.iter().filter(|record| record.error.is_some()).collect()
}

/// A line for each of the first faults.
pub(super) fn fault_lines(faulty: &[&RequestRecord], indent: &str) -> impl Iterator<Item = String> {
    let line = move |record: &&RequestRecord| {
        format!("{indent}{}: {}", record.id, record.error.as_deref().unwrap_or_default())
    };
    faulty.iter().take(MAX_FAULTS).map(line)
}
