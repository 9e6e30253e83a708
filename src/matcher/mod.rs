//! Stage 4. Parser: Earley's algorithm over rule automata, with interned configurations.
//!
//! The parser maps a configuration (an Earley item set) and a byte to the next configuration.
//! Configurations hold no text positions, so equal parse states have equal ids, and transitions are
//! memoised. See `docs/internals/CONFIGURATIONS.md`.
//!
//! * Core: `store` interns items, frames and configurations; `parser` scans, completes and
//!   predicts over a `symbol` (a byte or a special token), within a `limit`; `transition_cache`
//!   memoises; `token_step` steps over whole tokens; `frame_rewrite` maps the items of frames.
//! * Constraints beyond context-free grammars: `budgets` of tokens, and `value_constraints`, which
//!   compare JSON values and names. Grammars without them run none of their code.
//! * Queries for mask construction (`query_caches`): `canonical`, `counted_runs` and
//!   `counted_steps` (`docs/internals/COUNTERS.md`), `self_loops`, `universal`, `lookahead`,
//!   `tail_calls` and `white_space_bounds`.
//! * Other queries: `temperature` of the rules under way, `chart` (captures), `shortest` (shortest
//!   completion), `trace` (labelled spans). `recognizer` is a parser of bytes without a vocabulary.

mod budgets;
mod canonical;
mod chart;
mod counted_runs;
mod counted_steps;
mod frame_rewrite;
mod limit;
mod lookahead;
mod parser;
mod query_caches;
mod recognizer;
mod self_loops;
mod shortest;
mod store;
mod symbol;
mod tail_calls;
mod temperature;
mod token_step;
mod trace;
mod transition_cache;
mod universal;
mod value_constraints;
mod white_space_bounds;

pub use recognizer::{Recognizer, Rejected};
pub use trace::{Span, Tracer};

pub(crate) use chart::{Chart, ChartInput, ChartLimit};
pub(crate) use limit::ParserLimit;
pub(crate) use parser::{CounterDistance, Exit, Parser};
pub(crate) use self_loops::{MIN_SKIP_NODES, may_be_self_loop};
pub(crate) use shortest::{ShortestPath, ShortestPaths};
pub(crate) use store::{ConfigId, Item, UNBOUNDED_COUNT};
pub(crate) use symbol::Symbol;
pub(crate) use token_step::{TokenSymbols, TransitionUse};
pub(crate) use universal::QueryAllowance;
pub(crate) use value_constraints::{KeyStatus, QUOTE};
pub(crate) use white_space_bounds::{WhiteSpaceBound, with_relaxed};

use crate::ids::TokenId;

/// Error of advancing a matcher. The matcher's state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// The grammar does not allow the token here.
    #[error("token {token} is not allowed here (rejected at byte {offset} of the token)")]
    Rejected {
        /// The rejected token.
        token: TokenId,
        /// Offset in the token of the first byte that the grammar rejects.
        offset: usize,
    },
    /// The vocabulary has no token with this id.
    #[error("token {token} is not in the vocabulary")]
    UnknownToken {
        /// The unknown id.
        token: TokenId,
    },
    /// The sequence already ended with a stop token.
    #[error("the generation has already ended")]
    Terminated,
    /// A limit was reached before the token was accepted. The matcher is as before the call.
    #[error("parser limit reached: {what}")]
    Limit {
        /// The limit's description.
        what: &'static str,
    },
}

impl From<ParserLimit> for AdvanceError {
    fn from(limit: ParserLimit) -> Self {
        AdvanceError::Limit { what: limit.what() }
    }
}
