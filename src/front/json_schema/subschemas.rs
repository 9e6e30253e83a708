//! Positions of subschemas: which keywords of a schema hold schemas, and which are annotations.

/// What a JSON value within a schema document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    /// A schema.
    Schema,
    /// An array of schemas.
    SchemaList,
    /// A schema, or an array of schemas.
    SchemaOrList,
    /// An object of schemas with arbitrary names.
    SchemaMap,
    /// Data: constants, and values of unknown keywords.
    Data,
}

/// What the value of a keyword is.
pub(super) fn keyword_position(keyword: &str) -> SchemaPosition {
    match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => SchemaPosition::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => SchemaPosition::SchemaList,
        "items" => SchemaPosition::SchemaOrList,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => SchemaPosition::SchemaMap,
        _ => SchemaPosition::Data,
    }
}

/// Whether a keyword is an annotation in every dialect.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "$comment"
            | "title"
            | "description"
            | "examples"
            | "default"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
    )
}
