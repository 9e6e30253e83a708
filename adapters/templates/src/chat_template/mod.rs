//! Prompt rendering with the model's own chat template, instead of the host's rendering: tools keep
//! their order and are not HTML-escaped, and the prompt's tokens are known exactly.

mod json;
mod strftime;
mod tools;

use std::path::PathBuf;

use louver_formats::WireFormat;
use minijinja::value::Value;
use minijinja::{Environment, ErrorKind, context};

use crate::message_style::MessageStyle;

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

impl TemplateError {
    /// The error with the file that has the template.
    pub(crate) fn in_file(self, file: Option<PathBuf>) -> TemplateError {
        match (self, file) {
            (TemplateError::Render(problem), Some(file)) => {
                TemplateError::Render(format!("{}: {problem}", file.display()))
            }
            (error, _) => error,
        }
    }
}

/// A model's chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    env: Environment<'static>,
    /// With the line ends of Jinja.
    sources: TemplateSources,
    tokens: [Option<String>; 3],
}

/// Templates that Louver ships, for models whose own template has no tools: name and source.
pub const SHIPPED_TEMPLATES: [(&str, &str); 1] =
    [("chatml-tools", include_str!("chatml_tools.jinja"))];

/// The source of a shipped template.
pub fn shipped_template(name: &str) -> Option<&'static str> {
    SHIPPED_TEMPLATES.iter().find(|(shipped, _)| *shipped == name).map(|(_, source)| *source)
}

/// The name of the default template among several.
const DEFAULT_TEMPLATE: &str = "default";
/// The name of the template for tools among several.
const TOOL_TEMPLATE: &str = "tool_use";

/// The sources of a model's chat templates.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TemplateSources {
    /// The default template.
    pub default: Option<String>,
    /// The template for conversations with tools.
    pub tool_use: Option<String>,
}

impl TemplateSources {
    /// Reads a template, or a list of templates with names: of `{"name": NAME, "template": SOURCE}`
    /// or of `{NAME: SOURCE}`.
    pub fn from_value(value: &serde_json::Value) -> TemplateSources {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let find = |wanted: &str| {
            let named = items.iter().find(|item| item["name"] == wanted);
            let source = named.and_then(|item| item.get("template"));
            let source = source.or_else(|| items.iter().find_map(|item| item.get(wanted)));
            source?.as_str().map(str::to_owned)
        };
        let only = value.as_str().map(str::to_owned);
        let default = only.or_else(|| find(DEFAULT_TEMPLATE));
        TemplateSources { default, tool_use: find(TOOL_TEMPLATE) }
    }

    /// Whether there is no template.
    pub fn is_empty(&self) -> bool {
        self.default.is_none() && self.tool_use.is_none()
    }
}

impl ChatTemplate {
    /// Compiles a template. `tokens` are the texts of the begin-of-sequence, end-of-sequence and
    /// unknown tokens.
    pub fn new(source: &str, tokens: [Option<String>; 3]) -> Result<ChatTemplate, TemplateError> {
        let default = Some(source.to_owned());
        ChatTemplate::from_sources(TemplateSources { default, tool_use: None }, tokens)
    }

    /// The texts of the begin-of-sequence, end-of-sequence and unknown tokens.
    pub fn tokens(&self) -> [Option<String>; 3] {
        self.tokens.clone()
    }

    /// Compiles the default template and the one for tools. At least one must be present.
    pub fn from_sources(
        sources: TemplateSources,
        tokens: [Option<String>; 3],
    ) -> Result<ChatTemplate, TemplateError> {
        if sources.is_empty() {
            return Err(TemplateError::Missing);
        }
        let [default, tool_use] = [sources.default, sources.tool_use]
            .map(|source| source.map(|source| one_line_end(&source)));
        let mut env = Environment::new();
        // The same Jinja settings as in Hugging Face's transformers.
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        // An error names the line, and shows nothing of the conversation.
        env.set_debug(false);
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_filter("tojson", json::tojson);
        env.add_filter("length", json::length);
        env.add_filter("count", json::length);
        env.add_function(
            "raise_exception",
            |message: String| -> Result<String, minijinja::Error> {
                Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        env.add_function("strftime_now", |format: String| strftime::format_now(&format));
        for (name, source) in [(DEFAULT_TEMPLATE, &default), (TOOL_TEMPLATE, &tool_use)] {
            if let Some(source) = source {
                // The alternate format of a syntax error has lines of the source.
                env.add_template_owned(name, prepared(source))
                    .map_err(|error| TemplateError::Render(located(&error, error.to_string())))?;
            }
        }
        Ok(ChatTemplate { env, sources: TemplateSources { default, tool_use }, tokens })
    }

    /// The template's source, with the line ends of Jinja; that of the tool template if there are
    /// two.
    pub fn source(&self) -> &str {
        let TemplateSources { default, tool_use } = &self.sources;
        tool_use.as_ref().or(default.as_ref()).map_or("", String::as_str)
    }

    /// Renders the prompt's text up to the start of the model's turn. The messages are in OpenAI's
    /// JSON form.
    pub fn render(
        &self,
        messages: &[serde_json::Value],
        input: &TemplateInput,
    ) -> Result<String, TemplateError> {
        self.render_conversation(messages, input, true)
    }

    /// Renders a conversation, with or without the start of the model's next turn.
    pub fn render_conversation(
        &self,
        messages: &[serde_json::Value],
        input: &TemplateInput,
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        let has_no_tools = input.tools.is_empty() && input.builtin_tools.is_empty();
        let TemplateSources { default, tool_use } = &self.sources;
        let uses_tool_template = if has_no_tools { default.is_none() } else { tool_use.is_some() };
        let name = if uses_tool_template { TOOL_TEMPLATE } else { DEFAULT_TEMPLATE };
        let list = |items: &[serde_json::Value]| -> Value {
            items.iter().map(json::to_template).collect()
        };
        let [bos, eos, unk] = &self.tokens;
        let variables =
            input.variables.iter().filter(|(name, _)| !TemplateInput::is_reserved(name));
        let variables: Value =
            variables.map(|(name, value)| (name.as_str(), json::to_template(value))).collect();
        let mut values = context! {
            messages => list(messages),
            add_generation_prompt => add_generation_prompt,
            bos_token => bos.as_deref().unwrap_or_default(),
            eos_token => eos.as_deref().unwrap_or_default(),
            unk_token => unk.as_deref().unwrap_or_default(),
            ..variables
        };
        if !input.tools.is_empty() {
            let tools = list(&input.tools);
            values = context! { tools => tools, ..values };
        }
        if !input.builtin_tools.is_empty() {
            values = context! { builtin_tools => input.builtin_tools, ..values };
        }
        if let Some(enable_thinking) = input.enable_thinking {
            let thinking = enable_thinking;
            values = context! { enable_thinking, thinking, ..values };
        }
        self.env
            .get_template(name)
            .and_then(|template| template.render(values))
            .map_err(render_error)
    }
}

/// A template with the one kind of line ends that Jinja has.
fn one_line_end(source: &str) -> String {
    source.replace("\r\n", "\n").replace('\r', "\n")
}

/// A template without the tags `generation` and `endgeneration`, which mark what a model is trained
/// on. What they say of white space stays.
fn prepared(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let len = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(len);
        let inner = tag.trim_start_matches("{%").trim_end_matches("%}");
        match inner.trim_matches(['-', '+', ' ', '\n', '\t']) {
            "generation" | "endgeneration" => {
                let side = |is_there: bool| if is_there { "-" } else { "" };
                let (left, right) = (side(inner.starts_with('-')), side(inner.ends_with('-')));
                out += &format!("{{%{left} if false %}}{{% endif {right}%}}");
            }
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out + rest
}

fn render_error(error: minijinja::Error) -> TemplateError {
    // The alternate format includes the causes.
    TemplateError::Render(located(&error, format!("{error:#}")))
}

/// The text of an error with its line. The library names the template, which is no file's name.
fn located(error: &minijinja::Error, text: String) -> String {
    let (Some(name), Some(line)) = (error.name(), error.line()) else { return text };
    let template = match name {
        DEFAULT_TEMPLATE => "the chat template".to_owned(),
        name => format!("the chat template `{name}`"),
    };
    text.replace(&format!("(in {name}:{line})"), &format!("(line {line} of {template})"))
}

/// Joins the text parts of a message's content, which templates take as one text: by line feeds, so
/// that the parts remain apart.
pub fn join_text_parts(parts: &[&str]) -> String {
    parts.join("\n")
}

/// Converts a message in OpenAI's JSON format to the format of templates: text parts joined
/// ([`join_text_parts`]), and calls as the template wants them.
pub fn openai_message(message: &serde_json::Value, style: MessageStyle) -> serde_json::Value {
    let mut message = message.clone();
    let parts = message.get("content").and_then(serde_json::Value::as_array);
    let texts: Option<Vec<&str>> =
        parts.map(|parts| parts.iter().filter_map(|part| part["text"].as_str()).collect());
    if let Some(texts) = texts {
        message["content"] = join_text_parts(&texts).into();
    }
    let calls = message.get_mut("tool_calls").and_then(serde_json::Value::as_array_mut);
    let Some(calls) = calls.filter(|calls| !calls.is_empty()) else { return message };
    for call in calls.iter_mut().filter_map(serde_json::Value::as_object_mut) {
        match style.arguments_as_text {
            true => write_call_arguments(call),
            false => parse_call_arguments(call),
        }
    }
    let is_empty = message["content"].as_str().is_none_or(str::is_empty);
    if is_empty && style.null_content {
        message["content"] = serde_json::Value::Null;
    }
    message
}

/// Gives calls and tool results of messages in OpenAI's JSON format the ids that the chat template
/// of a format accepts ([`WireFormat::conforming_id`]). Ids of another program, of an earlier model
/// for example, have any form. Cost: linear in the ids.
pub fn conform_call_ids(messages: &mut [serde_json::Value], format: &WireFormat) {
    let conform = |id: Option<&mut serde_json::Value>| {
        if let Some(serde_json::Value::String(id)) = id {
            *id = format.conforming_id(id);
        }
    };
    for message in messages {
        conform(message.get_mut("tool_call_id"));
        let calls = message.get_mut("tool_calls").and_then(serde_json::Value::as_array_mut);
        calls.into_iter().flatten().for_each(|call| conform(call.get_mut("id")));
    }
}

/// Replaces the arguments of a call, if they are an object, by its JSON text.
fn write_call_arguments(call: &mut serde_json::Map<String, serde_json::Value>) {
    if let Some(slot) = call.get_mut("function").and_then(|f| f.get_mut("arguments"))
        && slot.is_object()
    {
        *slot = louver_formats::python_json(slot).into();
    }
}

/// Replaces the arguments of a call, if they are the text of a JSON object, by that object.
pub fn parse_call_arguments(call: &mut serde_json::Map<String, serde_json::Value>) {
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
