//! Louver inside an inference host, without the host: what a plugin does between the rows of logits
//! that a host passes to it and the events that its user sees.
//!
//! ```text
//! ToolRequest -> TurnPlan -> PreparedGeneration
//!                              hook    the host calls it: LogitsHook::apply(row, context)
//!                              task    turns the hook's tokens into events until the host ends
//!                              events  EventStream: events, then a Generation with its report
//! ```
//!
//! A row is `&mut [f32]`, a context `&[u32]`; no type of a host or of a tensor library appears. A
//! shim for a host renders the prompt ([`ChatTemplate`]), sends its tokens with the hook and one
//! token more than the limit, and resolves the future of [`GenerationTask::run`] at the host's
//! first finish reason. `louver-mistralrs` is the shim for mistral.rs.
//!
//! What a host must keep: it calls the hook before it chooses each token, with all tokens so far
//! (or, for the first token, an end of the prompt), and chooses a token with a finite logit; if
//! Louver draws, the largest. It may call more often and in any order. `tests/conformance` of this
//! crate checks a hook through the host's own types.

mod error;
mod extend;
mod generation;
mod hook;
mod options;
mod plan;
mod prompt_boundary;
mod reader;
mod record;
mod report;
mod row;
mod sampler;
mod stream;
mod token_phases;
mod truncation;
mod validate;

pub use error::{EnforcementError, ExtendError, GenerationError, PlanError, SendError};
pub use generation::{GenerationInput, GenerationTask, PreparedGeneration, RequestPreparation};
pub use hook::LogitsHook;
pub use louver::PrepareBudget;
pub use louver_templates::{
    ChatTemplate, Checkpoint, CheckpointError, FormatSource, MessageStyle, ResolveError, Resolved,
    ResponseTemplate, SHIPPED_TEMPLATES, TemplateError, TemplateInput, TemplateSources, confirm,
    conform_call_ids, join_text_parts, openai_message, parse_call_arguments, read_json, resolve,
    shipped_template,
};
pub use options::{Draw, Overlap, Prefetch, RunOptions};
pub use plan::{TurnPlan, call_ids};
pub use record::{Candidate, Phase, Record, ShownCandidate, Step, token_text};
pub use report::{
    CheckedPart, Completion, DrawnBy, EnforcementLevel, EnforcementReport, Relaxed, Timing,
    ToolReport, Violation, ViolationKind,
};
pub use sampler::Sampling;
pub use stream::{EventStream, Finish, Generation};
pub use truncation::LimitPolicy;

/// Compiles the programs of `docs/UPSTREAM.md` as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/UPSTREAM.md")]
struct Upstream;
