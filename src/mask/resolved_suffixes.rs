//! Memoised results of resolving the suffixes of mask entries.

use std::sync::Arc;

use super::entry::MaskEntry;
use super::resolved_tokens::ResolvedTokens;
use crate::hash::{ByAddress, HashMap};
use crate::matcher::{ConfigId, Exit};

/// Memory for resolved suffixes of one constraint.
const MAX_BYTES: usize = 4 << 20;

/// Resolved suffixes of one constraint. Configurations are of one epoch of the parser.
#[derive(Debug, Default)]
pub(super) struct ResolvedSuffixes {
    results: HashMap<SuffixQuestion, ResolvedTokens>,
    /// Memory of the results, in bytes.
    bytes: usize,
}

/// Which suffixes are resolved, and with what.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SuffixQuestion {
    /// The entry whose suffixes they are.
    entry: ByAddress<MaskEntry>,
    /// The exit of the entry's rule.
    exit: Exit,
    /// The configuration that follows the exit.
    next: ConfigId,
}

impl SuffixQuestion {
    fn new(entry: &Arc<MaskEntry>, (exit, next): (Exit, ConfigId)) -> SuffixQuestion {
        SuffixQuestion { entry: ByAddress(entry.clone()), exit, next }
    }
}

impl ResolvedSuffixes {
    /// The tokens that `next` completes after an exit of the entry's rule.
    pub(super) fn get(
        &self,
        entry: &Arc<MaskEntry>,
        following: (Exit, ConfigId),
    ) -> Option<&ResolvedTokens> {
        self.results.get(&SuffixQuestion::new(entry, following))
    }

    /// Memoises a result. Drops all results first if they would exceed the budget.
    pub(super) fn insert(
        &mut self,
        entry: &Arc<MaskEntry>,
        following: (Exit, ConfigId),
        tokens: ResolvedTokens,
    ) {
        self.bytes += tokens.bytes();
        if self.bytes > MAX_BYTES {
            self.results.clear();
            self.bytes = tokens.bytes();
        }
        self.results.insert(SuffixQuestion::new(entry, following), tokens);
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
