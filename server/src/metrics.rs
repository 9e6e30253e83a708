//! What `GET /metrics` shows: counters of requests and generations, and at each scrape what the models' engines have counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use louver::engine::EngineStats;
use louver::mask::PoolStats;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::error::ApiError;
use crate::state::Served;

/// Labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) route: &'static str,
    pub(crate) code: u16,
}

/// Labels of an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ErrorLabels {
    pub(crate) kind: &'static str,
    pub(crate) code: &'static str,
}

/// Labels of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct FinishLabels {
    pub(crate) model: String,
    pub(crate) finish: &'static str,
}

/// Labels of what is counted for each model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ModelLabels {
    pub(crate) model: String,
}

type ByModel = Family<ModelLabels, Counter>;
type Times = Family<ModelLabels, Histogram>;

/// All counters. Cost of counting: an atomic addition, and a read lock where there are labels.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) errors: Family<ErrorLabels, Counter>,
    pub(crate) active: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) generations: Gauge,
    pub(crate) finished: Family<FinishLabels, Counter>,
    pub(crate) prompt_tokens: ByModel,
    pub(crate) generated_tokens: ByModel,
    pub(crate) calls: ByModel,
    pub(crate) forced: ByModel,
    pub(crate) refused: ByModel,
    pub(crate) truncated: ByModel,
    pub(crate) repaired: ByModel,
    pub(crate) violations: ByModel,
    pub(crate) unchecked: ByModel,
    pub(crate) compile: Times,
    pub(crate) mask: Times,
    pub(crate) first_token: Times,
    pub(crate) louver: Family<ModelLabels, Counter<f64, AtomicU64>>,
    pub(crate) steps: Family<ModelLabels, Counter<f64, AtomicU64>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// From 1 us to 1 s, each twice the one before.
fn short() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 2.0, 21))
}

/// From 1 ms to 2 minutes.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(1e-3, 2.0, 18))
}

impl Metrics {
    pub(crate) fn new(models: &[Arc<Served>]) -> Metrics {
        let metrics = Metrics {
            registry: Mutex::new(Registry::with_prefix("louver")),
            requests: Family::default(),
            errors: Family::default(),
            active: Gauge::default(),
            waiting: Gauge::default(),
            generations: Gauge::default(),
            finished: Family::default(),
            prompt_tokens: Family::default(),
            generated_tokens: Family::default(),
            calls: Family::default(),
            forced: Family::default(),
            refused: Family::default(),
            truncated: Family::default(),
            repaired: Family::default(),
            violations: Family::default(),
            unchecked: Family::default(),
            compile: Family::new_with_constructor(short),
            mask: Family::new_with_constructor(short),
            first_token: Family::new_with_constructor(long),
            louver: Family::default(),
            steps: Family::default(),
        };
        let mut registry = metrics.registry.lock();
        metrics.register(&mut registry);
        registry.register_collector(Box::new(Engines(models.to_vec())));
        models
            .iter()
            .for_each(|served| metrics.show_zeros(&ModelLabels { model: served.name.clone() }));
        drop(registry);
        metrics
    }

    /// Counters that have counted nothing are shown too.
    fn show_zeros(&self, labels: &ModelLabels) {
        let counters = [
            &self.prompt_tokens,
            &self.generated_tokens,
            &self.calls,
            &self.forced,
            &self.refused,
            &self.truncated,
            &self.repaired,
            &self.violations,
            &self.unchecked,
        ];
        counters.into_iter().for_each(|counter| drop(counter.get_or_create(labels)));
        [&self.compile, &self.mask, &self.first_token]
            .into_iter()
            .for_each(|times| drop(times.get_or_create(labels)));
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("requests", "Requests by route and status", self.requests.clone());
        registry.register("errors", "Errors by type and code", self.errors.clone());
        registry.register(
            "active_requests",
            "Requests that are not answered in full yet",
            self.active.clone(),
        );
        registry.register(
            "waiting_requests",
            "Requests that wait for their turn",
            self.waiting.clone(),
        );
        registry.register(
            "running_generations",
            "Generations that are running",
            self.generations.clone(),
        );
        registry.register(
            "generations",
            "Generations that are over, by how they ended",
            self.finished.clone(),
        );
        registry.register("prompt_tokens", "Tokens of prompts", self.prompt_tokens.clone());
        registry.register("generated_tokens", "Generated tokens", self.generated_tokens.clone());
        registry.register("dispatch_fired", "Calls the models have begun", self.calls.clone());
        registry.register("forced_tokens", "Tokens without an alternative", self.forced.clone());
        let refused = "Steps at which the likeliest token was not allowed";
        registry.register("refused_tokens", refused, self.refused.clone());
        let truncated = "Generations that a length limit ended before their grammar did";
        registry.register("truncated", truncated, self.truncated.clone());
        registry.register(
            "repaired_rows",
            "Rows of logits that were unusable",
            self.repaired.clone(),
        );
        let violations =
            "Calls and answers against a schema that was relaxed, found by the policy validate";
        registry.register("violations", violations, self.violations.clone());
        let unchecked = "Calls and answers that the policy validate could not validate";
        registry.register("unchecked", unchecked, self.unchecked.clone());
        let compile = "Time to lower and compile a request's grammar";
        registry.register("compile_seconds", compile, self.compile.clone());
        registry.register("mask_seconds", "Time to make and apply one mask", self.mask.clone());
        let first = "Time from a request's arrival to its first event";
        registry.register("first_token_seconds", first, self.first_token.clone());
        registry.register("work_seconds", "Louver's own work within steps", self.louver.clone());
        registry.register(
            "step_seconds",
            "Time of the steps, the model's included",
            self.steps.clone(),
        );
    }

    /// Counts an error.
    pub(crate) fn count(&self, error: &ApiError) {
        let labels = ErrorLabels { kind: error.kind.name(), code: error.first().code };
        self.errors.get_or_create(&labels).inc();
    }

    /// The text of a scrape.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry.lock())?;
        Ok(text)
    }
}

/// The models' engine counters, read at each scrape.
struct Engines(Vec<Arc<Served>>);

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engines").finish_non_exhaustive()
    }
}

/// Name, meaning and how it is read.
type EngineCounter = (&'static str, &'static str, fn(&EngineStats, &PoolStats) -> u64);

const ENGINE_COUNTERS: [EngineCounter; 9] = [
    (
        "limits_reached",
        "Masks and tokens given up at a limit, which ends their generation",
        |e, _| e.limits_reached,
    ),
    ("overlap_prefetches", "Prefetches that had something to do", |e, _| e.prefetches),
    ("overlap_prefetches_dropped", "Prefetches that gave way to later ones", |e, _| {
        e.prefetches_dropped
    }),
    ("overlap_built", "Masks made ahead", |e, _| e.ahead_built),
    ("overlap_known", "Masks that were to be made ahead and were known", |e, _| e.ahead_known),
    ("overlap_used", "Masks made ahead that were then asked for", |e, _| e.ahead_used),
    ("overlap_lost", "Masks that were made ahead too late", |e, _| e.ahead_lost),
    ("cache_hits", "Mask entries found in the pool all grammars share", |_, p| p.hits),
    ("cache_misses", "Mask entries that had to be built", |_, p| p.misses),
];

impl Collector for Engines {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let stats: Vec<_> = self
            .0
            .iter()
            .map(|m| (m, m.louver.engine().stats(), m.louver.engine().pool_stats()))
            .collect();
        for (name, help, read) in ENGINE_COUNTERS {
            let mut descriptor =
                encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (served, engine, pool) in &stats {
                let labels = ModelLabels { model: served.name.clone() };
                ConstCounter::new(read(engine, pool)).encode(descriptor.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
