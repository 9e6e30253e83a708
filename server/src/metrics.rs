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

impl ModelLabels {
    pub(crate) fn of(served: &ServedModel) -> ModelLabels {
        ModelLabels { model: served.name.clone() }
    }
}

/// A counter of seconds.
type SecondsCounter = Counter<f64, AtomicU64>;

/// Defines [`Metrics`], two lines for each metric: its help text, and its field, whose name is the
/// exported one without `louver_` and without `_total` (of counters). Metrics by model have a
/// constructor as well, and are exported as zero before their first update.
macro_rules! metrics {
    (
        $($(#[doc = $help:literal])+ $name:ident: $metric:ty,)+
        by model {
            $($(#[doc = $model_help:literal])+ $by_model:ident: $of_model:ty = $new:expr,)+
        }
    ) => {
        /// All metrics. Cost of an update: an atomic addition, plus a read lock for labelled
        /// metrics.
        pub(crate) struct Metrics {
            registry: Mutex<Registry>,
            $($(#[doc = $help])+ pub(crate) $name: $metric,)+
            $($(#[doc = $model_help])+ pub(crate) $by_model: Family<ModelLabels, $of_model>,)+
        }

        impl Metrics {
            /// The names of the fields.
            #[cfg(test)]
            const NAMES: &[&str] = &[$(stringify!($name),)+ $(stringify!($by_model),)+];

            /// Creates and registers all metrics.
            fn registered() -> Metrics {
                let mut registry = Registry::with_prefix("louver");
                $(
                    let $name = <$metric>::default();
                    registry.register(stringify!($name), help(concat!($($help),+)), $name.clone());
                )+
                $(
                    let $by_model = Family::new_with_constructor($new as fn() -> $of_model);
                    let text = help(concat!($($model_help),+));
                    registry.register(stringify!($by_model), text, $by_model.clone());
                )+
                Metrics { registry: Mutex::new(registry), $($name,)+ $($by_model,)+ }
            }

            /// Creates the samples of a model.
            fn initialize(&self, labels: &ModelLabels) {
                $(drop(self.$by_model.get_or_create(labels));)+
            }
        }
    };
}

metrics! {
    /// Requests by route and status.
    requests: Family<RequestLabels, Counter>,
    /// Errors by type and code.
    errors: Family<ErrorLabels, Counter>,
    /// Requests in progress.
    active_requests: Gauge,
    /// Requests waiting for admission.
    waiting_requests: Gauge,
    /// Running generations.
    running_generations: Gauge,
    /// Finished generations by finish reason.
    generations: Family<FinishLabels, Counter>,
    by model {
        /// Prompt tokens.
        prompt_tokens: Counter = Counter::default,
        /// Generated tokens.
        generated_tokens: Counter = Counter::default,
        /// Tool calls started.
        calls_started: Counter = Counter::default,
        /// Tokens that were the only one allowed.
        forced_tokens: Counter = Counter::default,
        /// Steps at which the most likely token was not allowed.
        refused_tokens: Counter = Counter::default,
        /// Generations ended by a length limit before their grammar was complete.
        truncated: Counter = Counter::default,
        /// Unusable rows of logits that were repaired.
        repaired_rows: Counter = Counter::default,
        /// Calls and responses that violate a relaxed schema, found by the policy validate.
        violations: Counter = Counter::default,
        /// Calls and responses that the policy validate could not check.
        unchecked: Counter = Counter::default,
        /// Time to lower and compile a request's grammar.
        compile_seconds: Histogram = microsecond_histogram,
        /// Work (fuel) to lower and compile a request's grammar, also of refused requests.
        compile_fuel_units: Histogram = fuel_histogram,
        /// Time to compute and apply one mask.
        mask_seconds: Histogram = microsecond_histogram,
        /// Time from a request's arrival to its first event.
        first_token_seconds: Histogram = millisecond_histogram,
        /// Time of Louver's own work within decoding steps.
        work_seconds: SecondsCounter = SecondsCounter::default,
        /// Time of decoding steps, including the model.
        step_seconds: SecondsCounter = SecondsCounter::default,
    }
}

/// A help text from a doc comment. The exporter adds the period.
fn help(doc_comment: &str) -> &str {
    doc_comment.trim().trim_end_matches('.')
}

/// A histogram with buckets from 1 µs to 1 s, by factors of two.
fn microsecond_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 2.0, 21))
}

/// A histogram with buckets from 1 ms to 2 minutes, by factors of two.
fn millisecond_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-3, 2.0, 18))
}

/// A histogram with buckets from 1,000 units (10 µs) to 131,072,000, by factors of two.
fn fuel_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e3, 2.0, 18))
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new(models: &[Arc<ServedModel>]) -> Metrics {
        let metrics = Metrics::registered();
        metrics.registry.lock().register_collector(Box::new(EngineCollector(models.to_vec())));
        for served in models {
            metrics.initialize(&ModelLabels::of(served));
        }
        metrics
    }

    /// Counts an error.
    pub(crate) fn count_error(&self, error: &ApiError) {
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

const ENGINE_COUNTERS: [EngineCounter; 10] = [
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
    ("preparations_exhausted", "Preparations of requests that spent their fuel", |e, _| {
        e.preparations_exhausted
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
                let labels = ModelLabels::of(served);
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
        metrics.initialize(&ModelLabels { model: "a".to_owned() });
        // Families without samples are not exported.
        drop(metrics.requests.get_or_create(&RequestLabels { route: "/", code: 200 }));
        drop(metrics.errors.get_or_create(&ErrorLabels { kind: "a", code: "b" }));
        let finish = FinishLabels { model: "a".to_owned(), finish: "stop" };
        drop(metrics.generations.get_or_create(&finish));
        let text = metrics.text().unwrap();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names: BTreeSet<String> = types
            .filter_map(|line| line.split_once(' '))
            .map(|(name, kind)| match kind {
                "counter" => format!("{name}_total"),
                _ => name.to_owned(),
            })
            .collect();
        assert_eq!(names.len(), Metrics::NAMES.len() + ENGINE_COUNTERS.len(), "{names:?}");
        names
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
