//! Sets of token ids: a list where few, the list of the others where nearly all, a bitmap between.

use std::sync::Arc;

use crate::ids::TokenId;

/// Sets bit `id`.
#[inline]
pub(crate) fn set_bit(words: &mut [u32], id: TokenId) {
    if let Some(word) = words.get_mut(id.index() / 32) {
        *word |= 1 << (id.raw() % 32);
    }
}

/// Clears bit `id`.
#[inline]
pub(crate) fn clear_bit(words: &mut [u32], id: TokenId) {
    if let Some(word) = words.get_mut(id.index() / 32) {
        *word &= !(1 << (id.raw() % 32));
    }
}

/// Whether bit `id` is set; false beyond the row.
#[inline]
pub fn bit(words: &[u32], id: TokenId) -> bool {
    words.get(id.index() / 32).is_some_and(|word| word >> (id.raw() % 32) & 1 == 1)
}

/// An immutable set of token ids in whichever form is smallest.
#[derive(Clone, Debug)]
pub(crate) enum TokenSet {
    /// These.
    List(Box<[TokenId]>),
    /// Every token with text but these.
    AllBut(Box<[TokenId]>),
    /// A bitmap row.
    Bits(Arc<[u32]>),
}

impl TokenSet {
    /// `all` is the row of every token with text and how many those are; `ids` are distinct.
    pub(crate) fn new(ids: Vec<TokenId>, all: &Arc<[u32]>, all_count: usize) -> TokenSet {
        let words = all.len();
        if ids.len() <= words {
            return TokenSet::List(ids.into_boxed_slice());
        }
        let mut bits = vec![0u32; words];
        for &id in &ids {
            set_bit(&mut bits, id);
        }
        if all_count - ids.len() > words {
            return TokenSet::Bits(bits.into());
        }
        let mut others = Vec::with_capacity(all_count - ids.len());
        for (w, (&a, &b)) in all.iter().zip(&bits).enumerate() {
            let mut rest = a & !b;
            while rest != 0 {
                others.push(TokenId::from_raw(w as u32 * 32 + rest.trailing_zeros()));
                rest &= rest - 1;
            }
        }
        TokenSet::AllBut(others.into_boxed_slice())
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            TokenSet::List(ids) | TokenSet::AllBut(ids) => ids.len() * 4,
            TokenSet::Bits(words) => words.len() * 4,
        }
    }
}
