//! One model turn per request: admission, planning, and its running choices as one event stream.

mod admission;
mod queue;
mod rounds;
mod running;
mod sse;
mod work;

use std::sync::Arc;
use std::time::Instant;

use louver::engine::PrepareBudget;
use louver::spec::json::Json;
use louver_formats::{Reasoning, ReasoningBudget, ToolRequest};
use louver_mistralrs::{
    Draw, Louver, Overlap, Plan, PlanError, Record, RequestError, Run, RunOptions, TemplateInput,
    call_ids,
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
use crate::state::{App, ServedModel};
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

    /// Completes the constraint options from the server's configuration and the request's other
    /// members.
    pub(crate) fn apply_config(&mut self, app: &App) {
        let request = &mut self.tools;
        request.strictness = app.config().strict_tools;
        request.limits = app.config().limits.engine();
        request.schema_options = self.extension.schema_options(app.config().schema_options());
        request.parallel = self.extension.parallel(request.parallel);
        request.reasoning_budget = self.extension.reasoning_budget.map(ReasoningBudget::Tokens);
        request.reasoning = match self.thinking {
            Thinking::Off => Reasoning::Off,
            Thinking::On | Thinking::Unspecified => Reasoning::Optional,
        };
    }

    /// Input of the chat template besides the messages.
    pub(crate) fn template(&self) -> TemplateInput {
        let enable_thinking = match self.thinking {
            Thinking::Unspecified => None,
            Thinking::On => Some(true),
            Thinking::Off => Some(false),
        };
        TemplateInput::new(&self.template_tools, enable_thinking)
    }

    fn choices(&self) -> usize {
        self.sampling.n.unwrap_or(1)
    }

    /// The length limit: the requested one, bounded by the server's and the model's limits. The
    /// plugin also bounds it by what the model's context leaves.
    fn max_tokens(&self, app: &App, served: &ServedModel) -> usize {
        let server = app.config().limits.requests.max_tokens;
        let max = served.max_tokens.map_or(server, |model| model.min(server));
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
    pub(crate) fn plan(&self, louver: &Louver) -> Result<Plan, PlanError> {
        match self.prompt {
            Prompt::Messages(_) => louver.plan(self.tools.clone(), self.template()),
            Prompt::Text(_) | Prompt::Tokens(_) => louver.plan_completion(self.tools.clone()),
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
            // Always Louver's own sampler: results then depend neither on whether a seed is given
            // nor on other sequences in the batch.
            draw: Draw::Louver,
            seed: Some(sampling.seed.unwrap_or_else(fresh_seed)),
            truncation: self.extension.truncation,
            // Preparation runs with compilation, so that dropping the request cancels it.
            overlap: Overlap { prepare: false, ..Overlap::default() },
            record,
        };
        let (processors, earlier_ids) = (served.processors.0.clone(), self.earlier_ids());
        Run { sampling: Some(params), processors, earlier_ids, options }
    }
}

fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

/// Admits, plans and starts a request after [`TurnRequest::apply_config`]. The request's deadline
/// counts from `arrived`. Errors: 503 while the server is stopping, 429 if too many requests wait,
/// 404 for an unknown model, 400 for constraints that cannot be enforced.
pub(crate) async fn start(
    app: &App,
    mut request: TurnRequest,
    arrived: Instant,
) -> Result<RunningTurn, ApiError> {
    let pointers = Arc::new(std::mem::take(&mut request.pointers));
    let deadline = arrived + app.config().limits.requests.timeout_s.0;
    let timed_out =
        |_| ApiError::general(ErrorKind::Timeout, "timeout", "the request took too long");
    let started =
        timeout_at(deadline.into(), plan_and_start(app, request, (arrived, deadline), &pointers))
            .await
            .map_err(timed_out)?;
    started.map_err(|error| error.map_pointers(|pointer| pointers.original(pointer)))
}

async fn plan_and_start(
    app: &App,
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
    let served = app.model(request.model.as_deref())?.clone();
    let max_tokens = request.max_tokens(app, &served);
    let choices = request.choices();
    let planning = enter_planning(app, &served, choices).await?;
    let run = request.build_run(max_tokens, app, &served);
    let (is_streamed, sampling) = (request.is_streamed, request.sampling.clone());
    let (id, trace_source) = (request.id.clone(), request.trace_source.take());
    let (planned_model, metrics_app) = (served.clone(), app.clone());
    let rounds = rounds::Rounds::new(&request);
    let work = BlockingWork::default();
    let checkpoint = work.checkpoint();
    let span = telemetry::plan(&served.name);
    let (plan, prompt, compiled_in) = work
        .run(planning.clone(), move || {
            let started = Instant::now();
            let plan = request.plan(&planned_model.louver)?;
            let compiled_in = started.elapsed();
            let labels = ModelLabels { model: planned_model.name.clone() };
            metrics_app.metrics().compile.get_or_create(&labels).observe(compiled_in.as_secs_f64());
            span.record("louver.compile_seconds", compiled_in.as_secs_f64());
            checkpoint()?;
            let prompt = request.tokens(&plan)?;
            span.record("gen_ai.usage.input_tokens", prompt.len() as i64);
            checkpoint()?;
            if let Some(constraint) = plan.constraint() {
                constraint.prepare(PrepareBudget::default());
            }
            Ok((plan, prompt, compiled_in))
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
    };
    let trace_source =
        trace_source.map(|(route, body)| running::TraceSource { id, route, body: body.into() });
    Ok(RunningTurn::new(
        (app.clone(), served),
        streams,
        (later_choices, rounds),
        (permits, work),
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

/// Waits for a planning slot. If the host batches, planning and generation share the slot.
async fn enter_planning(
    app: &App,
    served: &ServedModel,
    choices: usize,
) -> Result<Permits, ApiError> {
    let (gate, slots) = match served.serial_gates() {
        None => (app.generation_gate(), choices),
        Some(serial_gates) => (&serial_gates.planning, 1),
    };
    Ok([gate.acquire(slots, app.metrics()).await?].into())
}

/// Waits for the generation slot: first the model's own if it is serial, then the server's.
/// Releases the planning slot.
async fn enter_generation(
    app: &App,
    served: &ServedModel,
    planning: Permits,
) -> Result<Permits, ApiError> {
    let Some(serial_gates) = served.serial_gates() else { return Ok(planning) };
    let model_permit = serial_gates.generation.acquire(1, app.metrics()).await?;
    Ok([model_permit, app.generation_gate().acquire(1, app.metrics()).await?].into())
}
