//! Stage 4. Compiled grammar and input to parser configuration: Earley's algorithm with interned configurations.

mod any;
mod derive;
mod distinct;
mod escape;
mod gaps;
mod limit;
mod loops;
mod meter;
mod moves;
mod names;
mod normal;
mod outlook;
mod parser;
mod place;
mod recognizer;
mod registers;
mod runs;
mod shortest;
mod steps;
mod store;
mod tails;
mod temperature;
mod trace;
mod transitions;
mod value;

pub use recognizer::{Recognizer, Rejected};
pub use trace::{Span, Tracer};

pub(crate) use any::Asking;
pub(crate) use derive::{Chart, ChartLimit, Piece, Region};
pub(crate) use gaps::Gap;
pub(crate) use limit::ParserLimit;
pub(crate) use loops::{SWALLOW, may_be_again};
pub(crate) use names::Naming;
pub(crate) use parser::{Exit, Parser, Room};
pub(crate) use shortest::{Lengths, Step};
pub(crate) use store::{ConfigId, DEAD, FREE, Item};

use crate::ids::TokenId;

/// Why a token was not taken. The matcher's state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// The grammar does not allow the token here.
    #[error("token {token} is not allowed here (its byte {offset} fails)")]
    Rejected {
        /// The token.
        token: TokenId,
        /// Bytes of the token that were still fine.
        offset: usize,
    },
    /// The id stands for nothing in the vocabulary.
    #[error("token {token} is not in the vocabulary")]
    UnknownToken {
        /// The token.
        token: TokenId,
    },
    /// A stop token was already taken.
    #[error("the generation has already ended")]
    Terminated,
    /// A limit was reached; the sequence cannot go on.
    #[error("parser limit reached: {what}")]
    Limit {
        /// Which.
        what: &'static str,
    },
}
