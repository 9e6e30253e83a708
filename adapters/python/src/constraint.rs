//! `Constraint`: a compiled grammar, and `Extractor`: what a generation under it said.

mod matcher;

use louver::Tracer;
use louver_formats::{Event, LoweredRequest, TurnCollector};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::arguments::{Given, GivenToken, tokens};
use crate::errors::{Failure, Fault, advance_error, detached, to_list};
use crate::options::from_json;
use crate::vocabulary::Vocabulary;

pub(crate) use matcher::Matcher;

/// A compiled grammar bound to a vocabulary, with its caches. All sequences of one grammar share
/// it, on any threads.
#[pyclass(module = "louver", frozen)]
pub(crate) struct Constraint {
    pub(crate) inner: louver::Constraint,
    pub(crate) vocabulary: Py<Vocabulary>,
    pub(crate) relaxed: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
    /// Of `compile_tools`.
    pub(crate) lowered: Option<LoweredRequest>,
}

impl Constraint {
    pub(crate) fn new(inner: louver::Constraint, vocabulary: Py<Vocabulary>) -> Constraint {
        Constraint { inner, vocabulary, relaxed: Vec::new(), warnings: Vec::new(), lowered: None }
    }

    fn make_extractor(&self, id_seed: u64) -> Result<Extractor, Failure> {
        let missing = "only constraints of `compile_tools` can be extracted from";
        let lowered = self.lowered.as_ref().ok_or_else(|| Failure::new("RequestError", missing))?;
        Ok(Extractor {
            matcher: self.inner.matcher(),
            tracer: Tracer::new(),
            inner: lowered.extractor(id_seed),
            collector: TurnCollector::new(),
            is_finished: false,
        })
    }
}

#[pymethods]
impl Constraint {
    /// A matcher at the start of the grammar.
    fn matcher(slf: Bound<'_, Self>) -> Matcher {
        Matcher::new(slf.get().inner.matcher(), slf.unbind())
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// What the input demands and the grammar does not enforce: `louver.reports.Fault`s. Empty
    /// unless a policy that relaxes was asked for.
    #[getter]
    fn relaxed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_list(py, &self.relaxed)
    }

    /// Warnings about the input: `louver.reports.Fault`s.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_list(py, &self.warnings)
    }

    /// The grammar as text, for people.
    #[getter]
    fn grammar(&self) -> String {
        self.inner.compiled().grammar().to_string()
    }

    /// Makes the first mask, so that a grammar whose first mask is too much work is refused before
    /// anything is generated. Errors: `LimitError`.
    fn make_first_mask(&self, py: Python<'_>) -> PyResult<()> {
        Ok(detached(py, || self.inner.make_first_mask())?.map_err(Failure::from)?)
    }

    /// An extractor for one generation under a constraint of `compile_tools`. Generations that are
    /// shown together need different seeds: call ids are made from them.
    #[pyo3(signature = (*, id_seed=Given::of(0)), text_signature = "($self, *, id_seed=0)")]
    fn extractor(&self, py: Python<'_>, id_seed: Given<u64>) -> PyResult<Extractor> {
        Ok(self.make_extractor(id_seed.named(py, "id_seed")?)?)
    }

    /// The turn (`louver.reports.Turn`) of a whole generation, given as its tokens with the stop
    /// token. What follows the first stop token is ignored. Errors: `AdvanceError` for tokens that
    /// the constraint does not allow.
    #[pyo3(
        signature = (ids, *, id_seed=Given::of(0)),
        text_signature = "($self, ids, *, id_seed=0)"
    )]
    fn extract<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        id_seed: Given<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut extractor = self.make_extractor(id_seed.named(py, "id_seed")?)?;
        for (index, token) in tokens(ids)?.into_iter().enumerate() {
            if extractor.matcher.is_terminated() {
                break;
            }
            extractor.take(py, token, index)?;
        }
        extractor.end(false);
        extractor.turn(py)
    }

    fn __repr__(&self) -> String {
        format!("<louver.Constraint of {} rules>", self.inner.compiled().grammar().rules.len())
    }
}

/// Reads a generation under a constraint of `compile_tools` while it runs: `push` each token, then
/// `finish`. Events are dictionaries with a `type`: `text_delta`, `reasoning_delta`, `call_start`,
/// `arguments_delta`, `call_end`, `incomplete`, `end`.
#[pyclass(module = "louver")]
pub(crate) struct Extractor {
    matcher: louver::Matcher,
    tracer: Tracer,
    inner: louver_formats::Extractor,
    collector: TurnCollector,
    is_finished: bool,
}

impl Extractor {
    /// Takes a token, which was token `index` of those given.
    fn take(&mut self, py: Python<'_>, id: louver::TokenId, index: usize) -> PyResult<Vec<Event>> {
        if let Err(error) = self.matcher.advance_traced(id, &mut self.tracer) {
            return Err(advance_error(py, &error, &mut self.matcher, index));
        }
        let events = self.inner.push(self.tracer.drain());
        events.iter().for_each(|event| self.collector.push(event));
        Ok(events)
    }

    fn end(&mut self, cut_off: bool) -> Vec<Event> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Vec::new();
        }
        if cut_off {
            self.inner.cut_off();
        }
        let mut events = self.inner.push(std::mem::take(&mut self.tracer).finish());
        events.extend(self.inner.finish(self.matcher.is_complete()));
        events.iter().for_each(|event| self.collector.push(event));
        events
    }
}

fn to_events<'py>(py: Python<'py>, events: &[Event]) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(events).map_err(|e| Failure::new("InternalError", e))?;
    from_json(py, &text)
}

#[pymethods]
impl Extractor {
    /// Takes a token and returns the events that are decided. Errors: `AdvanceError`; `ValueError`
    /// after `finish`.
    fn push<'py>(&mut self, py: Python<'py>, id: GivenToken) -> PyResult<Bound<'py, PyAny>> {
        if self.is_finished {
            return Err(PyValueError::new_err("the generation is finished"));
        }
        let events = self.take(py, id.0, self.matcher.tokens().len())?;
        to_events(py, &events)
    }

    /// Ends the generation and returns the last events. `cut_off`: it was ended by a length limit
    /// and not by the model.
    #[pyo3(signature = (*, cut_off=false))]
    fn finish<'py>(&mut self, py: Python<'py>, cut_off: bool) -> PyResult<Bound<'py, PyAny>> {
        let events = self.end(cut_off);
        to_events(py, &events)
    }

    /// The turn so far: `louver.reports.Turn`.
    #[getter]
    fn turn<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let turn = serde_json::to_string(self.collector.turn());
        let text = turn.map_err(|e| Failure::new("InternalError", e))?;
        py.import("louver.reports")?.getattr("turn")?.call1((from_json(py, &text)?,))
    }
}
