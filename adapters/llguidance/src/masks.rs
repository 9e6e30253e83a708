//! Masks of the engine as bit vectors of `toktrie`.
//!
//! A bit vector can be written only bit by bit, or copied from another one. Most masks return, so
//! their vectors are kept. A new one with many tokens is copied from the latest such vector, and
//! corrected.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use louver::{MaskIdentity, MaskRow};
use toktrie::{SimpleVob, TokenId};

/// Vectors that are kept: 16 KiB each for a vocabulary of 128,000 tokens.
const MAX_KEPT: usize = 512;

/// Ids beyond the vocabulary for which a vector can be asked. Models have logits for more ids than
/// their tokenizers have tokens, and a host may sample one of them before it asks.
const BEYOND: usize = 1_024;

/// A vector of `len` bits with these tokens, as far as there are such.
pub(crate) fn tokens_mask(tokens: &[TokenId], len: usize) -> SimpleVob {
    let mut vector = SimpleVob::alloc_with_capacity(len, len + BEYOND);
    tokens.iter().filter(|&&token| (token as usize) < len).for_each(|&t| vector.allow_token(t));
    vector
}

/// The masks of one vocabulary as vectors, kept for when they return.
pub(crate) struct MaskVectors {
    kept: RwLock<KeptVectors>,
    /// The mask of the end-of-sequence tokens.
    pub(crate) end_mask: SimpleVob,
    /// The token of rows that stands for the end of the text.
    end: louver::TokenId,
}

#[derive(Default)]
struct KeptVectors {
    vectors: HashMap<MaskIdentity, SimpleVob>,
    /// The latest vector with many tokens, to copy from.
    dense: Option<SimpleVob>,
}

impl MaskVectors {
    /// No vectors yet.
    pub(crate) fn new(end_mask: SimpleVob, end: louver::TokenId) -> MaskVectors {
        MaskVectors { kept: RwLock::default(), end_mask, end }
    }

    /// The mask of a row as a vector.
    pub(crate) fn mask(&self, row: &MaskRow) -> SimpleVob {
        let identity = row.identity();
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = kept.vectors.get(&identity) {
            return vector.clone();
        }
        let len = self.end_mask.len();
        let words = row.words();
        let is_dense = words.iter().filter(|&&word| word != 0).count() > words.len() / 8;
        let dense = kept.dense.as_ref().filter(|_| is_dense).cloned();
        drop(kept);
        let mut vector = dense.unwrap_or_else(|| tokens_mask(&[], len));
        correct(&mut vector, words);
        if row.allows(self.end) {
            vector.or(&self.end_mask);
        }
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if is_dense {
            kept.dense = Some(vector.clone());
        }
        if kept.vectors.len() == MAX_KEPT {
            kept.vectors.clear();
        }
        kept.vectors.insert(identity, vector.clone());
        vector
    }
}

/// Makes the bits of a vector those of a row, which has one more bit: the end of the text.
fn correct(vector: &mut SimpleVob, words: &[u32]) {
    let len = vector.len();
    for (index, &word) in words[..len.div_ceil(32)].iter().enumerate() {
        let mut differing = vector.as_slice()[index] ^ word;
        while differing != 0 {
            let bit = differing.trailing_zeros();
            let token = index * 32 + bit as usize;
            if token < len {
                vector.set(token, word >> bit & 1 == 1);
            }
            differing &= differing - 1;
        }
    }
}
