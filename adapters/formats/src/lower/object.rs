//! The constraint that the protocol adds to a tool's schema: arguments are an object.

use std::borrow::Cow;

use louver::front::json_schema::{
    Dialect, JsonTypes, SchemaError, SchemaErrorReason, SchemaErrors,
};
use louver::spec::json::{Json, Object};

/// The schema with `type: object` added. Fails if its `type` excludes objects. A malformed `type`
/// is left to the parser of schemas. Cost: a copy of the schema, unless it has `type: object`.
pub(crate) fn and_object(schema: &Json, dialect: Dialect) -> Result<Cow<'_, Json>, SchemaErrors> {
    let members = match schema {
        Json::Bool(true) => &Object::default(),
        Json::Object(members) => members,
        _ => return Ok(Cow::Borrowed(schema)),
    };
    let names: Option<Vec<&str>> = match members.get("type") {
        None => None,
        Some(Json::String(name)) => Some(vec![name]),
        Some(Json::Array(names)) => {
            Some(names.iter().map(|name| name.as_str().unwrap_or_default()).collect())
        }
        Some(_) => return Ok(Cow::Borrowed(schema)),
    };
    let exclusive_reference = exclusive_reference(members, dialect);
    if matches!(names.as_deref(), Some(["object"])) && exclusive_reference.is_none()
        || names.iter().flatten().any(|name| JsonTypes::named(name).is_none())
    {
        return Ok(Cow::Borrowed(schema));
    }
    if names.is_some_and(|names| !names.contains(&"object")) {
        let reason = SchemaErrorReason::Unsatisfiable(
            "arguments are an object, which this type excludes".into(),
        );
        let error = SchemaError { pointer: "/type".into(), keyword: "type".into(), reason };
        return Err(SchemaErrors(vec![error]));
    }
    let mut out = vec![("type".to_owned(), Json::String("object".to_owned()))];
    let replaced = |name: &str| {
        name == "type" || exclusive_reference.is_some() && ["$ref", "allOf"].contains(&name)
    };
    let kept = members.iter().filter(|(name, _)| !replaced(name));
    out.extend(kept.map(|(name, value)| (name.to_owned(), value.clone())));
    if let Some(reference) = exclusive_reference {
        let reference =
            Object::new(vec![("$ref".to_owned(), reference.clone())]).unwrap_or_default();
        out.push(("allOf".to_owned(), Json::Array(vec![Json::Object(reference)])));
    }
    Ok(Cow::Owned(Json::Object(Object::new(out).unwrap_or_default())))
}

/// The `$ref` of a schema, in dialects that ignore all keywords beside it.
fn exclusive_reference(members: &Object, dialect: Dialect) -> Option<&Json> {
    let is_old = match members.get("$schema").and_then(Json::as_str) {
        Some(uri) => uri.contains("draft-0"),
        None => dialect < Dialect::Draft201909,
    };
    members.get("$ref").filter(|_| is_old)
}
