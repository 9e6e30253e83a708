//! What all requests share.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use louver_mistralrs::Louver;
use mistralrs::{CustomLogitsProcessor, Model};
use tokio::sync::Semaphore;

use crate::config::{Config, ModelConfig};
use crate::error::{ApiError, ApiFault, ErrorKind};
use crate::http::phase::Phases;
use crate::inspect::TraceStore;
use crate::limits::RequestLimits;
use crate::metrics::Metrics;
use crate::turn::Gate;

/// A model that is served.
#[derive(Debug)]
pub struct Served {
    /// What requests call it, and what answers say.
    pub name: String,
    /// Further names.
    pub aliases: Vec<String>,
    /// The host's model.
    pub model: HostModel,
    /// Louver for it.
    pub louver: Louver,
    /// Most tokens of one generation, where that is less than the server's limit.
    pub max_tokens: Option<usize>,
    /// When it was loaded, in seconds since 1970.
    pub created: u64,
    /// Logits processors that every generation gets, before Louver's.
    pub processors: Processors,
    /// The host computes one generation at a time: see [`Batching`](crate::Batching).
    pub one_at_a_time: bool,
    alone: Option<OneAtATime>,
}

/// The gates of a model that runs one generation at a time. Requests are compiled while another
/// one's generation runs, so that a costly compilation delays nobody's tokens.
#[derive(Debug)]
pub(crate) struct OneAtATime {
    /// Requests that are compiled, or compiled and waiting for the generation's place. Few, because
    /// a compiled request may be large.
    pub(crate) planning: Gate,
    /// The generation.
    pub(crate) generation: Gate,
}

/// Most requests of a model with one place that are compiled, or compiled and waiting for it.
const PLANNED: usize = 4;

impl OneAtATime {
    fn new(limits: RequestLimits) -> OneAtATime {
        let planning = Gate::new(RequestLimits { concurrent: PLANNED, ..limits });
        // `queue` bounds those who wait to be planned and those who were planned together.
        let generation = planning.behind(1);
        OneAtATime { planning, generation }
    }
}

/// Logits processors of the host.
#[derive(Clone, Default)]
pub struct Processors(pub Vec<Arc<dyn CustomLogitsProcessor>>);

impl std::fmt::Debug for Processors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Processors").field(&self.0.len()).finish()
    }
}

/// The host's model. `Debug` says nothing of it: the host's type has none.
pub struct HostModel(pub Model);

impl std::fmt::Debug for HostModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostModel")
    }
}

impl Served {
    /// A loaded model as the configuration names it.
    pub fn new(config: &ModelConfig, model: Model, louver: Louver) -> Served {
        Served {
            name: config.served_name(),
            aliases: config.aliases.clone(),
            model: HostModel(model),
            louver,
            max_tokens: config.max_tokens,
            created: now(),
            processors: Processors::default(),
            one_at_a_time: config.is_one_at_a_time(),
            alone: None,
        }
    }

    /// The model's own gates, where it runs one generation at a time.
    pub(crate) fn alone(&self) -> Option<&OneAtATime> {
        self.alone.as_ref()
    }

    /// What answers carry as `system_fingerprint`: the same as long as model, wire format and version are.
    pub fn fingerprint(&self) -> String {
        let text = format!(
            "{}\n{}\n{}",
            self.name,
            self.louver.format().unwrap_or(""),
            env!("CARGO_PKG_VERSION")
        );
        format!("louver_{:016x}", fnv1a(text.as_bytes()))
    }

    /// Whether the host takes requests. mistral.rs starts a dead engine anew when it is asked for its sender.
    pub(crate) fn is_alive(&self) -> bool {
        self.model.0.inner().get_sender(None).is_ok_and(|sender| !sender.is_closed())
    }
}

/// The 64-bit FNV-1a hash (Fowler, Noll and Vo, 1991): stable across builds, which the standard library's is not.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// What all requests share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    models: Vec<Arc<Served>>,
    metrics: Metrics,
    traces: Arc<TraceStore>,
    /// One permit a byte of the bodies that are arriving.
    bodies: Arc<Semaphore>,
    gate: Gate,
    checks: Gate,
    phases: Phases,
}

impl App {
    /// The server's state. The models are those of the configuration, in its order.
    pub fn new(config: Config, models: Vec<Served>) -> App {
        let limits = config.limits.requests;
        let gated = |served: Served| Served {
            alone: served.one_at_a_time.then(|| OneAtATime::new(limits)),
            ..served
        };
        let models: Vec<Arc<Served>> =
            models.into_iter().map(|served| Arc::new(gated(served))).collect();
        let bodies = Arc::new(Semaphore::new(config.limits.http.bodies_bytes));
        let (metrics, gate) = (Metrics::new(&models), Gate::new(config.limits.requests));
        let checks = Gate::new(config.limits.requests.of_checks());
        let (traces, phases) = (TraceStore::new(config.limits.traces), Phases::default());
        App {
            inner: Arc::new(Inner {
                config,
                models,
                metrics,
                traces,
                bodies,
                gate,
                checks,
                phases,
            }),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The models.
    pub fn models(&self) -> &[Arc<Served>] {
        &self.inner.models
    }

    /// The model a request names; the first if it names none.
    pub fn model(&self, name: Option<&str>) -> Result<&Arc<Served>, ApiError> {
        let mut models = self.models().iter();
        let found = match name {
            None => models.next(),
            Some(name) => {
                models.find(|m| m.name == name || m.aliases.iter().any(|alias| alias == name))
            }
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = self.models().iter().map(|m| m.name.as_str()).collect();
            let message =
                format!("there is no model {:?}; known: {}", name.unwrap_or(""), known.join(", "));
            ApiError::new(ErrorKind::NotFound, ApiFault::at("/model", "model_not_found", message))
        })
    }

    /// The counters.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The traces of requests that asked to be recorded.
    pub fn traces(&self) -> &Arc<TraceStore> {
        &self.inner.traces
    }

    pub(crate) fn bodies(&self) -> &Arc<Semaphore> {
        &self.inner.bodies
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// The gate of `/v1/louver/check`.
    pub(crate) fn checks(&self) -> &Gate {
        &self.inner.checks
    }

    /// Whether the server is stopping.
    pub(crate) fn phases(&self) -> &Phases {
        &self.inner.phases
    }
}
