//! Markers in prompts: what a user or a tool writes begins no call and opens no reasoning. The turn
//! begins at the end of the prompt.

use louver_formats::{Call, Catalog, Turn, WireFormat, python_json};
use louver_templates::{MessageStyle, TemplateInput, openai_message, resolve};
use serde_json::{Value, json};

use super::grammar::TurnGrammar;
use super::random::{Message, tools};
use super::turns::{TurnWriter, call_id};
use super::{FamilyTemplate, check_all};

/// A call as the family writes it, and the begin of a block of reasoning.
fn markers(format: &WireFormat) -> Result<String, String> {
    let call = Call::new("plan_route", "{\"from\": \"Oslo\"}").with_id(call_id(
        MessageStyle::default(),
        0,
        "plan_route",
    ));
    let turn = Turn::default().with_calls(vec![call]);
    let call = format.render(&turn).map_err(|error| error.to_string())?;
    let begin = format.reasoning.as_ref().map(|reasoning| reasoning.begin.write());
    Ok(format!("See {}{}", call, begin.unwrap_or_default()).trim().to_owned())
}

/// Conversations whose last message is the text: a user's, and a tool's result.
fn conversations(text: &str, style: MessageStyle) -> [Vec<Value>; 2] {
    let id = call_id(style, 0, "plan_route");
    let function = json!({"name": "plan_route", "arguments": {"from": "Bergen"}});
    let calls = json!([{"type": "function", "id": id, "function": function}]);
    let turn = json!({"role": "assistant", "content": "", "tool_calls": calls});
    let result = json!({"role": "tool", "tool_call_id": id, "name": "plan_route", "content": text});
    [
        vec![json!({"role": "user", "content": text})],
        vec![
            json!({"role": "user", "content": "How far is it?"}),
            openai_message(&turn, style),
            result,
        ],
    ]
}

fn check(case: &FamilyTemplate) -> Result<(), String> {
    let found = resolve(&case.checkpoint(true), &Catalog::shipped(), "test");
    let found = found.map_err(|error| error.to_string())?;
    let (format, style) = (&found.format, found.style());
    let grammar = TurnGrammar::new(format, case, true)?;
    let (template, tools) = (case.template(), tools(format, case));
    let writer = TurnWriter::new(case, style, tools.clone())?;
    let input = TemplateInput::default().with_tools(tools);
    let message = Message { text: "It is 7 km away.".to_owned(), ..Message::default() };
    let generation = writer.write(&message, format)?.text;
    let markers = markers(&grammar.format)?;
    let texts = [markers.as_str(), "nothing"].map(|text| conversations(text, style));
    for (quoting, plain) in texts[0].iter().zip(&texts[1]) {
        let prompt = |messages: &[Value]| {
            template.render(messages, &input).map_err(|error| error.to_string())
        };
        let (prompt, plain) = (prompt(quoting)?, prompt(plain)?);
        // Some templates write results as JSON.
        let is_there = [markers.clone(), python_json(&markers.clone().into())];
        if !is_there.iter().any(|text| prompt.contains(text.trim_matches('"'))) {
            return Err(format!("the prompt {prompt:?} lacks {markers:?}"));
        }
        let is_opened = format.prompt_opens_reasoning(&prompt);
        if is_opened != format.prompt_opens_reasoning(&plain) {
            return Err(format!("the end of {prompt:?} opens reasoning"));
        }
        let read =
            grammar.read(&generation, is_opened && generation_is_inside(format, &generation));
        let read = read.map_err(|what| format!("{generation:?} {what}"))?;
        if !read.calls.is_empty() || read.text.trim() != message.text {
            return Err(format!("{generation:?} is read as {read:?}"));
        }
    }
    Ok(())
}

/// Whether a turn without reasoning begins with the rest of a block that the prompt opens.
fn generation_is_inside(format: &WireFormat, generation: &str) -> bool {
    let end = format.reasoning.as_ref().map(|reasoning| reasoning.end.write());
    end.is_some_and(|end| generation.trim_start().starts_with(end.trim()))
}

#[test]
fn markers_in_prompts_begin_nothing() {
    check_all(check);
}
