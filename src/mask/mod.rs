//! Stage 5. Configuration and vocabulary to token masks: which token ids may follow, 32 ids a word.
//!
//! For a configuration: (1) a finished mask is memoised; (2) narrow configurations (few tokens can follow) are walked
//! directly; (3) for the others each item's state has a pooled entry (accepted, undecided, the rest rejected), and the
//! undecided tokens are resolved with what follows the item's rule.

mod ambiguous;
mod byte_class_trie;
mod counter_profile;
mod distinct_values;
mod duplicate_keys;
mod entry;
mod entry_difference;
mod incremental_row;
mod index;
mod index_state;
mod interned_masks;
mod item_walks;
mod length_bounds;
mod node_sets;
mod pool;
mod pool_key;
mod pool_scope;
mod rule_walks;
mod shape_walk;
mod special_tokens;
mod suffixes;
mod token_set;
mod trie_walk;
mod white_space_bounds;

pub use incremental_row::MaskRow;
pub use pool_scope::{PoolScope, PoolStats};
pub use token_set::bit;

pub(crate) use index::{Index, Ways};
pub(crate) use index_state::{AdvanceOver, IndexState};
pub(crate) use pool_scope::Pooling;
pub(crate) use special_tokens::Tokens;
pub(crate) use token_set::{TokenSet, set_bit};
