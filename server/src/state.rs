//! Server state shared by all requests: configuration, models, metrics, traces and admission gates.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use louver_formats::{ReasoningBudget, ToolRequest};
use louver_mistralrs::{Louver, Plan, PlanError, TemplateInput};
use mistralrs::{CustomLogitsProcessor, Model};
use tokio::sync::Semaphore;

use crate::config::{Config, ModelConfig, ModelSettings, ReasoningDefault};
use crate::error::{ApiError, ApiFault, ErrorKind};
use crate::http::phase::PhaseWatch;
use crate::inspect::TraceStore;
use crate::limits::RequestLimits;
use crate::mcp::McpServers;
use crate::metrics::Metrics;
use crate::responses::ResponseStore;
use crate::turn::AdmissionGate;

/// A loaded model and the settings under which it is served.
#[derive(Debug)]
pub struct ServedModel {
    /// The name in requests and responses.
    pub name: String,
    /// Alternative names in requests.
    pub aliases: Vec<String>,
    /// The host's model.
    pub model: HostModel,
    /// Louver, set up for this model's tokenizer and wire format.
    pub louver: Louver,
    /// The settings of requests that do not have their own.
    pub settings: ModelSettings,
    /// Unix time at which the model was loaded, in seconds.
    pub created: u64,
    /// Logits processors that every generation applies before Louver's.
    pub processors: LogitsProcessors,
    /// Whether the host runs one generation at a time: see [`Batching`](crate::Batching).
    pub is_serial: bool,
    gates: ModelGates,
}

/// The admission gates of one model.
#[derive(Debug)]
pub(crate) enum ModelGates {
    /// The host batches generations. A gate bounds them, if the model has a limit of its own.
    Batched(Option<AdmissionGate>),
    /// The host runs one generation at a time.
    Serial(SerialGates),
}

/// Admission gates of a model that runs one generation at a time. Requests are compiled while
/// another request generates, so that an expensive compilation does not stall generation.
#[derive(Debug)]
pub(crate) struct SerialGates {
    /// Admits requests to compilation. A request holds its slot until generation starts. The number
    /// is small, because a compiled request may be large.
    pub(crate) planning: AdmissionGate,
    /// Admits one request to generation.
    pub(crate) generation: AdmissionGate,
}

/// Maximum number of requests of a serial model that are compiling, or compiled and waiting.
const MAX_PLANNED: usize = 4;

impl SerialGates {
    fn new(limits: RequestLimits) -> SerialGates {
        let planning = AdmissionGate::new(RequestLimits { concurrent: MAX_PLANNED, ..limits });
        // `queue` bounds the requests that wait at either gate, together.
        let generation = planning.with_shared_queue(1);
        SerialGates { planning, generation }
    }
}

/// Logits processors of the host.
#[derive(Clone, Default)]
pub struct LogitsProcessors(pub Vec<Arc<dyn CustomLogitsProcessor>>);

impl std::fmt::Debug for LogitsProcessors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Processors").field(&self.0.len()).finish()
    }
}

/// The host's model. A wrapper, because the host's type does not implement `Debug`.
pub struct HostModel(pub Model);

impl std::fmt::Debug for HostModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostModel")
    }
}

impl ServedModel {
    /// Combines a loaded model with its configuration. Its settings are the defaults until an
    /// [`App`] has it.
    pub fn new(config: &ModelConfig, model: Model, louver: Louver) -> ServedModel {
        ServedModel {
            name: config.served_name(),
            aliases: config.aliases.clone(),
            model: HostModel(model),
            louver,
            settings: Config::default().settings(config),
            created: now(),
            processors: LogitsProcessors::default(),
            is_serial: config.is_serial(),
            gates: ModelGates::Batched(None),
        }
    }

    /// The model's own gates.
    pub(crate) fn gates(&self) -> &ModelGates {
        &self.gates
    }

    /// Refuses more choices than the model may generate at a time, if it would have to.
    pub(crate) fn admit(&self, choices: usize) -> Result<(), ApiError> {
        let max = self.settings.limits.requests.concurrent;
        if self.is_serial || choices <= max {
            return Ok(());
        }
        let message = format!("must be at most {max} for the model {:?}", self.name);
        Err(ApiError::new(ErrorKind::Invalid, ApiFault::at("/n", "out_of_range", message)))
    }

    /// The `system_fingerprint` of responses. It changes with the model name, the wire format and
    /// Louver's version only.
    pub fn fingerprint(&self) -> String {
        let text = format!(
            "{}\n{}\n{}",
            self.name,
            self.louver.format().unwrap_or(""),
            env!("CARGO_PKG_VERSION")
        );
        format!("louver_{:016x}", fnv1a(text.as_bytes()))
    }

    /// Whether the host accepts requests. Asking mistral.rs for its sender restarts a dead engine.
    pub(crate) fn is_alive(&self) -> bool {
        self.model.0.inner().get_sender(None).is_ok_and(|sender| !sender.is_closed())
    }
}

/// Plans a request that has nothing but reasoning, to find out whether a model can have it.
pub(crate) fn plan_reasoning(
    louver: &Louver,
    reasoning: ReasoningDefault,
    budget: Option<u32>,
) -> Result<Plan, PlanError> {
    let (reasoning, enable_thinking) = reasoning.of_request(None);
    let reasoning_budget = budget.map(ReasoningBudget::Tokens);
    let request = ToolRequest { reasoning, reasoning_budget, ..ToolRequest::default() };
    louver.plan(request, TemplateInput::new(&[], enable_thinking))
}

/// The 64-bit FNV-1a hash (Fowler, Noll and Vo, 1991). Stable across builds, unlike the standard
/// library's hash.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Unix time in seconds.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Server state shared by all requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    inner: Arc<AppInner>,
}

#[derive(Debug)]
struct AppInner {
    config: Config,
    models: Vec<Arc<ServedModel>>,
    metrics: Metrics,
    traces: Arc<TraceStore>,
    responses: ResponseStore,
    mcp_servers: McpServers,
    /// Memory budget of request bodies in transit: one permit per byte.
    body_budget: Arc<Semaphore>,
    generation_gate: AdmissionGate,
    check_gate: AdmissionGate,
    phases: PhaseWatch,
}

impl App {
    /// Creates the state. `models` are those of the configuration, in the same order.
    pub fn new(config: Config, models: Vec<ServedModel>) -> App {
        App::with_mcp_servers(config, models, McpServers::default())
    }

    /// As [`App::new`], with connected MCP servers.
    pub(crate) fn with_mcp_servers(
        config: Config,
        models: Vec<ServedModel>,
        mcp_servers: McpServers,
    ) -> App {
        let generation_gate = AdmissionGate::new(config.limits.requests);
        let with_settings = |(served, of_model): (ServedModel, &ModelConfig)| {
            let mut settings = config.settings(of_model);
            let budget = settings.reasoning_budget;
            if plan_reasoning(&served.louver, ReasoningDefault::Optional, budget).is_err() {
                // The configuration's, for models that can reason.
                settings.reasoning_budget = None;
            }
            let concurrent = settings.limits.requests.concurrent;
            let gates = if served.is_serial {
                ModelGates::Serial(SerialGates::new(config.limits.requests))
            } else {
                let is_limited = concurrent < config.limits.requests.concurrent;
                let gate = is_limited.then(|| generation_gate.with_shared_queue(concurrent));
                ModelGates::Batched(gate)
            };
            Arc::new(ServedModel { settings, gates, ..served })
        };
        let models: Vec<Arc<ServedModel>> =
            models.into_iter().zip(&config.models).map(with_settings).collect();
        let body_budget = Arc::new(Semaphore::new(config.limits.http.bodies_bytes));
        let metrics = Metrics::new(&models);
        let check_gate = AdmissionGate::new(config.limits.requests.for_checks());
        let (traces, phases) = (TraceStore::new(config.limits.traces), PhaseWatch::default());
        let responses = ResponseStore::new(config.limits.responses);
        App {
            inner: Arc::new(AppInner {
                config,
                models,
                metrics,
                traces,
                responses,
                mcp_servers,
                body_budget,
                generation_gate,
                check_gate,
                phases,
            }),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The loaded models.
    pub fn models(&self) -> &[Arc<ServedModel>] {
        &self.inner.models
    }

    /// The model that a request names; the first one if it names none.
    pub fn model(&self, name: Option<&str>) -> Result<&Arc<ServedModel>, ApiError> {
        let mut models = self.models().iter();
        let model = match name {
            None => models.next(),
            Some(name) => {
                models.find(|m| m.name == name || m.aliases.iter().any(|alias| alias == name))
            }
        };
        model.ok_or_else(|| {
            let known_names: Vec<&str> = self.models().iter().map(|m| m.name.as_str()).collect();
            let message = format!(
                "there is no model {:?}; known: {}",
                name.unwrap_or(""),
                known_names.join(", ")
            );
            ApiError::new(ErrorKind::NotFound, ApiFault::at("/model", "model_not_found", message))
        })
    }

    /// The metrics.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The recorded traces.
    pub fn traces(&self) -> &Arc<TraceStore> {
        &self.inner.traces
    }

    /// The stored responses of the Responses API.
    pub(crate) fn responses(&self) -> &ResponseStore {
        &self.inner.responses
    }

    /// The connected MCP servers.
    pub(crate) fn mcp_servers(&self) -> &McpServers {
        &self.inner.mcp_servers
    }

    pub(crate) fn body_budget(&self) -> &Arc<Semaphore> {
        &self.inner.body_budget
    }

    pub(crate) fn generation_gate(&self) -> &AdmissionGate {
        &self.inner.generation_gate
    }

    /// The admission gate of `/v1/louver/check`.
    pub(crate) fn check_gate(&self) -> &AdmissionGate {
        &self.inner.check_gate
    }

    /// The phase of the server's life cycle.
    pub(crate) fn phases(&self) -> &PhaseWatch {
        &self.inner.phases
    }
}
