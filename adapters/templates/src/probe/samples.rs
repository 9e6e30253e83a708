//! The renderings that a probe looks at.

use louver_formats::IdStyle;
use serde_json::{Value, json};

use super::error::{ProbeError, undetermined};
use crate::chat_template::ChatTemplate;
use crate::message_style::MessageStyle;
use crate::turns::{
    LONG_ID, RenderedTurn, TAKES_PARTS, TEXT, TurnContext, TurnInput, TurnRenderer,
};

/// The names of the called tools.
pub(super) const NAMES: [&str; 2] = ["zqfirst_fn", "zqsecond_fn"];
/// The names of arguments.
pub(super) const KEYS: [&str; 2] = ["zqkeya", "zqkeyb"];
/// The values of arguments.
pub(super) const VALUES: [&str; 2] = ["zqvala", "zqvalb"];
/// Reasoning.
pub(super) const REASONING: &str = "Zqreason mitul.";

/// Keys of values of other types, with the beginnings that the values may have.
pub(super) const TYPED_KEYS: [(&str, &[&str]); 4] = [
    ("zqnumber", &["471108"]),
    ("zqtruth", &["true", "True"]),
    ("zqlist", &["[\"zqitem", "['zqitem"]),
    ("zqmap", &["{\"zqmember", "{'zqmember"]),
];

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
    /// A call with a value of each type but strings.
    pub(super) typed: Option<String>,
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
        let properties = json!({KEYS[0]: of("string"), KEYS[1]: of("string"),
            TYPED_KEYS[0].0: of("integer"), TYPED_KEYS[1].0: of("boolean"),
            TYPED_KEYS[2].0: {"type": "array", "description": "A value.",
                "items": {"type": "string"}},
            TYPED_KEYS[3].0: {"type": "object", "description": "A value.",
                "properties": {"zqmember": of("string")}}});
        json!({"type": "function", "function": {"name": name, "description": "A tool.",
            "parameters": {"type": "object", "properties": properties, "required": []}}})
    };
    NAMES.into_iter().map(tool).collect()
}

/// The arguments of the calls of all samples with one call.
pub(super) fn one_argument() -> Value {
    arguments(1)
}

/// Arguments of each type but strings.
fn typed_arguments() -> Value {
    let values = [json!(471108), json!(true), json!(["zqitem"]), json!({"zqmember": "zqinner"})];
    TYPED_KEYS.iter().zip(values).map(|((key, _), value)| (*key, value)).collect()
}

impl Samples {
    /// Renders the turns with messages in this style.
    pub(super) fn render(
        template: &ChatTemplate,
        tokens: &[String],
        style: MessageStyle,
    ) -> Result<Samples, ProbeError> {
        let tools = tools();
        let refused = |error: crate::TemplateError| ProbeError::NoCalls(error.to_string());
        let turns = TurnRenderer::new(template, &tools, tokens, style, TurnContext::LAST)
            .map_err(refused)?;
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
        let long = wire(TurnInput::calls(vec![call(0, 1)]).with_ids(vec![LONG_ID.to_owned()]));
        let is_free = long.is_ok_and(|long| long.replace(LONG_ID, &ID.to_string()) == one);
        let reasoning = TurnInput::text(TEXT).with_reasoning(REASONING);
        let reasoning = render(reasoning).ok().filter(|turn| turn.wire.contains(REASONING));
        let has_both = |wire: &String| NAMES.iter().all(|name| wire.contains(name));
        let text = wire(TurnInput::text(TEXT)).map_err(refused)?;
        Ok(Samples {
            takes_parts: !text.contains(TEXT) && turns.takes_parts(),
            style,
            id: match (style.indexed_ids, is_free) {
                (true, _) => IdStyle::FromZero,
                (false, true) => IdStyle::Identifier,
                (false, false) => IdStyle::Nine,
            },
            text,
            two_arguments: wire(TurnInput::calls(vec![call(0, 2)])).map_err(refused)?,
            no_arguments: wire(TurnInput::calls(vec![call(0, 0)])).ok(),
            two: wire(TurnInput::calls(vec![call(0, 1), call(1, 1)])).ok().filter(has_both),
            typed: wire(TurnInput::calls(vec![(NAMES[0], typed_arguments())])).ok(),
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

/// Replaces the id of call `k` by its stand-in. An id with an index keeps what is before it.
fn replace_id(wire: &str, style: MessageStyle, k: usize, name: &str) -> String {
    let id = style.id(k, name);
    match style.indexed_ids {
        true => wire.replace(&id, &format!("functions.{name}:{ID}")),
        false => wire.replace(&id, &ID.to_string()),
    }
}
