//! Every corruption of a turn is refused at the earliest byte: the first one after which no turn
//! can be completed. The reference is an independent interpreter of the descriptions (`oracle.rs`),
//! which also shows texts that are wrongly accepted. With `LOUVER_ALL_CASES=1` (in release:
//! minutes) every family with every request.

use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::json_schema::{Integers, SchemaOptions, Whitespace};
use louver::limits::Limits;
use louver::matcher::{Recognizer, Rejected};
use louver_formats::{
    Call, Catalog, Parallel, ParallelPolicy, Reasoning, RenderError, RenderOptions, ToolChoice,
    ToolRequest, Turn, WireFormat,
};
use serde_json::json;

use crate::harness::{all_cases, request};
use crate::oracle::{Demand, Match, TOOLS, turns};

/// The most faults per family that are printed.
const SHOWN: usize = 3;

fn call((name, arguments): &(&str, &str)) -> Call {
    Call::new(*name, *arguments)
}

fn requests(format: &WireFormat) -> Vec<(Demand, ToolRequest)> {
    let mut out = Vec::new();
    let many = format.call.parallel == ParallelPolicy::Many;
    let reasonings: &[Reasoning] = match format.reasoning {
        Some(_) => &[Reasoning::Off, Reasoning::Optional, Reasoning::Opened, Reasoning::Required],
        None => &[Reasoning::Off],
    };
    for (choice, tools, forced) in [
        (ToolChoice::Auto, 3, false),
        (ToolChoice::Required, 3, true),
        (ToolChoice::Named("set".to_owned()), 1, true),
        (ToolChoice::None, 0, false),
    ] {
        for &reasoning in reasonings {
            for parallel in [Parallel::Any, Parallel::One] {
                let named = matches!(choice, ToolChoice::Named(_));
                let demand = Demand {
                    tools,
                    forced,
                    several: many && parallel == Parallel::Any && !named,
                    reasoning,
                };
                let request = request(TOOLS, &json!("auto"))
                    .with_tool_choice(choice.clone())
                    .with_parallel(parallel)
                    .with_reasoning(reasoning)
                    .with_schema_options(
                        SchemaOptions::default()
                            .with_whitespace(Whitespace::PythonLike)
                            .with_integers(Integers::Digits),
                    );
                out.push((demand, request));
            }
        }
    }
    out
}

/// Turns that the request may allow or refuse, which the oracle decides.
fn written(format: &WireFormat, demand: Demand) -> Vec<String> {
    let one = ("set", r#"{"mode": "on", "level": 2}"#);
    let calls: [&[(&str, &str)]; 6] = [
        &[],
        &[one],
        &[("set", r#"{"mode": "only"}"#), ("set_all", "{}")],
        &[("set_all", "{}"), one, ("set", r#"{"level": 13}"#)],
        &[("seta", r#"{"mode": "off", "level": 3}"#)],
        &[("tune", r#"{"now": true, "keys": ["a"]}"#)],
    ];
    let mut out = Vec::new();
    for (k, calls) in calls.iter().enumerate() {
        let texts: &[&str] = if k < 3 { &["", "So <b>[x]</b> {"] } else { &[""] };
        for text in texts {
            let turn = Turn::default()
                .with_text(*text)
                .with_reasoning(if format.reasoning.is_some() && k != 2 {
                    "Hm,\n<i>".to_owned()
                } else {
                    String::new()
                })
                .with_calls(calls.iter().map(call).collect());
            let options =
                RenderOptions::default().with_opened(demand.reasoning == Reasoning::Opened);
            match format.render_with(&turn, options) {
                Ok(wire) => {
                    out.extend(spelled_otherwise(&wire));
                    out.push(wire);
                }
                Err(RenderError::TextBesideCalls) => {}
                Err(error) => panic!("{}: {error}", format.name),
            }
        }
    }
    out
}

/// The turn with values as Python prints them, or with strings in CDATA, which some formats accept.
fn spelled_otherwise(wire: &str) -> Vec<String> {
    let replaced = [
        wire.replace("true", "True").replace("[\"a\"]", "['a']"),
        wire.replace(">on<", "><![CDATA[on]]><"),
    ];
    replaced.into_iter().filter(|text| text != wire).collect()
}

/// The text with a code point removed, doubled, replaced or swapped with its neighbour, with a
/// piece of the text repeated or removed, and with more text at the end.
fn corruptions(wire: &str, round: usize, out: &mut impl FnMut(&str)) {
    let chars: Vec<(usize, char)> = wire.char_indices().collect();
    let others =
        ['"', '}', '<', '0', ' ', '\n', 'o', '\\', '>', '[', ']', '\'', '1', ',', '|', '{'];
    out(wire);
    for tail in [" and", "\n", "}", "]", "\"", "<"] {
        out(&format!("{wire}{tail}"));
    }
    for (k, &(at, c)) in chars.iter().enumerate() {
        let (before, after) = (&wire[..at], &wire[at + c.len_utf8()..]);
        out(&format!("{before}{after}"));
        out(&format!("{before}{c}{c}{after}"));
        for n in 0..3 {
            let other = others[(7 * k + 5 * n + 3 * round) % others.len()];
            out(&format!("{before}{other}{after}"));
            out(&format!("{before}{other}{c}{after}"));
        }
        if let Some(&(next_at, next)) = chars.get(k + 1) {
            out(&format!("{before}{next}{c}{}", &wire[next_at + next.len_utf8()..]));
        }
        // A piece from elsewhere: a misplaced marker, or the end of a call twice.
        let (from, _) = chars[(k * 31 + 17 * round) % chars.len()];
        let to =
            chars.get((k * 31 + 17 * round) % chars.len() + 12).map_or(wire.len(), |(at, _)| *at);
        out(&format!("{before}{}{c}{after}", &wire[from..to]));
        out(&format!("{before}{}", &wire[from..]));
    }
}

fn taken(recognizer: &mut Recognizer, wire: &str) -> Match {
    recognizer.reset();
    match recognizer.push(wire.as_bytes()) {
        Ok(()) => Match { viable: wire.len(), whole: recognizer.is_complete() },
        Err(Rejected::Byte { offset, .. }) => Match { viable: offset, whole: false },
        Err(limit) => panic!("{limit}"),
    }
}

#[test]
fn every_corruption_is_refused_at_the_earliest_byte() {
    let (mut checked, mut refused, mut wrong) = (0usize, 0usize, Vec::new());
    let mut families = 0;
    let mut shown = 0;
    for (f, format) in Catalog::shipped().formats().iter().enumerate() {
        let format = format.with_text_markers();
        families += 1;
        shown += SHOWN;
        for (n, (demand, request)) in requests(&format).into_iter().enumerate() {
            if !all_cases() && (n + f) % 5 > 0 {
                continue;
            }
            let at = format!("{}, {demand:?}", format.name);
            let lowered = format.lower(&request).unwrap_or_else(|e| panic!("{at}: {e}"));
            let compiled =
                Compiled::new(lowered.grammar().clone(), &Limits::default()).expect("compiles");
            let mut recognizer = Recognizer::new(Arc::new(compiled));
            let oracle = turns(&format, demand);
            for (round, wire) in written(&format, demand).iter().enumerate() {
                if !all_cases() && (round + n) % 3 > 0 {
                    continue;
                }
                corruptions(wire, round, &mut |text| {
                    let (got, want) = (taken(&mut recognizer, text), oracle.read(text.as_bytes()));
                    checked += 1;
                    refused += usize::from(want.viable < text.len());
                    if got != want && wrong.len() < shown {
                        wrong
                            .push(format!("{at}: {text:?}\n    taken {got:?}, should be {want:?}"));
                    }
                });
            }
        }
    }
    println!(
        "{families} families, {checked} texts, {refused} of them refused, each at the earliest byte"
    );
    assert!(wrong.is_empty(), "{} shown\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 2_000 * families && checked > refused, "{checked} {refused}");
}
