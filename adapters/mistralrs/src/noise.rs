//! Sampling that depends on a seed and the position alone. The host draws all requests from one generator, so that what
//! a request gets depends on its neighbours; here the draw is made before the host's, by adding Gumbel noise to the
//! logits (the largest of `logit / temperature + noise` is a draw from the softmax: Gumbel, 1954), and the host takes the
//! largest.

/// A request's own source of chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noise {
    pub(crate) seed: u64,
    /// 0 takes the most likely token.
    pub(crate) temperature: f64,
}

impl Noise {
    /// Adds the noise of this position. Cost: a logarithm or two for each finite logit.
    pub(crate) fn add(&self, row: &mut [f32], position: usize) {
        if self.temperature <= 0.0 {
            return;
        }
        let stream = mix(mix(self.seed) ^ position as u64);
        for (id, x) in row.iter_mut().enumerate().filter(|(_, x)| x.is_finite()) {
            let bits = mix(stream.wrapping_add((id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 11;
            // In the open interval (0, 1).
            let uniform = (bits as f64 + 0.5) / (1u64 << 53) as f64;
            *x = (f64::from(*x) / self.temperature - (-uniform.ln()).ln()) as f32;
        }
    }
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_softmax() {
        let logits = [1.0f32, 0.0, f32::NEG_INFINITY, -1.0];
        for temperature in [1.0, 0.5] {
            let noise = Noise { seed: 3, temperature };
            let mut counts = [0usize; 4];
            let draws = 40_000;
            for position in 0..draws {
                let mut row = logits;
                noise.add(&mut row, position);
                let best = (0..4).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
                counts[best] += 1;
            }
            let weights = logits.map(|x| (f64::from(x) / temperature).exp());
            let sum: f64 = weights.iter().sum();
            for (count, weight) in counts.iter().zip(weights) {
                let (seen, expected) = (*count as f64 / draws as f64, weight / sum);
                assert!((seen - expected).abs() < 0.01, "{seen} {expected}");
            }
        }
    }

    #[test]
    fn temperature_zero_changes_nothing() {
        let mut row = [1.0f32, 2.0];
        Noise { seed: 1, temperature: 0.0 }.add(&mut row, 7);
        assert_eq!(row, [1.0, 2.0]);
    }
}
