//! The inspector: what a traced request did, token by token.
//!
//! A request with `"louver": {"trace": true}` is recorded by a [`Recorder`] and kept in a [`TraceStore`], oldest out. Routes:
//!
//! | route | what it gives |
//! |---|---|
//! | `GET /v1/louver/traces` | what is kept, newest first |
//! | `GET /v1/louver/traces/{id}` | one trace |
//! | `GET /inspect` | the page that shows them; it loads nothing from anywhere else |
//!
//! Traces hold prompts and answers: whoever may read them may read what others asked. The page itself holds nothing and asks
//! for a key where the server wants one.

mod page;
mod record;
mod routes;
mod store;

pub use record::{Outcome, Recorder, RequestSummary, TimingSummary};
pub(crate) use routes::routes;
pub use store::{Entry, StoreError, TraceLimits, TraceStore};
