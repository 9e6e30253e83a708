//! Reproducible sampling: each draw depends on the seed and its index only. The host draws for
//! all requests from one generator, so that a request's output depends on other requests, and it
//! sorts the whole vocabulary for each draw. Here the token is drawn before the host samples; the
//! host then takes the largest logit, which is the drawn token's.

use louver::internals::SplitMix64;
use louver::with_methods;
use louver_candle::scalar;

/// The logit of the drawn token, larger than all others.
const DRAWN_LOGIT: f32 = f32::MAX;

/// The sampling parameters that Louver applies when it draws, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampling {
    /// The temperature; 1.0 if `None`. 0 selects the most likely token.
    pub temperature: Option<f64>,
    /// The number of most likely tokens to draw from.
    pub top_k: Option<usize>,
    /// The share of the distribution to draw from.
    pub top_p: Option<f64>,
    /// The least probability, as a share of the largest one.
    pub min_p: Option<f64>,
}

with_methods!(Sampling {
    with_temperature: temperature = impl Into<Option<f64>>,
    with_top_k: top_k = impl Into<Option<usize>>,
    with_top_p: top_p = impl Into<Option<f64>>,
    with_min_p: min_p = impl Into<Option<f64>>,
});

/// Draws the tokens of a generation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sampler {
    pub(crate) seed: u64,
    pub(crate) sampling: Sampling,
}

/// Which draw of a generation it is: each has a random number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrawIndex {
    /// Number of generated tokens.
    pub(crate) position: usize,
    /// Number of refused draws at this position.
    pub(crate) refused: usize,
}

impl DrawIndex {
    /// The first draw at a position.
    pub(crate) fn first(position: usize) -> DrawIndex {
        DrawIndex { position, refused: 0 }
    }

    /// The random number of this draw, in the open interval (0, 1).
    fn uniform(self, seed: u64) -> f64 {
        let first = split_mix(split_mix(seed) ^ self.position as u64);
        let bits = (0..self.refused).fold(first, |bits, _| split_mix(bits)) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }
}

/// Buffers reused between steps.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Sum of the weights of each block of 32 tokens.
    sums: Vec<f64>,
    /// Weights by token, for `top_k`, `top_p` and `min_p`.
    ranked: Vec<(f32, u32)>,
}

impl Sampler {
    fn temperature(&self) -> f64 {
        self.sampling.temperature.unwrap_or(1.0)
    }

    /// Draws a token among the allowed logits and sets its logit to the maximum. Draws none from
    /// an irregular row. Cost: one pass over the allowed logits for the largest, one with an
    /// exponential each; sorting if `top_k`, `top_p` or `min_p` is set. Only allowed logits are
    /// read.
    pub(crate) fn sample(
        &self,
        row: &mut [f32],
        mask: Option<&[u32]>,
        index: DrawIndex,
        scratch: &mut Scratch,
    ) -> Sampled {
        let AllowedScan { best, allowed, is_irregular } = scan_allowed(row, mask);
        let Some(best) = best.filter(|_| !is_irregular) else {
            return Sampled { token: None, best: f32::NEG_INFINITY, allowed, is_irregular };
        };
        let largest = row[best];
        let is_random = self.temperature() > 1e-7 && self.sampling.top_k != Some(1);
        let token = match is_random {
            true => self.sample_by_weight(row, mask, largest, index, scratch).unwrap_or(best),
            false => best,
        };
        row[token] = DRAWN_LOGIT;
        Sampled { token: u32::try_from(token).ok(), best: largest, allowed, is_irregular }
    }

    fn sample_by_weight(
        &self,
        row: &[f32],
        mask: Option<&[u32]>,
        max: f32,
        index: DrawIndex,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let uniform = index.uniform(self.seed);
        let scale = (1.0 / self.temperature()) as f32;
        let weight = |x: f32| ((x - max) * scale).exp();
        let Sampling { top_k, top_p, min_p, .. } = self.sampling;
        if top_k.is_some() || top_p.is_some() || min_p.is_some() {
            return self.sample_ranked(row, mask, weight, uniform, &mut scratch.ranked);
        }
        let sums = &mut scratch.sums;
        sums.clear();
        let word =
            |block: usize| mask.map_or(u32::MAX, |mask| mask.get(block).copied().unwrap_or(0));
        let block_sum = |block: usize, values: &[f32]| -> f64 {
            let bits = word(block);
            if bits == 0 {
                return 0.0;
            }
            let each =
                values.iter().enumerate().filter(|(bit, x)| bits >> bit & 1 == 1 && x.is_finite());
            each.map(|(_, x)| f64::from(weight(*x))).sum()
        };
        sums.extend(row.chunks(32).enumerate().map(|(block, values)| block_sum(block, values)));
        let mut remaining = uniform * sums.iter().sum::<f64>();
        let mut last = None;
        for (block, values) in row.chunks(32).enumerate() {
            if remaining >= sums[block] && block + 1 < sums.len() {
                remaining -= sums[block];
                continue;
            }
            for (bit, x) in values.iter().enumerate() {
                if word(block) >> bit & 1 == 1 && x.is_finite() {
                    last = Some(block * 32 + bit);
                    remaining -= f64::from(weight(*x));
                    if remaining < 0.0 {
                        return last;
                    }
                }
            }
        }
        last
    }

    /// Draws by rank, for `top_k`, `top_p` and `min_p`.
    fn sample_ranked(
        &self,
        row: &[f32],
        mask: Option<&[u32]>,
        weight: impl Fn(f32) -> f32,
        uniform: f64,
        ranked: &mut Vec<(f32, u32)>,
    ) -> Option<usize> {
        ranked.clear();
        let allowed = |id: usize| mask.is_none_or(|mask| scalar::allows(mask, id));
        let all = row.iter().enumerate().filter(|(id, x)| x.is_finite() && allowed(*id));
        ranked.extend(all.map(|(id, x)| (weight(*x), id as u32)));
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        // As in the host, `top_p` is a share of all tokens, not of those that `top_k` leaves.
        let total: f64 = ranked.iter().map(|(w, _)| f64::from(*w)).sum();
        if let Some(k) = self.sampling.top_k.filter(|k| *k > 0 && *k < ranked.len()) {
            ranked.select_nth_unstable_by(k - 1, order);
            ranked.truncate(k);
        }
        ranked.sort_unstable_by(order);
        if let Some(share) = self.sampling.top_p.filter(|p| (0.0..1.0).contains(p)) {
            let (mut sum, mut keep) = (0.0, 0);
            for (w, _) in ranked.iter() {
                keep += 1;
                sum += f64::from(*w);
                if sum >= share * total {
                    break;
                }
            }
            ranked.truncate(keep.max(1));
        }
        if let (Some(share), Some((first, _))) = (self.sampling.min_p, ranked.first().copied()) {
            let least = f64::from(first) * share;
            let keep = ranked.partition_point(|(w, _)| f64::from(*w) >= least);
            ranked.truncate(keep.max(1));
        }
        let mut remaining = uniform * ranked.iter().map(|(w, _)| f64::from(*w)).sum::<f64>();
        for (w, id) in ranked.iter() {
            remaining -= f64::from(*w);
            if remaining < 0.0 {
                return Some(*id as usize);
            }
        }
        ranked.last().map(|(_, id)| *id as usize)
    }
}

/// The result of a draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampled {
    /// The token; `None` if the row is irregular or none is allowed.
    pub(crate) token: Option<u32>,
    /// The largest of the allowed logits.
    pub(crate) best: f32,
    /// Number of allowed tokens within the row.
    pub(crate) allowed: usize,
    /// Whether an allowed logit was NaN or `+inf`, or all were `-inf`.
    pub(crate) is_irregular: bool,
}

struct AllowedScan {
    /// Index of the first of the largest finite allowed logits.
    best: Option<usize>,
    allowed: usize,
    is_irregular: bool,
}

fn scan_allowed(row: &[f32], mask: Option<&[u32]>) -> AllowedScan {
    let mut scan = AllowedScan { best: None, allowed: 0, is_irregular: false };
    let mut largest = f32::NEG_INFINITY;
    for (block, values) in row.chunks(32).enumerate() {
        let bits = mask.map_or(u32::MAX, |mask| mask.get(block).copied().unwrap_or(0));
        let bits = if values.len() < 32 { bits & ((1 << values.len()) - 1) } else { bits };
        if bits == 0 {
            continue;
        }
        scan.allowed += bits.count_ones() as usize;
        for (bit, &x) in values.iter().enumerate() {
            if bits >> bit & 1 == 1 {
                scan.is_irregular |= x.is_nan() || x == f32::INFINITY;
                if x > largest && x < f32::INFINITY {
                    largest = x;
                    scan.best = Some(block * 32 + bit);
                }
            }
        }
    }
    scan.is_irregular |= scan.best.is_none() && scan.allowed > 0;
    scan
}

/// The largest logit, and whether there is a NaN. Cost: one vectorised pass.
pub(crate) fn scan_row(row: &[f32]) -> (f32, bool) {
    let mut lanes = [f32::NEG_INFINITY; 16];
    let mut is_irregular = [false; 16];
    let chunks = row.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for ((lane, is_irregular), &x) in lanes.iter_mut().zip(&mut is_irregular).zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
            *is_irregular |= x.is_nan();
        }
    }
    let largest = lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |largest, &x| if x > largest { x } else { largest });
    (largest, is_irregular.contains(&true) || rest.iter().any(|x| x.is_nan()))
}

/// Makes a token the only possible one, for rows in which a NaN or infinity would win over it.
pub(crate) fn keep_only(row: &mut [f32], token: u32) {
    row.fill(f32::NEG_INFINITY);
    row[token as usize] = DRAWN_LOGIT;
}

/// Whether the host would choose another token than the drawn one.
pub(crate) fn host_would_differ(largest: f32, nan: bool) -> bool {
    nan || largest >= DRAWN_LOGIT
}

/// The first number of a seed.
pub(crate) fn split_mix(seed: u64) -> u64 {
    SplitMix64::new(seed).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Sampling = Sampling { temperature: None, top_k: None, top_p: None, min_p: None };

    /// The relative frequency of each id.
    fn shares(sampling: Sampling, logits: &[f32], mask: Option<&[u32]>) -> Vec<f64> {
        let (draws, mut scratch) = (40_000, Scratch::default());
        let sampler = Sampler { seed: 3, sampling };
        let mut counts = vec![0.0; logits.len()];
        for position in 0..draws {
            let (mut row, index) = (logits.to_vec(), DrawIndex::first(position));
            let token = sampler.sample(&mut row, mask, index, &mut scratch).token.unwrap() as usize;
            assert_eq!(row[token], DRAWN_LOGIT);
            counts[token] += 1.0 / draws as f64;
        }
        counts
    }

    fn expect(observed: &[f64], weights: &[f64]) {
        let sum: f64 = weights.iter().sum();
        for (observed, weight) in observed.iter().zip(weights) {
            assert!((observed - weight / sum).abs() < 0.01, "{observed} {}", weight / sum);
        }
    }

    #[test]
    fn draws_follow_the_softmax() {
        let logits = [1.0f32, 0.0, f32::NEG_INFINITY, -1.0];
        for temperature in [1.0, 0.5] {
            let weights = logits.map(|x| (f64::from(x) / temperature).exp());
            expect(
                &shares(Sampling { temperature: Some(temperature), ..DEFAULT }, &logits, None),
                &weights,
            );
        }
        // Over several blocks, and masked.
        let logits: Vec<f32> = (0..70).map(|i| (i % 7) as f32 / 3.0).collect();
        let weights: Vec<f64> = logits.iter().map(|x| f64::from(*x).exp()).collect();
        expect(&shares(DEFAULT, &logits, None), &weights);
        let mask = [0, 0x8000_0001, 0b11_1110];
        let masked: Vec<f64> = weights
            .iter()
            .enumerate()
            .map(|(id, w)| if scalar::allows(&mask, id) { *w } else { 0.0 })
            .collect();
        expect(&shares(DEFAULT, &logits, Some(&mask)), &masked);
    }

    /// The first draw of a position is what it was before there were others.
    #[test]
    fn draws_have_numbers_of_their_own() {
        let first = split_mix(split_mix(3) ^ 7) >> 11;
        let (mut draws, scale) = (Vec::new(), (1u64 << 53) as f64);
        for (position, refused) in (0..100).flat_map(|p| (0..8).map(move |r| (p, r))) {
            draws.push(DrawIndex { position, refused }.uniform(3));
        }
        assert_eq!(DrawIndex::first(7).uniform(3), (first as f64 + 0.5) / scale);
        draws.sort_unstable_by(f64::total_cmp);
        draws.dedup();
        assert_eq!(draws.len(), 800);
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
    }

    #[test]
    fn truncation_keeps_the_most_likely_tokens() {
        let logits = [2.0f32, 1.0, 1.0, 0.0];
        let w: Vec<f64> = logits.iter().map(|x| f64::from(*x).exp()).collect();
        let two = shares(Sampling { top_k: Some(2), ..DEFAULT }, &logits, None);
        expect(&two, &[w[0], w[1], 0.0, 0.0]);
        // 0.53 of the weight is the first's, 0.73 the first two's.
        expect(
            &shares(Sampling { top_p: Some(0.5), ..DEFAULT }, &logits, None),
            &[1.0, 0.0, 0.0, 0.0],
        );
        expect(
            &shares(Sampling { top_p: Some(0.6), ..DEFAULT }, &logits, None),
            &[w[0], w[1], 0.0, 0.0],
        );
        expect(&shares(Sampling { top_p: Some(1.0), ..DEFAULT }, &logits, None), &w);
        // Of all tokens, not of the two.
        let both = Sampling { top_k: Some(2), top_p: Some(0.6), ..DEFAULT };
        expect(&shares(both, &logits, None), &[w[0], w[1], 0.0, 0.0]);
        expect(
            &shares(Sampling { min_p: Some(0.3), ..DEFAULT }, &logits, None),
            &[w[0], w[1], w[2], 0.0],
        );
    }

    #[test]
    fn greedy_sampling_and_empty_masks() {
        let greedy = Sampling { temperature: Some(0.0), ..DEFAULT };
        let mut scratch = Scratch::default();
        let mut sample = |sampling: Sampling, row: &mut [f32], mask: Option<&[u32]>| {
            Sampler { seed: 3, sampling }.sample(row, mask, DrawIndex::first(7), &mut scratch)
        };
        let sampled = sample(greedy, &mut [1.0, 2.0, 2.0], None);
        assert_eq!(sampled, Sampled { token: Some(1), best: 2.0, allowed: 3, is_irregular: false });
        let sampled = sample(greedy, &mut [1.0, 2.0], Some(&[1]));
        assert_eq!(sampled, Sampled { token: Some(0), best: 1.0, allowed: 1, is_irregular: false });
        let sampled = sample(greedy, &mut [f32::NAN, f32::NEG_INFINITY], None);
        assert_eq!((sampled.token, sampled.is_irregular), (None, true));
        let mut row = [f32::INFINITY, 3.0];
        let sampled = sample(greedy, &mut row, None);
        assert_eq!((sampled.token, sampled.is_irregular), (None, true));
        assert_eq!(row, [f32::INFINITY, 3.0]);
        let sampled = sample(DEFAULT, &mut [1.0, 2.0], Some(&[0]));
        assert_eq!((sampled.token, sampled.allowed, sampled.is_irregular), (None, 0, false));
        assert_eq!(sample(DEFAULT, &mut [], None).token, None);
    }

    #[test]
    fn largest_logit_is_found_at_every_row_length() {
        for length in 0..70 {
            let mut row = vec![-1.0; length];
            if let Some(last) = row.last_mut() {
                *last = 2.5;
            }
            row.iter_mut().take(1).for_each(|x| *x = f32::NAN);
            let expected = if length > 1 { 2.5 } else { f32::NEG_INFINITY };
            assert_eq!(scan_row(&row), (expected, length > 0), "{length}");
        }
    }
}
