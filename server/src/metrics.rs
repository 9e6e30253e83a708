//! Metrics of `GET /metrics`: request and generation metrics, and engine statistics read at each
//! scrape.

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
use crate::served_model::ServedModel;

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

/// Labels of per-model metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ModelLabels {
    pub(crate) model: String,
}

type CounterByModel = Family<ModelLabels, Counter>;
type HistogramByModel = Family<ModelLabels, Histogram>;

/// All metrics. Cost of an update: an atomic addition, plus a read lock for labelled metrics.
// Many fields: one for each metric.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) errors: Family<ErrorLabels, Counter>,
    pub(crate) active: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) generations: Gauge,
    pub(crate) finished: Family<FinishLabels, Counter>,
    pub(crate) prompt_tokens: CounterByModel,
    pub(crate) generated_tokens: CounterByModel,
    pub(crate) calls: CounterByModel,
    pub(crate) forced: CounterByModel,
    pub(crate) refused: CounterByModel,
    pub(crate) truncated: CounterByModel,
    pub(crate) repaired: CounterByModel,
    pub(crate) violations: CounterByModel,
    pub(crate) unchecked: CounterByModel,
    pub(crate) compile: HistogramByModel,
    pub(crate) mask: HistogramByModel,
    pub(crate) first_token: HistogramByModel,
    pub(crate) louver: Family<ModelLabels, Counter<f64, AtomicU64>>,
    pub(crate) steps: Family<ModelLabels, Counter<f64, AtomicU64>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// A histogram with buckets from 1 µs to 1 s, by factors of two.
fn microsecond_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 2.0, 21))
}

/// A histogram with buckets from 1 ms to 2 minutes, by factors of two.
fn millisecond_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-3, 2.0, 18))
}

impl Metrics {
    pub(crate) fn new(models: &[Arc<ServedModel>]) -> Metrics {
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
            compile: Family::new_with_constructor(microsecond_histogram),
            mask: Family::new_with_constructor(microsecond_histogram),
            first_token: Family::new_with_constructor(millisecond_histogram),
            louver: Family::default(),
            steps: Family::default(),
        };
        let mut registry = metrics.registry.lock();
        metrics.register(&mut registry);
        registry.register_collector(Box::new(EngineCollector(models.to_vec())));
        models
            .iter()
            .for_each(|served| metrics.initialize(&ModelLabels { model: served.name.clone() }));
        drop(registry);
        metrics
    }

    /// Creates the per-model metrics, so that they are exported as zero before their first update.
    fn initialize(&self, labels: &ModelLabels) {
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
        registry.register("active_requests", "Requests in progress", self.active.clone());
        registry.register(
            "waiting_requests",
            "Requests waiting for admission",
            self.waiting.clone(),
        );
        registry.register("running_generations", "Running generations", self.generations.clone());
        registry.register(
            "generations",
            "Finished generations by finish reason",
            self.finished.clone(),
        );
        registry.register("prompt_tokens", "Prompt tokens", self.prompt_tokens.clone());
        registry.register("generated_tokens", "Generated tokens", self.generated_tokens.clone());
        registry.register("dispatch_fired", "Tool calls started", self.calls.clone());
        registry.register(
            "forced_tokens",
            "Tokens that were the only one allowed",
            self.forced.clone(),
        );
        let refused = "Steps at which the most likely token was not allowed";
        registry.register("refused_tokens", refused, self.refused.clone());
        let truncated = "Generations ended by a length limit before their grammar was complete";
        registry.register("truncated", truncated, self.truncated.clone());
        registry.register(
            "repaired_rows",
            "Unusable rows of logits that were repaired",
            self.repaired.clone(),
        );
        let violations =
            "Calls and responses that violate a relaxed schema, found by the policy validate";
        registry.register("violations", violations, self.violations.clone());
        let unchecked = "Calls and responses that the policy validate could not check";
        registry.register("unchecked", unchecked, self.unchecked.clone());
        let compile = "Time to lower and compile a request's grammar";
        registry.register("compile_seconds", compile, self.compile.clone());
        registry.register("mask_seconds", "Time to compute and apply one mask", self.mask.clone());
        let first = "Time from a request's arrival to its first event";
        registry.register("first_token_seconds", first, self.first_token.clone());
        registry.register(
            "work_seconds",
            "Time of Louver's own work within decoding steps",
            self.louver.clone(),
        );
        registry.register(
            "step_seconds",
            "Time of decoding steps, including the model",
            self.steps.clone(),
        );
    }

    /// Counts an error.
    pub(crate) fn count(&self, error: &ApiError) {
        let labels = ErrorLabels { kind: error.kind.name(), code: error.first().code };
        self.errors.get_or_create(&labels).inc();
    }

    /// The metrics in OpenMetrics text format.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry.lock())?;
        Ok(text)
    }
}

/// Exports the engine statistics of all models, read at each scrape.
struct EngineCollector(Vec<Arc<ServedModel>>);

impl fmt::Debug for EngineCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engines").finish_non_exhaustive()
    }
}

/// Metric name, help text and accessor.
type EngineCounter = (&'static str, &'static str, fn(&EngineStats, &PoolStats) -> u64);

const ENGINE_COUNTERS: [EngineCounter; 9] = [
    (
        "limits_reached",
        "Masks and tokens that exceeded a limit, which ends their generation",
        |e, _| e.limits_reached,
    ),
    ("overlap_prefetches", "Prefetches with masks to compute", |e, _| e.prefetches),
    ("overlap_prefetches_dropped", "Prefetches superseded by later ones", |e, _| {
        e.background_jobs_dropped
    }),
    ("overlap_built", "Masks computed ahead of time", |e, _| e.background_masks_built),
    ("overlap_known", "Masks requested ahead of time that were already cached", |e, _| {
        e.background_masks_cached
    }),
    ("overlap_used", "Masks computed ahead of time that were used", |e, _| e.background_masks_used),
    ("overlap_lost", "Masks computed ahead of time too late to be used", |e, _| {
        e.background_masks_discarded
    }),
    ("cache_hits", "Mask entries found in the cross-grammar mask pool", |_, p| p.hits),
    ("cache_misses", "Mask entries that had to be built", |_, p| p.misses),
];

impl Collector for EngineCollector {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The exported name of every metric, with `_total` for counters.
    fn exported_names() -> BTreeSet<String> {
        let metrics = Metrics::new(&[]);
        let model = ModelLabels { model: "a".to_owned() };
        metrics.initialize(&model);
        // Families without samples are not exported.
        drop(metrics.requests.get_or_create(&RequestLabels { route: "/", code: 200 }));
        drop(metrics.errors.get_or_create(&ErrorLabels { kind: "a", code: "b" }));
        drop(metrics.finished.get_or_create(&FinishLabels { model: "a".into(), finish: "stop" }));
        drop(metrics.louver.get_or_create(&model));
        drop(metrics.steps.get_or_create(&model));
        let text = metrics.text().unwrap();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types
            .filter_map(|line| line.split_once(' '))
            .map(|(name, kind)| match kind {
                "counter" => format!("{name}_total"),
                _ => name.to_owned(),
            })
            .collect()
    }

    #[test]
    fn the_dashboard_has_every_metric() {
        let dashboard = include_str!("../../docs/grafana/louver.json");
        let json: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        assert!(json["panels"].as_array().unwrap().len() > 10);
        let words = dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let used: BTreeSet<String> = words
            .filter(|word| word.starts_with("louver_"))
            .map(|word| word.strip_suffix("_bucket").unwrap_or(word).to_owned())
            .collect();
        assert_eq!(used, exported_names());
    }
}
