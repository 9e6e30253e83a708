//! The hook as a logits processor of mistral.rs.

use std::cell::RefCell;
use std::sync::Arc;

use candle_core::{CpuStorage, DType, Device, InplaceOp1, Layout, Result, Tensor};
use louver_host::LogitsHook;
use mistralrs_core::CustomLogitsProcessor;

/// The hook of one generation as a logits processor. [`Plan`](crate::Plan) attaches it to the
/// requests that it sends; it is public for programs that use [`louver_host`] directly.
#[derive(Debug)]
pub struct HookProcessor(Arc<LogitsHook>);

impl HookProcessor {
    /// Wraps a hook.
    pub fn new(hook: Arc<LogitsHook>) -> HookProcessor {
        HookProcessor(hook)
    }
}

impl CustomLogitsProcessor for HookProcessor {
    /// Never fails, because an error would reach other requests of the batch.
    fn apply(&self, logits: &Tensor, context: &[u32]) -> Result<Tensor> {
        edit(logits, |row| self.0.apply(row, context)).or_else(|error| {
            let mut row = vec![0.0; logits.elem_count()];
            self.0.refuse(&mut row, error.to_string());
            let width = row.len();
            Ok(Tensor::from_vec(row, width, &Device::Cpu).unwrap_or_else(|_| logits.clone()))
        })
    }
}

struct RowEdit<F>(RefCell<F>);

impl<F: FnMut(&mut [f32])> InplaceOp1 for RowEdit<F> {
    fn name(&self) -> &'static str {
        "louver-row"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let CpuStorage::F32(values) = storage else {
            candle_core::bail!("a row of logits must be F32")
        };
        let Some((begin, end)) = layout.contiguous_offsets() else {
            candle_core::bail!("a row of logits must be contiguous")
        };
        (self.0.borrow_mut())(&mut values[begin..end]);
        Ok(())
    }
}

/// Runs `edit` on a row. The host (0.8.1) passes an unshared F32 row on the CPU, which is changed
/// in place without a copy. Any other row is converted first.
fn edit(logits: &Tensor, edit: impl FnMut(&mut [f32])) -> Result<Tensor> {
    let row = logits.to_dtype(DType::F32)?.to_device(&Device::Cpu)?.flatten_all()?.contiguous()?;
    row.inplace_op1(&RowEdit(RefCell::new(edit)))?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_rows_are_edited_in_place_and_others_converted() {
        let row = Tensor::new(&[1f32, 2.0, 3.0], &Device::Cpu).unwrap();
        let out = edit(&row, |x| x[1] = 9.0).unwrap();
        assert_eq!(row.to_vec1::<f32>().unwrap(), [1.0, 9.0, 3.0]);
        assert_eq!(out.to_vec1::<f32>().unwrap(), [1.0, 9.0, 3.0]);
        let wide = Tensor::new(&[[1f64, 2.0, 3.0]], &Device::Cpu).unwrap();
        assert_eq!(edit(&wide, |x| x[0] = 7.0).unwrap().to_vec1::<f32>().unwrap(), [7.0, 2.0, 3.0]);
    }
}
