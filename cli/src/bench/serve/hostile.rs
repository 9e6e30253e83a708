//! Models of odd tempers, for requests whose prompt has a marker: others of the same batch are left alone.

use std::sync::Arc;

use mistralrs::{CustomLogitsProcessor, Device, Tensor};

/// What makes the model odd, for requests whose message has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// Every other row is NaN.
    Nan,
    /// The model proposes the end of its turn at every step.
    EndFirst,
}

impl Marker {
    /// What the message has.
    pub(super) fn text(self) -> &'static str {
        match self {
            Marker::Nan => "\u{2622}",
            Marker::EndFirst => "\u{2620}",
        }
    }
}

/// The processors. A marker is one of the model's tokens for each of its bytes: no merge of the embedded tokenizer has them.
pub(super) fn processors(vocab: &louver::vocab::Vocabulary) -> Vec<Arc<dyn CustomLogitsProcessor>> {
    let bytes = |marker: Marker| -> Vec<u32> {
        marker
            .text()
            .bytes()
            .filter_map(|byte| vocab.find(&[byte]))
            .map(|token| token.raw())
            .collect()
    };
    let (nan, end) = (bytes(Marker::Nan), bytes(Marker::EndFirst));
    let stops: Vec<usize> = vocab.stops().iter().map(|stop| stop.raw() as usize).collect();
    let has = |context: &[u32], marker: &[u32]| {
        context.windows(marker.len()).any(|window| window == marker)
    };
    let odd = move |logits: &Tensor, context: &[u32]| {
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
    vec![Arc::new(odd)]
}
