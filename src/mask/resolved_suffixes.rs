//! Memoised results of resolving the suffixes of mask entries.

use std::sync::Arc;

use super::entry::MaskEntry;
use super::resolved_tokens::ResolvedTokens;
use crate::hash::HashMap;
use crate::matcher::{ConfigId, Exit};

/// Memory for resolved suffixes of one constraint.
const MAX_BYTES: usize = 4 << 20;

/// Resolved suffixes of one constraint. Configurations are of one epoch of the parser.
#[derive(Debug, Default)]
pub(super) struct ResolvedSuffixes {
    /// By entry address, exit and following configuration. The entry is held, so that its address
    /// stays unique.
    results: HashMap<(usize, Exit, ConfigId), (Arc<MaskEntry>, ResolvedTokens)>,
    /// Memory of the results, in bytes.
    bytes: usize,
}

impl ResolvedSuffixes {
    /// The tokens that `next` completes after an exit of the entry's rule.
    pub(super) fn get(
        &self,
        entry: &Arc<MaskEntry>,
        (exit, next): (Exit, ConfigId),
    ) -> Option<&ResolvedTokens> {
        let key = (Arc::as_ptr(entry) as usize, exit, next);
        self.results.get(&key).map(|(_, tokens)| tokens)
    }

    /// Memoises a result. Drops all results first if they would exceed the budget.
    pub(super) fn insert(
        &mut self,
        entry: &Arc<MaskEntry>,
        (exit, next): (Exit, ConfigId),
        tokens: ResolvedTokens,
    ) {
        self.bytes += tokens.bytes();
        if self.bytes > MAX_BYTES {
            self.results.clear();
            self.bytes = tokens.bytes();
        }
        let key = (Arc::as_ptr(entry) as usize, exit, next);
        self.results.insert(key, (entry.clone(), tokens));
    }

    /// Drops all results.
    pub(super) fn clear(&mut self) {
        self.results.clear();
        self.bytes = 0;
    }

    /// Memory in use, in bytes, approximately.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
