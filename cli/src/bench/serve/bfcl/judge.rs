//! Comparison of calls with the expected ones, as in the Berkeley Function Calling Leaderboard: by
//! value, not by text.

use louver_mistralrs::Call;
use serde_json::Value;

use super::cases::ExpectedCall;

/// Whether the calls are the expected ones, in any order.
pub(super) fn matches(expected: &[ExpectedCall], calls: &[Call], tools: &Value) -> bool {
    if expected.len() != calls.len() {
        return false;
    }
    let mut open: Vec<&ExpectedCall> = expected.iter().collect();
    calls.iter().all(|call| {
        let found = open.iter().position(|expected| is_same_call(expected, call, tools));
        found.map(|at| open.swap_remove(at)).is_some()
    })
}

/// Whether name and arguments are the same. An argument that is missing on one side counts as the
/// schema's default.
fn is_same_call(expected: &ExpectedCall, call: &Call, tools: &Value) -> bool {
    let Ok(Value::Object(made)) = serde_json::from_str(&call.arguments) else { return false };
    let Some(wanted) = expected.arguments.as_object() else { return false };
    let function = tools.as_array().into_iter().flatten().map(|tool| &tool["function"]);
    let function = function.into_iter().find(|function| function["name"] == expected.name);
    let default =
        |name: &str| function?.pointer("/parameters/properties")?.get(name)?.get("default");
    expected.name == call.name
        && wanted.keys().chain(made.keys()).all(|name| {
            let one = wanted.get(name).or_else(|| default(name));
            let other = made.get(name).or_else(|| default(name));
            matches!((one, other), (Some(one), Some(other)) if is_same(one, other))
        })
}

/// Whether two values are the same: numbers by value, texts without case, spaces and punctuation.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::String(one), Value::String(other)) => plain(one) == plain(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, a)| other.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => one == other,
    }
}

/// A text as it is compared.
fn plain(text: &str) -> String {
    let is_kept = |c: &char| !c.is_whitespace() && !",./-_*^'\"".contains(*c);
    text.chars().filter(is_kept).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_compared_by_value() {
        let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {
            "type": "object",
            "properties": {"a": {}, "unit": {"type": "string", "default": "cm"}},
        }}}]);
        let call = |name: &str, arguments: Value| Call::new(name, arguments.to_string());
        let expected = |arguments: Value| ExpectedCall { name: "f".to_owned(), arguments };
        for (wanted, made, same) in [
            (json!({"a": 1}), json!({"a": 1.0}), true),
            (json!({"a": 1}), json!({"a": "1"}), false),
            (json!({"a": "New York, NY"}), json!({"a": "new york ny"}), true),
            (json!({"a": [1, "x"]}), json!({"a": [1, "X"]}), true),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]}), false),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), false),
            (json!({"a": 1}), json!({"a": 1, "unit": "cm"}), true),
            (json!({"a": 1, "unit": "cm"}), json!({"a": 1}), true),
            (json!({"a": 1}), json!({"a": 1, "unit": "m"}), false),
            (json!({"a": 1}), json!({}), false),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
        ] {
            let found = matches(&[expected(wanted.clone())], &[call("f", made.clone())], &tools);
            assert_eq!(found, same, "{wanted} {made}");
        }
        let two = [expected(json!({"a": 1})), expected(json!({"a": 2}))];
        let (one, other) = (call("f", json!({"a": 2})), call("f", json!({"a": 1})));
        assert!(matches(&two, &[one.clone(), other.clone()], &tools));
        assert!(!matches(&two, &[one.clone(), one.clone()], &tools));
        assert!(!matches(&two, &[one], &tools));
        assert!(!matches(&two[..1], &[call("g", json!({"a": 1}))], &tools));
    }
}
