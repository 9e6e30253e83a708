//! Rows of Louver's masks as bit vectors of `toktrie`.
//!
//! A bit vector can be written only bit by bit, or copied from another one. So a row with many
//! tokens is copied from an earlier one that is nearly the same, and corrected.

use std::sync::{PoisonError, RwLock};

use toktrie::{SimpleVob, TokenId};

/// Words that are compared at once.
const CHUNK: usize = 8;
/// Words of a row that are looked at to estimate how many tokens it has, and how far it is from
/// another row.
const SAMPLES: usize = 64;
/// Rows from which others are copied.
const MAX_BASES: usize = 16;
/// Words in which a copy may differ from its row before the row is kept as one to copy from.
const MAX_CORRECTED: usize = 400;

/// Ids beyond the vocabulary for which a vector can be asked. Models have logits for more ids than
/// their tokenizers have tokens, and a host may sample one of them before it asks.
const BEYOND: usize = 1_024;

/// A vector of `len` bits without tokens.
fn no_tokens(len: usize) -> SimpleVob {
    SimpleVob::alloc_with_capacity(len, len + BEYOND)
}

/// A vector of `len` bits with these tokens, as far as there are such.
pub(crate) fn tokens_mask(tokens: &[TokenId], len: usize) -> SimpleVob {
    let mut vector = no_tokens(len);
    tokens.iter().filter(|&&token| (token as usize) < len).for_each(|&t| vector.allow_token(t));
    vector
}

/// An earlier row, after the words of it that are looked at.
type Base = (Vec<u32>, SimpleVob);

/// Earlier rows with many tokens. The first has no tokens.
pub(crate) struct MaskBases {
    len: usize,
    bases: RwLock<Vec<Base>>,
}

impl MaskBases {
    /// For rows of which `len` bits are used.
    pub(crate) fn new(len: usize) -> MaskBases {
        MaskBases { len, bases: RwLock::new(vec![(vec![0; SAMPLES], no_tokens(len))]) }
    }

    /// The bits of a row.
    pub(crate) fn vector(&self, words: &[u32]) -> SimpleVob {
        let words = &words[..self.len.div_ceil(32).min(words.len())];
        let step = words.len().div_ceil(SAMPLES).max(1);
        let sampled: Vec<u32> = words.iter().step_by(step).copied().collect();
        let distance = |(of, _): &&Base| sampled.iter().zip(of).filter(|(a, b)| a != b).count();
        let bases = self.bases.read().unwrap_or_else(PoisonError::into_inner);
        let nearest = bases.iter().min_by_key(distance);
        let mut vector = nearest.map_or_else(|| no_tokens(self.len), |(_, base)| base.clone());
        drop(bases);
        if correct(&mut vector, words, self.len) > MAX_CORRECTED {
            let mut bases = self.bases.write().unwrap_or_else(PoisonError::into_inner);
            bases.insert(1, (sampled, vector.clone()));
            bases.truncate(MAX_BASES);
        }
        vector
    }
}

/// Makes the bits of `vector` those of the row; returns how many words changed.
fn correct(vector: &mut SimpleVob, words: &[u32], len: usize) -> usize {
    let mut corrected = 0;
    for (at, chunk) in words.chunks(CHUNK).enumerate() {
        let start = at * CHUNK;
        if vector.as_slice().get(start..start + chunk.len()) == Some(chunk) {
            continue;
        }
        for (index, &word) in (start..).zip(chunk) {
            // Only the last word may have bits past the end.
            let beyond = u32::MAX.checked_shl((len - index * 32) as u32).unwrap_or(0);
            let mut differing = (vector.as_slice()[index] ^ word) & !beyond;
            corrected += usize::from(differing != 0);
            while differing != 0 {
                let bit = differing.trailing_zeros() as usize;
                vector.set(index * 32 + bit, word >> bit & 1 == 1);
                differing &= differing - 1;
            }
        }
    }
    corrected
}
