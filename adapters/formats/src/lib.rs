//! Model wire formats for Louver, as data: one TOML description a family (`families/*.toml`), and from it the grammar
//! of a whole turn, the streaming extractor and the renderer, so that they cannot disagree.
//!
//! ```text
//! families/*.toml ──► WireFormat ──┬─ lower(ToolRequest) ──► Plan ──┬─ grammar() ──► louver::engine
//!   (or a user's)      Catalog     │                                └─ extractor() ──► Event ──► Turn
//!                      detect      └─ render(Turn) ──► text (tests, benchmarks)
//! ```
//!
//! A new family with an argument style that exists is a new file and no Rust.
//!
//! ```
//! use louver::limits::Limits;
//! use louver::spec::json::Json;
//! use louver_formats::{Catalog, ToolRequest};
//!
//! let body = r#"{"tools": [{"name": "now", "description": "The time."}], "tool_choice": "required"}"#;
//! let body = Json::parse(body, &Limits::default())?;
//! let request = ToolRequest::parse(&body)?;
//! let plan = Catalog::builtin().get("qwen3")?.lower(&request)?;
//! assert_eq!(plan.tools()[0].name, "now");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arguments;
mod catalog;
mod channel;
mod extract;
mod format;
mod lower;
mod plan;
mod render;
mod request;
mod turn;

pub use arguments::python_json;
pub use catalog::{Catalog, DetectError, Detected, ModelHints, UnknownFormat};
pub use extract::{Cut, Event, Extractor};
pub use format::{
    ArgumentStyle, CallFormat, DetectRule, FormatError, Marker, NamePart, NameStyle, ParallelPolicy, Part,
    ReasoningFormat, SectionFormat, TextFormat, TextPlace, WireFormat,
};
pub use plan::{Plan, Role, ToolPlan};
pub use request::{LowerError, Parallel, Reasoning, RequestError, ToolRequest};
pub use turn::{Call, Incomplete, Turn, TurnCollector};
