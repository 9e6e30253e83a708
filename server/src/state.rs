//! Server state shared by all requests: configuration, models, metrics, traces and admission gates.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::admission::AdmissionGate;
use crate::config::{Config, ModelConfig, ReasoningDefault};
use crate::error::{ApiError, ApiFault, ErrorKind};
use crate::http::phase::PhaseWatch;
use crate::inspect::TraceStore;
use crate::mcp::McpServers;
use crate::metrics::Metrics;
use crate::response_store::ResponseStore;
use crate::served_model::{ModelGates, SerialGates, ServedModel, plan_reasoning};

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
                ModelGates::Serial(SerialGates::new(&generation_gate))
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
