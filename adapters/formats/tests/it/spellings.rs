//! The cases of `data/spellings.toml`: each spelling of calls that a family's models are known to
//! write is a call or is refused, however tokens are cut; text that is not a call stays text.

use std::collections::HashSet;

use louver_formats::{Call, Catalog, Parallel, Reasoning, ToolRequest, Turn, WireFormat};
use serde::Deserialize;
use serde_json::json;

use crate::harness::{data, request};
use crate::matrix::call;
use crate::rig::{BOTH, Rig, Run, Unit, split};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    family: Vec<Family>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    formats: Vec<String>,
    /// Wire text, and the text beside the call.
    calls: Vec<(String, String)>,
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    text: Vec<String>,
}

const TOOLS: &str = r#"[
  {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"], "additionalProperties": false}},
  {"name": "get_time", "parameters": {}}
]"#;

fn weather() -> Vec<Call> {
    vec![call("get_weather", r#"{"city": "Oslo"}"#)]
}

struct Setting {
    request: ToolRequest,
    rig: Rig,
    at: String,
}

impl Setting {
    /// Runs the text as single bytes and in two at every offset. All must give the same turn.
    fn run(&self, wire: &str) -> Run {
        let lowered =
            self.rig.format.lower(&self.request).unwrap_or_else(|e| panic!("{}: {e}", self.at));
        let units = self.rig.units(wire);
        let session = self.rig.session(&lowered, &units, &[]);
        let mut whole = session.run(&session.tokens(&units, 0), 1);
        let len: usize = units.iter().map(Unit::bytes).sum();
        let starts = units.iter().scan(0, |from, unit| {
            let start = *from;
            *from += unit.bytes();
            Some((unit, start))
        });
        let pieces = starts.flat_map(|(unit, from)| {
            (from..from + unit.bytes()).flat_map(move |at| split(unit, from, at))
        });
        let session = self.rig.session_of(&lowered, pieces);
        for at in 0..len.max(1) {
            let cut = session.run(&session.tokens_split(&units, at), 1);
            let same = cut.taken.is_err() == whole.taken.is_err()
                && (cut.taken.is_err() || cut.events == whole.events);
            assert!(
                same,
                "{}: {wire:?} cut at {at}: {:?}\nnot {:?}",
                self.at, cut.turn, whole.turn
            );
        }
        whole.turn.calls.iter_mut().for_each(|call| call.id.clear());
        whole
    }
}

fn settings(name: &str, reasoning: Reasoning) -> Vec<Setting> {
    let catalog = Catalog::shipped();
    let format = catalog.get(name).expect("format");
    let mut out = Vec::new();
    for (specials, parallel) in
        BOTH.iter().flat_map(|s| [Parallel::Any, Parallel::One].map(|p| (*s, p)))
    {
        let request =
            request(TOOLS, &json!("auto")).with_parallel(parallel).with_reasoning(reasoning);
        let rig = Rig::new(format, specials);
        out.push(Setting { request, rig, at: format!("{name}, {specials:?}, {parallel:?}") });
    }
    out
}

#[test]
fn every_spelling_is_a_call_or_cannot_be_written() {
    let file: File = toml::from_str(&data("spellings.toml")).expect("spellings.toml");
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (family, name) in
        file.family.iter().flat_map(|family| family.formats.iter().map(move |name| (family, name)))
    {
        for setting in settings(name, Reasoning::Off) {
            let mut check = |wire: &str, right: &dyn Fn(&Run) -> bool, what: &str| {
                let run = setting.run(wire);
                checked += 1;
                if !right(&run) {
                    wrong.push(format!("{}: {wire:?} {what}: {run:?}", setting.at));
                }
            };
            let written = |run: &Run| run.taken.is_ok() && run.complete;
            for (wire, text) in &family.calls {
                // No text may follow the only call.
                let wire = if setting.request.parallel == Parallel::Any {
                    wire
                } else {
                    &up_to_call(wire)
                };
                let text = if setting.request.parallel == Parallel::Any {
                    text
                } else {
                    up_to_text(wire, text)
                };
                let turn = Turn::default().with_text(text).with_calls(weather());
                check(wire, &|run| written(run) && run.turn == turn, "is not the call");
                check(
                    &wire.replace("get_weather", "get_wether"),
                    &|run| !written(run),
                    "has a name of no tool",
                );
                check(
                    &wire.replace("get_weather", "get_weather_"),
                    &|run| !written(run),
                    "has a name of no tool",
                );
                check(
                    &wire.replace("{\"city\": \"Oslo\"}", "5"),
                    &|run| wire.find("{\"city\"").is_none() || !written(run),
                    "has no object",
                );
                check(&wire.replace("city", "cty"), &|run| !written(run), "has another argument");
            }
            for wire in &family.refused {
                check(wire, &|run| !written(run), "is taken");
            }
            for wire in &family.text {
                check(
                    wire,
                    &|run| written(run) && run.turn.text == *wire && run.turn.calls.is_empty(),
                    "is not text",
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 1_000, "{checked}");
    // Families whose calls begin with special tokens only are not listed.
    let listed: HashSet<&String> = file.family.iter().flat_map(|family| &family.formats).collect();
    let missing: Vec<String> =
        Catalog::shipped().names().into_iter().filter(|name| !listed.contains(name)).collect();
    assert_eq!(missing, ["beam", "glm4", "harmony", "inkling", "kimi_k3", "muse_glimmer"]);
}

/// A JSON object with the name of an offered tool is a call in every family whose text has no
/// markers, whatever white space an encoder writes.
#[test]
fn json_objects_are_calls_in_all_families() {
    const OBJECTS: [&str; 7] = [
        r#"{"name": "get_weather", "arguments": {"city": "Oslo"}}"#,
        r#"{"name":"get_weather","parameters":{"city": "Oslo"}}"#,
        "{\n        \"name\": \"get_weather\",\n        \"arguments\": {\"city\": \"Oslo\"}\n    }",
        "{\r\n  \"name\": \"get_weather\",\r\n  \"arguments\": {\"city\": \"Oslo\"}\r\n}",
        r#"{"tool_name": "get_weather", "parameters": {"city": "Oslo"} }"#,
        r#"{"type": "function", "name": "get_weather", "parameters": {"city": "Oslo"}}"#,
        "{\n  \"type\": \"function\",\n  \"function\": \"get_weather\",\n  \
         \"arguments\": {\"city\": \"Oslo\"}\n}",
    ];
    let catalog = Catalog::shipped();
    let begins = |format: &WireFormat| -> Vec<String> {
        format.all_spellings().map(|spelling| spelling.begin.write()).collect()
    };
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for format in catalog.formats() {
        if !begins(format).iter().any(|begin| begin.starts_with("{\"name")) {
            continue;
        }
        checked += 1;
        let setting = settings(&format.name, Reasoning::Off).remove(0);
        let written = |run: &Run| run.taken.is_ok() && run.complete;
        for wire in OBJECTS {
            let run = setting.run(wire);
            if !written(&run) || run.turn.calls != weather() {
                wrong.push(format!("{}: {wire:?} is not the call: {run:?}", setting.at));
            }
            if written(&setting.run(&wire.replace("city", "cty"))) {
                wrong.push(format!("{}: {wire:?} is taken with another argument", setting.at));
            }
            let text = wire.replace("get_weather", "Alice").replace("arguments", "wine");
            let text =
                text.replace("parameters", "wine").replace("\"type\": \"function\"", "\"a\": 1");
            let run = setting.run(&text);
            if !written(&run) || run.turn.text != text {
                wrong.push(format!("{}: {text:?} is not text: {run:?}", setting.at));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 60, "{checked}");
}

/// Without tools, the begin markers of alternative spellings are text.
#[test]
fn without_tools_other_spellings_are_text() {
    for (name, text) in [
        (
            "llama3",
            r#"{"type": "function", "function": {"name": "get_weather", "parameters": {}}}"#,
        ),
        ("llama3", r#"{"name": "get_weather", "parameters": {}}"#),
        ("qwen3_coder", "<function=f>\n<parameter=x>\n</parameter>"),
        ("phi4_mini", "functools[0]"),
    ] {
        let mut setting = settings(name, Reasoning::Off).remove(0);
        setting.request.tools.clear();
        let run = setting.run(text);
        assert!(
            run.taken.is_ok() && run.complete && run.turn.text == text,
            "{name}: {text}: {run:?}"
        );
    }
}

/// Spellings may have the same header: their begin markers tell them apart, and in a list of calls
/// the first call does.
#[test]
fn spellings_with_equal_headers_are_told_apart_by_their_begins() {
    let hermes = include_str!("../../families/hermes.toml");
    let invoke = r#"[[spellings]]
begin = { text = "<invoke=" }
header = [{ name = "raw" }, ">"]
arguments = { tagged = { open = ["<p=", { key = "raw" }, ">"], close = { text = "</p>" } } }
trailer = ["</invoke>"]
separator = ";<invoke:"
end = { text = "!" }

[[detect]]"#;
    let both = hermes.replacen("[[detect]]", invoke, 1).replace("\"hermes\"", "\"two\"");
    let format = WireFormat::from_toml(&both).expect("a format");
    let request = request(TOOLS, &json!("auto")).with_reasoning(Reasoning::Off);
    let setting = Setting { request, rig: Rig::new(&format, BOTH[0]), at: "two".to_owned() };
    let json = r#"<function=get_weather>{"city": "Oslo", "days": 5}</function>"#;
    let tagged = "<invoke=get_weather><p=city>Oslo</p><p=days>5</p></invoke>";
    let more = ";<invoke:get_weather><p=city>Oslo</p><p=days>5</p></invoke>";
    for (wire, calls) in [
        (json.to_owned(), 1),
        (format!("{tagged}!"), 1),
        (format!("{tagged}{more}{more}! and {json} and {tagged}{more}!"), 6),
    ] {
        let run = setting.run(&wire);
        assert!(run.complete, "{wire}: {:?}", run.taken);
        let expected = call("get_weather", r#"{"city": "Oslo", "days": 5}"#);
        assert_eq!(run.turn.calls, vec![expected; calls], "{wire}");
    }
}

/// The begin marker of a call must not occur in reasoning. JSON in reasoning is text.
#[test]
fn reasoning_contains_no_calls() {
    let file: File = toml::from_str(&data("spellings.toml")).expect("spellings.toml");
    let (mut wrong, mut checked) = (Vec::new(), 0);
    let catalog = Catalog::shipped();
    for (family, name) in
        file.family.iter().flat_map(|family| family.formats.iter().map(move |name| (family, name)))
    {
        if catalog.get(name).expect("format").reasoning.is_none() {
            continue;
        }
        let begins = ["{", "[{", "<tools>", "```json"];
        let calls = family
            .calls
            .iter()
            .map(|(wire, _)| wire.trim_start())
            .filter(|w| !begins.iter().any(|b| w.starts_with(b)));
        for (setting, wire) in settings(name, Reasoning::Opened)
            .iter()
            .flat_map(|s| calls.clone().map(move |wire| (s, wire)))
        {
            checked += 1;
            let run = setting.run(&format!("Hm, {wire}"));
            if run.taken.is_ok() {
                wrong.push(format!("{}: {wire:?}: {run:?}", setting.at));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 90, "{checked}");
}

/// The wire text up to the end of its unambiguous call.
fn up_to_call(wire: &str) -> String {
    let tail = ["\n```", "\n</tools>", "]"]
        .iter()
        .find(|tail| wire.starts_with(tail_head(tail)) && wire.ends_with(**tail));
    tail.map_or(wire, |tail| wire.strip_suffix(tail).unwrap_or(wire)).trim_end().to_owned()
}

fn tail_head(tail: &str) -> &'static str {
    match tail {
        "\n```" => "```json",
        "\n</tools>" => "<tools>",
        _ => "[{",
    }
}

fn up_to_text<'t>(wire: &str, text: &'t str) -> &'t str {
    let head = text.find("\n\n```").map(|at| at + 1).or(text.find("\n</tools>")).or(text.find(']'));
    head.filter(|_| !wire.ends_with("```") || wire.starts_with("```json"))
        .map_or(text, |at| &text[..at])
}
