//! Draws on the device of the logits. Only ids and one score a row come back.
//!
//! A draw at temperature 0 is [`greedy()`]: mask and argmax in one kernel. Other draws mask the
//! logits in place, find the `k` largest and choose among them by the Gumbel-max method: the
//! largest of `logit / temperature + noise` is distributed as a draw from the softmax. The noise,
//! `k` numbers a row, is made on the CPU: it depends on the sequence's seed and the token's
//! position only, so that neither the batch nor a draft changes which token is drawn.

use anyhow::Result;
use candle_core::{Device, Tensor};
use louver_candle::{MaskBatch, apply_bitmask_, greedy};

/// Widest row that candle's sort on CUDA takes with one thread for each number.
const SORT_WIDTH: usize = 1024;
/// Most tokens among which a draw chooses.
const MAX_TOP_K: usize = 256;

/// How a sequence's tokens are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// 0 selects the most likely token.
    pub(crate) temperature: f32,
    /// How many of the most likely tokens take part: 1 to 256.
    pub(crate) top_k: usize,
    pub(crate) seed: u64,
}

impl Sampling {
    /// The most likely token.
    pub(crate) const GREEDY: Self = Self { temperature: 0.0, top_k: 1, seed: 0 };

    fn candidates(&self) -> usize {
        if self.temperature > 0.0 { self.top_k.clamp(1, MAX_TOP_K) } else { 1 }
    }
}

/// One row of the logits: how its token is drawn, and the token's position in its sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawRow {
    pub(crate) sampling: Sampling,
    pub(crate) position: usize,
}

/// Draws one token a row; `None` where the mask allows none. The logits are masked in place unless
/// all rows are drawn at temperature 0.
pub(crate) fn draw(
    logits: &Tensor,
    masks: &MaskBatch,
    rows: &[DrawRow],
) -> Result<Vec<Option<u32>>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    if rows.iter().all(|row| row.sampling.candidates() == 1) {
        let picks = greedy(logits, masks, None, &[1.0])?.read()?;
        return Ok(picks.into_iter().map(|pick| pick.token).collect());
    }
    apply_bitmask_(logits, masks, None)?;
    let k = rows.iter().map(|row| row.sampling.candidates()).max().unwrap_or(1);
    let (values, ids) = top_k(&logits.contiguous()?, k)?;
    let (scale, noise) = noise(rows, values.dim(1)?, logits.device())?;
    let place = (values.broadcast_mul(&scale)? + noise)?.argmax_keepdim(1)?;
    let tokens = ids.gather(&place, 1)?.squeeze(1)?.to_vec1::<u32>()?;
    let scores = values.gather(&place, 1)?.squeeze(1)?.to_vec1::<f32>()?;
    let token = |(token, score): (u32, f32)| (score > f32::NEG_INFINITY).then_some(token);
    Ok(tokens.into_iter().zip(scores).map(token).collect())
}

/// One over each row's temperature, `[rows, 1]`, and the noise of its `k` candidates, `[rows, k]`.
/// Candidates beyond a row's own number have minus infinity.
fn noise(rows: &[DrawRow], k: usize, device: &Device) -> Result<(Tensor, Tensor)> {
    let scale = |row: &DrawRow| match row.sampling.candidates() {
        1 => 1.0,
        _ => row.sampling.temperature.recip(),
    };
    let scales: Vec<f32> = rows.iter().map(scale).collect();
    let gumbel = |row: &DrawRow, rank: usize| match row.sampling.candidates() {
        1 if rank == 0 => 0.0,
        candidates if rank < candidates => {
            let key = row.sampling.seed ^ mix(row.position as u64 ^ mix(rank as u64));
            // Above 0 and below 1.
            let uniform = ((mix(key) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            -(-uniform.ln()).ln() as f32
        }
        _ => f32::NEG_INFINITY,
    };
    let noise: Vec<f32> =
        rows.iter().flat_map(|row| (0..k).map(move |rank| gumbel(row, rank))).collect();
    Ok((
        Tensor::from_vec(scales, (rows.len(), 1), device)?,
        Tensor::from_vec(noise, (rows.len(), k), device)?,
    ))
}

/// The finaliser of SplitMix64: spreads a number over all bits.
pub(crate) fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The `k` largest values of each row of `[rows, n]`, largest first, and their positions. The first
/// one is at the lowest position among equals, on the CPU.
///
/// Rows are too wide for candle's sort on CUDA. The `k` largest values lie in the `k` blocks with
/// the largest maxima, so the search goes on in those, 1,024 blocks at a time.
pub(crate) fn top_k(values: &Tensor, k: usize) -> candle_core::Result<(Tensor, Tensor)> {
    let (rows, n) = values.dims2()?;
    if n <= SORT_WIDTH {
        let (values, order) = values.sort_last_dim(false)?;
        let k = k.min(n);
        return Ok((values.narrow(1, 0, k)?.contiguous()?, order.narrow(1, 0, k)?.contiguous()?));
    }
    let width = n.div_ceil(SORT_WIDTH);
    let blocks = n.div_ceil(width);
    // Devices have no empty buffers.
    let padded = match blocks * width - n {
        0 => values.clone(),
        fill => {
            let fill = Tensor::full(f32::NEG_INFINITY, (rows, fill), values.device())?;
            Tensor::cat(&[values, &fill], 1)?
        }
    };
    let blocked = padded.reshape((rows, blocks, width))?;
    let (_, best) = top_k(&blocked.max(2)?, k)?;
    let best = best.unsqueeze(2)?.broadcast_as((rows, best.dim(1)?, width))?.contiguous()?;
    let candidates = blocked.gather(&best, 1)?.flatten_from(1)?;
    let offsets = Tensor::arange(0, width as u32, values.device())?;
    let positions = (best * width as f64)?.broadcast_add(&offsets)?.flatten_from(1)?;
    let (values, at) = top_k(&candidates, k)?;
    Ok((values, positions.gather(&at, 1)?))
}
