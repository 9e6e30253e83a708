//! A checkpoint's `response_template`: how transformers turns the output of its model into a
//! message, as regions between delimiters (documented in transformers, "Response parsing").
//!
//! It says how output is taken apart, and a wire format how it is written. Where the first leaves
//! open what the second needs, the description accepts white space only, and a warning says so with
//! its place; the chat template then tells whether that is what the model writes.

mod calls;
mod captures;
mod delimiter;
mod lower;

use std::fmt;

use indexmap::IndexMap;
use louver::spec::json::push_token;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A `response_template`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseTemplate {
    /// The version of its form.
    #[serde(default)]
    version: Option<u32>,
    /// Members of every message.
    #[serde(default)]
    defaults: Map<String, Value>,
    /// What stands before the model's turn, or a list of such texts. Only prompts need it.
    #[serde(default)]
    start_anchor: Value,
    #[serde(default)]
    start_anchor_pattern: Option<String>,
    /// The regions, by the member of the message that they become.
    #[serde(default)]
    fields: IndexMap<String, Field>,
}

/// One region.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Field {
    open: Option<OneOrMany>,
    open_pattern: Option<String>,
    close: Option<OneOrMany>,
    close_pattern: Option<String>,
    repeats: bool,
    join: Option<String>,
    optional: Option<bool>,
    content: Option<String>,
    content_args: Map<String, Value>,
    transform: Value,
    transform_each: bool,
}

impl Field {
    /// The member that says where the region begins.
    fn open_key(&self) -> &'static str {
        if self.open_pattern.is_some() { "open_pattern" } else { "open" }
    }

    /// The member that says where it ends.
    fn close_key(&self) -> &'static str {
        if self.close_pattern.is_some() { "close_pattern" } else { "close" }
    }
}

/// A text or several.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Why a `response_template` cannot become a wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("response_template: {}{problem}", prefix(pointer))]
#[non_exhaustive]
pub struct ResponseTemplateError {
    /// JSON pointer into the template.
    pub pointer: String,
    /// What is wrong.
    pub problem: String,
}

/// What a `response_template` says and the wire format does not enforce, or what it leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseTemplateWarning {
    /// JSON pointer into the template.
    pub pointer: String,
    /// What is not enforced.
    pub what: String,
}

impl fmt::Display for ResponseTemplateWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.what)
    }
}

/// JSON pointer of a region.
fn field_pointer(name: &str) -> String {
    let mut pointer = "/fields".to_owned();
    push_token(&mut pointer, name);
    pointer
}

/// The pointer before a message; nothing, if it points to the whole template.
fn prefix(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!("{pointer}: ") }
}

/// Reads each member alone, so that an error has its pointer.
fn check_members<T: DeserializeOwned>(
    value: &Value,
    pointer: &str,
    skipped: &str,
) -> Result<(), ResponseTemplateError> {
    let members = value.as_object().ok_or_else(|| error(pointer, "is not an object"))?;
    for (key, value) in members.iter().filter(|(key, _)| *key != skipped) {
        let member: Map<String, Value> = [(key.clone(), value.clone())].into_iter().collect();
        serde_json::from_value::<T>(Value::Object(member)).map_err(|problem| {
            let mut pointer = pointer.to_owned();
            push_token(&mut pointer, key);
            error(pointer, problem.to_string())
        })?;
    }
    Ok(())
}

/// What a part of the template becomes.
type Lowered<T> = Result<T, ResponseTemplateError>;

fn error(pointer: impl Into<String>, problem: impl Into<String>) -> ResponseTemplateError {
    ResponseTemplateError { pointer: pointer.into(), problem: problem.into() }
}

impl ResponseTemplate {
    /// Reads the value of `response_template` in a `tokenizer_config.json`.
    pub fn from_value(value: &Value) -> Result<ResponseTemplate, ResponseTemplateError> {
        check_members::<ResponseTemplate>(value, "", "fields")?;
        let fields = value["fields"].as_object();
        let fields = fields.ok_or_else(|| error("/fields", "is missing, or no object"))?;
        for (name, field) in fields {
            check_members::<Field>(field, &field_pointer(name), "")?;
        }
        let template: ResponseTemplate = serde_json::from_value(value.clone())
            .map_err(|problem| error("", problem.to_string()))?;
        if template.version.is_some_and(|version| version > 1) {
            return Err(error("/version", "only version 1 is known"));
        }
        if template.start_anchor.is_null() == template.start_anchor_pattern.is_none() {
            let problem = "exactly one of start_anchor and start_anchor_pattern must be there";
            return Err(error("/start_anchor", problem));
        }
        let mut implicit = None;
        for (name, field) in &template.fields {
            let pointer = field_pointer(name);
            if field.open.is_some() && field.open_pattern.is_some() {
                return Err(error(pointer, "has both open and open_pattern"));
            }
            if field.close.is_some() && field.close_pattern.is_some() {
                return Err(error(pointer, "has both close and close_pattern"));
            }
            let is_implicit = field.open.is_none() && field.open_pattern.is_none();
            if is_implicit && let Some(other) = implicit.replace(name) {
                return Err(error(pointer, format!("has no open, and neither has {other}")));
            }
        }
        Ok(template)
    }
}
