//! Real function-calling cases, if this machine has them: rendered in every family, accepted, and
//! extracted again.

use louver_formats::{
    ArgumentStyle, Call, Catalog, LowerError, ParallelPolicy, RenderError, Turn, WireFormat,
    python_json,
};
use louver_test_support::text_if_present;
use serde_json::{Value, json};

use crate::harness::{all_cases, request};
use crate::rig::{Rig, Specials};

/// One of this number of cases is run, unless all are.
const STRIDE: usize = 40;

/// The turn of a case, with its first call only if the family has one call in a turn.
pub(crate) fn case_turn(format: &WireFormat, case: &Value) -> Turn {
    let most = if format.call.parallel == ParallelPolicy::One { 1 } else { usize::MAX };
    let call =
        |c: &Value| Call::new(c["name"].as_str().expect("name"), python_json(&c["arguments"]));
    Turn::default()
        .with_text(format!(
            "I will look into this: {}",
            case["question"].as_str().expect("question")
        ))
        .with_calls(case["calls"].as_array().expect("calls").iter().take(most).map(call).collect())
}

/// The calls with their arguments as values, as families differ in spacing.
fn by_value(turn: &Turn) -> Vec<(String, Value)> {
    let text = |call: &Call| Value::from(format!("no JSON: {}", call.arguments));
    let value = |call: &Call| serde_json::from_str(&call.arguments).unwrap_or_else(|_| text(call));
    turn.calls.iter().map(|call| (call.name.clone(), value(call))).collect()
}

/// Whether calls are equal. A format with unescaped strings cannot tell the string `null` from the
/// value where the schema allows both, so that such differences are ignored.
fn same(rig: &Rig, got: &[(String, Value)], want: &[(String, Value)]) -> bool {
    let open = matches!(rig.format.call.arguments, ArgumentStyle::Tagged(_));
    let spelled = |got: &Value, want: &Value| {
        open && want.as_str().is_some_and(|text| {
            serde_json::from_str::<Value>(text).is_ok_and(|value| value == *got)
        })
    };
    let values = |got: &Value, want: &Value| match (got.as_object(), want.as_object()) {
        (Some(a), Some(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((k, v), (l, w))| k == l && (v == w || spelled(v, w)))
        }
        _ => got == want,
    };
    got.len() == want.len() && got.iter().zip(want).all(|((a, v), (b, w))| a == b && values(v, w))
}

#[test]
fn rendered_calls_are_accepted_and_read_back_if_present() {
    let Some(file) = text_if_present("toolcalls-dev.jsonl") else { return };
    let stride = if all_cases() { 1 } else { STRIDE };
    let (mut taken, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    let rigs: Vec<Rig> =
        Catalog::shipped().formats().iter().map(|f| Rig::new(f, Specials::Fewest)).collect();
    for (n, line) in file.lines().enumerate().step_by(stride) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let request = request(&case["tools"].to_string(), &json!("auto"));
        for (k, rig) in rigs.iter().enumerate() {
            if stride > 1 && (n / stride + k) % 3 > 0 {
                continue;
            }
            let at = format!("{} in {}", case["id"], rig.format.name);
            let mut want = case_turn(&rig.format, &case);
            let lowered = match rig.format.lower(&request) {
                Ok(lowered) => lowered,
                Err(LowerError::Parts(errors)) => {
                    refused.push(format!("{at}: {errors}"));
                    continue;
                }
                Err(error) => panic!("{at}: {error}"),
            };
            let wire = match rig.format.render(&want) {
                Err(RenderError::TextBesideCalls) => {
                    want.text.clear();
                    rig.format.render(&want)
                }
                other => other,
            };
            let wire = wire.unwrap_or_else(|error| panic!("{at}: {error}"));
            let units = rig.units(&wire);
            let session = rig.session(&lowered, &units, &[0]);
            let run = session.run(&session.tokens(&units, 0), 64);
            if run.taken.is_err() || !run.complete {
                let upto: String =
                    wire.chars().take(run.taken.err().unwrap_or(usize::MAX)).collect();
                wrong.push(format!("{at}: refused after {upto:?}"));
            } else if run.turn.text != want.text
                || !same(rig, &by_value(&run.turn), &by_value(&want))
            {
                wrong.push(format!("{at}: read as {:?} from {wire:?}", run.turn));
            }
            taken += 1;
        }
    }
    println!("{taken} taken, {} with schemas that are refused", refused.len());
    assert!(wrong.is_empty(), "{} of {taken}\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused.is_empty(), "{} refused\n{}", refused.len(), refused.join("\n"));
    assert!(taken > 200);
}
