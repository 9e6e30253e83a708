//! The result of finding the mask of a configuration.

use std::sync::Arc;

use super::token_set::TokenSet;

/// The mask of a configuration.
pub(super) struct FoundMask {
    pub(super) mask: Arc<TokenSet>,
    /// It was built, and is not the mask of another configuration.
    pub(super) is_new: bool,
}

impl FoundMask {
    /// A mask that was built.
    pub(super) fn new(mask: TokenSet) -> FoundMask {
        FoundMask { mask: Arc::new(mask), is_new: true }
    }
}
