//! What an unconstrained model said, read as a lenient parser would: for showing what breaks.

use serde_json::Value;

/// Something between the markers of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// JSON with a name and arguments.
    Call {
        /// The tool's name.
        name: String,
        /// The arguments.
        arguments: Value,
    },
    /// Anything else.
    Broken(String),
}

const BEGIN: &str = "<tool_call>";
const END: &str = "</tool_call>";

/// Every block that begins like a call in the Hermes and Qwen3 formats.
pub(super) fn calls(text: &str) -> Vec<Found> {
    let blocks = text.split(BEGIN).skip(1);
    blocks
        .map(|rest| match rest.split_once(END) {
            None => Found::Broken(format!("{BEGIN} without {END}")),
            Some((body, _)) => match serde_json::from_str::<Value>(body.trim()) {
                Err(error) => Found::Broken(format!("not JSON: {error}")),
                Ok(call) => match (call["name"].as_str(), call.get("arguments")) {
                    (Some(name), Some(arguments)) => {
                        Found::Call { name: name.to_owned(), arguments: arguments.clone() }
                    }
                    _ => Found::Broken("JSON without a name or arguments".to_owned()),
                },
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks() {
        let text = "a<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>b<tool_call>{</tool_call>\
                    <tool_call>[]</tool_call><tool_call>{}";
        let found = calls(text);
        assert_eq!(found[0], Found::Call { name: "f".to_owned(), arguments: json!({"x": 1}) });
        assert_eq!(found.len(), 4);
        assert!(found[1..].iter().all(|f| matches!(f, Found::Broken(_))));
        assert_eq!(calls("nothing"), []);
    }
}
