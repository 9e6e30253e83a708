//! A small MCP server over standard input and output, for the example `mcp_tools`: two tools
//! without side effects. One JSON-RPC message a line.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message: Value = match serde_json::from_str(&line?) {
            Ok(message) => message,
            Err(error) => {
                let error = json!({"code": -32700, "message": error.to_string()});
                writeln!(out, "{}", json!({"jsonrpc": "2.0", "id": null, "error": error}))?;
                continue;
            }
        };
        // Notifications have no answer.
        let Some(id) = message.get("id") else { continue };
        let answer = match answer(&message) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(text) => {
                let error = json!({"code": -32602, "message": text});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(message: &Value) -> Result<Value, String> {
    match message["method"].as_str() {
        Some("initialize") => Ok(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "units", "version": "1"},
        })),
        Some("ping") => Ok(json!({})),
        Some("tools/list") => Ok(json!({"tools": tools()})),
        Some("tools/call") => call(&message["params"]),
        other => Err(format!("there is no method {other:?}")),
    }
}

fn tools() -> Value {
    let object = |properties: Value, required: &[&str]| {
        json!({"type": "object", "properties": properties, "required": required,
            "additionalProperties": false})
    };
    json!([
        {"name": "convert_length", "description": "Converts a length in metres.",
            "inputSchema": object(json!({
                "metres": {"type": "integer", "minimum": 0, "maximum": 100_000},
                "unit": {"enum": ["feet", "miles"]},
            }), &["metres", "unit"])},
        {"name": "leap_year", "description": "Whether a year is a leap year.",
            "inputSchema": object(json!({
                "year": {"type": "integer", "minimum": 1600, "maximum": 2400},
            }), &["year"])},
    ])
}

fn call(params: &Value) -> Result<Value, String> {
    let arguments = &params["arguments"];
    let integer =
        |name: &str| arguments[name].as_i64().ok_or_else(|| format!("`{name}` must be an integer"));
    let text = match params["name"].as_str() {
        Some("convert_length") => {
            let metres = integer("metres")? as f64;
            match arguments["unit"].as_str() {
                Some("feet") => format!("{:.1} feet", metres / 0.3048),
                Some("miles") => format!("{:.3} miles", metres / 1609.344),
                other => return Err(format!("there is no unit {other:?}")),
            }
        }
        Some("leap_year") => {
            let year = integer("year")?;
            (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)).to_string()
        }
        other => return Err(format!("there is no tool {other:?}")),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": false}))
}
