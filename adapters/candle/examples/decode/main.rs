//! A decode loop on candle: continuous batching with constraints, forced tokens and drafts, on the
//! CPU or a CUDA device (`--features cuda`). `serving` is the loop, `llama` its model.
//!
//! ```text
//! cargo run --release -p louver-candle --example decode -- [OPTIONS]
//!   --model DIR        a Llama: config.json, model.safetensors, tokenizer.json; otherwise a small
//!                      one with random weights, whose output is noise except for its structure
//!   --requests N       how many requests, half of them constrained (16)
//!   --rows N           most rows of the batch (8)
//!   --temperature T    0 for the most likely token (0.8)
//!   --seed N           of the draws (1)
//! ```

mod llama;
#[allow(dead_code, reason = "this program neither cancels nor measures")]
mod serving;
mod vocabulary;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Config, LlamaConfig};
use louver::front::json_schema::Whitespace;
use louver::{Constraint, Engine, EngineOptions, SchemaOptions, TokenId, Vocabulary};
use louver_hf_tokenizers::{Encoder, VocabOptions};
use tokenizers::Tokenizer;

use crate::llama::{Llama, random_weights, small_model};
use crate::serving::draw::Sampling;
use crate::serving::scheduler::{DecodeLoop, Times};
use crate::serving::sequence::{Output, Request, Usage};
use crate::serving::settings::{Forced, Settings};

const SCHEMAS: [&str; 3] = [
    r#"{
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 8},
            "born": {"type": "string", "format": "date"},
            "member": {"type": "boolean"}
        },
        "required": ["name", "born", "member"],
        "additionalProperties": false
    }"#,
    r#"{
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 99},
        "minItems": 3, "maxItems": 5
    }"#,
    r#"{"enum": ["accepted", "rejected", {"retry": [1, 2, 3]}]}"#,
];

struct Arguments {
    model: Option<PathBuf>,
    requests: usize,
    rows: usize,
    temperature: f32,
    seed: u64,
}

impl Arguments {
    fn read() -> Result<Self> {
        let mut out = Self { model: None, requests: 16, rows: 8, temperature: 0.8, seed: 1 };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--model" => out.model = Some(value.into()),
                "--requests" => out.requests = number(&name, &value)?,
                "--rows" => out.rows = number::<usize>(&name, &value)?.max(1),
                "--temperature" => out.temperature = number(&name, &value)?,
                "--seed" => out.seed = number(&name, &value)?,
                _ => bail!("there is no option {name}; see the head of main.rs"),
            }
        }
        Ok(out)
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| anyhow::anyhow!("{name} {value:?} is not a number"))
}

/// A model, its tokens, and how it cuts forced text.
struct Loaded {
    config: Config,
    weights: VarBuilder<'static>,
    vocab: Arc<Vocabulary>,
    tokenizer: Option<Arc<Tokenizer>>,
}

impl Loaded {
    fn new(arguments: &Arguments, device: &Device) -> Result<Self> {
        let Some(folder) = &arguments.model else {
            let vocab = vocabulary::words()?;
            // Wider than the vocabulary, as in real models.
            let config = small_model(vocab.width() + 64);
            let weights = random_weights(&config, 1, device)?;
            let weights = VarBuilder::from_tensors(weights, DType::F32, device);
            return Ok(Self { config, weights, vocab: Arc::new(vocab), tokenizer: None });
        };
        let config = std::fs::read(folder.join("config.json")).context("config.json")?;
        let config: LlamaConfig = serde_json::from_slice(&config).context("config.json")?;
        let config = config.into_config(false);
        let dtype = if device.is_cuda() { DType::BF16 } else { DType::F32 };
        let weights = candle_core::safetensors::load(folder.join("model.safetensors"), device)?;
        let weights = VarBuilder::from_tensors(weights, dtype, device);
        let options = VocabOptions::default().with_width(config.vocab_size);
        let loaded = louver_hf_tokenizers::load(folder.join("tokenizer.json"), &options)?;
        let tokenizer = Some(Arc::new(loaded.tokenizer));
        Ok(Self { config, weights, vocab: Arc::new(loaded.vocab), tokenizer })
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        match &self.tokenizer {
            Some(tokenizer) => Ok(Encoder::new(tokenizer, &self.vocab).encode(text)?),
            None => Ok(text.bytes().map(u32::from).collect()),
        }
    }

    fn forced(&self) -> Forced {
        let Some(tokenizer) = self.tokenizer.clone() else { return Forced::LongestMatch };
        let vocab = self.vocab.clone();
        Forced::Tokenizer(Arc::new(move |bytes| {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let ids = Encoder::new(&tokenizer, &vocab).encode(text).unwrap_or_default();
            ids.into_iter().map(TokenId::from_raw).collect()
        }))
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::read()?;
    let device = Device::cuda_if_available(0)?;
    let loaded = Loaded::new(&arguments, &device)?;
    let engine = Arc::new(Engine::new(loaded.vocab.clone(), EngineOptions::default()));
    let options = SchemaOptions::default().with_whitespace(Whitespace::PythonLike);
    let compile = |schema| engine.compile_json_schema(schema, &options);
    let constraints: Vec<Constraint> =
        SCHEMAS.into_iter().map(compile).collect::<Result<_, _>>()?;
    // Every second request is constrained.
    let request = |number: usize| -> Result<Request> {
        let schema = number / 2 % SCHEMAS.len();
        Ok(Request {
            prompt: loaded.encode(&format!("{}\nRecord {number}: ", SCHEMAS[schema]))?,
            constraint: number.is_multiple_of(2).then(|| constraints[schema].clone()),
            max_tokens: 64,
            sampling: Sampling {
                temperature: arguments.temperature,
                top_k: 40,
                seed: arguments.seed.wrapping_add(number as u64),
            },
        })
    };
    let requests: Vec<Request> = (0..arguments.requests).map(request).collect::<Result<_>>()?;
    println!(
        "{} requests, {} rows, {} tokens, {device:?}",
        requests.len(),
        arguments.rows,
        loaded.vocab.width()
    );

    let kept_masks = if device.is_cuda() { 64 << 20 } else { 0 };
    let all = Settings {
        max_rows: arguments.rows,
        forced: loaded.forced(),
        kept_masks,
        ..Settings::default()
    };
    let nothing = Settings { overlap: false, forced: Forced::Draw, draft: 0, ..all.clone() };
    let free = |request: &Request| Request { constraint: None, ..request.clone() };
    let unconstrained: Vec<Request> = requests.iter().map(free).collect();
    let run = |settings: &Settings, requests: &[Request]| {
        let llama = Llama::load(loaded.weights.clone(), &loaded.config)?;
        run(DecodeLoop::new(llama, engine.clone(), settings.clone()), requests)
    };
    let finished = run(&all, &requests)?;
    print_texts(&loaded.vocab, &requests, &finished.outputs);
    println!(
        "\nmicroseconds a step     steps forward  masks   both   draw accept    all | tokens forced drafted agreed"
    );
    println!("{}", finished.row("overlap, forced, drafts"));
    println!("{}", run(&nothing, &requests)?.row("none of these"));
    println!("{}", run(&nothing, &unconstrained)?.row("unconstrained"));
    Ok(())
}

/// The result of one run.
struct Finished {
    outputs: Vec<Output>,
    times: Times,
    all: Duration,
}

/// Submits two requests before each step, so that prompts are read beside running rows.
fn run(mut decode: DecodeLoop<Llama>, requests: &[Request]) -> Result<Finished> {
    let begin = Instant::now();
    let (mut outputs, mut waiting) = (Vec::new(), requests.iter());
    while outputs.len() < requests.len() {
        for request in waiting.by_ref().take(2) {
            decode.submit(request.clone())?;
        }
        outputs.extend(decode.step()?);
    }
    outputs.sort_by_key(|output: &Output| output.id);
    Ok(Finished { outputs, times: decode.times(), all: begin.elapsed() })
}

impl Finished {
    fn row(&self, name: &str) -> String {
        let Times { steps, forward, masks, both, draw, accept } = self.times;
        let total = |of: fn(&Usage) -> usize| -> usize {
            self.outputs.iter().map(|output| of(&output.usage)).sum()
        };
        let mut row = format!("{name:<24} {steps:>4}");
        for time in [forward, masks, both, draw, accept, self.all] {
            row += &format!(" {:>6.0}", time.as_secs_f64() * 1e6 / f64::from(steps.max(1)));
        }
        let tokens: usize = self.outputs.iter().map(|output| output.tokens.len()).sum();
        let (forced, drafted) = (total(|usage| usage.forced), total(|usage| usage.drafted));
        row + &format!(" | {tokens:>6} {forced:>6} {drafted:>7} {:>6}", total(|u| u.agreed))
    }
}

fn print_texts(vocab: &Vocabulary, requests: &[Request], outputs: &[Output]) {
    for (output, request) in outputs.iter().zip(requests) {
        let kind = if request.constraint.is_some() { "schema" } else { "free" };
        let bytes = |&id: &u32| vocab.bytes(TokenId::from_raw(id)).unwrap_or_default();
        let text: Vec<u8> = output.tokens.iter().flat_map(bytes).copied().collect();
        let text: String =
            String::from_utf8_lossy(&text).chars().flat_map(char::escape_debug).take(80).collect();
        println!("{:>3} {kind:6} {:<6} {text}", output.id, format!("{:?}", output.finish));
    }
}
