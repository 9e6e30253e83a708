//! Arguments whose errors name them. PyO3 names an argument of a wrong type, but neither a number
//! out of range nor a text with a lone surrogate.

use louver::TokenId;
use pyo3::exceptions::{PyOverflowError, PyUnicodeEncodeError};
use pyo3::prelude::*;

use crate::errors::{Failure, NO_TOKEN};

/// An argument, or what is wrong with its value.
#[derive(Debug)]
pub(crate) struct Given<T>(PyResult<T>);

impl<T> Given<T> {
    /// A default.
    pub(crate) fn of(value: T) -> Given<T> {
        Given(Ok(value))
    }

    /// The value of the argument of this name. Errors: `ArgumentError`.
    pub(crate) fn named(self, py: Python<'_>, name: &str) -> PyResult<T> {
        self.0.map_err(|error| argument_error(py, name, error))
    }
}

/// The value of an argument that may be absent. Errors: `ArgumentError`.
pub(crate) fn optional<T>(
    given: Option<Given<T>>,
    py: Python<'_>,
    name: &str,
) -> PyResult<Option<T>> {
    given.map(|given| given.named(py, name)).transpose()
}

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Given<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Given<T>> {
        match value.extract::<T>().map_err(Into::into) {
            Err(error) if problem(value.py(), &error).is_none() => Err(error),
            result => Ok(Given(result)),
        }
    }
}

/// What is wrong with a value, if its type is not.
fn problem(py: Python<'_>, error: &PyErr) -> Option<&'static str> {
    if error.is_instance_of::<PyOverflowError>(py) {
        Some("a number is negative or too large")
    } else if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        Some("the text has a lone surrogate, which UTF-8 does not have")
    } else {
        None
    }
}

/// The error of the argument of this name: `ArgumentError`, unless its type is wrong.
pub(crate) fn argument_error(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    match problem(py, &error) {
        Some(problem) => Failure::new("ArgumentError", format!("{name}: {problem}")).into(),
        None => error,
    }
}

/// A token id. Numbers that are no ids become [`NO_TOKEN`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenToken(pub(crate) TokenId);

impl<'a, 'py> FromPyObject<'a, 'py> for GivenToken {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<GivenToken> {
        match value.extract::<u32>() {
            Ok(id) => Ok(GivenToken(TokenId::from_raw(id))),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                Ok(GivenToken(NO_TOKEN))
            }
            Err(error) => Err(error),
        }
    }
}

/// The ids of any iterable: a list, an array, a tensor.
pub(crate) fn tokens(ids: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    ids.try_iter()?.map(|id| Ok(id?.extract::<GivenToken>()?.0)).collect()
}
