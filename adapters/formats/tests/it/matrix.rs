//! Every family x tool choice x reasoning x parallel calls x strictness: renderings are accepted
//! and extracted again; systematic corruptions are refused, each at the first byte that cannot be
//! right.

use std::num::NonZeroU32;

use louver_formats::{
    ArgumentStyle, Call, CallSpelling, Catalog, LoweredRequest, Parallel, ParallelPolicy, Part,
    Reasoning, RenderError, RenderOptions, Strictness, ToolChoice, ToolRequest, Turn, WireFormat,
};
use serde_json::json;

use crate::harness::request;
use crate::rig::{Rig, Session, Specials};

pub(crate) const TOOLS: &str = r#"[
  {"name": "get_weather", "strict": true, "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "days"], "additionalProperties": false}},
  {"name": "get_time", "strict": false, "parameters": {"type": "object", "properties": {
    "zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"], "additionalProperties": false}}
]"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Auto,
    Required,
    Named,
    None,
    Allowed,
}

const CHOICES: [Choice; 5] =
    [Choice::Auto, Choice::Required, Choice::Named, Choice::None, Choice::Allowed];
const PARALLEL: [Parallel; 2] = [Parallel::Any, Parallel::One];
const STRICT: [Strictness; 2] = [Strictness::All, Strictness::AsFlagged];

pub(crate) fn call(name: &str, arguments: &str) -> Call {
    Call::new(name, arguments)
}

fn weather() -> Call {
    call("get_weather", r#"{"city": "São \"Paulo\" [3]", "days": 3, "unit": "C"}"#)
}

fn time() -> Call {
    call("get_time", r#"{"zone": "CET"}"#)
}

pub(crate) struct Cell<'a> {
    pub(crate) rig: &'a Rig,
    pub(crate) choice: Choice,
    pub(crate) reasoning: Reasoning,
    pub(crate) parallel: Parallel,
    pub(crate) strictness: Strictness,
}

impl Cell<'_> {
    pub(crate) fn request(&self) -> ToolRequest {
        let choice = match self.choice {
            Choice::Auto | Choice::Allowed => ToolChoice::Auto,
            Choice::Required => ToolChoice::Required,
            Choice::Named => ToolChoice::Named("get_weather".to_owned()),
            Choice::None => ToolChoice::None,
        };
        request(TOOLS, &json!("auto"))
            .with_tool_choice(choice)
            .with_allowed((self.choice == Choice::Allowed).then(|| vec!["get_weather".to_owned()]))
            .with_parallel(self.parallel)
            .with_reasoning(self.reasoning)
            .with_strictness(self.strictness)
    }

    fn has_reasoning(&self) -> bool {
        self.rig.format.reasoning.is_some() && self.reasoning != Reasoning::Off
    }

    fn forced(&self) -> bool {
        matches!(self.choice, Choice::Required | Choice::Named)
    }

    fn several(&self) -> bool {
        self.parallel == Parallel::Any
            && self.rig.format.call.parallel == ParallelPolicy::Many
            && !matches!(self.choice, Choice::Named | Choice::None)
    }

    fn turn(&self, text: &str, calls: Vec<Call>) -> Turn {
        let reasoning =
            if self.has_reasoning() { "Hm, so:\n{it} is <b>.".to_owned() } else { String::new() };
        Turn::default().with_text(text).with_reasoning(reasoning).with_calls(calls)
    }

    /// Turns that this cell of the matrix allows, as its models write them.
    pub(crate) fn turns(&self) -> Vec<(Turn, String)> {
        let mut turns = Vec::new();
        if !self.forced() {
            turns.push(self.turn("Hello, 天 😀.", Vec::new()));
        }
        if self.choice != Choice::None {
            turns.push(self.turn("", vec![weather()]));
            let text = if self.forced() { "" } else { "So:" };
            turns.push(self.turn(text, vec![call("get_weather", r#"{"city": "x", "days": 7}"#)]));
        }
        if self.several() {
            let second = if self.choice == Choice::Allowed { weather() } else { time() };
            turns.push(self.turn("", vec![weather(), second, weather()]));
        }
        turns.into_iter().filter_map(|turn| Some((turn.clone(), self.render(&turn)?))).collect()
    }

    fn render(&self, turn: &Turn) -> Option<String> {
        let options = RenderOptions::default().with_opened(self.reasoning == Reasoning::Opened);
        match self.rig.format.render_with(turn, options) {
            Ok(wire) => Some(wire),
            Err(RenderError::TextBesideCalls) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Turns that this cell must refuse, and the most bytes of each that may be accepted, if the
    /// first wrong byte is known.
    fn corruptions(&self) -> Vec<(&'static str, String, Option<usize>)> {
        let mut out: Vec<(&'static str, String, Option<usize>)> = Vec::new();
        let mut wrong = |what, calls: Vec<Call>, marked: &str| {
            if let Some(wire) = self.render(&self.turn("", calls)) {
                // The text after the mark must not be accepted.
                let upto = (!marked.is_empty())
                    .then(|| wire.rfind(marked).map(|at| at + marked.len()))
                    .flatten();
                out.push((what, wire, upto));
            }
        };
        if self.choice == Choice::None {
            wrong("a call that is forbidden", vec![weather()], "");
            return out;
        }
        let args = |text: &str| vec![call("get_weather", text)];
        // If a begin marker may be text, an unknown name is refused together with the text after
        // it.
        let bare = self.rig.format.name == "llama3" && !self.forced();
        let by = |name: &'static str| if bare { "\"parameters\"" } else { name };
        wrong(
            "a name too short",
            vec![call("get_weathe", r#"{"city": "x", "days": 3}"#)],
            by("get_weathe"),
        );
        wrong(
            "a name too long",
            vec![call("get_weathers", r#"{"city": "x", "days": 3}"#)],
            by("get_weathers"),
        );
        wrong("another name", vec![call("set_weather", r#"{"city": "x", "days": 3}"#)], "s");
        wrong("a required argument missing", args(r#"{"city": "x"}"#), "");
        wrong("no arguments", args("{}"), "");
        wrong("a string for an integer", args(r#"{"city": "x", "days": "three"}"#), "");
        wrong("a fraction for an integer", args(r#"{"city": "x", "days": 3.5}"#), "3.");
        wrong("an integer too large", args(r#"{"city": "x", "days": 8}"#), "8");
        wrong("an integer of two digits", args(r#"{"city": "x", "days": 33}"#), "33");
        wrong("not in the list", args(r#"{"city": "x", "days": 3, "unit": "K"}"#), "K");
        wrong("null for an integer", args(r#"{"city": "x", "days": null}"#), "");
        wrong(
            "an argument that is not declared",
            args(r#"{"city": "x", "days": 3, "zzz": 1}"#),
            "zzz",
        );
        if self.strictness == Strictness::All
            && !matches!(self.choice, Choice::Named | Choice::Allowed)
        {
            wrong(
                "another tool's wrong argument",
                vec![call("get_time", r#"{"zone": "PST"}"#)],
                "PST",
            );
        }
        if matches!(self.choice, Choice::Named | Choice::Allowed) {
            wrong("a tool that may not be called", vec![time()], "");
        }
        if !self.several() {
            wrong("two calls where one is allowed", vec![weather(), weather()], "");
        }
        let good = self.render(&self.turn("", vec![weather()])).expect("renders");
        let at = good.rfind("get_weather").expect("name");
        let cut = (at..good.len()).filter(|&n| good.is_char_boundary(n));
        for (k, n) in cut.enumerate().filter(|(k, _)| k % 9 == 0) {
            out.push((
                if k == 0 { "cut off before the name" } else { "cut off" },
                good[..n].to_owned(),
                None,
            ));
        }
        let style = &self.rig.format.call.arguments;
        if matches!(style, ArgumentStyle::Json) {
            let brace = good.rfind('}').expect("brace");
            let extra = format!("{}}}{}", &good[..=brace], &good[brace + 1..]);
            // After the last call of a bare format, in free text, a brace is text.
            let is_text = self.rig.format.call.end.is_none() && !self.forced();
            if !is_text {
                out.push(("an extra brace", extra, None));
            }
        }
        if self.forced() {
            out.push(("text after a forced call", format!("{good} and"), None));
            out.extend(
                self.render(&self.turn("Text.", Vec::new())).map(|wire| ("no call", wire, None)),
            );
        }
        out
    }
}

fn check(
    cell: &Cell<'_>,
    session: &Session<'_>,
    at: &str,
    wrong: &mut Vec<String>,
) -> (usize, usize) {
    let (turns, corruptions) = (cell.turns(), cell.corruptions());
    for (want, wire) in &turns {
        let run = session.run(&session.tokens(&cell.rig.units(wire), 0), 7);
        let mut turn = run.turn.clone();
        turn.calls.iter_mut().for_each(|call| call.id.clear());
        if run.taken.is_err() || !run.complete {
            wrong.push(format!("{at}: {wire:?} refused at {:?}", run.taken));
        } else if turn != *want {
            wrong.push(format!("{at}: {wire:?} read as {turn:?}"));
        }
    }
    for (what, wire, upto) in &corruptions {
        let units = cell.rig.units(wire);
        let run = session.run(&session.tokens(&units, 0), 1_000);
        if run.taken.is_ok() && run.complete {
            wrong.push(format!("{at}: {what}: accepts {wire:?}"));
        }
        // Single bytes with the fewest special tokens: without special tokens, all tokens are
        // bytes.
        if let (Some(upto), Ok(())) = (upto, run.taken)
            && cell.rig.specials.is_empty()
            && *upto < wire.len()
        {
            wrong.push(format!("{at}: {what}: nothing is refused in {wire:?}"));
        }
        if let (Some(upto), Err(taken)) = (upto, run.taken)
            && cell.rig.specials.is_empty()
            && taken > *upto
        {
            wrong.push(format!("{at}: {what}: refused at {taken}, not by {upto}, in {wire:?}"));
        }
    }
    (turns.len(), corruptions.len())
}

pub(crate) fn cells<'a>(rig: &'a Rig) -> Vec<Cell<'a>> {
    let mut out = Vec::new();
    let on: &[Reasoning] = if rig.format.reasoning.is_some() {
        &[Reasoning::Optional, Reasoning::Opened, Reasoning::Required]
    } else {
        &[]
    };
    for choice in CHOICES {
        for &reasoning in on.iter().chain(&[Reasoning::Off]) {
            for (parallel, strictness) in PARALLEL.iter().flat_map(|p| STRICT.map(|s| (*p, s))) {
                out.push(Cell { rig, choice, reasoning, parallel, strictness });
            }
        }
    }
    out
}

#[test]
fn every_family_and_request() {
    let (mut wrong, mut turns, mut corruptions, mut count) = (Vec::new(), 0, 0, 0);
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        for cell in cells(&rig) {
            let at = format!(
                "{}, {:?}, reasoning {:?}, parallel {:?}, strict {:?}",
                format.name, cell.choice, cell.reasoning, cell.parallel, cell.strictness
            );
            let lowered: LoweredRequest =
                rig.format.lower(&cell.request()).unwrap_or_else(|e| panic!("{at}: {e}"));
            let session = rig.session(&lowered, &[], &[]);
            let (accepted, refused) = check(&cell, &session, &at, &mut wrong);
            turns += accepted;
            corruptions += refused;
            count += 1;
        }
    }
    println!(
        "{count} requests, {turns} turns accepted and read back, {corruptions} corruptions refused"
    );
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(turns > 3_000 && corruptions > 20_000);
}

#[test]
fn bounds_on_calls_hold() {
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        for choice in ["auto", "required"] {
            let most = NonZeroU32::new(2).expect("two");
            let request = request(TOOLS, &json!(choice))
                .with_parallel(Parallel::AtMost(most))
                .with_reasoning(Reasoning::Off);
            let lowered =
                rig.format.lower(&request).unwrap_or_else(|e| panic!("{}: {e}", format.name));
            let session = rig.session(&lowered, &[], &[]);
            let many = format.call.parallel == ParallelPolicy::Many;
            for (calls, taken) in [(1, true), (2, many), (3, false)] {
                let turn = Turn::default().with_calls(vec![weather(); calls]);
                let wire = rig.format.render(&turn).expect("renders");
                let run = session.run(&session.tokens(&rig.units(&wire), 0), 1_000);
                assert_eq!(
                    run.taken.is_ok() && run.complete,
                    taken,
                    "{}, {choice}: {calls} calls",
                    format.name
                );
            }
        }
    }
}

/// Calls of `ping` without arguments in lists of these lengths, as a spelling writes them.
fn spelled(format: &WireFormat, spelling: &CallSpelling, lists: &[usize]) -> String {
    let text = |parts: &[Part]| -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Name { .. } => "ping".to_owned(),
            Part::Gap { gap } => gap.clone(),
            Part::Marker(marker) => marker.write(),
            Part::Id { .. } | Part::Maybe { .. } => String::new(),
        };
        parts.iter().map(part).collect()
    };
    let arguments = match spelling.arguments.as_ref().unwrap_or(&format.call.arguments) {
        ArgumentStyle::Json | ArgumentStyle::Delimited(_) => "{}",
        _ => "",
    };
    let call = format!("{}{arguments}{}", text(&spelling.header), text(&spelling.trailer));
    let separator = spelling.separator.as_ref().map(|parts| parts.write()).unwrap_or_default();
    let (begin, end) = (spelling.begin.write(), spelling.end.as_ref().map(|end| end.write()));
    let list = |&n: &usize| {
        format!("{begin}{}{}", vec![&*call; n].join(&separator), end.as_deref().unwrap_or_default())
    };
    lists.iter().map(list).collect::<Vec<_>>().join("\n")
}

/// In every spelling whose calls stand in lists.
#[test]
fn bounds_on_calls_hold_in_lists() {
    let mut counted = Vec::new();
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        let most = NonZeroU32::new(3).expect("three");
        let request = request(r#"[{"name": "ping"}]"#, &json!("auto"))
            .with_parallel(Parallel::AtMost(most))
            .with_reasoning(Reasoning::Off);
        let lowered = rig.format.lower(&request).unwrap_or_else(|e| panic!("{}: {e}", format.name));
        let session = rig.session(&lowered, &[], &[]);
        let has_many = format.call.parallel == ParallelPolicy::Many;
        // With a section, there is one list.
        let has_lists = has_many && format.section.is_none();
        for spelling in rig.format.all_spellings().filter(|spelling| spelling.separator.is_some()) {
            for (lists, taken) in [
                (&[1][..], true),
                (&[3], has_many),
                (&[2, 1], has_lists),
                (&[1, 2], has_lists),
                (&[1, 1, 1], has_lists),
                (&[4], false),
                (&[3, 1], false),
                (&[2, 2], false),
                (&[1, 3], false),
                (&[1, 1, 2], false),
            ] {
                let wire = spelled(&rig.format, spelling, lists);
                let run = session.run(&session.tokens(&rig.units(&wire), 0), 1_000);
                let is_taken = run.taken.is_ok() && run.complete;
                assert_eq!(is_taken, taken, "{}: {wire:?}", format.name);
                let calls: usize = lists.iter().sum();
                assert!(!taken || run.turn.calls.len() == calls, "{wire:?}: {:?}", run.turn);
            }
            counted.push(format.name.clone());
        }
    }
    counted.dedup();
    println!("{counted:?}");
    assert!(["gemma3", "gemma4", "phi4_mini"].iter().all(|name| counted.iter().any(|c| c == name)));
}
