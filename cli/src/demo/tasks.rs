//! Questions for a trained model, the tools for them, and the calls that answer them.

use serde_json::{Value, json};

use super::tools;

/// A question and the call that answers it.
pub(super) struct Task {
    pub(super) question: &'static str,
    /// The tool's name.
    pub(super) name: &'static str,
    pub(super) arguments: Value,
}

/// The questions.
pub(super) fn tasks() -> Vec<Task> {
    let task = |question, name, arguments| Task { question, name, arguments };
    vec![
        task("What is the weather in Oslo?", "get_weather", json!({"city": "Oslo"})),
        task("Set a timer for 25 minutes.", "set_timer", json!({"minutes": 25})),
        task(
            "What is 17 times 23?",
            "calculate",
            json!({"operation": "multiply", "left": 17, "right": 23}),
        ),
        task(
            "Convert 250 dollars to euros.",
            "convert_money",
            json!({"amount": 250, "from": "USD", "to": "EUR"}),
        ),
        task("How warm is it in Nairobi?", "get_weather", json!({"city": "Nairobi"})),
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
    /// The result of the call that answers the question.
    pub(super) fn result(&self) -> Value {
        run(self.name, &self.arguments)
    }
}

#[cfg(test)]
mod tests {
    use louver_mistralrs::Call;

    use super::*;
    use crate::tool_turn::ToolValidators;

    #[test]
    fn every_question_has_a_valid_answer() {
        let validators = ToolValidators::new(&list()).unwrap();
        for task in tasks() {
            let call = Call::new(task.name, task.arguments.to_string());
            assert_eq!(validators.fault(&call), None, "{}", task.question);
            assert!(task.result().get("error").is_none(), "{}", task.question);
        }
        assert_eq!(tasks()[2].result(), json!({"result": 391}));
        assert_eq!(tasks()[3].result(), json!({"amount": 225.0, "currency": "EUR"}));
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
