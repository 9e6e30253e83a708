//! Counts of texts, for summaries.

use std::collections::BTreeMap;

/// How often each text occurs.
pub(crate) fn counts(
    texts: impl IntoIterator<Item = impl Into<String>>,
) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in texts {
        *counts.entry(text.into()).or_default() += 1;
    }
    counts
}

/// The counts in one line. `separator`: what stands between a text and its count.
pub(crate) fn joined_counts(counts: &BTreeMap<String, usize>, separator: &str) -> String {
    let counts: Vec<String> =
        counts.iter().map(|(text, count)| format!("{text}{separator}{count}")).collect();
    counts.join(", ")
}
