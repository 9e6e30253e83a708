//! A loaded model: the host's model, Louver's part of it, its settings and its admission gates.

use std::sync::Arc;

use louver_formats::{ReasoningBudget, ToolRequest};
use louver_mistralrs::{Louver, Plan, PlanError, TemplateInput};
use mistralrs::{CustomLogitsProcessor, Model};

use crate::admission::AdmissionGate;
use crate::clock::unix_seconds;
use crate::config::{Config, ModelConfig, ModelSettings, ReasoningDefault};
use crate::error::{ApiError, ApiFault, ErrorKind};
use crate::hash::fnv1a;

/// A loaded model and the settings under which it is served.
pub struct ServedModel {
    /// The name in requests and responses.
    pub name: String,
    /// Alternative names in requests.
    pub aliases: Vec<String>,
    /// The host's model.
    pub model: Model,
    /// Louver, set up for this model's tokenizer and wire format.
    pub louver: Louver,
    /// The settings of requests that do not have their own.
    pub settings: ModelSettings,
    /// Unix time at which the model was loaded, in seconds.
    pub created: u64,
    /// Logits processors that every generation applies before Louver's.
    pub processors: Vec<Arc<dyn CustomLogitsProcessor>>,
    /// Whether the host runs one generation at a time: see [`Batching`](crate::Batching).
    pub is_serial: bool,
    pub(crate) gates: ModelGates,
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
    /// The gates of one model. Their queue is that of the server's gate.
    pub(crate) fn new(of_server: &AdmissionGate) -> SerialGates {
        SerialGates {
            planning: of_server.with_shared_queue(MAX_PLANNED),
            generation: of_server.with_shared_queue(1),
        }
    }
}

/// By its name: the host's types do not implement `Debug`.
impl std::fmt::Debug for ServedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedModel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServedModel {
    /// Combines a loaded model with its configuration. Its settings are the defaults until an
    /// [`App`](crate::App) has it.
    pub fn new(config: &ModelConfig, model: Model, louver: Louver) -> ServedModel {
        ServedModel {
            name: config.served_name(),
            aliases: config.aliases.clone(),
            model,
            louver,
            settings: Config::default().settings(config),
            created: unix_seconds(),
            processors: Vec::new(),
            is_serial: config.is_serial(),
            gates: ModelGates::Batched(None),
        }
    }

    /// Refuses more choices than the model may generate at a time, if it would have to. `pointer`
    /// is the member that asks for them.
    pub(crate) fn check_choices(&self, choices: usize, pointer: &str) -> Result<(), ApiError> {
        let max = self.settings.limits.requests.concurrent;
        if self.is_serial || choices <= max {
            return Ok(());
        }
        let message = format!("must be at most {max} for the model {:?}", self.name);
        let fault = ApiFault::at(pointer, "out_of_range", message);
        Err(ApiError::new(ErrorKind::Invalid, fault))
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
        self.model.inner().get_sender(None).is_ok_and(|sender| !sender.is_closed())
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
    let request =
        ToolRequest::default().with_reasoning(reasoning).with_reasoning_budget(reasoning_budget);
    louver.plan(request, TemplateInput::new(&[], enable_thinking))
}
