//! Memory layout of rows of logits, and their assignment to mask rows. All validation happens here,
//! before anything is written.

use candle_core::{DType, Device, Tensor};

use crate::batch::MaskBatch;
use crate::error::ApplyError;

/// The layout of rows in their storage, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub rows: usize,
    pub ids: usize,
    /// Distance between rows; at least `ids` if there are several rows.
    pub stride: usize,
    pub offset: usize,
}

impl Geometry {
    /// The layout of supported logits.
    pub(crate) fn new(logits: &Tensor) -> Result<Self, ApplyError> {
        if !matches!(logits.dtype(), DType::F32 | DType::F16 | DType::BF16) {
            return Err(ApplyError::DType(logits.dtype()));
        }
        match logits.device() {
            Device::Cpu => {}
            #[cfg(feature = "cuda")]
            Device::Cuda(_) => {}
            device => return Err(ApplyError::Device(device.location())),
        }
        let layout = logits.layout();
        let (rows, ids, stride, step) = match (layout.dims(), layout.stride()) {
            (&[ids], &[step]) => (1, ids, ids, step),
            (&[rows, ids], &[stride, step]) => (rows, ids, stride, step),
            (dims, _) => return Err(ApplyError::Rank { dims: dims.to_vec() }),
        };
        if (ids > 1 && step != 1) || (rows > 1 && stride < ids) {
            return Err(ApplyError::Layout {
                dims: layout.dims().to_vec(),
                strides: layout.stride().to_vec(),
            });
        }
        // A single row may have any stride.
        let stride = if rows > 1 { stride } else { ids };
        Ok(Self { rows, ids, stride, offset: layout.start_offset() })
    }

    /// Checks that the batch has one row per row of logits, or per named row.
    pub(crate) fn check(&self, masks: &MaskBatch, rows: Option<&[u32]>) -> Result<(), ApplyError> {
        let expected = rows.map_or(self.rows, <[u32]>::len);
        if masks.len() != expected {
            return Err(ApplyError::Rows { masks: masks.len(), rows: expected });
        }
        let mut is_named = vec![false; if rows.is_some() { self.rows } else { 0 }];
        for &row in rows.unwrap_or_default() {
            let seen =
                is_named.get_mut(row as usize).ok_or(ApplyError::Row { row, rows: self.rows })?;
            if std::mem::replace(seen, true) {
                return Err(ApplyError::Repeated { row });
            }
        }
        Ok(())
    }

    /// The row of logits that a batch row belongs to.
    pub(crate) fn logits_row(rows: Option<&[u32]>, row: usize) -> usize {
        rows.map_or(row, |rows| rows[row] as usize)
    }
}
