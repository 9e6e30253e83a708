//! Rows of Louver's masks as bit vectors of `toktrie`.
//!
//! A bit vector can be written only bit by bit, or copied from another one. Most masks return, so
//! their vectors are kept. A new one is copied from the kept vector that is nearest to it, and
//! corrected.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use louver::{MaskIdentity, MaskRow};
use toktrie::{SimpleVob, TokTrie, TokenId};

/// Vectors that are kept: 16 KiB each for a vocabulary of 128,000 tokens.
const MAX_KEPT: usize = 256;
/// Vectors that new ones are copied from.
const MAX_BASES: usize = 16;
/// Words that are compared at once.
const CHUNK: usize = 16;
/// Words of a row that are looked at to estimate how far it is from another one.
const SAMPLES: usize = 64;
/// A row in which fewer of those have tokens is written token by token.
const SPARSE: usize = 8;

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

/// A mask as a vector.
pub(crate) struct MaskVector {
    pub(crate) bits: SimpleVob,
    /// Whether no token is allowed.
    pub(crate) is_empty: bool,
    /// Whether all allowed tokens begin with the same byte, as they do where text is forced.
    pub(crate) has_one_first_byte: bool,
    /// Some words of the row.
    sampled: Vec<u32>,
}

impl MaskVector {
    fn new(bits: SimpleVob, sampled: Vec<u32>, trie: &TokTrie) -> MaskVector {
        let mut first_bytes = bits.iter().map(|token| trie.token(token).first());
        let first = first_bytes.next();
        let has_one_first_byte = first.is_some_and(|first| first_bytes.all(|byte| byte == first));
        MaskVector { is_empty: first.is_none(), has_one_first_byte, bits, sampled }
    }

    /// How many of these words are others here.
    fn distance(&self, sampled: &[u32]) -> usize {
        self.sampled.iter().zip(sampled).filter(|(a, b)| a != b).count()
    }
}

/// The vectors of masks, kept for when they return.
#[derive(Default)]
pub(crate) struct MaskVectors(RwLock<KeptVectors>);

#[derive(Default)]
struct KeptVectors {
    vectors: HashMap<MaskIdentity, Arc<MaskVector>>,
    /// The first is dropped first.
    order: VecDeque<MaskIdentity>,
    /// The latest vectors with many tokens, to copy from.
    bases: VecDeque<Arc<MaskVector>>,
}

impl MaskVectors {
    /// The vector of a row. `end` is a bit of the row that stands for the tokens `ends`.
    pub(crate) fn vector(
        &self,
        row: &MaskRow,
        trie: &TokTrie,
        (end, ends): (louver::TokenId, &SimpleVob),
    ) -> Arc<MaskVector> {
        let identity = row.identity();
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = kept.vectors.get(&identity) {
            return vector.clone();
        }
        let len = trie.vocab_size();
        let words = &row.words()[..len.div_ceil(32).min(row.words().len())];
        let step = words.len().div_ceil(SAMPLES).max(1);
        let sampled: Vec<u32> = words.iter().step_by(step).copied().collect();
        let is_sparse = sampled.iter().filter(|&&word| word != 0).count() < SPARSE;
        let nearest = kept.bases.iter().min_by_key(|vector| vector.distance(&sampled));
        let base = nearest.filter(|_| !is_sparse).cloned();
        drop(kept);
        let mut bits = base.map_or_else(|| no_tokens(len), |base| base.bits.clone());
        correct(&mut bits, words, len);
        if row.allows(end) {
            bits.or(ends);
        }
        let vector = Arc::new(MaskVector::new(bits, sampled, trie));
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        kept.insert(identity, vector.clone(), is_sparse);
        vector
    }
}

impl KeptVectors {
    fn insert(&mut self, identity: MaskIdentity, vector: Arc<MaskVector>, is_sparse: bool) {
        if !is_sparse {
            self.bases.truncate(MAX_BASES - 1);
            self.bases.push_front(vector.clone());
        }
        if self.vectors.insert(identity.clone(), vector).is_none() {
            self.order.push_back(identity);
        }
        if self.order.len() > MAX_KEPT
            && let Some(first) = self.order.pop_front()
        {
            self.vectors.remove(&first);
        }
    }
}

/// Makes the bits of `vector` those of the row.
fn correct(vector: &mut SimpleVob, words: &[u32], len: usize) {
    for (at, chunk) in words.chunks(CHUNK).enumerate() {
        let start = at * CHUNK;
        if vector.as_slice().get(start..start + chunk.len()) == Some(chunk) {
            continue;
        }
        for (index, &word) in (start..).zip(chunk) {
            // Only the last word may have bits past the end.
            let beyond = u32::MAX.checked_shl((len - index * 32) as u32).unwrap_or(0);
            let mut differing = (vector.as_slice()[index] ^ word) & !beyond;
            while differing != 0 {
                let bit = differing.trailing_zeros() as usize;
                vector.set(index * 32 + bit, word >> bit & 1 == 1);
                differing &= differing - 1;
            }
        }
    }
}
