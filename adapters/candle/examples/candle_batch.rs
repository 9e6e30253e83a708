//! A decode loop on candle: a small Llama with random weights and a batch of constrained and
//! unconstrained sequences. The masks of a step are filled during its forward pass and applied to
//! all rows at once on the logits' device; then one token per row is sampled. The output of a
//! random model is noise, except for the structure of the constrained rows.
//!
//! ```text
//! cargo run --release -p louver-candle --example candle_batch -- [STEPS] [SEED]
//! ```
//!
//! On a CUDA device, add `--features cuda`.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::{DType, Device, IndexOp, Tensor};
use candle_nn::{VarBuilder, VarMap};
use candle_transformers::generation::LogitsProcessor;
use candle_transformers::models::llama::{Cache, Config, Llama};
use louver::engine::{Engine, EngineOptions, Matcher, RowStatus};
use louver::front::json_schema::SchemaOptions;
use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_candle::{MaskBatch, apply_bitmask_};

/// The stop token; ids below it are bytes, ids above it words.
const STOP: u32 = 256;
/// The logits are wider than the vocabulary, as in real models.
const PADDING: usize = 64;

/// The schema of each row; `None` is unconstrained. Equal schemas share masks.
const ROWS: [Option<&str>; 6] = [
    Some(PERSON),
    Some(
        r#"{"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 3, "maxItems": 5}"#,
    ),
    None,
    Some(PERSON),
    Some(r#"{"enum": ["accepted", "rejected", {"retry": [1, 2, 3]}]}"#),
    None,
];
const PERSON: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 8},
        "born": {"type": "string", "format": "date"},
        "member": {"type": "boolean"}
    },
    "required": ["name", "born", "member"],
    "additionalProperties": false
}"#;

/// Bytes, a stop token, and all words of up to three syllables, with and without a leading space.
fn vocabulary() -> Result<Vocabulary, Box<dyn Error>> {
    let syllables = [
        "an", "be", "co", "du", "er", "fi", "go", "he", "in", "ka", "lo", "mi", "no", "re", "st",
        "ti",
    ];
    let mut words: Vec<String> = syllables.iter().map(|s| (*s).to_owned()).collect();
    for _ in 0..2 {
        words = words
            .iter()
            .flat_map(|w| syllables.iter().map(move |s| format!("{w}{s}")))
            .chain(words.clone())
            .collect();
        words.sort();
        words.dedup();
    }
    words.extend(words.iter().map(|w| format!(" {w}")).collect::<Vec<_>>());
    words.extend(["\"", "\":", "\",", "\": \"", "\"}", "{\"", "true", "false"].map(String::from));
    words.retain(|word| word.len() > 1);
    let mut builder = Vocabulary::builder(STOP as usize + 1 + words.len());
    for byte in 0..=255u8 {
        builder.token(u32::from(byte), &[byte]);
    }
    builder.special(STOP, "<|end|>").stop(STOP);
    for (id, word) in (STOP + 1..).zip(&words) {
        builder.token(id, word.as_bytes());
    }
    Ok(builder.build()?)
}

fn model(vocab_size: usize, device: &Device) -> candle_core::Result<(Llama, Cache)> {
    let config = Config {
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
    };
    let weights = VarMap::new();
    let llama = Llama::load(VarBuilder::from_varmap(&weights, DType::F32, device), &config)?;
    Ok((llama, Cache::new(true, DType::F32, &config, device)?))
}

/// Total times of the steps.
#[derive(Default)]
struct Times {
    forward: Duration,
    fill: Duration,
    both: Duration,
    apply: Duration,
    draw: Duration,
    steps: u32,
}

struct Batch {
    engine: Engine,
    matchers: Vec<Option<Matcher>>,
    masks: MaskBatch,
    texts: Vec<Vec<u8>>,
    ended: Vec<bool>,
}

impl Batch {
    fn new(vocab: Arc<Vocabulary>) -> Result<Self, Box<dyn Error>> {
        let engine = Engine::new(vocab.clone(), EngineOptions::default());
        let mut matchers = Vec::new();
        for schema in ROWS {
            let constraint = schema
                .map(|s| engine.compile_json_schema(s, &SchemaOptions::default()))
                .transpose()?;
            matchers.push(constraint.map(|c| c.matcher()));
        }
        let (texts, ended) = (vec![Vec::new(); ROWS.len()], vec![false; ROWS.len()]);
        Ok(Self { engine, matchers, masks: MaskBatch::for_vocabulary(&vocab), texts, ended })
    }

    /// Fills the masks of all rows on the engine's threads and starts their upload.
    fn fill(&mut self, device: &Device) -> Result<(), Box<dyn Error + Send + Sync>> {
        let status = self.masks.fill(&self.engine, self.matchers.iter_mut().map(Option::as_mut))?;
        if let Some(row) =
            status.iter().position(|s| matches!(s, RowStatus::Limit | RowStatus::Failed))
        {
            return Err(format!("row {row}: {:?}", status[row]).into());
        }
        Ok(self.masks.upload(device)?)
    }

    /// Advances by the sampled tokens; a finished row continues with stop tokens.
    fn advance(&mut self, tokens: &mut [u32]) -> Result<(), Box<dyn Error>> {
        for (row, token) in tokens.iter_mut().enumerate() {
            if self.ended[row] {
                *token = STOP;
                continue;
            }
            if let Some(matcher) = &mut self.matchers[row] {
                matcher.advance(TokenId::from_raw(*token))?;
            }
            self.ended[row] = *token == STOP;
            let bytes = self.engine.vocab().bytes(TokenId::from_raw(*token));
            self.texts[row].extend_from_slice(bytes.unwrap_or_default());
        }
        Ok(())
    }

    fn constrained_have_ended(&self) -> bool {
        self.ended.iter().zip(&self.matchers).all(|(ended, matcher)| *ended || matcher.is_none())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let steps: usize = arguments.next().map_or(Ok(96), |s| s.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |s| s.parse())?;
    let device = Device::cuda_if_available(0)?;
    let vocab = Arc::new(vocabulary()?);
    let (llama, mut cache) = model(vocab.width() + PADDING, &device)?;
    let mut batch = Batch::new(vocab.clone())?;
    let mut draw = LogitsProcessor::new(seed, Some(0.8), None);
    println!(
        "{} rows, {} tokens, logits of {}, {device:?}",
        ROWS.len(),
        vocab.width(),
        vocab.width() + PADDING
    );

    // Each row has a different prompt of the same length.
    let prompt = 8;
    let prompts: Vec<u32> = (0..ROWS.len() * prompt).map(|i| (i * 37 % 256) as u32).collect();
    let mut input = Tensor::from_vec(prompts, (ROWS.len(), prompt), &device)?;
    let mut position = 0;
    let mut times = Times::default();
    while position < steps + prompt && !batch.constrained_have_ended() {
        let begin = Instant::now();
        // The forward pass runs on its own thread (on CUDA it only queues work), and the masks on
        // this thread and the engine's.
        let (logits, forward, filled, fill) = std::thread::scope(|scope| {
            let forward = scope.spawn(|| {
                let begin = Instant::now();
                (llama.forward(&input, position, &mut cache), begin.elapsed())
            });
            let begin = Instant::now();
            let filled = batch.fill(&device);
            let fill = begin.elapsed();
            let (logits, took) = forward.join().expect("the forward pass does not panic");
            (logits, took, filled, fill)
        });
        filled.map_err(|e| e.to_string())?;
        let logits = logits?.contiguous()?;
        times.both += begin.elapsed();
        times.forward += forward;
        times.fill += fill;

        let begin = Instant::now();
        apply_bitmask_(&logits, &batch.masks, None)?;
        times.apply += begin.elapsed();

        let begin = Instant::now();
        let mut tokens = Vec::new();
        for row in 0..ROWS.len() {
            // Masks do not limit free rows to the vocabulary, so the padding is left out here.
            let row = logits.i((row, ..vocab.width()))?;
            tokens.push(draw.sample(&row)?);
        }
        times.draw += begin.elapsed();
        position += input.dim(1)?;
        batch.advance(&mut tokens)?;
        input = Tensor::from_vec(tokens, (ROWS.len(), 1), &device)?;
        times.steps += 1;
    }
    report(&batch, &times);
    Ok(())
}

fn report(batch: &Batch, times: &Times) {
    for (row, text) in batch.texts.iter().enumerate() {
        let kind = if batch.matchers[row].is_some() { "schema" } else { "free" };
        let end = if batch.ended[row] { "ended" } else { "cut" };
        let text: String =
            String::from_utf8_lossy(text).chars().flat_map(char::escape_debug).take(90).collect();
        println!("{row} {kind:6} {end:5} {text}");
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(times.steps.max(1));
    println!("{} steps, microseconds a step:", times.steps);
    println!(
        "  forward {:.0}, masks {:.0}, both {:.0}",
        each(times.forward),
        each(times.fill),
        each(times.both)
    );
    let hidden = (each(times.forward) + each(times.fill) - each(times.both)).max(0.0);
    println!(
        "  masks hidden behind the forward pass: {:.0} of {:.0}",
        hidden.min(each(times.fill)),
        each(times.fill)
    );
    println!("  masks applied {:.0}, tokens drawn {:.0}", each(times.apply), each(times.draw));
}
