//! HTTP tests of the server on the real mistral.rs with the tiny model.

#[path = "api/support.rs"]
mod support;

#[path = "api/answers.rs"]
mod answers;
#[path = "api/bodies.rs"]
mod bodies;
#[path = "api/bounds.rs"]
mod bounds;
#[path = "api/cases.rs"]
mod cases;
#[path = "api/check.rs"]
mod check;
#[path = "api/clients.rs"]
mod clients;
#[path = "api/completions.rs"]
mod completions;
#[path = "api/faults.rs"]
mod faults;
#[path = "api/histories.rs"]
mod histories;
#[path = "api/hosts.rs"]
mod hosts;
#[path = "api/http.rs"]
mod http;
#[path = "api/injection.rs"]
mod injection;
#[path = "api/inspect.rs"]
mod inspect;
#[path = "api/mcp.rs"]
mod mcp;
#[path = "api/messages.rs"]
mod messages;
#[path = "api/mistakes.rs"]
mod mistakes;
#[path = "api/mutation.rs"]
mod mutation;
#[path = "api/origins.rs"]
mod origins;
#[path = "api/responses.rs"]
mod responses;
#[path = "api/settings.rs"]
mod settings;
#[path = "api/stopping.rs"]
mod stopping;
#[path = "api/structure.rs"]
mod structure;
