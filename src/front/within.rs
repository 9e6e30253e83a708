//! Looking for many texts in others at once.

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Texts that are looked for. Linear in their bytes.
pub(super) struct Within(Option<AhoCorasick>);

impl Within {
    pub(super) fn new<T: AsRef<[u8]>>(texts: &[T]) -> Within {
        // Of the crate's automata, the one without all transitions written out: the others can be quadratic.
        let kind = Some(AhoCorasickKind::NoncontiguousNFA);
        let build = |texts: &[T]| AhoCorasick::builder().kind(kind).build(texts).ok();
        Within(if texts.is_empty() { None } else { build(texts) })
    }

    /// The number of one of the texts that another one contains.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let found = self.0.as_ref()?.find(text)?;
        Some(found.pattern().as_usize())
    }
}
