//! Tokens per second with and without a constraint: the same model, prompt, seeds and lengths,
//! measured in alternation.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use louver_mistralrs::{
    Draw, Louver, Overlap, Plan, Prefetch, Reasoning, RunOptions, SchemaOptions, Timing,
    Truncation, Whitespace,
};
use mistralrs::{
    Model, ModelDType, RequestBuilder, Response, SamplingParams, TextMessageRole, TextModelBuilder,
};
use serde_json::{Value, json};

use super::record::{RequestRecord, nanos};
use super::{BenchOutcome, ThroughputArgs, test_server};

/// Numbers of concurrent requests.
const CONCURRENCY: [usize; 2] = [1, 8];
/// Maximum number of seeds to try for unconstrained runs that are long enough.
const MAX_SEEDS: u64 = 400;

/// How generations are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    /// The host alone, with its own sampler.
    Host,
    /// Louver samples, without masks.
    Free,
    /// Louver samples and masks, with prefetching.
    Constrained,
    /// Louver samples and masks, without preparation and prefetching.
    ConstrainedNoOverlap,
    /// Louver masks, the host samples.
    ConstrainedHostDraws,
}

const SETUPS: [Setup; 5] = [
    Setup::Free,
    Setup::Constrained,
    Setup::ConstrainedNoOverlap,
    Setup::ConstrainedHostDraws,
    Setup::Host,
];

/// The compared setups: the first divided by the second.
const RATIOS: [(Setup, Setup); 5] = [
    (Setup::Constrained, Setup::Free),
    (Setup::ConstrainedNoOverlap, Setup::Free),
    (Setup::Constrained, Setup::ConstrainedNoOverlap),
    (Setup::Constrained, Setup::ConstrainedHostDraws),
    (Setup::Constrained, Setup::Host),
];

impl Setup {
    fn is_constrained(self) -> bool {
        !matches!(self, Setup::Host | Setup::Free)
    }
}

struct Bench {
    model: Model,
    louver: Louver,
    tokens: usize,
    seeds: Vec<u64>,
}

/// One measurement.
struct Measurement {
    /// Tokens per second of all generations together.
    rate: f64,
    timing: Timing,
    took: Duration,
    tokens: usize,
}

pub(super) async fn run(args: &ThroughputArgs, seed: u64) -> Result<BenchOutcome> {
    let mut models = vec![("embedded", test_server::tiny_model_dir()?)];
    if let Some(tokenizer) = &args.tokenizer {
        let parent = louver_tiny_model::default_parent();
        models.push(("wide", louver_tiny_model::ensure_around(&parent, tokenizer)?.dir));
    }
    let (mut records, mut summary, mut passed) = (Vec::new(), Vec::new(), true);
    for (name, dir) in models {
        let bench = Bench::load(&dir, args.tokens, seed).await?;
        let width = bench.louver.engine().vocab().width();
        for (shape, schema) in shapes() {
            let plan = bench.plan(&schema)?;
            for concurrency in CONCURRENCY {
                let case = format!("{name} {shape} {concurrency}");
                let rounds = bench
                    .run_rounds(&plan, concurrency, args.rounds)
                    .await
                    .with_context(|| case.clone())?;
                summary.push(format!(
                    "{case} at once: {} ids, {} tokens a generation",
                    width, args.tokens
                ));
                summary.extend(figures(&rounds));
                for (setup, runs) in SETUPS.iter().zip(&rounds) {
                    passed &= runs.iter().all(|run| run.tokens > 0);
                    records.extend(
                        runs.iter().enumerate().map(|(n, run)| run.record(&case, *setup, n)),
                    );
                }
            }
        }
    }
    Ok(BenchOutcome { passed: passed && !records.is_empty(), records, summary })
}

/// The constraints: long free text, or much structure; neither ends early.
fn shapes() -> [(&'static str, Value); 2] {
    let row = json!({
        "type": "object",
        "properties": {
            "city": {"enum": ["Oslo", "Lima", "Nairobi"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "rain": {"type": "boolean"},
            "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        },
        "required": ["city", "days", "rain", "code"], "additionalProperties": false,
    });
    [
        ("text", json!({"type": "string", "minLength": 20_000})),
        ("rows", json!({"type": "array", "items": row, "minItems": 2000})),
    ]
}

impl Bench {
    async fn load(dir: &Path, tokens: usize, seed: u64) -> Result<Bench> {
        let builder =
            TextModelBuilder::new(dir.display()).with_force_cpu().with_dtype(ModelDType::F32);
        let (model, louver) = Louver::load(builder.with_prefix_cache_n(None)).await?;
        let mut bench = Bench { model, louver, tokens, seeds: Vec::new() };
        let free = bench.louver.unconstrained(Value::Null);
        // A model with random weights may end at any token: use only seeds with which it does not.
        let most = CONCURRENCY.into_iter().max().unwrap_or(1);
        for candidate in seed..seed + MAX_SEEDS {
            if bench.seeds.len() == most {
                break;
            }
            let generation = bench.generate(&free, options(candidate, Setup::Free)).await?;
            if generation.0 == tokens {
                bench.seeds.push(candidate);
            }
        }
        ensure!(bench.seeds.len() == most, "the model ends too soon; try fewer --tokens");
        Ok(bench)
    }

    fn plan(&self, schema: &Value) -> Result<Plan> {
        let options =
            SchemaOptions { whitespace: Whitespace::PythonLike, ..SchemaOptions::default() };
        Ok(self.louver.answer(schema).reasoning(Reasoning::Off).schema_options(options).build()?)
    }

    /// Measures all setups in rounds; each round begins with another setup. The first round is a
    /// warm-up and not counted.
    async fn run_rounds(
        &self,
        plan: &Plan,
        concurrency: usize,
        rounds: usize,
    ) -> Result<Vec<Vec<Measurement>>> {
        let free = self.louver.unconstrained(Value::Null);
        let mut runs: Vec<Vec<Measurement>> = SETUPS.iter().map(|_| Vec::new()).collect();
        for round in 0..=rounds {
            for step in 0..SETUPS.len() {
                let at = (round + step) % SETUPS.len();
                let setup = SETUPS[at];
                let plan = if setup.is_constrained() { plan } else { &free };
                let run = self.measure(plan, setup, concurrency).await?;
                if round > 0 {
                    runs[at].push(run);
                }
            }
        }
        Ok(runs)
    }

    async fn measure(&self, plan: &Plan, setup: Setup, concurrency: usize) -> Result<Measurement> {
        let started = Instant::now();
        let ran =
            futures::future::try_join_all(self.seeds[..concurrency].iter().map(async |seed| {
                match setup {
                    Setup::Host => self.generate_with_host().await,
                    _ => self.generate(plan, options(*seed, setup)).await,
                }
            }));
        let ran = ran.await?;
        let took = started.elapsed();
        let mut timing = Timing::default();
        ran.iter().for_each(|(_, one)| timing.add(one));
        let tokens = ran.iter().map(|(tokens, _)| tokens).sum::<usize>();
        // Unconstrained generations may end earlier concurrently than alone: the host mixes up the
        // sequences of a batch on the CPU.
        if setup.is_constrained() && tokens != concurrency * self.tokens {
            bail!("{tokens} tokens in place of {}", concurrency * self.tokens);
        }
        Ok(Measurement { rate: tokens as f64 / took.as_secs_f64(), timing, took, tokens })
    }

    fn request(&self) -> RequestBuilder {
        RequestBuilder::new()
            .set_sampling(SamplingParams::neutral())
            .set_sampler_max_len(self.tokens)
            .enable_thinking(false)
            .add_message(TextMessageRole::User, "Say something.")
    }

    async fn generate(&self, plan: &Plan, options: RunOptions) -> Result<(usize, Timing)> {
        let generation =
            plan.stream_with(&self.model, self.request(), options).await?.finish().await?;
        Ok((generation.tokens.len(), generation.timing))
    }

    /// Generates through the host's own route. It may end earlier; its tokens are counted.
    async fn generate_with_host(&self) -> Result<(usize, Timing)> {
        let mut stream = self.model.stream_chat_request(self.request()).await?;
        let mut tokens = 0;
        while let Some(response) = stream.next().await {
            match response {
                Response::Chunk(chunk) => {
                    tokens = chunk.usage.map_or(tokens + 1, |usage| usage.completion_tokens);
                }
                Response::Done(_) => break,
                _ => bail!("the host failed"),
            }
        }
        Ok((tokens, Timing::default()))
    }
}

fn options(seed: u64, setup: Setup) -> RunOptions {
    let overlap = match setup {
        Setup::ConstrainedNoOverlap => Overlap { prepare: false, prefetch: Prefetch::Off },
        _ => Overlap::default(),
    };
    let (draw, seed) = match setup {
        Setup::ConstrainedHostDraws => (Draw::Host, None),
        _ => (Draw::Louver, Some(seed)),
    };
    RunOptions { draw, seed, truncation: Truncation::Off, overlap, ..RunOptions::default() }
}

impl Measurement {
    fn record(&self, case: &str, setup: Setup, round: usize) -> RequestRecord {
        RequestRecord {
            id: format!("{case} {setup:?} {round}"),
            took_ns: nanos(self.took),
            tokens: Some(self.tokens as u64),
            louver_ns: Some(nanos(self.timing.louver)),
            steps_ns: Some(nanos(self.timing.steps)),
            tokens_per_second: Some(self.rate),
            ..RequestRecord::default()
        }
    }
}

/// The lines of one case.
fn figures(rounds: &[Vec<Measurement>]) -> Vec<String> {
    let runs_of = |setup: Setup| {
        SETUPS
            .iter()
            .position(|w| *w == setup)
            .and_then(|at| rounds.get(at))
            .map_or(&[][..], Vec::as_slice)
    };
    let mut lines = Vec::new();
    for setup in SETUPS {
        let mut rates: Vec<f64> = runs_of(setup).iter().map(|run| run.rate).collect();
        let mut timing = Timing::default();
        runs_of(setup).iter().for_each(|run| timing.add(&run.timing));
        let (low, middle, high) = quartiles(&mut rates);
        let louver = match setup {
            Setup::Host => String::new(),
            _ => format!(
                "; Louver {:.2} % of the step time, mask mean {:.1} us, p99 {:.1} us",
                100.0 * timing.share(),
                timing.mask_mean().as_secs_f64() * 1e6,
                timing.mask_quantile(0.99).as_secs_f64() * 1e6
            ),
        };
        lines.push(format!(
            "  {:<20} {middle:>8.0} tokens per second ({low:.0} to {high:.0}){louver}",
            format!("{setup:?}")
        ));
    }
    for (one, other) in RATIOS {
        let mut ratios: Vec<f64> =
            runs_of(one).iter().zip(runs_of(other)).map(|(a, b)| a.rate / b.rate).collect();
        let (low, middle, high) = quartiles(&mut ratios);
        lines.push(format!("  {one:?} / {other:?}: {middle:.3} ({low:.3} to {high:.3})"));
    }
    lines
}

/// The quartiles; zeros if there are no values.
fn quartiles(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        values
            .get(((values.len().max(1) - 1) as f64 * share).round() as usize)
            .copied()
            .unwrap_or(0.0)
    };
    (at(0.25), at(0.5), at(0.75))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_small_samples() {
        assert_eq!(quartiles(&mut []), (0.0, 0.0, 0.0));
        assert_eq!(quartiles(&mut [3.0]), (3.0, 3.0, 3.0));
        assert_eq!(quartiles(&mut [5.0, 1.0, 3.0, 2.0, 4.0]), (2.0, 3.0, 4.0));
    }
}
