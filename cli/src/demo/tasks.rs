//! Questions for a trained model, the tools for them, and the calls that answer them.

use serde_json::{Value, json};

use super::tools;

/// A question and the calls that answer it.
pub(super) struct Task {
    pub(super) question: &'static str,
    /// Names and arguments, in any order.
    pub(super) calls: Vec<(&'static str, Value)>,
}

/// The questions.
pub(super) fn tasks() -> Vec<Task> {
    let task = |question, calls| Task { question, calls };
    vec![
        task("What is the weather in Oslo?", vec![("get_weather", json!({"city": "Oslo"}))]),
        task("Set a timer for 25 minutes.", vec![("set_timer", json!({"minutes": 25}))]),
        task(
            "What is 17 times 23?",
            vec![("calculate", json!({"operation": "multiply", "left": 17, "right": 23}))],
        ),
        task(
            "Convert 250 dollars to euros.",
            vec![("convert_money", json!({"amount": 250, "from": "USD", "to": "EUR"}))],
        ),
        task(
            "Compare the weather in Lima and in Tokyo.",
            vec![
                ("get_weather", json!({"city": "Lima"})),
                ("get_weather", json!({"city": "Tokyo"})),
            ],
        ),
    ]
}

/// Exchange rates: units of a currency for one US dollar, times 100. Invented.
const RATES: [(&str, i64); 4] = [("USD", 100), ("EUR", 90), ("GBP", 80), ("JPY", 15_000)];
const OPERATIONS: [&str; 4] = ["add", "subtract", "multiply", "divide"];

/// The tools' definitions.
pub(super) fn list() -> Value {
    let currencies = RATES.map(|(name, _)| name);
    let tool = |name: &str, description: &str, properties: Value| {
        let required: Vec<&String> =
            properties.as_object().into_iter().flatten().map(|m| m.0).collect();
        json!({"type": "function", "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            },
        }})
    };
    json!([
        tool(
            "get_weather",
            "The weather in a city.",
            json!({"city": {"type": "string", "maxLength": 40}})
        ),
        tool(
            "set_timer",
            "Start a timer.",
            json!({"minutes": {"type": "integer", "minimum": 1, "maximum": 1440}}),
        ),
        tool(
            "calculate",
            "Arithmetic on two numbers.",
            json!({
                "operation": {"type": "string", "enum": OPERATIONS},
                "left": {"type": "integer"}, "right": {"type": "integer"},
            }),
        ),
        tool(
            "convert_money",
            "Convert an amount of money to another currency.",
            json!({
                "amount": {"type": "number", "minimum": 0},
                "from": {"type": "string", "enum": currencies}, "to": {"type": "string", "enum": currencies},
            }),
        ),
    ])
}

/// Executes a tool. Errors are results, too.
pub(super) fn run(name: &str, arguments: &Value) -> Value {
    match name {
        "get_weather" => {
            let city = arguments["city"].as_str().unwrap_or_default();
            tools::temperature(city).map_or_else(
                || json!({"error": "unknown city"}),
                |degrees| json!({"city": city, "celsius": degrees}),
            )
        }
        "set_timer" => {
            json!({"seconds": arguments["minutes"].as_i64().map(|m| m.saturating_mul(60))})
        }
        "convert_money" => {
            convert(arguments).unwrap_or_else(|| json!({"error": "unknown currency"}))
        }
        _ => tools::run(name, arguments),
    }
}

fn convert(arguments: &Value) -> Option<Value> {
    let rate = |member: &str| {
        let name = arguments[member].as_str()?;
        RATES.iter().find(|(currency, _)| *currency == name).map(|(_, rate)| *rate as f64)
    };
    let amount = arguments["amount"].as_f64()? * rate("to")? / rate("from")?;
    Some(json!({"amount": (amount * 100.0).round() / 100.0, "currency": arguments["to"]}))
}

impl Task {
    /// The results of the calls that answer the question, sorted.
    pub(super) fn results(&self) -> Vec<String> {
        sorted(self.calls.iter().map(|(name, arguments)| run(name, arguments)))
    }
}

/// Results of tools as sorted texts, to compare them in any order.
pub(super) fn sorted(results: impl Iterator<Item = Value>) -> Vec<String> {
    let mut texts: Vec<String> = results.map(|result| result.to_string()).collect();
    texts.sort();
    texts
}

#[cfg(test)]
mod tests {
    use louver_mistralrs::{Call, CallKind};

    use super::*;
    use crate::tool_turn::ToolValidators;

    #[test]
    fn every_question_has_a_valid_answer() {
        let validators = ToolValidators::new(&list()).unwrap();
        for task in tasks() {
            for (name, arguments) in &task.calls {
                let call = Call {
                    id: String::new(),
                    name: (*name).to_owned(),
                    arguments: arguments.to_string(),
                    kind: CallKind::Function,
                };
                assert_eq!(validators.fault(&call), None, "{}", task.question);
            }
            let results = task.results();
            assert!(results.iter().all(|result| !result.contains("error")), "{results:?}");
        }
        assert_eq!(run("calculate", &tasks()[2].calls[0].1), json!({"result": 391}));
        assert_eq!(
            run("convert_money", &tasks()[3].calls[0].1),
            json!({"amount": 225.0, "currency": "EUR"})
        );
    }

    #[test]
    fn unusable_arguments_are_errors() {
        for (name, arguments) in [
            ("get_weather", json!({"city": "Atlantis"})),
            ("convert_money", json!({"amount": 1, "from": "USD", "to": "XXX"})),
            ("nope", json!({})),
        ] {
            assert!(run(name, &arguments)["error"].is_string());
        }
    }
}
