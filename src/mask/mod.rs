//! Stage 5. Configuration and vocabulary to token masks: which token ids may follow, 32 ids a word.
//!
//! For a configuration: (1) a finished mask is memoised; (2) narrow configurations (few tokens can follow) are walked
//! directly; (3) for the others each item's state has a pooled entry (accepted, undecided, the rest rejected), and the
//! undecided tokens are resolved with what follows the item's rule.

mod bounded;
mod difference;
mod distinct;
mod entry;
mod fold;
mod index;
mod joint;
mod key;
mod loose;
mod names;
mod nodes;
mod open;
mod pool;
mod pooling;
mod profile;
mod remainders;
mod row;
mod same;
mod section;
mod set;
mod shaped;
mod state;
mod tokens;
mod walk;

pub use pooling::{PoolScope, PoolStats};
pub use row::MaskRow;
pub use set::bit;

pub(crate) use index::{Index, Ways};
pub(crate) use pooling::Pooling;
pub(crate) use set::{TokenSet, set_bit};
pub(crate) use state::{AdvanceOver, IndexState};
pub(crate) use tokens::Tokens;
