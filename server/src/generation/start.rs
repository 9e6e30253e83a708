//! The start of a request: admission, planning on a blocking thread, and the first generations.

use std::sync::Arc;
use std::time::Instant;

use louver::engine::Prepared;
use louver::fuel;
use louver_mistralrs::{Plan, RequestParams};
use tokio::time::timeout_at;
use tracing::Span;

use crate::admission::Admission;
use crate::error::{ApiError, DEADLINE};
use crate::generation::choice::{Permits, ReadOptions, RequestContext};
use crate::generation::record::TraceSource;
use crate::generation::rounds::Rounds;
use crate::generation::running::SequentialChoices;
use crate::generation::slots::{enter_generation, enter_planning};
use crate::generation::{BlockingWork, GenerationRequest, RunningRequest};
use crate::http::phase::ServerPhase;
use crate::metrics::ModelLabels;
use crate::request::pointers::PointerMap;
use crate::served_model::ServedModel;
use crate::state::App;
use crate::telemetry::{self, RequestAttributes};

/// Admits, plans and starts a request. Its deadline counts from `arrived`. Errors: 503 while the
/// server is stopping, 429 if too many requests wait, 404 for an unknown model, 400 for constraints
/// that cannot be enforced.
pub(crate) async fn start(
    app: &App,
    mut request: GenerationRequest,
    arrived: Instant,
) -> Result<RunningRequest, ApiError> {
    let pointers = Arc::new(std::mem::take(&mut request.pointers));
    let served = app.model(request.model.as_deref())?.clone();
    let limit = served.settings.limits.requests.timeout_s;
    let deadline = arrived + limit.0;
    let timed_out = |_| ApiError::timeout(DEADLINE, "requests.timeout_s", limit);
    let started = timeout_at(
        deadline.into(),
        RequestStarter { app, served, arrived, deadline, pointers: &pointers }.start(request),
    )
    .await
    .map_err(timed_out)?;
    started.map_err(|error| error.map_pointers(&pointers))
}

/// What a request needs to start, besides itself.
struct RequestStarter<'a> {
    app: &'a App,
    served: Arc<ServedModel>,
    arrived: Instant,
    deadline: Instant,
    pointers: &'a Arc<PointerMap>,
}

/// A request that is ready to generate.
struct PlannedRequest {
    plan: Plan,
    /// The tokens of each prompt.
    prompts: Vec<Vec<u32>>,
    attributes: RequestAttributes,
    /// The preparation of masks, if there is one.
    prepared: Option<Prepared>,
}

impl RequestStarter<'_> {
    async fn start(self, mut request: GenerationRequest) -> Result<RunningRequest, ApiError> {
        let (app, served) = (self.app, &self.served);
        if app.phases().current() != ServerPhase::Running {
            return Err(ApiError::stopping());
        }
        let (choices, per_prompt) = (request.choices(), request.choices_per_prompt());
        served.check_choices(request.choices(), request.choices_pointer())?;
        let mut admission = Admission::first();
        let planning = enter_planning(app, served, choices, &mut admission).await?;
        let mut params = request.params(app, served);
        let trace_source = request.body.traced.take().map(|(route, body)| TraceSource {
            id: request.id.clone(),
            route,
            body: body.into(),
        });
        let rounds = Rounds::new(&request, &params, served);
        let has_report = request.extension.report;
        let live_steps = request.stream.is_some() && request.sampling.logprobs.is_some();
        let work = BlockingWork::default();
        let planned = self.plan(request, &work, planning.clone()).await?;
        let permits = enter_generation(app, served, planning, &mut admission).await?;
        let later_choices = (served.is_serial && choices > 1)
            .then(|| split_choices(&planned, &mut params, per_prompt));
        let prompt_tokens = planned.prompts.iter().map(Vec::len).sum();
        let now = if later_choices.is_some() { 1 } else { planned.prompts.len() };
        let mut streams = Vec::new();
        for prompt in planned.prompts.into_iter().take(now) {
            let started = planned.plan.start(&served.model, prompt, params.clone());
            streams.extend(started.await?);
        }
        let context = RequestContext {
            app: app.clone(),
            served: served.clone(),
            trace_source,
            options: ReadOptions {
                arrived: self.arrived,
                deadline: self.deadline,
                live_steps,
                has_report,
                attributes: planned.attributes,
            },
            permits,
            prepared: planned.prepared,
            pointers: self.pointers.clone(),
        };
        Ok(RunningRequest::new(context, streams, prompt_tokens, later_choices, rounds, work))
    }

    /// Plans the request on a blocking thread, which holds the permits until it has ended.
    async fn plan(
        &self,
        request: GenerationRequest,
        work: &BlockingWork,
        permits: Permits,
    ) -> Result<PlannedRequest, ApiError> {
        let span = telemetry::plan(&self.served, request.tool_count());
        let (app, served, checkpoint) = (self.app.clone(), self.served.clone(), work.checkpoint());
        work.run(permits, move || {
            let started = Instant::now();
            let (plan, units) = fuel::measure(|| request.plan(&served));
            let compiled_in = started.elapsed();
            let labels = ModelLabels::of(&served);
            app.metrics().compile_fuel_units.get_or_create(&labels).observe(units as f64);
            let plan = plan.map_err(|error| request.plan_error(error))?;
            app.metrics().compile_seconds.get_or_create(&labels).observe(compiled_in.as_secs_f64());
            span.record("louver.compile_seconds", compiled_in.as_secs_f64());
            checkpoint()?;
            let (plan, prompts) = request.render(plan)?;
            let prompt_tokens: usize = prompts.iter().map(Vec::len).sum();
            span.record("gen_ai.usage.input_tokens", prompt_tokens as i64);
            checkpoint()?;
            let prepared = prepare(&plan, &served, &span);
            let attributes = request.attributes(&served, compiled_in);
            Ok(PlannedRequest { plan, prompts, attributes, prepared })
        })
        .await
    }
}

/// Starts to compute masks that the generation is likely to need, if the model's settings say so.
fn prepare(plan: &Plan, served: &ServedModel, span: &Span) -> Option<Prepared> {
    let (constraint, budget) =
        plan.turn_plan().constraint().zip(served.settings.preparation.budget())?;
    span.in_scope(|| telemetry::preparation(&budget));
    Some(constraint.prepare(budget))
}

/// Restricts the parameters to the first of several choices. Returns the others, which run one
/// after the other.
fn split_choices(
    planned: &PlannedRequest,
    params: &mut RequestParams,
    per_prompt: usize,
) -> SequentialChoices {
    if let Some(sampling) = &mut params.sampling {
        sampling.n_choices = 1;
    }
    let (plan, prompts) = (planned.plan.clone(), planned.prompts.as_slice().into());
    SequentialChoices { plan, prompts, params: params.clone(), next: 1, per_prompt }
}
