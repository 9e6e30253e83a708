//! The vectorised rows against the scalar reference. Uses no tensors, so that Miri can run it.

use half::{bf16, f16};

use super::*;
use crate::scalar;

const WIDTHS: [usize; 12] = [0, 1, 31, 32, 33, 63, 64, 100, 511, 512, 513, 1100];

/// Conversion of arbitrary bits to logits. NaN and infinities are as likely as their patterns.
trait FromBits: Logit + PartialEq {
    fn from_bits(bits: u32) -> Self;
    fn bits(self) -> u32;
}

impl FromBits for f32 {
    fn from_bits(bits: u32) -> Self {
        f32::from_bits(if bits.is_multiple_of(7) { bits | 0x7f80_0000 } else { bits })
    }
    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl FromBits for f16 {
    fn from_bits(bits: u32) -> Self {
        f16::from_bits((bits >> 9) as u16)
    }
    fn bits(self) -> u32 {
        self.to_bits().into()
    }
}

impl FromBits for bf16 {
    fn from_bits(bits: u32) -> Self {
        bf16::from_bits(((bits >> 9) as u16) | if bits.is_multiple_of(7) { 0x7f80 } else { 0 })
    }
    fn bits(self) -> u32 {
        self.to_bits().into()
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }
}

/// Masks of different kinds: random words, runs of empty and full words, single bits.
fn masks(random: &mut Random, words: usize) -> Vec<Vec<u32>> {
    let noise: Vec<u32> = (0..words).map(|_| random.next() ^ (random.next() << 8)).collect();
    let runs = (0..words).map(|i| [0, u32::MAX, 1, u32::MAX - 1][(i / 5) % 4]).collect();
    let mut one_banned = vec![u32::MAX; words];
    let mut one_allowed = vec![0; words];
    if words > 0 {
        one_banned[words / 2] ^= 1 << 7;
        one_allowed[words / 2] ^= 1 << 7;
    }
    vec![noise, runs, one_banned, one_allowed, vec![0; words], vec![u32::MAX; words]]
}

fn compare<T: FromBits>() {
    let mut random = Random(1);
    // Miri is about a thousand times slower: test the edges of words and groups, with one word
    // count.
    let widths = if cfg!(miri) { &[1, 33, 513][..] } else { &WIDTHS };
    for &ids in widths {
        let row: Vec<T> = (0..ids).map(|_| T::from_bits(random.next())).collect();
        let words = [ids.div_ceil(32), ids.div_ceil(32) + 2, ids / 64, 0];
        for &words in if cfg!(miri) { &words[..1] } else { &words } {
            for mask in masks(&mut random, words) {
                let bits = |row: &[T]| row.iter().map(|x| x.bits()).collect::<Vec<_>>();
                let (mut slow, mut fast, mut plain, mut checked) =
                    (row.clone(), row.clone(), row.clone(), row.clone());
                scalar::mask_row(&mut slow, &mask);
                mask_row(&mut fast, &mask);
                super::mask(&mut plain, &mask);
                let check = mask_row_checked(&mut checked, &mask);
                assert_eq!(bits(&fast), bits(&slow), "{ids} {mask:x?}");
                assert_eq!(bits(&plain), bits(&slow), "{ids} {mask:x?}");
                assert_eq!(bits(&checked), bits(&slow), "{ids} {mask:x?}");
                let allowed = || (0..ids).filter(|&id| scalar::allows(&mask, id));
                let expected = match (allowed().next(), allowed().all(|id| row[id].is_finite())) {
                    (None, _) => LogitCheck::NoneAllowed,
                    (_, true) => LogitCheck::Finite,
                    (_, false) => LogitCheck::Irregular,
                };
                assert_eq!(check, expected, "{ids} {mask:x?}");
                let chosen = scalar::greedy_row(&row, &mask);
                assert_eq!(greedy_row(&row, &mask), chosen, "{ids} {mask:x?}");
                assert_eq!(greedy_loop(&row, &mask), chosen, "{ids} {mask:x?}");
            }
        }
    }
}

#[test]
fn f32_rows_match_the_scalar_reference() {
    compare::<f32>();
}

#[test]
fn f16_rows_match_the_scalar_reference() {
    compare::<f16>();
}

#[test]
fn bf16_rows_match_the_scalar_reference() {
    compare::<bf16>();
}

#[test]
fn greedy_prefers_numbers_and_low_ids() {
    let nan = f32::NAN;
    let inf = f32::INFINITY;
    assert_eq!(greedy_row(&[nan, -inf, -inf], &[0b111]), Some(1));
    assert_eq!(greedy_row(&[nan, nan], &[0b110]), Some(1));
    assert_eq!(greedy_row(&[0.0, -0.0, 0.0], &[0b110]), Some(1));
    assert_eq!(greedy_row(&[1.0, inf, inf], &[0b111]), Some(1));
    assert_eq!(greedy_row(&[1.0], &[0b110]), None);
    assert_eq!(greedy_row::<f32>(&[], &[1]), None);
}
