//! A turn's demands, compiled for a model, and the requests that follow them.

use std::sync::Arc;

use louver::engine::Constraint;
use louver::front::json_schema::SchemaOptions;
use louver::spec::json::Json;
use louver::spec::tools::{Tool, ToolChoice};
use louver_formats::{Event, Parallel, Reasoning, ToolRequest, Turn};
use mistralrs::{Model, RequestLike, SamplingParams};
use mistralrs_core::{Constraint as HostConstraint, NormalRequest, Request, RequestMessage};
use tokio::sync::{mpsc, oneshot};

use crate::context::Prompt;
use crate::error::{PlanError, RequestError};
use crate::hook::{Hook, HookOptions, Shared};
use crate::model::{Inner, Louver};
use crate::noise::Noise;
use crate::prompt::{self, PromptParts};
use crate::reader::Reader;
use crate::stream::{self, EventStream};

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

/// Collects what a turn may be.
#[derive(Clone, Debug)]
pub struct PlanBuilder<'l> {
    louver: &'l Louver,
    tools: serde_json::Value,
    reasoning: Option<Reasoning>,
    request: ToolRequest,
}

impl<'l> PlanBuilder<'l> {
    pub(crate) fn new(louver: &'l Louver, tools: ToolList) -> Self {
        PlanBuilder { louver, tools: tools.0, reasoning: None, request: ToolRequest::default() }
    }

    /// Whether and which tools must be called.
    pub fn choice(mut self, choice: ToolChoice) -> Self {
        self.request.tool_choice = choice;
        self
    }

    /// How many calls the turn may have.
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.request.parallel = parallel;
        self
    }

    /// What the reasoning block may be. [`Reasoning::Off`] also tells the chat template to leave it out. By default there
    /// may be one, and the turn begins inside it where the chat template opens it.
    pub fn reasoning(mut self, reasoning: Reasoning) -> Self {
        self.reasoning = Some(reasoning);
        self
    }

    /// The JSON Schema of the answer.
    pub fn response_format(mut self, schema: &serde_json::Value) -> Self {
        self.request.response_format = Some(Json::from(schema));
        self
    }

    /// How schemas are read.
    pub fn schema_options(mut self, options: SchemaOptions) -> Self {
        self.request.schema_options = options;
        self
    }

    /// Compiles. Whatever cannot be enforced is an error, with the JSON pointers of all faults. Masks are built later, when
    /// they are first needed.
    pub fn build(self) -> Result<Plan, PlanError> {
        let PlanBuilder { louver, tools, reasoning, mut request } = self;
        let inner = &louver.inner;
        let format = inner.format.clone()?;
        request.reasoning = match reasoning {
            Some(Reasoning::Off) if inner.opens_reasoning(&format, Some(false)) => {
                return Err(PlanError::AlwaysReasons);
            }
            Some(reasoning) => reasoning,
            None if inner.opens_reasoning(&format, None) => Reasoning::Opened,
            None => Reasoning::Optional,
        };
        if !tools.is_null() {
            request.tools = Tool::parse_list(&Json::from(&tools))?;
        }
        request.limits = inner.engine.options().limits.clone();
        let lowered = format.bind(inner.engine.vocab()).lower(&request)?;
        let constraint = inner.engine.compile(lowered.grammar())?;
        // A turn that may not call anything is not shown the tools either.
        let shown = match request.tool_choice {
            ToolChoice::None => Vec::new(),
            _ => tools.as_array().cloned().unwrap_or_default(),
        };
        let enable_thinking = match request.reasoning {
            Reasoning::Off => Some(false),
            Reasoning::Required => Some(true),
            Reasoning::Opened | Reasoning::Optional => None,
        };
        Ok(Plan {
            inner: inner.clone(),
            constrained: Some(Constrained { constraint, lowered }),
            tools: shown,
            enable_thinking,
        })
    }
}

#[derive(Clone, Debug)]
struct Constrained {
    constraint: Constraint,
    lowered: louver_formats::Plan,
}

/// What a turn may be, compiled for a model. Make it once and use it for any number of requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct Plan {
    inner: Arc<Inner>,
    constrained: Option<Constrained>,
    tools: Vec<serde_json::Value>,
    enable_thinking: Option<bool>,
}

/// How a request runs, beside what the SDK's own request says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Makes sampling a function of this seed, whatever else the host is doing (the host itself draws all requests from
    /// one generator). Choice `i` of several has seed + i. With it, temperature is the only sampling parameter that may
    /// be set; penalties are the host's and still hold.
    pub seed: Option<u64>,
}

impl Plan {
    pub(crate) fn unconstrained(inner: Arc<Inner>, tools: ToolList) -> Plan {
        let tools = tools.0.as_array().cloned().unwrap_or_default();
        Plan { inner, constrained: None, tools, enable_thinking: None }
    }

    /// The grammar and its caches; none for a plan without.
    pub fn constraint(&self) -> Option<&Constraint> {
        self.constrained.as_ref().map(|c| &c.constraint)
    }

    /// As [`Plan::stream_with`], with no options.
    pub async fn stream(&self, model: &Model, request: impl RequestLike) -> Result<EventStream, RequestError> {
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
        let mut streams = self.stream_choices(model, request, options).await?;
        match (streams.pop(), streams.is_empty()) {
            (Some(stream), true) => Ok(stream),
            _ => Err(RequestError::Unsupported("a single stream is asked for, but the request has several choices")),
        }
    }

    /// Sends a request and streams each of its choices by itself: to the host they are separate requests.
    pub async fn stream_choices(
        &self,
        model: &Model,
        mut request: impl RequestLike,
        options: RunOptions,
    ) -> Result<Vec<EventStream>, RequestError> {
        let prompt = self.prompt(&mut request)?;
        let mut sampling = request.take_sampling_params();
        let choices = std::mem::replace(&mut sampling.n_choices, 1);
        check_sampling(&sampling, options)?;
        if !matches!(request.take_constraint(), HostConstraint::None) {
            return Err(RequestError::Unsupported("a constraint of the host beside Louver's"));
        }
        let processors = request.take_logits_processors().unwrap_or_default();
        let room = self.inner.max_context.saturating_sub(prompt.len());
        if room == 0 {
            return Err(RequestError::TooLong { tokens: prompt.len(), limit: self.inner.max_context });
        }
        let limit = sampling.max_len.unwrap_or(room).min(room);
        // One more than the limit: the last token is always a stop token, see the hook.
        sampling.max_len = Some(limit + 1);
        let host = model.inner().get_sender(None).map_err(|error| RequestError::Host(error.to_string()))?;
        let mut streams = Vec::with_capacity(choices);
        for choice in 0..choices {
            let seed = options.seed.map(|seed| seed.wrapping_add(choice as u64));
            let mut sampling = sampling.clone();
            let noise = seed.map(|seed| Noise { seed, temperature: sampling.temperature.unwrap_or(1.0) });
            if noise.is_some() {
                sampling.temperature = Some(0.0);
            }
            let shared = Arc::new(Shared::default());
            let (tap, taps) = mpsc::unbounded_channel();
            let hook = HookOptions {
                constraint: self.constraint().cloned(),
                stops: self.inner.stops.clone(),
                prompt: Prompt::Known(prompt.len()),
                limit: Some(limit),
                noise,
                tap: Some(tap),
            };
            let mut processors = processors.clone();
            processors.push(Arc::new(Hook::new(hook, shared.clone())));
            let (response, responses) = mpsc::channel(CHANNEL);
            let message = RequestMessage::CompletionTokens(prompt.clone());
            let normal = NormalRequest {
                is_streaming: true,
                logits_processors: Some(processors),
                ..NormalRequest::new_simple(message, sampling, response, model.inner().next_request_id(), None, None)
            };
            host.send(Request::Normal(Box::new(normal)))
                .await
                .map_err(|error| RequestError::Host(error.to_string()))?;
            let (events_in, events) = mpsc::unbounded_channel();
            let (outcome_in, outcome) = oneshot::channel();
            let reader = self.reader(seed.unwrap_or_else(fresh_seed).wrapping_add(choice as u64));
            let reading = stream::read(responses, taps, reader, events_in, shared.clone());
            tokio::spawn(async move { drop(outcome_in.send(reading.await)) });
            let prompt_tokens = prompt.len();
            streams.push(EventStream { events, outcome, shared, collector: Default::default(), prompt_tokens });
        }
        Ok(streams)
    }

    /// What generated tokens say, read at once. A stop token at the end may be there or not.
    pub fn read(&self, tokens: &[u32]) -> Turn {
        let mut reader = self.reader(0);
        let mut events: Vec<Event> = reader.push(tokens);
        events.extend(reader.finish());
        Turn::collect(&events)
    }

    /// Louver as a processor for the host's own chat route (`RequestBuilder::add_logits_processor`), one object for each
    /// generation, `n_choices` 1. The prompt's length is learned from the host's calls. The output is then the host's to
    /// show; turn its tool parser off (`ToolChoice::None`). Prefer [`Plan::stream`].
    pub fn processor(&self) -> Arc<dyn mistralrs::CustomLogitsProcessor> {
        let hook = HookOptions {
            constraint: self.constraint().cloned(),
            stops: self.inner.stops.clone(),
            prompt: Prompt::unknown(),
            limit: None,
            noise: None,
            tap: None,
        };
        Arc::new(Hook::new(hook, Arc::new(Shared::default())))
    }

    fn reader(&self, id_seed: u64) -> Reader {
        let vocab = self.inner.engine.vocab().clone();
        match &self.constrained {
            Some(c) => Reader::constrained(vocab, c.constraint.matcher(), c.lowered.extractor(id_seed)),
            None => Reader::text(vocab),
        }
    }

    /// The prompt's tokens: the model's own template over the request's messages and the plan's tools.
    fn prompt(&self, request: &mut impl RequestLike) -> Result<Vec<u32>, RequestError> {
        if request.take_tools().is_some() {
            return Err(RequestError::Unsupported("tools in the request: give them to Louver::tools"));
        }
        if request.take_web_search_options().is_some() {
            return Err(RequestError::Unsupported("web search beside a constraint"));
        }
        let (messages, enable_thinking) = match request.take_messages() {
            RequestMessage::Chat { messages, enable_thinking, .. } => (messages, enable_thinking),
            RequestMessage::CompletionTokens(tokens) => return Ok(tokens),
            _ => return Err(RequestError::Unsupported("only chat messages or prompt tokens can be constrained")),
        };
        let template = self.inner.template.as_ref().map_err(Clone::clone)?;
        let messages: Vec<serde_json::Value> = messages.iter().map(prompt::message).collect();
        let enable_thinking = self.enable_thinking.or(enable_thinking);
        let text = template.render(&PromptParts { messages: &messages, tools: &self.tools, enable_thinking })?;
        self.inner.tokenize(&text)
    }
}

/// Ids of calls need not be unpredictable, only different.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn check_sampling(sampling: &SamplingParams, options: RunOptions) -> Result<(), RequestError> {
    if sampling.stop_toks.is_some() {
        return Err(RequestError::Unsupported("stop sequences: they could end a call in the middle"));
    }
    if sampling.max_len == Some(0) {
        return Err(RequestError::Unsupported("a length limit of 0"));
    }
    let others = sampling.top_p.is_some() || sampling.min_p.is_some() || sampling.top_k.is_some_and(|k| k > 1);
    if options.seed.is_some() && others {
        return Err(RequestError::Unsupported("a seed together with top_k, top_p or min_p"));
    }
    Ok(())
}
