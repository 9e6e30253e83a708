//! One model turn per request: admission, planning, and its running choices as one event stream.

mod admission;
mod queue;
mod rounds;
mod running;
mod sse;
mod work;

use std::sync::Arc;
use std::time::Instant;

use louver::spec::json::Json;
use louver_formats::{Reasoning, ReasoningBudget, ToolRequest};
use louver_mistralrs::{
    Draw, Overlap, Plan, PlanError, Record, RequestError, Run, RunOptions, TemplateInput, call_ids,
};
use mistralrs::SamplingParams;
use serde_json::Value;
use tokio::time::timeout_at;

use crate::error::{ApiError, ApiFault, ErrorKind};
use crate::http::phase::ServerPhase;
use crate::metrics::ModelLabels;
use crate::request::members::Faults;
use crate::request::options::{Extension, Sampling, Thinking};
use crate::request::pointers::PointerMap;
use crate::state::{App, ModelGates, ServedModel};
use crate::telemetry;

pub(crate) use admission::AdmissionGate;
pub(crate) use rounds::{ServerTools, ToolResult};
pub(crate) use running::Options as TurnOptions;
use running::Permits;
pub(crate) use running::{Progress, RunningTurn};
pub(crate) use sse::{DONE, EventWriter, data_event, stream_events, typed_event};
pub(crate) use work::BlockingWork;

/// Number of alternative tokens that a trace records per step.
const TRACE_ALTERNATIVES: usize = 8;

/// What the model continues.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Prompt {
    /// A conversation, in the form that chat templates take.
    Messages(Vec<Value>),
    /// Text without a chat template. The tokenizer adds its special tokens.
    Text(String),
    /// Tokens, as they are.
    Tokens(Vec<u32>),
}

impl Default for Prompt {
    fn default() -> Self {
        Prompt::Messages(Vec::new())
    }
}

/// A generation request, independent of the route it arrived on.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnRequest {
    /// The model's name; `None` selects the first model.
    pub(crate) model: Option<String>,
    /// What the model continues.
    pub(crate) prompt: Prompt,
    /// Tools, response format and other constraints on the output.
    pub(crate) tools: ToolRequest,
    /// The request's tools, for the chat template.
    pub(crate) template_tools: Vec<Value>,
    /// Whether reasoning is on, off or unspecified.
    pub(crate) thinking: Thinking,
    /// Sampling parameters and length limits.
    pub(crate) sampling: Sampling,
    /// The request's `louver` member.
    pub(crate) extension: Extension,
    /// Whether the response is streamed.
    pub(crate) is_streamed: bool,
    /// The response id, which traces share.
    pub(crate) id: String,
    /// Maps JSON pointers of the rewritten body to the request as sent.
    pub(crate) pointers: PointerMap,
    /// The tools that the server runs, if the request offers any.
    pub(crate) server_tools: Option<Arc<ServerTools>>,
    /// The route and the request as sent, if a trace is to be recorded.
    pub(crate) trace_source: Option<(&'static str, Value)>,
}

impl TurnRequest {
    /// Reads the members that constrain the output: tools, response format, stop strings. Faults
    /// get pointers into the request as sent; those of a pointer that has a fault are left out.
    pub(crate) fn read_tools(&mut self, body: &Json, pointers: &PointerMap, faults: &mut Faults) {
        match ToolRequest::parse(body) {
            Ok(tools) => self.tools = tools,
            Err(error) => {
                let error =
                    ApiError::from(error).map_pointers(|pointer| pointers.original(pointer));
                let known: Vec<Option<String>> =
                    faults.iter().map(|fault| fault.param.clone()).collect();
                let is_new =
                    |fault: &&ApiFault| fault.param.is_none() || !known.contains(&fault.param);
                faults.extend(error.faults().filter(is_new).cloned());
            }
        }
    }

    /// The constraints under a model's settings, and the input of the chat template besides the
    /// messages. The request's own members come first.
    fn resolve(&self, served: &ServedModel) -> (ToolRequest, TemplateInput) {
        let (settings, extension) = (&served.settings, &self.extension);
        let (reasoning, enable_thinking) = settings.reasoning.of_request(self.thinking.is_on());
        let reasons = reasoning != Reasoning::Off && matches!(self.prompt, Prompt::Messages(_));
        let default_budget = settings.reasoning_budget.filter(|_| reasons);
        let reasoning_budget = extension.reasoning_budget.or(default_budget);
        let tools = ToolRequest {
            strictness: settings.strict_tools.into(),
            limits: served.louver.engine().options().limits.clone(),
            schema_options: extension.schema_options(settings.schema_options),
            parallel: extension.parallel(self.tools.parallel),
            reasoning_budget: reasoning_budget.map(ReasoningBudget::Tokens),
            reasoning,
            ..self.tools.clone()
        };
        (tools, TemplateInput::new(&self.template_tools, enable_thinking))
    }

    fn tool_count(&self) -> usize {
        let ToolRequest { tools, customs, builtins, .. } = &self.tools;
        tools.len() + customs.len() + builtins.len()
    }

    fn choices(&self) -> usize {
        self.sampling.n.unwrap_or(1)
    }

    /// The length limit: the requested one, bounded by the model's limit. The plugin also bounds it
    /// by what the model's context leaves.
    fn max_tokens(&self, served: &ServedModel) -> usize {
        let max = served.settings.limits.requests.max_tokens;
        self.sampling.max_tokens.map_or(max, |(_, tokens)| tokens.min(max))
    }

    /// Ids of earlier calls, which new calls do not reuse.
    fn earlier_ids(&self) -> Vec<String> {
        match &self.prompt {
            Prompt::Messages(messages) => call_ids(messages),
            Prompt::Text(_) | Prompt::Tokens(_) => Vec::new(),
        }
    }

    /// Compiles the constraints. Without a conversation, the output is not in the model's wire
    /// format.
    pub(crate) fn plan(&self, served: &ServedModel) -> Result<Plan, PlanError> {
        let (tools, template_input) = self.resolve(served);
        match self.prompt {
            Prompt::Messages(_) => served.louver.plan(tools, template_input),
            Prompt::Text(_) | Prompt::Tokens(_) => served.louver.plan_completion(tools),
        }
    }

    /// The prompt's tokens.
    pub(crate) fn tokens(&self, plan: &Plan) -> Result<Vec<u32>, RequestError> {
        match &self.prompt {
            Prompt::Messages(messages) => plan.prompt(messages),
            Prompt::Text(text) => plan.text_prompt(text),
            Prompt::Tokens(tokens) => plan.token_prompt(tokens.clone()),
        }
    }

    fn build_run(&self, max_tokens: usize, app: &App, served: &ServedModel) -> Run {
        let sampling = &self.sampling;
        let params = SamplingParams {
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            min_p: sampling.min_p,
            frequency_penalty: sampling.frequency_penalty,
            presence_penalty: sampling.presence_penalty,
            repetition_penalty: sampling.repetition_penalty,
            max_len: Some(max_tokens),
            n_choices: self.choices(),
            ..SamplingParams::neutral()
        };
        let record = match (self.trace_source.is_some(), sampling.logprobs) {
            (true, logprobs) => {
                let bytes = app.config().limits.traces.trace_bytes;
                Record::Trace {
                    top: logprobs.unwrap_or(0).max(TRACE_ALTERNATIVES),
                    bytes,
                    logprobs,
                }
            }
            (false, Some(top)) => Record::Logprobs { top },
            (false, None) => Record::Nothing,
        };
        let options = RunOptions {
            // A seed in the request asks for the draws of that seed, which only Louver makes.
            draw: if sampling.seed.is_some() { Draw::Louver } else { served.settings.draw },
            seed: sampling.seed,
            truncation: self.extension.truncation,
            // Preparation runs with compilation, so that dropping the request cancels it.
            overlap: Overlap { prepare: None, ..Overlap::default() },
            record,
        };
        let (processors, earlier_ids) = (served.processors.0.clone(), self.earlier_ids());
        Run { sampling: Some(params), processors, earlier_ids, options }
    }
}

/// Admits, plans and starts a request. Its deadline counts from `arrived`. Errors: 503 while the
/// server is stopping, 429 if too many requests wait, 404 for an unknown model, 400 for constraints
/// that cannot be enforced.
pub(crate) async fn start(
    app: &App,
    mut request: TurnRequest,
    arrived: Instant,
) -> Result<RunningTurn, ApiError> {
    let pointers = Arc::new(std::mem::take(&mut request.pointers));
    let served = app.model(request.model.as_deref())?.clone();
    let deadline = arrived + served.settings.limits.requests.timeout_s.0;
    let timed_out =
        |_| ApiError::general(ErrorKind::Timeout, "timeout", "the request took too long");
    let started = timeout_at(
        deadline.into(),
        plan_and_start((app, served), request, (arrived, deadline), &pointers),
    )
    .await
    .map_err(timed_out)?;
    started.map_err(|error| error.map_pointers(|pointer| pointers.original(pointer)))
}

async fn plan_and_start(
    (app, served): (&App, Arc<ServedModel>),
    mut request: TurnRequest,
    (arrived, deadline): (Instant, Instant),
    pointers: &Arc<PointerMap>,
) -> Result<RunningTurn, ApiError> {
    if app.phases().current() != ServerPhase::Running {
        return Err(ApiError::general(
            ErrorKind::Unavailable,
            "stopping",
            "the server is stopping",
        ));
    }
    let max_tokens = request.max_tokens(&served);
    let choices = request.choices();
    served.admit(choices)?;
    let planning = enter_planning(app, &served, choices).await?;
    let run = request.build_run(max_tokens, app, &served);
    let (is_streamed, sampling) = (request.is_streamed, request.sampling.clone());
    let (id, trace_source) = (request.id.clone(), request.trace_source.take());
    let (planned_model, metrics_app) = (served.clone(), app.clone());
    let rounds = rounds::Rounds::new(&request);
    let work = BlockingWork::default();
    let checkpoint = work.checkpoint();
    let tools = request.tool_count();
    let span = telemetry::plan(&served, tools);
    let (plan, prompt, compiled_in, prepared) = work
        .run(planning.clone(), move || {
            let started = Instant::now();
            let plan = request.plan(&planned_model)?;
            let compiled_in = started.elapsed();
            let labels = ModelLabels { model: planned_model.name.clone() };
            metrics_app.metrics().compile.get_or_create(&labels).observe(compiled_in.as_secs_f64());
            span.record("louver.compile_seconds", compiled_in.as_secs_f64());
            checkpoint()?;
            let prompt = request.tokens(&plan)?;
            span.record("gen_ai.usage.input_tokens", prompt.len() as i64);
            checkpoint()?;
            let budget = planned_model.settings.preparation.budget();
            let prepared = plan.constraint().zip(budget).map(|(constraint, budget)| {
                span.in_scope(|| telemetry::preparation(&budget));
                constraint.prepare(budget)
            });
            Ok((plan, prompt, compiled_in, prepared))
        })
        .await?;
    let permits = enter_generation(app, &served, planning).await?;
    let (run, later_choices) = match served.is_serial && choices > 1 {
        false => (run, None),
        true => {
            let run = first_choice(run);
            let later_choices = running::SequentialChoices {
                plan: plan.clone(),
                prompt: prompt.clone(),
                run: run.clone(),
                next: 1,
                choices,
            };
            (run, Some(later_choices))
        }
    };
    let rounds = rounds.map(|rounds| (rounds, run.clone()));
    let streams = plan.start(&served.model.0, prompt, run).await?;
    let live_steps = is_streamed && sampling.logprobs.is_some();
    let Sampling { temperature, top_p, .. } = sampling;
    let options = running::Options {
        arrived,
        deadline,
        compiled_in,
        live_steps,
        max_tokens,
        temperature,
        top_p,
        tools,
    };
    let trace_source =
        trace_source.map(|(route, body)| running::TraceSource { id, route, body: body.into() });
    Ok(RunningTurn::new(
        (app.clone(), served),
        streams,
        (later_choices, rounds),
        (permits, work, prepared),
        (options, trace_source, pointers.clone()),
    ))
}

/// The same run with one choice.
fn first_choice(mut run: Run) -> Run {
    if let Some(sampling) = &mut run.sampling {
        sampling.n_choices = 1;
    }
    run
}

/// Waits for a planning slot. If the host batches, planning and generation share the slots: first
/// the model's own, then the server's.
async fn enter_planning(
    app: &App,
    served: &ServedModel,
    choices: usize,
) -> Result<Permits, ApiError> {
    let metrics = app.metrics();
    Ok(match served.gates() {
        ModelGates::Batched(None) => {
            [app.generation_gate().acquire(choices, metrics).await?].into()
        }
        ModelGates::Batched(Some(gate)) => {
            let model_permit = gate.acquire(choices, metrics).await?;
            [model_permit, app.generation_gate().acquire(choices, metrics).await?].into()
        }
        ModelGates::Serial(gates) => [gates.planning.acquire(1, metrics).await?].into(),
    })
}

/// Waits for the generation slot of a serial model: first its own, then the server's. Releases the
/// planning slot.
async fn enter_generation(
    app: &App,
    served: &ServedModel,
    planning: Permits,
) -> Result<Permits, ApiError> {
    let ModelGates::Serial(serial_gates) = served.gates() else { return Ok(planning) };
    let model_permit = serial_gates.generation.acquire(1, app.metrics()).await?;
    Ok([model_permit, app.generation_gate().acquire(1, app.metrics()).await?].into())
}
