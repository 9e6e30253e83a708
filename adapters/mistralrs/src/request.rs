//! Requests of the SDK: what Louver takes from them.

use std::sync::Arc;

use louver::with_methods;
use louver_host::{Record, RunOptions, SendError, call_ids};
use mistralrs::{RequestLike, SamplingParams};
use mistralrs_core::{Constraint as HostConstraint, RequestMessage};

use crate::host_types;

/// Parameters of a request to the host: see [`Plan::start`](crate::Plan::start).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestParams {
    /// Sampling parameters. The `n_choices` choices become separate requests to the host; stop
    /// tokens come from the plan.
    pub sampling: Option<SamplingParams>,
    /// Additional logits processors, which run before Louver's.
    pub processors: Vec<Arc<dyn mistralrs::CustomLogitsProcessor>>,
    /// Ids of earlier calls in the conversation ([`call_ids`]), which new calls do not reuse.
    pub earlier_ids: Vec<String>,
    /// Further options.
    pub options: RunOptions,
}

with_methods!(RequestParams {
    with_sampling: sampling = impl Into<Option<SamplingParams>>,
    with_processors: processors = Vec<Arc<dyn mistralrs::CustomLogitsProcessor>>,
    with_earlier_ids: earlier_ids = Vec<String>,
    with_options: options = RunOptions,
});

/// What an SDK request has for Louver.
pub(crate) struct TakenRequest {
    pub(crate) prompt: TakenPrompt,
    pub(crate) params: RequestParams,
}

/// The prompt of an SDK request.
pub(crate) enum TakenPrompt {
    /// A conversation.
    Chat {
        /// In OpenAI's JSON format.
        messages: Vec<serde_json::Value>,
        enable_thinking: Option<bool>,
        /// The effort of reasoning.
        effort: Option<String>,
    },
    /// Tokens, which are not checked yet.
    Tokens(Vec<u32>),
}

impl TakenRequest {
    /// Takes the prompt and the parameters from an SDK request. Errors: what would break the
    /// constraint or bypass it.
    pub(crate) fn take(
        request: &mut dyn RequestLike,
        mut options: RunOptions,
    ) -> Result<TakenRequest, SendError> {
        if request.take_tools().is_some() {
            return Err(SendError::Unsupported("tools in the request: give them to Louver::tools"));
        }
        if request.take_web_search_options().is_some() {
            return Err(SendError::Unsupported("web search together with a constraint"));
        }
        let prompt = match request.take_messages() {
            RequestMessage::Chat { messages, enable_thinking, reasoning_effort } => {
                let messages = messages.iter().map(host_types::sdk_message).collect();
                let effort = reasoning_effort.map(|effort| effort.as_str().to_owned());
                TakenPrompt::Chat { messages, enable_thinking, effort }
            }
            RequestMessage::CompletionTokens(tokens) => TakenPrompt::Tokens(tokens),
            _ => {
                return Err(SendError::Unsupported(
                    "only chat messages or prompt tokens can be constrained",
                ));
            }
        };
        let sampling = request.take_sampling_params();
        if sampling.stop_toks.is_some() {
            return Err(SendError::Unsupported("stop sequences: they could end a call early"));
        }
        if !matches!(request.take_constraint(), HostConstraint::None) {
            return Err(SendError::Unsupported("a host constraint in addition to Louver's"));
        }
        let processors = request.take_logits_processors().unwrap_or_default();
        if options.record == Record::Nothing && request.return_logprobs() {
            options.record = Record::Logprobs { top: sampling.top_n_logprobs };
        }
        let earlier_ids = match &prompt {
            TakenPrompt::Chat { messages, .. } => call_ids(messages),
            TakenPrompt::Tokens(_) => Vec::new(),
        };
        let sampling = Some(sampling);
        let params = RequestParams { sampling, processors, earlier_ids, options };
        Ok(TakenRequest { prompt, params })
    }
}

/// Runs work that takes long on a thread for blocking work, whatever the flavour of the runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SendError> + Send + 'static,
) -> Result<T, SendError> {
    let span = tracing::Span::current();
    let task = tokio::task::spawn_blocking(move || span.in_scope(work));
    task.await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => Err(SendError::Host(error.to_string())),
    })
}
