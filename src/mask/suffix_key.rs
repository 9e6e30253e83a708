//! The key by which resolved suffixes are cached.

use std::sync::Arc;

use super::entry::MaskEntry;
use crate::hash::ByAddress;
use crate::matcher::{ConfigId, Exit};

/// Which suffixes are resolved, and with what.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SuffixKey {
    /// The entry whose suffixes they are.
    entry: ByAddress<MaskEntry>,
    /// The exit of the entry's rule.
    exit: Exit,
    /// The configuration that follows the exit.
    next: ConfigId,
}

impl SuffixKey {
    pub(super) fn new(entry: &Arc<MaskEntry>, exit: Exit, next: ConfigId) -> SuffixKey {
        SuffixKey { entry: ByAddress(entry.clone()), exit, next }
    }
}
