//! Tokens per second with and without a constraint: the same model, prompt, seeds and lengths,
//! measured in alternation.

mod table;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use louver::EngineOptions;
use louver_mistralrs::{
    Draw, LimitPolicy, Louver, Overlap, Plan, Prefetch, Reasoning, RequestParams, RunOptions,
    SchemaOptions, Timing, ToolChoice, Whitespace,
};
use louver_server::ModelConfig;
use mistralrs::{
    CustomLogitsProcessor, Model, RequestBuilder, Response, SamplingParams, TextMessageRole,
};
use serde_json::{Value, json};

use super::banned_ids::without_ids;
use super::record::RequestRecord;
use super::{BenchOutcome, ThroughputArgs, test_server};
use crate::bench::stats::nanos;

/// The share of the unconstrained rate that is aimed at.
const TARGET_RATIO: f64 = 0.99;

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

impl Setup {
    fn is_constrained(self) -> bool {
        !matches!(self, Setup::Host | Setup::Free)
    }
}

/// What is generated.
struct Shape {
    name: &'static str,
    output: OutputKind,
    has_long_prompt: bool,
    /// Numbers of concurrent requests.
    concurrency: &'static [usize],
}

/// What holds generations to their length. None ends early.
enum OutputKind {
    /// The answer's schema.
    Answer(Value),
    /// Tools of which one must be called. Free generations have them in their prompt, too.
    Tools(Value),
}

/// A loaded model and what its generations share.
struct Bench {
    model: Model,
    louver: Louver,
    tokens: usize,
    /// The seed of the first of concurrent generations; the others follow.
    seed: u64,
    /// Keeps generations without a constraint from ending; applied to all, so that all do the same
    /// work.
    endless: Arc<dyn CustomLogitsProcessor>,
}

/// The plans and the prompt of a shape. Requests have the prompt as tokens: rendering and
/// tokenizing it takes longer than some steps, and would spread requests that are to run at once.
struct Arrangement {
    constrained: Plan,
    free: Plan,
    message: String,
    prompt: Vec<u32>,
    /// Whether the host's own route gets the same prompt.
    has_host: bool,
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
    let (mut records, mut low) = (Vec::new(), Vec::new());
    let mut summary = table::header();
    for (name, config) in args.models()? {
        let max_sequences = args.max_concurrency();
        let config = ModelConfig { max_sequences, ..config };
        let bench = Bench::load(config, args.tokens, seed).await?;
        for shape in shapes().iter().filter(|shape| args.includes(shape.name)) {
            let numbers = args.concurrency(shape);
            let arrangement = bench.arrange(shape, args.prompt).context(shape.name)?;
            for concurrency in numbers {
                let case = format!("{name}, {}, {concurrency}", shape.name);
                let rounds = bench
                    .run_rounds(&arrangement, *concurrency, args.rounds)
                    .await
                    .with_context(|| case.clone())?;
                eprintln!("{case}: measured");
                let row = table::Row::new(&case, &rounds);
                summary.push(row.line());
                low.extend((row.constrained_to_free() < TARGET_RATIO).then_some(case.clone()));
                for (setup, runs) in SETUPS.iter().zip(&rounds) {
                    let of_setup = runs.iter().enumerate();
                    records.extend(of_setup.map(|(n, run)| run.record(&case, *setup, n)));
                }
            }
        }
    }
    summary.push(match low.is_empty() {
        true => format!("all arrangements have at least {TARGET_RATIO} of the unconstrained rate"),
        false => format!("below {TARGET_RATIO} of the unconstrained rate: {}", low.join("; ")),
    });
    let passed = !records.is_empty() && records.iter().all(|record| record.tokens > Some(0));
    Ok(BenchOutcome { passed, records, summary })
}

/// Long free text, much structure, and tool calls.
fn shapes() -> [Shape; 3] {
    let row = json!({
        "type": "object",
        "properties": {
            "city": {"enum": ["Oslo", "Lima", "Nairobi"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "rain": {"type": "boolean"},
            "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
            "note": {"type": "string", "maxLength": 40},
        },
        "required": ["city", "days", "rain", "code"], "additionalProperties": false,
    });
    let rows = json!({"type": "array", "items": row, "minItems": 2000});
    let tool = |i: usize| {
        let parameters = json!({
            "type": "object", "properties": {"entries": rows}, "required": ["entries"],
            "additionalProperties": false,
        });
        let function = json!({"name": format!("record_{i}"), "parameters": parameters});
        json!({"type": "function", "function": function})
    };
    let tools: Vec<Value> = (0..2).map(tool).collect();
    let text = json!({"type": "string", "minLength": 20_000});
    let shape = |name, output, has_long_prompt, concurrency| Shape {
        name,
        output,
        has_long_prompt,
        concurrency,
    };
    [
        shape("text", OutputKind::Answer(text), false, &[1, 8]),
        shape("rows", OutputKind::Answer(rows.clone()), false, &[1, 8]),
        shape("calls", OutputKind::Tools(tools.into()), true, &[1, 8, 32, 64]),
    ]
}

impl ThroughputArgs {
    /// The models and their names in the table.
    fn models(&self) -> Result<Vec<(String, ModelConfig)>> {
        let config = test_server::model_or_tiny(self.model.as_deref())?;
        let name = self.model.as_ref().map_or("548 ids".to_owned(), |_| config.served_name());
        let mut models = vec![(name, config)];
        if let Some(tokenizer) = &self.tokenizer {
            let parent = louver_tiny_model::default_parent();
            let dir = louver_tiny_model::ensure_around(&parent, tokenizer)?.dir;
            let tiny = test_server::model_config("wide", None)?;
            let config = ModelConfig { model: dir.display().to_string(), ..tiny };
            models.push(("wide".to_owned(), config));
        }
        models.iter_mut().for_each(|(_, config)| self.model_flags.apply(config));
        Ok(models)
    }

    /// The numbers of concurrent requests of a shape.
    fn concurrency<'a>(&'a self, shape: &'a Shape) -> &'a [usize] {
        if self.at_once.is_empty() { shape.concurrency } else { &self.at_once }
    }

    /// The highest number of concurrent requests of all shapes.
    fn max_concurrency(&self) -> Option<NonZeroUsize> {
        let shapes = shapes();
        let numbers = shapes.iter().flat_map(|shape| self.concurrency(shape));
        numbers.copied().max().and_then(NonZeroUsize::new)
    }

    fn includes(&self, shape: &str) -> bool {
        self.shapes.is_empty() || self.shapes.iter().any(|name| name == shape)
    }
}

impl Arrangement {
    /// Adds words to the message until the prompt has `tokens` tokens.
    fn lengthen(&mut self, tokens: usize) -> Result<()> {
        loop {
            let message = json!({"role": "user", "content": self.message});
            (self.constrained, self.prompt) = self.constrained.for_messages(&[message])?;
            let missing = tokens.saturating_sub(self.prompt.len());
            if missing == 0 {
                return Ok(());
            }
            // A word has at least one token.
            self.message.push_str(&" word".repeat(missing.div_ceil(4)));
        }
    }
}

impl Bench {
    async fn load(config: ModelConfig, tokens: usize, seed: u64) -> Result<Bench> {
        let config = ModelConfig { prefix_cache: None, ..config };
        let (model, louver) =
            louver_server::load_model(&config, EngineOptions::default(), None).await?;
        let stops = louver.engine().vocab().stops();
        let stops: Vec<usize> = stops.iter().map(|id| id.raw() as usize).collect();
        let endless = without_ids(move |id| stops.contains(&id));
        Ok(Bench { model, louver, tokens, seed, endless })
    }

    fn arrange(&self, shape: &Shape, prompt: usize) -> Result<Arrangement> {
        let options = SchemaOptions::default().with_whitespace(Whitespace::PythonLike);
        let (plan, tools) = match &shape.output {
            OutputKind::Answer(schema) => (self.louver.answer(schema), &Value::Null),
            OutputKind::Tools(tools) => {
                (self.louver.tools(tools).choice(ToolChoice::Required), tools)
            }
        };
        let mut arrangement = Arrangement {
            constrained: plan.reasoning(Reasoning::Off).schema_options(options).build()?,
            free: self.louver.unconstrained(tools),
            message: "Say something.".to_owned(),
            prompt: Vec::new(),
            has_host: tools.is_null(),
        };
        arrangement.lengthen(if shape.has_long_prompt { prompt } else { 0 })?;
        Ok(arrangement)
    }

    /// Measures all setups in rounds; each round begins with another setup. The first round is a
    /// warm-up and not counted.
    async fn run_rounds(
        &self,
        arrangement: &Arrangement,
        concurrency: usize,
        rounds: usize,
    ) -> Result<Vec<Vec<Measurement>>> {
        let mut runs: Vec<Vec<Measurement>> = SETUPS.iter().map(|_| Vec::new()).collect();
        for round in 0..=rounds {
            for step in 0..SETUPS.len() {
                let at = (round + step) % SETUPS.len();
                if SETUPS[at] == Setup::Host && !arrangement.has_host {
                    continue;
                }
                let run = self.measure(arrangement, SETUPS[at], concurrency).await?;
                if round > 0 {
                    runs[at].push(run);
                }
            }
        }
        Ok(runs)
    }

    async fn measure(
        &self,
        arrangement: &Arrangement,
        setup: Setup,
        concurrency: usize,
    ) -> Result<Measurement> {
        let started = Instant::now();
        let seeds = (self.seed..).take(concurrency);
        let ran = futures::future::try_join_all(seeds.map(async |seed| match setup {
            Setup::Host => self.generate_with_host(arrangement).await,
            _ => self.generate(arrangement, seed, setup).await,
        }));
        let ran = ran.await?;
        let took = started.elapsed();
        let mut timing = Timing::default();
        ran.iter().for_each(|(_, one)| timing.add(one));
        let tokens = ran.iter().map(|(tokens, _)| tokens).sum::<usize>();
        if tokens != concurrency * self.tokens {
            bail!("{tokens} tokens in place of {}", concurrency * self.tokens);
        }
        Ok(Measurement { rate: tokens as f64 / took.as_secs_f64(), timing, took, tokens })
    }

    fn sampling(&self) -> SamplingParams {
        // Without a temperature, the host would take the likeliest token.
        SamplingParams {
            temperature: Some(1.0),
            max_len: Some(self.tokens),
            ..SamplingParams::neutral()
        }
    }

    async fn generate(
        &self,
        arrangement: &Arrangement,
        seed: u64,
        setup: Setup,
    ) -> Result<(usize, Timing)> {
        let Arrangement { constrained, free, prompt, .. } = arrangement;
        let plan = if setup.is_constrained() { constrained } else { free };
        let params = RequestParams::default()
            .with_sampling(self.sampling())
            .with_processors(vec![self.endless.clone()])
            .with_options(options(seed, setup));
        let streams = plan.start(&self.model, prompt.clone(), params).await?;
        let stream = streams.into_iter().next().context("one choice, one stream")?;
        let generation = stream.finish().await?;
        Ok((generation.tokens.len(), generation.timing))
    }

    /// Generates through the host's own route.
    async fn generate_with_host(&self, arrangement: &Arrangement) -> Result<(usize, Timing)> {
        let request = RequestBuilder::new()
            .set_sampling(self.sampling())
            .enable_thinking(false)
            .add_logits_processor(self.endless.clone())
            .add_message(TextMessageRole::User, &arrangement.message);
        let mut stream = self.model.stream_chat_request(request).await?;
        while let Some(response) = stream.next().await {
            let Response::Chunk(chunk) = response else { bail!("the host failed") };
            let finish = chunk.choices.first().and_then(|choice| choice.finish_reason.as_deref());
            if let Some(other) = finish.filter(|finish| *finish != "length") {
                bail!("the host ended with {other:?}");
            }
        }
        // Not every token has a chunk, nor has the last one always.
        Ok((self.tokens, Timing::default()))
    }
}

fn options(seed: u64, setup: Setup) -> RunOptions {
    let overlap = match setup {
        Setup::ConstrainedNoOverlap => {
            Overlap::default().with_prepare(None).with_prefetch(Prefetch::Off)
        }
        _ => Overlap::default(),
    };
    let (draw, seed) = match setup {
        Setup::ConstrainedHostDraws => (Draw::Host, None),
        _ => (Draw::Louver, Some(seed)),
    };
    RunOptions::default()
        .with_draw(draw)
        .with_seed(seed)
        .with_limit_policy(LimitPolicy::Off)
        .with_overlap(overlap)
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
