//! Two local tools that are executed: a forecast from a small table, and a calculator.

use serde_json::{Value, json};

/// A city's climate: mean temperature in degrees Celsius, wind in km/h, chance of rain in percent.
const CITIES: [(&str, i64, i64, i64); 5] = [
    ("Lima", 19, 14, 4),
    ("Nairobi", 21, 11, 35),
    ("Oslo", 7, 12, 48),
    ("Paris", 13, 16, 41),
    ("Tokyo", 17, 15, 38),
];
const FIELDS: [&str; 3] = ["temperature", "wind", "rain"];

/// The tools' definitions. All arguments are bounded, so that random output ends.
pub(super) fn list() -> Value {
    json!([
        {"type": "function", "function": {
            "name": "forecast",
            "description": "Weather forecast of a city for the next days.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "enum": CITIES.map(|(name, ..)| name)},
                    "days": {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many days."},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "fields": {
                        "type": "array", "items": {"type": "string", "enum": FIELDS}, "minItems": 1, "maxItems": 3,
                        "description": "What to report.",
                    },
                },
                "required": ["city", "days", "unit", "fields"],
                "additionalProperties": false,
            },
        }},
        {"type": "function", "function": {
            "name": "calculate",
            "description": "Arithmetic on two whole numbers.",
            "parameters": {
                "type": "object",
                "properties": {
                    "operation": {"type": "string", "enum": ["add", "subtract", "multiply", "divide"]},
                    "left": {"type": "integer", "minimum": -1000, "maximum": 1000},
                    "right": {"type": "integer", "minimum": -1000, "maximum": 1000},
                    "purpose": {"type": "string", "maxLength": 40, "description": "What the number is for."},
                },
                "required": ["operation", "left", "right", "purpose"],
                "additionalProperties": false,
            },
        }},
    ])
}

/// The schema of the final answer.
pub(super) fn answer_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "maxLength": 80},
            "confidence": {"type": "string", "enum": ["low", "medium", "high"]},
            "degrees_warmer": {"type": "integer", "minimum": -60, "maximum": 60},
            "sources": {
                "type": "array", "items": {"type": "string", "enum": ["forecast", "calculate"]}, "minItems": 1, "maxItems": 2,
            },
        },
        "required": ["answer", "confidence", "degrees_warmer", "sources"],
        "additionalProperties": false,
    })
}

/// Executes a tool. Errors are results, too, so that the model sees them.
pub(super) fn run(name: &str, arguments: &Value) -> Value {
    let result = match name {
        "forecast" => forecast(arguments),
        "calculate" => calculate(arguments),
        _ => None,
    };
    result.unwrap_or_else(|| json!({"error": "unknown tool or unusable arguments"}))
}

/// A city's mean temperature, in degrees Celsius.
pub(super) fn temperature(city: &str) -> Option<i64> {
    CITIES.into_iter().find(|(name, ..)| *name == city).map(|(_, temperature, ..)| temperature)
}

fn forecast(arguments: &Value) -> Option<Value> {
    let city = arguments["city"].as_str()?;
    let (name, temperature, wind, rain) = CITIES.into_iter().find(|(name, ..)| *name == city)?;
    let fields: Vec<&str> =
        arguments["fields"].as_array()?.iter().filter_map(Value::as_str).collect();
    let fahrenheit = arguments["unit"].as_str()? == "fahrenheit";
    let days = (1..=arguments["days"].as_i64()?).map(|day| {
        let mut report = serde_json::Map::from_iter([("day".to_owned(), json!(day))]);
        for field in FIELDS.into_iter().filter(|field| fields.contains(field)) {
            // A small deterministic variation around the climate.
            let swing = (day * 7 + name.len() as i64 * 3) % 5 - 2;
            let value = match field {
                "temperature" if fahrenheit => (temperature + swing) * 9 / 5 + 32,
                "temperature" => temperature + swing,
                "wind" => (wind + 2 * swing).max(0),
                _ => (rain + 4 * swing).clamp(0, 100),
            };
            report.insert(field.to_owned(), json!(value));
        }
        Value::Object(report)
    });
    Some(json!({"city": name, "days": days.collect::<Vec<_>>()}))
}

fn calculate(arguments: &Value) -> Option<Value> {
    let (left, right) = (arguments["left"].as_i64()?, arguments["right"].as_i64()?);
    Some(match arguments["operation"].as_str()? {
        "add" => json!({"result": left.checked_add(right)?}),
        "subtract" => json!({"result": left.checked_sub(right)?}),
        "multiply" => json!({"result": left.checked_mul(right)?}),
        "divide" if right == 0 => json!({"error": "division by zero"}),
        "divide" => json!({"result": left as f64 / right as f64}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_return_results() {
        let calculate = |operation: &str, left: i64, right: i64| {
            run(
                "calculate",
                &json!({"operation": operation, "left": left, "right": right, "purpose": ""}),
            )
        };
        assert_eq!(calculate("subtract", 21, 9), json!({"result": 12}));
        assert_eq!(calculate("multiply", -1000, 1000), json!({"result": -1_000_000}));
        assert_eq!(calculate("divide", 7, 2), json!({"result": 3.5}));
        assert_eq!(calculate("divide", 7, 0), json!({"error": "division by zero"}));
        let result = run(
            "forecast",
            &json!({"city": "Oslo", "days": 2, "unit": "celsius", "fields": ["rain", "temperature"]}),
        );
        assert_eq!(result["city"], "Oslo");
        assert_eq!(result["days"].as_array().unwrap().len(), 2);
        assert_eq!(
            result["days"][0].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["day", "temperature", "rain"]
        );
        for (name, arguments) in [
            ("forecast", json!({"city": "Atlantis"})),
            ("nope", json!({})),
            ("calculate", json!(1)),
        ] {
            assert!(run(name, &arguments)["error"].is_string());
        }
    }

    #[test]
    fn tool_schemas_are_valid() {
        for tool in list().as_array().unwrap() {
            assert!(jsonschema::meta::is_valid(&tool["function"]["parameters"]));
        }
        assert!(jsonschema::meta::is_valid(&answer_schema()));
    }
}
