//! What Louver needs of a model, from its files or from the host's pipeline.

use std::sync::Arc;

use louver_host::{ChatTemplate, Checkpoint};
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

/// The parts of a model that Louver needs.
pub(crate) struct ModelParts {
    pub(crate) tokenizer: Arc<Tokenizer>,
    /// What its files say about its output.
    pub(crate) checkpoint: Checkpoint,
    /// Context length, if the host or the files state one.
    pub(crate) max_context: Option<usize>,
    /// The tokens that end a generation, as far as the host or the files state their ids.
    pub(crate) ends: Vec<u32>,
}

impl ModelParts {
    /// The tokens that end a generation, with those in the model's chat template and in another.
    pub(crate) fn all_ends(&self, other_template: Option<&str>) -> Vec<u32> {
        let own_template = self.checkpoint.template.as_ref().ok().map(ChatTemplate::source);
        let sources = [own_template, other_template];
        let is_shown = |end: &&str| sources.iter().flatten().any(|source| source.contains(*end));
        let eos = self.checkpoint.template_tokens[1].as_deref();
        let names = HOST_STOP_TOKENS.into_iter().filter(is_shown).chain(eos);
        let mut ends = self.ends.clone();
        ends.extend(names.filter_map(|name| self.tokenizer.token_to_id(name)));
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}
