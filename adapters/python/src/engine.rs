//! `Engine`: compiles for one vocabulary, and fills the masks of batches.

use louver::front::diagnostic::{Diagnostics, Severity};
use louver::front::ebnf::{self, EbnfDialect};
use louver::front::json_schema::Registry;
use louver::front::{LoweredGrammar, lark};
use louver::{
    EbnfOptions, EngineOptions, Expr, GrammarBuilder, Json, LarkOptions, Limits, RegexOptions,
    SchemaCompileError, SchemaOptions, StructuralTagOptions, TextCompileError, fuel,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};

use crate::arguments::{Given, optional};
use crate::constraint::Constraint;
use crate::constraint::Matcher;
use crate::errors::{Failure, Fault, detached, diagnostics, regex_failure};
use crate::mask_buffer::MaskBuffer;
use crate::options::{document, options};
use crate::tool_request::{tool_request, wire_format};
use crate::vocabulary::Vocabulary;

/// What a row of a batch allows.
#[pyclass(module = "louver", eq, eq_int, hash, frozen, rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RowStatus {
    /// Every token: the row need not be applied.
    Free,
    /// The tokens that may follow.
    Constrained,
    /// Stop tokens only: a stop token has been taken.
    Finished,
    /// Stop tokens only: the parser reached a limit.
    Limit,
    /// Stop tokens only: the engine failed, which is a bug.
    Failed,
}

impl From<louver::RowStatus> for RowStatus {
    fn from(status: louver::RowStatus) -> RowStatus {
        match status {
            louver::RowStatus::Free => RowStatus::Free,
            louver::RowStatus::Constrained => RowStatus::Constrained,
            louver::RowStatus::Finished => RowStatus::Finished,
            louver::RowStatus::Limit => RowStatus::Limit,
            _ => RowStatus::Failed,
        }
    }
}

/// Compiles grammars for one vocabulary, and holds caches and threads. Make one for a process; all
/// threads share it. Equal schemas and tool requests are compiled once.
#[pyclass(module = "louver", frozen)]
pub(crate) struct Engine {
    inner: louver::Engine,
    vocabulary: Py<Vocabulary>,
}

/// Options of EBNF that Python sets.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EbnfArguments {
    root: String,
    dialect: EbnfDialect,
    name: String,
}

/// Documents that references lead to, by their URI.
fn registry(given: Option<&Bound<'_, PyDict>>, limits: &Limits) -> PyResult<Registry> {
    let mut registry = Registry::new();
    for (uri, schema) in given.into_iter().flatten() {
        let parsed = Json::parse(&document(&schema, "registry")?, limits);
        let parsed = parsed.map_err(|error| Failure::from(SchemaCompileError::from(error)))?;
        registry.insert(uri.extract::<Given<String>>()?.named(uri.py(), "registry")?, parsed);
    }
    Ok(registry)
}

impl Engine {
    fn constraint(&self, py: Python<'_>, inner: louver::Constraint) -> Constraint {
        Constraint::new(inner, self.vocabulary.clone_ref(py))
    }

    /// Lowers and compiles the text of a grammar, with its warnings.
    fn compile_text(
        &self,
        py: Python<'_>,
        text: &str,
        lower: impl FnOnce() -> Result<LoweredGrammar, Diagnostics> + Send,
    ) -> PyResult<Constraint> {
        let (limits, level) = (&self.inner.options().limits, self.inner.options().simplify_texts);
        let compile = || {
            let LoweredGrammar { grammar, warnings } = lower()?;
            Ok::<_, TextCompileError>((self.inner.compile_with(grammar, level)?, warnings))
        };
        let budget = || limits.compile_budget(text.len());
        let compiled = detached(py, || fuel::with_default_budget(budget, compile))?;
        let (inner, warnings) = compiled.map_err(Failure::from)?;
        let warnings = diagnostics(&warnings, Severity::Warning);
        Ok(Constraint { warnings, ..self.constraint(py, inner) })
    }
}

#[pymethods]
impl Engine {
    /// An engine for this vocabulary. `batch_threads`: threads of `fill_masks`; by default those of
    /// the machine, at most 8. `background_threads`: threads of `prefetch`; by default 1.
    /// `pool_bytes`, `grammar_cache_bytes`: memory of caches, in bytes. `limits`: bounds on every
    /// request by name, such as `{"mask_fuel": 4_000_000}`.
    #[new]
    #[pyo3(signature = (
        vocabulary, *, batch_threads=None, background_threads=None, pool_bytes=None,
        grammar_cache_bytes=None, limits=None
    ))]
    fn new(
        vocabulary: Bound<'_, Vocabulary>,
        batch_threads: Option<Given<usize>>,
        background_threads: Option<Given<usize>>,
        pool_bytes: Option<Given<usize>>,
        grammar_cache_bytes: Option<Given<usize>>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Engine> {
        let (py, mut options) = (vocabulary.py(), EngineOptions::default());
        for (name, given, option) in [
            ("batch_threads", batch_threads, &mut options.batch_threads),
            ("background_threads", background_threads, &mut options.background_threads),
            ("pool_bytes", pool_bytes, &mut options.pool_bytes),
            ("grammar_cache_bytes", grammar_cache_bytes, &mut options.grammar_cache_bytes),
        ] {
            *option = optional(given, py, name)?.unwrap_or(*option);
        }
        options.limits = self::options(&Limits::default(), limits)?;
        let inner = louver::Engine::new(vocabulary.get().inner.clone(), options);
        Ok(Engine { inner, vocabulary: vocabulary.unbind() })
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// Compiles a JSON Schema: JSON text, or a value that `json.dumps` writes. `registry`:
    /// documents that references lead to, by URI. Options: docs/PYTHON.md. Errors: `SchemaError`,
    /// with JSON pointers; nothing is relaxed unless `policy` says so, and then
    /// `Constraint.relaxed` lists it.
    #[pyo3(signature = (schema, *, registry=None, **options))]
    fn compile_json_schema(
        &self,
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        registry: Option<&Bound<'_, PyDict>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Constraint> {
        let options = self::options(&SchemaOptions::default(), options)?;
        let (schema, limits) = (document(schema, "schema")?, &self.inner.options().limits);
        let registry = self::registry(registry, limits)?;
        let compile = || self.inner.compile_json_schema_in(&schema, &registry, &options);
        let (inner, relaxed) = detached(py, compile)?.map_err(Failure::from)?;
        let relaxed = relaxed.iter().map(Fault::from).collect();
        Ok(Constraint { relaxed, ..self.constraint(py, inner) })
    }

    /// Compiles a regular expression, which the whole text must match. Errors: `GrammarError`.
    #[pyo3(signature = (pattern, **options))]
    fn compile_regex(
        &self,
        py: Python<'_>,
        pattern: Given<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Constraint> {
        let pattern = pattern.named(py, "pattern")?;
        let options = self::options(&RegexOptions::default(), options)?;
        let compiled = detached(py, || self.inner.compile_regex(&pattern, &options))?;
        Ok(self.constraint(py, compiled.map_err(|error| regex_failure(error, &pattern))?))
    }

    /// Compiles a grammar in EBNF, GBNF or KBNF. Errors: `GrammarError`, with line and column.
    #[pyo3(signature = (text, **options))]
    fn compile_ebnf(
        &self,
        py: Python<'_>,
        text: Given<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Constraint> {
        let text = text.named(py, "text")?;
        let EbnfOptions { root, dialect, name, .. } = EbnfOptions::default();
        let given = self::options(&EbnfArguments { root, dialect, name }, options)?;
        let EbnfArguments { root, dialect, name } = given;
        let options = EbnfOptions::default().with_root(root).with_dialect(dialect).with_name(name);
        let limits = &self.inner.options().limits;
        self.compile_text(py, &text, || ebnf::lower(&text, &options, limits))
    }

    /// Compiles a Lark grammar. Options are those of the schemas in it. Errors: `GrammarError`,
    /// with line and column.
    #[pyo3(signature = (text, **options))]
    fn compile_lark(
        &self,
        py: Python<'_>,
        text: Given<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Constraint> {
        let text = text.named(py, "text")?;
        let schema = self::options(&SchemaOptions::default(), options)?;
        let options = LarkOptions::default().with_schema(schema);
        let limits = &self.inner.options().limits;
        self.compile_text(py, &text, || lark::lower(&text, &options, limits))
    }

    /// Compiles a structural tag: JSON text, or a value that `json.dumps` writes. Options are those
    /// of the schemas in it. Errors: `RequestError`, with JSON pointers.
    #[pyo3(signature = (tag, **options))]
    fn compile_structural_tag(
        &self,
        py: Python<'_>,
        tag: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Constraint> {
        let default = StructuralTagOptions::default();
        let schema = self::options(&default.schema, options)?;
        let (options, tag) = (default.with_schema(schema), document(tag, "tag")?);
        let compiled = detached(py, || self.inner.compile_structural_tag(&tag, &options))?;
        Ok(self.constraint(py, compiled.map_err(Failure::from)?))
    }

    /// Compiles a choice of texts. Errors: `CompileError` if there is none.
    fn compile_choice(&self, py: Python<'_>, choices: Given<Vec<String>>) -> PyResult<Constraint> {
        let choices = choices.named(py, "choices")?;
        let compile = || {
            let mut grammar = GrammarBuilder::new();
            let texts = choices.iter().map(|text| Expr::text(text));
            let start = grammar.rule("choice", Expr::alt(texts));
            self.inner.compile(grammar.finish(start)?)
        };
        Ok(self.constraint(py, detached(py, compile)?.map_err(Failure::from)?))
    }

    /// Compiles a turn that may call OpenAI-style tools, in the wire format of a model family.
    /// `format`: a name of `louver.formats.families()`, or the path of a description. Options:
    /// `tool_choice`, `response_format` and `stop` as in an OpenAI request; `parallel` (a bool, or
    /// the most calls), `reasoning` ("optional", "off", "required" or "opened"),
    /// `reasoning_tokens`, `strict` (false: only tools that say so), `allowed` (names), `bans`
    /// (texts), `schema_options` (as for `compile_json_schema`). Errors: `SchemaError`,
    /// `RequestError` and `FormatError`, with pointers into the request.
    #[pyo3(signature = (tools, *, format, **options))]
    fn compile_tools(
        &self,
        py: Python<'_>,
        tools: &Bound<'_, PyAny>,
        format: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Constraint> {
        let request = tool_request(tools, options, &self.inner.options().limits)?;
        let format = wire_format(format)?;
        let compiled = detached(py, || request.compile(&self.inner, &format))?;
        let (lowered, inner) = compiled.map_err(Failure::from)?;
        let relaxed = lowered.relaxed().iter().map(Fault::from).collect();
        let warnings = lowered.warnings().iter().cloned().map(Fault::from).collect();
        Ok(Constraint { relaxed, warnings, lowered: Some(lowered), ..self.constraint(py, inner) })
    }

    /// Writes the masks of many matchers on the engine's threads: row `i` of `out`, of shape
    /// `(len(matchers), words)` or, for `bool`, `(len(matchers), width)`, is what
    /// `matchers[i].fill_mask` would write. `None` in place of a matcher allows everything. Returns
    /// what each row allows. Errors: `ValueError` for another shape or vocabulary, `RuntimeError`
    /// for a matcher that is given twice or used by another thread.
    fn fill_masks(
        &self,
        py: Python<'_>,
        matchers: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<RowStatus>> {
        let mut rows: Vec<Option<PyRefMut<'_, Matcher>>> = Vec::new();
        for (row, matcher) in matchers.try_iter()?.enumerate() {
            let matcher = matcher?;
            if matcher.is_none() {
                rows.push(None);
                continue;
            }
            rows.push(Some(matcher.cast::<Matcher>()?.try_borrow_mut().map_err(|_| {
                let twice = "is given twice or used by another thread";
                PyRuntimeError::new_err(format!("the matcher of row {row} {twice}"))
            })?));
        }
        let matchers: Vec<Option<&mut louver::Matcher>> =
            rows.iter_mut().map(|row| row.as_mut().map(|matcher| &mut matcher.inner)).collect();
        let vocab = self.inner.vocab();
        let mut buffer = MaskBuffer::of(out)?;
        let statuses = buffer.fill_rows(vocab, matchers.len(), |words| {
            let filled = detached(py, || self.inner.fill_masks(matchers, words))?;
            filled.map_err(|error| PyValueError::new_err(error.to_string()))
        })?;
        Ok(statuses.into_iter().map(RowStatus::from).collect())
    }

    fn __repr__(&self) -> String {
        format!("<louver.Engine for {} ids>", self.inner.vocab().width())
    }
}
