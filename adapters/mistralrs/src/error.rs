//! Errors by stage: loading, planning, sending a request, generation.

use louver::compile::CompileError;
use louver::matcher::AdvanceError;
use louver_formats::{DetectError, LowerError, UnknownFormat};

use crate::prompt::TemplateError;

/// Why Louver cannot be set up for a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The host failed to load the model.
    #[error("mistral.rs cannot load the model: {0}")]
    Host(String),
    /// The pipeline has no tokenizer: not a text model.
    #[error("the model has no tokenizer")]
    NoTokenizer,
    /// mistralrs 0.8.1 samples several rows of a speculative pipeline with the context of the first
    /// row, so no logits processor can be correct.
    #[error("speculative pipelines of this mistral.rs cannot be constrained")]
    Speculative,
    /// A block-diffusion language model generates blocks of tokens without calling a logits
    /// processor, so nothing would be masked.
    #[error(
        "{model_type} is a block-diffusion model: mistral.rs does not call logits processors for \
         it, so its output cannot be constrained"
    )]
    BlockDiffusion {
        /// The model type or architecture of its configuration.
        model_type: String,
    },
    /// The model does not generate text token by token.
    #[error("models of the kind {category} generate no text that could be constrained")]
    NotText {
        /// The host's category.
        category: &'static str,
    },
    /// A file of the model is missing. [`Louver::load`](crate::Louver::load) asks the host instead.
    #[error(
        "the model {model:?} has no file {file} in its directory or the Hugging Face \
         cache; use `Louver::load`"
    )]
    NoFile {
        /// The model's name.
        model: String,
        /// The file.
        file: String,
    },
    /// The host ends generations at a token that the wire format needs within a turn. Models loaded
    /// with [`Louver::load`](crate::Louver::load) do not.
    #[error(
        "the host ends every generation at {token:?}, which the wire format needs; use \
         `Louver::load`"
    )]
    EarlyEnd {
        /// The token.
        token: String,
    },
    /// The tokenizer cannot be converted to a vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] louver_hf_tokenizers::LoadError),
    /// The requested wire format does not exist.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
}

impl LoadError {
    /// An error of the host with its causes, without the backtraces that candle writes into it.
    pub(crate) fn host(error: &impl std::fmt::Display) -> LoadError {
        LoadError::Host(without_backtraces(&format!("{error:#}")))
    }
}

/// The text on one line, without lines of backtraces.
fn without_backtraces(text: &str) -> String {
    let is_frame = |line: &&str| {
        let line = line.trim_start();
        let number = line.split_once(": ").map(|(number, _)| number);
        line.starts_with("at ") || number.is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let lines = text.lines().enumerate().filter(|(n, line)| *n == 0 || !is_frame(line));
    lines.map(|(_, line)| line.trim()).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// Why a request cannot be compiled to a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The tools are invalid.
    #[error(transparent)]
    Tools(#[from] louver_formats::RequestError),
    /// The model's wire format is unknown.
    #[error(transparent)]
    Format(#[from] DetectError),
    /// Reasoning was disabled, but the model's chat template always opens it.
    #[error("reasoning cannot be off: the model's chat template always opens it")]
    AlwaysReasons,
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
pub enum RequestError {
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
    #[error("the prompt has the token {token}, and the vocabulary has {size} tokens")]
    UnknownToken {
        /// The token.
        token: u32,
        /// The vocabulary's size.
        size: usize,
    },
    /// The prompt leaves no room for output.
    #[error("the prompt has {tokens} tokens, the model's context {limit}")]
    TooLong {
        /// The prompt's length.
        tokens: usize,
        /// The model's context length.
        limit: usize,
    },
    /// The prompt's text exceeds a limit or cannot fit the context; it is not tokenized.
    #[error("the prompt has {bytes} bytes, more than the {limit} that are tokenized")]
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
    /// [`Louver`](crate::Louver) was set up for a pipeline and has no model.
    #[error("no model: use `Louver::load`, `Louver::for_model` or `Louver::with_model`")]
    NoModel,
    /// The host does not accept requests.
    #[error("mistral.rs does not accept the request: {0}")]
    Host(String),
}

/// Why a generation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// The host reported an error.
    #[error("mistral.rs: {0}")]
    Host(String),
    /// The host disappeared without an error.
    #[error("mistral.rs stopped responding")]
    HostGone,
    /// The constraint could not be maintained; the generation was ended.
    #[error("the generation was ended: {0}")]
    Fault(#[from] Fault),
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
    /// The output so far is not a valid prefix under the new plan.
    #[error(transparent)]
    Resume(#[from] louver::engine::ResumeError),
}

/// Why a constraint could not be maintained. The generation ends immediately; other requests are
/// not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
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

impl Fault {
    /// The fault of a chosen token that was rejected: it is not allowed, or reading it exceeds a
    /// limit.
    pub(crate) fn rejected_token(token: u32, error: &AdvanceError) -> Fault {
        match error {
            AdvanceError::Limit { what } => Fault::Limit((*what).to_owned()),
            error => Fault::Rejected { token, reason: error.to_string() },
        }
    }
}

#[cfg(test)]
#[test]
fn exceeded_limits_are_not_attributed_to_the_host() {
    let limit = AdvanceError::Limit { what: "fuel for one mask or token" };
    assert!(
        matches!(Fault::rejected_token(91, &limit), Fault::Limit(what) if what.starts_with("fuel"))
    );
}

#[cfg(test)]
#[test]
fn backtraces_are_removed_from_errors() {
    let text = "File `config.json` was not found\n   0: bt\n             at /src/error.rs:264:25\n  \
                12: {closure#0}<a::B>\n             at /c.rs:1:2\nsecond line: 5";
    assert_eq!(without_backtraces(text), "File `config.json` was not found second line: 5");
    assert_eq!(without_backtraces("one line: 3"), "one line: 3");
}
