//! The tool choice of a request: whether tools must be called, and which.

use louver::spec::json::Json;

use super::tool_members::{ToolError, unknown_members};

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

impl ToolChoice {
    /// Parses a request's `tool_choice`; `null` is `auto`. Also returns the names of the tools that
    /// may be called (`None`: all tools). Cost: linear.
    pub fn parse(choice: &Json) -> Result<(ToolChoice, Option<Vec<String>>), ToolChoiceError> {
        let expected = "\"auto\", \"required\", \"none\", {\"type\":\"function\",\"function\":\
                        {\"name\":..}} or {\"type\":\"function\",\"name\":..}";
        let kind = choice.get("type").and_then(Json::as_str);
        let choice = match (choice, kind) {
            (Json::Null, _) => ToolChoice::Auto,
            (Json::String(mode), _) => match mode.as_str() {
                "auto" => ToolChoice::Auto,
                "required" => ToolChoice::Required,
                "none" => ToolChoice::None,
                _ => return Err(malformed("", expected)),
            },
            (_, Some("allowed_tools")) => return allowed_tools(choice),
            (_, Some("function")) => named(choice, "function")?,
            (_, Some("custom")) => named(choice, "custom")?,
            // A built-in tool.
            (_, Some(kind)) if choice.get("function").is_none() => {
                let name = choice.get("name").and_then(Json::as_str);
                ToolChoice::Named(name.unwrap_or(kind).to_owned())
            }
            _ => return Err(malformed("", expected)),
        };
        Ok((choice, None))
    }
}

/// Error of a tool choice that is malformed or does not fit the tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolChoiceError {
    /// A value that a choice does not have.
    #[error("{pointer}: must be {expected}")]
    Malformed {
        /// JSON pointer into the request.
        pointer: String,
        /// What it must be.
        expected: &'static str,
    },
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
    /// use louver::limits::Limits;
    /// use louver::spec::json::Json;
    /// use louver_formats::ToolChoice;
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
            ToolChoiceError::Malformed { pointer, expected } => {
                (pointer, format!("must be {expected}"))
            }
            error => {
                ("/tool_choice", error.to_string().trim_start_matches("/tool_choice: ").to_owned())
            }
        }
    }
}

/// A list of names for messages.
fn known_list(known: &[String]) -> String {
    let names: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn malformed(below: &str, expected: &'static str) -> ToolChoiceError {
    ToolChoiceError::Malformed { pointer: format!("/tool_choice{below}"), expected }
}

/// A choice that names a tool of a type, wrapped or bare.
fn named(choice: &Json, kind: &'static str) -> Result<ToolChoice, ToolChoiceError> {
    let mut errors = Vec::new();
    let (below, inner, known) = match choice.get_non_null(kind) {
        None => (String::new(), choice, ["type", "name"]),
        Some(inner) => (format!("/{kind}"), inner, ["type", kind]),
    };
    let Json::Object(members) = inner else { return Err(malformed(&below, "an object")) };
    if !below.is_empty() {
        unknown_members(&format!("/tool_choice{below}"), members, &["name"], &mut errors);
    }
    if let Json::Object(outer) = choice {
        unknown_members("/tool_choice", outer, &known, &mut errors);
    }
    if let Some(error) = errors.into_iter().next() {
        return Err(error.into());
    }
    match members.get("name") {
        Some(Json::String(name)) => Ok(ToolChoice::Named(name.clone())),
        Some(_) => Err(malformed(&format!("{below}/name"), "a string")),
        None => Err(malformed(&below, "an object with `name`")),
    }
}

/// A choice among some of the tools. Chat Completions nests mode and list under `allowed_tools`,
/// Responses does not.
fn allowed_tools(choice: &Json) -> Result<(ToolChoice, Option<Vec<String>>), ToolChoiceError> {
    let (below, inner) = match choice.get_non_null("allowed_tools") {
        Some(inner) => ("/allowed_tools", inner),
        None => ("", choice),
    };
    let mode = match inner.get("mode").and_then(Json::as_str) {
        Some("auto") => ToolChoice::Auto,
        Some("required") => ToolChoice::Required,
        _ => return Err(malformed(&format!("{below}/mode"), "\"auto\" or \"required\"")),
    };
    let Some(tools) = inner.get("tools").and_then(Json::as_array) else {
        return Err(malformed(&format!("{below}/tools"), "an array"));
    };
    let names = tools.iter().enumerate().map(|(k, tool)| {
        allowed_name(tool)
            .ok_or_else(|| malformed(&format!("{below}/tools/{k}"), "a tool that has a name"))
    });
    Ok((mode, Some(names.collect::<Result<_, _>>()?)))
}

/// The name of an entry of `allowed_tools`.
fn allowed_name(tool: &Json) -> Option<String> {
    let nested = tool.pointer("/function/name").or_else(|| tool.pointer("/custom/name"));
    let name = nested.or_else(|| tool.get("name")).or_else(|| tool.get("type"));
    name.and_then(Json::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(choice: Value) -> Result<(ToolChoice, Option<Vec<String>>), ToolChoiceError> {
        ToolChoice::parse(&Json::from(choice))
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
            (json!({"type": "custom", "custom": {"name": "f"}}), named.clone()),
            (json!({"type": "custom", "name": "f"}), named.clone()),
            (json!({"type": "f"}), named.clone()),
            (json!({"type": "x", "name": "f"}), named.clone()),
        ] {
            assert_eq!(parsed(json), Ok((want, None)));
        }
        let allowed = json!({"mode": "required", "tools": [{"name": "f"}, {"type": "python"}]});
        let mut bare = allowed.clone();
        bare["type"] = "allowed_tools".into();
        let want = (ToolChoice::Required, Some(vec!["f".to_owned(), "python".to_owned()]));
        for json in [bare, json!({"type": "allowed_tools", "allowed_tools": allowed})] {
            assert_eq!(parsed(json), Ok(want.clone()));
        }
    }

    #[test]
    fn errors_have_pointers() {
        let allowed = |inner: Value| json!({"type": "allowed_tools", "allowed_tools": inner});
        for (json, pointer) in [
            (json!("any"), ""),
            (json!(1), ""),
            (json!({"name": "f"}), ""),
            (json!({"type": "function", "function": {}}), "/function"),
            (json!({"type": "function", "function": 1}), "/function"),
            (json!({"type": "function", "function": {"name": 1}}), "/function/name"),
            (json!({"type": "custom"}), ""),
            (json!({"type": "custom", "custom": {"name": null}}), "/custom/name"),
            (allowed(json!({"mode": "any", "tools": []})), "/allowed_tools/mode"),
            (allowed(json!({"mode": "auto", "tools": 1})), "/allowed_tools/tools"),
            (allowed(json!({"mode": "auto", "tools": ["f", 1]})), "/allowed_tools/tools/0"),
            (json!({"type": "allowed_tools", "mode": "any"}), "/mode"),
            // Members that a choice does not have.
            (json!({"type": "function", "function": {"name": "f"}, "x": 1}), "/x"),
            (json!({"type": "function", "function": {"name": "f"}, "name": 1}), "/name"),
            (json!({"type": "function", "name": "f", "mode": 1}), "/mode"),
            (
                json!({"type": "function", "function": {"name": "f", "strict": true}}),
                "/function/strict",
            ),
            (json!({"type": "custom", "custom": {"name": "f"}, "mode": "x"}), "/mode"),
        ] {
            let error = parsed(json.clone()).expect_err("malformed");
            assert_eq!(error.fault().0, format!("/tool_choice{pointer}"), "{json}");
        }
    }
}
