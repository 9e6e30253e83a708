//! Stage 5. Token masks: which token ids may follow a configuration, one bit an id, 32 ids a word.
//!
//! A mask is found in one of three ways, cheapest first:
//!
//! 1. The finished mask is memoised under a canonical configuration (`mask_memo`).
//! 2. A configuration that few tokens can follow is tested against the token trie directly
//!    (`trie_walk`).
//! 3. Otherwise each item's automaton state has a mask entry in a pool that all grammars share
//!    (`entry`, `pool`). An entry accepts tokens, rejects tokens, and leaves the
//!    context-dependent ones. Those are resolved with what follows the item's rule (`suffixes`,
//!    `rule_walks`).
//!
//! Constraints that states do not express are subtracted from such a mask (`subtraction`): bounds
//! on length (`length_bounds`) and white space (`white_space_bounds`), distinct values
//! (`distinct_values`) and duplicate keys (`duplicate_keys`), both by a walk along earlier texts
//! (`comparison_walk`).
//!
//! Where items of a configuration depend on each other, the whole configuration is walked instead.
//! See docs/internals/MASKS.md, MASK_ENTRIES.md and MASK_POOL.md.

mod comparison_walk;
mod counter_profile;
mod distinct_values;
mod duplicate_keys;
mod entry;
mod entry_difference;
mod found_mask;
mod grammar_masks;
mod incremental_row;
mod interned_masks;
mod length_bounds;
mod mask_memo;
mod mask_state;
mod pool;
mod pool_counters;
mod pool_key;
mod pool_scope;
mod resolved_tokens;
mod rule_walks;
mod shape_walk;
mod special_tokens;
mod subtraction;
mod suffix_key;
mod suffixes;
mod token_set;
mod trie_walk;
mod white_space_bounds;

pub use incremental_row::{MaskIdentity, MaskRow};
pub use pool_counters::PoolStats;
pub use pool_scope::PoolScope;
pub use token_set::bit;

pub(crate) use grammar_masks::GrammarMasks;
pub(crate) use mask_state::{MaskOptions, MaskState};
pub(crate) use pool_scope::EnginePool;
pub(crate) use special_tokens::SpecialTokenIds;
pub(crate) use token_set::{TokenSet, set_bit};
