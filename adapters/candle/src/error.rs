//! Errors of mask batches and of applying them to logits.

use candle_core::{DType, DeviceLocation};
use louver::engine::BatchError;

/// Why rows of a [`MaskBatch`](crate::MaskBatch) cannot be set. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// The engine's vocabulary has another width than the batch.
    #[error("the engine's masks have {engine} ids, the batch's have {batch}")]
    Width {
        /// Ids of the engine's vocabulary.
        engine: usize,
        /// Ids of the batch.
        batch: usize,
    },
    /// There is no such row.
    #[error("row {row} of a batch of {rows}")]
    Row {
        /// The requested row.
        row: usize,
        /// Rows of the batch.
        rows: usize,
    },
    /// A row is named twice.
    #[error("row {row} is named twice")]
    Repeated {
        /// That row.
        row: usize,
    },
    /// A mask has the wrong number of words.
    #[error("a mask of {got} words for rows of {words}")]
    Words {
        /// Words of a row.
        words: usize,
        /// Words given.
        got: usize,
    },
    /// The number of matchers differs from the number of rows.
    #[error("{matchers} matchers for {rows} rows")]
    Matchers {
        /// Rows named.
        rows: usize,
        /// Matchers given.
        matchers: usize,
    },
    /// The engine cannot fill masks for these matchers.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// Why masks cannot be applied to logits. Nothing was changed, except with [`ApplyError::Candle`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The logits are not `[V]` or `[B, V]`.
    #[error("logits have one or two dimensions, not {dims:?}")]
    Rank {
        /// The tensor's dimensions.
        dims: Vec<usize>,
    },
    /// The number of mask rows differs from the number of logit rows or named rows.
    #[error("masks of {masks} rows for {rows} rows of logits")]
    Rows {
        /// Rows of the batch of masks.
        masks: usize,
        /// Rows of the logits, or number of named rows.
        rows: usize,
    },
    /// A row that is named lies outside the logits.
    #[error("row {row} of logits with {rows} rows")]
    Row {
        /// The row named.
        row: u32,
        /// Rows of the logits.
        rows: usize,
    },
    /// A row of logits is named twice.
    #[error("row {row} of the logits is named twice")]
    Repeated {
        /// That row.
        row: u32,
    },
    /// The logits are not f32, f16 or bf16.
    #[error("logits are f32, f16 or bf16, not {0:?}")]
    DType(DType),
    /// The ids of a row are not contiguous, or rows overlap.
    #[error(
        "logits of {dims:?} with strides {strides:?}: the ids of a row must be contiguous, and \
         rows must not overlap"
    )]
    Layout {
        /// The tensor's dimensions.
        dims: Vec<usize>,
        /// Its strides, in elements.
        strides: Vec<usize>,
    },
    /// The device is not supported: only the CPU and, with the feature `cuda`, CUDA devices are.
    #[error("unsupported device {0:?}: use the CPU, or CUDA devices with the feature `cuda`")]
    Device(DeviceLocation),
    /// A size exceeds the kernels' limits (2^32 ids, 65,535 rows, 2^32 words of masks).
    #[error("too large for a device: {what} {got}")]
    Large {
        /// The quantity.
        what: &'static str,
        /// Its value.
        got: usize,
    },
    /// The number of temperatures is neither one nor the number of rows.
    #[error("{got} temperatures for {rows} rows")]
    Temperatures {
        /// Rows of the batch of masks.
        rows: usize,
        /// Temperatures given.
        got: usize,
    },
    /// A temperature is not a positive, finite number.
    #[error("the temperature {0} is not a positive number")]
    Temperature(f32),
    /// candle or the device's driver failed.
    #[error(transparent)]
    Candle(#[from] candle_core::Error),
}
