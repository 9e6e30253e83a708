//! Local tools: JSON in, JSON out, with a delay that simulates a network.

use std::time::Duration;

use serde_json::{Value, json};

/// A tool: its definition for the model, and its implementation.
#[derive(Clone, Debug)]
pub struct Tool {
    name: &'static str,
    description: &'static str,
    parameters: Value,
    run: fn(&Value) -> Option<Value>,
    takes: Duration,
}

/// Tools by name.
#[derive(Clone, Debug, Default)]
pub struct Toolbox(Vec<Tool>);

impl Toolbox {
    /// The tools' definitions in OpenAI's format, with `strict`.
    pub fn definitions(&self) -> Value {
        let define = |tool: &Tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters, "strict": true,
            }})
        };
        self.0.iter().map(define).collect()
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|tool| tool.name).collect()
    }

    /// Adds tools after the existing ones; duplicate names are left out.
    pub fn add(&mut self, more: Toolbox) {
        for tool in more.0 {
            if !self.0.iter().any(|known| known.name == tool.name) {
                self.0.push(tool);
            }
        }
    }

    /// Keeps only the tool with this name.
    pub fn only(mut self, name: &str) -> Toolbox {
        self.0.retain(|tool| tool.name == name);
        self
    }

    /// Runs a call. Errors are results, too, so that the model sees them.
    pub async fn call(&self, name: &str, arguments: &str) -> Value {
        let Some(tool) = self.0.iter().find(|tool| tool.name == name) else {
            return json!({"error": format!("there is no tool {name}")});
        };
        tokio::time::sleep(tool.takes).await;
        let arguments: Value = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return json!({"error": error.to_string()}),
        };
        (tool.run)(&arguments).unwrap_or_else(|| json!({"error": "unusable arguments"}))
    }
}

/// An object schema with all members required.
fn object(properties: Value) -> Value {
    let names: Vec<String> =
        properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

/// An integer as in JSON Schema, which includes 3.0.
fn as_integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|x| x.fract() == 0.0).map(|x| x as i64))
}

const CITIES: [(&str, i64, &str); 4] =
    [("Oslo", 7, "NOK"), ("Lima", 19, "PEN"), ("Nairobi", 21, "KES"), ("Tokyo", 17, "JPY")];

fn cities() -> Value {
    json!({"type": "string", "enum": CITIES.map(|(name, ..)| name)})
}

fn city(arguments: &Value) -> Option<(&'static str, i64, &'static str)> {
    CITIES.into_iter().find(|(name, ..)| arguments["city"] == *name)
}

/// Tools of a travel desk: weather and currency.
pub fn travel() -> Toolbox {
    Toolbox(vec![
        Tool {
            name: "weather",
            description: "Mean temperature of a city over the next days, in degrees Celsius.",
            parameters: object(json!({
                "city": cities(),
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
            })),
            run: |arguments| {
                let (name, mean, _) = city(arguments)?;
                let days = (0..as_integer(&arguments["days"])?).map(|day| mean + (day * 7) % 5 - 2);
                Some(json!({"city": name, "temperatures": days.collect::<Vec<_>>()}))
            },
            takes: Duration::from_millis(120),
        },
        Tool {
            name: "exchange",
            description: "Converts an amount of euros to a city's currency.",
            parameters: object(json!({
                "city": cities(),
                "euros": {"type": "integer", "minimum": 1, "maximum": 9999},
            })),
            run: |arguments| {
                let (_, _, currency) = city(arguments)?;
                let rate = [("NOK", 11.7), ("PEN", 4.0), ("KES", 150.0), ("JPY", 162.0)];
                let (_, rate) = rate.into_iter().find(|(name, _)| *name == currency)?;
                Some(json!({"currency": currency, "amount": arguments["euros"].as_f64()? * rate}))
            },
            takes: Duration::from_millis(80),
        },
    ])
}

/// Tools of an office desk, loaded later: notes and sums.
pub fn desk() -> Toolbox {
    Toolbox(vec![
        Tool {
            name: "note",
            description: "Writes a note.",
            parameters: object(json!({
                "title": {"type": "string", "pattern": "^[A-Z][a-z]{2,9}$"},
                "pinned": {"type": "boolean"},
            })),
            run: |arguments| Some(json!({"saved": arguments["title"].as_str()?})),
            takes: Duration::from_millis(10),
        },
        Tool {
            name: "add",
            description: "Adds two whole numbers.",
            parameters: object(json!({
                "left": {"type": "integer", "minimum": -999, "maximum": 999},
                "right": {"type": "integer", "minimum": -999, "maximum": 999},
            })),
            run: |arguments| {
                Some(
                    json!({"sum": as_integer(&arguments["left"])? + as_integer(&arguments["right"])?}),
                )
            },
            takes: Duration::from_millis(1),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tools_return_results() {
        let mut tools = travel();
        tools.add(desk());
        tools.add(desk());
        assert_eq!(tools.names(), ["weather", "exchange", "note", "add"]);
        for (name, arguments, result) in [
            (
                "weather",
                r#"{"city": "Oslo", "days": 2}"#,
                json!({"city": "Oslo", "temperatures": [5, 7]}),
            ),
            (
                "exchange",
                r#"{"city": "Tokyo", "euros": 2}"#,
                json!({"currency": "JPY", "amount": 324.0}),
            ),
            ("note", r#"{"title": "Milk", "pinned": true}"#, json!({"saved": "Milk"})),
            ("add", r#"{"left": -2, "right": 5.0}"#, json!({"sum": 3})),
        ] {
            assert_eq!(tools.call(name, arguments).await, result);
        }
        for (name, arguments) in
            [("weather", "{"), ("weather", "{}"), ("add", "{}"), ("nope", "{}")]
        {
            assert!(tools.call(name, arguments).await["error"].is_string(), "{name} {arguments}");
        }
    }
}
