//! Chat requests in the host's style: an SDK request in, events out.

use louver_formats::{Parallel, Reasoning, ReasoningBudget, Strictness, ToolChoice};
use louver_host::{
    Draw, EventStream, Generation, GenerationError, LimitPolicy, Overlap, Record, RequestError,
    RunOptions,
};
use mistralrs::{RequestBuilder, RequestLike};

use crate::host_types;
use crate::model::Louver;
use crate::plan::{PlanBuilder, ToolList, single_stream};
use crate::request::{TakenRequest, blocking};

/// A request to the model. Tools and tool choice come from the SDK's request or are set here.
///
/// ```no_run
/// # use louver_mistralrs::{Event, Louver};
/// # use mistralrs::{RequestBuilder, TextMessageRole, TextModelBuilder};
/// # async fn example(tools: Vec<mistralrs::Tool>) -> Result<(), Box<dyn std::error::Error>> {
/// let (_model, louver) = Louver::load(TextModelBuilder::new("Qwen/Qwen3-4B")).await?;
/// let request = RequestBuilder::new()
///     .add_message(TextMessageRole::User, "Weather in Oslo?")
///     .set_tools(tools);
/// let response = louver.chat(request).required().send().await?;
/// for call in response.turn.calls {
///     println!("{}({})", call.name, call.arguments);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Chat {
    plan: PlanBuilder,
    request: Box<dyn RequestLike + Send>,
    options: RunOptions,
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Louver {
    /// Prepares the next turn of a conversation: see [`Chat`].
    pub fn chat(&self, mut request: impl RequestLike + Send + 'static) -> Chat {
        let plan = match request.take_tools() {
            None => self.tools(ToolList::default()),
            Some((tools, choice)) => {
                self.tools(&tools).openai_choice(&host_types::openai_choice(choice))
            }
        };
        Chat { plan, request: Box::new(request), options: RunOptions::default() }
    }
}

impl Chat {
    /// Sets the tools in OpenAI's JSON format, including `strict` and the order of members.
    pub fn tools(mut self, tools: impl Into<ToolList>) -> Self {
        self.plan.tools = tools.into();
        self
    }

    /// Sets whether and which tools must be called.
    pub fn choice(self, choice: ToolChoice) -> Self {
        self.with(|plan| plan.choice(choice))
    }

    /// Requires a tool call.
    pub fn required(self) -> Self {
        self.choice(ToolChoice::Required)
    }

    /// Sets the number of calls that the turn may have.
    pub fn parallel(self, parallel: Parallel) -> Self {
        self.with(|plan| plan.parallel(parallel))
    }

    /// Sets which tools' arguments must match their schema; by default every tool's.
    pub fn strictness(self, strictness: Strictness) -> Self {
        self.with(|plan| plan.strictness(strictness))
    }

    /// Sets the reasoning mode.
    pub fn reasoning(self, reasoning: Reasoning) -> Self {
        self.with(|plan| plan.reasoning(reasoning))
    }

    /// Limits the length of reasoning.
    pub fn reasoning_budget(self, max: ReasoningBudget) -> Self {
        self.with(|plan| plan.reasoning_budget(max))
    }

    /// Sets the JSON Schema of the response.
    pub fn response_format(self, schema: &serde_json::Value) -> Self {
        self.with(|plan| plan.response_format(schema))
    }

    /// Applies any other setting of a [`PlanBuilder`].
    pub fn with(self, setting: impl FnOnce(PlanBuilder) -> PlanBuilder) -> Self {
        Chat { plan: setting(self.plan), ..self }
    }

    /// Sets who draws the tokens; by default Louver.
    pub fn draw(mut self, draw: Draw) -> Self {
        self.options.draw = draw;
        self
    }

    /// Makes drawing a function of this seed: see [`RunOptions::seed`].
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Sets the behaviour near the length limit.
    pub fn limit_policy(mut self, policy: LimitPolicy) -> Self {
        self.options.limit_policy = policy;
        self
    }

    /// Sets the speculative work.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.options.overlap = overlap;
        self
    }

    /// Sets what is recorded of each step.
    pub fn record(mut self, record: Record) -> Self {
        self.options.record = record;
        self
    }

    /// Sends the request and streams its events. The request must have one choice.
    pub async fn stream(self) -> Result<EventStream, RequestError> {
        single_stream(self.choices().await?)
    }

    /// Sends the request and waits for its end.
    pub async fn send(self) -> Result<Generation, ChatError> {
        Ok(self.stream().await?.finish().await?)
    }

    /// Sends the request and returns one stream per choice.
    pub async fn choices(self) -> Result<Vec<EventStream>, RequestError> {
        let Chat { plan, mut request, options } = self;
        let host = plan.louver.host.clone().ok_or(RequestError::NoModel)?;
        let taken = TakenRequest::take(&mut *request, options)?;
        let render = move || {
            let plan = plan.build().map_err(|error| RequestError::Plan(Box::new(error)))?;
            plan.render_request(taken)
        };
        let (plan, prompt, params) = blocking(render).await?;
        plan.start_on(&host.sender()?, prompt, params).await
    }
}

/// Why a chat request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// It could not be sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Its generation failed.
    #[error(transparent)]
    Generation(#[from] GenerationError),
}

/// Extension of the SDK's [`RequestBuilder`].
pub trait RequestExt: Sized {
    /// A chat request to this model: `request.louver(&louver).required().send()`.
    fn louver(self, louver: &Louver) -> Chat;
}

impl RequestExt for RequestBuilder {
    fn louver(self, louver: &Louver) -> Chat {
        louver.chat(self)
    }
}
