//! Leaf. Finite automata over symbols that are plain `u32`s: bytes (0..=255), Unicode scalar values, or the compiler's
//! own symbols (bytes, special tokens, rule references). Edges carry ranges, so a class costs one edge.

mod acyclic;
mod alphabet;
mod byteset;
mod dfa;
mod factors;
mod grouped;
mod kinds;
mod levels;
mod minimize;
mod moves;
mod nfa;
mod product;
mod triples;
pub(crate) mod utf8;
mod words;

pub(crate) use byteset::LONG_GAP;
pub use byteset::{ByteSet, escape};
pub use dfa::{Dfa, DfaBuilder, Edge};
pub(crate) use grouped::Grouped;
pub(crate) use kinds::{
    ASCII_LETTERS, BLACK_CODE_POINTS, CODE_POINTS, NOT_ASCII, bytes_of, kind, shape, shape_bytes,
    shape_kinds,
};
pub(crate) use levels::Levels;
pub(crate) use minimize::coarsest;
pub(crate) use moves::Moves;
pub use nfa::Nfa;
pub use product::{Class, Combine};
pub(crate) use triples::Triples;

use crate::fuel::OutOfFuel;

#[cfg(test)]
mod tests;

/// An automaton was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TooLarge {
    /// It grew past the caller's limit.
    #[error("automaton needs more than {limit} states")]
    States {
        /// The limit, in states.
        limit: usize,
    },
    /// Building it takes too much work.
    #[error("automaton: {0}")]
    Fuel(#[from] OutOfFuel),
}
