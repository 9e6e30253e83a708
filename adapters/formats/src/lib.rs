//! Model wire formats for Louver, as data.
//!
//! Each model family has one TOML description (`families/*.toml`). The grammar of a whole turn, the
//! streaming extractor and the renderer are made from it, so that they agree.
//!
//! ```text
//! families/*.toml --> WireFormat --+-- lower(ToolRequest) --> Plan
//!   (or a user's)      Catalog     |     grammar()   --> engine
//!                      detect      |     extractor() --> Event --> Turn
//!                                  +-- render(Turn) --> text (tests, benchmarks)
//! ```
//!
//! A new family with an existing argument style is a new file and no Rust.
//!
//! ```
//! use louver::limits::Limits;
//! use louver::spec::json::Json;
//! use louver_formats::{Catalog, ToolRequest};
//!
//! let body = r#"{"tools": [{"name": "now", "description": "Time"}], "tool_choice": "required"}"#;
//! let body = Json::parse(body, &Limits::default())?;
//! let request = ToolRequest::parse(&body)?;
//! let plan = Catalog::builtin().get("qwen3")?.lower(&request)?;
//! assert_eq!(plan.tools()[0].name, "now");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod arguments;
mod builtin;
mod call_ids;
mod call_syntax;
mod catalog;
mod channel;
mod check;
mod compile;
mod constraint;
mod custom;
mod extract;
mod fault;
mod format;
mod lenient;
mod lower;
mod marker;
mod messages;
mod plan;
mod raw;
mod reasoning;
mod registry;
mod render;
mod request;
mod scan;
mod spelling;
mod text;
mod turn;

pub use answer::AnswerTag;
pub use arguments::{RenderError, python_json};
pub use builtin::BuiltinFormat;
pub use catalog::{Catalog, DetectError, Detected, ModelHints, UnknownFormat};
pub use constraint::{ConstraintError, ToolConstraint};
pub use custom::{CustomError, CustomErrorReason, CustomInput, CustomTool};
pub use extract::{Cut, Event, Extractor};
pub use fault::{PartErrors, RequestFault};
pub use format::{
    ArgumentStyle, CallFormat, Delimiters, DetectRule, FormatError, KindWords, MAX_GAP, Opener,
    ParallelPolicy, ReasoningFormat, SectionFormat, TagPart, TaggedStyle, TextFormat, TextPlace,
    WireFormat, WireId,
};
pub use lenient::{Difference, Reading};
pub use marker::{Glue, IdStyle, Marker, NameStyle, Part, Step};
pub use messages::MessagesFormat;
pub use plan::{Plan, RelaxedSchema, Role, ToolPlan};
pub use registry::{RegistryError, read_registry, validator_uri};
pub use render::RenderOptions;
pub use request::{
    Builtin, LazyTools, LowerError, Parallel, Reasoning, ReasoningBudget, RequestError, Strictness,
    ToolRequest,
};
pub use spelling::CallSpelling;
pub use turn::{Call, CallKind, Incomplete, Turn, TurnCollector};
