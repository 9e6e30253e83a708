//! Louver inside mistral.rs: tool calls that always match their schema, in the format the model was trained on.
//!
//! ```no_run
//! use louver_mistralrs::{Event, Louver, ToolChoice};
//! use mistralrs::{RequestBuilder, TextMessageRole, TextModelBuilder};
//!
//! # async fn example(tools: serde_json::Value) -> Result<(), Box<dyn std::error::Error>> {
//! let (model, louver) = Louver::load(TextModelBuilder::new("Qwen/Qwen3-4B")).await?;
//! let plan = louver.tools(&tools).choice(ToolChoice::Required).build()?;
//! let request = RequestBuilder::new().add_message(TextMessageRole::User, "What is the weather in Oslo?");
//! let mut stream = plan.stream(&model, request).await?;
//! while let Some(event) = stream.next().await {
//!     if let Event::CallStart { name, .. } = event {
//!         println!("calling {name}");
//!     }
//! }
//! for call in stream.finish().await?.turn.calls {
//!     println!("{}({})", call.name, call.arguments);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! mistral.rs (0.8.1) offers one hook, a logits processor. Louver masks the logits there, in place, and reads the tokens
//! there too; the prompt is rendered from the model's own chat template and sent as tokens, and the host's tool parser,
//! grammars and reasoning parser stay out of the way.
//!
//! Bugs of mistral.rs 0.8.1 that Louver cannot mend, both on the CPU:
//!
//! * Without paged attention and with its prefix cache on (both are the default there), its engine panics when it batches requests
//!   that continue cached prompts of different lengths: load the model with `with_prefix_cache_n(None)`.
//! * In a batch of several sequences, every one gets the attention of the last: what a request is told then depends on its
//!   neighbours, and is not what the model would say. Structure is not touched. The fault lies in the attention kernel for the CPU. Run one
//!   generation at a time there, as `louver serve` does.

mod chat;
mod context;
mod error;
mod extend;
mod files;
mod hook;
mod host;
mod model;
mod plan;
mod prompt;
mod reader;
mod record;
mod report;
mod row;
mod safety;
mod sampler;
mod stream;
mod validate;

pub use chat::{Chat, ChatError, RequestExt};
pub use error::{ExtendError, Fault, GenerationError, LoadError, PlanError, RequestError};
pub use louver::front::json_schema::{SchemaOptions, Whitespace};
pub use louver::spec::tools::ToolChoice;
pub use louver_formats::{
    Call, CallKind, Cut, Event, Parallel, Reasoning, ReasoningBudget, Strictness, ToolRequest, Turn,
};
pub use model::{Louver, LouverOptions};
pub use plan::{Overlap, Plan, PlanBuilder, Prefetch, Run, RunOptions, ToolList, call_ids};
pub use prompt::{ChatTemplate, PromptParts, TemplateError, TemplateInput};
pub use record::{Candidate, Phase, Record, Step};
pub use report::{
    Completion, EnforcementReport, Level, Part, Relaxed, Timing, Violation, ViolationKind,
};
pub use safety::Truncation;
pub use stream::{EventStream, Finish, Generation};

/// The README's programs, compiled (and, where they need no model, run) with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So are the tutorial's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/TUTORIAL.md")]
struct Tutorial;
