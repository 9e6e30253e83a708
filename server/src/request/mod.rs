//! Parsing of request bodies: typed members, every fault with its JSON pointer.

pub(crate) mod call_history;
pub(crate) mod foreign_members;
pub(crate) mod member_table;
pub(crate) mod members;
pub(crate) mod messages;
pub(crate) mod options;
pub(crate) mod pointers;
pub(crate) mod structure;
pub(crate) mod template;

use louver::spec::json::{Json, Number, Object};
use serde_json::Value;

/// Converts to `serde_json`, which templates take. Numbers that do not fit 64 bits are rounded.
/// Recursive; bodies have bounded depth.
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

/// An object. The members' names must be distinct.
pub(crate) fn object<N: Into<String>>(members: impl IntoIterator<Item = (N, Json)>) -> Json {
    let members = members.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Json::Object(Object::new(members).unwrap_or_default())
}

/// `members` with `name` set to `value`, as the last member.
pub(crate) fn replace_member(members: &Object, name: &str, value: Json) -> Json {
    let others = members.iter().filter(|(other, _)| *other != name);
    object(others.map(|(other, value)| (other, value.clone())).chain([(name, value)]))
}

/// A JSON string.
pub(crate) fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn to_number(number: &Number) -> Value {
    let text = number.as_str();
    // A number outside every number type is shown as text.
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::json;

    use super::*;

    #[test]
    fn large_numbers_are_rounded_or_shown_as_text() {
        let json =
            Json::parse("[1, -5, 18446744073709551616, 1e999, 0.1]", &Limits::default()).unwrap();
        assert_eq!(to_value(&json), json!([1, -5, 18_446_744_073_709_551_616_f64, "1e999", 0.1]));
    }
}
