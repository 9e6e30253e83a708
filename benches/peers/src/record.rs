//! The result of one case: a line of an output file, in the format of `louver bench`.

use serde::Serialize;

/// The result of one case.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Record {
    /// The case's id.
    pub(crate) id: String,
    /// Number of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<usize>,
    /// Time to first matcher, from the parsed task.
    pub(crate) ttfm_ns: u64,
    /// Time of the first mask, which is also part of `masks_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_mask_ns: Option<u64>,
    /// Time of mask and advance for each token of each instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) masks_ns: Option<Vec<u64>>,
    /// Time of preparation, if separate from compilation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prepare_ns: Option<u64>,
    /// `[instance, expected, consumed_all]` of each wrong result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wrong: Option<Vec<(usize, bool, bool)>>,
    /// Why the task was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Record {
    /// Whether an instance with the expected result `expected` had the opposite one.
    pub(crate) fn is_wrong(&self, expected: bool) -> bool {
        self.wrong.iter().flatten().any(|(_, valid, _)| *valid == expected)
    }
}
