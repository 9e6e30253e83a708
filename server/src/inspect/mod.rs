//! The inspector: token-by-token traces of requests.
//!
//! A request with `"louver": {"trace": true}` is recorded by a [`TraceRecorder`] and stored in a
//! [`TraceStore`], which evicts the oldest traces. Routes:
//!
//! | route | response |
//! |---|---|
//! | `GET /v1/louver/traces` | the stored traces, newest first |
//! | `GET /v1/louver/traces/{id}` | one trace |
//! | `GET /inspect` | the inspector page, which loads nothing from other servers |
//!
//! Traces contain prompts and responses: whoever may read them may read other users' requests. The
//! page itself contains no data and asks for an API key if the server requires one.

mod page;
mod record;
mod routes;
mod store;

pub use record::{RequestSummary, TimingSummary, TraceOutcome, TraceRecorder};
pub(crate) use routes::routes;
pub use store::{TraceEntry, TraceLimits, TraceStore, TraceStoreError};
