//! What one case gave: a line of the output file.

use std::collections::BTreeSet;

use louver::front::json_schema::{SchemaError, SchemaErrorReason};
use serde::Serialize;

/// One line.
#[derive(Debug, Default, Serialize)]
pub(super) struct Record {
    /// The case's id.
    pub(super) id: String,
    /// The wire format, where a run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<String>,
    /// How many tools there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<usize>,
    /// From the schema (or tools) as a value to a matcher that is ready.
    pub(super) ttfm_ns: u64,
    /// The very first mask, which is also part of `masks_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_mask_ns: Option<u64>,
    /// Mask and advance of each token of each instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) masks_ns: Option<Vec<u64>>,
    /// `[instance, expected, consumed_all]` of each wrong verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wrong: Option<Vec<(usize, bool, bool)>>,
    /// Fuel of compiling, in units: see `louver::fuel`.
    pub(super) compile_fuel: u64,
    /// Most fuel of one mask and token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mask_fuel: Option<u64>,
    /// The limit that a mask or token has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<&'static str>,
    /// Making masks ahead, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prepare_ns: Option<u64>,
    /// What came of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ahead: Option<Ahead>,
    /// Why the schema was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What it was refused for, for the summary.
    #[serde(skip)]
    pub(super) refused_for: Vec<String>,
}

/// Masks made ahead.
#[derive(Debug, Serialize)]
pub(super) struct Ahead {
    /// Places looked at.
    pub(super) places: usize,
    pub(super) built: usize,
    pub(super) known: usize,
    /// How many of those that were built were asked for. With several threads, those of other cases are among them.
    pub(super) used: u64,
}

impl Record {
    /// A case that was refused, or that is none.
    pub(super) fn refused(
        id: String,
        ttfm_ns: u64,
        error: String,
        refused_for: Vec<String>,
    ) -> Record {
        Record { id, ttfm_ns, error: Some(error), refused_for, ..Record::default() }
    }

    /// A line that is no case.
    pub(super) fn no_case(number: usize, error: &anyhow::Error) -> Record {
        let refused_for = vec!["lines that are no case".to_owned()];
        Record::refused(
            format!("line {number}"),
            0,
            format!("line {number}: {error:#}"),
            refused_for,
        )
    }

    /// Instances that should pass and did not, and the other way round.
    pub(super) fn wrongly(&self, expected: bool) -> usize {
        self.wrong.iter().flatten().filter(|(_, valid, _)| *valid == expected).count()
    }
}

/// What a schema is refused for: the keywords, each once, and whether they are unsupported or something worse.
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
