//! The tool choice of a request: whether tools must be called, and which.

use louver::spec::json::Json;

use super::members::{MemberError, MemberErrorKind, unknown_members};

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

/// The forms of a choice.
const CHOICES: &str = "\"auto\", \"required\", \"none\", \
    {\"type\":\"function\",\"function\":{\"name\":..}} or {\"type\":\"function\",\"name\":..} \
    (of custom tools with \"custom\"), or \
    {\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":..,\"tools\":[..]}}";

impl ToolChoice {
    /// Parses a request's `tool_choice`; `null` is `auto`. Also returns the names of the tools that
    /// may be called (`None`: all tools). Fails with all errors. Cost: linear.
    pub fn parse(choice: &Json) -> Result<(ToolChoice, Option<Vec<String>>), Vec<ToolChoiceError>> {
        let mut errors = Vec::new();
        let kind = choice.get("type").and_then(Json::as_str);
        let parsed = match (choice.as_str(), kind) {
            _ if *choice == Json::Null => (ToolChoice::Auto, None),
            (Some("auto"), _) => (ToolChoice::Auto, None),
            (Some("required"), _) => (ToolChoice::Required, None),
            (Some("none"), _) => (ToolChoice::None, None),
            (Some("any"), _) => {
                errors.push(malformed("", "\"required\", which other APIs call \"any\""));
                (ToolChoice::Auto, None)
            }
            (_, Some("allowed_tools")) => allowed_tools(choice, &mut errors),
            (_, Some("function")) => (named(choice, "function", &mut errors), None),
            (_, Some("custom")) => (named(choice, "custom", &mut errors), None),
            (_, Some(kind @ ("auto" | "required" | "any" | "none"))) => {
                errors.push(malformed(
                    "",
                    match kind {
                        "auto" => "the text \"auto\"",
                        "none" => "the text \"none\"",
                        _ => "the text \"required\"",
                    },
                ));
                (ToolChoice::Auto, None)
            }
            // A built-in tool.
            (_, Some(kind)) if choice.get("function").is_none() => {
                check_members("", choice, &["type", "name"], &mut errors);
                let name = choice.get("name").and_then(Json::as_str);
                (ToolChoice::Named(name.unwrap_or(kind).to_owned()), None)
            }
            _ => {
                errors.push(malformed("", CHOICES));
                (ToolChoice::Auto, None)
            }
        };
        if errors.is_empty() { Ok(parsed) } else { Err(errors) }
    }
}

/// Error of a tool choice that is malformed or does not fit the tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolChoiceError {
    /// An error of a member.
    #[error(transparent)]
    Member(#[from] MemberError),
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

/// A list of names for messages.
fn known_list(known: &[String]) -> String {
    let names: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn malformed(below: &str, expected: &'static str) -> ToolChoiceError {
    let kind = MemberErrorKind::Expected(expected);
    MemberError::new(format!("/tool_choice{below}"), kind).into()
}

/// Reports the members of the choice, or of an object below it, that are not in `known`.
fn check_members(
    below: &str,
    value: &Json,
    known: &[&'static str],
    errors: &mut Vec<ToolChoiceError>,
) {
    let Json::Object(members) = value else { return };
    let mut found = Vec::new();
    unknown_members(&format!("/tool_choice{below}"), members, known, &mut found);
    errors.extend(found.into_iter().map(ToolChoiceError::from));
}

/// The object with the members of a choice, which may stand under `wrapper`, and its pointer below
/// the choice. Reports the members that are neither of the choice nor in `known`.
fn unwrapped<'a>(
    choice: &'a Json,
    wrapper: &'static str,
    known: &[&'static str],
    errors: &mut Vec<ToolChoiceError>,
) -> (String, &'a Json) {
    let Some(inner) = choice.get_non_null(wrapper) else {
        check_members("", choice, &[&["type"], known].concat(), errors);
        return (String::new(), choice);
    };
    let below = format!("/{wrapper}");
    check_members("", choice, &["type", wrapper], errors);
    check_members(&below, inner, known, errors);
    (below, inner)
}

/// A choice that names a tool of a type, wrapped or bare.
fn named(choice: &Json, kind: &'static str, errors: &mut Vec<ToolChoiceError>) -> ToolChoice {
    let (below, inner) = unwrapped(choice, kind, &["name"], errors);
    let error = match (inner, inner.get("name")) {
        (_, Some(Json::String(name))) => return ToolChoice::Named(name.clone()),
        (Json::Object(_), Some(_)) => malformed(&format!("{below}/name"), "a string"),
        (Json::Object(_), None) => malformed(&below, "an object with `name`"),
        _ => malformed(&below, "an object"),
    };
    errors.push(error);
    ToolChoice::Auto
}

/// A choice among some of the tools. Chat Completions nests mode and list under `allowed_tools`,
/// Responses does not.
fn allowed_tools(
    choice: &Json,
    errors: &mut Vec<ToolChoiceError>,
) -> (ToolChoice, Option<Vec<String>>) {
    let (below, inner) = unwrapped(choice, "allowed_tools", &["mode", "tools"], errors);
    let mode = match inner.get("mode").and_then(Json::as_str) {
        Some("auto") => ToolChoice::Auto,
        Some("required") => ToolChoice::Required,
        _ => {
            errors.push(malformed(&format!("{below}/mode"), "\"auto\" or \"required\""));
            ToolChoice::Auto
        }
    };
    let Some(tools) = inner.get("tools").and_then(Json::as_array) else {
        errors.push(malformed(&format!("{below}/tools"), "an array"));
        return (mode, None);
    };
    let mut names = Vec::new();
    for (k, tool) in tools.iter().enumerate() {
        match allowed_name(tool) {
            Some(name) => names.push(name),
            None => errors.push(malformed(&format!("{below}/tools/{k}"), "a tool that has a name")),
        }
    }
    (mode, Some(names))
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

    fn parsed(choice: Value) -> Result<(ToolChoice, Option<Vec<String>>), Vec<ToolChoiceError>> {
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
        for (json, pointers) in [
            (json!("any"), &[""][..]),
            (json!({"type": "any"}), &[""]),
            (json!({"type": "required"}), &[""]),
            (json!(1), &[""]),
            (json!({"name": "f"}), &[""]),
            (json!({"type": "function", "function": {}}), &["/function"]),
            (json!({"type": "function", "function": 1}), &["/function"]),
            (json!({"type": "function", "function": {"name": 1}}), &["/function/name"]),
            (json!({"type": "custom"}), &[""]),
            (json!({"type": "custom", "custom": {"name": null}}), &["/custom/name"]),
            (allowed(json!({"mode": "any", "tools": []})), &["/allowed_tools/mode"]),
            (allowed(json!({"mode": "auto", "tools": 1})), &["/allowed_tools/tools"]),
            (
                allowed(json!({"mode": "auto", "tools": [{"name": "f"}, 1]})),
                &["/allowed_tools/tools/1"],
            ),
            (json!({"type": "allowed_tools", "mode": "any"}), &["/mode", "/tools"]),
            // Members that a choice does not have.
            (json!({"type": "function", "function": {"name": "f"}, "x": 1}), &["/x"]),
            (json!({"type": "function", "function": {"name": "f"}, "name": 1}), &["/name"]),
            (json!({"type": "function", "name": "f", "mode": 1}), &["/mode"]),
            (
                json!({"type": "function", "function": {"name": "f", "strict": true}, "x": 1}),
                &["/x", "/function/strict"],
            ),
            (json!({"type": "custom", "custom": {"name": "f"}, "mode": "x"}), &["/mode"]),
            (json!({"type": "python", "strict": true}), &["/strict"]),
            (allowed(json!({"mode": "auto", "tools": [], "x": 1})), &["/allowed_tools/x"]),
            (json!({"type": "allowed_tools", "mode": "auto", "tools": [], "x": 1}), &["/x"]),
        ] {
            let errors = parsed(json.clone()).expect_err("malformed");
            let found: Vec<&str> = errors
                .iter()
                .map(|error| match error {
                    ToolChoiceError::Member(error) => &*error.pointer,
                    other => panic!("{other}"),
                })
                .collect();
            let expected: Vec<String> =
                pointers.iter().map(|p| format!("/tool_choice{p}")).collect();
            assert_eq!(found, expected, "{json}");
        }
    }
}
