//! Members of request bodies -> what a turn needs, every fault with its JSON pointer.

pub(crate) mod members;
pub(crate) mod messages;
pub(crate) mod options;
pub(crate) mod places;
pub(crate) mod structure;
pub(crate) mod unknown;

use louver::spec::json::{Json, Number, Object};
use serde_json::Value;

/// A value as templates take it. Numbers that 64 bits cannot hold are rounded there. Recursive: bodies are of bounded depth.
pub(crate) fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => to_number(number),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => items.iter().map(to_value).collect(),
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.to_owned(), to_value(value))).collect()
        }
    }
}

/// An object of members whose names are distinct.
pub(crate) fn object(members: Vec<(String, Json)>) -> Json {
    Json::Object(Object::new(members).unwrap_or_default())
}

/// A string.
pub(crate) fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn to_number(number: &Number) -> Value {
    let text = number.as_str();
    // Beyond what any number type holds, its text is all there is to show.
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_any_size() {
        let json =
            Json::parse("[1, -5, 18446744073709551616, 1e999, 0.1]", &Limits::default()).unwrap();
        assert_eq!(to_value(&json), json!([1, -5, 18_446_744_073_709_551_616_f64, "1e999", 0.1]));
    }
}
