//! Masks in the caller's memory: NumPy arrays of `int32` or `uint32` words, or of `bool`.

use louver::TokenId;
use numpy::{PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A writable array, borrowed for as long as this lives.
pub(crate) enum MaskBuffer<'py> {
    Signed(PyReadwriteArrayDyn<'py, i32>),
    Unsigned(PyReadwriteArrayDyn<'py, u32>),
    /// One element a token id.
    Bools(PyReadwriteArrayDyn<'py, bool>),
}

fn wrong(message: impl ToString) -> PyErr {
    PyValueError::new_err(message.to_string())
}

fn borrow<'py, T: numpy::Element>(
    array: &Bound<'py, PyArrayDyn<T>>,
) -> PyResult<PyReadwriteArrayDyn<'py, T>> {
    if !array.is_c_contiguous() {
        return Err(wrong("the mask array must be C-contiguous"));
    }
    array.try_readwrite().map_err(|error| wrong(format!("the mask array: {error}")))
}

impl<'py> MaskBuffer<'py> {
    /// Borrows `out`: a NumPy array, or what `louver.masks.as_array` makes an array of without a
    /// copy (a CPU tensor of torch, any object with a writable buffer).
    pub(crate) fn of(out: &Bound<'py, PyAny>) -> PyResult<MaskBuffer<'py>> {
        if let Some(buffer) = MaskBuffer::of_array(out)? {
            return Ok(buffer);
        }
        let array = out.py().import("louver.masks")?.getattr("as_array")?.call1((out,))?;
        let dtype = || array.getattr("dtype").map(|dtype| dtype.to_string()).unwrap_or_default();
        MaskBuffer::of_array(&array)?.ok_or_else(|| {
            let message =
                format!("a mask is an array of int32, uint32 or bool, not of {}", dtype());
            PyTypeError::new_err(message)
        })
    }

    fn of_array(out: &Bound<'py, PyAny>) -> PyResult<Option<MaskBuffer<'py>>> {
        Ok(Some(if let Ok(array) = out.cast::<PyArrayDyn<i32>>() {
            MaskBuffer::Signed(borrow(array)?)
        } else if let Ok(array) = out.cast::<PyArrayDyn<u32>>() {
            MaskBuffer::Unsigned(borrow(array)?)
        } else if let Ok(array) = out.cast::<PyArrayDyn<bool>>() {
            MaskBuffer::Bools(borrow(array)?)
        } else {
            return Ok(None);
        }))
    }

    fn shape(&self) -> &[usize] {
        match self {
            MaskBuffer::Signed(array) => array.shape(),
            MaskBuffer::Unsigned(array) => array.shape(),
            MaskBuffer::Bools(array) => array.shape(),
        }
    }

    /// Elements of a row for a vocabulary.
    fn row_length(&self, vocab: &louver::Vocabulary) -> usize {
        match self {
            MaskBuffer::Bools(_) => vocab.width(),
            _ => vocab.mask_words(),
        }
    }

    /// Checks that the array is one row, or that row `row` of its rows exists, and returns the
    /// row's range among all elements.
    fn row(
        &self,
        vocab: &louver::Vocabulary,
        row: Option<usize>,
    ) -> PyResult<std::ops::Range<usize>> {
        let length = self.row_length(vocab);
        match (self.shape(), row) {
            (&[columns], None) if columns == length => Ok(0..length),
            (&[rows, columns], Some(row)) if columns == length && row < rows => {
                Ok(row * length..(row + 1) * length)
            }
            (shape, row) => {
                let expected = match row {
                    None => format!("[{length}]"),
                    Some(row) => format!("[more than {row}, {length}]"),
                };
                Err(wrong(format!("the mask has shape {shape:?} instead of {expected}")))
            }
        }
    }

    /// Writes one row with `fill`, which gets the words of the row.
    pub(crate) fn fill_row(
        &mut self,
        vocab: &louver::Vocabulary,
        row: Option<usize>,
        fill: impl FnOnce(&mut [u32]) -> PyResult<()>,
    ) -> PyResult<()> {
        let range = self.row(vocab, row)?;
        self.fill(range, vocab, fill)
    }

    /// Writes the rows of a batch with `fill`, which gets the words of all rows.
    pub(crate) fn fill_rows<T>(
        &mut self,
        vocab: &louver::Vocabulary,
        rows: usize,
        fill: impl FnOnce(&mut [u32]) -> PyResult<T>,
    ) -> PyResult<T> {
        let length = self.row_length(vocab);
        match *self.shape() {
            [given, columns] if given == rows && columns == length => {}
            ref shape => {
                let message = format!(
                    "the mask has shape {shape:?} instead of [{rows}, {length}]: one row a matcher"
                );
                return Err(wrong(message));
            }
        }
        self.fill(0..rows * length, vocab, fill)
    }

    fn fill<T>(
        &mut self,
        range: std::ops::Range<usize>,
        vocab: &louver::Vocabulary,
        fill: impl FnOnce(&mut [u32]) -> PyResult<T>,
    ) -> PyResult<T> {
        let wrong = |error: numpy::AsSliceError| wrong(error);
        match self {
            MaskBuffer::Signed(array) => {
                fill(bytemuck::cast_slice_mut(&mut array.as_slice_mut().map_err(wrong)?[range]))
            }
            MaskBuffer::Unsigned(array) => fill(&mut array.as_slice_mut().map_err(wrong)?[range]),
            MaskBuffer::Bools(array) => {
                let flags = &mut array.as_slice_mut().map_err(wrong)?[range];
                let (width, words) = (vocab.width(), vocab.mask_words());
                let mut rows = vec![0; flags.len().checked_div(width).unwrap_or(0) * words];
                let result = fill(&mut rows)?;
                let rows = rows.chunks(words.max(1));
                for (flags, row) in flags.chunks_mut(width.max(1)).zip(rows) {
                    write_flags(row, flags);
                }
                Ok(result)
            }
        }
    }
}

/// Writes each bit as a flag.
fn write_flags(words: &[u32], flags: &mut [bool]) {
    for (id, flag) in flags.iter_mut().enumerate() {
        *flag = louver::mask::bit(words, TokenId::new(id));
    }
}
