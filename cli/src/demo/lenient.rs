//! Lenient parsing of unconstrained output, to show what breaks without Louver.

use serde_json::Value;

/// A block between call markers.
#[derive(Debug, PartialEq)]
pub(super) enum ParsedBlock {
    /// A call: JSON with a name and arguments.
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

/// Parses every block that begins like a call in the Hermes or Qwen3 format.
pub(super) fn calls(text: &str) -> Vec<ParsedBlock> {
    let blocks = text.split(BEGIN).skip(1);
    blocks
        .map(|rest| match rest.split_once(END) {
            None => ParsedBlock::Broken(format!("{BEGIN} without {END}")),
            Some((body, _)) => match serde_json::from_str::<Value>(body.trim()) {
                Err(error) => ParsedBlock::Broken(format!("not JSON: {error}")),
                Ok(call) => match (call["name"].as_str(), call.get("arguments")) {
                    (Some(name), Some(arguments)) => {
                        ParsedBlock::Call { name: name.to_owned(), arguments: arguments.clone() }
                    }
                    _ => ParsedBlock::Broken("JSON without a name or arguments".to_owned()),
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
    fn call_blocks_are_parsed() {
        let text = "a<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>b<tool_call>{</tool_call>\
                    <tool_call>[]</tool_call><tool_call>{}";
        let blocks = calls(text);
        assert_eq!(
            blocks[0],
            ParsedBlock::Call { name: "f".to_owned(), arguments: json!({"x": 1}) }
        );
        assert_eq!(blocks.len(), 4);
        assert!(blocks[1..].iter().all(|f| matches!(f, ParsedBlock::Broken(_))));
        assert_eq!(calls("nothing"), []);
    }
}
