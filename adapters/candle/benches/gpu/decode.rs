//! What constraints cost a decode loop: the time of a step with 64 rows, with none, half and all of
//! them constrained. The model has the width of an 8B one, few layers and random weights. The loops
//! take turns at every step, because launches are faster in one minute than in the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::Config;
use louver::front::json_schema::Whitespace;
use louver::{Constraint, Engine, EngineOptions, SchemaOptions, Vocabulary};

use crate::llama::{Llama, random_weights, small_model};
use crate::serving::draw::Sampling;
use crate::serving::scheduler::DecodeLoop;
use crate::serving::sequence::{Finish, Output, Request};
use crate::serving::settings::{Forced, Settings};
use crate::{Outcome, median_and_p99};

const ROWS: usize = 64;
const TOKENS: usize = 128;
/// Steps at the beginning that read prompts.
const WARM_UP: usize = 8;
const ROUNDS: usize = 5;

/// Lists that no answer of [`TOKENS`] tokens can end, so that no row leaves the batch.
const SCHEMAS: [&str; 2] = [
    r#"{
        "type": "array", "minItems": 1000,
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 40},
                "born": {"type": "string", "format": "date"},
                "kind": {"enum": ["person", "company", "place"]},
                "score": {"type": "number", "minimum": 0, "maximum": 100}
            },
            "required": ["name", "born", "kind", "score"],
            "additionalProperties": false
        }
    }"#,
    r#"{
        "type": "array", "minItems": 1000,
        "items": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
    }"#,
];

/// Two of an 8B model's 32 layers. The example's attention goes row by row, so that a step has
/// about as many launches, and takes about as long, as one of the whole model in a runtime with an
/// attention kernel for batches.
fn wide_model(vocab_size: usize) -> Config {
    Config {
        hidden_size: 4096,
        intermediate_size: 14336,
        num_hidden_layers: 2,
        num_attention_heads: 32,
        num_key_value_heads: 8,
        tie_word_embeddings: true,
        ..small_model(vocab_size)
    }
}

/// Which rows are constrained.
#[derive(Clone, Copy)]
enum Constrained {
    None,
    Half,
    All,
}

/// One of the loops that are compared.
struct Way {
    name: &'static str,
    constrained: Constrained,
    /// Whether the masks are made beside the forward pass.
    overlap: bool,
}

struct Bench {
    engine: Arc<Engine>,
    constraints: Vec<Constraint>,
    weights: VarBuilder<'static>,
    config: Config,
}

impl Bench {
    fn requests(&self, constrained: Constrained) -> Vec<Request> {
        let request = |row: usize| {
            let constraint = &self.constraints[row / 2 % self.constraints.len()];
            let is_constrained = match constrained {
                Constrained::None => false,
                Constrained::Half => row.is_multiple_of(2),
                Constrained::All => true,
            };
            Request {
                prompt: (0..8).map(|at| 32 + ((row * 7 + at * 3) % 64) as u32).collect(),
                constraint: is_constrained.then(|| constraint.clone()),
                max_tokens: TOKENS,
                sampling: Sampling::GREEDY,
            }
        };
        (0..ROWS).map(request).collect()
    }

    /// A loop to which all requests have been submitted.
    fn decode_loop(&self, way: &Way) -> Outcome<DecodeLoop<Llama>> {
        let settings = Settings {
            max_rows: ROWS,
            overlap: way.overlap,
            forced: Forced::Draw,
            draft: 0,
            kept_masks: 64 << 20,
            ..Settings::default()
        };
        let llama = Llama::load(self.weights.clone(), &self.config)?;
        let mut decode = DecodeLoop::new(llama, self.engine.clone(), settings);
        for request in self.requests(way.constrained) {
            decode.submit(request)?;
        }
        Ok(decode)
    }

    /// Runs all loops to their ends. Returns, per loop, the times of the steps that draw a token in
    /// each row and the texts.
    fn run(&self, ways: &[Way]) -> Outcome<Vec<(Vec<Duration>, Vec<Output>)>> {
        let mut loops =
            ways.iter().map(|way| self.decode_loop(way)).collect::<Outcome<Vec<_>>>()?;
        let mut results = vec![(Vec::new(), Vec::new()); ways.len()];
        for step in 0.. {
            if loops.iter().all(DecodeLoop::is_idle) {
                break;
            }
            for turn in 0..ways.len() {
                let way = (turn + step) % ways.len();
                let (times, outputs) = &mut results[way];
                let begin = Instant::now();
                outputs.extend(loops[way].step()?);
                times.push(begin.elapsed());
            }
        }
        for (times, outputs) in &mut results {
            times.truncate(TOKENS - 1);
            times.drain(..WARM_UP);
            outputs.sort_by_key(|output: &Output| output.id);
        }
        Ok(results)
    }
}

/// Quartiles of the loss in percent, of steps compared with the unconstrained one of the same turn.
fn loss(times: &[Duration], unconstrained: &[Duration]) -> [f64; 3] {
    let ratio = |(own, free): (&Duration, &Duration)| own.as_secs_f64() / free.as_secs_f64();
    let mut losses: Vec<f64> =
        times.iter().zip(unconstrained).map(|pair| 100.0 * (ratio(pair) - 1.0)).collect();
    losses.sort_unstable_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| losses[losses.len() * quarter / 4])
}

pub(crate) fn losses(device: &Device, vocab: Vocabulary) -> Outcome<()> {
    let config = wide_model(vocab.width());
    println!(
        "\ndecode loop, {ROWS} rows, {} ids, {} layers of {}: microseconds a step",
        vocab.width(),
        config.num_hidden_layers,
        config.hidden_size
    );
    let weights = random_weights(&config, 1, device)?;
    let weights = weights
        .into_iter()
        .map(|(name, weight)| Ok((name, weight.to_dtype(DType::BF16)?)))
        .collect::<Outcome<_>>()?;
    let engine = Arc::new(Engine::new(Arc::new(vocab), EngineOptions::default()));
    let options = SchemaOptions::default().with_whitespace(Whitespace::PythonLike);
    let constraints = SCHEMAS
        .iter()
        .map(|schema| engine.compile_json_schema(schema, &options))
        .collect::<Result<_, _>>()?;
    let weights = VarBuilder::from_tensors(weights, DType::BF16, device);
    let bench = Bench { engine, constraints, weights, config };
    let way = |name, constrained, overlap| Way { name, constrained, overlap };
    let ways = [
        way("unconstrained", Constrained::None, true),
        way("half, masks beside the forward pass", Constrained::Half, true),
        way("half, masks before it", Constrained::Half, false),
        way("all, masks beside it", Constrained::All, true),
        way("all, masks before it", Constrained::All, false),
    ];
    let (mut times, mut is_same) = ([const { Vec::new() }; 5], true);
    for round in 0..=ROUNDS {
        let results = bench.run(&ways)?;
        if results.iter().flat_map(|(_, texts)| texts).any(|text| text.finish == Finish::Limit) {
            return Err("a row reached a limit".into());
        }
        let tokens = |way: usize| results[way].1.iter().map(|output| &output.tokens);
        is_same &= tokens(1).eq(tokens(2)) && tokens(3).eq(tokens(4));
        if round > 0 {
            for ((steps, _), times) in results.into_iter().zip(&mut times) {
                times.extend(steps);
            }
        }
    }
    for (way, own) in ways.iter().zip(&times) {
        let (median, p99) = median_and_p99(own.clone());
        let [low, middle, high] = loss(own, &times[0]);
        println!(
            "{:36} {median:8.0}, p99 {p99:8.0}, step by step {middle:+.2} % (quartiles {low:+.2} \
             and {high:+.2})",
            way.name
        );
    }
    println!("the same tokens with masks beside and before the forward pass: {is_same}");
    Ok(())
}
