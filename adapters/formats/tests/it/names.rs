//! Names of members that a format may not be able to write: each is read back as it is, or the
//! schema is refused.

use louver_formats::{Call, Catalog, Turn};
use serde_json::{Value, json};

use crate::harness::request;
use crate::rig::{Rig, Specials};

/// Names with white space, with the punctuation of the formats, and usual ones.
const NAMES: [&str; 26] = [
    "plain",
    "x-y",
    "a.b",
    "$ref",
    "xml:lang",
    "é",
    "名",
    "with space",
    "a  b",
    " lead",
    "trail ",
    "tab\there",
    "line\nbreak",
    "a:b",
    "a=b",
    "a,b",
    "a;b",
    "a{b",
    "a}b",
    "a[b",
    "a]b",
    "a(b)",
    "a\"b",
    "a'b",
    "a<b>",
    "a\\b",
];

#[test]
fn names_are_read_back_or_refused() {
    let (mut read, mut refused) = (0, 0);
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        for name in NAMES {
            let number = json!({"type": "integer"});
            let object = |inner: &Value| {
                json!({"type": "object", "properties": {name: inner}, "required": [name],
                       "additionalProperties": false})
            };
            let outer = json!({"type": "object", "properties": {"o": object(&number)},
                               "required": ["o"], "additionalProperties": false});
            let cases = [(object(&number), json!({name: 7})), (outer, json!({"o": {name: 7}}))];
            for (schema, arguments) in cases {
                let tools = json!([{"name": "t", "parameters": schema}]).to_string();
                let lowered = match rig.format.lower(&request(&tools, &json!("required"))) {
                    Ok(lowered) => lowered,
                    Err(error) => {
                        let error = error.to_string();
                        assert!(!error.contains("unsatisfiable"), "{}: {error}", format.name);
                        assert!(name != "plain", "{}: {error}", format.name);
                        refused += 1;
                        continue;
                    }
                };
                let call = Call::new("t", arguments.to_string());
                let turn = Turn::default().with_calls(vec![call]);
                let wire = rig.format.render(&turn).expect("what is lowered is rendered");
                let units = rig.units(&wire);
                let session = rig.session(&lowered, &units, &[]);
                let run = session.run(&session.tokens(&units, 0), 1);
                let place = format!("{}: {name:?}: {wire:?}", format.name);
                assert_eq!(run.taken, Ok(()), "{place}");
                let found: Value = serde_json::from_str(&run.turn.calls[0].arguments)
                    .unwrap_or_else(|error| panic!("{place}: {error}: {:?}", run.turn.calls));
                assert_eq!(found, arguments, "{place}");
                read += 1;
            }
        }
    }
    assert!(read > 2_000 && refused > 100, "{read} {refused}");
}
