//! Stop tokens from the files next to a `tokenizer.json`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tokenizers::Tokenizer;

/// Well-known stop tokens, tried in this order if none is configured.
const COMMON_STOP_TOKENS: &[&str] = &[
    "<|im_end|>",
    "<|eot_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<eos>",
    "<|end_of_sentence|>",
];

/// A stop token in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StopToken {
    Id(u32),
    Name(String),
}

/// Reads the end-of-sequence tokens of `generation_config.json`, `config.json` and
/// `tokenizer_config.json` in a folder. Files that are missing or not JSON are ignored.
pub(crate) fn read_from_folder(folder: &Path) -> Vec<StopToken> {
    let mut out = BTreeSet::new();
    for name in ["generation_config.json", "config.json", "tokenizer_config.json"] {
        let Ok(text) = std::fs::read_to_string(folder.join(name)) else { continue };
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        collect(&value["eos_token_id"], &mut out);
        collect(&value["eos_token"], &mut out);
    }
    out.into_iter().collect()
}

fn collect(value: &Value, out: &mut BTreeSet<StopToken>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        Value::Object(token) => collect(token.get("content").unwrap_or(&Value::Null), out),
        Value::String(name) if !name.is_empty() => {
            out.insert(StopToken::Name(name.clone()));
        }
        Value::Number(id) => {
            out.extend(id.as_u64().and_then(|id| u32::try_from(id).ok()).map(StopToken::Id));
        }
        _ => {}
    }
}

/// The first well-known stop token that the tokenizer has.
pub(crate) fn find_common(tokenizer: &Tokenizer) -> Option<(u32, &'static str)> {
    COMMON_STOP_TOKENS.iter().find_map(|name| Some((tokenizer.token_to_id(name)?, *name)))
}
