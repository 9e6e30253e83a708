//! Errors of the engine as exceptions of `louver.errors`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use louver::front::diagnostic::{Diagnostic, Diagnostics, Severity};
use louver::front::json_schema::SchemaError;
use louver::front::structural_tag::StructuralTagErrors;
use louver::spec::json::JsonError;
use louver::{
    AdvanceError, CompileError, Matcher, RegexCompileError, SchemaCompileError,
    StructuralTagCompileError, TextCompileError, TokenId,
};
use louver_formats::{ConstraintError, LowerError, RequestErrors, RequestFault};
use louver_hf_tokenizers::LoadError;
use pyo3::prelude::*;

/// One place of an input and what is wrong there: `louver.reports.Fault`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault {
    message: String,
    pointer: Option<String>,
    keyword: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
}

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exception's name in `louver.errors`.
    class: &'static str,
    message: String,
    faults: Vec<Fault>,
}

impl Failure {
    pub(crate) fn new(class: &'static str, message: impl ToString) -> Failure {
        Failure { class, message: message.to_string(), faults: Vec::new() }
    }

    fn with(mut self, faults: impl IntoIterator<Item = Fault>) -> Failure {
        self.faults.extend(faults);
        self
    }

    fn exception(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let faults = to_list(py, &self.faults)?;
        py.import("louver.errors")?.getattr(self.class)?.call1((self.message, faults))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| failure.exception(py).map_or_else(|error| error, PyErr::from_value))
    }
}

/// Faults as a tuple of `louver.reports.Fault`.
pub(crate) fn to_list<'py>(py: Python<'py>, faults: &[Fault]) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("louver.reports")?.getattr("Fault")?;
    let fault = |fault: &Fault| {
        let Fault { message, pointer, keyword, line, column } = fault;
        class.call1((message, pointer, keyword, line, column))
    };
    let list = faults.iter().map(fault).collect::<PyResult<Vec<_>>>()?;
    Ok(pyo3::types::PyTuple::new(py, list)?.into_any())
}

impl From<&SchemaError> for Fault {
    fn from(error: &SchemaError) -> Fault {
        Fault {
            message: error.reason.to_string(),
            pointer: Some(error.pointer.clone()),
            keyword: Some(error.keyword.clone()).filter(|keyword| !keyword.is_empty()),
            ..Fault::default()
        }
    }
}

impl From<RequestFault> for Fault {
    fn from(fault: RequestFault) -> Fault {
        let RequestFault { pointer, keyword, message, .. } = fault;
        Fault { message, pointer: Some(pointer), keyword, ..Fault::default() }
    }
}

impl From<&JsonError> for Fault {
    fn from(error: &JsonError) -> Fault {
        let (line, column) = (Some(error.line), Some(error.column));
        Fault { message: error.reason.to_string(), line, column, ..Fault::default() }
    }
}

/// The errors or the warnings of a grammar's text, with line and column.
pub(crate) fn diagnostics(all: &Diagnostics, severity: Severity) -> Vec<Fault> {
    let fault = |one: &Diagnostic| {
        let (line, column) = all.place(one.span.start);
        let label = one.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        let help = one.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let message = format!("{}{label}{help}", one.message);
        Fault { message, line: Some(line), column: Some(column), ..Fault::default() }
    };
    all.list().iter().filter(|one| one.severity == severity).map(fault).collect()
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Failure {
        let class = if error.is_limit() { "LimitError" } else { "CompileError" };
        Failure::new(class, error)
    }
}

impl From<SchemaCompileError> for Failure {
    fn from(error: SchemaCompileError) -> Failure {
        let failure = Failure::new("SchemaError", &error);
        match error {
            SchemaCompileError::Json(error) => failure.with([Fault::from(&error)]),
            SchemaCompileError::Schema(errors) => failure.with(errors.iter().map(Fault::from)),
            SchemaCompileError::Compile(error) => error.into(),
            _ => failure,
        }
    }
}

impl From<TextCompileError> for Failure {
    fn from(error: TextCompileError) -> Failure {
        let failure = Failure::new("GrammarError", &error);
        match error {
            TextCompileError::Text(all) => failure.with(diagnostics(&all, Severity::Error)),
            TextCompileError::Compile(error) => error.into(),
            _ => failure,
        }
    }
}

/// The error of a pattern, with its place in the pattern.
pub(crate) fn regex_failure(error: RegexCompileError, pattern: &str) -> Failure {
    let failure = Failure::new("GrammarError", &error);
    match error {
        RegexCompileError::Regex(error) => {
            failure.with(diagnostics(&error.diagnostics("pattern", pattern), Severity::Error))
        }
        RegexCompileError::Compile(error) => error.into(),
        _ => failure,
    }
}

fn tag_faults(errors: &StructuralTagErrors) -> impl Iterator<Item = Fault> {
    errors.iter().map(|error| Fault {
        message: error.reason.to_string(),
        pointer: Some(error.pointer.clone()),
        ..Fault::default()
    })
}

impl From<StructuralTagCompileError> for Failure {
    fn from(error: StructuralTagCompileError) -> Failure {
        let failure = Failure::new("RequestError", &error);
        match error {
            StructuralTagCompileError::Document(errors) => failure.with(tag_faults(&errors)),
            StructuralTagCompileError::Compile(error) => error.into(),
            _ => failure,
        }
    }
}

impl From<RequestErrors> for Failure {
    fn from(error: RequestErrors) -> Failure {
        Failure::new("RequestError", &error).with(error.faults().into_iter().map(Fault::from))
    }
}

impl From<ConstraintError> for Failure {
    fn from(error: ConstraintError) -> Failure {
        match error {
            ConstraintError::Compile(error) => error.into(),
            ConstraintError::Lower(error) => {
                // Schemas alone are at fault.
                let is_schema =
                    matches!(&error, LowerError::Parts(parts) if parts.grammar_faults().is_empty());
                let class = if is_schema { "SchemaError" } else { "RequestError" };
                Failure::new(class, &error).with(error.faults().into_iter().map(Fault::from))
            }
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        Failure::new("VocabularyError", error)
    }
}

/// A token that no vocabulary has.
pub(crate) const NO_TOKEN: TokenId = TokenId::from_raw(u32::MAX);

/// The exception for a token that was not taken: the matcher says what was expected. `index`: the
/// token's place among those given.
pub(crate) fn advance_error(
    py: Python<'_>,
    error: &AdvanceError,
    matcher: &mut Matcher,
    index: usize,
) -> PyErr {
    let (reason, token, offset) = match error {
        AdvanceError::Rejected { token, offset } => ("rejected", Some(*token), Some(*offset)),
        AdvanceError::UnknownToken { token } => {
            ("unknown_token", Some(*token).filter(|token| *token != NO_TOKEN), None)
        }
        AdvanceError::Terminated => ("terminated", None, None),
        AdvanceError::Limit { .. } => ("limit", None, None),
        _ => ("other", None, None),
    };
    let refusal = token.and_then(|token| {
        detached(py, || matcher.refusal(token)).ok().and_then(Result::ok).flatten()
    });
    let message = match (token, refusal) {
        (Some(token), Some(refusal)) => {
            let shown = matcher.vocab().shown(token);
            format!("token {token} ({shown:?}) may not follow: {refusal}")
        }
        (None, _) if reason == "unknown_token" => "no token has a number like this".to_owned(),
        _ => error.to_string(),
    };
    let arguments = (message, reason, token.map(|token| token.raw()), offset, index);
    let class = py.import("louver.errors").and_then(|module| module.getattr("AdvanceError"));
    class.and_then(|class| class.call1(arguments)).map_or_else(|error| error, PyErr::from_value)
}

/// Runs work of the engine without Python's global lock. Errors: `InternalError` if it panics,
/// which is a bug.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Failure::new("InternalError", format!("the engine panicked: {text}")).into()
    })
}
