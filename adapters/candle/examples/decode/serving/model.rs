//! What the loop needs of a model.

use candle_core::{Device, Result, Tensor};

/// A model that reads chunks of several sequences in one forward pass.
pub(crate) trait Model {
    /// What it keeps of a sequence: keys and values.
    type Cache: SequenceCache + Send;

    /// The device of the logits.
    fn device(&self) -> &Device;

    /// Most tokens of a sequence.
    fn context_length(&self) -> usize;

    /// The cache of a new sequence.
    fn new_cache(&self) -> Self::Cache;

    /// Reads every chunk after what its cache holds, and adds it to the cache. Returns the logits
    /// `[rows, vocabulary]`, f32, of the last [`Chunk::logits`] tokens of each chunk, in order.
    fn forward(&self, chunks: &mut [Chunk<'_, Self::Cache>]) -> Result<Tensor>;
}

/// The part of a sequence's state that can be taken back.
pub(crate) trait SequenceCache {
    /// Number of tokens read.
    fn len(&self) -> usize;

    /// Forgets all tokens but the first `len`.
    fn truncate(&mut self, len: usize);
}

/// The tokens that one sequence reads in a forward pass.
pub(crate) struct Chunk<'s, C> {
    pub(crate) tokens: Vec<u32>,
    /// The sequence's cache.
    pub(crate) cache: &'s mut C,
    /// How many of the last tokens have their logits returned: none within a prompt, otherwise one
    /// and one more for each token of the draft.
    pub(crate) logits: usize,
}
