//! The model of the example against candle's Llama.

use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Config, Llama as Reference};

use crate::device;
use crate::llama::{Llama, random_weights, small_model};
use crate::serving::model::{Chunk, Model, SequenceCache};

pub(crate) fn config(vocab_size: usize) -> Config {
    Config {
        hidden_size: 48,
        intermediate_size: 80,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        max_position_embeddings: 1024,
        ..small_model(vocab_size)
    }
}

/// The example's model with random weights.
pub(crate) fn random_llama(vocab_size: usize, dtype: DType) -> Llama {
    let config = config(vocab_size);
    let weights = random_weights(&config, 7, &device()).expect("weights");
    let weights = VarBuilder::from_tensors(weights, dtype, &device());
    Llama::load(weights, &config).expect("a model")
}

/// Chunks of three sequences, of different lengths, at different positions, one of them rolled
/// back: each row equals candle's model reading that sequence alone.
#[test]
fn ragged_chunks_give_the_logits_of_candles_llama() {
    const VOCAB: usize = 90;
    let ours = random_llama(VOCAB, DType::F32);
    let weights = random_weights(&config(VOCAB), 7, &device()).expect("weights");
    let weights = VarBuilder::from_tensors(weights, DType::F32, &device());
    let theirs = Reference::load(weights, &config(VOCAB)).expect("a model");

    let text = |seed: usize, len: usize| -> Vec<u32> {
        (0..len).map(|i| ((i * i * 31 + seed * 17 + i) % VOCAB) as u32).collect()
    };
    let texts = [text(1, 40), text(2, 23), text(3, 9)];
    // Per step and sequence: the tokens to take back, then the tokens to read.
    let steps = [[(0, 11), (0, 3), (0, 0)], [(0, 1), (2, 9), (0, 4)], [(3, 70), (0, 1), (0, 5)]];
    let mut caches = [0; 3].map(|_| ours.new_cache());
    for step in steps {
        let mut expected = Vec::new();
        let mut chunks = Vec::new();
        for ((cache, text), (back, read)) in caches.iter_mut().zip(&texts).zip(step) {
            cache.truncate(cache.len() - back);
            let (start, end) = (cache.len(), (cache.len() + read).min(text.len()));
            if start == end {
                continue;
            }
            let logits = (end - start).min(3);
            chunks.push(Chunk { tokens: text[start..end].to_vec(), cache, logits });
            for end in end - logits + 1..=end {
                let mut cache = Cache::new(true, DType::F32, &config(VOCAB), &device()).unwrap();
                let input = Tensor::new(&text[..end], &device()).unwrap().unsqueeze(0).unwrap();
                let row = theirs.forward(&input, 0, &mut cache).expect("a forward pass");
                expected.extend(row.to_vec2::<f32>().expect("logits"));
            }
        }
        let rows = ours.forward(&mut chunks).expect("a forward pass").to_vec2::<f32>().unwrap();
        assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().flatten().zip(expected.iter().flatten()) {
            assert!((row - expected).abs() < 1e-4, "{row} is not {expected}");
        }
    }
    assert_eq!(caches.map(|cache| cache.len()), [40, 11, 9]);
}
