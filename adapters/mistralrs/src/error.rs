//! What can go wrong, by when it does: at loading, while a request is made, while it runs.

use louver::compile::CompileError;
use louver::matcher::AdvanceError;
use louver_formats::{DetectError, LowerError, UnknownFormat};

use crate::prompt::TemplateError;

/// The model cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The host did not load it.
    #[error("mistral.rs cannot load the model: {0}")]
    Host(String),
    /// The pipeline has no tokenizer: not a text model.
    #[error("the model has no tokenizer")]
    NoTokenizer,
    /// mistralrs 0.8.1 samples several rows of a speculative pipeline with the context of the first: no processor can be
    /// right there.
    #[error("speculative pipelines of this mistral.rs cannot be constrained")]
    Speculative,
    /// A file that the model should have been loaded from is not there: [`Louver::load`](crate::Louver::load) asks the host
    /// instead.
    #[error(
        "the model {model:?} has no file {file} in its directory or the Hugging Face cache; use `Louver::load`"
    )]
    NoFile {
        /// The model's name.
        model: String,
        /// The file.
        file: String,
    },
    /// The host, as it was built, ends generations at a token that the wire format needs inside a turn. Models loaded with
    /// [`Louver::load`](crate::Louver::load) do not.
    #[error(
        "the host ends every generation at {token:?}, which the wire format needs; use `Louver::load`"
    )]
    EarlyEnd {
        /// The token.
        token: String,
    },
    /// Its tokenizer gives no vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] louver_hf_tokenizers::LoadError),
    /// The wire format that was asked for does not exist.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
}

/// The request cannot become a constraint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The tools are not tools.
    #[error(transparent)]
    Tools(#[from] louver_formats::RequestError),
    /// The model's wire format is not known.
    #[error(transparent)]
    Format(#[from] DetectError),
    /// Reasoning is to be off, but the model's chat template begins it regardless.
    #[error("reasoning cannot be off: the model's chat template always opens it")]
    AlwaysReasons,
    /// Something in the request cannot be enforced.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The grammar is over a limit.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// The request cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The chat template fails.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The prompt cannot be tokenised.
    #[error("the prompt cannot be tokenised: {0}")]
    Tokenize(String),
    /// The prompt leaves no room.
    #[error("the prompt has {tokens} tokens, the model's context {limit}")]
    TooLong {
        /// The prompt's length.
        tokens: usize,
        /// The model's.
        limit: usize,
    },
    /// The prompt's text is too long to be tokenized: over a limit, or it cannot fit into the context.
    #[error("the prompt has {bytes} bytes, more than the {limit} that are tokenized")]
    TooManyBytes {
        /// The text's length.
        bytes: usize,
        /// The most that is tokenized.
        limit: usize,
    },
    /// The request asks for something that would break the constraint or that cannot be done beside it.
    #[error("{0}")]
    Unsupported(&'static str),
    /// What was asked for cannot become a constraint.
    #[error(transparent)]
    Plan(#[from] Box<PlanError>),
    /// [`Louver`](crate::Louver) was made for a pipeline and does not know its model.
    #[error("no model: use `Louver::load`, `Louver::for_model` or `Louver::with_model`")]
    NoModel,
    /// The host does not take requests.
    #[error("mistral.rs does not take the request: {0}")]
    Host(String),
}

/// The generation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// The host said so.
    #[error("mistral.rs: {0}")]
    Host(String),
    /// The host went away without a word.
    #[error("mistral.rs stopped answering")]
    HostGone,
    /// The constraint could not be kept up; the generation was ended.
    #[error("the generation was ended: {0}")]
    Fault(#[from] Fault),
}

/// A running turn cannot go on under another plan. It goes on under the one it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendError {
    /// One of the two plans has no constraint.
    #[error("a plan without a constraint cannot be extended")]
    Unconstrained,
    /// The generation is over, or will be at the next token.
    #[error("the generation is over")]
    Over,
    /// The other plan does not begin with the tools of the one that runs.
    #[error("the other plan's tools do not begin with those of the plan that runs")]
    Tools,
    /// What has been said so far is no beginning of a turn of the other plan.
    #[error(transparent)]
    Resume(#[from] louver::engine::ResumeError),
}

/// Why a constraint could not be kept up. Such a generation is ended at once; no other request is touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The host chose a token that was not allowed (a processor behind Louver's, or a host that changed a token later).
    #[error("the host chose token {token}, which was not allowed: {why}")]
    Rejected {
        /// The token.
        token: u32,
        /// What the matcher says.
        why: String,
    },
    /// The model's logits have no id that is allowed here.
    #[error("none of the allowed tokens is among the model's {width} logits")]
    NothingAllowed {
        /// The row's width.
        width: usize,
    },
    /// The parser ran into a limit.
    #[error("parser limit reached: {0}")]
    Limit(String),
    /// A row of logits of a kind that cannot be read.
    #[error("unreadable logits: {0}")]
    Logits(String),
    /// A bug in Louver.
    #[error("internal error: {0}")]
    Panic(String),
}

impl Fault {
    /// Why a chosen token was not taken: it is not allowed, or reading it needs more than the
    /// limits.
    pub(crate) fn of_token(token: u32, error: &AdvanceError) -> Fault {
        match error {
            AdvanceError::Limit { what } => Fault::Limit((*what).to_owned()),
            error => Fault::Rejected { token, why: error.to_string() },
        }
    }
}

#[cfg(test)]
#[test]
fn limits_are_no_fault_of_the_host() {
    let limit = AdvanceError::Limit { what: "fuel for one mask or token" };
    assert!(matches!(Fault::of_token(91, &limit), Fault::Limit(what) if what.starts_with("fuel")));
}
