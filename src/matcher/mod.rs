//! Stage 4.
mod trace;
pub use trace::{Span, Tracer};
use crate::fsm::ByteSet;
use crate::compile::Compiled;
use crate::ids::TokenId;
use std::sync::Arc;

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

/// A byte the grammar does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} is not allowed; expected one of {expected}")]
pub struct Rejected {
    /// Offset from the beginning of everything pushed.
    pub offset: usize,
    /// What would have been allowed there.
    pub expected: ByteSet,
    /// Whether the input could have ended there.
    pub could_end: bool,
}

/// Recognises bytes, without a vocabulary. (Special tokens of the grammar cannot be pushed as bytes.)
#[derive(Debug)]
pub struct Recognizer {}
impl Recognizer {
    /// At the beginning.
    pub fn new(compiled: Arc<Compiled>) -> Recognizer { todo!() }
    /// Takes bytes; stops at the first one that is not allowed (the state is then that before it).
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Rejected> { todo!() }
    /// Takes a special token by its text.
    pub fn push_special(&mut self, name: &str) -> bool { todo!() }
    /// Whether what was pushed is a whole sentence.
    pub fn is_complete(&mut self) -> bool { todo!() }
    /// Bytes that may follow.
    pub fn allowed(&mut self) -> ByteSet { todo!() }
    /// Back to the beginning.
    pub fn reset(&mut self) { todo!() }
}
