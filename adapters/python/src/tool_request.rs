//! Tools and options of a turn: Python arguments as a request of the wire formats.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::OnceLock;

use louver::front::json_schema::SchemaOptions;
use louver::limits::Limits;
use louver::spec::json::Json;
use louver_formats::{
    Catalog, Parallel, Reasoning, ReasoningBudget, Strictness, ToolRequest, WireFormat,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::{Deserialize, Serialize};

use crate::arguments::Given;
use crate::errors::Failure;
use crate::options::{json_text, options};

/// The families that Louver ships.
pub(crate) fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(Catalog::shipped)
}

/// A wire format: the name of a family, or the path of a description (`*.toml`, or a `PathLike`).
pub(crate) fn wire_format(format: &Bound<'_, PyAny>) -> PyResult<WireFormat> {
    let failure = |error: &dyn std::error::Error| Failure::new("FormatError", error);
    if format.is_instance_of::<PyString>() {
        let found = catalog()
            .named_or_file(&format.extract::<Given<String>>()?.named(format.py(), "format")?);
        return Ok(found.map_err(|error| failure(&error))?);
    }
    let path: PathBuf = format.extract::<Given<_>>()?.named(format.py(), "format")?;
    Ok(WireFormat::from_file(&path).map_err(|error| failure(&error))?)
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "parallel: expected True, False or the most calls, at least 1")]
enum ParallelOption {
    Any(bool),
    AtMost(NonZeroU32),
}

/// The options of a turn that no OpenAI request has.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnOptions {
    parallel: ParallelOption,
    reasoning: Reasoning,
    reasoning_tokens: Option<u32>,
    strict: bool,
    allowed: Option<Vec<String>>,
    bans: Vec<String>,
    schema_options: SchemaOptions,
}

impl Default for TurnOptions {
    fn default() -> Self {
        TurnOptions {
            parallel: ParallelOption::Any(true),
            reasoning: Reasoning::Optional,
            reasoning_tokens: None,
            strict: true,
            allowed: None,
            bans: Vec::new(),
            schema_options: SchemaOptions::default(),
        }
    }
}

/// Members of an OpenAI request that are given as options.
const BODY_MEMBERS: [&str; 3] = ["tool_choice", "response_format", "stop"];

/// The request of these tools and options. Errors have pointers into the request.
pub(crate) fn tool_request(
    tools: &Bound<'_, PyAny>,
    given: Option<&Bound<'_, PyDict>>,
    limits: &Limits,
) -> PyResult<ToolRequest> {
    let py = tools.py();
    let (body, rest) = (PyDict::new(py), PyDict::new(py));
    body.set_item("tools", tools)?;
    for (name, value) in given.into_iter().flatten() {
        let text: String = name.extract::<Given<_>>()?.named(py, "options")?;
        let is_member = BODY_MEMBERS.contains(&text.as_str());
        (if is_member { &body } else { &rest }).set_item(name, value)?;
    }
    let given: TurnOptions = options(&TurnOptions::default(), Some(&rest))?;
    let body = Json::parse(&json_text(&body, "tools")?, limits);
    let body = body.map_err(|error| Failure::new("RequestError", error))?;
    let mut request = ToolRequest::parse(&body).map_err(Failure::from)?;
    request.parallel = match given.parallel {
        ParallelOption::Any(true) => Parallel::Any,
        ParallelOption::Any(false) => Parallel::One,
        ParallelOption::AtMost(most) => Parallel::AtMost(most),
    };
    request.reasoning = given.reasoning;
    request.reasoning_budget = given.reasoning_tokens.map(ReasoningBudget::Tokens);
    request.strictness = if given.strict { Strictness::All } else { Strictness::AsFlagged };
    request.allowed = given.allowed.or(request.allowed);
    request.bans = given.bans;
    request.schema_options = given.schema_options;
    Ok(request)
}
