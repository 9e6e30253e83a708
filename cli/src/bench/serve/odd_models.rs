//! Logits processors that simulate odd models, for requests whose prompt has a marker. Other
//! requests of the batch are unaffected.

use std::sync::Arc;

use mistralrs::{CustomLogitsProcessor, Device, Tensor};

/// The prompt marker that selects an odd behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptMarker {
    /// Every other row of logits is NaN.
    Nan,
    /// The model prefers a stop token at every step.
    EndFirst,
}

impl PromptMarker {
    /// The marker's text.
    pub(super) fn text(self) -> &'static str {
        match self {
            PromptMarker::Nan => "\u{2622}",
            PromptMarker::EndFirst => "\u{2620}",
        }
    }
}

/// The processors. Each byte of a marker is one token, because no merge of the embedded tokenizer
/// contains it.
pub(super) fn processors(vocab: &louver::vocab::Vocabulary) -> Vec<Arc<dyn CustomLogitsProcessor>> {
    let bytes = |marker: PromptMarker| -> Vec<u32> {
        marker
            .text()
            .bytes()
            .filter_map(|byte| vocab.find(&[byte]))
            .map(|token| token.raw())
            .collect()
    };
    let (nan, end) = (bytes(PromptMarker::Nan), bytes(PromptMarker::EndFirst));
    let stops: Vec<usize> = vocab.stops().iter().map(|stop| stop.raw() as usize).collect();
    let has = |context: &[u32], marker: &[u32]| {
        context.windows(marker.len()).any(|window| window == marker)
    };
    let processor = move |logits: &Tensor, context: &[u32]| {
        let width = logits.elem_count();
        if has(context, &nan) && context.len().is_multiple_of(2) {
            return Tensor::from_vec(vec![f32::NAN; width], width, &Device::Cpu);
        }
        if !has(context, &end) {
            return Ok(logits.clone());
        }
        let mut row = logits.to_vec1::<f32>()?;
        stops.iter().for_each(|stop| row.get_mut(*stop).into_iter().for_each(|x| *x = 1e9));
        Tensor::from_vec(row, width, &Device::Cpu)
    };
    vec![Arc::new(processor)]
}
