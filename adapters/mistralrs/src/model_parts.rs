//! What Louver needs of a model, from its files or from the host's pipeline.

use std::sync::Arc;

use louver_host::Checkpoint;
use tokenizers::Tokenizer;

/// Context length if neither the host nor the files state one.
pub(crate) const DEFAULT_CONTEXT: usize = 4096;

/// Tokens that `mistralrs` 0.8.1 also treats as stop tokens if the template contains them.
const HOST_STOP_TOKENS: [&str; 8] = [
    "<|im_end|>",
    "<end_of_turn>",
    "<|end_of_text|>",
    "<|end|>",
    "<|eot_id|>",
    "<|message|>",
    "<|start|>",
    "<|channel|>",
];

/// The tokens in a template's source that end a generation for the host.
pub(crate) fn end_tokens(source: &str) -> impl Iterator<Item = &'static str> {
    HOST_STOP_TOKENS.into_iter().filter(move |end| source.contains(end))
}

/// The parts of a model that Louver needs.
pub(crate) struct ModelParts {
    pub(crate) tokenizer: Arc<Tokenizer>,
    /// What its files say about its output.
    pub(crate) checkpoint: Checkpoint,
    pub(crate) max_context: usize,
    /// The tokens that end a generation.
    pub(crate) ends: Vec<u32>,
}
