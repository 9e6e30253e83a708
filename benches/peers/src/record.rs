//! What one case gave: a line of an output file, as `louver bench` writes it.

use serde::Serialize;

/// One line.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Record {
    /// The case's id.
    pub(crate) id: String,
    /// How many tools there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<usize>,
    /// From the task as a value to a matcher that is ready.
    pub(crate) ttfm_ns: u64,
    /// The very first mask, which is also part of `masks_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_mask_ns: Option<u64>,
    /// Mask and advance of each token of each instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) masks_ns: Option<Vec<u64>>,
    /// Making masks ahead, where that is apart from compiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prepare_ns: Option<u64>,
    /// `[instance, expected, consumed_all]` of each wrong verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wrong: Option<Vec<(usize, bool, bool)>>,
    /// Why the task was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Record {
    /// Whether an instance that should (or should not) pass did not (or did).
    pub(crate) fn is_wrong(&self, expected: bool) -> bool {
        self.wrong.iter().flatten().any(|(_, valid, _)| *valid == expected)
    }
}
