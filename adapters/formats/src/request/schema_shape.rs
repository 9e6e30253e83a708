//! Objects that are given in place of a JSON Schema by mistake. As schemas they would allow any
//! value, as names that are no keywords constrain nothing.

use louver::spec::json::{Json, Object};

/// What is expected in place of a wrapper.
pub(super) const WRAPPED: &str = "a JSON Schema, without another object around it";

/// Whether an object looks like the value of `properties` rather than a schema: its values are
/// objects with a type, or names of types, and none of its names is a keyword.
pub(super) fn is_properties_object(members: &Object) -> bool {
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
    const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let is_type = |value: &Json| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_declaration = |(name, value): (&str, &Json)| {
        !KEYWORDS.contains(&name)
            && name != "type"
            && !name.starts_with('$')
            && (value.get("type").is_some() || is_type(value))
    };
    !members.is_empty() && members.iter().all(is_declaration)
}

/// Whether an object holds a schema beside its name, as the `json_schema` of a `response_format`.
pub(super) fn is_wrapper(members: &Object) -> bool {
    const BESIDE: [&str; 4] = ["name", "title", "description", "strict"];
    let is_inner = |name: &str| ["schema", "json_schema"].contains(&name);
    let is_object = |value: &Json| value.as_object().is_some();
    let is_kind =
        |name: &str, value: &Json| name == "type" && value.as_str() == Some("json_schema");
    members.iter().any(|(name, value)| is_inner(name) && is_object(value))
        && members
            .iter()
            .all(|(name, value)| is_inner(name) || BESIDE.contains(&name) || is_kind(name, value))
}
