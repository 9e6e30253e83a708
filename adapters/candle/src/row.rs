//! Rows on the CPU. One loop, compiled for what the processor has (AVX-512, AVX2 or the target's baseline) and vectorised
//! by the compiler; whole words of a mask that allow everything or nothing are not looked at bit by bit.

use crate::logit::Logit;

/// Calls a function compiled for the best instructions that the processor has.
macro_rules! fast {
    ($f:ident::<$t:ident>($($arg:ident: $ty:ty),*) $(-> $out:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
            fn avx512<$t: Logit>($($arg: $ty),*) $(-> $out)? {
                $f($($arg),*)
            }
            #[target_feature(enable = "avx2")]
            fn avx2<$t: Logit>($($arg: $ty),*) $(-> $out)? {
                $f($($arg),*)
            }
            let has_avx2 = is_x86_feature_detected!("avx2");
            if has_avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
            {
                // SAFETY: the processor has all features that the function is compiled for, as just asked.
                #[allow(unsafe_code, reason = "a call of a function compiled for more than the baseline")]
                return unsafe { avx512($($arg),*) };
            }
            if has_avx2 {
                // SAFETY: the processor has AVX2, as just asked.
                #[allow(unsafe_code, reason = "a call of a function compiled for more than the baseline")]
                return unsafe { avx2($($arg),*) };
            }
        }
        $f($($arg),*)
    }};
}
/// What [`mask_row_checked`] saw of the logits that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// They are finite.
    Finite,
    /// Some are infinite or not a number.
    Odd,
    /// No allowed id lies within the row, which is all minus infinity now.
    Nothing,
}

/// Sets each logit whose id is not allowed to minus infinity: ids whose bit in `words` (one bit an id, the lowest first) is
/// 0, and ids beyond `words`. The others keep their bits, also where they are not numbers. Words beyond the row are not
/// looked at. Cost: the mask is read, logits are touched where some id of a word is not allowed.
pub fn mask_row<T: Logit>(row: &mut [T], words: &[u32]) {
    fast!(mask::<T>(row: &mut [T], words: &[u32]));
}

/// As [`mask_row`], and looks at the logits that are left. Cost: a pass over the logits that are allowed.
pub fn mask_row_checked<T: Logit>(row: &mut [T], words: &[u32]) -> Checked {
    fast!(mask_checked::<T>(row: &mut [T], words: &[u32]) -> Checked)
}

/// The allowed id with the largest logit, the lowest of equals; what is not a number comes after minus infinity. None where
/// no id of the row is allowed. Cost: one pass over the logits that are allowed; nothing is written.
pub fn greedy_row<T: Logit>(row: &[T], words: &[u32]) -> Option<usize> {
    fast!(greedy::<T>(row: &[T], words: &[u32]) -> Option<usize>)
}

/// Words of a mask that are looked at together before any logit is.
const GROUP: usize = 16;

/// The part of the row that the words cover, and the words of it.
#[inline(always)]
fn cover<'r, 'w, T: Logit>(row: &'r mut [T], words: &'w [u32]) -> (&'r mut [T], &'w [u32]) {
    let covered = row.len().min(words.len() * 32);
    let (row, beyond) = row.split_at_mut(covered);
    beyond.fill(T::MASKED);
    (row, &words[..covered.div_ceil(32)])
}

#[inline(always)]
fn mask<T: Logit>(row: &mut [T], words: &[u32]) {
    let (row, words) = cover(row, words);
    for (part, group) in row.chunks_mut(32 * GROUP).zip(words.chunks(GROUP)) {
        if let Ok(group) = <&[u32; GROUP]>::try_from(group)
            && part.len() == 32 * GROUP
        {
            let (all, any) = group.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word));
            match (all, any) {
                (u32::MAX, _) => continue,
                (_, 0) => {
                    part.fill(T::MASKED);
                    continue;
                }
                _ => {}
            }
        }
        for (chunk, &word) in part.chunks_mut(32).zip(group) {
            mask_word(chunk, word);
        }
    }
}

#[inline(always)]
fn mask_word<T: Logit>(chunk: &mut [T], word: u32) {
    match (<&mut [T; 32]>::try_from(&mut *chunk), word) {
        (_, u32::MAX) => {}
        (_, 0) => chunk.fill(T::MASKED),
        (Ok(chunk), _) => {
            for (i, x) in chunk.iter_mut().enumerate() {
                *x = if word & (1 << i) == 0 { T::MASKED } else { *x };
            }
        }
        (Err(_), _) => {
            for (i, x) in chunk.iter_mut().enumerate() {
                *x = if word & (1 << i) == 0 { T::MASKED } else { *x };
            }
        }
    }
}

#[inline(always)]
fn mask_checked<T: Logit>(row: &mut [T], words: &[u32]) -> Checked {
    let (row, words) = cover(row, words);
    let (mut allowed, mut odd) = (0, 0u32);
    for (chunk, &word) in row.chunks_mut(32).zip(words) {
        let word = if chunk.len() < 32 { word & ((1 << chunk.len()) - 1) } else { word };
        allowed |= word;
        let bits = match <&[T; 32]>::try_from(&*chunk) {
            Ok(chunk) => odd_bits(chunk),
            Err(_) => odd_bits(chunk),
        };
        odd |= bits & word;
        mask_word(chunk, word);
    }
    match (allowed, odd) {
        (0, _) => Checked::Nothing,
        (_, 0) => Checked::Finite,
        _ => Checked::Odd,
    }
}

/// The logits that are infinite or not a number, as bits.
#[inline(always)]
fn odd_bits<T: Logit>(chunk: &[T]) -> u32 {
    chunk.iter().enumerate().fold(0, |bits, (i, x)| bits | (u32::from(!x.is_finite()) << i))
}

#[inline(always)]
fn greedy<T: Logit>(row: &[T], words: &[u32]) -> Option<usize> {
    let (mut best, mut at) = (i32::MIN, None);
    for (number, (chunk, &word)) in row.chunks(32).zip(words).enumerate() {
        if word == 0 {
            continue;
        }
        // The largest of the chunk first, which needs no branches; where it is only when it leads.
        let largest = match <&[T; 32]>::try_from(chunk) {
            Ok(chunk) => largest(chunk, word),
            Err(_) => largest(chunk, word),
        };
        if largest > best {
            let found = chunk.iter().enumerate().position(|(i, x)| word & (1 << i) != 0 && x.order() == largest);
            (best, at) = (largest, found.map(|i| number * 32 + i));
        }
    }
    at
}

/// The largest order among the ids of the word, [`i32::MIN`] where it allows none of them.
#[inline(always)]
fn largest<T: Logit>(chunk: &[T], word: u32) -> i32 {
    let mut largest = i32::MIN;
    for (i, x) in chunk.iter().enumerate() {
        let order = if word & (1 << i) == 0 { i32::MIN } else { x.order() };
        largest = largest.max(order);
    }
    largest
}

#[cfg(test)]
mod tests;
