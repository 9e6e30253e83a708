//! `louver serve`: an OpenAI-compatible HTTP server over mistral.rs, with Louver's guarantees.
//!
//! ```text
//! bytes ──► http/      connections, ids, keys, bodies, limits
//!       ──► request/   members with JSON pointers, messages, sampling
//!       ──► turn/      admission, plan, the running generations
//!       ──► chat/, responses/, check.rs    one route's own shapes of request and answer
//!       ──► metrics.rs, inspect/           what it came to
//! ```
//!
//! What is refused is refused before anything is generated, in OpenAI's error shape, with a JSON pointer to the member
//! that is at fault. A client that is slow or has vanished costs its own request only: what the model says is drained at
//! once, and dropping an answer's body ends its generation at the next token.

mod app;
mod chat;
mod check;
mod config;
mod error;
mod http;
mod inspect;
mod limits;
mod load;
mod metrics;
mod request;
mod responses;
mod state;
mod turn;

pub use app::router;
pub use config::{Batching, Config, ConfigError, DeviceChoice, ModelConfig, UnknownMembers};
pub use error::{ApiError, ApiFault, ErrorKind};
pub use http::serve;
pub use inspect::{
    Entry, Outcome, Recorder, RequestSummary, StoreError, TimingSummary, TraceLimits, TraceStore,
};
pub use limits::{HttpLimits, RequestLimits, SchemaLimits, Seconds, ServerLimits};
pub use load::{LoadError, load};
pub use state::{App, HostModel, Processors, Served};
