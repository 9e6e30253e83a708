//! JSON in templates: values that keep the order of members, and the filter `tojson` as used in
//! model training (Python's `json.dumps(value, ensure_ascii=False)`, without HTML escapes).

use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, Value, ValueKind};
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

/// Converts a JSON value to a template value.
pub(crate) fn to_template(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            Value::from_object(JsonObject(json.clone()))
        }
        leaf => Value::from_serialize(leaf),
    }
}

/// A JSON array or object as a template object.
#[derive(Debug)]
struct JsonObject(serde_json::Value);

impl Object for JsonObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.0.is_array() { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let found = match &self.0 {
            serde_json::Value::Array(items) => items.get(key.as_usize()?),
            object => object.get(key.as_str()?),
        };
        found.map(to_template)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match &self.0 {
            serde_json::Value::Array(items) => Enumerator::Seq(items.len()),
            serde_json::Value::Object(members) => {
                Enumerator::Values(members.keys().map(|key| Value::from(key.as_str())).collect())
            }
            _ => Enumerator::Empty,
        }
    }
}

/// The filter `tojson`. It honours `indent`; Python's other options are accepted and ignored.
pub(crate) fn tojson(value: &Value, options: Kwargs) -> Result<Value, minijinja::Error> {
    let failed =
        |error: String| minijinja::Error::new(minijinja::ErrorKind::BadSerialization, error);
    let indent: Option<usize> =
        options.get::<Option<Value>>("indent")?.and_then(|indent| indent.as_usize());
    let plain = to_json(value).map_err(|error| failed(error.to_string()))?;
    let text = match indent {
        None => louver_formats::python_json(&plain),
        Some(width) => {
            let indent = b" ".repeat(width.min(16));
            let mut out = Vec::new();
            let mut serializer =
                Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(&indent));
            plain.serialize(&mut serializer).map_err(|error| failed(error.to_string()))?;
            String::from_utf8(out).map_err(|error| failed(error.to_string()))?
        }
    };
    Ok(Value::from_safe_string(text))
}

/// Converts a template value to JSON, with the order of members.
fn to_json(value: &Value) -> Result<serde_json::Value, serde_json::Error> {
    if let Some(json) = value.downcast_object_ref::<JsonObject>() {
        return Ok(json.0.clone());
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value
            .try_iter()
            .map(|items| items.map(|item| to_json(&item)).collect())
            .unwrap_or(Ok(().into())),
        ValueKind::Map => {
            let keys: Vec<Value> = value.try_iter().map(Iterator::collect).unwrap_or_default();
            let member = |key: &Value| {
                Ok((key.to_string(), to_json(&value.get_item(key).unwrap_or_default())?))
            };
            keys.iter()
                .map(member)
                .collect::<Result<serde_json::Map<_, _>, _>>()
                .map(serde_json::Value::Object)
        }
        _ => serde_json::to_value(value),
    }
}
