//! Arguments whose schema is not enforced are read back with the declared types and names, in all
//! families.

use louver_formats::{Call, Catalog, Strictness, Turn};
use serde_json::{Value, json};

use crate::harness::request;
use crate::rig::{BOTH, Rig};

/// Strings that look like other values, or begin like arrays and objects.
const TEXTS: [&str; 10] = [
    "12345",
    "1.5",
    "true",
    "null",
    "{\"k\": 1}",
    "[link](x)",
    "\n[package]\nname = \"x\"\n",
    "{% if x %}",
    "-",
    "",
];

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "content": {"type": "string", "maxLength": 3},
            "日期": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
            "mode": {"enum": ["a", "b"]},
            "path": {"$ref": "#/$defs/path"},
            "days": {"type": "integer", "maximum": 7},
            "where": {"type": "object", "properties": {"zip": {"type": "string"}},
                      "required": ["zip"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "<|weird=\"name\">\n": {"type": "string"}
        },
        "required": ["content", "path"],
        "additionalProperties": false,
        "$defs": {"path": {"type": "string", "pattern": "^/"}}
    })
}

#[test]
fn declared_types_and_names_hold_without_strict() {
    let tools = json!([{"name": "write_file", "parameters": parameters()}]).to_string();
    let request = request(&tools, &json!("auto")).with_strictness(Strictness::AsFlagged);
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for format in Catalog::shipped().formats() {
        for rig in BOTH.map(|specials| Rig::new(format, specials)) {
            let lowered = rig.format.lower(&request).expect("lowers");
            assert_eq!(lowered.relaxed().len(), 1, "{}", format.name);
            let session = rig.session(&lowered, &[], &[]);
            let texts = TEXTS.iter().flat_map(|text| {
                let city = json!({"zip": text, "x": [1]});
                [
                    json!({"content": text}),
                    json!({"mode": text, "path": text, "days": 99}),
                    json!({"日期": format!("{text}x"), "days": 1, "other": 5}),
                    json!({"where": city, "tags": [text, text]}),
                ]
            });
            for arguments in texts.chain([json!({}), json!({"日期": true, "other": [null, "x"]})])
            {
                let call = Call::new("write_file", arguments.to_string());
                let Ok(wire) = rig.format.render(&Turn::default().with_calls(vec![call])) else {
                    continue;
                };
                checked += 1;
                let run = session.run(&session.tokens(&rig.units(&wire), 0), 1);
                let read = run.turn.calls.first().map(|call| call.arguments.as_str());
                let read: Option<Value> = read.and_then(|text| serde_json::from_str(text).ok());
                if run.taken.is_err() || !run.complete || read != Some(arguments) {
                    wrong.push(format!("{}: {wire:?} is {:?}, {read:?}", format.name, run.taken));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 4_000, "{checked}");
}
