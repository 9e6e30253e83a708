//! The token ids that a special token of a grammar stands for, in one vocabulary.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use super::token_set::{bit, clear_bit, ids, set_bit};
use crate::compile::CompileError;
use crate::fuel;
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

/// Words of a row for a unit of fuel: the copy costs less, but the fuel also bounds the memory.
const WORDS_PER_FUEL: usize = 4;

/// Finds the ids of special tokens in one vocabulary.
pub(crate) struct SpecialTokenResolver<'v> {
    vocab: &'v Vocabulary,
    /// All used ids but stop tokens, once they are needed.
    all_but_stops: OnceCell<Vec<u32>>,
}

impl<'v> SpecialTokenResolver<'v> {
    pub(crate) fn new(vocab: &'v Vocabulary) -> SpecialTokenResolver<'v> {
        SpecialTokenResolver { vocab, all_but_stops: OnceCell::new() }
    }

    /// The ids of each token. Fails if the vocabulary lacks a named token, or the fuel is spent.
    pub(crate) fn resolve_all<C: FromIterator<SpecialTokenIds>>(
        &self,
        specials: &[SpecialToken],
    ) -> Result<C, CompileError> {
        specials.iter().map(|special| self.resolve(special)).collect()
    }

    /// The ids of one token.
    fn resolve(&self, special: &SpecialToken) -> Result<SpecialTokenIds, CompileError> {
        let vocab = self.vocab;
        let id = match special {
            SpecialToken::Name(name) => vocab.special(name).or_else(|| vocab.find(name.as_bytes())),
            SpecialToken::Id(id) => Some(TokenId::from_raw(*id)).filter(|&t| vocab.is_used(t)),
            SpecialToken::AnyOf(list) => {
                let row = self.row(special, vec![0; vocab.mask_words()], list, set_bit)?;
                return SpecialTokenIds::many(row, special);
            }
            SpecialToken::AnyBut(list) => {
                let row = self.row(special, self.all_but_stops().to_vec(), list, clear_bit)?;
                return SpecialTokenIds::many(row, special);
            }
        };
        let token = || match special {
            SpecialToken::Id(id) => format!("with id {id}"),
            named => format!("`{named}`"),
        };
        id.map(SpecialTokenIds::One).ok_or_else(|| CompileError::UnknownSpecial { token: token() })
    }

    fn all_but_stops(&self) -> &[u32] {
        let vocab = self.vocab;
        self.all_but_stops.get_or_init(|| {
            let ids = (0..vocab.width() as u32).map(TokenId::from_raw);
            let mut row = vec![0; vocab.mask_words()];
            ids.filter(|&id| vocab.is_used(id) && !vocab.is_stop(id))
                .for_each(|id| set_bit(&mut row, id));
            row
        })
    }

    /// A row, changed at the ids of these tokens.
    fn row(
        &self,
        special: &SpecialToken,
        mut row: Vec<u32>,
        list: &[SpecialToken],
        change: fn(&mut [u32], TokenId),
    ) -> Result<Vec<u32>, CompileError> {
        fuel::spend(row.len() / WORDS_PER_FUEL + list.len())
            .map_err(|cause| CompileError::Fuel { rule: special.to_string(), cause })?;
        for token in list {
            self.resolve(token)?.each(&mut |id| change(&mut row, id));
        }
        Ok(row)
    }
}

impl SpecialTokenIds {
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
