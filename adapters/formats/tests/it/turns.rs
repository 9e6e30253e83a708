//! The cases of `data/turns.toml` and `data/families/`: the turns that each request accepts and
//! refuses, and the extracted turns.

use std::path::PathBuf;

use louver::limits::Limits;
use louver::spec::json::Json;
use louver_formats::{
    BuiltinTool, Call, Catalog, Cut, Incomplete, LoweredRequest, ReasoningBudget, RenderOptions,
    Tool, Turn,
};
use serde::Deserialize;

use crate::harness::{data, request, with};
use crate::rig::{BOTH, Rig, Specials};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tools: std::collections::HashMap<String, String>,
    /// Formats that are not shipped, as TOML.
    #[serde(default)]
    formats: std::collections::HashMap<String, String>,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    formats: Vec<String>,
    tools: String,
    #[serde(default = "auto")]
    tool_choice: String,
    #[serde(default = "any")]
    parallel: String,
    #[serde(default = "optional")]
    reasoning: String,
    response_format: Option<String>,
    #[serde(default)]
    stop: Vec<String>,
    #[serde(default)]
    bans: Vec<String>,
    reasoning_budget: Option<Most>,
    /// Name and schema. Without a schema, the tool is called with code.
    #[serde(default)]
    builtins: Vec<(String, String)>,
    #[serde(default)]
    accepts: Vec<Accept>,
    #[serde(default)]
    rejects: Vec<String>,
}

/// The reasoning budget.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Most {
    Tokens(u32),
    Characters(u32),
}

impl Most {
    fn budget(self) -> ReasoningBudget {
        match self {
            Most::Tokens(most) => ReasoningBudget::Tokens(most),
            Most::Characters(most) => ReasoningBudget::Characters(most),
        }
    }
}

fn auto() -> String {
    "\"auto\"".to_owned()
}

fn any() -> String {
    "any".to_owned()
}

fn optional() -> String {
    "optional".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Accept {
    wire: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    calls: Vec<(String, String)>,
    /// The text is a prefix of a turn that is cut off in this part.
    cut: Option<CutOff>,
    /// Whether the renderer writes exactly this text.
    #[serde(default)]
    rendered: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutOff {
    why: Cut,
    call: Option<(String, String)>,
    #[serde(default)]
    partial: String,
}

fn call((name, arguments): &(String, String)) -> Call {
    Call::new(name, arguments)
}

impl Accept {
    fn turn(&self) -> Turn {
        let incomplete = self.cut.as_ref().map(|cut| {
            Incomplete::new(cut.why)
                .with_call(cut.call.as_ref().map(call))
                .with_partial(cut.partial.clone())
        });
        Turn::default()
            .with_text(self.text.clone())
            .with_reasoning(self.reasoning.clone())
            .with_calls(self.calls.iter().map(call).collect())
            .with_incomplete(incomplete)
    }
}

/// The turn without ids, which have their own test.
fn without_ids(mut turn: Turn) -> Turn {
    let open = turn.incomplete.iter_mut().filter_map(|i| i.call.as_mut());
    turn.calls.iter_mut().chain(open).for_each(|call| call.id.clear());
    turn
}

/// Runs a file of cases, each in all of its formats and for both vocabularies. Returns the number
/// of checks, and adds faults to the list.
fn run(name: &str, vocabularies: &[Specials], wrong: &mut Vec<String>) -> usize {
    let file: File = toml::from_str(&data(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut catalog = Catalog::shipped();
    for (name, text) in &file.formats {
        assert_eq!(&catalog.add_toml(text).expect("format"), name);
    }
    let mut checked = 0;
    for case in &file.case {
        let choice = serde_json::from_str(&case.tool_choice).expect("tool_choice");
        let settings = case
            .formats
            .iter()
            .flat_map(|name| vocabularies.iter().map(move |which| (name, *which)));
        for (format_name, which) in settings {
            let at = format!("{} in {format_name}, {which:?}", case.name);
            let rig = Rig::new(catalog.get(format_name).expect("format"), which);
            let request = request(&file.tools[&case.tools], &choice);
            let mut request =
                with(request, &case.parallel, &case.reasoning, case.response_format.as_deref());
            (request.stop, request.bans) = (case.stop.clone(), case.bans.clone());
            request.reasoning_budget = case.reasoning_budget.map(Most::budget);
            request.tools.extend(case.builtins.iter().map(builtin));
            let builtins: Vec<&str> = case.builtins.iter().map(|(name, _)| name.as_str()).collect();
            let options = RenderOptions::default()
                .with_opened(case.reasoning == "opened")
                .with_builtins(&builtins);
            let lowered = match rig.format.lower(&request) {
                Ok(lowered) => lowered,
                Err(error) => {
                    wrong.push(format!("{at}: {error}"));
                    continue;
                }
            };
            for accept in &case.accepts {
                let what = accepted(&rig, &lowered, accept, options);
                wrong.extend(what.map(|what| format!("{at}: {:?} {what}", accept.wire)));
                checked += 1;
            }
            for wire in &case.rejects {
                let units = rig.units(wire);
                let session = rig.session(&lowered, &units, &[]);
                let run = session.run(&session.tokens(&units, 0), 1);
                if run.taken.is_ok() && (run.complete || run.turn.incomplete.is_none()) {
                    wrong.push(format!("{at}: accepts {wire:?}"));
                }
                checked += 1;
            }
        }
    }
    checked
}

/// The fault of a turn that should be accepted, if it has one.
fn accepted(
    rig: &Rig,
    lowered: &LoweredRequest,
    accept: &Accept,
    options: RenderOptions<'_>,
) -> Option<String> {
    let (wire, want) = (&accept.wire, accept.turn());
    let units = rig.units(wire);
    let seeds: Vec<u64> = (0..9).collect();
    let session = rig.session(lowered, &units, &seeds);
    let whole = session.run(&session.tokens(&units, 0), 1);
    if let Err(at) = whole.taken {
        return Some(format!("is refused at {at}"));
    }
    if whole.complete != accept.cut.is_none() {
        return Some(format!("is complete: {}", whole.complete));
    }
    if without_ids(whole.turn.clone()) != want {
        return Some(format!("is read as {:?}", whole.turn));
    }
    for &seed in &seeds[1..] {
        let other = session.run(&session.tokens(&units, seed), 1 + seed as usize % 3);
        if other.events != whole.events {
            return Some(format!("cut by seed {seed} is read as {:?}", other.events));
        }
    }
    let rendered = rig.format.render_with(&want, options);
    (accept.rendered && rendered.as_ref() != Ok(wire))
        .then(|| format!("is written as {rendered:?}"))
}

fn builtin((name, parameters): &(String, String)) -> Tool {
    let parameters = (!parameters.is_empty())
        .then(|| Json::parse(parameters, &Limits::default()).expect("schema"));
    BuiltinTool::new(name, parameters).expect("a name").into()
}

#[test]
fn cases() {
    let mut wrong = Vec::new();
    let checked = run("turns.toml", &[Specials::Fewest], &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 60, "only {checked} checks ran");
}

/// A file of cases for every family, with the fewest and with the most special tokens.
#[test]
fn families() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/families");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(folder).expect("folder") {
        let name = entry.expect("entry").file_name().into_string().expect("name");
        checked += run(&format!("families/{name}"), &BOTH, &mut wrong);
        seen.push(name.trim_end_matches(".toml").to_owned());
    }
    assert!(wrong.is_empty(), "{} of {checked}\n{}", wrong.len(), wrong.join("\n"));
    for name in Catalog::shipped().names() {
        assert!(seen.contains(&name), "{name} has no cases");
    }
    println!("{checked} checks in {} families", seen.len());
}
