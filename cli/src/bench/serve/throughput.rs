//! Tokens a second with a constraint and without: the same model, prompt, seeds and lengths, measured in turns.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use louver_mistralrs::{
    Louver, Overlap, Plan, Prefetch, Reasoning, RunOptions, SchemaOptions, Timing, Truncation,
    Whitespace,
};
use mistralrs::{
    Model, ModelDType, RequestBuilder, Response, SamplingParams, TextMessageRole, TextModelBuilder,
};
use serde_json::{Value, json};

use super::record::{Record, nanos};
use super::{Outcome, ThroughputArgs, world};

/// Requests at the same time.
const AT_ONCE: [usize; 2] = [1, 8];
/// Seeds that are tried for runs without a constraint that are long enough.
const SEEDS: u64 = 400;

/// How a generation is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The host alone, which draws as it always does.
    Host,
    /// Louver draws, nothing is masked.
    Free,
    /// Louver draws and masks, and makes masks ahead while the model computes.
    Constrained,
    /// The same without working ahead.
    NotAhead,
}

const WAYS: [Way; 4] = [Way::Free, Way::Constrained, Way::NotAhead, Way::Host];

/// What is compared with what: the first over the second.
const RATIOS: [(Way, Way); 4] = [
    (Way::Constrained, Way::Free),
    (Way::NotAhead, Way::Free),
    (Way::Constrained, Way::NotAhead),
    (Way::Constrained, Way::Host),
];

struct Bench {
    model: Model,
    louver: Louver,
    tokens: usize,
    seeds: Vec<u64>,
}

/// One measurement.
struct Run {
    /// Tokens a second, all generations together.
    rate: f64,
    timing: Timing,
    took: Duration,
    tokens: usize,
}

pub(super) async fn run(args: &ThroughputArgs, seed: u64) -> Result<Outcome> {
    let mut models = vec![("embedded", world::tiny()?)];
    if let Some(tokenizer) = &args.tokenizer {
        let parent = louver_tiny_model::default_parent();
        models.push(("wide", louver_tiny_model::ensure_around(&parent, tokenizer)?.dir));
    }
    let (mut records, mut summary, mut good) = (Vec::new(), Vec::new(), true);
    for (name, dir) in models {
        let bench = Bench::load(&dir, args.tokens, seed).await?;
        let width = bench.louver.engine().vocab().width();
        for (shape, schema) in shapes() {
            let plan = bench.plan(&schema)?;
            for at_once in AT_ONCE {
                let case = format!("{name} {shape} {at_once}");
                let rounds = bench
                    .rounds(&plan, at_once, args.rounds)
                    .await
                    .with_context(|| case.clone())?;
                summary.push(format!(
                    "{case} at once: {} ids, {} tokens a generation",
                    width, args.tokens
                ));
                summary.extend(figures(&rounds));
                for (way, runs) in WAYS.iter().zip(&rounds) {
                    good &= runs.iter().all(|run| run.tokens > 0);
                    records
                        .extend(runs.iter().enumerate().map(|(n, run)| run.record(&case, *way, n)));
                }
            }
        }
    }
    Ok(Outcome { good: good && !records.is_empty(), records, summary })
}

/// What generations are held to: no end before very many tokens, free text or much structure.
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
        // A model of random weights may end at any token: only seeds with which it does not.
        let most = AT_ONCE.into_iter().max().unwrap_or(1);
        for tried in seed..seed + SEEDS {
            if bench.seeds.len() == most {
                break;
            }
            let generation = bench.one(&free, options(tried, Way::Free)).await?;
            if generation.0 == tokens {
                bench.seeds.push(tried);
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

    /// All ways, round by round; each round begins with another one. The first round warms up and is not counted.
    async fn rounds(&self, plan: &Plan, at_once: usize, rounds: usize) -> Result<Vec<Vec<Run>>> {
        let free = self.louver.unconstrained(Value::Null);
        let mut runs: Vec<Vec<Run>> = WAYS.iter().map(|_| Vec::new()).collect();
        for round in 0..=rounds {
            for step in 0..WAYS.len() {
                let at = (round + step) % WAYS.len();
                let way = WAYS[at];
                let plan =
                    if matches!(way, Way::Constrained | Way::NotAhead) { plan } else { &free };
                let run = self.together(plan, way, at_once).await?;
                if round > 0 {
                    runs[at].push(run);
                }
            }
        }
        Ok(runs)
    }

    async fn together(&self, plan: &Plan, way: Way, at_once: usize) -> Result<Run> {
        let begun = Instant::now();
        let ran =
            futures::future::try_join_all(self.seeds[..at_once].iter().map(
                async |seed| match way {
                    Way::Host => self.host().await,
                    _ => self.one(plan, options(*seed, way)).await,
                },
            ));
        let ran = ran.await?;
        let took = begun.elapsed();
        let mut timing = Timing::default();
        ran.iter().for_each(|(_, one)| timing.add(one));
        let tokens = ran.iter().map(|(tokens, _)| tokens).sum::<usize>();
        // What runs free may end sooner side by side than alone: the host mixes up the sequences of a batch on the CPU.
        let held = matches!(way, Way::Constrained | Way::NotAhead);
        if held && tokens != at_once * self.tokens {
            bail!("{tokens} tokens in place of {}", at_once * self.tokens);
        }
        Ok(Run { rate: tokens as f64 / took.as_secs_f64(), timing, took, tokens })
    }

    fn request(&self) -> RequestBuilder {
        RequestBuilder::new()
            .set_sampling(SamplingParams::neutral())
            .set_sampler_max_len(self.tokens)
            .enable_thinking(false)
            .add_message(TextMessageRole::User, "Say something.")
    }

    async fn one(&self, plan: &Plan, options: RunOptions) -> Result<(usize, Timing)> {
        let generation =
            plan.stream_with(&self.model, self.request(), options).await?.finish().await?;
        Ok((generation.tokens.len(), generation.timing))
    }

    /// The host's own route. It may end sooner; its tokens are counted.
    async fn host(&self) -> Result<(usize, Timing)> {
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

fn options(seed: u64, way: Way) -> RunOptions {
    let overlap = match way {
        Way::NotAhead => Overlap { prepare: false, prefetch: Prefetch::Off },
        Way::Host | Way::Free | Way::Constrained => Overlap::default(),
    };
    RunOptions { seed: Some(seed), truncation: Truncation::Off, overlap, ..RunOptions::default() }
}

impl Run {
    fn record(&self, case: &str, way: Way, round: usize) -> Record {
        Record {
            id: format!("{case} {way:?} {round}"),
            took_ns: nanos(self.took),
            tokens: Some(self.tokens as u64),
            louver_ns: Some(nanos(self.timing.louver)),
            steps_ns: Some(nanos(self.timing.steps)),
            tokens_per_second: Some(self.rate),
            ..Record::default()
        }
    }
}

/// The lines of one arrangement.
fn figures(rounds: &[Vec<Run>]) -> Vec<String> {
    let of = |way: Way| {
        WAYS.iter()
            .position(|w| *w == way)
            .and_then(|at| rounds.get(at))
            .map_or(&[][..], Vec::as_slice)
    };
    let mut lines = Vec::new();
    for way in WAYS {
        let mut rates: Vec<f64> = of(way).iter().map(|run| run.rate).collect();
        let mut timing = Timing::default();
        of(way).iter().for_each(|run| timing.add(&run.timing));
        let (low, middle, high) = quartiles(&mut rates);
        let louver = match way {
            Way::Host => String::new(),
            _ => format!(
                "; Louver {:.2} % of the step time, mask mean {:.1} us, p99 {:.1} us",
                100.0 * timing.share(),
                timing.mask_mean().as_secs_f64() * 1e6,
                timing.mask_quantile(0.99).as_secs_f64() * 1e6
            ),
        };
        lines.push(format!(
            "  {:<12} {middle:>8.0} tokens a second ({low:.0} to {high:.0}){louver}",
            format!("{way:?}")
        ));
    }
    for (one, other) in RATIOS {
        let mut ratios: Vec<f64> =
            of(one).iter().zip(of(other)).map(|(a, b)| a.rate / b.rate).collect();
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
    fn quartiles_of_few() {
        assert_eq!(quartiles(&mut []), (0.0, 0.0, 0.0));
        assert_eq!(quartiles(&mut [3.0]), (3.0, 3.0, 3.0));
        assert_eq!(quartiles(&mut [5.0, 1.0, 3.0, 2.0, 4.0]), (2.0, 3.0, 4.0));
    }
}
