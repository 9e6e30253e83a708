//! Sampling that depends on a seed and the position alone. The host draws all requests from one generator, so that what
//! a request gets depends on its neighbours, and sorts the whole vocabulary for each draw; here the draw is made before the
//! host's, which then takes the largest logit: the one drawn.

use louver_candle::scalar;

/// What makes the host take a logit whatever the others are.
const CHOSEN: f32 = f32::MAX;

/// A request's own source of chance. Truncation is applied in the host's order: temperature, `top_k`, `top_p`, `min_p`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sampler {
    pub(crate) seed: u64,
    /// 0 takes the most likely token.
    pub(crate) temperature: f64,
    pub(crate) top_k: Option<usize>,
    pub(crate) top_p: Option<f64>,
    pub(crate) min_p: Option<f64>,
}

/// Buffers between steps.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Sums of weights of 32 tokens each.
    sums: Vec<f64>,
    /// Weights by token, where some are cut off.
    ranked: Vec<(f32, u32)>,
}

impl Sampler {
    /// Draws among the finite logits (and those in the mask, if there is one), and makes the host take what was drawn. Cost:
    /// one pass over the allowed for the largest, one with an exponential for each; sorting where `top_k`, `top_p` or `min_p`
    /// cut. Of the row, only what is allowed is read.
    pub(crate) fn draw(
        &self,
        row: &mut [f32],
        mask: Option<&[u32]>,
        position: usize,
        scratch: &mut Scratch,
    ) -> Drawn {
        let Found { best, allowed, odd } = find(row, mask);
        let Some(best) = best else {
            return Drawn { token: None, best: f32::NEG_INFINITY, allowed, odd };
        };
        let most = row[best];
        let token = match self.temperature > 1e-7 {
            true => self.weigh(row, mask, most, position, scratch).unwrap_or(best),
            false => best,
        };
        row[token] = CHOSEN;
        Drawn { token: u32::try_from(token).ok(), best: most, allowed, odd }
    }

    fn weigh(
        &self,
        row: &[f32],
        mask: Option<&[u32]>,
        max: f32,
        position: usize,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let bits = mix(mix(self.seed) ^ position as u64) >> 11;
        // In the open interval (0, 1).
        let uniform = (bits as f64 + 0.5) / (1u64 << 53) as f64;
        let scale = (1.0 / self.temperature) as f32;
        let weight = |x: f32| ((x - max) * scale).exp();
        let cuts = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        if cuts {
            return self.ranked(row, mask, weight, uniform, &mut scratch.ranked);
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
                values.iter().enumerate().filter(|(at, x)| bits >> at & 1 == 1 && x.is_finite());
            each.map(|(_, x)| f64::from(weight(*x))).sum()
        };
        sums.extend(row.chunks(32).enumerate().map(|(block, values)| block_sum(block, values)));
        let mut left = uniform * sums.iter().sum::<f64>();
        let mut last = None;
        for (block, values) in row.chunks(32).enumerate() {
            if left >= sums[block] && block + 1 < sums.len() {
                left -= sums[block];
                continue;
            }
            for (at, x) in values.iter().enumerate() {
                if word(block) >> at & 1 == 1 && x.is_finite() {
                    last = Some(block * 32 + at);
                    left -= f64::from(weight(*x));
                    if left < 0.0 {
                        return last;
                    }
                }
            }
        }
        last
    }

    /// The draw where some are cut off: by rank.
    fn ranked(
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
        if let Some(k) = self.top_k.filter(|k| *k > 0 && *k < ranked.len()) {
            ranked.select_nth_unstable_by(k - 1, order);
            ranked.truncate(k);
        }
        ranked.sort_unstable_by(order);
        let total: f64 = ranked.iter().map(|(w, _)| f64::from(*w)).sum();
        if let Some(share) = self.top_p.filter(|p| (0.0..1.0).contains(p)) {
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
        if let (Some(share), Some((first, _))) = (self.min_p, ranked.first().copied()) {
            let least = f64::from(first) * share;
            let keep = ranked.partition_point(|(w, _)| f64::from(*w) >= least);
            ranked.truncate(keep.max(1));
        }
        let mut left = uniform * ranked.iter().map(|(w, _)| f64::from(*w)).sum::<f64>();
        for (w, id) in ranked.iter() {
            left -= f64::from(*w);
            if left < 0.0 {
                return Some(*id as usize);
            }
        }
        ranked.last().map(|(_, id)| *id as usize)
    }
}

/// What became of a draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drawn {
    /// The token; none if nothing finite is allowed.
    pub(crate) token: Option<u32>,
    /// The largest of the allowed logits.
    pub(crate) best: f32,
    /// How many tokens were allowed, within the row.
    pub(crate) allowed: usize,
    /// Some allowed logit was NaN or `+inf`, or all were `-inf`.
    pub(crate) odd: bool,
}

struct Found {
    /// The first of the largest finite logits among those allowed.
    best: Option<usize>,
    allowed: usize,
    odd: bool,
}

fn find(row: &[f32], mask: Option<&[u32]>) -> Found {
    let mut found = Found { best: None, allowed: 0, odd: false };
    let mut most = f32::NEG_INFINITY;
    for (block, values) in row.chunks(32).enumerate() {
        let bits = mask.map_or(u32::MAX, |mask| mask.get(block).copied().unwrap_or(0));
        let bits = if values.len() < 32 { bits & ((1 << values.len()) - 1) } else { bits };
        if bits == 0 {
            continue;
        }
        found.allowed += bits.count_ones() as usize;
        for (at, &x) in values.iter().enumerate() {
            if bits >> at & 1 == 1 {
                found.odd |= x.is_nan() || x == f32::INFINITY;
                if x > most && x < f32::INFINITY {
                    most = x;
                    found.best = Some(block * 32 + at);
                }
            }
        }
    }
    found.odd |= found.best.is_none() && found.allowed > 0;
    found
}

/// The largest logit, and whether there is a NaN. Cost: one pass, many at a time.
pub(crate) fn survey(row: &[f32]) -> (f32, bool) {
    let mut lanes = [f32::NEG_INFINITY; 16];
    let mut odd = [false; 16];
    let chunks = row.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for ((lane, odd), &x) in lanes.iter_mut().zip(&mut odd).zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
            *odd |= x.is_nan();
        }
    }
    let most = lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |most, &x| if x > most { x } else { most });
    (most, odd.contains(&true) || rest.iter().any(|x| x.is_nan()))
}

/// Leaves a token as the only one, for rows where a NaN or an infinity would come before what was drawn.
pub(crate) fn only(row: &mut [f32], token: u32) {
    row.fill(f32::NEG_INFINITY);
    row[token as usize] = CHOSEN;
}

/// Whether the host would take another one than what was drawn.
pub(crate) fn misleads((most, nan): (f32, bool)) -> bool {
    nan || most >= CHOSEN
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014).
pub(crate) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Sampler =
        Sampler { seed: 3, temperature: 1.0, top_k: None, top_p: None, min_p: None };

    /// How often each id is drawn, as shares.
    fn shares(sampler: &Sampler, logits: &[f32], mask: Option<&[u32]>) -> Vec<f64> {
        let (draws, mut scratch) = (40_000, Scratch::default());
        let mut counts = vec![0.0; logits.len()];
        for position in 0..draws {
            let mut row = logits.to_vec();
            let token =
                sampler.draw(&mut row, mask, position, &mut scratch).token.unwrap() as usize;
            assert_eq!(row[token], CHOSEN);
            counts[token] += 1.0 / draws as f64;
        }
        counts
    }

    fn expect(seen: &[f64], weights: &[f64]) {
        let sum: f64 = weights.iter().sum();
        for (seen, weight) in seen.iter().zip(weights) {
            assert!((seen - weight / sum).abs() < 0.01, "{seen} {}", weight / sum);
        }
    }

    #[test]
    fn draws_follow_the_softmax() {
        let logits = [1.0f32, 0.0, f32::NEG_INFINITY, -1.0, f32::NAN];
        for temperature in [1.0, 0.5] {
            let weights =
                logits.map(|x| if x.is_nan() { 0.0 } else { (f64::from(x) / temperature).exp() });
            expect(&shares(&Sampler { temperature, ..PLAIN }, &logits, None), &weights);
        }
        // Over several blocks, and masked.
        let logits: Vec<f32> = (0..70).map(|i| (i % 7) as f32 / 3.0).collect();
        let weights: Vec<f64> = logits.iter().map(|x| f64::from(*x).exp()).collect();
        expect(&shares(&PLAIN, &logits, None), &weights);
        let mask = [0, 0x8000_0001, 0b11_1110];
        let masked: Vec<f64> = weights
            .iter()
            .enumerate()
            .map(|(id, w)| if scalar::allows(&mask, id) { *w } else { 0.0 })
            .collect();
        expect(&shares(&PLAIN, &logits, Some(&mask)), &masked);
    }

    #[test]
    fn cuts() {
        let logits = [2.0f32, 1.0, 1.0, 0.0];
        let w: Vec<f64> = logits.iter().map(|x| f64::from(*x).exp()).collect();
        let two = shares(&Sampler { top_k: Some(2), ..PLAIN }, &logits, None);
        expect(&two, &[w[0], w[1], 0.0, 0.0]);
        // 0.53 of the weight is the first's, 0.73 the first two's.
        expect(
            &shares(&Sampler { top_p: Some(0.5), ..PLAIN }, &logits, None),
            &[1.0, 0.0, 0.0, 0.0],
        );
        expect(
            &shares(&Sampler { top_p: Some(0.6), ..PLAIN }, &logits, None),
            &[w[0], w[1], 0.0, 0.0],
        );
        expect(&shares(&Sampler { top_p: Some(1.0), ..PLAIN }, &logits, None), &w);
        expect(
            &shares(&Sampler { min_p: Some(0.3), ..PLAIN }, &logits, None),
            &[w[0], w[1], w[2], 0.0],
        );
    }

    #[test]
    fn greedy_and_nothing() {
        let greedy = Sampler { temperature: 0.0, ..PLAIN };
        let mut scratch = Scratch::default();
        let mut draw = |sampler: &Sampler, row: &mut [f32], mask: Option<&[u32]>| {
            sampler.draw(row, mask, 7, &mut scratch)
        };
        let drawn = draw(&greedy, &mut [1.0, 2.0, 2.0], None);
        assert_eq!(drawn, Drawn { token: Some(1), best: 2.0, allowed: 3, odd: false });
        let drawn = draw(&greedy, &mut [1.0, 2.0], Some(&[1]));
        assert_eq!(drawn, Drawn { token: Some(0), best: 1.0, allowed: 1, odd: false });
        let drawn = draw(&greedy, &mut [f32::NAN, f32::NEG_INFINITY], None);
        assert_eq!((drawn.token, drawn.odd), (None, true));
        let drawn = draw(&greedy, &mut [f32::INFINITY, 3.0], None);
        assert_eq!((drawn.token, drawn.odd), (Some(1), true));
        let drawn = draw(&PLAIN, &mut [1.0, 2.0], Some(&[0]));
        assert_eq!((drawn.token, drawn.allowed, drawn.odd), (None, 0, false));
        assert_eq!(draw(&PLAIN, &mut [], None).token, None);
    }

    #[test]
    fn largest_of_any_length() {
        for length in 0..70 {
            let mut row = vec![-1.0; length];
            if let Some(last) = row.last_mut() {
                *last = 2.5;
            }
            row.iter_mut().take(1).for_each(|x| *x = f32::NAN);
            let expected = if length > 1 { 2.5 } else { f32::NEG_INFINITY };
            assert_eq!(survey(&row), (expected, length > 0), "{length}");
        }
    }
}
