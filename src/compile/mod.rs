//! Stage 3.
use crate::ir::{Grammar, GrammarError};
use crate::limits::Limits;

/// Why a grammar cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// No sentence can be derived.
    #[error("the grammar derives nothing: rule `{rule}` has no finite sentence")]
    Empty {
        /// The start rule.
        rule: String,
    },
    /// A limit was reached.
    #[error("rule `{rule}` needs more than {limit} {what}")]
    Limit {
        /// Where.
        rule: String,
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A special token of the grammar is not in the vocabulary.
    #[error("the vocabulary has no special token {token}")]
    UnknownSpecial {
        /// Its name or id.
        token: String,
    },
}

/// A grammar as automata. Knows no vocabulary. Immutable; share it in an `Arc`.
#[derive(Debug)]
pub struct Compiled {}

impl Compiled {
    /// Compiles.
    pub fn new(grammar: &Grammar, limits: &Limits) -> Result<Compiled, CompileError> {
        todo!()
    }
}
