//! The tiny model for a given tokenizer, with the width of its vocabulary.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::{Files, MAX_CONTEXT, TEMPLATE, TinyModel, TinyModelError, assemble, write};

/// Maximum token id: beyond it the weights would take gigabytes.
const MAX_IDS: u64 = 4 << 20;

/// Returns a model for a `tokenizer.json` under `parent`, and writes it if it is missing. Its stop
/// token is the `eos_token` of the `tokenizer_config.json` next to the tokenizer. The chat template
/// is the tiny model's own, so calls have the Qwen3 family's format. Cost: reading the file, and
/// about 500 bytes of weights per token when writing.
pub fn ensure_around(parent: &Path, tokenizer: &Path) -> Result<TinyModel, TinyModelError> {
    let bytes = read(tokenizer)?;
    let config_path = tokenizer.with_file_name("tokenizer_config.json");
    let config = read(&config_path)?;
    // FNV-1a over both files.
    let hash = bytes.iter().chain(&config).fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    write(parent, &format!("tiny-llama-around-{hash:016x}"), || {
        let ids = ids(&parse(tokenizer, &bytes)?);
        let config = parse(&config_path, &config)?;
        let problem = |path: &Path, problem: &str| TinyModelError::Tokenizer {
            path: path.to_owned(),
            problem: problem.to_owned(),
        };
        let end = config
            .get("eos_token")
            .and_then(|end| end.as_str().or_else(|| end.get("content")?.as_str()));
        let end = end.ok_or_else(|| problem(&config_path, "no `eos_token`"))?;
        let most =
            ids.iter().map(|(_, id)| *id).max().ok_or_else(|| problem(tokenizer, "no tokens"))?;
        let width = Some(most).filter(|id| *id < MAX_IDS).map(|id| id + 1);
        let width = width.ok_or_else(|| problem(tokenizer, "ids are too large"))?;
        let id = ids.iter().find(|(text, _)| text == end).map(|(_, id)| *id);
        let id = id.ok_or_else(|| problem(tokenizer, "the `eos_token` is not a token"))?;
        files(width, id, end, bytes)
    })
}

fn files(
    width: u64,
    end: u64,
    end_text: &str,
    tokenizer: Vec<u8>,
) -> Result<Files, TinyModelError> {
    let config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_CONTEXT,
        "eos_token": end_text,
        "clean_up_tokenization_spaces": false,
        "chat_template": TEMPLATE,
    });
    assemble(width as usize, &[end], tokenizer, &config)
}

fn read(path: &Path) -> Result<Vec<u8>, TinyModelError> {
    fs::read(path).map_err(|source| TinyModelError::Tokenizer {
        path: path.to_owned(),
        problem: source.to_string(),
    })
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Value, TinyModelError> {
    serde_json::from_slice(bytes).map_err(|source| TinyModelError::Tokenizer {
        path: path.to_owned(),
        problem: source.to_string(),
    })
}

/// All tokens with their ids.
fn ids(tokenizer: &Value) -> Vec<(String, u64)> {
    let ordinary =
        tokenizer.pointer("/model/vocab").and_then(Value::as_object).into_iter().flatten();
    let ordinary = ordinary.filter_map(|(text, id)| Some((text.clone(), id.as_u64()?)));
    let added = tokenizer.get("added_tokens").and_then(Value::as_array).into_iter().flatten();
    let added = added
        .filter_map(|token| Some((token["content"].as_str()?.to_owned(), token["id"].as_u64()?)));
    ordinary.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_written_for_given_tokenizers() {
        let parent =
            std::env::temp_dir().join(format!("louver-tiny-around-{}", std::process::id()));
        let own = crate::ensure(&parent).unwrap();
        let first = ensure_around(&parent, &own.dir.join("tokenizer.json")).unwrap();
        let second = ensure_around(&parent, &own.dir.join("tokenizer.json")).unwrap();
        assert!(first.fresh && !second.fresh && first.dir == second.dir && first.dir != own.dir);
        let config: Value =
            serde_json::from_slice(&fs::read(first.dir.join("config.json")).unwrap()).unwrap();
        let width = config["vocab_size"].as_u64().unwrap() as usize;
        assert!((500..crate::LOGITS_WIDTH).contains(&width), "{width}");
        let tokenizer = tokenizers::Tokenizer::from_file(first.dir.join("tokenizer.json")).unwrap();
        assert_eq!(
            tokenizer.token_to_id(crate::END_OF_TURN).map(u64::from),
            config["eos_token_id"].as_u64()
        );

        let faulty = parent.join("tokenizer.json");
        fs::write(parent.join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
        for (text, problem) in [
            ("{", "EOF"),
            ("{}", "no tokens"),
            (r#"{"model": {"vocab": {"a": 0}}}"#, "is not a token"),
            (r#"{"model": {"vocab": {"a": 999999999999}}}"#, "too large"),
        ] {
            fs::write(&faulty, text).unwrap();
            let error = ensure_around(&parent, &faulty).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        fs::remove_dir_all(&parent).unwrap();
        assert!(ensure_around(&parent, &faulty).is_err());
    }
}
