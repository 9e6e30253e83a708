//! Scalar reference implementation of the operations, one id at a time. Tests compare the
//! vectorised rows and the kernels with it.
//!
//! It is not optimised. A mask has one bit per id, least significant bit of the first word first;
//! ids beyond its words are not allowed.

use crate::logit::Logit;

/// Whether a mask allows this id.
pub fn allows(words: &[u32], id: usize) -> bool {
    words.get(id / 32).is_some_and(|word| (word >> (id % 32)) & 1 == 1)
}

/// Sets each logit whose id is not allowed to minus infinity. The others keep their bits.
pub fn mask_row<T: Logit>(row: &mut [T], words: &[u32]) {
    for (id, x) in row.iter_mut().enumerate() {
        if !allows(words, id) {
            *x = T::MASKED;
        }
    }
}

/// The allowed id with the largest logit; the lowest id among equals. NaN ranks below minus
/// infinity. `None` if no id of the row is allowed.
pub fn greedy_row<T: Logit>(row: &[T], words: &[u32]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for id in (0..row.len()).filter(|&id| allows(words, id)) {
        if best.is_none_or(|b| row[id].order() > row[b].order()) {
            best = Some(id);
        }
    }
    best
}
