//! Random chat requests of every kind, and validation of their responses.

use anyhow::Result;
use jsonschema::Validator;
use louver::internals::SplitMix64;
use serde_json::{Value, json};

use super::client::ChatResponse;

/// Default limit of a generation, in tokens.
pub(super) const MAX_TOKENS: u32 = 200;

/// The kind of tool choice of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChoiceKind {
    Auto,
    Required,
    Named,
    Allowed,
    None,
    /// No tools, a response format.
    ChatResponse,
}

impl ChoiceKind {
    pub(super) const ALL: [ChoiceKind; 6] = [
        ChoiceKind::Auto,
        ChoiceKind::Required,
        ChoiceKind::Named,
        ChoiceKind::Allowed,
        ChoiceKind::None,
        ChoiceKind::ChatResponse,
    ];
}

/// Generates requests; holds sets of tools with their validators.
pub(super) struct CaseGenerator {
    sets: Vec<Vec<Tool>>,
    response: (Value, Validator),
}

struct Tool {
    name: String,
    parameters: Value,
    validator: Validator,
}

/// A request and the requirements on its response.
#[derive(Clone, Debug)]
pub(super) struct ChatCase {
    /// The request's body, without streaming.
    pub(super) body: Value,
    set: usize,
    choice: ChoiceKind,
    /// The tools that may be called.
    callable: Vec<String>,
    max_calls: Option<usize>,
}

impl ChatCase {
    /// The body, with or without streaming.
    pub(super) fn body(&self, stream: bool) -> Value {
        let mut body = self.body.clone();
        body["stream"] = stream.into();
        if stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        body
    }
}

fn object(properties: Value) -> Value {
    let required: Vec<&String> =
        properties.as_object().into_iter().flat_map(|members| members.keys()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Typical tool schemas. All are bounded, so that random output ends.
fn sets() -> Vec<Vec<(&'static str, Value)>> {
    let city = json!({"enum": ["Oslo", "Lima", "Nairobi"]});
    vec![
        vec![
            (
                "weather",
                object(
                    json!({"city": city, "days": {"type": "integer", "minimum": 1, "maximum": 14}}),
                ),
            ),
            (
                "book",
                object(json!({
                    "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, "breakfast": {"type": "boolean"},
                })),
            ),
        ],
        vec![
            (
                "search",
                object(json!({
                    "words": {"type": "array", "items": {"enum": ["rain", "wind", "sun"]}, "minItems": 1, "maxItems": 3},
                    "limit": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1, "maximum": 50}]},
                })),
            ),
            ("now", object(json!({}))),
            (
                "note",
                object(
                    json!({"text": {"type": "string", "maxLength": 12}, "due": {"type": "string", "format": "date"}}),
                ),
            ),
        ],
        vec![
            (
                "route",
                object(json!({
                    "from": object(json!({"city": city, "gate": {"type": "integer", "minimum": 1, "maximum": 99}})),
                    "to": object(json!({"city": city})),
                    "by": {"oneOf": [{"const": "train"}, {"const": "boat"}]},
                })),
            ),
            (
                "rate",
                json!({
                    "type": "object",
                    "properties": {"stars": {"type": "integer", "minimum": 1, "maximum": 5}, "why": {"type": "string", "maxLength": 8}},
                    "required": ["stars"], "additionalProperties": false,
                }),
            ),
        ],
    ]
}

impl CaseGenerator {
    pub(super) fn new() -> Result<CaseGenerator> {
        let tool = |(name, parameters): (&str, Value)| {
            let validator = jsonschema::validator_for(&parameters)?;
            Ok(Tool { name: name.to_owned(), parameters, validator })
        };
        let sets =
            sets().into_iter().map(|set| set.into_iter().map(tool).collect::<Result<Vec<_>>>());
        let response = object(json!({
            "city": {"enum": ["Oslo", "Lima"]},
            "score": {"type": "integer", "minimum": -3, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        }));
        let validator = jsonschema::validator_for(&response)?;
        Ok(CaseGenerator { sets: sets.collect::<Result<_>>()?, response: (response, validator) })
    }

    /// Generates a request to a model with a token limit. The same random state gives the same
    /// request.
    pub(super) fn case(
        &self,
        model: &str,
        choice: ChoiceKind,
        max_tokens: u32,
        random: &mut SplitMix64,
    ) -> ChatCase {
        let set = random.below(self.sets.len());
        let tools = &self.sets[set];
        let one = &tools[random.below(tools.len())].name;
        let all = || tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let only = || vec![one.clone()];
        let function = json!({"type": "function", "function": {"name": one}});
        let (tool_choice, callable) = match choice {
            ChoiceKind::Auto => (json!("auto"), all()),
            ChoiceKind::Required => (json!("required"), all()),
            ChoiceKind::Named => (function, only()),
            ChoiceKind::Allowed => {
                let allowed = json!({"mode": "required", "tools": [function]});
                (json!({"type": "allowed_tools", "allowed_tools": allowed}), only())
            }
            ChoiceKind::None | ChoiceKind::ChatResponse => (json!("none"), Vec::new()),
        };
        let single = random.below(3) == 0;
        let mut body = json!({
            "model": model,
            "messages": [{"role": "user", "content": "Plan a day in Oslo."}],
            "max_completion_tokens": max_tokens,
            "seed": random.next_u64() >> 12,
            "reasoning_effort": "none",
            "louver": {"whitespace": "python_like"},
        });
        if choice == ChoiceKind::ChatResponse {
            let schema = json!({"name": "answer", "strict": true, "schema": self.response.0});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        } else {
            let shown = tools.iter().map(|tool| {
                json!({"type": "function", "function": {"name": tool.name, "parameters": tool.parameters, "strict": true}})
            });
            body["tools"] = shown.collect();
            body["tool_choice"] = tool_choice;
            if single {
                body["parallel_tool_calls"] = false.into();
            }
        }
        ChatCase { body, set, choice, callable, max_calls: single.then_some(1) }
    }

    /// The fault of a response, if any. `stream`: whether it was streamed, so that the last call
    /// may be truncated.
    pub(super) fn fault(
        &self,
        case: &ChatCase,
        response: &ChatResponse,
        stream: bool,
    ) -> Option<String> {
        if response.status != 200 || response.error.is_some() {
            return Some(format!("status {}: {:?}", response.status, response.error));
        }
        let Some(finish) = response.finish.as_deref() else {
            return Some("no finish reason".to_owned());
        };
        let is_truncated = finish == "length";
        if !is_truncated && finish != "stop" && finish != "tool_calls" {
            return Some(format!("finish reason {finish}"));
        }
        if case.choice == ChoiceKind::ChatResponse {
            return invalid(&self.response.1, &response.text)
                .map(|fault| format!("the answer {:?}: {fault}", response.text));
        }
        for (index, call) in response.calls.iter().enumerate() {
            let tools = &self.sets[case.set];
            let tool = tools
                .iter()
                .find(|tool| tool.name == call.name && case.callable.contains(&tool.name));
            let Some(tool) = tool else { return Some(format!("a call of {:?}", call.name)) };
            let last = index + 1 == response.calls.len();
            if let Some(fault) = invalid(&tool.validator, &call.arguments)
                && !(stream && is_truncated && last)
            {
                return Some(format!("{}({}): {fault}", call.name, call.arguments));
            }
        }
        if case.max_calls.is_some_and(|max_calls| response.calls.len() > max_calls) {
            return Some(format!("{} calls", response.calls.len()));
        }
        let must =
            matches!(case.choice, ChoiceKind::Required | ChoiceKind::Named | ChoiceKind::Allowed);
        if must && response.calls.is_empty() && !is_truncated {
            return Some("no call, although one was required".to_owned());
        }
        if (finish == "tool_calls") == response.calls.is_empty() && !is_truncated {
            return Some(format!("{} calls and the finish reason {finish}", response.calls.len()));
        }
        None
    }
}

fn invalid(validator: &Validator, text: &str) -> Option<String> {
    match serde_json::from_str::<Value>(text) {
        Err(error) => Some(error.to_string()),
        Ok(value) => validator.validate(&value).err().map(|error| error.to_string()),
    }
}

/// The difference between a streamed and a complete response, if any.
pub(super) fn difference(whole: &ChatResponse, stream: &ChatResponse) -> Option<String> {
    // A stream contains the beginning of a truncated call; a complete response leaves the call out.
    let is_truncated =
        whole.finish.as_deref() == Some("length") && stream.calls.len() == whole.calls.len() + 1;
    let calls = &stream.calls[..stream.calls.len() - usize::from(is_truncated)];
    if whole.calls != calls {
        return Some(format!("calls {:?} and {:?}", whole.calls, stream.calls));
    }
    let parts =
        [("text", &whole.text, &stream.text), ("reasoning", &whole.reasoning, &stream.reasoning)];
    if let Some((what, one, other)) = parts.into_iter().find(|(_, one, other)| one != other) {
        return Some(format!("{what} {one:?} and {other:?}"));
    }
    (whole.finish != stream.finish)
        .then(|| format!("finish reasons {:?} and {:?}", whole.finish, stream.finish))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::serve::client::ToolCall;

    fn response(name: &str, arguments: &str, finish: &str) -> ChatResponse {
        let calls = vec![ToolCall { name: name.to_owned(), arguments: arguments.to_owned() }];
        ChatResponse {
            status: 200,
            calls,
            finish: Some(finish.to_owned()),
            ..ChatResponse::default()
        }
    }

    #[test]
    fn invalid_responses_are_detected() {
        let generator = CaseGenerator::new().unwrap();
        let mut random = SplitMix64::new(3);
        let mut case = generator.case("m", ChoiceKind::Required, MAX_TOKENS, &mut random);
        (case.set, case.callable, case.max_calls) = (0, vec!["book".to_owned()], Some(1));
        let good = response("book", r#"{"code": "AB-123", "breakfast": true}"#, "tool_calls");
        assert_eq!(generator.fault(&case, &good, false), None);
        let truncated = response("book", r#"{"code": "A"#, "length");
        assert_eq!(generator.fault(&case, &truncated, true), None);
        let two = ChatResponse {
            calls: [good.calls.clone(), good.calls.clone()].concat(),
            ..good.clone()
        };
        for (bad, fault) in [
            (response("book", r#"{"code": "AB-12", "breakfast": true}"#, "tool_calls"), "AB-12"),
            (response("weather", r#"{"city": "Oslo", "days": 1}"#, "tool_calls"), "a call of"),
            (truncated.clone(), "EOF"),
            (ChatResponse { calls: Vec::new(), ..good.clone() }, "no call"),
            (ChatResponse { finish: None, ..good.clone() }, "no finish"),
            (
                ChatResponse { finish: Some("stop".to_owned()), ..good.clone() },
                "finish reason stop",
            ),
            (ChatResponse { status: 500, ..good.clone() }, "status 500"),
            (two, "2 calls"),
        ] {
            let found = generator.fault(&case, &bad, false).unwrap_or_default();
            assert!(found.contains(fault), "{found} {fault}");
        }
        assert_eq!(
            difference(&ChatResponse { calls: Vec::new(), ..truncated.clone() }, &truncated),
            None
        );
        assert!(difference(&good, &truncated).is_some() && difference(&good, &good).is_none());
        assert!(
            difference(&good, &ChatResponse { text: "x".to_owned(), ..good.clone() })
                .unwrap()
                .contains("text")
        );
    }
}
