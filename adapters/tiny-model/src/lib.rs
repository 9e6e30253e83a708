//! A generated Llama model with random weights: 1 layer of width 32, its own byte-level BPE,
//! ChatML with tools.
//!
//! mistral.rs loads it offline in milliseconds, so that the demo and the adapter's tests can run
//! the real host everywhere. The weights are random with a fixed seed, so the model's output is
//! noise. The logits are deliberately wider than the tokenizer, as in real models.
//!
//! [`ensure_around`] writes the same model for a given tokenizer, for measurements with the width
//! of real vocabularies.

mod around;
mod bpe;
mod weights;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

pub use around::ensure_around;

/// Width of the logits, larger than the tokenizer's; the additional ids have no tokens.
pub const LOGITS_WIDTH: usize = 832;
/// Context length in tokens.
pub const MAX_CONTEXT: usize = 8192;
/// The token that ends a turn.
pub const END_OF_TURN: &str = "<|im_end|>";
/// The other token that ends a generation.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// Added tokens, and whether they have the flag `special` (as in Qwen3, the tool and reasoning
/// markers do not).
const ADDED: [(&str, bool); 7] = [
    (END_OF_TEXT, true),
    ("<|im_start|>", true),
    (END_OF_TURN, true),
    ("<tool_call>", false),
    ("</tool_call>", false),
    ("<think>", false),
    ("</think>", false),
];

/// Hash of the model's files. It is part of the directory's name, so that a changed model is never
/// confused with an old one. A test checks it.
const FINGERPRINT: u64 = 0x5f82_7fe9_aa5c_5969;

/// Why the model could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TinyModelError {
    /// A file system error.
    #[error("cannot write the tiny model to {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The tensors could not be serialised.
    #[error("cannot serialise the tiny model: {0}")]
    Tensors(#[from] safetensors::SafeTensorError),
    /// A given tokenizer cannot be read.
    #[error("{}: {problem}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
}

/// The model's directory, and whether it was just written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TinyModel {
    /// Directory with config.json, tokenizer.json, tokenizer_config.json, generation_config.json
    /// and model.safetensors.
    pub dir: PathBuf,
    /// Whether this call wrote the model.
    pub fresh: bool,
}

/// The default parent directory of the model: `louver` in the platform's cache directory, or in the
/// temporary directory if there is none.
pub fn default_parent() -> PathBuf {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = if cfg!(target_os = "windows") {
        var("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        var("HOME").map(|home| home.join("Library/Caches"))
    } else {
        var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")))
    };
    cache.unwrap_or_else(std::env::temp_dir).join("louver")
}

/// Returns the model under `parent` and writes it if it is missing. Safe with concurrent processes:
/// the files appear atomically.
pub fn ensure(parent: &Path) -> Result<TinyModel, TinyModelError> {
    write(parent, &format!("tiny-llama-{FINGERPRINT:016x}"), files)
}

/// Returns the directory `name` under `parent` and writes it if it is missing.
pub(crate) fn write(
    parent: &Path,
    name: &str,
    files: impl FnOnce() -> Result<Files, TinyModelError>,
) -> Result<TinyModel, TinyModelError> {
    let dir = parent.join(name);
    if has_all_files(&dir) {
        return Ok(TinyModel { dir, fresh: false });
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| TinyModelError::Io { path, source }
    };
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    let draft = parent.join(format!(".tiny-llama-{}-{nanos}", std::process::id()));
    fs::create_dir_all(&draft).map_err(failed(&draft))?;
    for (name, bytes) in files()? {
        let path = draft.join(name);
        fs::write(&path, bytes).map_err(failed(&path))?;
    }
    if dir.exists() && !has_all_files(&dir) {
        fs::remove_dir_all(&dir).map_err(failed(&dir))?;
    }
    match fs::rename(&draft, &dir) {
        Ok(()) => Ok(TinyModel { dir, fresh: true }),
        Err(source) => {
            // Another process was faster; a remaining draft is harmless.
            let _ = fs::remove_dir_all(&draft);
            if has_all_files(&dir) {
                Ok(TinyModel { dir, fresh: false })
            } else {
                Err(failed(&dir)(source))
            }
        }
    }
}

/// Files of a model: name and content.
pub(crate) type Files = Vec<(&'static str, Vec<u8>)>;

const NAMES: [&str; 5] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "model.safetensors",
];

fn has_all_files(dir: &Path) -> bool {
    NAMES.iter().all(|name| dir.join(name).is_file())
}

/// The model's files.
fn files() -> Result<Files, TinyModelError> {
    let tokenizer = bpe::train(include_str!("corpus.txt"));
    let first_added = tokenizer.vocab.len();
    let id = |name: &str| {
        ADDED.iter().position(|(text, _)| *text == name).map(|at| (first_added + at) as u64)
    };
    let ends: Vec<u64> = [END_OF_TURN, END_OF_TEXT].into_iter().filter_map(id).collect();
    let tokenizer_config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_CONTEXT,
        "eos_token": END_OF_TURN,
        "pad_token": END_OF_TEXT,
        "clean_up_tokenization_spaces": false,
        "chat_template": TEMPLATE,
    });
    assemble(LOGITS_WIDTH, &ends, pretty(&tokenizer.to_json(&ADDED)), &tokenizer_config)
}

/// A chat template like that of the Qwen3 family.
pub(crate) const TEMPLATE: &str = include_str!("template.jinja");

fn pretty(value: &serde_json::Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// The files of a model of this width with these stop tokens; the first is the main one.
pub(crate) fn assemble(
    width: usize,
    ends: &[u64],
    tokenizer: Vec<u8>,
    tokenizer_config: &serde_json::Value,
) -> Result<Files, TinyModelError> {
    let config = json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": width,
        "hidden_size": weights::HIDDEN,
        "intermediate_size": weights::INTERMEDIATE,
        "num_hidden_layers": weights::LAYERS,
        "num_attention_heads": weights::HEADS,
        "num_key_value_heads": weights::KV_HEADS,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": MAX_CONTEXT,
        "tie_word_embeddings": false,
        "torch_dtype": "float32",
        "eos_token_id": ends.first(),
    });
    let generation_config = json!({ "eos_token_id": ends });
    let [a, b, c, d, e] = NAMES;
    Ok(vec![
        (a, pretty(&config)),
        (b, tokenizer),
        (c, pretty(tokenizer_config)),
        (d, pretty(&generation_config)),
        (e, weights::safetensors(width)?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_matches_the_files() {
        // FNV-1a, over names and contents.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for (name, bytes) in files().unwrap() {
            for byte in name.bytes().chain(bytes) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        assert_eq!(hash, FINGERPRINT, "the model changed: set FINGERPRINT to {hash:#018x}");
    }

    #[test]
    fn tokenizer_loads_and_round_trips() {
        let parent = std::env::temp_dir().join(format!("louver-tiny-model-{}", std::process::id()));
        let first = ensure(&parent).unwrap();
        let second = ensure(&parent).unwrap();
        assert!(first.fresh && !second.fresh);
        let tokenizer = tokenizers::Tokenizer::from_file(first.dir.join("tokenizer.json")).unwrap();
        fs::remove_dir_all(&parent).unwrap();
        let size = tokenizer.get_vocab_size(true);
        assert!((500..LOGITS_WIDTH).contains(&size), "{size}");
        for text in
            ["{\"name\": \"weather\"}", "Grüße, 世界 🌍\n\t x", "<tool_call>\n{}\n</tool_call>"]
        {
            let ids = tokenizer.encode(text, false).unwrap();
            assert_eq!(tokenizer.decode(ids.get_ids(), false).unwrap(), text);
        }
        let markers = tokenizer.encode("<|im_start|><tool_call></think>", false).unwrap();
        assert_eq!(markers.get_ids().len(), 3);
        let words = tokenizer.encode(" the weather", false).unwrap();
        assert!(words.get_ids().len() <= 4, "{:?}", words.get_tokens());
    }
}
