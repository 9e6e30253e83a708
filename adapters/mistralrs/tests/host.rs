//! The adapter in the real mistral.rs, in process, with the tiny model. All tests share one engine,
//! so that requests of different tests run concurrently.

mod support;

#[path = "host/abuse.rs"]
mod abuse;
#[path = "../../host/tests/conformance/mod.rs"]
mod conformance;
#[path = "host/cuts.rs"]
mod cuts;
#[path = "host/draw.rs"]
mod draw;
#[path = "host/extend.rs"]
mod extend;
#[path = "host/gguf.rs"]
mod gguf;
#[path = "host/harmony.rs"]
mod harmony;
#[path = "host/load.rs"]
mod load;
#[path = "host/mcp.rs"]
mod mcp;
#[path = "host/requests.rs"]
mod requests;
#[path = "host/sdk.rs"]
mod sdk;
#[path = "host/seeds.rs"]
mod seeds;
