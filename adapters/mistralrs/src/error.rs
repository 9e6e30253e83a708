//! Errors of loading a model.

use std::path::Path;

use louver_formats::UnknownFormat;
use louver_host::CheckpointError;

/// Why Louver cannot be set up for a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The host failed to load the model.
    #[error("mistral.rs cannot load the model: {0}")]
    Host(String),
    /// The pipeline has no tokenizer: not a text model.
    #[error("the model has no tokenizer")]
    NoTokenizer,
    /// mistralrs 0.8.1 samples several rows of a speculative pipeline with the context of the first
    /// row, so no logits processor can be correct.
    #[error("speculative pipelines of this mistral.rs cannot be constrained")]
    Speculative,
    /// A block-diffusion language model generates blocks of tokens without calling a logits
    /// processor, so nothing would be masked.
    #[error(
        "{model_type} is a block-diffusion model: mistral.rs does not call logits processors for \
         it, so its output cannot be constrained"
    )]
    BlockDiffusion {
        /// The model type or architecture of its configuration.
        model_type: String,
    },
    /// The model does not generate text token by token.
    #[error("models of the kind {category} generate no text that could be constrained")]
    NotText {
        /// The host's category.
        category: &'static str,
    },
    /// A file of the model is missing. [`Louver::load`](crate::Louver::load) asks the host instead.
    #[error(
        "the model {model:?} has no file {file} in its directory or the Hugging Face \
         cache; use `Louver::load`"
    )]
    NoFile {
        /// The model's name.
        model: String,
        /// The file.
        file: String,
    },
    /// The host ends generations at a token that the wire format needs within a turn. Models loaded
    /// with [`Louver::load`](crate::Louver::load) do not.
    #[error(
        "the host ends every generation at {token:?}, which the wire format needs; use \
         `Louver::load`"
    )]
    EarlyEnd {
        /// The token.
        token: String,
    },
    /// The tokenizer cannot be converted to a vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] louver_hf_tokenizers::LoadError),
    /// A file of the model cannot be read.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// The requested wire format does not exist.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
}

impl LoadError {
    /// A file that cannot be used.
    pub(crate) fn file(path: &Path, problem: impl std::fmt::Display) -> LoadError {
        LoadError::Checkpoint(CheckpointError::new(path, problem))
    }

    /// An error of the host with its causes, without the backtraces that candle writes into it.
    pub(crate) fn host(error: &impl std::fmt::Display) -> LoadError {
        LoadError::Host(without_backtraces(&format!("{error:#}")))
    }
}

/// An error's text of the host on one line, without the backtraces that candle writes into it.
pub fn without_backtraces(text: &str) -> String {
    let is_frame = |line: &&str| {
        let line = line.trim_start();
        let number = line.split_once(": ").map(|(number, _)| number);
        line.starts_with("at ") || number.is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let lines = text.lines().enumerate().filter(|(n, line)| *n == 0 || !is_frame(line));
    lines.map(|(_, line)| line.trim()).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

#[cfg(test)]
#[test]
fn backtraces_are_removed_from_errors() {
    let text = "File `config.json` was not found\n   0: bt\n             at /src/error.rs:264:25\n  \
                12: {closure#0}<a::B>\n             at /c.rs:1:2\nsecond line: 5";
    assert_eq!(without_backtraces(text), "File `config.json` was not found second line: 5");
    assert_eq!(without_backtraces("one line: 3"), "one line: 3");
}
