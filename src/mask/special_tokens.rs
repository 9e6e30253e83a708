//! The token ids that a special token of a grammar stands for, in one vocabulary.

use std::fmt;
use std::sync::Arc;

use super::token_set::{bit, clear_bit, ids, set_bit};
use crate::compile::CompileError;
use crate::ids::TokenId;
use crate::ir::SpecialToken;
use crate::vocab::Vocabulary;

/// The token ids of one special edge.
pub(crate) enum SpecialTokenIds {
    /// Exactly one.
    One(TokenId),
    /// At least one, as a bitmap row.
    Many(Arc<[u32]>),
}

impl fmt::Debug for SpecialTokenIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecialTokenIds::One(id) => write!(f, "{id}"),
            SpecialTokenIds::Many(row) => {
                write!(f, "{} tokens", row.iter().map(|word| word.count_ones()).sum::<u32>())
            }
        }
    }
}

impl SpecialTokenIds {
    /// Fails if the vocabulary lacks a named token.
    pub(crate) fn resolve(
        special: &SpecialToken,
        vocab: &Vocabulary,
    ) -> Result<SpecialTokenIds, CompileError> {
        let id = match special {
            SpecialToken::Name(name) => vocab.special(name).or_else(|| vocab.find(name.as_bytes())),
            SpecialToken::Id(id) => Some(TokenId::from_raw(*id)).filter(|&t| vocab.is_used(t)),
            SpecialToken::AnyOf(list) => {
                let mut row = vec![0; vocab.mask_words()];
                list.iter().try_for_each(|token| {
                    SpecialTokenIds::resolve(token, vocab)
                        .map(|t| t.each(&mut |id| set_bit(&mut row, id)))
                })?;
                return SpecialTokenIds::many(row, special);
            }
            SpecialToken::AnyBut(list) => {
                let mut row = vec![0; vocab.mask_words()];
                let used = (0..vocab.width() as u32)
                    .map(TokenId::from_raw)
                    .filter(|&id| vocab.is_used(id));
                used.filter(|&id| !vocab.is_stop(id)).for_each(|id| set_bit(&mut row, id));
                list.iter().try_for_each(|token| {
                    SpecialTokenIds::resolve(token, vocab)
                        .map(|t| t.each(&mut |id| clear_bit(&mut row, id)))
                })?;
                return SpecialTokenIds::many(row, special);
            }
        };
        let token = || match special {
            SpecialToken::Id(id) => format!("with id {id}"),
            named => format!("`{named}`"),
        };
        id.map(SpecialTokenIds::One).ok_or_else(|| CompileError::UnknownSpecial { token: token() })
    }

    /// Fails if the row is empty.
    fn many(row: Vec<u32>, special: &SpecialToken) -> Result<SpecialTokenIds, CompileError> {
        if row.iter().all(|&word| word == 0) {
            return Err(CompileError::UnknownSpecial { token: special.to_string() });
        }
        Ok(SpecialTokenIds::Many(row.into()))
    }

    /// Whether this id is one of them.
    pub(crate) fn contains(&self, token: TokenId) -> bool {
        match self {
            SpecialTokenIds::One(id) => *id == token,
            SpecialTokenIds::Many(row) => bit(row, token),
        }
    }

    /// Calls `visit` with each id.
    pub(super) fn each(&self, visit: &mut dyn FnMut(TokenId)) {
        match self {
            SpecialTokenIds::One(id) => visit(*id),
            SpecialTokenIds::Many(row) => ids(row.iter().copied()).for_each(visit),
        }
    }

    /// The smallest id.
    pub(crate) fn first(&self) -> TokenId {
        match self {
            SpecialTokenIds::One(id) => *id,
            SpecialTokenIds::Many(row) => {
                ids(row.iter().copied()).next().expect("there is at least one")
            }
        }
    }
}
