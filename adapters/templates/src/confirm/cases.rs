//! The turns of a confirmation, and the tools that they call.

use serde_json::{Value, json};

use crate::turns::{LONG_ID, Next, Opening, TurnContext, TurnInput};

/// The turns that a confirmation needs.
pub(super) const ESSENTIAL: [&str; 6] =
    ["text", "one call", "no arguments", "values", "quotes", GIVEN_IDS];

/// The turns whose mismatch is only reported. Many templates write null in a way of their own, some
/// keep a state over all calls of a conversation, and some take ids that a family never writes.
pub(super) const REPORTED: [&str; 3] = [NULL, LATER_CALL, LONG_CALL_ID];
/// A call with null, in a format without words for types.
pub(super) const NULL: &str = "null";
/// The same in a format with words for types, one of which is that of null.
pub(super) const TYPED_NULL: &str = "null and the word for its type";
const LONG_CALL_ID: &str = "a call with a long id";
const LATER_CALL: &str = "a call after a result";

/// The turn with a call before its result.
pub(super) const BEFORE_RESULT: &str = "a call before its result";

/// The same with the ids that the extractor gives calls, as in the next request of a conversation.
pub(super) const GIVEN_IDS: &str = "a call with the id that it was given";

/// The turn of a request without tools.
pub(super) const WITHOUT_TOOLS: &str = "text without tools";

/// The turn by which calls are compared with a family's.
pub(super) const ONE_CALL: &str = "one call";

/// The turns that tell message styles apart: their calls have no arguments or some, of each type,
/// with and without text, and with ids.
const TELLING: [&str; 6] =
    [ONE_CALL, "no arguments", "values", "quotes", "three calls", "text and two calls"];

/// A text with characters that strings in quotes must escape.
pub(super) const QUOTED: &str = "& \"Süd\" \\ 'x'\nline 2";

/// A turn that a template writes.
pub(super) struct Case {
    /// What the turn is, for people.
    pub(super) name: &'static str,
    pub(super) input: TurnInput,
    pub(super) context: TurnContext,
}

/// The tools as templates show them. Some templates need descriptions, and one type for each
/// property.
pub(super) fn shown_tools() -> Vec<Value> {
    let tool = |name: &str, mut properties: Value, required: Value| {
        for property in properties.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
            property["description"] = "A part of the journey.".into();
        }
        json!({"type": "function", "function": {"name": name, "description": "Travel.",
            "parameters": {"type": "object", "properties": properties, "required": required,
                "additionalProperties": false}}})
    };
    let route = json!({
        "origin": {"type": "string"}, "passengers": {"type": "integer"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {
            "avoid": {"type": "array", "items": {"type": "string"}},
            "max_toll": {"type": "number"}},
            "required": ["avoid"], "additionalProperties": false},
        "express": {"type": "boolean"}, "toll": {"type": "number"}});
    vec![
        tool("plan_route", route, json!(["origin"])),
        tool("get-time2", json!({"zone": {"type": "string"}}), json!(["zone"])),
        tool("ping_all", json!({}), json!([])),
    ]
}

/// The tools as the grammar enforces them: the number may be null.
pub(super) fn enforced_tools() -> Vec<Value> {
    let mut tools = shown_tools();
    tools[0]["function"]["parameters"]["properties"]["passengers"]["type"] =
        json!(["integer", "null"]);
    tools
}

/// The turns. Their texts occur in no template.
pub(super) fn cases() -> Vec<Case> {
    let route = || ("plan_route", json!({"origin": "Oslo", "passengers": 3}));
    let time = || ("get-time2", json!({"zone": "CET"}));
    let ping = || ("ping_all", json!({}));
    let (text, reasoning) = ("It is 7 km away.", "The user wants to know the way.");
    let calls = TurnInput::calls;
    let one = |arguments: Value| calls(vec![("plan_route", arguments)]);
    let at = |context, name, input| Case { name, input, context };
    let last = |name, input| at(TurnContext::LAST, name, input);
    vec![
        last("text", TurnInput::text(text)),
        last(ONE_CALL, calls(vec![route()])),
        last("no arguments", calls(vec![ping()])),
        last(
            "values",
            one(json!({"origin": "Zürich  (HB), <b>7</b>", "stops": ["a, b", "天"],
                "options": {"avoid": [], "max_toll": 1.5}})),
        ),
        last("quotes", one(json!({"origin": QUOTED}))),
        last("a fraction", one(json!({"origin": "Oslo", "toll": 2.5}))),
        last("a boolean", one(json!({"origin": "Oslo", "express": true}))),
        last("two calls", calls(vec![route(), time()])),
        last("three calls", calls(vec![time(), ping(), route()])),
        last("text and call", calls(vec![time()]).with_text(text)),
        last("text and two calls", calls(vec![route(), time()]).with_text(text)),
        last("reasoning and text", TurnInput::text(text).with_reasoning(reasoning)),
        last("reasoning and call", calls(vec![route()]).with_reasoning(reasoning)),
        last(
            "reasoning, text and call",
            calls(vec![time()]).with_text(text).with_reasoning(reasoning),
        ),
        last(
            "empty values",
            one(json!({"origin": "", "passengers": 0, "stops": [], "express": false})),
        ),
        last("spaces at ends", one(json!({"origin": " Oslo S ", "stops": [" a", "b "]}))),
        last(NULL, one(json!({"origin": "Oslo", "passengers": null, "express": true}))),
        last(LONG_CALL_ID, calls(vec![time()]).with_ids(vec![LONG_ID.to_owned()])),
        at(TurnContext::LAST.before(Next::Result), BEFORE_RESULT, calls(vec![time()])),
        at(TurnContext::after(Opening::Result), "text after a result", TurnInput::text(text)),
        at(TurnContext::after(Opening::Result), LATER_CALL, calls(vec![time()])),
        at(TurnContext::after(Opening::WithoutTools), WITHOUT_TOOLS, TurnInput::text(text)),
    ]
}

/// The indices of the cases that tell message styles apart.
pub(super) fn telling(cases: &[Case]) -> Vec<usize> {
    let is_telling = |k: &usize| TELLING.contains(&cases[*k].name);
    (0..cases.len()).filter(is_telling).collect()
}

/// The end of the arguments of a turn's calls in its text, as far as they can be found.
pub(super) fn arguments_end(input: &TurnInput, wire: &str) -> usize {
    let members = input.calls.iter().flat_map(|(_, arguments)| arguments.as_object()).flatten();
    let ends = members.filter_map(|(key, value)| {
        let end = |text: &str, from: usize| Some(from + wire[from..].find(text)? + text.len());
        let key = end(key, 0)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        end(&text, key).or(Some(key))
    });
    ends.max().unwrap_or(0)
}
