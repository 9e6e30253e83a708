//! Model wire formats for Louver, as data.
//!
//! Each model family has one TOML description (`families/*.toml`). The grammar of a whole turn, the
//! streaming extractor and the renderer are made from it, so that they agree.
//!
//! ```text
//! families/*.toml --> WireFormat --+-- lower(ToolRequest) --> LoweredRequest
//!   (or a user's)      Catalog     |     grammar()   --> engine
//!                      detect      |     extractor() --> Event --> Turn
//!                                  +-- render(Turn) --> text (tests, benchmarks)
//! ```
//!
//! A new family with an existing argument style is a new file and no Rust.
//!
//! # Terms
//!
//! ```text
//! <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
//! ```
//!
//! | term | meaning | in this call |
//! |---|---|---|
//! | turn | what the model writes for one request, up to the stop token | |
//! | marker | a delimiter; its *variants* are texts or special tokens | `<tool_call>` |
//! | begin, end marker | the markers around reasoning, text, a call, a section or a frame | |
//! | section | encloses all calls of a turn, in some families | none |
//! | frame | the markers around text and calls, after reasoning | none |
//! | message | in families whose turns are sequences: reasoning, a text or a call | none |
//! | header | between a call's begin marker and its arguments | `{"name": "f", "arguments": ` |
//! | trailer | from the arguments to the end marker | `}` |
//! | part | a piece of a header, trailer or separator: text, name, id, gap, marker | |
//! | separator | between two calls, or between text and a call | a line break |
//! | lead, trail | what the template writes after a begin or before an end marker | |
//! | gap | a part where white space of any kind may stand | |
//! | spelling | another syntax of calls that the family's models are known to write | |
//! | argument style | how arguments are written: JSON, keywords, tags ... | JSON |
//! | trigger | a text or special token that ends free text or starts a call in it | `<tool_call>` |
//! | response | text in the `response_format` of a request, in place of free text | |
//! | role | what a labelled span of the output is: text, header, arguments ... | |
//!
//! # Stages
//!
//! The modules are stages, and a stage imports earlier ones only:
//!
//! | module | content |
//! |---|---|
//! | `channel`, `pattern` | leaves: streams of text; regular expressions |
//! | `format` | wire formats as data: their tables, markers, checks, catalog and detection |
//! | `request` | requests: types, parsing, checks, errors and faults |
//! | `arguments` | readers and writers of the argument styles |
//! | `lowered` | the result of lowering: the grammar and the meaning of its labels |
//! | `lower` | wire format and request -> lowered request |
//! | `read` | output -> events and turns: the extractor, lenient reading |
//! | `render` | turn -> text |
//! | `compile`, `registry` | compilation with a cache; schema files |
//!
//! ```
//! use louver::limits::Limits;
//! use louver::spec::json::Json;
//! use louver_formats::{Catalog, ToolRequest};
//!
//! let body = r#"{"tools": [{"name": "now", "description": "Time"}], "tool_choice": "required"}"#;
//! let body = Json::parse(body, &Limits::default())?;
//! let request = ToolRequest::parse(&body)?;
//! let lowered = Catalog::shipped().get("qwen3")?.lower(&request)?;
//! assert_eq!(lowered.tools()[0].name, "now");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arguments;
mod channel;
mod compile;
mod exact;
mod format;
mod lower;
mod lowered;
mod pattern;
mod read;
mod registry;
mod render;
mod request;

pub use arguments::{RenderError, python_float, python_json};
pub use exact::exact_value;
pub use format::{
    ArgumentStyle, BuiltinFormat, CallFormat, CallSpelling, Catalog, Delimiters, DetectError,
    DetectRule, Detected, FixedParts, FormatError, FormatFileError, IdStyle, KindWords, MAX_GAP,
    Marker, MarkerPart, MessagesFormat, ModelHints, NameStyle, NestedTags, Opener, ParallelPolicy,
    Part, PreambleFormat, PythonLiterals, ReasoningFormat, SectionFormat, StringQuotes, TagPart,
    TaggedStyle, TextFormat, TextPlace, UnknownFormat, WireFormat, WireId,
};
pub use lowered::{LoweredRequest, LoweredTool, RelaxedSchema, SpanPhase};
pub use read::{Call, Cut, Difference, Event, Extractor, Incomplete, Reading, Turn, TurnCollector};
pub use registry::{RegistryError, read_registry, validator_instance, validator_uri};
pub use render::RenderOptions;
pub use request::{
    BuiltinTool, CUSTOM_INPUT, CallKind, ConstraintError, CustomInput, CustomTool, FunctionTool,
    LazyTools, LowerError, MemberError, MemberErrorKind, NEUTRAL_TOOL_MEMBERS, Parallel,
    PartErrors, Reasoning, ReasoningBudget, RequestError, RequestErrors, RequestFault,
    ResponseFormat, ResponseTag, SchemaRule, Strictness, Tool, ToolChoice, ToolChoiceError,
    ToolRequest, ToolShape,
};
