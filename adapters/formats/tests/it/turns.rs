//! `data/turns.toml`: what each request accepts, refuses and extracts.

use louver::vocab::Vocabulary;
use louver_formats::{Call, Catalog, Cut, Incomplete, Turn};
use serde::Deserialize;

use crate::harness::{accepts, bytes, data, extract, pieces, recognizer, request, with};

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
    accepts: Vec<Accept>,
    #[serde(default)]
    rejects: Vec<String>,
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
    /// The text is only the beginning of a turn: cut off in this.
    cut: Option<CutOff>,
    /// Whether the renderer writes exactly this.
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
    Call { id: String::new(), name: name.clone(), arguments: arguments.clone() }
}

impl Accept {
    fn turn(&self) -> Turn {
        let incomplete = self.cut.as_ref().map(|cut| Incomplete {
            why: cut.why,
            call: cut.call.as_ref().map(call),
            partial: cut.partial.clone(),
        });
        Turn {
            text: self.text.clone(),
            reasoning: self.reasoning.clone(),
            calls: self.calls.iter().map(call).collect(),
            incomplete,
        }
    }
}

/// Without ids, which are their own test.
fn without_ids(mut turn: Turn) -> Turn {
    let open = turn.incomplete.iter_mut().filter_map(|i| i.call.as_mut());
    turn.calls.iter_mut().chain(open).for_each(|call| call.id.clear());
    turn
}

#[test]
fn cases() {
    let file: File = toml::from_str(&data("turns.toml")).expect("turns.toml");
    let mut catalog = Catalog::builtin();
    for (name, text) in &file.formats {
        assert_eq!(&catalog.add_toml(text).expect("format"), name);
    }
    let mut checked = 0;
    for case in &file.case {
        let choice = serde_json::from_str(&case.tool_choice).expect("tool_choice");
        for format_name in &case.formats {
            let at = format!("{} in {format_name}", case.name);
            let format = catalog.get(format_name).expect("format").bind(&Vocabulary::toy(&[]));
            let request = request(&file.tools[&case.tools], &choice);
            let request = with(request, &case.parallel, &case.reasoning, case.response_format.as_deref());
            let plan = format.lower(&request).unwrap_or_else(|e| panic!("{at}: {e}"));
            let mut recognizer = recognizer(&plan);
            for accept in &case.accepts {
                let (wire, want) = (&accept.wire, accept.turn());
                assert_eq!(accepts(&mut recognizer, wire), accept.cut.is_none(), "{at}: {wire:?}");
                let whole = extract(&plan, &bytes(wire), 1);
                let (turn, events) = whole.unwrap_or_else(|n| panic!("{at}: {wire:?}: refused at byte {n}"));
                assert_eq!(without_ids(turn), want, "{at}: {wire:?}");
                for seed in 0..12 {
                    let pieces = pieces(wire, seed, 1 + 3 * seed as usize);
                    let (_, others) =
                        extract(&plan, &pieces, 1 + seed as usize % 3).expect("taken in other pieces too");
                    assert_eq!(others, events, "{at}: {wire:?} as {pieces:?}");
                }
                if accept.rendered {
                    assert_eq!(&format.render(&want), wire, "{at}");
                }
                checked += 1;
            }
            for wire in &case.rejects {
                assert!(!accepts(&mut recognizer, wire), "{at}: accepts {wire:?}");
                let taken = extract(&plan, &bytes(wire), 1);
                assert!(!matches!(&taken, Ok((turn, _)) if turn.incomplete.is_none()), "{at}: {wire:?} is whole");
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "only {checked} checks ran");
}
