//! The tools that a request offers, of all kinds.

use std::collections::HashMap;

use louver::limits::Limits;
use louver::spec::json::Json;
use serde::{Deserialize, Serialize};

use super::builtin::BuiltinTool;
use super::custom::CustomTool;
use super::errors::{RequestError, RequestErrors};
use super::function::FunctionTool;
use super::members::{MemberError, MemberErrorKind};

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub enum Tool {
    /// A function, whose arguments match a JSON Schema.
    Function(FunctionTool),
    /// A custom tool, which is called with text.
    Custom(CustomTool),
    /// A built-in tool, which the model knows.
    Builtin(BuiltinTool),
}

/// What a tool is called with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Arguments in JSON: a function or a built-in tool.
    #[default]
    Function,
    /// Text: a custom tool.
    Custom,
}

impl CallKind {
    pub(crate) fn is_function(&self) -> bool {
        *self == CallKind::Function
    }
}

impl Tool {
    /// Parses entry `k` of a request's `tools`. Its `type` tells its kind: `function` (also without
    /// a type), `custom`, or the name of a built-in tool. Fails with all errors of the entry. Cost:
    /// linear.
    pub fn parse(k: usize, entry: &Json) -> Result<Tool, Vec<MemberError>> {
        match (entry, entry.get("type").and_then(Json::as_str)) {
            (_, Some("custom")) => CustomTool::parse(k, entry).map(Tool::Custom),
            (Json::Object(members), Some(kind))
                if kind != "function" && members.get("function").is_none() =>
            {
                BuiltinTool::parse(k, kind, members).map(Tool::Builtin)
            }
            _ => FunctionTool::parse(k, entry).map(Tool::Function),
        }
    }

    /// Parses a request's `tools`, an array. Fails with all errors of the list; that two tools have
    /// the same name is one. Cost: linear.
    pub fn parse_list(tools: &Json) -> Result<Vec<Tool>, RequestErrors> {
        let Json::Array(entries) = tools else {
            let error = MemberError::new("/tools", MemberErrorKind::Expected("an array"));
            return Err(RequestErrors(vec![error.into()]));
        };
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let mut first: HashMap<String, usize> = HashMap::new();
        for (k, entry) in entries.iter().enumerate() {
            match Tool::parse(k, entry) {
                Ok(tool) => {
                    let name = tool.name().to_owned();
                    if let Some(&first) = first.get(&name) {
                        let kind = MemberErrorKind::Duplicate { name, first };
                        errors.push(MemberError::new(tool.name_pointer(k), kind).into());
                    } else {
                        first.insert(name, k);
                    }
                    out.push(tool);
                }
                Err(found) => errors.extend(found.into_iter().map(RequestError::from)),
            }
        }
        if errors.is_empty() { Ok(out) } else { Err(RequestErrors(errors)) }
    }

    /// As [`Tool::parse_list`], from JSON text.
    ///
    /// ```
    /// use louver::limits::Limits;
    /// use louver_formats::{RequestErrors, Tool};
    ///
    /// let text = r#"[{"type": "function", "function": {"name": "now"}}, {"type": "python"}]"#;
    /// let tools = Tool::parse_text(text, &Limits::default())?;
    /// assert_eq!(tools[0].name(), "now");
    /// assert!(matches!(tools[1], Tool::Builtin(_)));
    /// # Ok::<(), RequestErrors>(())
    /// ```
    pub fn parse_text(tools: &str, limits: &Limits) -> Result<Vec<Tool>, RequestErrors> {
        let tools = Json::parse(tools, limits).map_err(|error| {
            let error = MemberError::new("/tools", MemberErrorKind::NotJson(error));
            RequestErrors(vec![error.into()])
        })?;
        Tool::parse_list(&tools)
    }

    /// The name by which the model calls it.
    pub fn name(&self) -> &str {
        match self {
            Tool::Function(tool) => &tool.name,
            Tool::Custom(tool) => &tool.name,
            Tool::Builtin(tool) => &tool.name,
        }
    }

    /// Removes the description.
    pub(crate) fn clear_description(&mut self) {
        match self {
            Tool::Function(tool) => tool.description = None,
            Tool::Custom(tool) => tool.description = None,
            Tool::Builtin(_) => {}
        }
    }

    /// What it is called with.
    pub fn kind(&self) -> CallKind {
        match self {
            Tool::Function(_) | Tool::Builtin(_) => CallKind::Function,
            Tool::Custom(_) => CallKind::Custom,
        }
    }

    /// Whether it is a built-in tool.
    pub fn is_builtin(&self) -> bool {
        matches!(self, Tool::Builtin(_))
    }

    /// The JSON Schema of its arguments in the request. `None` for custom tools, and for built-in
    /// tools whose schema the model's family knows.
    pub fn parameters(&self) -> Option<&Json> {
        match self {
            Tool::Function(tool) => Some(&tool.parameters),
            Tool::Custom(_) => None,
            Tool::Builtin(tool) => tool.parameters.as_ref(),
        }
    }

    /// The JSON pointer of the name of tool `k`.
    fn name_pointer(&self, k: usize) -> String {
        match self {
            Tool::Function(tool) => tool.shape.pointer(k, "function") + "/name",
            Tool::Custom(tool) => tool.shape.pointer(k, "custom") + "/name",
            Tool::Builtin(tool) => tool.name_pointer(k),
        }
    }
}

impl From<FunctionTool> for Tool {
    fn from(tool: FunctionTool) -> Self {
        Tool::Function(tool)
    }
}

impl From<CustomTool> for Tool {
    fn from(tool: CustomTool) -> Self {
        Tool::Custom(tool)
    }
}

impl From<BuiltinTool> for Tool {
    fn from(tool: BuiltinTool) -> Self {
        Tool::Builtin(tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::members::MAX_TOOL_NAME_BYTES;
    use super::*;

    fn member(error: RequestError) -> (String, MemberErrorKind) {
        let RequestError::Tool(error) = error else { panic!("{error}") };
        (error.pointer, error.kind)
    }

    fn errors(tools: Value) -> Vec<(String, MemberErrorKind)> {
        Tool::parse_list(&Json::from(tools)).unwrap_err().0.into_iter().map(member).collect()
    }

    #[test]
    fn wrapped_and_bare_tools_are_parsed() {
        let schema = json!({"type": "object"});
        let tools = Tool::parse_list(&Json::from(json!([
            {"type": "function", "function":
                {"name": "a.b", "description": "d", "parameters": schema, "strict": true}},
            {"type": "function", "name": "</tool_call>"},
            {"name": "\"", "parameters": null, "description": null, "strict": null},
        ])))
        .unwrap();
        let names: Vec<&str> = tools.iter().map(Tool::name).collect();
        assert_eq!(names, ["a.b", "</tool_call>", "\""]);
        let [Tool::Function(first), Tool::Function(second), Tool::Function(third)] = &tools[..]
        else {
            panic!("{tools:?}")
        };
        assert_eq!((first.strict, first.description.as_deref()), (true, Some("d")));
        assert_eq!(first.parameters, Json::from(&schema));
        let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(second.parameters, Json::from(none));
        assert_eq!(first.parameters_pointer(0), "/tools/0/function/parameters");
        assert_eq!(third.parameters_pointer(2), "/tools/2/parameters");
    }

    #[test]
    fn all_errors_are_reported_with_pointers() {
        let long = "x".repeat(MAX_TOOL_NAME_BYTES + 1);
        let found = errors(json!([
            1,
            {"type": "web_search", "function": {}},
            {"type": "function", "function": {"name": ""}},
            {"name": "a\nb", "strict": "yes"},
            {"name": long, "parameters": []},
            {"function": {"description": 1}},
            {"function": {"name": "ok"}},
            {"name": "ok"},
            {"function": 5},
            {"name": 7},
            {"type": "custom", "custom": {"name": "ok"}},
            {"type": "ok"},
            {"type": "x", "name": 7, "parameters": 8},
            {"type": ""},
            {"type": "y", "strict": 1, "format": {}, "description": 2},
            {"type": "z", "input_schema": {}, "parameters": {"query": {"type": "string"}}},
            {"type": "w", "name": null, "description": "d", "strict": true, "format": null},
        ]));
        let want = [
            ("/tools/0", MemberErrorKind::Expected("an object")),
            ("/tools/1/type", MemberErrorKind::UnsupportedType("web_search".to_owned())),
            ("/tools/2/function/name", MemberErrorKind::EmptyName),
            ("/tools/3/name", MemberErrorKind::ControlCharacter('\n')),
            ("/tools/3/strict", MemberErrorKind::Expected("a boolean")),
            ("/tools/4/name", MemberErrorKind::LongName { len: MAX_TOOL_NAME_BYTES + 1 }),
            ("/tools/4/parameters", MemberErrorKind::Expected("a JSON Schema")),
            ("/tools/5/function", MemberErrorKind::Missing("name")),
            ("/tools/5/function/description", MemberErrorKind::Expected("a string")),
            ("/tools/7/name", MemberErrorKind::Duplicate { name: "ok".to_owned(), first: 6 }),
            ("/tools/8/function", MemberErrorKind::Expected("an object")),
            ("/tools/9/name", MemberErrorKind::Expected("a string")),
            (
                "/tools/10/custom/name",
                MemberErrorKind::Duplicate { name: "ok".to_owned(), first: 6 },
            ),
            ("/tools/11/type", MemberErrorKind::Duplicate { name: "ok".to_owned(), first: 6 }),
            ("/tools/12/name", MemberErrorKind::Expected("a string")),
            ("/tools/12/parameters", MemberErrorKind::Expected("a JSON Schema")),
            ("/tools/13/type", MemberErrorKind::EmptyName),
            ("/tools/14/format", MemberErrorKind::UnknownMember { instead: None, meant: None }),
            ("/tools/14/description", MemberErrorKind::Expected("a string")),
            ("/tools/14/strict", MemberErrorKind::Expected("a boolean")),
            (
                "/tools/15/input_schema",
                MemberErrorKind::UnknownMember { instead: Some("use `parameters`"), meant: None },
            ),
            (
                "/tools/15/parameters",
                MemberErrorKind::Expected(
                    "a JSON Schema: the arguments belong in its `properties`",
                ),
            ),
        ];
        assert_eq!(found, want.map(|(p, k)| (p.to_owned(), k)));
        assert_eq!(errors(json!({}))[0].0, "/tools");
        assert!(matches!(
            Tool::parse_text("[", &Limits::default()).unwrap_err().0[..],
            [RequestError::Tool(MemberError { kind: MemberErrorKind::NotJson(_), .. })]
        ));
    }
}
