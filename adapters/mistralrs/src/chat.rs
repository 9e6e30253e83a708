//! A conversation's next turn in the host's own style: an SDK request in, events out.

use louver::spec::tools::ToolChoice;
use louver_formats::{Parallel, Reasoning, ReasoningBudget, Strictness};
use mistralrs::{RequestBuilder, RequestLike};

use crate::error::{PlanError, RequestError};
use crate::model::Louver;
use crate::plan::{Overlap, PlanBuilder, Run, RunOptions, ToolList, single};
use crate::record::Record;
use crate::safety::Truncation;
use crate::stream::{EventStream, Generation};

/// A request on its way to the model. Tools and tool choice are taken from the SDK's request, or given here.
///
/// ```no_run
/// # use louver_mistralrs::{Event, Louver};
/// # use mistralrs::{RequestBuilder, TextMessageRole, TextModelBuilder};
/// # async fn example(tools: Vec<mistralrs::Tool>) -> Result<(), Box<dyn std::error::Error>> {
/// let (_model, louver) = Louver::load(TextModelBuilder::new("Qwen/Qwen3-4B")).await?;
/// let request = RequestBuilder::new().add_message(TextMessageRole::User, "Weather in Oslo?").set_tools(tools);
/// let answer = louver.chat(request).required().send().await?;
/// for call in answer.turn.calls {
///     println!("{}({})", call.name, call.arguments);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Chat {
    louver: Louver,
    request: Taken,
    tools: ToolList,
    settings: Vec<Setting>,
    options: RunOptions,
}

/// A choice that is made when the plan is built.
type Setting = Box<dyn for<'l> FnOnce(PlanBuilder<'l>) -> PlanBuilder<'l> + Send>;

/// The request without its tools.
type Taken =
    Box<dyn FnOnce(&crate::plan::Plan, RunOptions) -> Result<(Vec<u32>, Run), RequestError> + Send>;

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Chat {
    pub(crate) fn new(louver: Louver, mut request: impl RequestLike + Send + 'static) -> Chat {
        let mut settings: Vec<Setting> = Vec::new();
        let mut tools = ToolList::default();
        if let Some((list, choice)) = request.take_tools() {
            tools = ToolList::from(&list);
            let choice = match choice {
                mistralrs::ToolChoice::None => ToolChoice::None,
                mistralrs::ToolChoice::Auto => ToolChoice::Auto,
                mistralrs::ToolChoice::Tool(tool) => ToolChoice::Named(tool.function.name),
            };
            settings.push(Box::new(|plan| plan.choice(choice)));
        }
        let request: Taken = Box::new(move |plan, options| plan.take(&mut request, options));
        Chat { louver, request, tools, settings, options: RunOptions::default() }
    }

    fn set(
        mut self,
        setting: impl for<'l> FnOnce(PlanBuilder<'l>) -> PlanBuilder<'l> + Send + 'static,
    ) -> Self {
        self.settings.push(Box::new(setting));
        self
    }

    /// The tools in OpenAI's JSON form, with everything such a form can say (`strict`, order of members).
    pub fn tools(mut self, tools: impl Into<ToolList>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Whether and which of them must be called.
    pub fn choice(self, choice: ToolChoice) -> Self {
        self.set(|plan| plan.choice(choice))
    }

    /// Some tool must be called.
    pub fn required(self) -> Self {
        self.choice(ToolChoice::Required)
    }

    /// How many calls the turn may have.
    pub fn parallel(self, parallel: Parallel) -> Self {
        self.set(move |plan| plan.parallel(parallel))
    }

    /// Whose arguments match their schema: every tool's, by default.
    pub fn strictness(self, strictness: Strictness) -> Self {
        self.set(move |plan| plan.strictness(strictness))
    }

    /// What the reasoning block may be.
    pub fn reasoning(self, reasoning: Reasoning) -> Self {
        self.set(move |plan| plan.reasoning(reasoning))
    }

    /// How much reasoning there may be.
    pub fn reasoning_budget(self, most: ReasoningBudget) -> Self {
        self.set(move |plan| plan.reasoning_budget(most))
    }

    /// The JSON Schema of the answer.
    pub fn response_format(self, schema: &serde_json::Value) -> Self {
        let schema = schema.clone();
        self.set(move |plan| plan.response_format(&schema))
    }

    /// Any other setting of a [`PlanBuilder`].
    pub fn with(
        self,
        setting: impl for<'l> FnOnce(PlanBuilder<'l>) -> PlanBuilder<'l> + Send + 'static,
    ) -> Self {
        self.set(setting)
    }

    /// Makes sampling a function of this seed: see [`RunOptions::seed`].
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// What happens near the length limit.
    pub fn truncation(mut self, truncation: Truncation) -> Self {
        self.options.truncation = truncation;
        self
    }

    /// What is done ahead.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.options.overlap = overlap;
        self
    }

    /// What is kept of each step.
    pub fn record(mut self, record: Record) -> Self {
        self.options.record = record;
        self
    }

    /// Sends the request and streams what the model says. The request must have one choice.
    pub async fn stream(self) -> Result<EventStream, RequestError> {
        single(self.choices().await?)
    }

    /// Sends the request and waits for the end.
    pub async fn send(self) -> Result<Generation, ChatError> {
        Ok(self.stream().await?.finish().await?)
    }

    /// Sends the request and streams each of its choices by itself.
    pub async fn choices(self) -> Result<Vec<EventStream>, RequestError> {
        let Chat { louver, request, tools, settings, options } = self;
        let host = louver.host.clone().ok_or(RequestError::NoModel)?;
        let builder =
            settings.into_iter().fold(louver.tools(tools), |builder, setting| setting(builder));
        let plan =
            builder.build().map_err(|error: PlanError| RequestError::Plan(Box::new(error)))?;
        let (prompt, run) = request(&plan, options)?;
        plan.start_on(host.open()?, prompt, run).await
    }
}

/// A request that failed, before or while it ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// Before.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// While it ran.
    #[error(transparent)]
    Generation(#[from] crate::error::GenerationError),
}

/// What [`RequestBuilder`] gains.
pub trait RequestExt: Sized {
    /// A turn of this model: `request.louver(&louver).required().send()`.
    fn louver(self, louver: &Louver) -> Chat;
}

impl RequestExt for RequestBuilder {
    fn louver(self, louver: &Louver) -> Chat {
        louver.chat(self)
    }
}
