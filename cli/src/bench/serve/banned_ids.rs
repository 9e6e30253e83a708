//! A logits processor that keeps a generation from ids: stop tokens, or logits without a token.

use std::sync::{Arc, OnceLock};

use mistralrs::{CustomLogitsProcessor, Tensor};

/// A processor after which no id for which `is_banned` holds can be drawn.
pub(super) fn without_ids(
    is_banned: impl Fn(usize) -> bool + Send + Sync + 'static,
) -> Arc<dyn CustomLogitsProcessor> {
    let bias: OnceLock<Tensor> = OnceLock::new();
    Arc::new(move |logits: &Tensor, _: &[u32]| {
        if bias.get().is_none() {
            let width = logits.dims().last().copied().unwrap_or(0);
            let of = |id| if is_banned(id) { f32::NEG_INFINITY } else { 0.0 };
            let of_ids: Vec<f32> = (0..width).map(of).collect();
            let made = Tensor::from_vec(of_ids, width, logits.device())?;
            let _ = bias.set(made.to_dtype(logits.dtype())?);
        }
        bias.get().map_or_else(|| Ok(logits.clone()), |bias| logits.broadcast_add(bias))
    })
}
