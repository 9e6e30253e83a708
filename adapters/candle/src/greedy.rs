//! Greedy decoding: mask, temperature and argmax in one pass.

use candle_core::{CpuStorage, CustomOp1, Layout, Shape, Tensor};
use rayon::prelude::*;

use crate::batch::MaskBatch;
use crate::error::ApplyError;
use crate::geometry::Geometry;
use crate::logit::Logit;
use crate::row::greedy_row;
use crate::table::RowMask;

/// Number of logits from which several threads pay off.
const PARALLEL_IDS: usize = 1 << 17;

/// The selected token of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pick {
    /// The allowed id with the largest logit; the lowest id among equals. NaN ranks below minus
    /// infinity. `None` if no id of the row is allowed.
    pub token: Option<u32>,
    /// The token's logit divided by the row's temperature; minus infinity if there is no token.
    pub score: f32,
}

/// The selected tokens of a batch, on the logits' device.
#[derive(Clone, Debug)]
pub struct Picks {
    /// `[2, rows]` u32: tokens, then the bit patterns of scores.
    raw: Tensor,
}

impl Picks {
    /// The entry of [`Picks::tokens`] for a row without an allowed id.
    pub const NONE: u32 = u32::MAX;

    /// The tokens as a u32 tensor `[rows]` on the logits' device, in the order of the batch's rows.
    /// Does not wait for the device.
    pub fn tokens(&self) -> candle_core::Result<Tensor> {
        self.raw.get(0)
    }

    /// The tokens and scores, in the order of the batch's rows. Waits for the device; one copy.
    pub fn read(&self) -> candle_core::Result<Vec<Pick>> {
        let raw = self.raw.to_vec2::<u32>()?;
        let (tokens, scores) = (raw[0].iter(), raw[1].iter());
        let pick = |(&token, &score)| Pick {
            token: (token != Self::NONE).then_some(token),
            score: f32::from_bits(score),
        };
        Ok(tokens.zip(scores).map(pick).collect())
    }
}

/// Selects each row's allowed id with the largest logit. Logits, masks and `rows` are as in
/// [`apply_bitmask_`](crate::apply_bitmask_), but the logits are not modified, free rows select
/// among all ids, and unnamed rows select nothing. `temperatures` has one number for all rows or
/// one per row of the batch. It scales the score and never changes the selection.
///
/// Cost: one pass over the allowed logits; on CUDA one launch per batch.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use louver_candle::{MaskBatch, greedy};
///
/// let logits = Tensor::new(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::Cpu)?;
/// let mut masks = MaskBatch::new(3);
/// masks.resize(2);
/// masks.set(1, &[0b011])?;
/// let picks = greedy(&logits, &masks, None, &[0.5])?.read()?;
/// assert_eq!((picks[0].token, picks[0].score), (Some(2), 6.0));
/// assert_eq!((picks[1].token, picks[1].score), (Some(1), 10.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn greedy(
    logits: &Tensor,
    masks: &MaskBatch,
    rows: Option<&[u32]>,
    temperatures: &[f32],
) -> Result<Picks, ApplyError> {
    let geometry = Geometry::new(logits)?;
    geometry.check(masks, rows)?;
    if temperatures.len() != 1 && temperatures.len() != masks.len() {
        return Err(ApplyError::Temperatures { rows: masks.len(), got: temperatures.len() });
    }
    if let Some(&wrong) = temperatures.iter().find(|t| !(t.is_finite() && **t > 0.0)) {
        return Err(ApplyError::Temperature(wrong));
    }
    if masks.is_empty() {
        return Ok(Picks { raw: Tensor::zeros((2, 0), candle_core::DType::U32, logits.device())? });
    }
    #[cfg(feature = "cuda")]
    if logits.device().is_cuda() {
        crate::cuda::check(&geometry, masks)?;
    }
    Ok(Picks { raw: logits.apply_op1_no_bwd(&Greedy { masks, rows, temperatures, geometry })? })
}

struct Greedy<'a> {
    masks: &'a MaskBatch,
    rows: Option<&'a [u32]>,
    temperatures: &'a [f32],
    geometry: Geometry,
}

impl Greedy<'_> {
    fn cpu<T: Logit>(&self, storage: &[T]) -> Vec<u32> {
        let Geometry { ids, stride, offset, .. } = self.geometry;
        let ones = vec![u32::MAX; ids.div_ceil(32)];
        let select_row = |row: usize| {
            let start = offset + Geometry::logits_row(self.rows, row) * stride;
            let logits = &storage[start..start + ids];
            let token = match self.masks.table().mask_by_number(self.masks.table().index()[row]) {
                RowMask::Free => greedy_row(logits, &ones),
                RowMask::All => greedy_row(&logits[..ids.min(self.masks.width())], &ones),
                RowMask::Words(words) => greedy_row(logits, words),
            };
            let temperature = self.temperatures[row % self.temperatures.len()];
            let score = token.map_or(f32::NEG_INFINITY, |id| logits[id].value() / temperature);
            (token.map_or(Picks::NONE, |id| id as u32), score.to_bits())
        };
        let rows = self.masks.len();
        let (mut tokens, scores): (Vec<u32>, Vec<u32>) = if rows > 1 && rows * ids >= PARALLEL_IDS {
            (0..rows).into_par_iter().map(select_row).unzip()
        } else {
            (0..rows).map(select_row).unzip()
        };
        tokens.extend(scores);
        tokens
    }
}

impl CustomOp1 for Greedy<'_> {
    fn name(&self) -> &'static str {
        "louver-greedy"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        _: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let out = match storage {
            CpuStorage::F32(values) => self.cpu(values),
            CpuStorage::F16(values) => self.cpu(values),
            CpuStorage::BF16(values) => self.cpu(values),
            _ => candle_core::bail!("logits are f32, f16 or bf16"),
        };
        Ok((CpuStorage::U32(out), Shape::from((2, self.masks.len()))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        _: &Layout,
    ) -> candle_core::Result<(candle_core::CudaStorage, Shape)> {
        crate::cuda::greedy(storage, &self.geometry, self.masks, self.rows, self.temperatures)
    }
}
