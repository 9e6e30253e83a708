//! The files of a checkpoint that say what its model writes.

use std::fmt;
use std::path::{Path, PathBuf};

use louver_formats::ModelHints;
use serde_json::Value;

use crate::chat_template::{ChatTemplate, DEFAULT_TEMPLATE, TOOL_TEMPLATE, TemplateError};
use crate::response_template::{ResponseTemplate, ResponseTemplateError};

/// Why a checkpoint cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file cannot be read.
    #[error("{} {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The chat template is not a template.
    #[error("{0}")]
    Template(TemplateError),
    /// The response template is not one.
    #[error("{0}")]
    ResponseTemplate(ResponseTemplateError),
}

/// What a checkpoint says about its output.
#[derive(Debug, Default)]
pub struct Checkpoint {
    /// The chat template, if it has one.
    pub template: Option<ChatTemplate>,
    /// The response template, if it has one.
    pub response_template: Option<ResponseTemplate>,
    /// The texts of its special and added tokens.
    pub tokens: Vec<String>,
    /// `model_type` of its configuration.
    pub model_type: Option<String>,
    /// `architectures` of its configuration.
    pub architectures: Vec<String>,
}

impl Checkpoint {
    /// Reads a folder, or the folder of a `tokenizer_config.json` or of another chat template
    /// (`*.jinja`). The files are those of transformers: `tokenizer_config.json`,
    /// `chat_template.jinja`, `chat_template.json`, `tokenizer.json`, `config.json`; each may be
    /// missing.
    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let is_template = path.extension().is_some_and(|extension| extension == "jinja");
        let template_file = (path.is_file() && is_template).then_some(path);
        let folder = match path.is_file() {
            true => path.parent().unwrap_or(Path::new(".")),
            false => path,
        };
        let config_path = match path.is_file() && !is_template {
            true => path.to_owned(),
            false => folder.join("tokenizer_config.json"),
        };
        let has_template = template_file.is_some() || folder.join("chat_template.jinja").exists();
        if !config_path.exists() && !has_template {
            let problem = "has neither a tokenizer_config.json nor a chat_template.jinja";
            return Err(file_error(path, &problem));
        }
        let tokenizer_config = read_json(&config_path)?;
        let model_config = read_json(&folder.join("config.json"))?;
        let sources = Sources::read(folder, template_file, &tokenizer_config)?;
        let special = ["bos_token", "eos_token", "unk_token"]
            .map(|key| token_text(&tokenizer_config[key]).map(str::to_owned));
        let template = (!sources.is_empty())
            .then(|| ChatTemplate::from_sources(sources.default(), sources.tool(), special))
            .transpose()
            .map_err(CheckpointError::Template)?;
        let response_template = match &tokenizer_config["response_template"] {
            Value::Null => None,
            value => Some(
                ResponseTemplate::from_value(value).map_err(CheckpointError::ResponseTemplate)?,
            ),
        };
        let strings = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(Checkpoint {
            template,
            response_template,
            tokens: tokens(&tokenizer_config, &read_json(&folder.join("tokenizer.json"))?),
            model_type: model_config["model_type"].as_str().map(str::to_owned),
            architectures: strings(&model_config["architectures"]),
        })
    }

    /// Passes the properties by which a catalog detects a family to a function.
    pub fn with_hints<T>(&self, use_hints: impl FnOnce(ModelHints<'_>) -> T) -> T {
        let tokens: Vec<&str> = self.tokens.iter().map(String::as_str).collect();
        let architectures: Vec<&str> = self.architectures.iter().map(String::as_str).collect();
        use_hints(ModelHints {
            chat_template: self.template.as_ref().map(ChatTemplate::source),
            tokens: &tokens,
            model_type: self.model_type.as_deref(),
            architectures: &architectures,
        })
    }
}

/// Chat templates by name.
struct Sources(Vec<(String, String)>);

impl Sources {
    /// The files win over the configuration, as in transformers.
    fn read(
        folder: &Path,
        template_file: Option<&Path>,
        config: &Value,
    ) -> Result<Sources, CheckpointError> {
        let mut sources = Sources(Vec::new());
        if let Some(file) = template_file {
            sources.0.push((DEFAULT_TEMPLATE.to_owned(), read(file)?));
            return Ok(sources);
        }
        let file = folder.join("chat_template.jinja");
        if file.exists() {
            sources.0.push((DEFAULT_TEMPLATE.to_owned(), read(&file)?));
        }
        let others =
            folder.join("additional_chat_templates").join(format!("{TOOL_TEMPLATE}.jinja"));
        if others.exists() {
            sources.0.push((TOOL_TEMPLATE.to_owned(), read(&others)?));
        }
        if sources.is_empty() {
            sources.add(&config["chat_template"]);
        }
        if sources.is_empty() {
            sources.add(&read_json(&folder.join("chat_template.json"))?["chat_template"]);
        }
        Ok(sources)
    }

    /// A template, or a list of templates with names.
    fn add(&mut self, value: &Value) {
        match value {
            Value::String(source) => self.0.push((DEFAULT_TEMPLATE.to_owned(), source.clone())),
            Value::Array(items) => self.0.extend(items.iter().filter_map(|item| {
                let (name, source) = (item["name"].as_str()?, item["template"].as_str()?);
                Some((name.to_owned(), source.to_owned()))
            })),
            _ => {}
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let (_, source) = self.0.iter().find(|(known, _)| known == name)?;
        Some(source)
    }

    fn default(&self) -> Option<&str> {
        self.get(DEFAULT_TEMPLATE)
    }

    fn tool(&self) -> Option<&str> {
        self.get(TOOL_TEMPLATE)
    }

    fn is_empty(&self) -> bool {
        self.default().or(self.tool()).is_none()
    }
}

/// The texts of special and added tokens, each once.
fn tokens(tokenizer_config: &Value, tokenizer: &Value) -> Vec<String> {
    let decoder = tokenizer_config["added_tokens_decoder"].as_object();
    let decoder = decoder.into_iter().flat_map(|map| map.values());
    let added = tokenizer["added_tokens"].as_array().into_iter().flatten();
    let special = tokenizer_config["additional_special_tokens"].as_array().into_iter().flatten();
    let named = ["bos_token", "eos_token", "unk_token", "pad_token"];
    let named = named.into_iter().map(|key| &tokenizer_config[key]);
    let mut out: Vec<String> = Vec::new();
    for token in decoder.chain(added).chain(special).chain(named).filter_map(token_text) {
        if !token.is_empty() && !out.iter().any(|known| known == token) {
            out.push(token.to_owned());
        }
    }
    out
}

/// The text of a token, which is written as a string or as an object.
fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

fn read(path: &Path) -> Result<String, CheckpointError> {
    std::fs::read_to_string(path).map_err(|error| file_error(path, &error))
}

/// The JSON of a file; null if there is none.
fn read_json(path: &Path) -> Result<Value, CheckpointError> {
    match path.exists() {
        true => serde_json::from_str(&read(path)?).map_err(|error| file_error(path, &error)),
        false => Ok(Value::Null),
    }
}

fn file_error(path: &Path, problem: &dyn fmt::Display) -> CheckpointError {
    CheckpointError::File { path: path.to_owned(), problem: problem.to_string() }
}
