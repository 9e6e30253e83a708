//! One turn of the model for one request: admitted, planned, started, and its choices read as one stream.

mod gate;
mod queue;
mod running;
mod told;
mod work;

use std::sync::Arc;
use std::time::Instant;

use louver::engine::PrepareBudget;
use louver_formats::{Reasoning, ReasoningBudget, ToolRequest};
use louver_mistralrs::{Overlap, Record, Run, RunOptions, TemplateInput, call_ids};
use mistralrs::SamplingParams;
use serde_json::Value;
use tokio::time::timeout_at;

use crate::error::{ApiError, ErrorKind};
use crate::http::phase::Phase;
use crate::metrics::ModelLabels;
use crate::request::options::{Extension, Sampling, Thinking};
use crate::request::places::Places;
use crate::state::{App, Served};

pub(crate) use gate::Gate;
use running::Permits;
pub(crate) use running::{Progress, Running};
pub(crate) use told::{Teller, told};
pub(crate) use work::Work;

/// How many alternatives a trace keeps of each step.
const TRACE_TOP: usize = 8;

/// What a request asks of the model, whatever its route's shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// The model's name; the first model if there is none.
    pub(crate) model: Option<String>,
    /// The conversation, as chat templates take it.
    pub(crate) messages: Vec<Value>,
    /// What the turn may be.
    pub(crate) tools: ToolRequest,
    /// The tools of the request, for the chat template.
    pub(crate) shown: Vec<Value>,
    /// Whether there is reasoning.
    pub(crate) thinking: Thinking,
    /// How tokens are chosen, and how many.
    pub(crate) sampling: Sampling,
    /// What is asked of Louver.
    pub(crate) extension: Extension,
    /// Whether steps are wanted as they come rather than at the end.
    pub(crate) streamed: bool,
    /// The answer's id, for traces.
    pub(crate) id: String,
    /// Where members of the request stood that were rewritten.
    pub(crate) places: Places,
    /// The route and the request as it was sent, if it is to be recorded.
    pub(crate) source: Option<(&'static str, Value)>,
}

impl Demand {
    /// Fills in what the server's configuration and the other members say about the grammar.
    pub(crate) fn settle(&mut self, app: &App) {
        let request = &mut self.tools;
        request.strictness = app.config().strict_tools;
        request.limits = app.config().limits.engine();
        request.schema_options = self.extension.schema_options(app.config().schema_options());
        request.parallel = self.extension.parallel(request.parallel);
        request.reasoning_budget = self.extension.reasoning_budget.map(ReasoningBudget::Tokens);
        request.reasoning = match self.thinking {
            Thinking::Off => Reasoning::Off,
            Thinking::On | Thinking::Unsaid => Reasoning::Optional,
        };
    }

    /// What the chat template is given beside the messages.
    pub(crate) fn template(&self) -> TemplateInput {
        let enable_thinking = match self.thinking {
            Thinking::Unsaid => None,
            Thinking::On => Some(true),
            Thinking::Off => Some(false),
        };
        TemplateInput::new(&self.shown, enable_thinking)
    }

    fn choices(&self) -> usize {
        self.sampling.n.unwrap_or(1)
    }

    /// The length limit: what was asked for, within the server's and the model's bounds.
    fn max_tokens(&self, app: &App, served: &Served) -> Result<usize, ApiError> {
        let server = app.config().limits.requests.max_tokens;
        let most = served.max_tokens.map_or(server, |model| model.min(server));
        match self.sampling.max_tokens {
            Some((name, tokens)) if tokens > most => {
                let message = format!("at most {most} tokens of this model");
                Err(ApiError::invalid(format!("/{name}"), "out_of_range", message))
            }
            asked => Ok(asked.map_or(most, |(_, tokens)| tokens)),
        }
    }

    fn run(&self, max_tokens: usize, app: &App, served: &Served) -> Run {
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
        let record = match (self.source.is_some(), sampling.logprobs) {
            (true, then) => {
                let bytes = app.config().limits.traces.trace_bytes;
                Record::Trace { top: then.unwrap_or(0).max(TRACE_TOP), bytes, then }
            }
            (false, Some(top)) => Record::Logprobs { top },
            (false, None) => Record::Nothing,
        };
        let options = RunOptions {
            // Always Louver's own draw: the same sampling parameters mean the same with and without a seed, and neighbours
            // do not matter.
            seed: Some(sampling.seed.unwrap_or_else(fresh_seed)),
            truncation: self.extension.truncation,
            // Done with the compilation, so that it ends with the request.
            overlap: Overlap { prepare: false, ..Overlap::default() },
            record,
        };
        let (processors, earlier_ids) = (served.processors.0.clone(), call_ids(&self.messages));
        Run { sampling: Some(params), processors, earlier_ids, options }
    }
}

fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

/// Admits, plans and starts a demand that was settled. `arrived` is when its request came; the request's deadline counts from
/// there. Errors: 503 while the server is stopping, 429 where too many wait, 404 for a model that is not there, 400 for
/// what cannot be enforced.
pub(crate) async fn start(
    app: &App,
    mut demand: Demand,
    arrived: Instant,
) -> Result<Running, ApiError> {
    let places = Arc::new(std::mem::take(&mut demand.places));
    let deadline = arrived + app.config().limits.requests.timeout_s.0;
    let late = |_| ApiError::whole(ErrorKind::Timeout, "timeout", "the request took too long");
    let started = timeout_at(deadline.into(), start_by(app, demand, (arrived, deadline), &places))
        .await
        .map_err(late)?;
    started.map_err(|error| error.map_pointers(|pointer| places.original(pointer)))
}

async fn start_by(
    app: &App,
    demand: Demand,
    (arrived, deadline): (Instant, Instant),
    places: &Arc<Places>,
) -> Result<Running, ApiError> {
    if app.phases().now() != Phase::Running {
        return Err(ApiError::whole(ErrorKind::Unavailable, "stopping", "the server is stopping"));
    }
    let served = app.model(demand.model.as_deref())?.clone();
    let max_tokens = demand.max_tokens(app, &served)?;
    let choices = demand.choices();
    let planning = enter_planning(app, &served, choices).await?;
    let run = demand.run(max_tokens, app, &served);
    let template = demand.template();
    let Demand { messages, tools: request, streamed, sampling, id, source, .. } = demand;
    let (planned_for, metrics) = (served.clone(), app.clone());
    let work = Work::default();
    let checkpoint = work.checkpoint();
    let (plan, prompt, compiled_in) = work
        .run(planning.clone(), move || {
            let begun = Instant::now();
            let plan = planned_for.louver.plan(request, template)?;
            let compiled_in = begun.elapsed();
            let labels = ModelLabels { model: planned_for.name.clone() };
            metrics.metrics().compile.get_or_create(&labels).observe(compiled_in.as_secs_f64());
            checkpoint()?;
            let prompt = plan.prompt(&messages)?;
            checkpoint()?;
            if let Some(constraint) = plan.constraint() {
                constraint.prepare(PrepareBudget::default());
            }
            Ok((plan, prompt, compiled_in))
        })
        .await?;
    let permits = enter_generation(app, &served, planning).await?;
    let (run, later) = match served.one_at_a_time && choices > 1 {
        false => (run, None),
        true => {
            let run = one_choice(run);
            let later = running::Later {
                plan: plan.clone(),
                prompt: prompt.clone(),
                run: run.clone(),
                next: 1,
                choices,
            };
            (run, Some(later))
        }
    };
    let streams = plan.start(&served.model.0, prompt, run).await?;
    let live_steps = streamed && sampling.logprobs.is_some();
    let options = running::Options { arrived, deadline, compiled_in, live_steps };
    let recording = source.map(|(route, body)| running::Recording { id, route, body: body.into() });
    Ok(Running::new(
        (app.clone(), served),
        streams,
        later,
        (permits, work),
        (options, recording, places.clone()),
    ))
}

/// The first choice of a request.
fn one_choice(mut run: Run) -> Run {
    if let Some(sampling) = &mut run.sampling {
        sampling.n_choices = 1;
    }
    run
}

/// Waits for a place to be planned in. Where the host batches, it is the place of the generations
/// too.
async fn enter_planning(app: &App, served: &Served, choices: usize) -> Result<Permits, ApiError> {
    let (gate, places) = match served.alone() {
        None => (app.gate(), choices),
        Some(alone) => (&alone.planning, 1),
    };
    Ok([gate.enter(places, app.metrics()).await?].into())
}

/// Waits for the place of the generation: the model's own, where it has one at a time, and the
/// server's. The place of planning is given back then.
async fn enter_generation(
    app: &App,
    served: &Served,
    planning: Permits,
) -> Result<Permits, ApiError> {
    let Some(alone) = served.alone() else { return Ok(planning) };
    let own = alone.generation.enter(1, app.metrics()).await?;
    Ok([own, app.gate().enter(1, app.metrics()).await?].into())
}
