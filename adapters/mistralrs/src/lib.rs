//! Louver for mistral.rs: tool calls that always match their schema, in the model's own wire
//! format.
//!
//! ```no_run
//! use louver_mistralrs::{Event, Louver, ToolChoice};
//! use mistralrs::{RequestBuilder, TextMessageRole, TextModelBuilder};
//!
//! # async fn example(tools: serde_json::Value) -> Result<(), Box<dyn std::error::Error>> {
//! let (model, louver) = Louver::load(TextModelBuilder::new("Qwen/Qwen3-4B")).await?;
//! let plan = louver.tools(&tools).choice(ToolChoice::Required).build()?;
//! let question = "What is the weather in Oslo?";
//! let request = RequestBuilder::new().add_message(TextMessageRole::User, question);
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
//! mistral.rs (0.8.1) offers one hook, a logits processor. Louver masks the logits in place there
//! and reads the generated tokens there. The prompt is rendered from the model's own chat template
//! and sent as tokens. The host's tool parser, grammars and reasoning parser are not used. What
//! does not depend on mistral.rs is in the crate `louver-host`, whose types are exported here.
//!
//! Bugs of mistral.rs 0.8.1 that Louver cannot work around, both on the CPU:
//!
//! * Without paged attention and with its prefix cache on (both are the default there), its engine
//!   panics when it batches requests that continue cached prompts of different lengths. Load the
//!   model with `with_prefix_cache_n(None)`.
//! * In a batch of several sequences, every sequence gets the attention of the last one. The output
//!   of a request then depends on the other sequences and is not what the model would generate.
//!   Structure is not affected. The fault is in the CPU attention kernel. Run one generation at a
//!   time there, as `louver serve` does.

mod chat;
mod context_limit;
mod error;
mod gguf;
mod host_builder;
mod host_types;
mod mcp;
mod model;
mod model_files;
mod model_parts;
mod plan;
mod processor;
mod request;
mod request_sender;
mod unsupported;

pub use chat::{Chat, ChatError};
pub use error::{LoadError, without_backtraces};
pub use gguf::{GgufModel, check_gguf, widen_gguf};
pub use louver::PrepareBudget;
pub use louver::front::json_schema::{SchemaOptions, Whitespace};
pub use louver_formats::{
    Call, CallKind, Cut, Event, Parallel, Reasoning, ReasoningBudget, SchemaRule, Strictness,
    ToolChoice, ToolRequest, Turn,
};
pub use louver_host::{
    Candidate, ChatTemplate, CheckedPart, Completion, Draw, DrawnBy, EnforcementError,
    EnforcementLevel, EnforcementReport, EventStream, ExtendError, Finish, Generation,
    GenerationError, LimitPolicy, Overlap, Phase, PlanError, Prefetch, Record, Relaxed, RunOptions,
    SHIPPED_TEMPLATES, SendError, ShownCandidate, Step, TemplateError, TemplateInput, Timing,
    ToolReport, TurnPlan, Violation, ViolationKind, call_ids, join_text_parts, shipped_template,
    token_text,
};
pub use mcp::{McpError, McpTools};
pub use model::{Louver, LouverOptions};
pub use plan::{Plan, PlanBuilder, ToolList};
pub use processor::HookProcessor;
pub use request::RequestParams;

/// Compiles the README's programs (and runs those that need no model) as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the tutorial's programs as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/TUTORIAL.md")]
struct Tutorial;
