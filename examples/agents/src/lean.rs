//! A logits processor that favours marker tokens. A model with random weights rarely ends a turn or
//! calls a tool, so this raises the markers with which trained models do. Louver still decides what
//! is allowed.

use std::sync::Arc;

use louver_mistralrs::Louver;
use mistralrs::{CustomLogitsProcessor, Device, Tensor};

/// Added to a logit. With about 800 tokens with logits around 0, each of these is sampled once in
/// 25 draws.
const MARKER_BIAS: f32 = 4.0;
/// The markers of turns, calls and reasoning in the tiny model's format.
const MARKERS: [&str; 4] = ["<tool_call>", "\n", "</think>", "<|im_end|>"];

/// The processor for requests to the tiny model.
pub(crate) fn favour_markers(louver: &Louver) -> Arc<dyn CustomLogitsProcessor> {
    let vocab = louver.engine().vocab();
    let id = |text: &&str| vocab.special(text).or_else(|| vocab.find(text.as_bytes()));
    let ids: Vec<usize> = MARKERS.iter().filter_map(id).map(|id| id.raw() as usize).collect();
    Arc::new(move |logits: &Tensor, _: &[u32]| {
        let mut row = logits.to_vec1::<f32>()?;
        ids.iter().for_each(|id| row.get_mut(*id).into_iter().for_each(|x| *x += MARKER_BIAS));
        let width = row.len();
        Tensor::from_vec(row, width, &Device::Cpu)
    })
}
