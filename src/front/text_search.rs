//! Multi-pattern text search, for checks of excluded texts.

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Searches texts for any of a set of patterns. Construction is linear in their bytes.
pub(super) struct TextSearch(Option<AhoCorasick>);

impl TextSearch {
    /// Builds the search.
    pub(super) fn new<T: AsRef<[u8]>>(patterns: &[T]) -> TextSearch {
        // The noncontiguous NFA has linear size; the other automata can be quadratic.
        let kind = Some(AhoCorasickKind::NoncontiguousNFA);
        let build = |patterns: &[T]| AhoCorasick::builder().kind(kind).build(patterns).ok();
        TextSearch(if patterns.is_empty() { None } else { build(patterns) })
    }

    /// The index of a pattern that occurs in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let occurrence = self.0.as_ref()?.find(text)?;
        Some(occurrence.pattern().as_usize())
    }
}
