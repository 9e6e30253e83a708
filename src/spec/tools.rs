//! Tool definitions and tool choice: parses the `tools` and `tool_choice` of OpenAI requests.

use std::collections::HashMap;

use super::json::{Json, JsonError, Object, push_token};
use crate::limits::Limits;

/// Maximum length of a tool name, in bytes.
pub const MAX_TOOL_NAME_BYTES: usize = 256;

/// Members of a tool that clients send and that do not affect the output of the model.
pub const NEUTRAL_MEMBERS: [&str; 3] = ["cache_control", "defer_loading", "metadata"];

/// Names that other protocols give to the parameters of a tool.
const FOREIGN_PARAMETERS: [&str; 9] = [
    "input_schema",
    "inputSchema",
    "json_schema",
    "schema",
    "args_schema",
    "arguments",
    "params",
    "properties",
    "parametersJsonSchema",
];

/// A function the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name: any characters except control characters. It is never interpreted as syntax.
    pub name: String,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: Json,
    /// OpenAI's `strict` flag as given. Arguments match `parameters` whatever its value.
    pub strict: bool,
    /// The form of the tool in the request, for JSON pointers.
    pub shape: ToolShape,
}

/// The form of a tool in a request's `tools`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolShape {
    /// `{"type": "function", "function": {"name": ...}}`, as in Chat Completions.
    #[default]
    Wrapped,
    /// `{"name": ...}`, optionally with `"type": "function"`, as in Responses.
    Bare,
}

/// An error in a list of tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {kind}")]
pub struct ToolError {
    /// JSON pointer into the request, such as `/tools/3/function/name`.
    pub pointer: String,
    /// The reason.
    pub kind: ToolErrorKind,
}

/// The reason of an error in a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    NotJson(JsonError),
    /// The value has the wrong JSON type.
    #[error("must be {0}")]
    Expected(&'static str),
    /// A member is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// An unknown member: it could require something that would not be enforced.
    #[error("there is no such member{}", advice_suffix(*instead))]
    UnknownMember {
        /// Advice on what to write instead.
        instead: Option<&'static str>,
    },
    /// A tool of another type than `function`.
    #[error("tools of type {0:?} are not supported, only \"function\"")]
    UnsupportedType(String),
    /// An empty name.
    #[error("must not be empty")]
    EmptyName,
    /// A name that is too long.
    #[error("has {len} bytes, over the limit of {MAX_TOOL_NAME_BYTES}")]
    LongName {
        /// The length in bytes.
        len: usize,
    },
    /// A control character in a name.
    #[error("must not contain the control character U+{:04X}", u32::from(*.0))]
    ControlCharacter(char),
    /// A name that an earlier tool has.
    #[error("{name:?} is already the name of /tools/{first}")]
    Duplicate {
        /// The name.
        name: String,
        /// The index of the first tool of this name.
        first: usize,
    },
}

/// All errors of a list of tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToolError::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ToolErrors(pub Vec<ToolError>);

/// Whether tools must be called, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides between text and calls.
    #[default]
    Auto,
    /// At least one call is required.
    Required,
    /// Calls are forbidden.
    None,
    /// One call of this tool is required.
    Named(String),
}

/// Error of a tool choice that is malformed or does not fit the tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolChoiceError {
    /// The value has none of the known forms.
    #[error(
        "/tool_choice: must be \"auto\", \"required\", \"none\", \
         {{\"type\":\"function\",\"function\":{{\"name\":..}}}} or \
         {{\"type\":\"function\",\"name\":..}}"
    )]
    Malformed,
    /// A member that a choice does not have.
    #[error(transparent)]
    Member(#[from] ToolError),
    /// The named tool is not in the list of tools.
    #[error("/tool_choice: there is no tool {name:?}; known: {}", known_list(known))]
    UnknownTool {
        /// The name.
        name: String,
        /// The names of the tools.
        known: Vec<String>,
    },
    /// A call is required, but there are no tools.
    #[error("/tool_choice: a call is required, but there are no tools")]
    NoTools,
}

impl ToolChoiceError {
    /// The JSON pointer of the fault in the request, and what is wrong there.
    ///
    /// ```
    /// use louver::Limits;
    /// use louver::spec::json::Json;
    /// use louver::spec::tools::ToolChoice;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let choice = r#"{"type": "function", "function": {"name": "go", "strict": true}}"#;
    /// let error = ToolChoice::parse(&Json::parse(choice, &Limits::default())?).unwrap_err();
    /// assert_eq!(error.fault().0, "/tool_choice/function/strict");
    /// # Ok(())
    /// # }
    /// ```
    pub fn fault(&self) -> (&str, String) {
        match self {
            ToolChoiceError::Member(error) => (&error.pointer, error.kind.to_string()),
            error => {
                ("/tool_choice", error.to_string().trim_start_matches("/tool_choice: ").to_owned())
            }
        }
    }
}

/// Advice after a message.
fn advice_suffix(instead: Option<&str>) -> String {
    instead.map(|instead| format!(": {instead}")).unwrap_or_default()
}

/// A list of names for messages.
fn known_list(known: &[String]) -> String {
    let names: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl Tool {
    /// Makes a tool. Errors: an invalid name.
    pub fn new(name: impl Into<String>, parameters: Json) -> Result<Tool, ToolErrorKind> {
        let name = name.into();
        check_name(&name)?;
        Ok(Tool { name, description: None, parameters, strict: false, shape: ToolShape::Wrapped })
    }

    /// The JSON pointer of the parameters of the `k`th tool in the request.
    pub fn parameters_pointer(&self, k: usize) -> String {
        format!("{}/parameters", self.shape.pointer(k))
    }

    /// Parses a request's `tools`: an array of function tools, wrapped or bare.
    ///
    /// A tool without `parameters` takes none (an empty object). Members other than `name`,
    /// `description`, `parameters`, `strict` and `type` are errors, unless they are `null` or do
    /// not affect the output of the model ([`NEUTRAL_MEMBERS`]). All errors are reported together.
    /// Linear.
    pub fn parse_list(tools: &Json) -> Result<Vec<Tool>, ToolErrors> {
        let Json::Array(entries) = tools else {
            return Err(ToolErrors(vec![error_at(
                "/tools".to_owned(),
                ToolErrorKind::Expected("an array"),
            )]));
        };
        let mut errors = Vec::new();
        let mut first: HashMap<String, usize> = HashMap::new();
        let mut out = Vec::new();
        for (k, entry) in entries.iter().enumerate() {
            match parse_tool(k, entry) {
                Ok(tool) => {
                    match first.get(&tool.name) {
                        Some(&first) => {
                            let kind = ToolErrorKind::Duplicate { name: tool.name.clone(), first };
                            errors.push(error_at(format!("{}/name", tool.shape.pointer(k)), kind));
                        }
                        None => drop(first.insert(tool.name.clone(), k)),
                    }
                    out.push(tool);
                }
                Err(mut found) => errors.append(&mut found),
            }
        }
        if errors.is_empty() { Ok(out) } else { Err(ToolErrors(errors)) }
    }

    /// As [`Tool::parse_list`], from JSON text.
    ///
    /// ```
    /// use louver::Limits;
    /// use louver::spec::tools::{Tool, ToolErrors};
    ///
    /// let text = r#"[{"type": "function", "function": {"name": "now"}}]"#;
    /// let tools = Tool::parse_text(text, &Limits::default())?;
    /// assert_eq!(tools[0].name, "now");
    /// # Ok::<(), ToolErrors>(())
    /// ```
    pub fn parse_text(tools: &str, limits: &Limits) -> Result<Vec<Tool>, ToolErrors> {
        match Json::parse(tools, limits) {
            Ok(tools) => Tool::parse_list(&tools),
            Err(error) => {
                Err(ToolErrors(vec![error_at("/tools".to_owned(), ToolErrorKind::NotJson(error))]))
            }
        }
    }
}

impl ToolShape {
    /// The JSON pointer of the function object of the `k`th tool in the request.
    fn pointer(self, k: usize) -> String {
        match self {
            ToolShape::Wrapped => format!("/tools/{k}/function"),
            ToolShape::Bare => format!("/tools/{k}"),
        }
    }
}

/// An error at a pointer.
fn error_at(pointer: String, kind: ToolErrorKind) -> ToolError {
    ToolError { pointer, kind }
}

/// Checks the name of a tool.
fn check_name(name: &str) -> Result<(), ToolErrorKind> {
    if name.is_empty() {
        return Err(ToolErrorKind::EmptyName);
    }
    if name.len() > MAX_TOOL_NAME_BYTES {
        return Err(ToolErrorKind::LongName { len: name.len() });
    }
    match name.chars().find(|c| c.is_control()) {
        Some(c) => Err(ToolErrorKind::ControlCharacter(c)),
        None => Ok(()),
    }
}

/// Parses the `k`th tool.
fn parse_tool(k: usize, entry: &Json) -> Result<Tool, Vec<ToolError>> {
    let single_error = |pointer, kind| Err(vec![error_at(pointer, kind)]);
    let Json::Object(members) = entry else {
        return single_error(format!("/tools/{k}"), ToolErrorKind::Expected("an object"));
    };
    match members.get("type") {
        None => {}
        Some(Json::String(kind)) if kind == "function" => {}
        Some(Json::String(kind)) => {
            return single_error(
                format!("/tools/{k}/type"),
                ToolErrorKind::UnsupportedType(kind.clone()),
            );
        }
        Some(_) => {
            return single_error(format!("/tools/{k}/type"), ToolErrorKind::Expected("a string"));
        }
    }
    let (shape, function) = match members.get("function") {
        Some(Json::Object(function)) => (ToolShape::Wrapped, function),
        Some(_) => {
            return single_error(
                format!("/tools/{k}/function"),
                ToolErrorKind::Expected("an object"),
            );
        }
        None => (ToolShape::Bare, members),
    };
    let mut errors = Vec::new();
    const FUNCTION: [&str; 4] = ["name", "description", "parameters", "strict"];
    match shape {
        ToolShape::Wrapped => {
            unknown_members(&format!("/tools/{k}"), members, &["type", "function"], &mut errors);
            unknown_members(&shape.pointer(k), function, &FUNCTION, &mut errors);
        }
        ToolShape::Bare => {
            let known = ["type", "name", "description", "parameters", "strict"];
            unknown_members(&shape.pointer(k), function, &known, &mut errors);
        }
    }
    let mut reader = MemberReader { pointer: shape.pointer(k), function, errors };
    let tool = Tool {
        name: reader.name(),
        description: reader.description(),
        parameters: reader.parameters(),
        strict: reader.strict(),
        shape,
    };
    if reader.errors.is_empty() { Ok(tool) } else { Err(reader.errors) }
}

/// Reports the members of a tool, or of an object within it, that are not in `known`.
pub fn unknown_members(
    pointer: &str,
    members: &Object,
    known: &[&str],
    errors: &mut Vec<ToolError>,
) {
    for name in members.unknown(known).filter(|name| !NEUTRAL_MEMBERS.contains(name)) {
        let instead = match name {
            name if FOREIGN_PARAMETERS.contains(&name) => Some("use `parameters`"),
            "name" | "description" | "strict" if known.contains(&"function") => {
                Some("it belongs in `function`")
            }
            _ => None,
        };
        let mut pointer = pointer.to_owned();
        push_token(&mut pointer, name);
        errors.push(error_at(pointer, ToolErrorKind::UnknownMember { instead }));
    }
}

/// Parses the members of a function object, and collects errors.
struct MemberReader<'a> {
    /// The JSON pointer of the object.
    pointer: String,
    function: &'a Object,
    errors: Vec<ToolError>,
}

impl MemberReader<'_> {
    /// Reports an error at a member.
    fn fail(&mut self, member: &str, kind: ToolErrorKind) {
        self.errors.push(error_at(format!("{}/{member}", self.pointer), kind));
    }

    /// Parses the name.
    fn name(&mut self) -> String {
        match self.function.get("name") {
            Some(Json::String(name)) => {
                if let Err(kind) = check_name(name) {
                    self.fail("name", kind);
                }
                return name.clone();
            }
            Some(_) => self.fail("name", ToolErrorKind::Expected("a string")),
            None => {
                self.errors.push(error_at(self.pointer.clone(), ToolErrorKind::Missing("name")))
            }
        }
        String::new()
    }

    /// Parses the description.
    fn description(&mut self) -> Option<String> {
        match self.function.get("description") {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) => Some(text.clone()),
            Some(_) => {
                self.fail("description", ToolErrorKind::Expected("a string"));
                None
            }
        }
    }

    /// Parses the parameters.
    fn parameters(&mut self) -> Json {
        match self.function.get("parameters") {
            None | Some(Json::Null) => no_parameters(),
            Some(Json::Object(members)) if is_properties_object(members) => {
                let expected = "a JSON Schema: the arguments belong in its `properties`";
                self.fail("parameters", ToolErrorKind::Expected(expected));
                Json::Null
            }
            Some(schema @ (Json::Object(_) | Json::Bool(_))) => schema.clone(),
            Some(Json::String(_)) => {
                self.fail(
                    "parameters",
                    ToolErrorKind::Expected("a JSON Schema, as an object and not as text"),
                );
                Json::Null
            }
            Some(_) => {
                self.fail("parameters", ToolErrorKind::Expected("a JSON Schema"));
                Json::Null
            }
        }
    }

    /// Parses the flag `strict`.
    fn strict(&mut self) -> bool {
        match self.function.get("strict") {
            None | Some(Json::Null) => false,
            Some(Json::Bool(strict)) => *strict,
            Some(_) => {
                self.fail("strict", ToolErrorKind::Expected("a boolean"));
                false
            }
        }
    }
}

/// Whether an object looks like the value of `properties` rather than a schema. All its values are
/// then objects with a type, and none of its names is a keyword. As a JSON Schema it would allow
/// any value.
fn is_properties_object(members: &Object) -> bool {
    const KEYWORDS: [&str; 16] = [
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "items",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "definitions",
        "dependencies",
        "dependentSchemas",
    ];
    let is_argument = |(name, value): (&str, &Json)| {
        !KEYWORDS.contains(&name) && !name.starts_with('$') && value.get("type").is_some()
    };
    members.iter().next().is_some() && members.iter().all(is_argument)
}

/// The schema of a tool without parameters.
fn no_parameters() -> Json {
    Json::from(
        serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false}),
    )
}

impl ToolChoice {
    /// Parses a request's `tool_choice`; `null` is `auto`.
    pub fn parse(choice: &Json) -> Result<ToolChoice, ToolChoiceError> {
        match choice {
            Json::Null => Ok(ToolChoice::Auto),
            Json::String(mode) => match mode.as_str() {
                "auto" => Ok(ToolChoice::Auto),
                "required" => Ok(ToolChoice::Required),
                "none" => Ok(ToolChoice::None),
                _ => Err(ToolChoiceError::Malformed),
            },
            Json::Object(members)
                if members.get("type").and_then(Json::as_str) == Some("function") =>
            {
                let mut errors = Vec::new();
                let (function, known) = match members.get("function") {
                    None => (members, ["type", "name"]),
                    Some(Json::Object(function)) => {
                        let pointer = "/tool_choice/function";
                        unknown_members(pointer, function, &["name"], &mut errors);
                        (function, ["type", "function"])
                    }
                    Some(_) => return Err(ToolChoiceError::Malformed),
                };
                unknown_members("/tool_choice", members, &known, &mut errors);
                match (errors.into_iter().next(), function.get("name").and_then(Json::as_str)) {
                    (Some(error), _) => Err(error.into()),
                    (None, Some(name)) => Ok(ToolChoice::Named(name.to_owned())),
                    (None, None) => Err(ToolChoiceError::Malformed),
                }
            }
            _ => Err(ToolChoiceError::Malformed),
        }
    }

    /// Checks that the tools can satisfy the choice.
    pub fn check(&self, tools: &[Tool]) -> Result<(), ToolChoiceError> {
        match self {
            ToolChoice::Auto | ToolChoice::None => Ok(()),
            ToolChoice::Required if tools.is_empty() => Err(ToolChoiceError::NoTools),
            ToolChoice::Required => Ok(()),
            ToolChoice::Named(name) if tools.iter().any(|tool| tool.name == *name) => Ok(()),
            ToolChoice::Named(name) => Err(ToolChoiceError::UnknownTool {
                name: name.clone(),
                known: tools.iter().map(|tool| tool.name.clone()).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn errors(tools: Value) -> Vec<(String, ToolErrorKind)> {
        Tool::parse_list(&Json::from(tools))
            .unwrap_err()
            .0
            .into_iter()
            .map(|e| (e.pointer, e.kind))
            .collect()
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
        let names: Vec<&str> = tools.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["a.b", "</tool_call>", "\""]);
        assert_eq!((tools[0].strict, tools[0].description.as_deref()), (true, Some("d")));
        assert_eq!(tools[0].parameters, Json::from(&schema));
        assert_eq!(tools[1].parameters, no_parameters());
        assert_eq!(tools[0].parameters_pointer(0), "/tools/0/function/parameters");
        assert_eq!(tools[2].parameters_pointer(2), "/tools/2/parameters");
    }

    #[test]
    fn all_errors_are_reported_with_pointers() {
        let long = "x".repeat(MAX_TOOL_NAME_BYTES + 1);
        let found = errors(json!([
            1,
            {"type": "web_search"},
            {"type": "function", "function": {"name": ""}},
            {"name": "a\nb", "strict": "yes"},
            {"name": long, "parameters": []},
            {"function": {"description": 1}},
            {"function": {"name": "ok"}},
            {"name": "ok"},
            {"function": 5},
            {"name": 7},
        ]));
        let want = [
            ("/tools/0", ToolErrorKind::Expected("an object")),
            ("/tools/1/type", ToolErrorKind::UnsupportedType("web_search".to_owned())),
            ("/tools/2/function/name", ToolErrorKind::EmptyName),
            ("/tools/3/name", ToolErrorKind::ControlCharacter('\n')),
            ("/tools/3/strict", ToolErrorKind::Expected("a boolean")),
            ("/tools/4/name", ToolErrorKind::LongName { len: MAX_TOOL_NAME_BYTES + 1 }),
            ("/tools/4/parameters", ToolErrorKind::Expected("a JSON Schema")),
            ("/tools/5/function", ToolErrorKind::Missing("name")),
            ("/tools/5/function/description", ToolErrorKind::Expected("a string")),
            ("/tools/7/name", ToolErrorKind::Duplicate { name: "ok".to_owned(), first: 6 }),
            ("/tools/8/function", ToolErrorKind::Expected("an object")),
            ("/tools/9/name", ToolErrorKind::Expected("a string")),
        ];
        assert_eq!(found, want.map(|(p, k)| (p.to_owned(), k)));
        assert_eq!(errors(json!({}))[0].0, "/tools");
        assert!(matches!(
            Tool::parse_text("[", &Limits::default()).unwrap_err().0[0].kind,
            ToolErrorKind::NotJson(_)
        ));
    }

    #[test]
    fn tool_choices_are_parsed() {
        let named = ToolChoice::Named("f".to_owned());
        for (json, want) in [
            (json!(null), ToolChoice::Auto),
            (json!("auto"), ToolChoice::Auto),
            (json!("required"), ToolChoice::Required),
            (json!("none"), ToolChoice::None),
            (json!({"type": "function", "function": {"name": "f"}}), named.clone()),
            (json!({"type": "function", "name": "f"}), named.clone()),
        ] {
            assert_eq!(ToolChoice::parse(&Json::from(&json)), Ok(want));
        }
        for json in [
            json!("any"),
            json!(1),
            json!({"name": "f"}),
            json!({"type": "function", "function": {}}),
        ] {
            assert_eq!(
                ToolChoice::parse(&Json::from(&json)),
                Err(ToolChoiceError::Malformed),
                "{json}"
            );
        }
    }

    #[test]
    fn unknown_members_of_a_tool_choice_are_refused() {
        for (json, pointer) in [
            (json!({"type": "function", "function": {"name": "f"}, "x": 1}), "/tool_choice/x"),
            (
                json!({"type": "function", "function": {"name": "f"}, "name": 1}),
                "/tool_choice/name",
            ),
            (json!({"type": "function", "name": "f", "mode": 1}), "/tool_choice/mode"),
            (
                json!({"type": "function", "function": {"name": "f", "strict": true}}),
                "/tool_choice/function/strict",
            ),
        ] {
            match ToolChoice::parse(&Json::from(&json)) {
                Err(ToolChoiceError::Member(error)) => assert_eq!(error.pointer, pointer),
                other => panic!("{json}: {other:?}"),
            }
        }
    }

    #[test]
    fn tool_choices_are_checked_against_the_tools() {
        let tools = Tool::parse_list(&Json::from(json!([{"name": "f"}, {"name": "g"}]))).unwrap();
        assert_eq!(ToolChoice::Required.check(&tools), Ok(()));
        assert_eq!(ToolChoice::Required.check(&[]), Err(ToolChoiceError::NoTools));
        assert_eq!(ToolChoice::None.check(&[]), Ok(()));
        assert_eq!(ToolChoice::Named("g".to_owned()).check(&tools), Ok(()));
        let error = ToolChoice::Named("h".to_owned()).check(&tools).unwrap_err();
        assert_eq!(error.to_string(), "/tool_choice: there is no tool \"h\"; known: \"f\", \"g\"");
    }
}
