//! The result of one case: a line of the output file.

use std::collections::BTreeSet;
use std::time::Duration;

use louver::front::json_schema::{SchemaError, SchemaErrorReason};
use serde::Serialize;

use super::stats::nanos;

/// The reason for rejecting a grammar that the engine does not compile.
pub(super) const NOT_COMPILED: &str = "grammars that do not compile";

/// The reason for rejecting a line that is not a case.
const NOT_A_CASE: &str = "lines that are not cases";

/// The result of one case.
// Many fields: a line of a result file.
#[derive(Debug, Default, Serialize)]
pub(super) struct CaseRecord {
    /// The case's id.
    pub(super) id: String,
    /// The wire format, if a run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<String>,
    /// Number of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<usize>,
    /// Time to first matcher: from the parsed schema (or tools) to a matcher.
    pub(super) ttfm_ns: u64,
    /// Time of the first mask, which is also part of `masks_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_mask_ns: Option<u64>,
    /// Time of mask and advance for each token of each instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) masks_ns: Option<Vec<u64>>,
    /// `[instance, expected, consumed_all]` of each wrong result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wrong: Option<Vec<(usize, bool, bool)>>,
    /// Number of valid instances that only the options for the spelling of numbers exclude.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) spelled_otherwise: usize,
    /// Fuel of compilation, in units of `louver::fuel`.
    pub(super) compile_fuel: u64,
    /// Maximum fuel of one mask and token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mask_fuel: Option<u64>,
    /// The limit that a mask or token reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<&'static str>,
    /// Number of tokens that a mask allowed and the matcher rejected: errors of the engine.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) inconsistent: usize,
    /// Time of preparation, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prepare_ns: Option<u64>,
    /// Results of preparation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) preparation: Option<PreparationStats>,
    /// Keywords that the policy relaxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) relaxed: Option<Vec<String>>,
    /// The same, for the summary.
    #[serde(skip)]
    pub(super) relaxed_keywords: Vec<String>,
    /// Number of invalid instances that the grammar accepts and validation rejects.
    #[serde(skip)]
    pub(super) invalidated: usize,
    /// Why the schema was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The reasons for rejection, for the summary.
    #[serde(skip)]
    pub(super) refused_for: Vec<String>,
}

/// Results of preparation.
#[derive(Debug, Serialize)]
pub(super) struct PreparationStats {
    /// Number of configurations visited.
    pub(super) candidates: usize,
    pub(super) built: usize,
    pub(super) cached: usize,
    /// Number of built masks that were used. With several threads, this includes other cases.
    pub(super) used: u64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl CaseRecord {
    /// A rejected case, or an invalid one.
    pub(super) fn refused(
        id: String,
        took: Duration,
        error: impl ToString,
        refused_for: Vec<String>,
    ) -> CaseRecord {
        let (ttfm_ns, error) = (nanos(took), Some(error.to_string()));
        CaseRecord { id, ttfm_ns, error, refused_for, ..CaseRecord::default() }
    }

    /// A line that is not a case.
    pub(super) fn invalid_line(number: usize, error: &anyhow::Error) -> CaseRecord {
        let id = format!("line {number}");
        let error = format!("{id}: {error:#}");
        CaseRecord::refused(id, Duration::ZERO, error, vec![NOT_A_CASE.to_owned()])
    }

    /// Whether the line is a case.
    pub(super) fn is_case(&self) -> bool {
        self.refused_for.iter().all(|reason| reason != NOT_A_CASE)
    }

    /// Number of instances with the expected result `expected` and the opposite actual result.
    pub(super) fn count_wrong(&self, expected: bool) -> usize {
        self.wrong.iter().flatten().filter(|(_, valid, _)| *valid == expected).count()
    }
}

/// The distinct keywords that a schema is rejected for, and whether they are unsupported or worse.
pub(super) fn reasons<'e>(errors: impl Iterator<Item = &'e SchemaError>) -> Vec<String> {
    let reason = |error: &SchemaError| {
        let kind = match error.reason {
            SchemaErrorReason::Malformed(_) => "malformed",
            SchemaErrorReason::Unsupported(_) => "not supported",
            SchemaErrorReason::Unsatisfiable(_) => "unsatisfiable",
            SchemaErrorReason::Limit(_) => "over a limit",
            _ => "refused",
        };
        format!("{kind}: {}", if error.keyword.is_empty() { "the schema" } else { &error.keyword })
    };
    let reasons: BTreeSet<String> = errors.map(reason).collect();
    reasons.into_iter().collect()
}
