//! What a step over a whole token means in one vocabulary.

use std::fmt;
use std::sync::Arc;

use super::token_set::{bit, clear_bit, ids, set_bit};
use crate::compile::CompileError;
use crate::ids::TokenId;
use crate::ir::SpecialToken;
use crate::vocab::Vocabulary;

/// The tokens one special edge stands for.
pub(crate) enum Tokens {
    One(TokenId),
    /// At least one, as a row.
    Many(Arc<[u32]>),
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tokens::One(id) => write!(f, "{id}"),
            Tokens::Many(row) => {
                write!(f, "{} tokens", row.iter().map(|word| word.count_ones()).sum::<u32>())
            }
        }
    }
}

impl Tokens {
    /// Fails if the vocabulary lacks a token that is named.
    pub(crate) fn resolve(
        special: &SpecialToken,
        vocab: &Vocabulary,
    ) -> Result<Tokens, CompileError> {
        let found = match special {
            SpecialToken::Name(name) => vocab.special(name).or_else(|| vocab.find(name.as_bytes())),
            SpecialToken::Id(id) => Some(TokenId::from_raw(*id)).filter(|&t| vocab.is_used(t)),
            SpecialToken::AnyOf(list) => {
                let mut row = vec![0; vocab.mask_words()];
                list.iter().try_for_each(|token| {
                    Tokens::resolve(token, vocab).map(|t| t.each(&mut |id| set_bit(&mut row, id)))
                })?;
                return Tokens::many(row, special);
            }
            SpecialToken::AnyBut(list) => {
                let mut row = vec![0; vocab.mask_words()];
                let used = (0..vocab.width() as u32)
                    .map(TokenId::from_raw)
                    .filter(|&id| vocab.is_used(id));
                used.filter(|&id| !vocab.is_stop(id)).for_each(|id| set_bit(&mut row, id));
                list.iter().try_for_each(|token| {
                    Tokens::resolve(token, vocab).map(|t| t.each(&mut |id| clear_bit(&mut row, id)))
                })?;
                return Tokens::many(row, special);
            }
        };
        let token = || match special {
            SpecialToken::Id(id) => format!("with id {id}"),
            named => format!("`{named}`"),
        };
        found.map(Tokens::One).ok_or_else(|| CompileError::UnknownSpecial { token: token() })
    }

    fn many(row: Vec<u32>, special: &SpecialToken) -> Result<Tokens, CompileError> {
        if row.iter().all(|&word| word == 0) {
            return Err(CompileError::UnknownSpecial { token: special.to_string() });
        }
        Ok(Tokens::Many(row.into()))
    }

    /// Whether this token is one of them.
    pub(crate) fn contains(&self, token: TokenId) -> bool {
        match self {
            Tokens::One(id) => *id == token,
            Tokens::Many(row) => bit(row, token),
        }
    }

    pub(super) fn each(&self, visit: &mut dyn FnMut(TokenId)) {
        match self {
            Tokens::One(id) => visit(*id),
            Tokens::Many(row) => ids(row.iter().copied()).for_each(visit),
        }
    }

    /// The one with the smallest id.
    pub(crate) fn first(&self) -> TokenId {
        match self {
            Tokens::One(id) => *id,
            Tokens::Many(row) => ids(row.iter().copied()).next().expect("there is at least one"),
        }
    }
}
