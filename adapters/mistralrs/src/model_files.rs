//! Model files: tokenizer, chat template and stop tokens, read from the files that the host loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use louver_host::{Checkpoint, read_json};
use serde_json::Value;
use tokenizers::Tokenizer;

use crate::error::LoadError;
use crate::gguf;
use crate::model_parts::ModelParts;

/// Reads a model's files by its load name: a directory, also one with a GGUF file, or a model in
/// the Hugging Face cache. Nothing is downloaded.
pub(crate) fn read(id: &str) -> Result<ModelParts, LoadError> {
    let find = file_finder(id);
    if find("tokenizer.json").is_none()
        && let Some(file) = only_gguf(Path::new(id))
    {
        return gguf::read(&file);
    }
    let missing = |name: &str| LoadError::NoFile { model: id.to_owned(), file: name.to_owned() };
    let path = find("tokenizer.json").ok_or_else(|| missing("tokenizer.json"))?;
    let tokenizer = Tokenizer::from_file(&path).map_err(|error| LoadError::file(&path, error))?;
    let json = |name: &str| read_json::<Value>(find(name)).map_err(LoadError::Checkpoint);
    let config = json("config.json")?;
    let checkpoint = Checkpoint::from_files(&find).map_err(LoadError::Checkpoint)?;
    let mut ends: Vec<u32> = Vec::new();
    for config_file in [&json("generation_config.json")?, &config] {
        let value = &config_file["eos_token_id"];
        let ids = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        ends.extend(ids.iter().filter_map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())));
    }
    let max_context = config["max_position_embeddings"].as_u64();
    let max_context = max_context.and_then(|n| usize::try_from(n).ok());
    Ok(ModelParts { tokenizer: Arc::new(tokenizer), checkpoint, max_context, ends })
}

/// What the files of a model say about its output; nothing if there are none (GGUF).
pub(crate) fn checkpoint(id: &str) -> Result<Checkpoint, LoadError> {
    Checkpoint::from_files(&file_finder(id)).map_err(LoadError::Checkpoint)
}

/// The GGUF file of a directory that has one.
fn only_gguf(directory: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files = paths.filter(|path| path.extension().is_some_and(|name| name == "gguf"));
    files.next().filter(|_| files.next().is_none())
}

fn file_finder(id: &str) -> impl Fn(&str) -> Option<PathBuf> {
    let folder = Path::new(id).is_dir().then(|| PathBuf::from(id));
    let repo = hf_hub::Cache::from_env().model(id.to_owned());
    move |name| match &folder {
        Some(folder) => Some(folder.join(name)).filter(|path| path.is_file()),
        None => repo.get(name),
    }
}
