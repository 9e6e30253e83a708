//! A Llama that reads chunks of different lengths at different positions in one forward pass.
//!
//! The tokens of all chunks are one list, so that projections are one matrix product each whatever
//! the chunks' lengths. Only attention looks at one sequence at a time: its chunk, and the keys and
//! values of its own cache. A runtime for large batches has one kernel for that (paged attention);
//! everything around it stays.

use std::collections::HashMap;

use candle_core::{DType, Device, Result, Tensor, bail};
use candle_nn::{Embedding, Linear, Module, VarBuilder, ops, rotary_emb};
use candle_transformers::models::llama::Config;

use super::serving::draw::mix;
use super::serving::model::{Chunk, Model, SequenceCache};

/// Tokens for which a cache has room at first.
const FIRST_CAPACITY: usize = 64;

pub(crate) struct Llama {
    config: Config,
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Linear,
    /// Rotations by position: `[positions, head size / 2]`.
    cos: Tensor,
    sin: Tensor,
}

struct Layer {
    attention_norm: Tensor,
    attention: Attention,
    mlp_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    heads: usize,
    key_heads: usize,
}

/// Keys and values of one sequence.
pub(crate) struct KvCache {
    /// Per layer, both `[key heads, capacity, head size]`.
    layers: Vec<Option<(Tensor, Tensor)>>,
    len: usize,
}

/// What one chunk needs in every layer.
struct ChunkShape {
    /// Its first token in the list of all chunks' tokens.
    start: usize,
    tokens: usize,
    /// Minus infinity where a token would see a later one; `None` for one token.
    causal: Option<Tensor>,
}

impl Llama {
    /// Loads the weights of a checkpoint: the names are those of Hugging Face.
    pub(crate) fn load(weights: VarBuilder<'_>, config: &Config) -> Result<Self> {
        if config.rope_scaling.is_some() {
            bail!("`rope_scaling` is not implemented in this example")
        }
        let (size, vocab) = (config.hidden_size, config.vocab_size);
        let model = weights.pp("model");
        let embedding = candle_nn::embedding(vocab, size, model.pp("embed_tokens"))?;
        let head = if config.tie_word_embeddings {
            Linear::new(embedding.embeddings().clone(), None)
        } else {
            candle_nn::linear_no_bias(size, vocab, weights.pp("lm_head"))?
        };
        let layers = (0..config.num_hidden_layers)
            .map(|layer| Layer::load(&model.pp("layers").pp(layer), config))
            .collect::<Result<_>>()?;
        let norm = model.get(size, "norm.weight")?;
        let (cos, sin) = rotations(config, weights.dtype(), weights.device())?;
        Ok(Self { config: config.clone(), embedding, layers, norm, head, cos, sin })
    }
}

/// The cosine and sine of each position's rotations.
fn rotations(config: &Config, dtype: DType, device: &Device) -> Result<(Tensor, Tensor)> {
    let head = config.hidden_size / config.num_attention_heads;
    let frequency = |i| config.rope_theta.powf(i as f32 / head as f32).recip();
    let frequencies: Vec<f32> = (0..head).step_by(2).map(frequency).collect();
    let positions = Tensor::arange(0, config.max_position_embeddings as u32, device)?
        .to_dtype(DType::F32)?
        .unsqueeze(1)?;
    let angles = positions.broadcast_mul(&Tensor::new(frequencies, device)?)?;
    Ok((angles.cos()?.to_dtype(dtype)?, angles.sin()?.to_dtype(dtype)?))
}

impl Model for Llama {
    type Cache = KvCache;

    fn device(&self) -> &Device {
        self.norm.device()
    }

    fn context_length(&self) -> usize {
        self.config.max_position_embeddings
    }

    fn new_cache(&self) -> KvCache {
        KvCache { layers: vec![None; self.layers.len()], len: 0 }
    }

    fn forward(&self, chunks: &mut [Chunk<'_, KvCache>]) -> Result<Tensor> {
        let (mut tokens, mut positions, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        let mut shapes = Vec::new();
        for chunk in chunks.iter() {
            let (start, n) = (tokens.len(), chunk.tokens.len());
            shapes.push(ChunkShape::new(start, n, chunk.cache.len, &self.norm)?);
            tokens.extend_from_slice(&chunk.tokens);
            positions.extend((chunk.cache.len as u32..).take(n));
            wanted.extend((start + n - chunk.logits..start + n).map(|token| token as u32));
        }
        let list = |numbers: Vec<u32>| Tensor::new(numbers, self.device());
        let positions = list(positions)?;
        let rotation =
            (self.cos.index_select(&positions, 0)?, self.sin.index_select(&positions, 0)?);
        let mut x = self.embedding.forward(&list(tokens)?)?;
        for (number, layer) in self.layers.iter().enumerate() {
            let normed = self.rms_norm(&x, &layer.attention_norm)?;
            let rows = chunks.iter_mut().map(|chunk| &mut *chunk.cache).zip(&shapes);
            x = (x + layer.attention.forward(&normed, number, &rotation, rows)?)?;
            let normed = self.rms_norm(&x, &layer.mlp_norm)?;
            let gated = (ops::silu(&layer.gate.forward(&normed)?)? * layer.up.forward(&normed)?)?;
            x = (x + layer.down.forward(&gated)?)?;
        }
        for (chunk, shape) in chunks.iter_mut().zip(&shapes) {
            chunk.cache.len += shape.tokens;
        }
        if wanted.is_empty() {
            // Nothing is drawn; devices have no empty buffers.
            return Tensor::zeros((0, self.config.vocab_size), DType::F32, &Device::Cpu);
        }
        let last = self.rms_norm(&x.index_select(&list(wanted)?, 0)?, &self.norm)?;
        self.head.forward(&last)?.to_dtype(DType::F32)
    }
}

impl Llama {
    fn rms_norm(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let epsilon = self.config.rms_norm_eps as f32;
        match x.dtype() {
            // Candle's kernel lacks this type, which the tests use.
            DType::F64 => ops::rms_norm_slow(x, weight, epsilon),
            _ => ops::rms_norm(x, weight, epsilon),
        }
    }
}

impl Layer {
    fn load(weights: &VarBuilder<'_>, config: &Config) -> Result<Self> {
        let (size, inner) = (config.hidden_size, config.intermediate_size);
        let mlp = weights.pp("mlp");
        Ok(Self {
            attention_norm: weights.get(size, "input_layernorm.weight")?,
            attention: Attention::load(&weights.pp("self_attn"), config)?,
            mlp_norm: weights.get(size, "post_attention_layernorm.weight")?,
            gate: candle_nn::linear_no_bias(size, inner, mlp.pp("gate_proj"))?,
            up: candle_nn::linear_no_bias(size, inner, mlp.pp("up_proj"))?,
            down: candle_nn::linear_no_bias(inner, size, mlp.pp("down_proj"))?,
        })
    }
}

impl Attention {
    fn load(weights: &VarBuilder<'_>, config: &Config) -> Result<Self> {
        let (heads, key_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let (size, head) = (config.hidden_size, config.hidden_size / heads);
        let linear = |from, to, name| candle_nn::linear_no_bias(from, to, weights.pp(name));
        Ok(Self {
            query: linear(size, heads * head, "q_proj")?,
            key: linear(size, key_heads * head, "k_proj")?,
            value: linear(size, key_heads * head, "v_proj")?,
            output: linear(heads * head, size, "o_proj")?,
            heads,
            key_heads,
        })
    }

    /// `x` is `[tokens of all chunks, hidden size]`.
    fn forward<'c>(
        &self,
        x: &Tensor,
        layer: usize,
        (cos, sin): &(Tensor, Tensor),
        rows: impl Iterator<Item = (&'c mut KvCache, &'c ChunkShape)>,
    ) -> Result<Tensor> {
        // `[tokens, heads * size]` to `[1, heads, tokens, size]`.
        let by_head = |projection: &Linear, heads: usize| {
            let x = projection.forward(x)?;
            let (tokens, size) = x.dims2()?;
            x.reshape((1, tokens, heads, size / heads))?.transpose(1, 2)?.contiguous()
        };
        let queries = rotary_emb::rope(&by_head(&self.query, self.heads)?, cos, sin)?;
        let keys = rotary_emb::rope(&by_head(&self.key, self.key_heads)?, cos, sin)?;
        let values = by_head(&self.value, self.key_heads)?;
        let mut attended = Vec::new();
        for (cache, shape) in rows {
            let own = |x: &Tensor| x.squeeze(0)?.narrow(1, shape.start, shape.tokens)?.contiguous();
            let (keys, values) = cache.append(layer, &own(&keys)?, &own(&values)?)?;
            attended.push(attend(&own(&queries)?, &keys, &values, shape.causal.as_ref())?);
        }
        self.output.forward(&Tensor::cat(&attended, 0)?)
    }
}

/// Attention of one sequence. `queries` is `[heads, n, size]`, keys and values `[key heads, len,
/// size]`; the result is `[n, heads * size]`. The query heads of a key head are rows of one
/// product.
fn attend(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    causal: Option<&Tensor>,
) -> Result<Tensor> {
    let ((heads, n, size), key_heads) = (queries.dims3()?, keys.dim(0)?);
    let grouped = queries.reshape((key_heads, heads / key_heads * n, size))?;
    let scores = (grouped.matmul(&keys.t()?)? / (size as f64).sqrt())?;
    let scores = match causal {
        Some(causal) => {
            let shape = scores.shape().clone();
            let by_head = scores.reshape((heads, n, keys.dim(1)?))?;
            by_head.broadcast_add(causal)?.reshape(shape)?
        }
        None => scores,
    };
    let mixed = ops::softmax_last_dim(&scores)?.matmul(values)?;
    mixed.reshape((heads, n, size))?.transpose(0, 1)?.contiguous()?.reshape((n, heads * size))
}

impl ChunkShape {
    /// `like` has the type and device of the mask.
    fn new(start: usize, tokens: usize, before: usize, like: &Tensor) -> Result<Self> {
        let causal = if tokens > 1 {
            let len = before + tokens;
            let hidden =
                |i: usize| if i % len > before + i / len { f32::NEG_INFINITY } else { 0.0 };
            let mask: Vec<f32> = (0..tokens * len).map(hidden).collect();
            Some(Tensor::from_vec(mask, (tokens, len), like.device())?.to_dtype(like.dtype())?)
        } else {
            None
        };
        Ok(Self { start, tokens, causal })
    }
}

impl SequenceCache for KvCache {
    fn len(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl KvCache {
    /// Adds the keys and values of new tokens, `[key heads, n, size]`, and returns all of the
    /// layer. The length changes once all layers have them.
    fn append(&mut self, layer: usize, k: &Tensor, v: &Tensor) -> Result<(Tensor, Tensor)> {
        let (heads, n, size) = k.dims3()?;
        let len = self.len + n;
        let place = &mut self.layers[layer];
        let capacity = place.as_ref().map_or(Ok(0), |(keys, _)| keys.dim(1))?;
        if len > capacity {
            let room = len.next_power_of_two().max(FIRST_CAPACITY);
            let grown = |old: Option<&Tensor>| {
                let new = Tensor::zeros((heads, room, size), k.dtype(), k.device())?;
                if let Some(old) = old {
                    new.slice_set(old, 1, 0)?;
                }
                Ok::<_, candle_core::Error>(new)
            };
            let old = place.take();
            let (keys, values) = old.as_ref().map(|(keys, values)| (keys, values)).unzip();
            *place = Some((grown(keys)?, grown(values)?));
        }
        let Some((keys, values)) = place else { bail!("layer {layer} has no cache") };
        keys.slice_set(k, 1, self.len)?;
        values.slice_set(v, 1, self.len)?;
        Ok((keys.narrow(1, 0, len)?, values.narrow(1, 0, len)?))
    }
}

/// The configuration of a model with random weights that takes a few milliseconds a step on a CPU.
pub(crate) fn small_model(vocab_size: usize) -> Config {
    Config {
        hidden_size: 256,
        intermediate_size: 688,
        vocab_size,
        num_hidden_layers: 4,
        num_attention_heads: 8,
        num_key_value_heads: 4,
        use_flash_attn: false,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.0,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling: None,
        max_position_embeddings: 2048,
        tie_word_embeddings: false,
    }
}

/// Random weights of a seed, by the names of a checkpoint. Candle cannot seed its generator on the
/// CPU.
pub(crate) fn random_weights(
    config: &Config,
    seed: u64,
    device: &Device,
) -> Result<HashMap<String, Tensor>> {
    let (size, inner) = (config.hidden_size, config.intermediate_size);
    let keys = size / config.num_attention_heads * config.num_key_value_heads;
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_owned(), vec![config.vocab_size, size]),
        ("model.norm.weight".to_owned(), vec![size]),
        ("lm_head.weight".to_owned(), vec![config.vocab_size, size]),
    ];
    for layer in 0..config.num_hidden_layers {
        let of_layer = [
            ("input_layernorm", vec![size]),
            ("self_attn.q_proj", vec![size, size]),
            ("self_attn.k_proj", vec![keys, size]),
            ("self_attn.v_proj", vec![keys, size]),
            ("self_attn.o_proj", vec![size, size]),
            ("post_attention_layernorm", vec![size]),
            ("mlp.gate_proj", vec![inner, size]),
            ("mlp.up_proj", vec![inner, size]),
            ("mlp.down_proj", vec![size, inner]),
        ];
        let name = |name| format!("model.layers.{layer}.{name}.weight");
        shapes.extend(of_layer.map(|(end, shape)| (name(end), shape)));
    }
    let mut next = seed;
    let mut weights = HashMap::new();
    for (name, shape) in shapes {
        let weight = match shape[..] {
            [_, from] => {
                // Uniform, of variance 1 / inputs.
                let bound = (3.0 / from as f32).sqrt();
                let number = |_| {
                    next = next.wrapping_add(1);
                    ((mix(next) >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * bound
                };
                let count = shape.iter().product::<usize>();
                Tensor::from_vec((0..count).map(number).collect::<Vec<f32>>(), shape, device)?
            }
            _ => Tensor::ones(shape, DType::F32, device)?,
        };
        weights.insert(name, weight);
    }
    Ok(weights)
}
