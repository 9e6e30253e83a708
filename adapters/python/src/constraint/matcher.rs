//! `Matcher`: one sequence of tokens.

use louver::{CompletionOptions, TokenId};
use louver_hf_tokenizers::Encoder;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{Given, GivenToken, optional, tokens};
use crate::constraint::Constraint;
use crate::errors::{Failure, advance_error, detached};
use crate::mask_buffer::MaskBuffer;
use crate::vocabulary::Vocabulary;

/// A captured text: its name, its bytes, and its range in the whole text.
type Capture<'py> = (String, Bound<'py, PyBytes>, (usize, usize));

/// One sequence of tokens under a constraint: yields the mask of the next token and takes the
/// sampled token. For one thread at a time; a matcher that another thread uses raises
/// `RuntimeError`. Matchers of one constraint are independent.
#[pyclass(module = "louver")]
pub(crate) struct Matcher {
    pub(crate) inner: louver::Matcher,
    constraint: Py<Constraint>,
}

fn raw(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.raw()).collect()
}

impl Matcher {
    pub(crate) fn new(inner: louver::Matcher, constraint: Py<Constraint>) -> Matcher {
        Matcher { inner, constraint }
    }

    /// Takes tokens up to the first that may not follow. Returns the number taken, and the error.
    fn take(&mut self, tokens: &[TokenId]) -> (usize, Result<(), louver::AdvanceError>) {
        for (taken, &token) in tokens.iter().enumerate() {
            if let Err(error) = self.inner.advance(token) {
                return (taken, Err(error));
            }
        }
        (tokens.len(), Ok(()))
    }

    fn limit_error(error: &louver::AdvanceError) -> PyErr {
        Failure::new("LimitError", error).into()
    }
}

#[pymethods]
impl Matcher {
    /// Takes a token. Errors: `AdvanceError`, with the matcher unchanged, if it may not follow, is
    /// unknown, or the sequence has ended.
    fn advance(&mut self, py: Python<'_>, id: GivenToken) -> PyResult<()> {
        let (matcher, token) = (&mut self.inner, id.0);
        let taken = detached(py, || matcher.advance(token))?;
        taken.map_err(|error| advance_error(py, &error, matcher, 0))
    }

    /// As `advance`, but returns whether the token was taken.
    fn try_advance(&mut self, py: Python<'_>, id: GivenToken) -> PyResult<bool> {
        let (matcher, token) = (&mut self.inner, id.0);
        detached(py, || matcher.advance(token).is_ok())
    }

    /// Takes all of these tokens, or none: on an error (`AdvanceError`, whose `index` names the
    /// token) the matcher is unchanged.
    fn advance_all(&mut self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<()> {
        let tokens = tokens(ids)?;
        let (taken, result) = detached(py, || self.take(&tokens))?;
        result.map_err(|error| {
            let error = advance_error(py, &error, &mut self.inner, taken);
            self.inner.rollback(taken);
            error
        })
    }

    /// How many of these tokens may follow, one after the other. The matcher does not move.
    fn allowed_prefix(&mut self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = tokens(ids)?;
        detached(py, || {
            let (taken, _) = self.take(&tokens);
            self.inner.rollback(taken);
            taken
        })
    }

    /// Whether a token may follow. Makes no mask.
    fn allows(&mut self, py: Python<'_>, id: GivenToken) -> PyResult<bool> {
        let (matcher, token) = (&mut self.inner, id.0);
        detached(py, || matcher.allows(token))
    }

    /// Why a token may not follow, in words; `None` if it may.
    fn refusal(&mut self, py: Python<'_>, id: GivenToken) -> PyResult<Option<String>> {
        let (matcher, token) = (&mut self.inner, id.0);
        let refusal = detached(py, || matcher.refusal(token))?;
        let refusal = refusal.map_err(|error| Matcher::limit_error(&error))?;
        Ok(refusal.map(|refusal| refusal.to_string()))
    }

    /// Takes back the last `n` tokens, or all of them if there are fewer.
    #[pyo3(signature = (n=Given::of(1)), text_signature = "($self, n=1)")]
    fn rollback(&mut self, py: Python<'_>, n: Given<usize>) -> PyResult<()> {
        self.inner.rollback(n.named(py, "n")?);
        Ok(())
    }

    /// Takes back all tokens.
    fn reset(&mut self) {
        self.inner.rollback(usize::MAX);
    }

    /// An independent matcher at the same place.
    fn fork(&self, py: Python<'_>) -> Matcher {
        Matcher { inner: self.inner.clone(), constraint: self.constraint.clone_ref(py) }
    }

    fn __copy__(&self, py: Python<'_>) -> Matcher {
        self.fork(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Matcher {
        self.fork(py)
    }

    /// A matcher of another constraint that has taken the same tokens. Errors: `ValueError` if that
    /// constraint does not allow them or has another vocabulary.
    fn resumed_in(&self, constraint: Bound<'_, Constraint>) -> PyResult<Matcher> {
        let (matcher, other) = (&self.inner, &constraint.get().inner);
        let resumed = detached(constraint.py(), || matcher.resumed_in(other))?;
        let inner = resumed.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Matcher { inner, constraint: constraint.unbind() })
    }

    /// Whether the text so far is a sentence of the grammar, so that a stop token may follow.
    fn is_complete(&mut self, py: Python<'_>) -> PyResult<bool> {
        let matcher = &mut self.inner;
        detached(py, || matcher.is_complete())
    }

    /// Whether a stop token has been taken.
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }

    /// The tokens taken so far, a stop token included.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        raw(self.inner.tokens())
    }

    /// The limit that the parser reached, or `None`. From then on only stop tokens are allowed.
    #[getter]
    fn limit(&self) -> Option<&'static str> {
        self.inner.limit()
    }

    /// The constraint.
    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<Constraint> {
        self.constraint.clone_ref(py)
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.constraint.get().vocabulary.clone_ref(py)
    }

    /// Writes the mask of the next token in place. `out`: `int32` words (bit `t % 32` of word
    /// `t // 32` is token `t`) or `bool` flags, as a NumPy array, a CPU tensor or another writable
    /// buffer; one row, or a batch of which `row` is written. Errors: `ValueError` for another
    /// shape, `TypeError` for another type.
    #[pyo3(signature = (out, row=None))]
    fn fill_mask(
        &mut self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        row: Option<Given<usize>>,
    ) -> PyResult<()> {
        let row = optional(row, py, "row")?;
        let mut buffer = MaskBuffer::of(out)?;
        let vocab = self.inner.vocab().clone();
        let matcher = &mut self.inner;
        buffer.fill_row(&vocab, row, |words| detached(py, || matcher.fill_mask(words)))
    }

    /// The mask of the next token as a new `bool` array, one element a token id.
    fn mask<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let array = PyArray1::zeros(py, self.inner.vocab().width(), false);
        let mut buffer = MaskBuffer::Bools(
            array
                .to_dyn()
                .try_readwrite()
                .map_err(|error| PyValueError::new_err(error.to_string()))?,
        );
        let vocab = self.inner.vocab().clone();
        let matcher = &mut self.inner;
        buffer.fill_row(&vocab, None, |words| detached(py, || matcher.fill_mask(words)))?;
        drop(buffer);
        Ok(array)
    }

    /// The bytes that must follow, at most `longest`, up to the first special token.
    #[pyo3(signature = (longest=Given::of(4096)), text_signature = "($self, longest=4096)")]
    fn forced_bytes<'py>(
        &mut self,
        py: Python<'py>,
        longest: Given<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let longest = longest.named(py, "longest")?;
        let matcher = &mut self.inner;
        Ok(PyBytes::new(py, &detached(py, || matcher.forced_bytes(longest))?))
    }

    /// The tokens that must follow, of at most `longest` bytes: they can be appended without asking
    /// the model. Cut as the vocabulary's tokenizer cuts; without one, the longest token first.
    #[pyo3(signature = (longest=Given::of(4096)), text_signature = "($self, longest=4096)")]
    fn forced_tokens(&mut self, py: Python<'_>, longest: Given<usize>) -> PyResult<Vec<u32>> {
        let longest = longest.named(py, "longest")?;
        let tokenizer = self.constraint.get().vocabulary.get().tokenizer.clone();
        let matcher = &mut self.inner;
        let found = detached(py, || match tokenizer {
            None => matcher.forced_tokens(longest),
            Some(tokenizer) => {
                let vocab = matcher.vocab().clone();
                let encoder = Encoder::new(&tokenizer, &vocab);
                matcher.forced_tokens_with(longest, &mut |bytes| cut(&encoder, bytes))
            }
        })?;
        Ok(raw(&found))
    }

    /// The fewest tokens that spell a shortest completion of the text, without a stop token. `None`
    /// if it is longer than `longest` bytes or has bytes that no token spells. Errors:
    /// `LimitError`.
    #[pyo3(signature = (longest=Given::of(4096)), text_signature = "($self, longest=4096)")]
    fn shortest_completion_tokens(
        &mut self,
        py: Python<'_>,
        longest: Given<usize>,
    ) -> PyResult<Option<Vec<u32>>> {
        let longest = longest.named(py, "longest")?;
        let options = CompletionOptions::default().with_longest(longest);
        let matcher = &mut self.inner;
        let found = detached(py, || matcher.shortest_completion_tokens(&options))?;
        Ok(found.map_err(|error| Matcher::limit_error(&error))?.as_deref().map(raw))
    }

    /// The captures so far, in the order in which they ended: name, bytes, and range in the text.
    /// Errors: `LimitError`.
    fn captures<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Capture<'py>>> {
        let matcher = &mut self.inner;
        let found = detached(py, || matcher.captures())?;
        let found = found.map_err(|error| Matcher::limit_error(&error))?;
        let capture = |capture: louver::Capture| {
            let louver::Capture { name, bytes, range, .. } = capture;
            (name, PyBytes::new(py, &bytes), (range.start, range.end))
        };
        Ok(found.into_iter().map(capture).collect())
    }

    /// Makes the masks after tokens that are likely to be sampled next, on a background thread,
    /// while the model computes. Returns whether that was started.
    fn prefetch(&self, likely: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.inner.prefetch(&tokens(likely)?))
    }

    fn __repr__(&self) -> String {
        format!("<louver.Matcher after {} tokens>", self.inner.tokens().len())
    }
}

/// The tokens of forced bytes, as far as they are whole characters.
fn cut(encoder: &Encoder<'_>, bytes: &[u8]) -> Vec<TokenId> {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let ids = encoder.encode(valid).unwrap_or_default();
    ids.into_iter().map(TokenId::from_raw).collect()
}
