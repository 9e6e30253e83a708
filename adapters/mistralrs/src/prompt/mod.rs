//! The model's own chat template, rendered here rather than by the host: tools in their order and not escaped for HTML,
//! and the prompt's tokens known exactly.

mod clock;
mod json;
mod length;
mod tools;

use minijinja::value::Value;
use minijinja::{Environment, ErrorKind, context};
use mistralrs_core::{ChatTemplate as HostTemplate, MessageContent};

pub(crate) use length::longest_text;
pub use tools::TemplateInput;

/// The chat template fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The model has none.
    #[error("the model has no chat template")]
    Missing,
    /// Its source is wrong, or it refuses the messages.
    #[error("chat template: {0}")]
    Render(String),
}

/// A model's chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    env: Environment<'static>,
    default: Option<String>,
    tool_use: Option<String>,
    tokens: [Option<String>; 3],
}

/// What a prompt is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct PromptParts<'a> {
    /// The conversation in OpenAI's JSON form.
    pub messages: &'a [serde_json::Value],
    /// The tools in OpenAI's JSON form.
    pub tools: &'a [serde_json::Value],
    /// The model's own tools, by the names that templates know.
    pub builtin_tools: &'a [String],
    /// The template's `enable_thinking`; undefined if none.
    pub enable_thinking: Option<bool>,
}

const DEFAULT: &str = "default";
const TOOL_USE: &str = "tool_use";

impl ChatTemplate {
    /// A template by its source. `tokens` are the texts of the begin-of-sequence, end-of-sequence and unknown tokens.
    pub fn new(source: &str, tokens: [Option<String>; 3]) -> Result<ChatTemplate, TemplateError> {
        ChatTemplate::from_sources(Some(source), None, tokens)
    }

    /// The host's template.
    pub(crate) fn from_host(host: &HostTemplate) -> Result<ChatTemplate, TemplateError> {
        let tokens = [host.bos_tok(), host.eos_tok(), host.unk_tok()];
        let value = &host.chat_template.as_ref().ok_or(TemplateError::Missing)?.0;
        if let Some(source) = value.as_ref().left() {
            return ChatTemplate::new(source, tokens);
        }
        let named = |wanted: &str| {
            let list = value.as_ref().right()?;
            let by_name = list.iter().find(|t| t.get("name").is_some_and(|name| name == wanted));
            by_name
                .and_then(|t| t.get("template"))
                .or_else(|| list.iter().find_map(|t| t.get(wanted)))
        };
        let (default, tool_use) = (named(DEFAULT), named(TOOL_USE));
        ChatTemplate::from_sources(
            default.map(String::as_str),
            tool_use.map(String::as_str),
            tokens,
        )
    }

    /// A template by its sources: the usual one, and the one for tools. One of them must be there.
    pub(crate) fn from_sources(
        default: Option<&str>,
        tool_use: Option<&str>,
        tokens: [Option<String>; 3],
    ) -> Result<ChatTemplate, TemplateError> {
        if default.or(tool_use).is_none() {
            return Err(TemplateError::Missing);
        }
        let mut env = Environment::new();
        // As transformers sets up Jinja for chat templates.
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_filter("tojson", json::tojson);
        env.add_function(
            "raise_exception",
            |message: String| -> Result<String, minijinja::Error> {
                Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        env.add_function("strftime_now", |format: String| clock::format_now(&format));
        for (name, source) in [(DEFAULT, default), (TOOL_USE, tool_use)] {
            if let Some(source) = source {
                let source =
                    source.replace("{% generation %}", "").replace("{% endgeneration %}", "");
                env.add_template_owned(name, source).map_err(render_error)?;
            }
        }
        let owned = |source: Option<&str>| source.map(str::to_owned);
        Ok(ChatTemplate { env, default: owned(default), tool_use: owned(tool_use), tokens })
    }

    /// The template's source: the one for tools, where there are two.
    pub fn source(&self) -> &str {
        self.tool_use.as_ref().or(self.default.as_ref()).map_or("", String::as_str)
    }

    /// The prompt's text, up to where the model's turn begins.
    pub fn render(&self, parts: &PromptParts<'_>) -> Result<String, TemplateError> {
        let no_tools = parts.tools.is_empty() && parts.builtin_tools.is_empty();
        let for_tools = if no_tools { self.default.is_none() } else { self.tool_use.is_some() };
        let name = if for_tools { TOOL_USE } else { DEFAULT };
        let list = |items: &[serde_json::Value]| -> Value {
            items.iter().map(json::to_template).collect()
        };
        let [bos, eos, unk] = &self.tokens;
        let mut values = context! {
            messages => list(parts.messages),
            add_generation_prompt => true,
            bos_token => bos.as_deref().unwrap_or_default(),
            eos_token => eos.as_deref().unwrap_or_default(),
            unk_token => unk.as_deref().unwrap_or_default(),
        };
        if !parts.tools.is_empty() {
            let tools = list(parts.tools);
            values = context! { tools => tools, ..values };
        }
        if !parts.builtin_tools.is_empty() {
            values = context! { builtin_tools => parts.builtin_tools, ..values };
        }
        if let Some(enable_thinking) = parts.enable_thinking {
            values = context! { enable_thinking => enable_thinking, ..values };
        }
        self.env
            .get_template(name)
            .and_then(|template| template.render(values))
            .map_err(render_error)
    }
}

fn render_error(error: minijinja::Error) -> TemplateError {
    // The alternate form has the causes.
    TemplateError::Render(format!("{error:#}"))
}

/// A message as the SDK's request holds it -> OpenAI's JSON form. What `RequestBuilder::add_message_with_tool_call` puts
/// under `function` becomes `tool_calls`, its arguments an object.
pub(crate) fn message<'a>(
    members: impl IntoIterator<Item = (&'a String, &'a MessageContent)>,
) -> serde_json::Value {
    let mut out = serde_json::Map::new();
    for (key, content) in members {
        if let Some(text) = content.as_ref().left() {
            out.insert(key.clone(), text.as_str().into());
        } else if let Some(parts) = content.as_ref().right() {
            let objects = parts.iter().map(|part| {
                let mut object: serde_json::Map<_, _> =
                    part.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                if key == "function" || key == "tool_calls" {
                    parse_arguments(&mut object);
                }
                serde_json::Value::Object(object)
            });
            let key = if key == "function" { "tool_calls" } else { key };
            out.insert(key.to_owned(), objects.collect());
        }
    }
    serde_json::Value::Object(out)
}

/// A message in OpenAI's JSON form as templates expect it: text parts joined, arguments of calls as objects.
pub(crate) fn openai_message(message: &serde_json::Value) -> serde_json::Value {
    let mut message = message.clone();
    if let Some(calls) = message.get_mut("tool_calls").and_then(serde_json::Value::as_array_mut) {
        calls.iter_mut().filter_map(serde_json::Value::as_object_mut).for_each(parse_arguments);
    }
    let parts = message.get("content").and_then(serde_json::Value::as_array);
    let texts: Option<Vec<&str>> =
        parts.map(|parts| parts.iter().filter_map(|part| part["text"].as_str()).collect());
    if let Some(texts) = texts {
        message["content"] = texts.concat().into();
    }
    message
}

fn parse_arguments(call: &mut serde_json::Map<String, serde_json::Value>) {
    if let Some(slot) = call.get_mut("function").and_then(|f| f.get_mut("arguments"))
        && let Some(text) = slot.as_str()
        && let Ok(parsed) = serde_json::from_str::<serde_json::Value>(text)
        && parsed.is_object()
    {
        *slot = parsed;
    }
}

#[cfg(test)]
mod tests;
