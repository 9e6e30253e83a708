//! Chat requests in the host's style: an SDK request in, events out.

use louver_formats::ToolChoice;
use louver_host::{EventStream, Generation, GenerationError, RunOptions, SendError};
use mistralrs::RequestLike;

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

    /// Applies a setting of a [`PlanBuilder`]: `chat.with(|plan| plan.parallel(Parallel::One))`.
    pub fn with(self, setting: impl FnOnce(PlanBuilder) -> PlanBuilder) -> Self {
        Chat { plan: setting(self.plan), ..self }
    }

    /// Sets the options of running the request, such as its seed.
    pub fn options(self, options: RunOptions) -> Self {
        Chat { options, ..self }
    }

    /// Sends the request and streams its events. The request must have one choice.
    pub async fn stream(self) -> Result<EventStream, SendError> {
        single_stream(self.choices().await?)
    }

    /// Sends the request and waits for its end.
    pub async fn send(self) -> Result<Generation, ChatError> {
        Ok(self.stream().await?.finish().await?)
    }

    /// Sends the request and returns one stream per choice.
    pub async fn choices(self) -> Result<Vec<EventStream>, SendError> {
        let Chat { plan, mut request, options } = self;
        let host = plan.louver.host.clone().ok_or(SendError::NoModel)?;
        let taken = TakenRequest::take(&mut *request, options)?;
        let render = move || {
            let plan = plan.build().map_err(|error| SendError::Plan(Box::new(error)))?;
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
    Send(#[from] SendError),
    /// Its generation failed.
    #[error(transparent)]
    Generation(#[from] GenerationError),
}
