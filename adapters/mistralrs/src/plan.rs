//! Plans: the constraints of a turn compiled for a model, and the requests that use them.

use std::sync::Arc;

use louver::front::json_schema::SchemaOptions;
use louver::ids::TokenId;
use louver::spec::json::Json;
use louver_formats::{
    Parallel, Reasoning, ReasoningBudget, RequestErrors, ResponseFormat, Strictness, Tool,
    ToolChoice, ToolChoiceError, ToolRequest, WireFormat,
};
use louver_host::{
    DrawnBy, EventStream, GenerationInput, PlanError, PreparedGeneration, RunOptions, SendError,
    TemplateInput, TurnPlan, conform_call_ids, openai_message,
};
use mistralrs::{Model, RequestLike, SamplingParams};
use mistralrs_core::{NormalRequest, Request, RequestMessage, StopTokens};
use tokio::sync::mpsc;

use crate::host_types;
use crate::model::{Louver, LouverInner};
use crate::processor::HookProcessor;
use crate::request::{RequestParams, TakenPrompt, TakenRequest, blocking};
use crate::request_sender::{next_request_id, sender};

/// Capacity of the host's response channel. The reading task empties it immediately.
const CHANNEL_CAPACITY: usize = 10_000;

/// Tools in OpenAI's JSON format, from JSON or from the SDK's types.
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
        // The SDK's tools are plain data, so serialisation succeeds.
        ToolList(tools.iter().map(|tool| serde_json::to_value(tool).unwrap_or_default()).collect())
    }
}

impl From<&Vec<mistralrs::Tool>> for ToolList {
    fn from(tools: &Vec<mistralrs::Tool>) -> Self {
        ToolList::from(tools.as_slice())
    }
}

/// Builder of a [`Plan`]: a [`ToolRequest`] and the tools for the chat template.
#[derive(Clone, Debug)]
pub struct PlanBuilder {
    pub(crate) louver: Louver,
    pub(crate) tools: ToolList,
    request: ToolRequest,
    template_variables: serde_json::Map<String, serde_json::Value>,
    /// The tools that the choice names, or its errors.
    chosen: Result<Option<Vec<String>>, Vec<ToolChoiceError>>,
}

impl PlanBuilder {
    fn with(mut self, change: impl FnOnce(&mut ToolRequest)) -> Self {
        change(&mut self.request);
        self
    }

    /// Sets whether and which tools must be called.
    pub fn choice(mut self, choice: ToolChoice) -> Self {
        self.chosen = Ok(None);
        self.with(|request| request.tool_choice = choice)
    }

    /// Sets whether and which tools must be called, in OpenAI's JSON format: `"required"`,
    /// `{"type": "allowed_tools", ...}` and so on. Tools that it allows must also be among those of
    /// [`PlanBuilder::allow`], if that is called. [`PlanBuilder::build`] reports its errors.
    pub fn openai_choice(mut self, choice: &serde_json::Value) -> Self {
        self.chosen = ToolChoice::parse(&Json::from(choice)).map(|(choice, names)| {
            self.request.tool_choice = choice;
            names
        });
        self
    }

    /// Sets the number of calls that the turn may have.
    pub fn parallel(self, parallel: Parallel) -> Self {
        self.with(|request| request.parallel = parallel)
    }

    /// Sets the reasoning mode. [`Reasoning::Off`] also tells the chat template to leave reasoning
    /// out. By default reasoning is optional, and the turn begins inside the block if the chat
    /// template opens it.
    pub fn reasoning(self, reasoning: Reasoning) -> Self {
        self.with(|request| request.reasoning = reasoning)
    }

    /// Sets the JSON Schema of the response.
    pub fn response_format(self, schema: &serde_json::Value) -> Self {
        self.with(|request| {
            request.response_format = Some(ResponseFormat::Schema(Json::from(schema)));
        })
    }

    /// Sets the schema options. By default, members that a schema does not declare are forbidden
    /// ([`SchemaOptions::closed`]).
    pub fn schema_options(self, options: SchemaOptions) -> Self {
        self.with(|request| request.schema_options = options)
    }

    /// Restricts calls to these tools, by name.
    pub fn allow<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.with(|request| {
            request.allowed = Some(names.into_iter().map(Into::into).collect());
        })
    }

    /// Sets which tools' arguments must match their schema; by default every tool's.
    pub fn strictness(self, strictness: Strictness) -> Self {
        self.with(|request| request.strictness = strictness)
    }

    /// Limits the length of reasoning.
    pub fn reasoning_budget(self, max: ReasoningBudget) -> Self {
        self.with(|request| request.reasoning_budget = Some(max))
    }

    /// Sets a variable of the chat template, such as `reasoning_effort`. [`PlanBuilder::build`]
    /// refuses those that the conversation, the tools or the tokenizer give.
    pub fn template_variable(
        mut self,
        name: impl Into<String>,
        value: impl Into<serde_json::Value>,
    ) -> Self {
        self.template_variables.insert(name.into(), value.into());
        self
    }

    /// Adds a stop string: it ends free text and the turn, and a constrained response also where
    /// its structure is not complete.
    pub fn stop(self, text: impl Into<String>) -> Self {
        self.with(|request| request.stop.push(text.into()))
    }

    /// Forbids a string in free text.
    pub fn ban(self, text: impl Into<String>) -> Self {
        self.with(|request| request.bans.push(text.into()))
    }

    /// Compiles the plan. Constraints that cannot be enforced are errors with the JSON pointers of
    /// all faults. Masks are computed later, on first use.
    pub fn build(self) -> Result<Plan, PlanError> {
        let PlanBuilder { louver, tools, mut request, template_variables, chosen } = self;
        let ToolList(tools) = tools;
        let chosen =
            chosen.map_err(|errors| RequestErrors(errors.into_iter().map(Into::into).collect()))?;
        let enable_thinking = match request.reasoning {
            Reasoning::Off => Some(false),
            Reasoning::Required => Some(true),
            Reasoning::Optional | Reasoning::Opened => None,
        };
        if !tools.is_null() {
            request.tools = Tool::parse_list(&Json::from(&tools))?;
        }
        request.allowed = match (request.allowed, chosen) {
            (Some(allowed), Some(mut chosen)) => {
                // Unknown names are reported.
                let is_known = |name: &String| request.tools.iter().any(|t| t.name() == name);
                chosen.retain(|name| allowed.contains(name) || !is_known(name));
                Some(chosen)
            }
            (allowed, chosen) => allowed.or(chosen),
        };
        let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
        let input = TemplateInput::new(tools, enable_thinking).with_variables(template_variables);
        louver.plan(request, input)
    }
}

/// A turn's constraints compiled for a model. Reusable for any number of requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct Plan {
    inner: Arc<LouverInner>,
    turn_plan: TurnPlan,
    template_input: TemplateInput,
    /// What the plan for another prompt is compiled from; none if all prompts have this plan.
    source: Option<Arc<TurnSource>>,
}

/// The request of a conversation's turn, before the prompt has decided where the turn begins.
#[derive(Debug)]
struct TurnSource {
    request: ToolRequest,
    /// Whether the plan is for prompts that end inside a reasoning block.
    is_opened: bool,
}

impl Plan {
    /// Compiles a turn for prompts that end inside a reasoning block (`is_opened`), or outside.
    fn compile(
        inner: &Arc<LouverInner>,
        request: ToolRequest,
        template_input: TemplateInput,
        is_opened: bool,
    ) -> Result<Plan, PlanError> {
        let format = inner.format.as_ref().map_err(Clone::clone)?;
        let mut turn = request.clone();
        turn.reasoning = match request.reasoning {
            Reasoning::Off if is_opened => return Err(PlanError::AlwaysReasons),
            Reasoning::Optional | Reasoning::Required if is_opened => Reasoning::Opened,
            reasoning => reasoning,
        };
        let turn_plan = TurnPlan::compile(&inner.engine, format, turn)?;
        let source = Some(Arc::new(TurnSource { request, is_opened }));
        Ok(Plan { inner: inner.clone(), turn_plan, template_input, source })
    }

    /// The plan of the turn after a prompt: this one, unless the prompt ends inside a reasoning
    /// block and this plan begins outside, or the reverse.
    fn for_prompt(&self, prompt: &str) -> Result<Plan, PlanError> {
        let (Some(source), Ok(format)) = (&self.source, &self.inner.format) else {
            return Ok(self.clone());
        };
        let is_opened = format.prompt_opens_reasoning(prompt);
        if is_opened == source.is_opened {
            return Ok(self.clone());
        }
        let (request, input) = (source.request.clone(), self.template_input.clone());
        Plan::compile(&self.inner, request, input, is_opened)
    }

    /// The turn's constraint and how its output is read.
    pub fn turn_plan(&self) -> &TurnPlan {
        &self.turn_plan
    }

    /// As [`Plan::stream_with`], with no options.
    pub async fn stream(
        &self,
        model: &Model,
        request: impl RequestLike,
    ) -> Result<EventStream, SendError> {
        self.stream_with(model, request, RunOptions::default()).await
    }

    /// Sends a request with one choice and streams its events.
    ///
    /// The request is the SDK's: messages, sampling, further logits processors (which run before
    /// Louver's), log probabilities ([`Generation::steps`](crate::Generation::steps)). Tools come
    /// from the plan. Requests that would break the constraint or bypass it are rejected: the
    /// host's own tools, constraints and stop sequences, web search, media. Needs a tokio runtime.
    pub async fn stream_with(
        &self,
        model: &Model,
        request: impl RequestLike,
        options: RunOptions,
    ) -> Result<EventStream, SendError> {
        single_stream(self.stream_choices(model, request, options).await?)
    }

    /// Sends a request and returns one stream per choice. To the host they are separate requests.
    pub async fn stream_choices(
        &self,
        model: &Model,
        mut request: impl RequestLike,
        options: RunOptions,
    ) -> Result<Vec<EventStream>, SendError> {
        let taken = TakenRequest::take(&mut request, options)?;
        let plan = self.clone();
        let (plan, prompt, params) = blocking(move || plan.render_request(taken)).await?;
        plan.start(model, prompt, params).await
    }

    /// The prompt and the parameters of an SDK request, and the plan for this prompt. Blocks:
    /// renders the template, tokenizes, and may compile.
    pub(crate) fn render_request(
        &self,
        taken: TakenRequest,
    ) -> Result<(Plan, Vec<u32>, RequestParams), SendError> {
        let TakenRequest { prompt, params } = taken;
        let (plan, prompt) = match prompt {
            TakenPrompt::Tokens(tokens) => (self.clone(), self.token_prompt(tokens)?),
            TakenPrompt::Chat { mut messages, enable_thinking, effort } => {
                let mut input = self.template_input.clone();
                input.enable_thinking = input.enable_thinking.or(enable_thinking);
                if let Some(effort) = effort {
                    // mistral.rs 0.9 has the effort `off`.
                    let is_on = effort != "off";
                    if *input.enable_thinking.get_or_insert(is_on) != is_on {
                        return Err(SendError::Unsupported(
                            "a reasoning effort against enable_thinking",
                        ));
                    }
                    let variable = input.variables.entry("reasoning_effort");
                    variable.or_insert_with(|| effort.into());
                }
                self.render(&mut messages, &input)?
            }
        };
        Ok((plan, prompt, params))
    }

    /// Sends a prompt to the model and returns one stream per choice. The model must be the one
    /// that Louver was set up for. Needs a tokio runtime.
    pub async fn start(
        &self,
        model: &Model,
        prompt: Vec<u32>,
        params: RequestParams,
    ) -> Result<Vec<EventStream>, SendError> {
        self.start_on(&sender(model.inner())?, prompt, params).await
    }

    pub(crate) async fn start_on(
        &self,
        sender: &mpsc::Sender<Request>,
        prompt: Vec<u32>,
        params: RequestParams,
    ) -> Result<Vec<EventStream>, SendError> {
        let RequestParams { sampling, processors, earlier_ids, options } = params;
        let drawn_by = options.drawn_by()?;
        let mut sampling = sampling.unwrap_or_else(SamplingParams::neutral);
        let choices = std::mem::replace(&mut sampling.n_choices, 1);
        let limit = self.limit(&prompt, sampling.max_len)?;
        // One more than the limit, because the last token is always a stop token: see the hook.
        sampling.max_len = Some(limit + 1);
        let stops = self.inner.engine.vocab().stops();
        sampling.stop_toks = Some(StopTokens::Ids(stops.iter().map(|id| id.raw()).collect()));
        let prepare = options.overlap.prepare;
        let preparation = Arc::new(prepare.map(|budget| self.turn_plan.prepare_masks(budget)));
        let input = GenerationInput::new(&prompt, limit, drawn_by)
            .with_sampling(host_types::sampling(&sampling))
            .with_limit_policy(options.limit_policy)
            .with_prefetch(options.overlap.prefetch)
            .with_record(options.record)
            .with_earlier_ids(&earlier_ids);
        if drawn_by != DrawnBy::Host {
            // The hook draws; the host takes the largest logit.
            (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) =
                (Some(0.0), None, None, None);
        }
        let mut streams = Vec::with_capacity(choices);
        for choice in 0..choices as u64 {
            let input = input.with_drawn_by(drawn_by.of_choice(choice));
            let PreparedGeneration { hook, events, task, .. } = self.turn_plan.generation(&input);
            let mut processors = processors.clone();
            processors.push(Arc::new(HookProcessor::new(hook)));
            let (response, responses) = mpsc::channel(CHANNEL_CAPACITY);
            let message = RequestMessage::CompletionTokens(prompt.clone());
            let id = next_request_id();
            let normal = NormalRequest {
                is_streaming: true,
                logits_processors: Some(processors),
                ..NormalRequest::new_simple(message, sampling.clone(), response, id, None, None)
            };
            let sent = sender.send(Request::Normal(Box::new(normal))).await;
            sent.map_err(|error| SendError::Host(error.to_string()))?;
            let preparation = preparation.clone();
            tokio::spawn(async move {
                task.run(host_types::first_finish(responses)).await;
                drop(preparation);
            });
            streams.push(events);
        }
        Ok(streams)
    }

    /// The most tokens that a request may generate, without the final stop token.
    fn limit(&self, prompt: &[u32], max_len: Option<usize>) -> Result<usize, SendError> {
        if max_len == Some(0) {
            return Err(SendError::Unsupported("a length limit of 0"));
        }
        let available = self.inner.available_tokens(prompt.len())?;
        Ok(max_len.unwrap_or(available).min(available))
    }

    /// Louver as a logits processor for the host's own chat route
    /// (`RequestBuilder::add_logits_processor`), one object per generation, with `n_choices` 1. The
    /// prompt's length is learned from the host's calls. The host then draws and formats the
    /// output; turn its tool parser off (`ToolChoice::None`). Prefer [`Plan::stream`].
    pub fn processor(&self) -> Arc<dyn mistralrs::CustomLogitsProcessor> {
        Arc::new(HookProcessor::new(Arc::new(self.turn_plan.hook())))
    }

    /// Renders the prompt of a conversation from the model's chat template, the messages (in
    /// OpenAI's JSON format, with arguments of earlier calls as text or objects) and the plan's
    /// tools. Returns the plan that [`Plan::start`] needs for this prompt, and the prompt's tokens.
    /// It is another plan if the template opens the reasoning block in this conversation and not in
    /// short ones, or the reverse.
    pub fn for_messages(
        &self,
        messages: &[serde_json::Value],
    ) -> Result<(Plan, Vec<u32>), SendError> {
        let mut messages: Vec<serde_json::Value> = messages
            .iter()
            .map(|message| openai_message(message, self.inner.message_style))
            .collect();
        self.render(&mut messages, &self.template_input)
    }

    /// The tokens of a prompt without a chat template. The tokenizer adds its special tokens, such
    /// as a beginning of text.
    pub fn text_prompt(&self, text: &str) -> Result<Vec<u32>, SendError> {
        self.inner.tokenize(text, true)
    }

    /// Checks that a prompt of tokens is not empty, has tokens of the model's vocabulary only, and
    /// leaves room for output.
    pub fn token_prompt(&self, tokens: Vec<u32>) -> Result<Vec<u32>, SendError> {
        let vocab = self.inner.engine.vocab();
        match tokens.iter().find(|&&token| !vocab.is_used(TokenId::from_raw(token))) {
            Some(&token) => Err(SendError::UnknownToken { token }),
            None if tokens.is_empty() => Err(SendError::EmptyPrompt),
            None => self.inner.available_tokens(tokens.len()).map(|_| tokens),
        }
    }

    fn render(
        &self,
        messages: &mut [serde_json::Value],
        input: &TemplateInput,
    ) -> Result<(Plan, Vec<u32>), SendError> {
        let template = self.inner.template.as_ref().map_err(Clone::clone)?;
        if let Ok(format) = &self.inner.format {
            conform_call_ids(messages, format);
        }
        let text = template.render(messages, input)?;
        // The template adds special tokens.
        let tokens = self.inner.tokenize(&text, false)?;
        Ok((self.for_prompt(&text).map_err(Box::new)?, tokens))
    }
}

pub(crate) fn single_stream(mut streams: Vec<EventStream>) -> Result<EventStream, SendError> {
    match (streams.pop(), streams.is_empty()) {
        (Some(stream), true) => Ok(stream),
        _ => Err(SendError::Unsupported(
            "a single stream was requested, but the request has not exactly one choice",
        )),
    }
}

impl Louver {
    /// Compiles an OpenAI-style request. The engine's limits apply. `reasoning` is used as given,
    /// except that [`Reasoning::Optional`] becomes [`Reasoning::Opened`] if the chat template opens
    /// the block: for a short conversation here, and for a given one in [`Plan::for_messages`].
    pub fn plan(
        &self,
        request: ToolRequest,
        mut template_input: TemplateInput,
    ) -> Result<Plan, PlanError> {
        if request.tool_choice == ToolChoice::None {
            template_input.clear_tools();
        }
        let mut names = template_input.variables.keys();
        if let Some(name) = names.find(|name| TemplateInput::is_reserved(name)) {
            return Err(PlanError::ReservedVariable(name.clone()));
        }
        let is_opened = self.inner.opens_reasoning(&template_input);
        Plan::compile(&self.inner, request, template_input, is_opened)
    }

    /// Compiles a request for a prompt without a chat template ([`Plan::text_prompt`]): the output
    /// is text, or the answer that the request asks for. The model's wire format does not matter,
    /// and the request offers no tools.
    pub fn plan_completion(&self, request: ToolRequest) -> Result<Plan, PlanError> {
        let request = request.with_reasoning(Reasoning::Off);
        let turn_plan = TurnPlan::compile(&self.inner.engine, &WireFormat::plain(), request)?;
        Ok(self.plan_without_source(turn_plan, TemplateInput::default()))
    }

    /// Begins a plan of a turn with these tools.
    pub fn tools(&self, tools: impl Into<ToolList>) -> PlanBuilder {
        let request = ToolRequest::default().with_schema_options(SchemaOptions::closed());
        PlanBuilder {
            louver: self.clone(),
            tools: tools.into(),
            request,
            template_variables: Default::default(),
            chosen: Ok(None),
        }
    }

    /// Begins a plan of a turn that matches this JSON Schema.
    pub fn answer(&self, schema: &serde_json::Value) -> PlanBuilder {
        self.tools(ToolList::default()).response_format(schema)
    }

    /// A plan without a constraint, for comparison: the model sees the tools, and all its output is
    /// text.
    pub fn unconstrained(&self, tools: impl Into<ToolList>) -> Plan {
        let ToolList(tools) = tools.into();
        let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
        let turn_plan = TurnPlan::unconstrained(self.inner.engine.vocab().clone());
        self.plan_without_source(turn_plan, TemplateInput::new(tools, None))
    }

    /// A plan that is the same for every prompt.
    fn plan_without_source(&self, turn_plan: TurnPlan, template_input: TemplateInput) -> Plan {
        Plan { inner: self.inner.clone(), turn_plan, template_input, source: None }
    }
}
