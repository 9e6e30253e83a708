//! Prompt rendering with the model's own chat template, instead of the host's rendering: tools keep
//! their order and are not HTML-escaped, and the prompt's tokens are known exactly.

mod context_limit;
mod json;
mod strftime;
mod tools;

use minijinja::value::Value;
use minijinja::{Environment, ErrorKind, context};
use mistralrs_core::{ChatTemplate as HostTemplate, MessageContent};

pub(crate) use context_limit::max_text_bytes;
pub use tools::TemplateInput;

/// Why a prompt cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The model has no chat template.
    #[error("the model has no chat template")]
    Missing,
    /// The template is invalid, or it rejects the messages.
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

/// The inputs of a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub struct PromptParts<'a> {
    /// The conversation in OpenAI's JSON form.
    pub messages: &'a [serde_json::Value],
    /// The tools in OpenAI's JSON form.
    pub tools: &'a [serde_json::Value],
    /// The model's built-in tools, by the names that templates use.
    pub builtin_tools: &'a [String],
    /// The template's `enable_thinking`; undefined if `None`.
    pub enable_thinking: Option<bool>,
}

/// Templates that Louver ships, for models whose own template has no tools: name and source.
pub const SHIPPED_TEMPLATES: [(&str, &str); 1] =
    [("chatml-tools", include_str!("chatml_tools.jinja"))];

/// The source of a shipped template.
pub fn shipped_template(name: &str) -> Option<&'static str> {
    SHIPPED_TEMPLATES.iter().find(|(shipped, _)| *shipped == name).map(|(_, source)| *source)
}

const DEFAULT: &str = "default";
const TOOL_USE: &str = "tool_use";

impl ChatTemplate {
    /// Compiles a template. `tokens` are the texts of the begin-of-sequence, end-of-sequence and
    /// unknown tokens.
    pub fn new(source: &str, tokens: [Option<String>; 3]) -> Result<ChatTemplate, TemplateError> {
        ChatTemplate::from_sources(Some(source), None, tokens)
    }

    /// The texts of the begin-of-sequence, end-of-sequence and unknown tokens.
    pub(crate) fn tokens(&self) -> [Option<String>; 3] {
        self.tokens.clone()
    }

    /// Takes the host's template.
    pub(crate) fn from_host(host: &HostTemplate) -> Result<ChatTemplate, TemplateError> {
        let tokens = [host.bos_tok(), host.eos_tok(), host.unk_tok()];
        let value = &host.chat_template.as_ref().ok_or(TemplateError::Missing)?.0;
        if let Some(source) = value.as_ref().left() {
            return ChatTemplate::new(source, tokens);
        }
        let find_template = |template_name: &str| {
            let list = value.as_ref().right()?;
            let by_name =
                list.iter().find(|t| t.get("name").is_some_and(|name| name == template_name));
            by_name
                .and_then(|t| t.get("template"))
                .or_else(|| list.iter().find_map(|t| t.get(template_name)))
        };
        let (default, tool_use) = (find_template(DEFAULT), find_template(TOOL_USE));
        ChatTemplate::from_sources(
            default.map(String::as_str),
            tool_use.map(String::as_str),
            tokens,
        )
    }

    /// Compiles the default template and the one for tools. At least one must be present.
    pub(crate) fn from_sources(
        default: Option<&str>,
        tool_use: Option<&str>,
        tokens: [Option<String>; 3],
    ) -> Result<ChatTemplate, TemplateError> {
        if default.or(tool_use).is_none() {
            return Err(TemplateError::Missing);
        }
        let mut env = Environment::new();
        // The same Jinja settings as in Hugging Face's transformers.
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
        env.add_function("strftime_now", |format: String| strftime::format_now(&format));
        for (name, source) in [(DEFAULT, default), (TOOL_USE, tool_use)] {
            if let Some(source) = source {
                let source =
                    source.replace("{% generation %}", "").replace("{% endgeneration %}", "");
                env.add_template_owned(name, source).map_err(render_error)?;
            }
        }
        let to_owned_text = |source: Option<&str>| source.map(str::to_owned);
        Ok(ChatTemplate {
            env,
            default: to_owned_text(default),
            tool_use: to_owned_text(tool_use),
            tokens,
        })
    }

    /// The template's source; that of the tool template if there are two.
    pub fn source(&self) -> &str {
        self.tool_use.as_ref().or(self.default.as_ref()).map_or("", String::as_str)
    }

    /// Renders the prompt's text up to the start of the model's turn.
    pub fn render(&self, parts: &PromptParts<'_>) -> Result<String, TemplateError> {
        let has_no_tools = parts.tools.is_empty() && parts.builtin_tools.is_empty();
        let uses_tool_template =
            if has_no_tools { self.default.is_none() } else { self.tool_use.is_some() };
        let name = if uses_tool_template { TOOL_USE } else { DEFAULT };
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
    // The alternate format includes the causes.
    TemplateError::Render(format!("{error:#}"))
}

/// Converts a message of the SDK to OpenAI's JSON format. The `function` member of
/// `RequestBuilder::add_message_with_tool_call` becomes `tool_calls`, with arguments as an object.
pub(crate) fn sdk_message<'a>(
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

/// Converts a message in OpenAI's JSON format to the format of templates: text parts joined,
/// arguments of calls as objects.
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
