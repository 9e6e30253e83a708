//! Masks applied in place.

use candle_core::{CpuStorage, InplaceOp1, Layout, Tensor};
use rayon::prelude::*;

use crate::batch::{ALL, FREE, MaskBatch, RowMask};
use crate::error::ApplyError;
use crate::geometry::Geometry;
use crate::logit::Logit;
use crate::row::mask_row;

/// Bytes of logits from which on rows are worth several threads.
const PARALLEL_BYTES: usize = 1 << 20;

/// Sets the logits that a batch of masks does not allow to minus infinity, in place, where the logits live.
///
/// `logits` is `[B, V]`, or `[V]` for a batch of one row; f32, f16 or bf16; the ids of a row must lie side by side, rows may
/// lie anywhere apart (a view of a larger tensor, whose other elements are not touched). Without `rows`, row `i` of the
/// batch is for row `i` of the logits; with it, row `i` of the batch is for row `rows[i]`, and rows not named are not
/// touched. Logits may be wider than the masks (ids beyond are masked in every row that is not free) or narrower. Allowed
/// logits keep their bits, NaN and infinities included. Like every in-place operation of candle, it changes all tensors that
/// share the storage, and it is not differentiable.
///
/// Cost: on the CPU, one pass over the masks of the rows that are constrained and over the logits near something masked;
/// several threads (rayon's) for large batches. On CUDA, one copy of what has changed since the last call and one kernel
/// launch, both on the tensor's own device; [`MaskBatch::upload`] starts the copy early.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use louver_candle::{MaskBatch, apply_bitmask_};
///
/// let logits = Tensor::new(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::Cpu)?;
/// let mut masks = MaskBatch::new(3);
/// masks.resize(1);
/// masks.set(0, &[0b101])?;
/// apply_bitmask_(&logits, &masks, Some(&[1]))?;
/// assert_eq!(logits.to_vec2::<f32>()?, [[1.0, 2.0, 3.0], [4.0, f32::NEG_INFINITY, 6.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn apply_bitmask_(
    logits: &Tensor,
    masks: &MaskBatch,
    rows: Option<&[u32]>,
) -> Result<(), ApplyError> {
    let geometry = Geometry::of(logits)?;
    geometry.check(masks, rows)?;
    let all_free = masks
        .index()
        .iter()
        .all(|&mask| mask == FREE || (mask == ALL && geometry.ids <= masks.width()));
    if all_free || geometry.ids == 0 {
        return Ok(());
    }
    #[cfg(feature = "cuda")]
    if logits.device().is_cuda() {
        crate::cuda::check(&geometry, masks)?;
    }
    Ok(logits.inplace_op1(&Apply { masks, rows, geometry })?)
}

struct Apply<'a> {
    masks: &'a MaskBatch,
    rows: Option<&'a [u32]>,
    geometry: Geometry,
}

impl Apply<'_> {
    fn cpu<T: Logit>(&self, storage: &mut [T]) {
        let Geometry { rows, ids, stride, offset } = self.geometry;
        let mut wanted = vec![FREE; rows];
        for (row, &mask) in self.masks.index().iter().enumerate() {
            wanted[Geometry::target(self.rows, row)] = mask;
        }
        let rows = storage[offset..]
            .chunks_mut(stride)
            .map(|row| if row.len() > ids { &mut row[..ids] } else { row });
        let work: Vec<(&mut [T], RowMask<'_>)> = rows
            .zip(wanted)
            .filter(|&(_, mask)| mask != FREE)
            .map(|(row, mask)| (row, self.masks.slot(mask)))
            .collect();
        let width = self.masks.width();
        let one = |(row, mask): (&mut [T], RowMask<'_>)| match mask {
            RowMask::Free => {}
            RowMask::All => row.iter_mut().skip(width).for_each(|x| *x = T::MASKED),
            RowMask::Words(words) => mask_row(row, words),
        };
        if work.len() > 1 && work.len() * ids * size_of::<T>() >= PARALLEL_BYTES {
            work.into_par_iter().for_each(one);
        } else {
            work.into_iter().for_each(one);
        }
    }
}

impl InplaceOp1 for Apply<'_> {
    fn name(&self) -> &'static str {
        "louver-apply-bitmask"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, _: &Layout) -> candle_core::Result<()> {
        match storage {
            CpuStorage::F32(values) => self.cpu(values),
            CpuStorage::F16(values) => self.cpu(values),
            CpuStorage::BF16(values) => self.cpu(values),
            _ => candle_core::bail!("logits are f32, f16 or bf16"),
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &mut candle_core::CudaStorage,
        _: &Layout,
    ) -> candle_core::Result<()> {
        crate::cuda::apply(storage, &self.geometry, self.masks, self.rows)
    }
}
