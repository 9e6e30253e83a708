//! `louver serve`: an OpenAI-compatible HTTP server over mistral.rs, with Louver's guarantees.
//!
//! ```text
//! bytes ──► http/        connections, request ids, API keys, bodies, limits
//!       ──► request/     parsing of members, messages and sampling options, with JSON pointers
//!       ──► generation/  admission, planning, the running generations
//!       ──► chat/, completions/, responses/, messages/, check.rs    formats of one route each
//!       ──► metrics.rs, inspect/           metrics and traces
//! ```
//!
//! Invalid requests are rejected before generation starts. The error has the format of the route's
//! API and a JSON pointer to the invalid member. A slow or disconnected client affects its own
//! request only: output of the model is drained immediately, and dropping a response body cancels
//! its generation at the next token.

mod admission;
mod app;
mod chat;
mod check;
mod clock;
mod completions;
mod config;
mod config_files;
mod device;
mod error;
mod generation;
mod hash;
mod http;
mod inspect;
mod limits;
mod load;
mod mcp;
mod messages;
mod metrics;
mod model_source;
mod request;
mod response_store;
mod responses;
mod served_model;
mod state;
mod telemetry;
mod unsupported;

pub use app::{router, serve};
pub use config::{
    Batching, Config, ConfigError, ConfigFault, ConfigFile, DeviceChoice, EngineSettings,
    ModelConfig, ModelLimitOverrides, ModelLimits, ModelRequestLimits, ModelSettings, Overridable,
    Overrides, PreparationSettings, ReasoningDefault, StrictTools, UnknownMembers, foreign_option,
    parse_host,
};
pub use error::{ApiError, ApiFault, ErrorKind};
pub use inspect::{
    RequestSummary, TimingSummary, TraceEntry, TraceLimits, TraceOutcome, TraceRecorder,
    TraceStore, TraceStoreError,
};
pub use limits::{HttpLimits, RequestLimits, Seconds, ServerLimits};
pub use load::{LoadError, load, load_model};
pub use mcp::McpServer;
pub use model_source::SourceError;
pub use served_model::ServedModel;
pub use state::App;
pub use telemetry::TARGET as SPAN_TARGET;
