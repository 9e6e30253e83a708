//! String parameters with bounds on their length, in every family: accepted and rejected near the
//! bounds, and compiled without a state for each length.

use std::sync::Arc;

use louver::{Compiled, Grammar, Limits, fuel};
use louver_formats::{Call, Catalog, LazyTools, Turn, python_json};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{data, request};
use crate::rig::{Rig, Specials};

/// Fuel for lowering and compiling one parameter: 10 ms. A state for each length needs more.
const MAX_FUEL: u64 = 1_000_000;

#[derive(Deserialize)]
struct Parameters {
    parameter: Vec<Parameter>,
}

/// A parameter, and the lengths of values that it allows or forbids.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameter {
    name: String,
    schema: String,
    #[serde(default)]
    begin: String,
    fill: String,
    #[serde(default)]
    end: String,
    good: Vec<usize>,
    #[serde(default)]
    bad: Vec<usize>,
}

impl Parameter {
    /// The value with this many code points.
    fn value(&self, length: usize) -> String {
        let fixed = self.begin.chars().count() + self.end.chars().count();
        let fill = self.fill.chars().cycle().take(length - fixed.min(length));
        let value: String = self.begin.chars().chain(fill).chain(self.end.chars()).collect();
        assert_eq!(value.chars().count(), length, "{}", self.name);
        value
    }

    /// The tools of a request with this parameter.
    fn tools(&self) -> String {
        let schema: Value = serde_json::from_str(&self.schema).expect("JSON");
        let parameters = json!({
            "type": "object", "properties": {"s": schema}, "required": ["s"],
            "additionalProperties": false,
        });
        json!([{"name": "f", "strict": true, "parameters": parameters}]).to_string()
    }
}

/// The fuel of compiling a grammar.
fn compile_fuel(grammar: &Arc<Grammar>) -> u64 {
    let (compiled, units) =
        fuel::measure(|| Compiled::new(grammar.clone(), &Limits::default()).map(|_| ()));
    compiled.expect("compiles");
    units
}

#[test]
fn lengths_are_counted_in_every_family() {
    let rows: Parameters = toml::from_str(&data("lengths.toml")).expect("lengths.toml");
    let mut wrong = Vec::new();
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        for parameter in &rows.parameter {
            let at = format!("{}, {}", rig.format.name, parameter.name);
            let mut request = request(&parameter.tools(), &json!("required"));
            request.lazy = LazyTools::Never;
            let (lowered, units) = fuel::measure(|| rig.format.lower(&request));
            let lowered = match lowered {
                Ok(lowered) => lowered,
                Err(error) => {
                    wrong.push(format!("{at}: {error}"));
                    continue;
                }
            };
            let units = units + compile_fuel(lowered.grammar());
            if units > MAX_FUEL {
                wrong.push(format!("{at}: {units} units of fuel"));
            }
            let good = parameter.good.iter().map(|&length| (length, true));
            for (length, expected) in
                good.chain(parameter.bad.iter().map(|&length| (length, false)))
            {
                let arguments = python_json(&json!({"s": parameter.value(length)}));
                let call = Call::new("f", arguments);
                let turn = Turn::default().with_calls(vec![call]);
                let wire = rig.format.render(&turn).unwrap_or_else(|e| panic!("{at}: {e}"));
                let units = rig.units(&wire);
                let session = rig.session(&lowered, &units, &[0]);
                let run = session.run(&session.tokens(&units, 0), 64);
                if (run.taken.is_ok() && run.complete) != expected {
                    wrong.push(format!("{at}: length {length}, {:?}", run.taken));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// The automata of raw texts are made once for the process, and not for each parameter. Without
/// that, the second request took 76,000 and 2 million units in some families.
#[test]
fn automata_of_raw_texts_are_kept() {
    let mut wrong = Vec::new();
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        for (schema, most) in [
            (json!({"type": "string", "maxLength": 1000}), 40_000),
            (json!({"type": "string", "format": "email"}), 800_000),
        ] {
            let properties = json!({"s": schema});
            let parameters = json!({"type": "object", "properties": properties, "required": ["s"]});
            let tools = json!([{"name": "f", "strict": true, "parameters": parameters}]);
            let mut request = request(&tools.to_string(), &json!("required"));
            request.lazy = LazyTools::Never;
            let units = || {
                let (lowered, units) = fuel::measure(|| rig.format.lower(&request));
                units + compile_fuel(lowered.expect("lowers").grammar())
            };
            units();
            let units = units();
            if units > most {
                wrong.push(format!("{}, {schema}: {units} units of fuel", rig.format.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}
