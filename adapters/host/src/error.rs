//! Errors by stage: planning, sending a request, generation.

use louver::compile::CompileError;
use louver::matcher::AdvanceError;
use louver_formats::{LowerError, RequestErrors};
use louver_templates::{ResolveError, TemplateError};

/// Why a request cannot be compiled to a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The tools are invalid.
    #[error(transparent)]
    Tools(#[from] RequestErrors),
    /// The model's wire format is unknown.
    #[error(transparent)]
    Format(#[from] ResolveError),
    /// Reasoning was disabled, but the model's chat template opens it, always or with the variables
    /// that were given.
    #[error("reasoning cannot be off: the model's chat template opens it")]
    AlwaysReasons,
    /// A variable for the chat template is one that the conversation, the tools or the tokenizer
    /// give.
    #[error(
        "the chat template's variable `{0}` cannot be set: the conversation, the tools or the \
         tokenizer give it"
    )]
    ReservedVariable(String),
    /// Part of the request cannot be enforced.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The grammar exceeds a limit.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Why a request cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The chat template failed.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The prompt cannot be tokenised.
    #[error("the prompt cannot be tokenised: {0}")]
    Tokenize(String),
    /// The prompt has no tokens.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The prompt has a token that the vocabulary does not have.
    #[error("the prompt has the token {token}, which the vocabulary does not have")]
    UnknownToken {
        /// The token.
        token: u32,
    },
    /// The prompt leaves no room for output. Clients of both APIs look for parts of this text, and
    /// shorten the conversation.
    #[error(
        "prompt is too long: {tokens} tokens > {limit} maximum (the model's maximum context \
         length is {limit} tokens)"
    )]
    TooLong {
        /// The prompt's length.
        tokens: usize,
        /// The model's context length.
        limit: usize,
    },
    /// The prompt's text exceeds a limit or cannot fit the context; it is not tokenized.
    #[error("prompt is too long: {bytes} bytes > {limit} maximum that are tokenized")]
    TooManyBytes {
        /// The text's length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The request uses a feature that would break the constraint or cannot be combined with it.
    #[error("{0}")]
    Unsupported(&'static str),
    /// A seed was given, but the host draws: it has one generator for all requests.
    #[error("a seed has no effect if the host draws: leave it out, or let Louver draw")]
    HostSeed,
    /// The request cannot be compiled to a plan.
    #[error(transparent)]
    Plan(#[from] Box<PlanError>),
    /// Louver was set up without a model that takes requests.
    #[error("no model: use `Louver::load`, `Louver::for_model` or `Louver::with_model`")]
    NoModel,
    /// The host does not accept requests.
    #[error("the host does not accept the request: {0}")]
    Host(String),
}

/// Why a generation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// The host reported an error.
    #[error("the host failed: {0}")]
    Host(String),
    /// The host disappeared without an error.
    #[error("the host stopped responding")]
    HostGone,
    /// The constraint could not be maintained; the generation was ended.
    #[error("the generation was ended: {0}")]
    Enforcement(#[from] EnforcementError),
}

/// Why a running turn cannot change to another plan. It continues under its current plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendError {
    /// One of the two plans has no constraint.
    #[error("a plan without a constraint cannot be extended")]
    Unconstrained,
    /// The generation has ended or ends at the next token.
    #[error("the generation is over")]
    Over,
    /// The new plan's tools do not begin with the current plan's.
    #[error("the new plan's tools must begin with the current plan's tools")]
    Tools,
    /// Reasoning has a budget under one of the two plans only.
    #[error("reasoning needs a budget under both plans or under neither")]
    Budget,
    /// The output so far is not a valid prefix under the new plan.
    #[error(transparent)]
    Resume(#[from] louver::engine::ResumeError),
}

/// Why a constraint could not be maintained. The generation ends immediately; other requests are
/// not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnforcementError {
    /// The host chose a token that was not allowed, because of a processor after Louver's or a host
    /// that changes tokens later.
    #[error("the host chose token {token}, which was not allowed: {reason}")]
    Rejected {
        /// The token.
        token: u32,
        /// The matcher's error.
        reason: String,
    },
    /// The host generated tokens without calling Louver, so they were not masked.
    #[error("the host generated without calling Louver, so its output was not constrained: {0}")]
    Bypassed(&'static str),
    /// None of the model's logits belongs to an allowed token.
    #[error("none of the allowed tokens is among the model's {width} logits")]
    NothingAllowed {
        /// The row's width.
        width: usize,
    },
    /// The parser exceeded a limit.
    #[error("parser limit reached: {0}")]
    Limit(String),
    /// The row of logits has an unsupported type or layout.
    #[error("unreadable logits: {0}")]
    Logits(String),
    /// A bug in Louver.
    #[error("internal error: {0}")]
    Panic(String),
}

impl EnforcementError {
    /// The error of a chosen token that was rejected: it is not allowed, or reading it exceeds a
    /// limit.
    pub(crate) fn rejected_token(token: u32, error: &AdvanceError) -> EnforcementError {
        match error {
            AdvanceError::Limit { what } => EnforcementError::Limit((*what).to_owned()),
            error => EnforcementError::Rejected { token, reason: error.to_string() },
        }
    }
}

#[cfg(test)]
#[test]
fn exceeded_limits_are_not_attributed_to_the_host() {
    let limit = AdvanceError::Limit { what: "fuel for one mask or token" };
    let error = EnforcementError::rejected_token(91, &limit);
    assert!(matches!(error, EnforcementError::Limit(what) if what.starts_with("fuel")));
}
