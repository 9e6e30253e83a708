//! Text search, for checks of excluded texts.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memmem;

/// Whether a text contains the bytes.
pub(crate) fn contains(text: &str, bytes: &[u8]) -> bool {
    memmem::find(text.as_bytes(), bytes).is_some()
}

/// Searches texts for any of a set of patterns. Construction is linear in their bytes.
pub(super) struct TextSearch(Option<AhoCorasick>);

impl TextSearch {
    /// Builds the search.
    pub(super) fn new<T: AsRef<[u8]>>(patterns: &[T]) -> TextSearch {
        // The noncontiguous NFA has linear size; the other automata can be quadratic.
        let kind = Some(AhoCorasickKind::NoncontiguousNFA);
        TextSearch(AhoCorasick::builder().kind(kind).build(patterns).ok())
    }

    /// The index of a pattern that occurs in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let occurrence = self.0.as_ref()?.find(text)?;
        Some(occurrence.pattern().as_usize())
    }
}
