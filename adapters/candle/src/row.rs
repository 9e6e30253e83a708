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
/// Rows are cut where stores of this many bytes do not cross a cache line.
const LINE: usize = 64;
/// How far ahead cache lines are asked for, in bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const AHEAD: usize = 16 * 1024;

/// A mask read from any id on, 32 ids at a time.
#[derive(Clone, Copy)]
struct Bits<'w> {
    words: &'w [u32],
    shift: u32,
}

impl<'w> Bits<'w> {
    #[inline(always)]
    fn from(words: &'w [u32], id: usize) -> Self {
        Self { words: words.get(id / 32..).unwrap_or_default(), shift: (id % 32) as u32 }
    }

    /// Bits of the ids `32 * at..32 * at + 32`.
    #[inline(always)]
    fn word(&self, at: usize) -> u32 {
        let low = self.words.get(at).copied().unwrap_or(0);
        let high = self.words.get(at + 1).copied().unwrap_or(0);
        join(low, high, self.shift)
    }

    /// As many words as a group has, if the mask goes on for that long.
    #[inline(always)]
    fn group(&self, at: usize) -> Option<[u32; GROUP]> {
        let words = <&[u32; GROUP + 1]>::try_from(self.words.get(at..at + GROUP + 1)?).ok()?;
        let mut out = [0; GROUP];
        for i in 0..GROUP {
            out[i] = join(words[i], words[i + 1], self.shift);
        }
        Some(out)
    }
}

#[inline(always)]
fn join(low: u32, high: u32, shift: u32) -> u32 {
    (((u64::from(high) << 32) | u64::from(low)) >> shift) as u32
}

/// The part of the row that the words cover, cut where it becomes aligned.
#[inline(always)]
fn cut<'r, T: Logit>(row: &'r mut [T], words: &[u32]) -> (&'r mut [T], &'r mut [T]) {
    let (row, beyond) = row.split_at_mut(row.len().min(words.len() * 32));
    beyond.fill(T::MASKED);
    let head = row.as_ptr().align_offset(LINE);
    row.split_at_mut(if head < LINE { head.min(row.len()) } else { 0 })
}

#[inline(always)]
fn mask<T: Logit>(row: &mut [T], words: &[u32]) {
    let (head, row) = cut(row, words);
    let bits = Bits::from(words, head.len());
    for (at, chunk) in head.chunks_mut(32).enumerate() {
        mask_word(chunk, words[at]);
    }
    for (at, part) in row.chunks_mut(32 * GROUP).enumerate() {
        let whole = if part.len() == 32 * GROUP { bits.group(at * GROUP) } else { None };
        let Some(group) = whole else {
            for (i, chunk) in part.chunks_mut(32).enumerate() {
                mask_word(chunk, bits.word(at * GROUP + i));
            }
            continue;
        };
        match group.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word)) {
            (u32::MAX, _) => {}
            (_, 0) => part.fill(T::MASKED),
            _ => {
                for (chunk, &word) in part.chunks_exact_mut(32).zip(&group) {
                    fetch_ahead(chunk);
                    mask_word(chunk, word);
                }
            }
        }
    }
}

/// Asks for the cache lines that are needed some rounds later. Measured on rows that are not in the cache: it doubles the
/// speed of masks that are neither empty nor full, since the processor's own prefetching stops at each page.
#[inline(always)]
fn fetch_ahead<T: Logit>(chunk: &[T]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in (0..size_of_val(chunk)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = chunk.as_ptr().cast::<i8>().wrapping_add(AHEAD + line);
        // SAFETY: a prefetch reads nothing that the program could see and faults at no address.
        #[allow(unsafe_code, reason = "a hint to the processor")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at);
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = chunk;
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
    let (head, row) = cut(row, words);
    let bits = Bits::from(words, head.len());
    let (mut allowed, mut odd) = (0, 0);
    let mut one = |chunk: &mut [T], word: u32| {
        let word = if chunk.len() < 32 { word & ((1 << chunk.len()) - 1) } else { word };
        allowed |= word;
        odd |= word
            & match <&[T; 32]>::try_from(&*chunk) {
                Ok(chunk) => odd_bits(chunk),
                Err(_) => odd_bits(chunk),
            };
        mask_word(chunk, word);
    };
    head.chunks_mut(32).zip(words).for_each(|(chunk, &word)| one(chunk, word));
    row.chunks_mut(32).enumerate().for_each(|(at, chunk)| one(chunk, bits.word(at)));
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
            Ok(chunk) => {
                fetch_ahead(chunk);
                largest(chunk, word)
            }
            Err(_) => {
                (0..chunk.len()).map(|i| masked_order(chunk[i], word, i)).fold(i32::MIN, i32::max)
            }
        };
        if largest > best {
            let found = chunk
                .iter()
                .enumerate()
                .position(|(i, x)| word & (1 << i) != 0 && x.order() == largest);
            (best, at) = (largest, found.map(|i| number * 32 + i));
        }
    }
    at
}

/// The order of an id of a word, [`i32::MIN`] where it is not allowed.
#[inline(always)]
fn masked_order<T: Logit>(x: T, word: u32, i: usize) -> i32 {
    if word & (1 << i) == 0 { i32::MIN } else { x.order() }
}

/// The largest order among the ids of the word, in sixteen lanes that are joined at the end.
#[inline(always)]
fn largest<T: Logit>(chunk: &[T; 32], word: u32) -> i32 {
    let mut lanes = [i32::MIN; 16];
    for (half, ids) in chunk.chunks_exact(16).enumerate() {
        let word = word >> (16 * half);
        for (i, (lane, x)) in lanes.iter_mut().zip(ids).enumerate() {
            *lane = masked_order(*x, word, i).max(*lane);
        }
    }
    lanes.into_iter().fold(i32::MIN, i32::max)
}

#[cfg(test)]
mod tests;
