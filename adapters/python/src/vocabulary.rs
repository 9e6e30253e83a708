//! `Vocabulary`: the model's tokens as bytes, with the tokenizer they came from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use louver_hf_tokenizers::{Encoder, LoadError, VocabOptions, Warning};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use tokenizers::Tokenizer;

use crate::arguments::{Given, GivenToken, optional, tokens};
use crate::errors::{Failure, detached};

/// A model's tokens as bytes, its stop tokens, and the width of its logits. Immutable; engines and
/// threads share it. Make one with `from_file`, `from_json`, `from_tokens` or, for a tokenizer of
/// transformers, with `louver.transformers.vocabulary`.
#[pyclass(module = "louver", frozen)]
pub(crate) struct Vocabulary {
    pub(crate) inner: Arc<louver::Vocabulary>,
    pub(crate) tokenizer: Option<Arc<Tokenizer>>,
    warnings: Vec<String>,
}

/// The options of a conversion. Stop tokens are ids or texts.
fn vocab_options(
    py: Python<'_>,
    width: Option<Given<usize>>,
    stop_tokens: Option<&Bound<'_, PyAny>>,
) -> PyResult<VocabOptions> {
    let mut options = VocabOptions::default().with_width(optional(width, py, "width")?);
    for stop in stop_tokens.map(|stops| stops.try_iter()).transpose()?.into_iter().flatten() {
        let stop = stop?;
        if stop.is_instance_of::<PyString>() {
            options.stop_names.push(stop.extract::<Given<_>>()?.named(py, "stop_tokens")?);
        } else {
            options.stop_ids.push(stop.extract::<Given<_>>()?.named(py, "stop_tokens")?);
        }
    }
    Ok(options)
}

impl Vocabulary {
    fn new(vocab: louver::Vocabulary, tokenizer: Tokenizer, warnings: &[Warning]) -> Vocabulary {
        let warnings = warnings.iter().map(Warning::to_string).collect();
        Vocabulary { inner: Arc::new(vocab), tokenizer: Some(Arc::new(tokenizer)), warnings }
    }

    /// The tokenizer. Fails for vocabularies that have none.
    fn need_tokenizer(&self) -> Result<&Tokenizer, Failure> {
        let missing = "this vocabulary was made from tokens and has no tokenizer";
        self.tokenizer.as_deref().ok_or_else(|| Failure::new("VocabularyError", missing))
    }
}

#[pymethods]
impl Vocabulary {
    /// Loads a `tokenizer.json`. `width`: the width of the model's logits, if it is larger than the
    /// tokenizer. `stop_tokens`: ids or texts; by default those that the files beside it name.
    #[staticmethod]
    #[pyo3(signature = (path, *, width=None, stop_tokens=None))]
    fn from_file(
        py: Python<'_>,
        path: Given<PathBuf>,
        width: Option<Given<usize>>,
        stop_tokens: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vocabulary> {
        let options = vocab_options(py, width, stop_tokens)?;
        let path = path.named(py, "path")?;
        let loaded = detached(py, || louver_hf_tokenizers::load(&path, &options))?;
        let loaded = loaded.map_err(Failure::from)?;
        Ok(Vocabulary::new(loaded.vocab, loaded.tokenizer, &loaded.warnings))
    }

    /// As `from_file`, from the text of a `tokenizer.json`. Without `stop_tokens`, a well-known
    /// stop token of the tokenizer is taken, and `warnings` names it.
    #[staticmethod]
    #[pyo3(signature = (text, *, width=None, stop_tokens=None))]
    fn from_json(
        py: Python<'_>,
        text: Given<String>,
        width: Option<Given<usize>>,
        stop_tokens: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vocabulary> {
        let options = vocab_options(py, width, stop_tokens)?;
        let (text, path) = (text.named(py, "text")?, PathBuf::from("(text)"));
        let load = || {
            let message = |error: tokenizers::Error| error.to_string();
            let mut tokenizer = Tokenizer::from_bytes(text)
                .map_err(|error| LoadError::Tokenizer { path, message: message(error) })?;
            louver_hf_tokenizers::keep_whole_texts(&mut tokenizer);
            let (vocab, warnings) = louver_hf_tokenizers::vocabulary(&tokenizer, &options)?;
            Ok::<_, LoadError>((vocab, tokenizer, warnings))
        };
        let (vocab, tokenizer, warnings) = detached(py, load)?.map_err(Failure::from)?;
        Ok(Vocabulary::new(vocab, tokenizer, &warnings))
    }

    /// A vocabulary of given tokens: `tokens[id]` is bytes, text, or `None` for an unused id.
    /// `special`: names of special tokens with their ids. `stop_tokens`: ids.
    #[staticmethod]
    #[pyo3(signature = (tokens, *, stop_tokens, special=None, width=None))]
    fn from_tokens(
        tokens: &Bound<'_, PyAny>,
        stop_tokens: Given<Vec<u32>>,
        special: Option<Given<BTreeMap<String, u32>>>,
        width: Option<Given<usize>>,
    ) -> PyResult<Vocabulary> {
        let py = tokens.py();
        let tokens = tokens.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let width = optional(width, py, "width")?.unwrap_or(tokens.len());
        let mut builder = louver::Vocabulary::builder(width);
        for (id, token) in (0u32..).zip(&tokens) {
            if token.is_none() {
                continue;
            } else if token.is_instance_of::<PyString>() {
                let text: Given<String> = token.extract()?;
                builder.token(id, text.named(py, &format!("token {id}"))?.as_bytes());
            } else if let Ok(bytes) = token.cast::<PyBytes>() {
                builder.token(id, bytes.as_bytes());
            } else {
                return Err(PyTypeError::new_err(format!("token {id} must be bytes, str or None")));
            }
        }
        for (name, id) in optional(special, py, "special")?.iter().flatten() {
            builder.special(*id, name);
        }
        for id in stop_tokens.named(py, "stop_tokens")? {
            builder.stop(id);
        }
        let vocab = builder.build().map_err(|error| Failure::new("VocabularyError", error))?;
        Ok(Vocabulary { inner: Arc::new(vocab), tokenizer: None, warnings: Vec::new() })
    }

    /// Width of the logits, in ids.
    #[getter]
    fn width(&self) -> usize {
        self.inner.width()
    }

    /// `int32` words of one row of a bit mask.
    #[getter]
    fn mask_words(&self) -> usize {
        self.inner.mask_words()
    }

    /// The ids of the stop tokens.
    #[getter]
    fn stop_tokens(&self) -> Vec<u32> {
        self.inner.stops().iter().map(|token| token.raw()).collect()
    }

    /// The special tokens: names with their ids.
    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        self.inner.specials().iter().try_for_each(|(id, name)| out.set_item(name, id.raw()))?;
        Ok(out)
    }

    /// What could not be converted, for people.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// The bytes of a token; `None` for special and unused ids.
    fn bytes<'py>(&self, py: Python<'py>, id: GivenToken) -> Option<Bound<'py, PyBytes>> {
        self.inner.bytes(id.0).map(|bytes| PyBytes::new(py, bytes))
    }

    /// The id of a token with exactly these bytes, or `None`.
    fn find(&self, bytes: &[u8]) -> Option<u32> {
        self.inner.find(bytes).map(|token| token.raw())
    }

    /// The tokens of a text as the tokenizer cuts it in the middle of an output. Errors:
    /// `VocabularyError` for a vocabulary without a tokenizer.
    fn encode(&self, py: Python<'_>, text: Given<String>) -> PyResult<Vec<u32>> {
        let text = text.named(py, "text")?;
        let encoder = Encoder::new(self.need_tokenizer()?, &self.inner);
        Ok(encoder.encode(&text).map_err(|error| Failure::new("VocabularyError", error))?)
    }

    /// The bytes of tokens. Special tokens and unused ids have none; with `special=True`, special
    /// tokens are spelled by their names.
    #[pyo3(signature = (ids, *, special=false))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        special: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::new();
        for id in tokens(ids)? {
            let name = || self.inner.special_name(id).filter(|_| special).map(str::as_bytes);
            out.extend_from_slice(self.inner.bytes(id).or_else(name).unwrap_or_default());
        }
        Ok(PyBytes::new(py, &out))
    }

    fn __len__(&self) -> usize {
        self.inner.width()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Vocabulary>().is_ok_and(|other| other.get().inner == self.inner)
    }

    fn __hash__(&self) -> u64 {
        self.inner.fingerprint()
    }

    fn __repr__(&self) -> String {
        format!("<louver.Vocabulary of {} ids>", self.inner.width())
    }
}
