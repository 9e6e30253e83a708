//! Validation of instances with the `jsonschema` crate: what relaxed keywords leave to be checked.

use louver::front::json_schema::{Dialect, Formats, Policy, Registry, SchemaOptions};
use serde_json::Value;

/// Builds a validator of a schema that reads it as the options say. `Err`: why there is none.
pub(crate) fn build(
    schema: &Value,
    registry: &Registry,
    options: &SchemaOptions,
) -> Result<jsonschema::Validator, String> {
    let mut builder =
        jsonschema::options().should_validate_formats(options.formats != Formats::Annotate);
    if schema.get("$schema").is_none() {
        builder = builder.with_draft(match options.dialect {
            Dialect::Draft4 => jsonschema::Draft::Draft4,
            Dialect::Draft6 => jsonschema::Draft::Draft6,
            Dialect::Draft7 => jsonschema::Draft::Draft7,
            Dialect::Draft201909 => jsonschema::Draft::Draft201909,
            Dialect::Draft202012 => jsonschema::Draft::Draft202012,
            other => return Err(format!("there is no validator for the dialect {other:?}")),
        });
    }
    for (uri, document) in registry.iter() {
        let read = serde_json::from_str(&document.to_string()).map_err(|error| error.to_string());
        let resource = jsonschema::Resource::from_contents(read?);
        let resource = resource.map_err(|error| error.to_string())?;
        builder = builder.with_resource(louver_formats::validator_uri(uri), resource);
    }
    builder.build(schema).map_err(|error| format!("the schema has no validator: {error}"))
}

/// Reads a schema as the validator sees it. `Err`: its numbers do not fit, say.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("the schema has no validator: {error}"))
}

/// The validator of a schema with relaxed keywords, under the policy `validate`.
pub(crate) fn of_relaxed(
    text: &str,
    registry: &Registry,
    options: &SchemaOptions,
    is_relaxed: bool,
) -> Option<Result<jsonschema::Validator, String>> {
    let build_relaxed = || build(&read(text)?, registry, options);
    (options.policy == Policy::Validate && is_relaxed).then(build_relaxed)
}
