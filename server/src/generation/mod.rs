//! The generations of a request: admission, planning, and its running choices as one event stream.
//! Each choice is one generation, and one more after each round of calls that the server runs.

mod choice;
mod finished;
mod queue;
mod read;
mod record;
mod rounds;
mod running;
mod slots;
mod sse;
mod start;
mod usage;
mod work;

use std::sync::Arc;
use std::time::Duration;

use louver::limits::Limits;
use louver::spec::json::Json;
use louver_formats::{Reasoning, ReasoningBudget, ToolRequest};
use louver_mistralrs::{
    Draw, Overlap, Plan, PlanError, Record, RequestParams, RunOptions, SendError, TemplateInput,
    call_ids,
};
use mistralrs::SamplingParams;
use serde_json::Value;

use crate::error::{ApiError, ApiFault, ErrorKind};
use crate::http::body::BodyShare;
use crate::request::members::Faults;
use crate::request::options::{RequestExtension, Sampling, StreamOptions};
use crate::request::pointers::PointerMap;
use crate::request::template::TemplateOptions;
use crate::served_model::ServedModel;
use crate::state::App;
use crate::telemetry::RequestAttributes;

pub(crate) use choice::Progress;
pub(crate) use finished::{FinishedChoice, finish_reason};
pub(crate) use read::read_request;
pub(crate) use rounds::{ServerTools, ToolResult};
pub(crate) use running::RunningRequest;
pub(crate) use sse::{DONE, EventWriter, data_event, stream_events, typed_event};
pub(crate) use start::start;
pub(crate) use usage::Usage;
pub(crate) use work::{BlockingWork, run_check};

/// Number of alternative tokens that a trace records per step.
const TRACE_ALTERNATIVES: usize = 8;

/// The plan for some prompts, and the tokens of each prompt.
pub(crate) type RenderedPrompts = (Plan, Vec<Vec<u32>>);

/// What the model continues.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Prompt {
    /// A conversation, in the form that chat templates take.
    Messages(Vec<Value>),
    /// Text without a chat template. The tokenizer adds its special tokens.
    Text(String),
    /// Tokens, as they are.
    Tokens(Vec<u32>),
    /// Several texts and lists of tokens, each with choices of its own.
    Several(Vec<Prompt>),
}

impl Prompt {
    /// The tokens of each prompt, and the plan for them. Error: with the index of its prompt,
    /// if there are several.
    fn render(&self, plan: Plan) -> Result<RenderedPrompts, (SendError, Option<usize>)> {
        let one = |prompt: &Prompt| match prompt {
            Prompt::Text(text) => plan.text_prompt(text),
            Prompt::Tokens(tokens) => plan.token_prompt(tokens.clone()),
            // Prompts of several are texts and tokens.
            Prompt::Messages(_) | Prompt::Several(_) => Err(SendError::EmptyPrompt),
        };
        let tokens = match self {
            Prompt::Messages(messages) => {
                let rendered = plan.for_messages(messages).map_err(|error| (error, None))?;
                let (plan, tokens) = rendered;
                return Ok((plan, vec![tokens]));
            }
            Prompt::Several(prompts) => {
                let prompts = prompts.iter().enumerate();
                let tokens =
                    prompts.map(|(k, prompt)| one(prompt).map_err(|error| (error, Some(k))));
                tokens.collect::<Result<Vec<_>, _>>()?
            }
            prompt => vec![one(prompt).map_err(|error| (error, None))?],
        };
        Ok((plan, tokens))
    }
}

impl Default for Prompt {
    fn default() -> Self {
        Prompt::Messages(Vec::new())
    }
}

/// A generation request, independent of the route it arrived on.
#[derive(Clone, Debug, Default)]
pub(crate) struct GenerationRequest {
    /// The model's name; `None` selects the first model.
    pub(crate) model: Option<String>,
    /// What the model continues.
    pub(crate) prompt: Prompt,
    /// Tools, response format and other constraints on the output.
    pub(crate) tools: ToolRequest,
    /// The request's tools, for the chat template.
    pub(crate) template_tools: Vec<Value>,
    /// Reasoning and variables, for the chat template.
    pub(crate) template: TemplateOptions,
    /// Sampling parameters and length limits.
    pub(crate) sampling: Sampling,
    /// The request's `louver` member.
    pub(crate) extension: RequestExtension,
    /// The streaming options, if the response is streamed.
    pub(crate) stream: Option<StreamOptions>,
    /// The response id, which traces share.
    pub(crate) id: String,
    /// Maps JSON pointers of the rewritten body to the request as sent.
    pub(crate) pointers: PointerMap,
    /// The tools that the server runs, if the request offers any.
    pub(crate) server_tools: Option<Arc<ServerTools>>,
    /// The body as it was sent.
    pub(crate) body: SentBody,
}

/// What is kept of a request's body.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentBody {
    /// The route and the request as sent, if a trace is to be recorded.
    pub(crate) traced: Option<(&'static str, Value)>,
    /// Pays for the memory of the request.
    pub(crate) share: BodyShare,
}

impl GenerationRequest {
    /// Reads the members that constrain the output: tools, response format, stop strings. Faults
    /// get pointers into the request as sent; those of a pointer that has a fault are left out.
    fn read_tools(&mut self, body: &Json, limits: &Limits, faults: &mut Faults) {
        match ToolRequest::parse_within(body, limits) {
            Ok(tools) => self.tools = tools,
            Err(error) => {
                let error = ApiError::from(error).map_pointers(&self.pointers);
                let known: Vec<Option<String>> =
                    faults.iter().map(|fault| fault.param.clone()).collect();
                let is_new =
                    |fault: &&ApiFault| fault.param.is_none() || !known.contains(&fault.param);
                faults.extend(error.faults().filter(is_new).cloned());
            }
        }
    }

    /// The request with the constraints of its body. Errors: the faults of both.
    pub(crate) fn complete(
        mut self,
        body: &Json,
        limits: &Limits,
        mut faults: Faults,
    ) -> Result<GenerationRequest, ApiError> {
        self.read_tools(body, limits, &mut faults);
        ApiError::reject(faults)?;
        Ok(self)
    }

    /// The constraints under a model's settings, and the input of the chat template besides the
    /// messages. The request's own members come first.
    fn resolve(&self, served: &ServedModel) -> (ToolRequest, TemplateInput) {
        let (settings, extension) = (&served.settings, &self.extension);
        let (reasoning, enable_thinking) = settings.reasoning.of_request(self.template.reasoning);
        let reasons = reasoning != Reasoning::Off && matches!(self.prompt, Prompt::Messages(_));
        let default_budget = settings.reasoning_budget.filter(|_| reasons);
        let reasoning_budget = extension.reasoning_budget.or(default_budget);
        let tools = self
            .tools
            .clone()
            .with_strictness(settings.strict_tools.into())
            .with_limits(served.louver.engine().options().limits.clone())
            .with_schema_options(extension.schema_options(settings.schema_options))
            .with_parallel(extension.parallel(self.tools.parallel))
            .with_reasoning_budget(reasoning_budget.map(ReasoningBudget::Tokens))
            .with_reasoning(reasoning);
        let input = TemplateInput::new(&self.template_tools, enable_thinking);
        (tools, input.with_variables(self.template.variables.clone()))
    }

    /// Attributes of the spans of its choices.
    fn attributes(&self, served: &ServedModel, compiled_in: Duration) -> RequestAttributes {
        let SamplingParams { temperature, top_p, .. } = self.sampling.params;
        RequestAttributes {
            compiled_in,
            max_tokens: self.max_tokens(served),
            temperature,
            top_p,
            tools: self.tool_count(),
        }
    }

    fn tool_count(&self) -> usize {
        self.tools.tools.len()
    }

    /// The number of choices of all prompts.
    pub(crate) fn choices(&self) -> usize {
        let prompts = if let Prompt::Several(prompts) = &self.prompt { prompts.len() } else { 1 };
        prompts * self.choices_per_prompt()
    }

    /// The member that asks for several choices.
    pub(crate) fn choices_pointer(&self) -> &'static str {
        if matches!(self.prompt, Prompt::Several(_)) { "/prompt" } else { "/n" }
    }

    pub(crate) fn choices_per_prompt(&self) -> usize {
        self.sampling.params.n_choices
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
            Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Several(_) => Vec::new(),
        }
    }

    /// Compiles the constraints. Without a conversation, the output is not in the model's wire
    /// format.
    pub(crate) fn plan(&self, served: &ServedModel) -> Result<Plan, PlanError> {
        let (tools, template_input) = self.resolve(served);
        match self.prompt {
            Prompt::Messages(_) => served.louver.plan(tools, template_input),
            Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Several(_) => {
                served.louver.plan_completion(tools)
            }
        }
    }

    /// The tokens of each prompt (of a conversation there is one), and the plan for them: whether
    /// the output begins with reasoning depends on the prompt.
    pub(crate) fn render(&self, plan: Plan) -> Result<RenderedPrompts, ApiError> {
        self.prompt.render(plan).map_err(|(error, index)| {
            let mut pointers = PointerMap::default();
            if let Some(index) = index {
                pointers.insert("/messages", format!("/messages/{index}"));
            }
            self.send_error(error).map_pointers(&pointers)
        })
    }

    /// The number of tokens of all prompts, also of one that is too long for the model.
    pub(crate) fn count_tokens(&self, plan: Plan) -> Result<usize, ApiError> {
        match self.prompt.render(plan) {
            Ok((_, prompts)) => Ok(prompts.iter().map(Vec::len).sum()),
            Err((SendError::TooLong { tokens, .. }, None)) => Ok(tokens),
            Err((error, _)) => Err(self.send_error(error)),
        }
    }

    fn send_error(&self, error: SendError) -> ApiError {
        match error {
            SendError::Plan(error) => self.plan_error(*error),
            // The messages are not the only input of the template.
            SendError::Template(error) if !self.template.variables.is_empty() => {
                ApiError::general(ErrorKind::Invalid, "chat_template", error.to_string())
            }
            error => error.into(),
        }
    }

    /// An error of planning. One of the whole grammar is a fault of the member that asks for
    /// structure: of the response format, or else of the tools.
    pub(crate) fn plan_error(&self, error: PlanError) -> ApiError {
        let pointer = match error {
            PlanError::Compile(_) if self.tools.response_format.is_some() => "/response_format",
            PlanError::Compile(_) if self.tool_count() > 0 => "/tools",
            error => return error.into(),
        };
        ApiError::from(error).with_pointer(pointer)
    }

    /// The parameters of its requests to the host.
    fn params(&self, app: &App, served: &ServedModel) -> RequestParams {
        let sampling = &self.sampling;
        let host_sampling = SamplingParams {
            // Without one, the host would take the likeliest token.
            temperature: sampling.params.temperature.or(Some(1.0)),
            max_len: Some(self.max_tokens(served)),
            ..sampling.params.clone()
        };
        let record = match (self.body.traced.is_some(), sampling.logprobs) {
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
        // A seed in the request asks for the draws of that seed, which only Louver makes.
        let draw = if sampling.seed.is_some() { Draw::Louver } else { served.settings.draw };
        let options = RunOptions::default()
            .with_draw(draw)
            .with_seed(sampling.seed)
            .with_limit_policy(self.extension.limit_policy)
            // Preparation runs with compilation, so that dropping the request cancels it.
            .with_overlap(Overlap::default().with_prepare(None))
            .with_record(record);
        let (processors, earlier_ids) = (served.processors.clone(), self.earlier_ids());
        RequestParams::default()
            .with_sampling(host_sampling)
            .with_processors(processors)
            .with_earlier_ids(earlier_ids)
            .with_options(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use louver::compile::CompileError;

    #[test]
    fn errors_of_the_whole_grammar_have_a_pointer() {
        const FORMAT: &str = r#""response_format": {"type": "json_object"}"#;
        const TOOLS: &str = r#""tools": [{"name": "f"}]"#;
        for (body, pointer) in [
            (format!("{{{FORMAT}}}"), Some("/response_format")),
            (format!("{{{TOOLS}}}"), Some("/tools")),
            (format!("{{{FORMAT}, {TOOLS}}}"), Some("/response_format")),
            ("{}".to_owned(), None),
        ] {
            let limits = Limits::default();
            let json = Json::parse(&body, &limits).unwrap();
            let request =
                GenerationRequest::default().complete(&json, &limits, Faults::new()).unwrap();
            let error = CompileError::Empty { rule: "a".to_owned() };
            let error = request.plan_error(error.into());
            assert_eq!(error.first().param.as_deref(), pointer, "{body}");
        }
    }
}
