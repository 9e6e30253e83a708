//! Tokenizers by name, from files below the folder `LOUVER_TOKENIZERS`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use toktrie::TokEnv;
use toktrie_hf_tokenizers::ByteTokenizer;

/// The tokens that Phi 3.5 adds to Llama 2's vocabulary, from this id on.
const ADDED: (u32, [&str; 11]) = (
    32_000,
    [
        "<|endoftext|>",
        "<|assistant|>",
        "<|placeholder1|>",
        "<|placeholder2|>",
        "<|placeholder3|>",
        "<|placeholder4|>",
        "<|system|>",
        "<|end|>",
        "<|placeholder5|>",
        "<|placeholder6|>",
        "<|user|>",
    ],
);
/// Ids of Phi 3.5's environment; the tests name ids beyond its tokens.
const PHI_IDS: usize = 35_000;

/// The environment of a tokenizer: of Phi 3.5 (from Llama 2's file) or of Llama 3.1.
pub fn tok_env_from_name(name: &str) -> Result<TokEnv> {
    let (folder, is_phi) = match name {
        name if name.contains("Phi-3.5") => ("llama2", true),
        name if name.contains("Llama-3.1") => ("llama3_1", false),
        _ => bail!("no tokenizer is known for {name}"),
    };
    let root = std::env::var_os("LOUVER_TOKENIZERS").context("LOUVER_TOKENIZERS is not set")?;
    let path = PathBuf::from(root).join(folder).join("tokenizer.json");
    let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
    if !is_phi {
        return ByteTokenizer::from_json_bytes(&text)?.into_tok_env(None);
    }
    let mut file: Value = serde_json::from_slice(&text)?;
    let added = file["added_tokens"].as_array_mut().context("no `added_tokens`")?;
    let (first, names) = ADDED;
    added.retain(|token| token["id"].as_u64().is_some_and(|id| id < first.into()));
    for (id, name) in (first..).zip(names) {
        added.push(json!({
            "id": id, "content": name, "special": true, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": false,
        }));
    }
    let mut tokenizer = ByteTokenizer::from_json_bytes(&serde_json::to_vec(&file)?)?;
    tokenizer.set_eos_token(first);
    tokenizer.into_tok_env(Some(PHI_IDS))
}
