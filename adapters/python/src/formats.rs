//! Functions about wire formats: the list of families, detection, and reading of finished texts.

use louver::limits::Limits;
use louver_formats::ModelHints;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{Given, optional};
use crate::errors::{Failure, detached};
use crate::options::from_json;
use crate::tool_request::{catalog, tool_request, wire_format};

/// The families that Louver ships: pairs of name and title.
#[pyfunction]
pub(crate) fn families() -> Vec<(String, String)> {
    let formats = catalog().formats().iter();
    formats.map(|format| (format.name.clone(), format.title.clone())).collect()
}

/// The name of the family of a model, and the properties that decided. Errors: `FormatError` unless
/// exactly one family fits.
#[pyfunction]
#[pyo3(signature = (chat_template=None, *, tokens=None, model_type=None, architectures=None))]
pub(crate) fn detect(
    py: Python<'_>,
    chat_template: Option<Given<String>>,
    tokens: Option<Given<Vec<String>>>,
    model_type: Option<Given<String>>,
    architectures: Option<Given<Vec<String>>>,
) -> PyResult<(String, String)> {
    let chat_template = optional(chat_template, py, "chat_template")?;
    let tokens = optional(tokens, py, "tokens")?.unwrap_or_default();
    let model_type = optional(model_type, py, "model_type")?;
    let architectures = optional(architectures, py, "architectures")?.unwrap_or_default();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let architectures: Vec<&str> = architectures.iter().map(String::as_str).collect();
    let hints = ModelHints::default()
        .with_chat_template(chat_template.as_deref())
        .with_tokens(&tokens)
        .with_model_type(model_type.as_deref())
        .with_architectures(&architectures);
    let found = catalog().detect(hints).map_err(|error| Failure::new("FormatError", error))?;
    Ok((found.name, found.reason))
}

/// Reads a finished text of a family, as far as possible, whether or not it was constrained:
/// `louver.reports.Turn`, whose `differences` say how the text differs from what the constraint
/// allows. Takes the options of `Engine.compile_tools`. Special tokens are given by their text.
#[pyfunction]
#[pyo3(signature = (text, tools=None, *, format, **options))]
pub(crate) fn read<'py>(
    py: Python<'py>,
    text: Given<String>,
    tools: Option<Bound<'py, PyAny>>,
    format: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let text = text.named(py, "text")?;
    let tools = tools.unwrap_or_else(|| py.None().into_bound(py));
    let request = tool_request(&tools, options, &Limits::default())?;
    let format = wire_format(format)?;
    let reading =
        detached(py, || format.read_unconstrained(&request, &text))?.map_err(Failure::from)?;
    let text = serde_json::to_string(&reading).map_err(|e| Failure::new("InternalError", e))?;
    py.import("louver.reports")?.getattr("reading")?.call1((from_json(py, &text)?,))
}
