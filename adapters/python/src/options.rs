//! Python arguments as options and documents: whatever `json.dumps` writes, read by serde. Numbers
//! stay as Python writes them, so that schemas keep exact bounds.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::arguments::Given;

/// The value of an argument as JSON text. Errors: `ArgumentError` for a lone surrogate.
pub(crate) fn json_text(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let py = value.py();
    let arguments = PyDict::new(py);
    arguments.set_item("ensure_ascii", false)?;
    let text = py.import("json")?.call_method("dumps", (value,), Some(&arguments))?;
    text.extract::<Given<_>>()?.named(py, name)
}

/// JSON text as a Python value.
pub(crate) fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// A document: JSON text, or a value that `json.dumps` writes.
pub(crate) fn document(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    match value.is_instance_of::<PyString>() {
        true => value.extract::<Given<_>>()?.named(value.py(), name),
        false => json_text(value, name),
    }
}

/// Keyword arguments laid over default options. Errors: `TypeError` for an unknown name,
/// `ValueError` for a wrong value.
pub(crate) fn options<T: Serialize + DeserializeOwned>(
    default: &T,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<T> {
    let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let mut members = match serde_json::to_value(default).map_err(wrong)? {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract::<Given<_>>()?.named(name.py(), "options")?;
        let value = serde_json::from_str(&json_text(&value, &name)?).map_err(wrong)?;
        members.insert(name, value);
    }
    serde_path_to_error::deserialize(Value::Object(members)).map_err(|error| {
        match error.inner().to_string().strip_prefix("unknown field") {
            Some(rest) => PyTypeError::new_err(format!("there is no option{rest}")),
            None => PyValueError::new_err(error.to_string()),
        }
    })
}
