//! Vectorised row operations on the CPU. Each loop is compiled for several instruction sets
//! (AVX-512, AVX2 and the target's baseline) and vectorised by the compiler. Mask words that allow
//! everything or nothing are handled without looking at single bits.

use crate::logit::Logit;

/// Calls a function compiled for the best instruction set that the processor supports.
macro_rules! dispatch_simd {
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
                // SAFETY: the processor supports all features that the function is compiled for, as
                // checked above.
                #[allow(unsafe_code, reason = "calls a function with CPU-specific instructions")]
                return unsafe { avx512($($arg),*) };
            }
            if has_avx2 {
                // SAFETY: the processor supports AVX2, as checked above.
                #[allow(unsafe_code, reason = "calls a function with CPU-specific instructions")]
                return unsafe { avx2($($arg),*) };
            }
        }
        $f($($arg),*)
    }};
}
/// The state of the allowed logits, from [`mask_row_checked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogitCheck {
    /// All are finite.
    Finite,
    /// Some are infinite or NaN.
    Irregular,
    /// No allowed id lies within the row, which is now all minus infinity.
    NoneAllowed,
}

/// Sets each logit whose id is not allowed to minus infinity: ids whose bit in `words` is 0 (one
/// bit per id, least significant first), and ids beyond `words`. Allowed logits keep their bits,
/// including NaN. Words beyond the row are ignored. Cost: reads the mask; touches logits only in
/// words with a masked id.
pub fn mask_row<T: Logit>(row: &mut [T], words: &[u32]) {
    dispatch_simd!(mask::<T>(row: &mut [T], words: &[u32]));
}

/// As [`mask_row`], and checks the allowed logits. Cost: a pass over the allowed logits.
pub fn mask_row_checked<T: Logit>(row: &mut [T], words: &[u32]) -> LogitCheck {
    dispatch_simd!(mask_checked_loop::<T>(row: &mut [T], words: &[u32]) -> LogitCheck)
}

/// The allowed id with the largest logit; the lowest id among equals. NaN ranks below minus
/// infinity. `None` if no id of the row is allowed. Cost: one pass over the allowed logits; nothing
/// is written.
pub fn greedy_row<T: Logit>(row: &[T], words: &[u32]) -> Option<usize> {
    dispatch_simd!(greedy_loop::<T>(row: &[T], words: &[u32]) -> Option<usize>)
}

/// Number of mask words that are tested together before any logit is touched.
const GROUP_WORDS: usize = 16;
/// Cache line size in bytes. Rows are split at this alignment, so that stores do not cross a line.
const CACHE_LINE: usize = 64;
/// Prefetch distance in bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const PREFETCH_BYTES: usize = 16 * 1024;

/// A mask read from an arbitrary id, 32 ids at a time.
#[derive(Clone, Copy)]
struct MaskReader<'w> {
    words: &'w [u32],
    shift: u32,
}

impl<'w> MaskReader<'w> {
    #[inline(always)]
    fn starting_at(words: &'w [u32], id: usize) -> Self {
        Self { words: words.get(id / 32..).unwrap_or_default(), shift: (id % 32) as u32 }
    }

    /// The bits of the ids `32 * at..32 * at + 32`.
    #[inline(always)]
    fn word(&self, at: usize) -> u32 {
        let low = self.words.get(at).copied().unwrap_or(0);
        let high = self.words.get(at + 1).copied().unwrap_or(0);
        shifted_word(low, high, self.shift)
    }

    /// The words of one group, if the mask has that many.
    #[inline(always)]
    fn group(&self, at: usize) -> Option<[u32; GROUP_WORDS]> {
        let words =
            <&[u32; GROUP_WORDS + 1]>::try_from(self.words.get(at..at + GROUP_WORDS + 1)?).ok()?;
        let mut out = [0; GROUP_WORDS];
        for i in 0..GROUP_WORDS {
            out[i] = shifted_word(words[i], words[i + 1], self.shift);
        }
        Some(out)
    }
}

#[inline(always)]
fn shifted_word(low: u32, high: u32, shift: u32) -> u32 {
    (((u64::from(high) << 32) | u64::from(low)) >> shift) as u32
}

/// Masks the part of the row beyond the words, and splits the rest where it becomes aligned.
#[inline(always)]
fn split_aligned<'r, T: Logit>(row: &'r mut [T], words: &[u32]) -> (&'r mut [T], &'r mut [T]) {
    let (row, beyond) = row.split_at_mut(row.len().min(words.len() * 32));
    beyond.fill(T::MASKED);
    let head = row.as_ptr().align_offset(CACHE_LINE);
    row.split_at_mut(if head < CACHE_LINE { head.min(row.len()) } else { 0 })
}

#[inline(always)]
fn mask<T: Logit>(row: &mut [T], words: &[u32]) {
    let (head, row) = split_aligned(row, words);
    let bits = MaskReader::starting_at(words, head.len());
    for (at, chunk) in head.chunks_mut(32).enumerate() {
        mask_word(chunk, words[at]);
    }
    for (at, part) in row.chunks_mut(32 * GROUP_WORDS).enumerate() {
        let full_group =
            if part.len() == 32 * GROUP_WORDS { bits.group(at * GROUP_WORDS) } else { None };
        let Some(group) = full_group else {
            for (i, chunk) in part.chunks_mut(32).enumerate() {
                mask_word(chunk, bits.word(at * GROUP_WORDS + i));
            }
            continue;
        };
        match group.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word)) {
            (u32::MAX, _) => {}
            (_, 0) => part.fill(T::MASKED),
            _ => {
                for (chunk, &word) in part.chunks_exact_mut(32).zip(&group) {
                    prefetch(chunk);
                    mask_word(chunk, word);
                }
            }
        }
    }
}

/// Prefetches the cache lines that are needed a few iterations later. Measured on rows outside the
/// cache, this doubles the speed for masks that are neither empty nor full, because the hardware
/// prefetcher stops at page boundaries.
#[inline(always)]
fn prefetch<T: Logit>(chunk: &[T]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in (0..size_of_val(chunk)).step_by(CACHE_LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = chunk.as_ptr().cast::<i8>().wrapping_add(PREFETCH_BYTES + line);
        // SAFETY: a prefetch has no visible effect and does not fault at any address.
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
fn mask_checked_loop<T: Logit>(row: &mut [T], words: &[u32]) -> LogitCheck {
    let (head, row) = split_aligned(row, words);
    let bits = MaskReader::starting_at(words, head.len());
    let (mut allowed, mut irregular) = (0, 0);
    let mut check_chunk = |chunk: &mut [T], word: u32| {
        let word = if chunk.len() < 32 { word & ((1 << chunk.len()) - 1) } else { word };
        allowed |= word;
        irregular |= word
            & match <&[T; 32]>::try_from(&*chunk) {
                Ok(chunk) => irregular_bits(chunk),
                Err(_) => irregular_bits(chunk),
            };
        mask_word(chunk, word);
    };
    head.chunks_mut(32).zip(words).for_each(|(chunk, &word)| check_chunk(chunk, word));
    row.chunks_mut(32).enumerate().for_each(|(at, chunk)| check_chunk(chunk, bits.word(at)));
    match (allowed, irregular) {
        (0, _) => LogitCheck::NoneAllowed,
        (_, 0) => LogitCheck::Finite,
        _ => LogitCheck::Irregular,
    }
}

/// The positions of infinite or NaN logits, as bits.
#[inline(always)]
fn irregular_bits<T: Logit>(chunk: &[T]) -> u32 {
    chunk.iter().enumerate().fold(0, |bits, (i, x)| bits | (u32::from(!x.is_finite()) << i))
}

#[inline(always)]
fn greedy_loop<T: Logit>(row: &[T], words: &[u32]) -> Option<usize> {
    let (mut best, mut at) = (i32::MIN, None);
    for (number, (chunk, &word)) in row.chunks(32).zip(words).enumerate() {
        if word == 0 {
            continue;
        }
        // First the chunk's largest logit, without branches; its position only if it leads.
        let largest = match <&[T; 32]>::try_from(chunk) {
            Ok(chunk) => {
                prefetch(chunk);
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

/// The order of a logit, or [`i32::MIN`] if it is not allowed.
#[inline(always)]
fn masked_order<T: Logit>(x: T, word: u32, i: usize) -> i32 {
    if word & (1 << i) == 0 { i32::MIN } else { x.order() }
}

/// The largest order among the allowed logits, in sixteen lanes that are reduced at the end.
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
