//! What constraints cost a decode loop: the time of a step with 64 rows, with none, half and all of
//! them constrained. The model has the width of an 8B one, few layers and random weights.

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
const ROUNDS: usize = 3;

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

    /// The times of the steps that draw a token in each row, and the texts.
    fn run(
        &self,
        constrained: Constrained,
        overlap: bool,
    ) -> Outcome<(Vec<Duration>, Vec<Output>)> {
        let settings = Settings {
            max_rows: ROWS,
            overlap,
            forced: Forced::Draw,
            draft: 0,
            kept_masks: 64 << 20,
            ..Settings::default()
        };
        let llama = Llama::load(self.weights.clone(), &self.config)?;
        let mut decode = DecodeLoop::new(llama, self.engine.clone(), settings);
        for request in self.requests(constrained) {
            decode.submit(request)?;
        }
        let (mut times, mut outputs) = (Vec::new(), Vec::new());
        while !decode.is_idle() {
            let begin = Instant::now();
            outputs.extend(decode.step()?);
            times.push(begin.elapsed());
        }
        times.truncate(TOKENS - 1);
        outputs.sort_by_key(|output| output.id);
        Ok((times.split_off(WARM_UP), outputs))
    }
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
    let ways = [
        ("unconstrained", Constrained::None, true),
        ("half, masks beside the forward pass", Constrained::Half, true),
        ("half, masks before it", Constrained::Half, false),
        ("all, masks beside it", Constrained::All, true),
        ("all, masks before it", Constrained::All, false),
    ];
    let (mut times, mut is_same) = ([const { Vec::new() }; 5], true);
    for round in 0..=ROUNDS {
        let mut texts: Vec<Vec<Output>> = Vec::new();
        for ((_, constrained, overlap), times) in ways.iter().zip(&mut times) {
            let (steps, outputs) = bench.run(*constrained, *overlap)?;
            if round > 0 {
                times.extend(steps);
            } else if outputs.iter().any(|output| output.finish == Finish::Limit) {
                return Err("a row reached a limit".into());
            }
            texts.push(outputs);
        }
        for pair in [(1, 2), (3, 4)] {
            let tokens = |way: usize| texts[way].iter().map(|output| &output.tokens);
            is_same &= tokens(pair.0).eq(tokens(pair.1));
        }
    }
    let times = times.map(median_and_p99);
    for ((name, ..), (median, p99)) in ways.iter().zip(times) {
        let loss = 100.0 * (median / times[0].0 - 1.0);
        println!("{name:36} {median:8.0} ({loss:+.2} %), p99 {p99:8.0}");
    }
    println!("the same tokens with masks beside and before the forward pass: {is_same}");
    Ok(())
}
