//! Models of odd tempers, for requests whose prompt has a marker: others of the same batch are left alone.

use std::sync::Arc;

use mistralrs::{CustomLogitsProcessor, Device, Tensor};

/// A message with this makes every other row NaN.
pub(super) const NAN: &str = "\u{2622}";
/// A message with this makes the model propose the end of its turn at every step.
pub(super) const END_FIRST: &str = "\u{2620}";

/// The processors. A marker is one of the model's tokens for each of its bytes: no merge of the embedded tokenizer has them.
pub(super) fn processors(vocab: &louver::vocab::Vocabulary) -> Vec<Arc<dyn CustomLogitsProcessor>> {
    let bytes = |text: &str| -> Vec<u32> {
        text.bytes().filter_map(|byte| vocab.find(&[byte])).map(|token| token.raw()).collect()
    };
    let (nan, end) = (bytes(NAN), bytes(END_FIRST));
    let stops: Vec<usize> = vocab.stops().iter().map(|stop| stop.raw() as usize).collect();
    let has = |context: &[u32], marker: &[u32]| context.windows(marker.len()).any(|window| window == marker);
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
