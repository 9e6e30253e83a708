//! The renderings that a probe looks at.

use louver_formats::IdStyle;
use serde_json::{Value, json};

use super::error::{ProbeError, undetermined};
use crate::chat_template::{ChatTemplate, TemplateError};
use crate::confirm::TOOLS_REFUSED;
use crate::message_style::MessageStyle;
use crate::turns::{
    LONG_ID, Opening, RenderedTurn, TAKES_PARTS, TEXT, TurnContext, TurnInput, TurnRenderer,
};

/// The names of the called tools.
pub(super) const NAMES: [&str; 2] = ["zqfirst_fn", "zqsecond_fn"];
/// The names of arguments.
pub(super) const KEYS: [&str; 2] = ["zqkeya", "zqkeyb"];
/// The values of arguments.
pub(super) const VALUES: [&str; 2] = ["zqvala", "zqvalb"];
/// Reasoning.
pub(super) const REASONING: &str = "Zqreason mitul.";

/// Values of each type but strings, with their keys and how a text of the value may begin; a scalar
/// is all of it.
pub(super) const TYPED: [TypedSample; 6] = [
    TypedSample { kind: "integer", key: "zqwhole", value: "471108", texts: &["471108"] },
    TypedSample { kind: "number", key: "zqfraction", value: "4711.25", texts: &["4711.25"] },
    TypedSample { kind: "boolean", key: "zqtruth", value: "true", texts: &["true", "True"] },
    TypedSample { kind: "null", key: "zqnothing", value: "null", texts: &["null", "None"] },
    TypedSample {
        kind: "array",
        key: "zqlist",
        value: "[\"zqitem\"]",
        texts: &["[\"zqitem", "['zqitem"],
    },
    TypedSample {
        kind: "object",
        key: "zqmap",
        value: "{\"zqmember\": \"zqinner\"}",
        texts: &["{\"zqmember", "{'zqmember"],
    },
];

/// A value of one type.
pub(super) struct TypedSample {
    /// The type in JSON Schema.
    pub(super) kind: &'static str,
    pub(super) key: &'static str,
    /// The value as JSON text.
    value: &'static str,
    pub(super) texts: &'static [&'static str],
}

impl TypedSample {
    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self.kind, "array" | "object")
    }

    /// The arguments with this value alone.
    fn arguments(&self) -> Value {
        let value: Value = serde_json::from_str(self.value).unwrap_or_default();
        json!({self.key: value})
    }
}

/// The forms of ids, the widest first, with ids that each has: of the least and the most characters
/// and of all kinds of characters.
const ID_FORMS: [(IdStyle, &[&str]); 3] = [
    (IdStyle::Identifier, &["x", "7", LONG_ID, LONGEST_ID]),
    (IdStyle::Word, &["abcdXYZ9", "0123456789abcDEF"]),
    (IdStyle::Nine, &["abcdXYZ98", "012345678"]),
];

/// An id of as many characters as ids may have.
const LONGEST_ID: &str = "0-9_abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ_987654";

/// The stand-in for the id of a call in renderings.
pub(super) const ID: char = '\u{e000}';

/// Turns as the template writes them, with ids replaced by [`ID`].
#[derive(Debug)]
pub(super) struct Samples {
    pub(super) style: MessageStyle,
    /// The form of the ids of calls, if the template writes them.
    pub(super) id: IdStyle,
    /// The prompt of a turn with reasoning.
    pub(super) prompt: String,
    pub(super) text: String,
    /// Whether the template writes text only as a list of content parts.
    pub(super) takes_parts: bool,
    pub(super) one: String,
    pub(super) two_arguments: String,
    pub(super) no_arguments: Option<String>,
    pub(super) two: Option<String>,
    pub(super) text_and_call: Option<String>,
    /// Calls with one argument: a value of each type but strings, as in [`TYPED`].
    pub(super) typed: [Option<String>; TYPED.len()],
    /// The prompt and the turn.
    pub(super) reasoning_and_text: Option<RenderedTurn>,
}

/// Arguments: the first `n` keys with their values.
fn arguments(n: usize) -> Value {
    KEYS.iter().zip(VALUES).take(n).map(|(key, value)| (*key, value)).collect::<Value>()
}

/// The tools of all samples.
pub(super) fn tools() -> Vec<Value> {
    let tool = |name| {
        let of = |kind: &str| json!({"type": kind, "description": "A value."});
        let mut properties = json!({KEYS[0]: of("string"), KEYS[1]: of("string")});
        for TypedSample { kind, key, .. } in &TYPED {
            // Templates expect no property that is always null.
            properties[*key] = of(if *kind == "null" { "integer" } else { kind });
            match *kind {
                "array" => properties[*key]["items"] = json!({"type": "string"}),
                "object" => properties[*key]["properties"] = json!({"zqmember": of("string")}),
                _ => {}
            }
        }
        json!({"type": "function", "function": {"name": name, "description": "A tool.",
            "parameters": {"type": "object", "properties": properties, "required": []}}})
    };
    NAMES.into_iter().map(tool).collect()
}

/// The arguments of the calls of all samples with one call.
pub(super) fn one_argument() -> Value {
    arguments(1)
}

impl Samples {
    /// Renders the turns with messages in this style.
    pub(super) fn render(
        template: &ChatTemplate,
        tokens: &[String],
        style: MessageStyle,
    ) -> Result<Samples, ProbeError> {
        let tools = tools();
        let refused = |error: TemplateError| ProbeError::NoCalls(error.to_string());
        let turns_after = |opening| {
            TurnRenderer::new(template, &tools, tokens, style, TurnContext::after(opening))
        };
        let turns = turns_after(Opening::Question).map_err(|error| {
            match turns_after(Opening::WithoutTools) {
                Ok(_) => ProbeError::NoCalls(format!("{error}; {TOOLS_REFUSED}")),
                Err(_) => refused(error),
            }
        })?;
        let call = |k: usize, n: usize| (NAMES[k], arguments(n));
        let render = |input: TurnInput| {
            let mut turn = turns.render(&input)?;
            for (k, (name, _)) in input.calls.iter().enumerate() {
                turn.wire = replace_id(&turn.wire, style, k, name);
            }
            Ok(turn)
        };
        let wire = |input: TurnInput| render(input).map(|turn| turn.wire);
        let one = wire(TurnInput::calls(vec![call(0, 1)])).map_err(refused)?;
        if !one.contains(NAMES[0]) {
            let problem = "a turn with a call does not have the name of the tool";
            return Err(ProbeError::NoCalls(problem.to_owned()));
        }
        let is_as_given = |id: &str| {
            let turn = TurnInput::calls(vec![call(0, 1)]).with_ids(vec![id.to_owned()]);
            turns.render(&turn).is_ok_and(|turn| turn.wire == one.replace(ID, id))
        };
        let id = match style.indexed_ids {
            true => IdStyle::FromZero,
            false => id_form(one.contains(ID), is_as_given)?,
        };
        let typed = TYPED
            .each_ref()
            .map(|sample| wire(TurnInput::calls(vec![(NAMES[0], sample.arguments())])).ok());
        let reasoning = TurnInput::text(TEXT).with_reasoning(REASONING);
        let reasoning = render(reasoning).ok().filter(|turn| turn.wire.contains(REASONING));
        let has_both = |wire: &String| NAMES.iter().all(|name| wire.contains(name));
        let text = wire(TurnInput::text(TEXT)).map_err(refused)?;
        Ok(Samples {
            takes_parts: !text.contains(TEXT) && turns.takes_parts(),
            style,
            id,
            text,
            two_arguments: wire(TurnInput::calls(vec![call(0, 2)])).map_err(refused)?,
            no_arguments: wire(TurnInput::calls(vec![call(0, 0)])).ok(),
            two: wire(TurnInput::calls(vec![call(0, 1), call(1, 1)])).ok().filter(has_both),
            typed,
            text_and_call: wire(TurnInput::calls(vec![call(0, 1)]).with_text(TEXT)).ok(),
            reasoning_and_text: reasoning,
            prompt: turns.surroundings.prompt.clone(),
            one,
        })
    }

    /// What stands before and after the text in a turn of text.
    pub(super) fn around_text(&self) -> Result<(&str, &str), ProbeError> {
        let problem = match self.takes_parts {
            true => TAKES_PARTS,
            false => "it is written otherwise",
        };
        self.text.split_once(TEXT).ok_or_else(|| undetermined("the markers of text", problem))
    }
}

/// The widest form whose ids the template writes as they are given. Any, if it writes no ids.
fn id_form(has_id: bool, is_as_given: impl Fn(&str) -> bool) -> Result<IdStyle, ProbeError> {
    let fits = |(_, ids): &&(IdStyle, &[&str])| !has_id || ids.iter().all(|id| is_as_given(id));
    let problem = "the template changes ids of 1 to 64 letters, digits, `_` and `-`, of 8 to 16 \
                   letters and digits, and of 9";
    let form = ID_FORMS.iter().find(fits).map(|(form, _)| *form);
    form.ok_or_else(|| undetermined("the ids of calls", problem))
}

/// Replaces the id of call `k` by its stand-in. An id with an index keeps what is before it.
fn replace_id(wire: &str, style: MessageStyle, k: usize, name: &str) -> String {
    let id = style.id(k, name);
    match style.indexed_ids {
        true => wire.replace(&id, &format!("functions.{name}:{ID}")),
        false => wire.replace(&id, &ID.to_string()),
    }
}
