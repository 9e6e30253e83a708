//! Inputs of chat templates besides the messages.

use louver::spec::json::Json;
use louver::with_methods;
use louver_formats::Tool;
use serde_json::{Map, Value, json};

/// The variables and functions of a template that are not [`TemplateInput::variables`].
const RESERVED: [&str; 12] = [
    "messages",
    "tools",
    "builtin_tools",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "unk_token",
    "raise_exception",
    "strftime_now",
    "namespace",
    "range",
    "dict",
];

/// Inputs of the chat template besides the messages. A turn that may not call tools shows none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TemplateInput {
    /// The template's `tools`, in OpenAI's JSON format; undefined if empty.
    pub tools: Vec<Value>,
    /// The template's `builtin_tools`: the model's built-in tools by name; undefined if empty.
    pub builtin_tools: Vec<String>,
    /// The template's `enable_thinking` and `thinking`, as some families call it; undefined if
    /// `None`.
    pub enable_thinking: Option<bool>,
    /// Further variables, such as `reasoning_effort`. Those of which
    /// [`TemplateInput::is_reserved`] is true have no effect.
    pub variables: Map<String, Value>,
}

with_methods!(TemplateInput {
    with_tools: tools = Vec<Value>,
    with_variables: variables = Map<String, Value>,
});

impl TemplateInput {
    /// Converts a request's tools to the format that templates were trained with. Functions are
    /// nested under `function`, without members that only concern enforcement. Custom tools become
    /// functions with one string. Built-in tools become names (`browser` for `browser.search`).
    pub fn new(tools: &[Value], enable_thinking: Option<bool>) -> TemplateInput {
        let mut input = TemplateInput { enable_thinking, ..TemplateInput::default() };
        for (k, tool) in tools.iter().enumerate() {
            match tool.get("type").and_then(Value::as_str) {
                None | Some("function") => input.tools.push(function(tool.clone())),
                Some(_) => match Tool::parse(k, &Json::from(tool)) {
                    Ok(Tool::Function(_)) => input.tools.push(function(tool.clone())),
                    Ok(Tool::Custom(custom)) => input.tools.push(custom.as_function()),
                    Ok(Tool::Builtin(builtin)) => input.add_builtin(&builtin.name),
                    Err(_) => input.tools.push(tool.clone()),
                },
            }
        }
        input
    }

    /// Whether a variable of the template is given by the conversation, the tools or the tokenizer,
    /// or is a function that templates call.
    pub fn is_reserved(variable: &str) -> bool {
        RESERVED.contains(&variable)
    }

    fn add_builtin(&mut self, name: &str) {
        let family = name.split('.').next().unwrap_or(name);
        if !self.builtin_tools.iter().any(|listed| listed == family) {
            self.builtin_tools.push(family.to_owned());
        }
    }

    /// Removes all tools.
    pub fn clear_tools(&mut self) {
        self.tools.clear();
        self.builtin_tools.clear();
    }
}

/// Converts a function tool, nested or not, to the nested format without `strict`.
fn function(mut tool: Value) -> Value {
    if let Some(function) = tool.get_mut("function").and_then(Value::as_object_mut) {
        function.shift_remove("strict");
        if tool.get("type").is_none() {
            tool["type"] = "function".into();
        }
        return tool;
    }
    match tool.as_object_mut() {
        Some(members) => {
            members.shift_remove("type");
            members.shift_remove("strict");
            json!({"type": "function", "function": members})
        }
        None => tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_converted_for_templates() {
        let tools = json!([
            {"type": "function", "function": {"name": "a", "strict": true, "parameters": {"z": 1, "a": 2.50}}},
            {"type": "function", "name": "b", "strict": false},
            {"name": "c"},
            {"type": "browser.search"},
            {"type": "browser.open"},
            {"type": "mcp", "name": "python"},
            {"type": "custom", "custom": {"name": "d", "description": "e"}}
        ]);
        let input = TemplateInput::new(tools.as_array().unwrap(), Some(true));
        let expected = json!([
            {"type": "function", "function": {"name": "a", "parameters": {"z": 1, "a": 2.5}}},
            {"type": "function", "function": {"name": "b"}},
            {"type": "function", "function": {"name": "c"}},
            {"type": "function", "function": {"name": "d", "description": "e", "parameters": {"type": "object", "properties":
                {"input": {"type": "string"}}, "required": ["input"], "additionalProperties": false}}},
        ]);
        assert_eq!(Value::from(input.tools.clone()), expected);
        assert_eq!(
            (input.builtin_tools, input.enable_thinking),
            (vec!["browser".to_owned(), "python".to_owned()], Some(true))
        );
        let order: Vec<_> =
            input.tools[0]["function"]["parameters"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(order, ["z", "a"]);
    }
}
