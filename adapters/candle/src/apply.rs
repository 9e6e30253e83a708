//! In-place application of mask batches to logits.

use candle_core::{CpuStorage, InplaceOp1, Layout, Tensor};
use rayon::prelude::*;

use crate::batch::MaskBatch;
use crate::error::ApplyError;
use crate::geometry::Geometry;
use crate::logit::Logit;
use crate::row::mask_row;
use crate::table::{ALL_IDS, FREE_ROW, RowMask};

/// Bytes of logits from which several threads pay off.
const PARALLEL_BYTES: usize = 1 << 20;

/// Sets the logits that a batch of masks does not allow to minus infinity, in place, on their
/// device.
///
/// `logits` is `[B, V]`, or `[V]` for a batch of one row, of type f32, f16 or bf16. The ids of a
/// row must be contiguous; rows may have any distance (a view of a larger tensor, whose other
/// elements are not modified). Without `rows`, row `i` of the batch applies to row `i` of the
/// logits; with it, to row `rows[i]`, and unnamed rows are not modified. Logits may be wider than
/// the masks (ids beyond are masked in every constrained row) or narrower. Allowed logits keep
/// their bits, including NaN and infinities. Like every in-place operation of candle, it changes
/// all tensors that share the storage, and it is not differentiable.
///
/// Cost on the CPU: one pass over the masks of constrained rows and over logits near masked ids;
/// several threads (rayon's) for large batches. On CUDA: one copy of the changes since the last
/// call and one kernel launch, both on the tensor's device; [`MaskBatch::upload`] starts the copy
/// early.
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
    let geometry = Geometry::new(logits)?;
    geometry.check(masks, rows)?;
    let all_free = masks
        .table()
        .index()
        .iter()
        .all(|&mask| mask == FREE_ROW || (mask == ALL_IDS && geometry.ids <= masks.width()));
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
        let mut row_masks = vec![FREE_ROW; rows];
        for (row, &mask) in self.masks.table().index().iter().enumerate() {
            row_masks[Geometry::logits_row(self.rows, row)] = mask;
        }
        let rows = storage[offset..]
            .chunks_mut(stride)
            .map(|row| if row.len() > ids { &mut row[..ids] } else { row });
        let work: Vec<(&mut [T], RowMask<'_>)> = rows
            .zip(row_masks)
            .filter(|&(_, mask)| mask != FREE_ROW)
            .map(|(row, mask)| (row, self.masks.table().mask_by_number(mask)))
            .collect();
        let width = self.masks.width();
        let mask_one_row = |(row, mask): (&mut [T], RowMask<'_>)| match mask {
            RowMask::Free => {}
            RowMask::All => row.iter_mut().skip(width).for_each(|x| *x = T::MASKED),
            RowMask::Words(words) => mask_row(row, words),
        };
        if work.len() > 1 && work.len() * ids * size_of::<T>() >= PARALLEL_BYTES {
            work.into_par_iter().for_each(mask_one_row);
        } else {
            work.into_iter().for_each(mask_one_row);
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
