//! Leaf: finite automata over symbols that are plain `u32`s.
//!
//! A symbol is a byte (0 to 255), a Unicode scalar value, or one of the compiler's own symbols
//! (bytes, special tokens, rule references). Edges carry ranges, so a character class costs one
//! edge.
//!
//! ```
//! use louver::fsm::{Combine, Dfa, TooLarge};
//!
//! let limit = 1_000; // states
//! let letters = Dfa::counted(&[(97, 122)], 2, Some(3), limit)?;
//! let word = Dfa::word("cat".bytes().map(u32::from));
//! let others = letters.combine(&word, Combine::Minus, limit)?;
//! assert!(others.accepts("dog".bytes().map(u32::from)));
//! assert!(!others.accepts("cat".bytes().map(u32::from)));
//! # Ok::<(), TooLarge>(())
//! ```

mod acyclic;
mod alphabet;
mod byte_summary;
mod byteset;
mod components;
mod csr;
mod dfa;
mod difference;
mod digits;
mod explore;
mod factors;
mod language;
mod minimize;
mod nfa;
mod pairs;
mod path_lengths;
mod product;
mod thompson;
mod trigrams;
mod tuples;
pub(crate) mod utf8;
mod word_search;

pub(crate) use alphabet::symbol_classes;
pub(crate) use byte_summary::{
    ASCII_LETTERS, CODE_POINTS, NON_SPACE_CODE_POINTS, NOT_ASCII, kind_bit, kind_bytes, shape,
    shape_bytes,
};
pub(crate) use byteset::LONG_WHITE_SPACE_RUN;
pub use byteset::{ByteSet, escape};
pub(crate) use components::Components;
pub(crate) use csr::Csr;
pub use dfa::{Dfa, DfaBuilder, Edge};
pub(crate) use dfa::{ResidualId, elementary_cuts};
pub(crate) use digits::{Digit, NumeralBuilder};
pub(crate) use minimize::coarsest;
pub use nfa::Nfa;
pub(crate) use pairs::StatePairs;
pub(crate) use path_lengths::PathLengths;
pub use product::Combine;
pub(crate) use thompson::Thompson;
pub(crate) use trigrams::Trigrams;
pub(crate) use tuples::ClassifiedLanguage;
pub use tuples::LanguageClass;
pub use word_search::WordSearch;

use crate::fuel::OutOfFuel;

#[cfg(test)]
mod tests;

/// Why an automaton was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TooLarge {
    /// It needs more states than the caller's limit.
    #[error("automaton needs more than {limit} states")]
    States {
        /// The limit, in states.
        limit: usize,
    },
    /// It needs more fuel than the budget has, or the request was cancelled.
    #[error("automaton: {0}")]
    Fuel(#[from] OutOfFuel),
}
