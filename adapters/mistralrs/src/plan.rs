//! A turn's demands, compiled for a model, and the requests that follow them.

use std::sync::Arc;

use louver::engine::{Constraint, PrepareBudget};
use louver::front::json_schema::{Policy, SchemaOptions};
use louver::spec::json::Json;
use louver::spec::tools::ToolChoice;
use louver_formats::{
    ConstraintError, Event, Parallel, Reasoning, ReasoningBudget, Strictness, ToolConstraint,
    ToolRequest, Turn,
};
use mistralrs::{Model, RequestLike, SamplingParams};
use mistralrs_core::{
    Constraint as HostConstraint, NormalRequest, Request, RequestMessage, StopTokens,
};
use tokio::sync::{mpsc, oneshot};

use crate::context::Prompt;
use crate::error::{PlanError, RequestError};
use crate::hook::{Hook, HookOptions, Shared, Tap};
use crate::host::Line;
use crate::model::{Inner, Louver};
use crate::prompt::{self, PromptParts, TemplateInput};
use crate::reader::Reader;
use crate::record::Record;
use crate::report::Relaxed;
use crate::safety::Truncation;
use crate::sampler::{Sampler, mix};
use crate::stream::{self, EventStream};
use crate::validate::Checks;

/// Room in the host's response channel; the reading task empties it at once.
const CHANNEL: usize = 10_000;

/// Tools in OpenAI's JSON form: from such a list, or from the SDK's tools.
#[derive(Clone, Debug, Default)]
pub struct ToolList(serde_json::Value);

impl From<serde_json::Value> for ToolList {
    fn from(tools: serde_json::Value) -> Self {
        ToolList(tools)
    }
}

impl From<&serde_json::Value> for ToolList {
    fn from(tools: &serde_json::Value) -> Self {
        ToolList(tools.clone())
    }
}

impl From<&[mistralrs::Tool]> for ToolList {
    fn from(tools: &[mistralrs::Tool]) -> Self {
        // The SDK's tools are plain data: they serialise.
        ToolList(tools.iter().map(|tool| serde_json::to_value(tool).unwrap_or_default()).collect())
    }
}

impl From<&Vec<mistralrs::Tool>> for ToolList {
    fn from(tools: &Vec<mistralrs::Tool>) -> Self {
        ToolList::from(tools.as_slice())
    }
}

/// Collects what a turn may be: a [`ToolConstraint`] for a model, with the tools as its chat template sees them.
#[derive(Clone, Debug)]
pub struct PlanBuilder<'l> {
    louver: &'l Louver,
    tools: serde_json::Value,
    constraint: ToolConstraint,
}

impl<'l> PlanBuilder<'l> {
    pub(crate) fn new(louver: &'l Louver, tools: ToolList) -> Self {
        PlanBuilder { louver, tools: tools.0, constraint: ToolConstraint::new() }
    }

    fn with(self, demand: impl FnOnce(ToolConstraint) -> ToolConstraint) -> Self {
        PlanBuilder { constraint: demand(self.constraint), ..self }
    }

    /// Whether and which tools must be called.
    pub fn choice(self, choice: ToolChoice) -> Self {
        self.with(|constraint| constraint.choice(choice))
    }

    /// How many calls the turn may have.
    pub fn parallel(self, parallel: Parallel) -> Self {
        self.with(|constraint| constraint.parallel(parallel))
    }

    /// What the reasoning block may be. [`Reasoning::Off`] also tells the chat template to leave it out. By default there
    /// may be one, and the turn begins inside it where the chat template opens it.
    pub fn reasoning(self, reasoning: Reasoning) -> Self {
        self.with(|constraint| constraint.reasoning(reasoning))
    }

    /// The JSON Schema of the answer.
    pub fn response_format(self, schema: &serde_json::Value) -> Self {
        self.with(|constraint| constraint.response_format(Json::from(schema)))
    }

    /// How schemas are read.
    pub fn schema_options(self, options: SchemaOptions) -> Self {
        self.with(|constraint| constraint.schema_options(options))
    }

    /// The only tools that may be called, by name.
    pub fn allow<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.with(|constraint| constraint.allow(names))
    }

    /// Whose arguments match their schema: every tool's, by default.
    pub fn strictness(self, strictness: Strictness) -> Self {
        self.with(|constraint| constraint.strictness(strictness))
    }

    /// How much reasoning there may be.
    pub fn reasoning_budget(self, most: ReasoningBudget) -> Self {
        self.with(|constraint| constraint.reasoning_budget(most))
    }

    /// Free text ends with this, and the turn with it.
    pub fn stop(self, text: impl Into<String>) -> Self {
        self.with(|constraint| constraint.stop(text))
    }

    /// Free text never contains this.
    pub fn ban(self, text: impl Into<String>) -> Self {
        self.with(|constraint| constraint.ban(text))
    }

    /// Compiles. Whatever cannot be enforced is an error, with the JSON pointers of all faults. Masks are built later, when
    /// they are first needed.
    pub fn build(self) -> Result<Plan, PlanError> {
        let PlanBuilder { louver, tools, constraint } = self;
        let mut request = ToolRequest::from(constraint);
        let enable_thinking = match request.reasoning {
            Reasoning::Off => Some(false),
            Reasoning::Required => Some(true),
            Reasoning::Optional | Reasoning::Opened => None,
        };
        if !tools.is_null() {
            request.offer(&Json::from(&tools))?;
        }
        let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
        louver.plan(request, TemplateInput::new(tools, enable_thinking))
    }
}

#[derive(Clone, Debug)]
struct Constrained {
    constraint: Constraint,
    lowered: louver_formats::Plan,
    /// Whether the turn must have a form: a forced call, or a response format.
    formed: bool,
    /// What is validated when it has been said, where the policy asks for it.
    checks: Option<Arc<Checks>>,
}

/// What a turn may be, compiled for a model. Make it once and use it for any number of requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct Plan {
    inner: Arc<Inner>,
    constrained: Option<Constrained>,
    shown: TemplateInput,
}

/// How a request is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Makes sampling a function of this seed, whatever else the host is doing (the host itself draws all requests from
    /// one generator). Choice `i` of several has seed + i. Louver draws then, which is faster than the host's way; penalties
    /// are the host's and still hold.
    pub seed: Option<u64>,
    /// What happens near the length limit.
    pub truncation: Truncation,
    /// What is done ahead, on the engine's background threads.
    pub overlap: Overlap,
    /// What is kept of each step.
    pub record: Record,
}

/// What is done while the model computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The first masks are made while the host reads the prompt.
    pub prepare: bool,
    /// The next mask is made while the model computes. Only where Louver draws (a seed is set), so that the token is known.
    pub prefetch: Prefetch,
}

impl Default for Overlap {
    fn default() -> Self {
        Overlap { prepare: true, prefetch: Prefetch::Adaptive }
    }
}

/// When the next mask is made ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// While masks have been slow to make lately: those that are known already cost less than handing them over.
    #[default]
    Adaptive,
    /// At every step.
    Always,
    /// Never.
    Off,
}

/// A request to the host: see [`Plan::start`].
#[derive(Clone, Default)]
pub struct Run {
    /// Sampling. `n_choices` choices are separate requests to the host; stop tokens are the plan's.
    pub sampling: Option<SamplingParams>,
    /// Further logits processors, which run before Louver's.
    pub processors: Vec<Arc<dyn mistralrs::CustomLogitsProcessor>>,
    /// Ids of earlier calls of the conversation ([`call_ids`]), which no call of this turn gets.
    pub earlier_ids: Vec<String>,
    /// The rest.
    pub options: RunOptions,
}

/// The ids of the calls in messages in OpenAI's JSON form.
pub fn call_ids(messages: &[serde_json::Value]) -> Vec<String> {
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    calls.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
}

impl Plan {
    pub(crate) fn new(
        inner: Arc<Inner>,
        mut request: ToolRequest,
        mut shown: TemplateInput,
    ) -> Result<Plan, PlanError> {
        let format = inner.format.clone()?;
        let opens = inner.opens_reasoning(shown.enable_thinking);
        request.reasoning = match request.reasoning {
            Reasoning::Off if opens => return Err(PlanError::AlwaysReasons),
            Reasoning::Optional | Reasoning::Required if opens => Reasoning::Opened,
            reasoning => reasoning,
        };
        let (lowered, constraint) =
            request.clone().compile(&inner.engine, &format).map_err(|error| match error {
                ConstraintError::Lower(error) => PlanError::from(error),
                ConstraintError::Compile(error) => PlanError::from(error),
            })?;
        if request.tool_choice == ToolChoice::None {
            shown.clear();
        }
        let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        let formed = forced || request.response_format.is_some() || request.answer_tag.is_some();
        let validates =
            request.schema_options.policy == Policy::Validate && !lowered.loose().is_empty();
        let checks = validates.then(|| Arc::new(Checks::new(&lowered, &request.schema_options)));
        Ok(Plan {
            inner,
            constrained: Some(Constrained { constraint, lowered, formed, checks }),
            shown,
        })
    }

    pub(crate) fn unconstrained(inner: Arc<Inner>, tools: ToolList) -> Plan {
        let tools = tools.0.as_array().map(Vec::as_slice).unwrap_or_default();
        Plan { inner, constrained: None, shown: TemplateInput::new(tools, None) }
    }

    /// The request as it was lowered in the model's wire format; none for a plan without a constraint.
    pub fn lowered(&self) -> Option<&louver_formats::Plan> {
        self.constrained.as_ref().map(|c| &c.lowered)
    }

    /// The grammar and its caches; none for a plan without.
    pub fn constraint(&self) -> Option<&Constraint> {
        self.constrained.as_ref().map(|c| &c.constraint)
    }

    /// The grammar and what its labels mean.
    pub(crate) fn parts(&self) -> Option<(Constraint, louver_formats::Plan)> {
        self.constrained.as_ref().map(|c| (c.constraint.clone(), c.lowered.clone()))
    }

    /// What is validated when it has been said.
    pub(crate) fn checks(&self) -> Option<Arc<Checks>> {
        self.constrained.as_ref()?.checks.clone()
    }

    /// What the request says and the grammar does not enforce. With the policy `validate`, the report of a generation says what
    /// was said against it.
    pub fn relaxed(&self) -> Vec<Relaxed> {
        let relaxed = self.constrained.as_ref().map(|c| c.lowered.relaxed());
        relaxed.unwrap_or_default().iter().map(Relaxed::from).collect()
    }

    /// As [`Plan::stream_with`], with no options.
    pub async fn stream(
        &self,
        model: &Model,
        request: impl RequestLike,
    ) -> Result<EventStream, RequestError> {
        self.stream_with(model, request, RunOptions::default()).await
    }

    /// Sends a request of one choice and streams what the model says.
    ///
    /// The request is the SDK's: messages, sampling, further logits processors (which run before Louver's). Tools are the
    /// plan's. What would break the constraint or cannot be seen by it is refused: tools, constraints and stop sequences of
    /// the host's own, web search, media. Needs a tokio runtime.
    pub async fn stream_with(
        &self,
        model: &Model,
        request: impl RequestLike,
        options: RunOptions,
    ) -> Result<EventStream, RequestError> {
        single(self.stream_choices(model, request, options).await?)
    }

    /// Sends a request and streams each of its choices by itself: to the host they are separate requests.
    pub async fn stream_choices(
        &self,
        model: &Model,
        mut request: impl RequestLike,
        options: RunOptions,
    ) -> Result<Vec<EventStream>, RequestError> {
        let (prompt, run) = self.take(&mut request, options)?;
        self.start(model, prompt, run).await
    }

    /// What a request of the SDK holds.
    pub(crate) fn take(
        &self,
        request: &mut impl RequestLike,
        options: RunOptions,
    ) -> Result<(Vec<u32>, Run), RequestError> {
        let (prompt, earlier_ids) = self.take_prompt(request)?;
        let sampling = request.take_sampling_params();
        if sampling.stop_toks.is_some() {
            return Err(RequestError::Unsupported(
                "stop sequences: they could end a call in the middle",
            ));
        }
        if !matches!(request.take_constraint(), HostConstraint::None) {
            return Err(RequestError::Unsupported("a constraint of the host beside Louver's"));
        }
        let processors = request.take_logits_processors().unwrap_or_default();
        Ok((prompt, Run { sampling: Some(sampling), processors, earlier_ids, options }))
    }

    /// Sends a prompt to the model and streams what it says, each choice by itself. The model is the one Louver was made for.
    /// Needs a tokio runtime.
    pub async fn start(
        &self,
        model: &Model,
        prompt: Vec<u32>,
        run: Run,
    ) -> Result<Vec<EventStream>, RequestError> {
        self.start_on(Line::of(model.inner())?, prompt, run).await
    }

    pub(crate) async fn start_on(
        &self,
        line: Line<'_>,
        prompt: Vec<u32>,
        run: Run,
    ) -> Result<Vec<EventStream>, RequestError> {
        let Run { sampling, processors, earlier_ids, options } = run;
        let mut sampling = sampling.unwrap_or_else(SamplingParams::neutral);
        let choices = std::mem::replace(&mut sampling.n_choices, 1);
        if sampling.max_len == Some(0) {
            return Err(RequestError::Unsupported("a length limit of 0"));
        }
        let room = self.inner.max_context.saturating_sub(prompt.len());
        if room == 0 {
            return Err(RequestError::TooLong {
                tokens: prompt.len(),
                limit: self.inner.max_context,
            });
        }
        let limit = sampling.max_len.unwrap_or(room).min(room);
        // One more than the limit: the last token is always a stop token, see the hook.
        sampling.max_len = Some(limit + 1);
        sampling.stop_toks = Some(StopTokens::Ids(self.inner.stops.clone()));
        if let (true, Some(constraint)) = (options.overlap.prepare, self.constraint()) {
            constraint.prepare(PrepareBudget::default());
        }
        let mut streams = Vec::with_capacity(choices);
        for choice in 0..choices as u64 {
            let seed = options.seed.map(|seed| seed.wrapping_add(choice));
            let options = RunOptions { seed, ..options };
            let (tap, taps) = mpsc::unbounded_channel();
            let shared = Arc::new(Shared::default());
            let hook = self.hook(&sampling, options, (prompt.len(), limit), Some(tap));
            let mut processors = processors.clone();
            processors.push(Arc::new(Hook::new(hook, shared.clone())));
            let (response, responses) = mpsc::channel(CHANNEL);
            let message = RequestMessage::CompletionTokens(prompt.clone());
            let mut sampling = sampling.clone();
            if seed.is_some() {
                // Drawn by the hook: the host takes the largest.
                (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) =
                    (Some(0.0), None, None, None);
            }
            let normal = NormalRequest {
                is_streaming: true,
                logits_processors: Some(processors),
                ..NormalRequest::new_simple(message, sampling, response, line.id(), None, None)
            };
            let sent = line.sender.send(Request::Normal(Box::new(normal))).await;
            sent.map_err(|error| RequestError::Host(error.to_string()))?;
            let (events_in, events) = mpsc::unbounded_channel();
            let (outcome_in, outcome) = oneshot::channel();
            let steps = Arc::default();
            let id_seed = id_seed(seed.unwrap_or_else(fresh_seed).wrapping_add(choice), &prompt);
            let reader = self.reader(id_seed, &earlier_ids);
            let reading = stream::read(
                responses,
                taps,
                reader,
                events_in,
                (shared.clone(), Arc::clone(&steps)),
            );
            tokio::spawn(async move { drop(outcome_in.send(reading.await)) });
            streams.push(EventStream {
                events,
                steps,
                position: 0,
                relaxed: self.constrained.is_some().then(|| self.relaxed()),
                checks: self.checks(),
                lowered: self.constrained.as_ref().map(|c| c.lowered.clone()),
                outcome,
                shared,
                collector: Default::default(),
                prompt_tokens: prompt.len(),
            });
        }
        Ok(streams)
    }

    fn hook(
        &self,
        sampling: &SamplingParams,
        options: RunOptions,
        (prompt, limit): (usize, usize),
        tap: Option<mpsc::UnboundedSender<Tap>>,
    ) -> HookOptions {
        let safe = match options.truncation {
            Truncation::Auto => self.constrained.as_ref().is_some_and(|c| c.formed),
            Truncation::Safe => self.constrained.is_some(),
            Truncation::Off => false,
        };
        let sampler = options.seed.map(|seed| Sampler {
            seed,
            temperature: sampling.temperature.unwrap_or(1.0),
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
        });
        HookOptions {
            constraint: self.constraint().cloned(),
            vocab: self.inner.engine.vocab().clone(),
            stops: self.inner.stops.clone(),
            prompt: Prompt::Known(prompt),
            limit: Some(limit),
            sampler,
            safe,
            prefetch: options.overlap.prefetch,
            record: options.record,
            tap,
        }
    }

    /// What generated tokens say, read at once. A stop token at the end may be there or not.
    pub fn read(&self, tokens: &[u32]) -> Turn {
        let mut reader = self.reader(0, &[]);
        let mut events: Vec<Event> = reader.push(tokens);
        events.extend(reader.finish());
        Turn::collect(&events)
    }

    /// Louver as a processor for the host's own chat route (`RequestBuilder::add_logits_processor`), one object for each
    /// generation, `n_choices` 1. The prompt's length is learned from the host's calls. The output is then the host's to
    /// show; turn its tool parser off (`ToolChoice::None`). Prefer [`Plan::stream`].
    pub fn processor(&self) -> Arc<dyn mistralrs::CustomLogitsProcessor> {
        let hook = HookOptions {
            prompt: Prompt::unknown(),
            limit: None,
            safe: false,
            ..self.hook(&SamplingParams::neutral(), RunOptions::default(), (0, 0), None)
        };
        Arc::new(Hook::new(hook, Arc::new(Shared::default())))
    }

    fn reader(&self, id_seed: u64, earlier_ids: &[String]) -> Reader {
        let vocab = self.inner.engine.vocab().clone();
        match &self.constrained {
            Some(c) => {
                let mut extractor = c.lowered.extractor(id_seed);
                extractor.reserve_ids(earlier_ids.iter().cloned());
                Reader::constrained(vocab, c.constraint.matcher(), extractor)
            }
            None => Reader::text(vocab),
        }
    }

    /// The prompt's tokens: the model's own chat template over the messages (in OpenAI's JSON form; arguments of earlier
    /// calls as text or as objects) and the plan's tools.
    pub fn prompt(&self, messages: &[serde_json::Value]) -> Result<Vec<u32>, RequestError> {
        let messages: Vec<serde_json::Value> =
            messages.iter().map(prompt::openai_message).collect();
        self.render(&messages, self.shown.enable_thinking)
    }

    fn render(
        &self,
        messages: &[serde_json::Value],
        enable_thinking: Option<bool>,
    ) -> Result<Vec<u32>, RequestError> {
        let template = self.inner.template.as_ref().map_err(Clone::clone)?;
        let TemplateInput { tools, builtin_tools, .. } = &self.shown;
        let text =
            template.render(&PromptParts { messages, tools, builtin_tools, enable_thinking })?;
        self.inner.tokenize(&text)
    }

    /// The prompt's tokens, and the ids of earlier calls.
    fn take_prompt(
        &self,
        request: &mut impl RequestLike,
    ) -> Result<(Vec<u32>, Vec<String>), RequestError> {
        if request.take_tools().is_some() {
            return Err(RequestError::Unsupported(
                "tools in the request: give them to Louver::tools",
            ));
        }
        if request.take_web_search_options().is_some() {
            return Err(RequestError::Unsupported("web search beside a constraint"));
        }
        let (messages, enable_thinking) = match request.take_messages() {
            RequestMessage::Chat { messages, enable_thinking, .. } => (messages, enable_thinking),
            RequestMessage::CompletionTokens(tokens) => return Ok((tokens, Vec::new())),
            _ => {
                return Err(RequestError::Unsupported(
                    "only chat messages or prompt tokens can be constrained",
                ));
            }
        };
        let messages: Vec<serde_json::Value> = messages.iter().map(prompt::message).collect();
        let prompt = self.render(&messages, self.shown.enable_thinking.or(enable_thinking))?;
        Ok((prompt, call_ids(&messages)))
    }
}

/// The seed of the ids of a generation's calls. The same prompt and seed give the same ids; the
/// turns of a conversation have different prompts, so that its ids differ although the seed is the
/// same.
fn id_seed(seed: u64, prompt: &[u32]) -> u64 {
    prompt.iter().fold(seed, |hash, token| mix(hash ^ u64::from(*token)))
}

/// Ids of calls need not be unpredictable, only different.
pub(crate) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

#[cfg(test)]
#[test]
fn ids_differ_by_prompt_and_are_repeatable() {
    let seeds: std::collections::HashSet<u64> =
        [(4, vec![1]), (4, vec![2]), (4, vec![1, 2]), (5, vec![1]), (4, vec![])]
            .map(|(seed, prompt)| id_seed(seed, &prompt))
            .into();
    assert_eq!(seeds.len(), 5);
    assert!(seeds.contains(&id_seed(4, &[1])));
}

pub(crate) fn single(mut streams: Vec<EventStream>) -> Result<EventStream, RequestError> {
    match (streams.pop(), streams.is_empty()) {
        (Some(stream), true) => Ok(stream),
        _ => Err(RequestError::Unsupported(
            "a single stream is asked for, but the request has several choices",
        )),
    }
}
