//! Requests of every kind, and what their answers must be.

use anyhow::Result;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::dice::Dice;
use super::http::Answer;

/// Longest generation, in tokens, where nothing else is said.
pub(super) const MOST_TOKENS: u32 = 200;

/// What a request demands of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Auto,
    Required,
    Named,
    Allowed,
    None,
    /// No tools, an answer by a schema.
    Answer,
}

impl Choice {
    pub(super) const ALL: [Choice; 6] = [
        Choice::Auto,
        Choice::Required,
        Choice::Named,
        Choice::Allowed,
        Choice::None,
        Choice::Answer,
    ];
}

/// A set of tools with their validators.
pub(super) struct Demands {
    sets: Vec<Vec<Tool>>,
    answer: (Value, Validator),
}

struct Tool {
    name: String,
    parameters: Value,
    validator: Validator,
}

/// A request and what it demands.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// The request's body, not streamed.
    pub(super) body: Value,
    set: usize,
    choice: Choice,
    /// The tools that may be called.
    callable: Vec<String>,
    most: Option<usize>,
}

impl Demand {
    /// The body, to be streamed or not.
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

/// Schemas of the kinds that tools have. All are bounded, so that noise comes to an end.
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

impl Demands {
    pub(super) fn new() -> Result<Demands> {
        let tool = |(name, parameters): (&str, Value)| {
            let validator = jsonschema::validator_for(&parameters)?;
            Ok(Tool { name: name.to_owned(), parameters, validator })
        };
        let sets =
            sets().into_iter().map(|set| set.into_iter().map(tool).collect::<Result<Vec<_>>>());
        let answer = object(json!({
            "city": {"enum": ["Oslo", "Lima"]},
            "score": {"type": "integer", "minimum": -3, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        }));
        let validator = jsonschema::validator_for(&answer)?;
        Ok(Demands { sets: sets.collect::<Result<_>>()?, answer: (answer, validator) })
    }

    /// A request to a model, for so many tokens. The same dice give the same one.
    pub(super) fn demand(
        &self,
        model: &str,
        choice: Choice,
        most_tokens: u32,
        dice: &mut Dice,
    ) -> Demand {
        let set = dice.below(self.sets.len());
        let tools = &self.sets[set];
        let one = &tools[dice.below(tools.len())].name;
        let all = || tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let only = || vec![one.clone()];
        let function = json!({"type": "function", "function": {"name": one}});
        let (tool_choice, callable) = match choice {
            Choice::Auto => (json!("auto"), all()),
            Choice::Required => (json!("required"), all()),
            Choice::Named => (function, only()),
            Choice::Allowed => {
                let allowed = json!({"mode": "required", "tools": [function]});
                (json!({"type": "allowed_tools", "allowed_tools": allowed}), only())
            }
            Choice::None | Choice::Answer => (json!("none"), Vec::new()),
        };
        let single = dice.below(3) == 0;
        let mut body = json!({
            "model": model,
            "messages": [{"role": "user", "content": "Plan a day in Oslo."}],
            "max_completion_tokens": most_tokens,
            "seed": dice.roll() >> 12,
            "reasoning_effort": "none",
            "louver": {"whitespace": "python_like"},
        });
        if choice == Choice::Answer {
            let schema = json!({"name": "answer", "strict": true, "schema": self.answer.0});
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
        Demand { body, set, choice, callable, most: single.then_some(1) }
    }

    /// What is wrong with an answer. `stream`: it was streamed, where the last call may have been cut off.
    pub(super) fn fault(&self, demand: &Demand, answer: &Answer, stream: bool) -> Option<String> {
        if answer.status != 200 || answer.error.is_some() {
            return Some(format!("status {}: {:?}", answer.status, answer.error));
        }
        let Some(finish) = answer.finish.as_deref() else {
            return Some("no finish reason".to_owned());
        };
        let cut = finish == "length";
        if !cut && finish != "stop" && finish != "tool_calls" {
            return Some(format!("finish reason {finish}"));
        }
        if demand.choice == Choice::Answer {
            return invalid(&self.answer.1, &answer.text)
                .map(|fault| format!("the answer {:?}: {fault}", answer.text));
        }
        for (index, call) in answer.calls.iter().enumerate() {
            let tools = &self.sets[demand.set];
            let tool = tools
                .iter()
                .find(|tool| tool.name == call.name && demand.callable.contains(&tool.name));
            let Some(tool) = tool else { return Some(format!("a call of {:?}", call.name)) };
            let last = index + 1 == answer.calls.len();
            if let Some(fault) = invalid(&tool.validator, &call.arguments)
                && !(stream && cut && last)
            {
                return Some(format!("{}({}): {fault}", call.name, call.arguments));
            }
        }
        if demand.most.is_some_and(|most| answer.calls.len() > most) {
            return Some(format!("{} calls", answer.calls.len()));
        }
        let must = matches!(demand.choice, Choice::Required | Choice::Named | Choice::Allowed);
        if must && answer.calls.is_empty() && !cut {
            return Some("no call, although one was required".to_owned());
        }
        if (finish == "tool_calls") == answer.calls.is_empty() && !cut {
            return Some(format!("{} calls and the finish reason {finish}", answer.calls.len()));
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

/// How a streamed answer differs from the whole one.
pub(super) fn difference(whole: &Answer, stream: &Answer) -> Option<String> {
    // A call that was cut off is in the stream as far as it got, and no call in the whole answer.
    let cut =
        whole.finish.as_deref() == Some("length") && stream.calls.len() == whole.calls.len() + 1;
    let calls = &stream.calls[..stream.calls.len() - usize::from(cut)];
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
    use crate::bench::serve::http::Called;

    fn answer(name: &str, arguments: &str, finish: &str) -> Answer {
        let calls = vec![Called { name: name.to_owned(), arguments: arguments.to_owned() }];
        Answer { status: 200, calls, finish: Some(finish.to_owned()), ..Answer::default() }
    }

    #[test]
    fn faults_are_found() {
        let demands = Demands::new().unwrap();
        let mut dice = Dice::new(3);
        let mut demand = demands.demand("m", Choice::Required, MOST_TOKENS, &mut dice);
        (demand.set, demand.callable, demand.most) = (0, vec!["book".to_owned()], Some(1));
        let good = answer("book", r#"{"code": "AB-123", "breakfast": true}"#, "tool_calls");
        assert_eq!(demands.fault(&demand, &good, false), None);
        let cut = answer("book", r#"{"code": "A"#, "length");
        assert_eq!(demands.fault(&demand, &cut, true), None);
        let two =
            Answer { calls: [good.calls.clone(), good.calls.clone()].concat(), ..good.clone() };
        for (bad, fault) in [
            (answer("book", r#"{"code": "AB-12", "breakfast": true}"#, "tool_calls"), "AB-12"),
            (answer("weather", r#"{"city": "Oslo", "days": 1}"#, "tool_calls"), "a call of"),
            (cut.clone(), "EOF"),
            (Answer { calls: Vec::new(), ..good.clone() }, "no call"),
            (Answer { finish: None, ..good.clone() }, "no finish"),
            (Answer { finish: Some("stop".to_owned()), ..good.clone() }, "finish reason stop"),
            (Answer { status: 500, ..good.clone() }, "status 500"),
            (two, "2 calls"),
        ] {
            let found = demands.fault(&demand, &bad, false).unwrap_or_default();
            assert!(found.contains(fault), "{found} {fault}");
        }
        assert_eq!(difference(&Answer { calls: Vec::new(), ..cut.clone() }, &cut), None);
        assert!(difference(&good, &cut).is_some() && difference(&good, &good).is_none());
        assert!(
            difference(&good, &Answer { text: "x".to_owned(), ..good.clone() })
                .unwrap()
                .contains("text")
        );
    }
}
