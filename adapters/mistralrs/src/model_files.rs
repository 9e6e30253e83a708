//! Model files: tokenizer, chat template and stop tokens, read from the files that the host loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use louver_host::{ChatTemplate, ResponseTemplate, TemplateError};
use serde_json::Value;
use tokenizers::Tokenizer;

use crate::error::LoadError;
use crate::gguf;
use crate::model::{ModelKind, ModelParts};

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

/// Reads a model's files by its load name: a directory, also one with a GGUF file, or a model in
/// the Hugging Face cache. Nothing is downloaded.
pub(crate) fn read(id: &str, max_context: Option<usize>) -> Result<ModelParts, LoadError> {
    let find = file_finder(id);
    if find("tokenizer.json").is_none()
        && let Some(file) = only_gguf(Path::new(id))
    {
        return gguf::read(&file, max_context);
    }
    let missing = |name: &str| LoadError::NoFile { model: id.to_owned(), file: name.to_owned() };
    let path = find("tokenizer.json").ok_or_else(|| missing("tokenizer.json"))?;
    let tokenizer = Tokenizer::from_file(&path)
        .map_err(|error| LoadError::Host(format!("{}: {error}", path.display())))?;
    let json = |name: &str| -> Value {
        let text = find(name).and_then(|path| std::fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null)
    };
    let config = json("tokenizer_config.json");
    let template = template(&find, &config);
    let source = template.as_ref().map_or("", |template| template.source());
    let mut ends: Vec<u32> = Vec::new();
    for config_file in [&json("generation_config.json"), &json("config.json")] {
        let value = &config_file["eos_token_id"];
        let ids = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        ends.extend(ids.iter().filter_map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())));
    }
    let eos = token_text(&config["eos_token"]);
    ends.extend(eos.and_then(|name| tokenizer.token_to_id(&name)));
    ends.extend(end_tokens(source).filter_map(|name| tokenizer.token_to_id(name)));
    ends.sort_unstable();
    ends.dedup();
    let config_context = json("config.json")["max_position_embeddings"]
        .as_u64()
        .and_then(|n| usize::try_from(n).ok());
    let max_context = max_context.or(config_context).unwrap_or(DEFAULT_CONTEXT);
    let mut kind = parse_kind(&json("config.json"));
    // One that cannot be read is left out: the chat template says what the model writes, too.
    kind.response_template = ResponseTemplate::from_value(&config["response_template"]).ok();
    Ok(ModelParts { tokenizer: Arc::new(tokenizer), template, max_context, ends, kind })
}

/// The model type of a model's configuration; empty if there is none (GGUF).
pub(crate) fn kind(id: &str) -> ModelKind {
    let text = file_finder(id)("config.json").and_then(|path| std::fs::read_to_string(path).ok());
    parse_kind(&text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null))
}

fn parse_kind(config: &Value) -> ModelKind {
    let names = config["architectures"].as_array().map(Vec::as_slice).unwrap_or_default();
    ModelKind {
        model_type: config["model_type"].as_str().map(str::to_owned),
        architectures: names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        response_template: None,
    }
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

/// Reads `chat_template.jinja`, `chat_template.json`, or the tokenizer configuration's member, in
/// the host's order.
fn template(
    find: &impl Fn(&str) -> Option<PathBuf>,
    config: &Value,
) -> Result<ChatTemplate, TemplateError> {
    let tokens = ["bos_token", "eos_token", "unk_token"].map(|name| token_text(&config[name]));
    if let Some(source) =
        find("chat_template.jinja").and_then(|path| std::fs::read_to_string(path).ok())
    {
        return ChatTemplate::new(&source, tokens);
    }
    let template_file =
        find("chat_template.json").and_then(|path| std::fs::read_to_string(path).ok());
    let template_file: Option<Value> =
        template_file.and_then(|text| serde_json::from_str(&text).ok());
    let value =
        template_file.as_ref().map_or(&config["chat_template"], |value| &value["chat_template"]);
    match value {
        Value::String(source) => ChatTemplate::new(source, tokens),
        Value::Array(list) => {
            let named = |wanted: &str| {
                let entry = list.iter().find(|entry| entry["name"] == wanted)?;
                entry["template"].as_str()
            };
            ChatTemplate::from_sources(named("default"), named("tool_use"), tokens)
        }
        _ => Err(TemplateError::Missing),
    }
}

fn token_text(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value["content"].as_str()).map(str::to_owned)
}
