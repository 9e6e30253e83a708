//! Memoised masks of one constraint, by configuration, and which of them were prepared.

use std::sync::Arc;

use super::interned_masks::GrammarMaskInterner;
use super::token_set::TokenSet;
use crate::capacity::{IdTable, ReserveMore};
use crate::matcher::ConfigId;

/// The finished masks of one constraint. Keys are configurations of one epoch of the parser.
#[derive(Debug)]
pub(super) struct MaskMemo {
    /// By configuration.
    masks: IdTable<ConfigId, Option<Arc<TokenSet>>>,
    /// Memory of the masks, in bytes.
    bytes: usize,
    /// The most that they may take.
    max_bytes: usize,
    /// Interned masks of this grammar.
    pub(super) interned: GrammarMaskInterner,
    /// By configuration: whether its mask was prepared and has not been used yet.
    prepared: IdTable<ConfigId, bool>,
}

impl MaskMemo {
    /// No masks yet, and a budget of `max_bytes` bytes.
    pub(super) fn new(max_bytes: usize) -> MaskMemo {
        MaskMemo {
            masks: IdTable::default(),
            bytes: 0,
            max_bytes,
            interned: GrammarMaskInterner::default(),
            prepared: IdTable::default(),
        }
    }

    /// The memoised mask of a canonical configuration.
    pub(super) fn get(&self, config: ConfigId) -> Option<Arc<TokenSet>> {
        self.masks.get(config)
    }

    /// Memoises a mask that takes `bytes` of memory. Drops all masks first if they would exceed the
    /// budget.
    pub(super) fn insert(&mut self, config: ConfigId, mask: &Arc<TokenSet>, bytes: usize) {
        if self.bytes + bytes > self.max_bytes {
            self.clear();
        }
        self.bytes += bytes;
        *self.masks.entry(config) = Some(mask.clone());
    }

    /// Marks a mask as prepared.
    pub(super) fn mark_prepared(&mut self, config: ConfigId) {
        *self.prepared.entry(config) = true;
    }

    /// Whether a mask was prepared and is used for the first time. Removes the mark.
    pub(super) fn take_prepared_mark(&mut self, config: ConfigId) -> bool {
        self.prepared.get(config) && std::mem::take(self.prepared.entry(config))
    }

    /// Drops all masks.
    pub(super) fn clear(&mut self) {
        self.masks.clear();
        self.interned.clear();
        self.prepared.clear();
        self.bytes = 0;
    }

    /// Memory in use, in bytes, approximately. What the pool also holds is not counted.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether half of the budget is used.
    pub(super) fn is_half_full(&self) -> bool {
        self.bytes > self.max_bytes / 2
    }

    /// Reserves capacity; see [`crate::capacity`].
    pub(super) fn reserve_more(&mut self) {
        self.masks.reserve_more();
        self.prepared.reserve_more();
    }
}
