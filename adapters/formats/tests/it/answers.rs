//! Structural tags as `response_format`: the answers they allow, reasoning before them, and
//! requests that they cannot be combined with.

use louver::spec::json::Json;
use louver_formats::{Catalog, LowerError, Reasoning, RequestErrors, ToolRequest, Turn};
use serde_json::{Value, json};

use crate::rig::{BOTH, Rig};

fn parse(response_format: Value) -> Result<ToolRequest, RequestErrors> {
    ToolRequest::parse(&Json::from(json!({"response_format": response_format})))
}

fn poll() -> Value {
    json!({"type": "structural_tag", "format": {"type": "sequence", "elements": [
        {"type": "const_string", "value": "vote: "},
        {"type": "tag", "begin": "<b>", "content": {"type": "json_schema", "json_schema": {"enum": ["yes", "no"]}}, "end": "</b>"},
        {"type": "any_text"}
    ]}})
}

/// In every family that allows structural tags: after reasoning and in the frame of text, if there
/// is one.
#[test]
fn structural_tags_constrain_the_answer() {
    let mut refused = Vec::new();
    let mut checked = 0;
    for format in Catalog::shipped().formats() {
        for rig in BOTH.map(|which| Rig::new(format, which)) {
            let mut request = parse(poll()).expect("a request");
            let reasons = rig.format.reasoning.is_some();
            request.reasoning = if reasons { Reasoning::Required } else { Reasoning::Off };
            let lowered = match rig.format.lower(&request) {
                Ok(lowered) => lowered,
                Err(LowerError::Combination { .. }) => {
                    refused.push(format.name.clone());
                    continue;
                }
                Err(error) => panic!("{}: {error}", format.name),
            };
            let reasoning = if reasons { "Hm." } else { "" };
            for (text, right) in [
                ("vote: <b>\"yes\"</b>", true),
                ("vote: <b>\"no\"</b>. That is all.\n", true),
                ("vote: <b>\"maybe\"</b>", false),
                ("<b>\"yes\"</b>", false),
                ("vote: <b>\"yes\"", false),
            ] {
                let turn = Turn::default().with_text(text).with_reasoning(reasoning);
                let wire = rig.format.render(&turn).expect("writable");
                let units = rig.units(&wire);
                let session = rig.session(&lowered, &units, &[0]);
                let run = session.run(&session.tokens(&units, 0), 1);
                assert_eq!(run.taken.is_ok() && run.complete, right, "{}: {wire:?}", format.name);
                if right {
                    assert_eq!(run.turn, turn, "{}", format.name);
                }
                checked += 1;
            }
        }
    }
    refused.dedup();
    assert_eq!(refused, ["cohere", "ernie4_5", "hunyuan", "kimi_k3", "solar_open"]);
    assert!(checked > 200, "{checked}");
}

#[test]
fn structural_tags_exclude_other_constraints() {
    let tools = json!([{"type": "function", "name": "f"}]);
    let body = |choice: &str, stop: Value| json!({"tools": tools, "tool_choice": choice, "stop": stop, "response_format": poll()});
    let lower = |body: Value| {
        let request = ToolRequest::parse(&Json::from(body)).expect("a request");
        Catalog::shipped().get("qwen3").expect("format").lower(&request)
    };
    for refused in [body("auto", json!([])), body("required", json!([]))] {
        assert!(matches!(lower(refused.clone()), Err(LowerError::Combination { .. })), "{refused}");
    }
    for stop in [json!([]), json!("x"), json!(["call>", "\n"])] {
        lower(body("none", stop)).expect("lowers");
    }
}

/// In every family: a stop string ends a constrained response, and it is known whether the response
/// was complete.
#[test]
fn stop_strings_cut_constrained_responses() {
    const ANSWER: &str = "\"vote\"";
    let mut checked = 0;
    for format in Catalog::shipped().formats() {
        for rig in BOTH.map(|which| Rig::new(format, which)) {
            let schema = json!({"name": "a", "schema": {"const": "vote"}});
            let mut request = parse(json!({"type": "json_schema", "json_schema": schema})).unwrap();
            request.reasoning = Reasoning::Off;
            request.stop = vec!["ote".into(), "</".into()];
            let lowered = rig.format.lower(&request).expect("lowers");
            assert_eq!(lowered.warnings()[0].pointer, "/stop");
            let turn = Turn::default().with_text(ANSWER);
            let wire = rig.format.render(&turn).expect("writable");
            let units = rig.units(&wire);
            let session = rig.session(&lowered, &units, &[0]);
            let tokens = session.tokens(&units, 0);
            let run = session.run(&tokens, 1);
            assert_eq!((&*run.turn.text, run.turn.calls.len()), ("\"v", 0), "{}", format.name);

            let answer: Vec<_> = ANSWER.bytes().map(|byte| session.token(&[byte])).collect();
            let mut places = tokens.windows(answer.len());
            let begin = places.position(|window| window == answer).expect("the response");
            let mut matcher = session.matcher();
            for (n, token) in tokens[..begin + answer.len()].iter().enumerate() {
                let cut = &ANSWER.as_bytes()[n.saturating_sub(begin)..];
                if n >= begin {
                    assert!(lowered.may_end_response(&mut matcher, cut), "{}", format.name);
                    let cut = &cut[..cut.len() - 1];
                    assert!(!lowered.may_end_response(&mut matcher, cut), "{}", format.name);
                }
                matcher.advance(*token).expect("allowed");
            }
            assert!(lowered.may_end_response(&mut matcher, b""), "{}", format.name);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn tag_errors_have_pointers_into_the_request() {
    let places = |format: Value| -> Vec<String> {
        let faults = match parse(format) {
            Err(error) => error.faults(),
            Ok(request) => Catalog::shipped()
                .get("qwen3")
                .expect("format")
                .lower(&request)
                .unwrap_err()
                .faults(),
        };
        faults.into_iter().map(|fault| fault.pointer).collect()
    };
    let schema = json!({"type": "objet"});
    for (format, want) in [
        (json!({"type": "structural_tag"}), "/response_format"),
        (
            json!({"type": "structural_tag", "format": {"type": "nothing"}}),
            "/response_format/format/type",
        ),
        (
            json!({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}),
            "/response_format/format/json_schema/type",
        ),
        (
            json!({"type": "structural_tag", "structures": [{"begin": "<a>", "schema": schema, "end": "</a>"}], "triggers": ["<a>"]}),
            "/response_format/structures/0/schema/type",
        ),
        (json!({"type": "markdown"}), "/response_format/type"),
    ] {
        assert_eq!(places(format.clone()), [want], "{format}");
    }
}
