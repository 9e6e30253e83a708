//! A model of random weights neither ends a turn nor calls a tool before long. This leans it towards the tokens with
//! which trained models do, so that a run is short and something happens. What is allowed, Louver says afterwards.

use std::sync::Arc;

use louver_mistralrs::Louver;
use mistralrs::{CustomLogitsProcessor, Device, Tensor};

/// Added to a logit: of some 800 tokens with logits around 0, each of these is chosen once in 25 draws.
const LEAN: f32 = 4.0;
/// What turns, calls and reasoning begin and end with in the tiny model's format.
const MARKERS: [&str; 4] = ["<tool_call>", "\n", "</think>", "<|im_end|>"];

/// The processor, for a request to the tiny model.
pub(crate) fn towards_markers(louver: &Louver) -> Arc<dyn CustomLogitsProcessor> {
    let vocab = louver.engine().vocab();
    let id = |text: &&str| vocab.special(text).or_else(|| vocab.find(text.as_bytes()));
    let ids: Vec<usize> = MARKERS.iter().filter_map(id).map(|id| id.raw() as usize).collect();
    Arc::new(move |logits: &Tensor, _: &[u32]| {
        let mut row = logits.to_vec1::<f32>()?;
        ids.iter().for_each(|id| row.get_mut(*id).into_iter().for_each(|x| *x += LEAN));
        let width = row.len();
        Tensor::from_vec(row, width, &Device::Cpu)
    })
}
