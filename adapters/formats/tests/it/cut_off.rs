//! Generations that a length limit ends by forcing their shortest completion. A call with code is
//! incomplete then, as its end marker may be a part of longer code; a call with JSON is complete.

use louver::matcher::Tracer;
use louver::spec::json::Json;
use louver_formats::{Call, Catalog, Cut, Event, LowerError, RenderOptions, ToolRequest, Turn};
use serde_json::{Value, json};

use crate::harness::{SEED, joined};
use crate::rig::{BOTH, Rig, Unit};

fn offering(tool: Value) -> ToolRequest {
    ToolRequest::parse(&Json::from(json!({"tools": [tool], "tool_choice": "required"})))
        .expect("a request")
}

fn call(name: &str, arguments: &Value) -> Turn {
    let arguments = arguments.to_string();
    let call = Call::new(name, arguments);
    Turn::default().with_calls(vec![call])
}

fn written(rig: &Rig, turn: &Turn) -> String {
    let options = RenderOptions::default().with_builtins(&["python"]);
    rig.format.render_with(turn, options).expect("renders")
}

/// The events of a turn that is cut off `after` tokens before its end, and the events of the same
/// turn that is not cut off.
fn events(rig: &Rig, request: &ToolRequest, turn: &Turn, after: usize) -> Option<[Vec<Event>; 2]> {
    let lowered = match rig.format.lower(request) {
        Ok(lowered) => lowered,
        Err(LowerError::Combination { .. }) => return None,
        Err(error) => panic!("{}: {error}", rig.format.name),
    };
    let wire = written(rig, turn);
    let units = rig.units(&wire);
    let session = rig.session(&lowered, &units, &[0]);
    let tokens = session.tokens(&units, 0);
    Some([true, false].map(|cut| {
        let mut matcher = session.matcher();
        let (mut tracer, mut extractor, mut events) =
            (Tracer::new(), lowered.extractor(SEED), Vec::new());
        for (at, &token) in tokens.iter().enumerate() {
            if cut && at + after == tokens.len() {
                extractor.cut_off();
            }
            matcher.advance_traced(token, &mut tracer).expect("the turn is allowed");
            events.extend(extractor.push(tracer.drain()));
        }
        if cut && after == 0 {
            extractor.cut_off();
        }
        events.extend(extractor.push(tracer.finish()));
        events.extend(extractor.finish(matcher.is_complete()));
        joined(events)
    }))
}

#[test]
fn cut_off_code_is_no_call() {
    let (request, turn) =
        (offering(json!({"type": "python"})), call("python", &json!({"code": "x = 1\nprint(x"})));
    let mut tried = 0;
    for (format, which) in
        Catalog::shipped().formats().iter().flat_map(|format| BOTH.map(|which| (format, which)))
    {
        let rig = Rig::new(format, which);
        // Only one token is forced: an end marker that is a special token.
        let ends_with_a_token =
            || matches!(rig.units(&written(&rig, &turn)).last(), Some(Unit::Special(_)));
        if rig.format.builtin.is_none() || !ends_with_a_token() {
            continue;
        }
        let Some([cut, whole]) = events(&rig, &request, &turn, 1) else { continue };
        assert!(
            matches!(whole[..], [.., Event::CallEnd { index: 0 }, Event::End]),
            "{}: {whole:?}",
            format.name
        );
        let said = cut.iter().filter_map(|event| match event {
            Event::ArgumentsDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        assert_eq!(said.collect::<String>(), "{\"code\": \"x = 1\\nprint(x", "{}", format.name);
        let incomplete =
            Event::Incomplete { why: Cut::CallArguments, call: Some(0), partial: String::new() };
        assert_eq!(cut[cut.len() - 2..], [incomplete, Event::End], "{}", format.name);
        tried += 1;
    }
    assert!(tried >= 3, "{tried}");
}

#[test]
fn complete_json_is_a_call_after_a_cut_off() {
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object",
        "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false}}});
    let (request, turn) = (offering(tool), call("f", &json!({"x": 1})));
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, BOTH[0]);
        for after in [0, 1] {
            let Some([cut, whole]) = events(&rig, &request, &turn, after) else { continue };
            assert_eq!(cut, whole, "{}", format.name);
            assert!(whole.contains(&Event::CallEnd { index: 0 }), "{}: {whole:?}", format.name);
        }
    }
}
