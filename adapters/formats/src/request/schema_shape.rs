//! Objects that are given in place of a JSON Schema by mistake. As schemas they would allow any
//! value, as names that are not keywords constrain nothing.

use louver::front::json_schema::JsonTypes;
use louver::spec::json::{Json, Object};

/// What is expected in place of a value that is not a schema; `in_properties` in place of a map of
/// properties.
pub(super) fn expected_instead(value: &Json, in_properties: &'static str) -> Option<&'static str> {
    match value {
        Json::Object(members) if is_wrapper(members) => {
            Some("a JSON Schema, without another object around it")
        }
        Json::Object(members) if is_properties_object(members) => Some(in_properties),
        Json::Object(_) | Json::Bool(_) => None,
        _ => Some("a JSON Schema"),
    }
}

/// Whether an object looks like the value of `properties` rather than a schema: its values are
/// objects with a type, or names of types, and none of its names is a keyword.
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
    /// Keywords whose value is a text.
    const TEXTS: [&str; 5] = ["title", "description", "default", "format", "pattern"];
    let is_type = |value: &Json| value.as_str().and_then(JsonTypes::named).is_some();
    let is_declaration = |(name, value): (&str, &Json)| {
        !KEYWORDS.contains(&name)
            && name != "type"
            && !name.starts_with('$')
            && (value.get("type").is_some() || is_type(value) && !TEXTS.contains(&name))
    };
    !members.is_empty() && members.iter().all(is_declaration)
}

/// Whether an object holds a schema beside its name, as the `json_schema` of a `response_format`.
fn is_wrapper(members: &Object) -> bool {
    const BESIDE: [&str; 4] = ["name", "title", "description", "strict"];
    let is_object = |value: &Json| value.as_object().is_some();
    let is_inner =
        |(name, value): (&str, &Json)| matches!(name, "schema" | "json_schema") && is_object(value);
    let is_beside = |(name, value): (&str, &Json)| {
        BESIDE.contains(&name) && !is_object(value)
            || name == "type" && value.as_str() == Some("json_schema")
    };
    members.iter().any(is_inner) && members.iter().all(|m| is_inner(m) || is_beside(m))
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    #[test]
    fn what_is_no_schema_is_told_from_schemas() {
        for (text, is_properties, is_wrapped) in [
            (r#"{"city": {"type": "string"}, "days": "integer"}"#, true, false),
            (r#"{"name": {"type": "string"}, "schema": {"type": "string"}}"#, true, false),
            (r#"{"name": "x", "strict": true, "schema": {}}"#, false, true),
            (r#"{"type": "json_schema", "json_schema": {"schema": {}}}"#, false, true),
            (r#"{"type": "object", "schema": {}}"#, false, false),
            (r#"{"type": "object"}"#, false, false),
            (r#"{"items": {"type": "string"}}"#, false, false),
            (r#"{"title": "string", "description": "a number"}"#, false, false),
            ("{}", false, false),
        ] {
            let json = Json::parse(text, &Limits::default()).unwrap();
            let members = json.as_object().unwrap();
            assert_eq!(is_wrapper(members), is_wrapped, "{text}");
            assert_eq!(is_properties_object(members), is_properties, "{text}");
        }
    }
}
