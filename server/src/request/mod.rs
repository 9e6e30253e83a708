//! Members of request bodies -> what a turn needs, every fault with its JSON pointer.

pub(crate) mod members;
pub(crate) mod messages;
pub(crate) mod options;
pub(crate) mod unknown;

use louver::spec::json::{Json, Number};
use louver_formats::CustomTool;
use serde_json::Value;

/// A value as templates take it. Numbers that 64 bits cannot hold are rounded there. Recursive: bodies are of bounded depth.
pub(crate) fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => to_number(number),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => items.iter().map(to_value).collect(),
        Json::Object(members) => members.iter().map(|(name, value)| (name.to_owned(), to_value(value))).collect(),
    }
}

fn to_number(number: &Number) -> Value {
    let text = number.as_str();
    // Beyond what any number type holds, its text is all there is to show.
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The tools of a request as chat templates were trained on them: each under `function`, without what is only meant for the
/// server.
pub(crate) fn shown_tools(tools: Option<&Json>) -> Vec<Value> {
    let entries = tools.and_then(Json::as_array).unwrap_or_default();
    let shown = |(k, entry): (usize, &Json)| match CustomTool::parse(k, entry) {
        Ok(custom) if entry.get("type").and_then(Json::as_str) == Some("custom") => custom.as_function(),
        _ => shown_tool(to_value(entry)),
    };
    entries.iter().enumerate().map(shown).collect()
}

fn shown_tool(mut entry: Value) -> Value {
    if let Some(function) = entry.get_mut("function").and_then(Value::as_object_mut) {
        function.shift_remove("strict");
        if entry.get("type").is_none() {
            entry["type"] = "function".into();
        }
        return entry;
    }
    let is_function = entry.get("type").is_none_or(|kind| kind == "function");
    match entry.as_object_mut() {
        Some(members) if is_function => {
            members.shift_remove("type");
            members.shift_remove("strict");
            serde_json::json!({"type": "function", "function": members})
        }
        _ => entry,
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_shown_as_templates_know_them() {
        let text = r#"[
            {"type": "function", "function": {"name": "a", "strict": true, "parameters": {"z": 1, "a": 2.50}}},
            {"type": "function", "name": "b", "strict": false},
            {"name": "c"},
            {"type": "browser.search"},
            {"type": "custom", "custom": {"name": "d", "description": "e"}}
        ]"#;
        let tools = Json::parse(text, &Limits::default()).unwrap();
        let want = json!([
            {"type": "function", "function": {"name": "a", "parameters": {"z": 1, "a": 2.5}}},
            {"type": "function", "function": {"name": "b"}},
            {"type": "function", "function": {"name": "c"}},
            {"type": "browser.search"},
            {"type": "function", "function": {"name": "d", "description": "e", "parameters": {"type": "object", "properties":
                {"input": {"type": "string"}}, "required": ["input"], "additionalProperties": false}}},
        ]);
        assert_eq!(Value::from(shown_tools(Some(&tools))), want);
        let order: Vec<_> =
            shown_tools(Some(&tools))[0]["function"]["parameters"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(order, ["z", "a"]);
    }

    #[test]
    fn numbers_of_any_size() {
        let json = Json::parse("[1, -5, 18446744073709551616, 1e999, 0.1]", &Limits::default()).unwrap();
        assert_eq!(to_value(&json), json!([1, -5, 18_446_744_073_709_551_616_f64, "1e999", 0.1]));
    }
}
