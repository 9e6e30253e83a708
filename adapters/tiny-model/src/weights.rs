//! Random weights from a fixed seed. Uniformly distributed, so that all platforms get the same
//! bits.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::tensor::{Dtype, TensorView};

pub(crate) const HIDDEN: usize = 32;
pub(crate) const INTERMEDIATE: usize = 64;
pub(crate) const LAYERS: usize = 1;
pub(crate) const HEADS: usize = 2;
pub(crate) const KV_HEADS: usize = 1;
const SEED: u64 = 0x0010_07e4;

/// The weights file: F32 tensors with the names of a Hugging Face Llama.
pub(crate) fn safetensors(vocab: usize) -> Result<Vec<u8>, safetensors::SafeTensorError> {
    let kv = HIDDEN / HEADS * KV_HEADS;
    let mut shapes: Vec<(String, Vec<usize>)> =
        vec![("model.embed_tokens.weight".to_owned(), vec![vocab, HIDDEN])];
    for layer in 0..LAYERS {
        let parts = [
            ("input_layernorm", vec![HIDDEN]),
            ("self_attn.q_proj", vec![HIDDEN, HIDDEN]),
            ("self_attn.k_proj", vec![kv, HIDDEN]),
            ("self_attn.v_proj", vec![kv, HIDDEN]),
            ("self_attn.o_proj", vec![HIDDEN, HIDDEN]),
            ("post_attention_layernorm", vec![HIDDEN]),
            ("mlp.gate_proj", vec![INTERMEDIATE, HIDDEN]),
            ("mlp.up_proj", vec![INTERMEDIATE, HIDDEN]),
            ("mlp.down_proj", vec![HIDDEN, INTERMEDIATE]),
        ];
        shapes.extend(
            parts.map(|(name, shape)| (format!("model.layers.{layer}.{name}.weight"), shape)),
        );
    }
    shapes.push(("model.norm.weight".to_owned(), vec![HIDDEN]));
    shapes.push(("lm_head.weight".to_owned(), vec![vocab, HIDDEN]));

    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let bytes = match shape[..] {
                // Outputs have variance 1 for inputs of variance 1: the squared bound is 3 /
                // fan-in.
                [rows, fan_in] => {
                    let bound = (3.0 / fan_in as f32).sqrt();
                    (0..rows * fan_in)
                        .flat_map(|_| rng.random_range(-bound..bound).to_le_bytes())
                        .collect()
                }
                _ => shape
                    .iter()
                    .flat_map(|n| std::iter::repeat_n(1f32.to_le_bytes(), *n))
                    .flatten()
                    .collect(),
            };
            (name, shape, bytes)
        })
        .collect();
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
    safetensors::serialize(views, None)
}
