//! The files of a checkpoint that say what its model writes.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexSet;
use louver::with_methods;
use louver_formats::ModelHints;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::chat_template::{ChatTemplate, TemplateError, TemplateSources};
use crate::response_template::{ResponseTemplate, ResponseTemplateError};

/// Why a checkpoint cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", path.display())]
#[non_exhaustive]
pub struct CheckpointError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

impl CheckpointError {
    /// What is wrong with a file or folder.
    pub fn new(path: impl Into<PathBuf>, problem: impl fmt::Display) -> CheckpointError {
        CheckpointError { path: path.into(), problem: problem.to_string() }
    }
}

/// What a checkpoint says about its output.
#[derive(Debug)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The chat template, or why there is none.
    pub template: Result<ChatTemplate, TemplateError>,
    /// The response template, if it has one, or why it cannot be read.
    pub response_template: Option<Result<ResponseTemplate, ResponseTemplateError>>,
    /// The texts of its special and added tokens.
    pub tokens: Vec<String>,
    /// The texts of its special tokens. Added tokens that are not special are text to a template:
    /// some tokenizers have added tokens for line breaks and HTML tags.
    pub special_tokens: Vec<String>,
    /// The texts of the begin-of-sequence, end-of-sequence and unknown tokens, which chat templates
    /// know.
    pub template_tokens: [Option<String>; 3],
    /// `model_type` of its configuration.
    pub model_type: Option<String>,
    /// `architectures` of its configuration.
    pub architectures: Vec<String>,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Checkpoint {
            template: Err(TemplateError::Missing),
            response_template: None,
            tokens: Vec::new(),
            special_tokens: Vec::new(),
            template_tokens: Default::default(),
            model_type: None,
            architectures: Vec::new(),
        }
    }
}

with_methods!(Checkpoint {
    with_template: template = Result<ChatTemplate, TemplateError>,
    with_response_template: response_template =
        impl Into<Option<Result<ResponseTemplate, ResponseTemplateError>>>,
    with_tokens: tokens = Vec<String>,
    with_special_tokens: special_tokens = Vec<String>,
    with_template_tokens: template_tokens = [Option<String>; 3],
    with_model_type: model_type = impl Into<Option<String>>,
    with_architectures: architectures = Vec<String>,
});

impl Checkpoint {
    /// Reads a folder, or the folder of a `tokenizer_config.json` or of another chat template
    /// (`*.jinja`); see [`Checkpoint::from_files`].
    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        if !path.exists() {
            return Err(CheckpointError::new(path, "there is no such file or folder"));
        }
        let is_template = path.extension().is_some_and(|extension| extension == "jinja");
        let (folder, given) = match path.is_file() {
            true => (path.parent().unwrap_or(Path::new(".")), Some(path)),
            false => (path, None),
        };
        let replaced = if is_template { "chat_template.jinja" } else { "tokenizer_config.json" };
        let find = |name: &str| match given {
            Some(file) if name == replaced => Some(file.to_owned()),
            _ => Some(folder.join(name)).filter(|path| path.is_file()),
        };
        if find("tokenizer_config.json").or(find("chat_template.jinja")).is_none() {
            let problem = "has neither a tokenizer_config.json nor a chat_template.jinja";
            return Err(CheckpointError::new(path, problem));
        }
        if path.is_file() && !is_template {
            check_tokenizer_config(path)?;
        }
        Checkpoint::from_files(&find)
    }

    /// Reads the files of transformers, which `find` finds by name: `tokenizer_config.json`,
    /// `chat_template.jinja`, `additional_chat_templates/tool_use.jinja`, `chat_template.json`,
    /// `config.json`, and `tokenizer.json` if the
    /// first has no tokens. Each may be missing.
    pub fn from_files(
        find: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Result<Checkpoint, CheckpointError> {
        let tokenizer_config: Value = read_json(find("tokenizer_config.json"))?;
        let model_config: Value = read_json(find("config.json"))?;
        let (sources, file) = template_sources(find, &tokenizer_config)?;
        let template_tokens = ["bos_token", "eos_token", "unk_token"]
            .map(|key| token_text(&tokenizer_config[key]).map(str::to_owned));
        let response_template = match &tokenizer_config["response_template"] {
            Value::Null => None,
            value => Some(ResponseTemplate::from_value(value)),
        };
        let tokenizer = match &tokenizer_config["added_tokens_decoder"] {
            Value::Null => read_json(find("tokenizer.json"))?,
            _ => TokenizerTokens::default(),
        };
        let strings = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (tokens, special_tokens) = tokens(&tokenizer_config, &tokenizer.added_tokens);
        Ok(Checkpoint {
            template: ChatTemplate::from_sources(sources, template_tokens.clone())
                .map_err(|error| error.in_file(file)),
            template_tokens,
            response_template,
            tokens,
            special_tokens,
            model_type: model_config["model_type"].as_str().map(str::to_owned),
            architectures: strings(&model_config["architectures"]),
        })
    }

    /// Passes the properties by which a catalog detects a family to a function.
    pub fn with_hints<T>(&self, use_hints: impl FnOnce(ModelHints<'_>) -> T) -> T {
        let tokens: Vec<&str> = self.tokens.iter().map(String::as_str).collect();
        let architectures: Vec<&str> = self.architectures.iter().map(String::as_str).collect();
        use_hints(
            ModelHints::default()
                .with_chat_template(self.template.as_ref().ok().map(ChatTemplate::source))
                .with_tokens(&tokens)
                .with_model_type(self.model_type.as_deref())
                .with_architectures(&architectures),
        )
    }
}

/// Members of which a file has some if it is a `tokenizer_config.json`.
const TOKENIZER_MEMBERS: [&str; 6] = [
    "chat_template",
    "added_tokens_decoder",
    "tokenizer_class",
    "bos_token",
    "eos_token",
    "response_template",
];

/// Refuses a file of JSON that is another than a `tokenizer_config.json`.
fn check_tokenizer_config(path: &Path) -> Result<(), CheckpointError> {
    let config: Value = read_json(Some(path.to_owned()))?;
    let is_config = TOKENIZER_MEMBERS.iter().any(|member| config.get(member).is_some());
    let is_named = path.file_name().is_some_and(|name| name == "tokenizer_config.json");
    if is_config || is_named {
        return Ok(());
    }
    let members = TOKENIZER_MEMBERS.join(", ");
    let problem = format!("is no tokenizer_config.json: it has none of the members {members}");
    Err(CheckpointError::new(path, problem))
}

/// The chat templates, and a file of theirs. Files win over the configuration, as in transformers.
fn template_sources(
    find: &dyn Fn(&str) -> Option<PathBuf>,
    config: &Value,
) -> Result<(TemplateSources, Option<PathBuf>), CheckpointError> {
    let [default, tool_use] =
        ["chat_template.jinja", "additional_chat_templates/tool_use.jinja"].map(find);
    let source = |file: &Option<PathBuf>| file.as_deref().map(read).transpose();
    let files = TemplateSources { default: source(&default)?, tool_use: source(&tool_use)? };
    if !files.is_empty() {
        return Ok((files, default.or(tool_use)));
    }
    let path = find("chat_template.json");
    let file: Value = read_json(path.clone())?;
    let sources = TemplateSources::from_value(&file["chat_template"]);
    Ok(match sources.is_empty() {
        true => {
            let sources = TemplateSources::from_value(&config["chat_template"]);
            (sources, find("tokenizer_config.json"))
        }
        false => (sources, path),
    })
}

/// The part of a `tokenizer.json` with its tokens, which is a small part.
#[derive(Default, Deserialize)]
struct TokenizerTokens {
    #[serde(default)]
    added_tokens: Vec<Value>,
}

/// The texts of special and added tokens, and those of special tokens, each once.
fn tokens(tokenizer_config: &Value, added: &[Value]) -> (Vec<String>, Vec<String>) {
    let decoder = tokenizer_config["added_tokens_decoder"].as_object();
    let decoder = decoder.into_iter().flat_map(|map| map.values()).chain(added);
    let is_special = |token: &Value| token["special"] != Value::Bool(false);
    let decoder = decoder.map(|token| (token, is_special(token)));
    let special = tokenizer_config["additional_special_tokens"].as_array().into_iter().flatten();
    let named = ["bos_token", "eos_token", "unk_token", "pad_token"];
    let named = named.into_iter().map(|key| &tokenizer_config[key]);
    let mut out = (IndexSet::new(), IndexSet::new());
    let add = |list: &mut IndexSet<String>, text: &str| {
        if !text.is_empty() {
            list.insert(text.to_owned());
        }
    };
    for (token, is_special) in decoder.chain(special.chain(named).map(|token| (token, true))) {
        let Some(text) = token_text(token) else { continue };
        add(&mut out.0, text);
        if is_special {
            add(&mut out.1, text);
        }
    }
    (out.0.into_iter().collect(), out.1.into_iter().collect())
}

/// The text of a token, which is written as a string or as an object.
fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

fn read(path: &Path) -> Result<String, CheckpointError> {
    std::fs::read_to_string(path).map_err(|error| CheckpointError::new(path, error))
}

/// The JSON of a file; that of null, or nothing, if there is none.
pub fn read_json<T: Default + DeserializeOwned>(
    path: Option<PathBuf>,
) -> Result<T, CheckpointError> {
    match path {
        Some(path) => {
            // As bytes: text that is skipped, most of a tokenizer, need not be validated.
            let bytes = std::fs::read(&path).map_err(|error| CheckpointError::new(&path, error))?;
            serde_json::from_slice(&bytes).map_err(|error| CheckpointError::new(&path, error))
        }
        None => Ok(T::default()),
    }
}
