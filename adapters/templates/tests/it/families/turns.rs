//! Random turns in both directions: template to family, and family to template.

use std::collections::BTreeSet;
use std::sync::Mutex;

use louver_formats::{
    ArgumentStyle, Call, Catalog, PythonLiterals, RenderOptions, Turn, WireFormat, python_json,
};
use louver_templates::{ChatTemplate, MessageStyle, TemplateInput, openai_message, resolve};
use serde_json::{Value, json};

use super::grammar::TurnGrammar;
use super::random::{Message, RandomTurns, tools};
use super::{FamilyTemplate, check_all, family_templates};

/// Turns of each case: 2,000, and with `LOUVER_ALL_CASES` a million of all.
fn turns_of_a_case() -> usize {
    match std::env::var_os("LOUVER_ALL_CASES") {
        Some(_) => 1_000_000 / family_templates().case.len() + 1,
        None => 2_000,
    }
}

const QUESTION: &str = "How far is it?";

/// Turns as a template writes them.
pub(super) struct TurnWriter<'a> {
    case: &'a FamilyTemplate,
    template: ChatTemplate,
    style: MessageStyle,
    input: TemplateInput,
    /// What stands before a turn, and what a prompt has after it.
    before: String,
    opened: String,
}

/// A turn as a template writes it, without its end.
pub(super) struct WrittenTurn {
    pub(super) text: String,
    /// Whether the turn begins inside a block of reasoning.
    pub(super) is_opened: bool,
    /// Whether the prompt has what the template writes before reasoning.
    is_led: bool,
}

impl<'a> TurnWriter<'a> {
    pub(super) fn new(
        case: &'a FamilyTemplate,
        style: MessageStyle,
        tools: Vec<Value>,
    ) -> Result<TurnWriter<'a>, String> {
        let (template, opened) = (case.template(), String::new());
        let input = TemplateInput::default().with_tools(tools);
        let mut writer = TurnWriter { case, template, style, input, before: String::new(), opened };
        writer.before = writer.conversation(None, false)? + &case.header;
        let prompt = writer.conversation(None, true)?;
        writer.opened = prompt.strip_prefix(&writer.before).ok_or("another header")?.to_owned();
        Ok(writer)
    }

    fn conversation(&self, turn: Option<&Message>, is_prompt: bool) -> Result<String, String> {
        let mut messages = vec![json!({"role": "user", "content": QUESTION})];
        messages.extend(turn.map(|turn| self.message(turn)));
        let whole = self.template.render_conversation(&messages, &self.input, is_prompt);
        whole.map_err(|error| error.to_string())
    }

    fn message(&self, turn: &Message) -> Value {
        let mut message = json!({"role": "assistant", "content": turn.text});
        if !turn.reasoning.is_empty() {
            for key in ["reasoning_content", "reasoning", "thinking"] {
                message[key] = turn.reasoning.clone().into();
            }
        }
        if !turn.calls.is_empty() {
            let calls = turn.calls.iter().enumerate().map(|(k, (name, arguments))| {
                let id = call_id(self.style, k, name);
                let function = json!({"name": name, "arguments": arguments});
                json!({"type": "function", "id": id, "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        openai_message(&message, self.style)
    }

    pub(super) fn write(&self, turn: &Message, format: &WireFormat) -> Result<WrittenTurn, String> {
        let whole = self.conversation(Some(turn), false)?;
        let tail = whole.strip_prefix(&self.before).ok_or("another beginning")?;
        let ends = self.case.ends.iter().filter(|end| tail.ends_with(end.as_str()));
        let end = ends.max_by_key(|end| end.len()).ok_or(format!("another end: {tail:?}"))?;
        let tail = &tail[..tail.len() - end.len()];
        let reasoning = format.reasoning.as_ref();
        let skips = &self.case.skips;
        if turn.reasoning.is_empty() && !skips.is_empty() && tail.starts_with(skips) {
            let text = tail[skips.len()..].to_owned();
            return Ok(WrittenTurn { text, is_opened: false, is_led: false });
        }
        Ok(match tail.strip_prefix(&self.opened) {
            Some(rest) => WrittenTurn {
                text: rest.to_owned(),
                is_opened: format.prompt_opens_reasoning(&(self.before.clone() + &self.opened)),
                is_led: reasoning.is_some_and(|reasoning| {
                    !reasoning.lead.is_empty() && self.opened.ends_with(&reasoning.lead)
                }),
            },
            // The template writes the end of a block alone.
            None => {
                let end = reasoning.map(|reasoning| reasoning.end.write());
                let is_opened = end.is_some_and(|end| tail.starts_with(end.trim()));
                WrittenTurn { text: tail.to_owned(), is_opened, is_led: false }
            }
        })
    }
}

/// The id of call `k`.
pub(super) fn call_id(style: MessageStyle, k: usize, name: &str) -> String {
    match style.indexed_ids {
        true => format!("functions.{name}:{k}"),
        false => format!("q7Xw{k}Lp2V"),
    }
}

/// The turn that the family should read.
fn expected(case: &FamilyTemplate, style: MessageStyle, turn: &Message, is_led: bool) -> Turn {
    let calls = turn.calls.iter().enumerate().map(|(k, (name, arguments))| {
        Call::new(*name, python_json(arguments)).with_id(call_id(style, k, name))
    });
    let calls_are_empty = turn.calls.is_empty();
    let text = match calls_are_empty {
        true => case.trims.text.apply(&turn.text),
        false => case.trims.text_with_calls.apply(case.trims.text.apply(&turn.text)),
    };
    let space = |difference| match case.differs(difference) && !text.is_empty() {
        true => " ",
        false => "",
    };
    let is_after = !calls_are_empty && case.differs("a line feed before text after calls");
    let line_feed = if is_after && !text.is_empty() { "\n" } else { "" };
    let text =
        [line_feed, space("a space before text"), text, space("a space after text")].concat();
    let mut reasoning = case.trims.reasoning.apply(&turn.reasoning);
    if is_led && case.differs("no line feed that begins reasoning") {
        reasoning = reasoning.strip_prefix('\n').unwrap_or(reasoning);
    }
    let (reasoning, calls) = (reasoning.to_owned(), calls.collect());
    Turn::default().with_text(text).with_reasoning(reasoning).with_calls(calls)
}

/// What is read otherwise. Arguments are compared as values.
fn difference(want: &Turn, read: &Turn) -> Option<String> {
    let calls = |turn: &Turn| -> Vec<(String, Option<Value>)> {
        let calls = turn.calls.iter();
        calls.map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).ok())).collect()
    };
    if want.text != read.text {
        return Some(format!("text {:?} is read as {:?}", want.text, read.text));
    }
    if want.reasoning != read.reasoning {
        return Some(format!("reasoning {:?} is read as {:?}", want.reasoning, read.reasoning));
    }
    (calls(want) != calls(read))
        .then(|| format!("calls {:?} are read as {:?}", calls(want), calls(read)))
}

/// What the family writes for a turn, begun as the template does.
fn rendered(format: &WireFormat, turn: &Turn, written: &WrittenTurn) -> Result<String, String> {
    let render = |opened| {
        let options = RenderOptions::default().with_opened(opened);
        format.render_with(turn, options).map_err(|error| error.to_string())
    };
    let Some(reasoning) = &format.reasoning else { return render(false) };
    let begin = reasoning.begin.write();
    if written.is_opened {
        let text = render(true)?;
        let rest = text.strip_prefix(&reasoning.lead).filter(|_| written.is_led);
        return Ok(rest.map(str::to_owned).unwrap_or(text));
    }
    let is_empty_block = turn.reasoning.is_empty() && written.text.starts_with(&begin);
    Ok(if is_empty_block { begin + &render(true)? } else { render(false)? })
}

/// Whether a difference that the case lists can explain that the template writes this turn
/// otherwise than the family.
fn explains(difference: &str, turn: &Turn, format: &WireFormat) -> bool {
    let has_empty = || turn.calls.iter().any(|call| call.arguments == "{}");
    match difference {
        "two line feeds before the first call"
        | "text after calls"
        | "no line feed before calls" => !turn.text.is_empty() && !turn.calls.is_empty(),
        "a line feed before calls without text" => turn.text.is_empty() && !turn.calls.is_empty(),
        "a line feed for no arguments" => has_empty(),
        "an id in each call" | "the recipient after the role" | "another spelling of calls" => {
            !turn.calls.is_empty()
        }
        "no line feed between calls" => turn.calls.len() > 1,
        "a line feed before calls"
        | "a space before calls"
        | "JSON without spaces"
        | "a line feed after calls" => !turn.calls.is_empty(),
        "a line feed after reasoning" => !turn.reasoning.is_empty(),
        "no line feed that begins reasoning" => !turn.reasoning.is_empty(),
        "the end of a block alone" => turn.reasoning.is_empty(),
        "values as Python prints them" => is_printed_by_python(format, turn),
        _ => false,
    }
}

/// Whether a value between tags is written otherwise by Python than in JSON.
fn is_printed_by_python(format: &WireFormat, turn: &Turn) -> bool {
    let python = match &format.call.arguments {
        ArgumentStyle::Tagged(style) => style.python,
        ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => Some(PythonLiterals::Values),
        _ => None,
    };
    let is_other = |value: &Value| match value {
        Value::Bool(_) | Value::Null => python.is_some(),
        Value::Array(_) | Value::Object(_) => python == Some(PythonLiterals::Values),
        Value::String(_) => {
            matches!(format.call.arguments, ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords)
        }
        _ => false,
    };
    turn.calls.iter().any(|call| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        arguments.as_object().is_some_and(|members| members.values().any(is_other))
    })
}

fn check(case: &FamilyTemplate, seen: &Mutex<BTreeSet<(String, String)>>) -> Result<(), String> {
    let found = resolve(&case.checkpoint(true), &Catalog::shipped(), "test");
    let found = found.map_err(|error| error.to_string())?;
    let (format, style) = (&found.format, found.style());
    let grammars = [false, true].map(|are_special| TurnGrammar::new(format, case, are_special));
    let [text, special] = grammars;
    let grammars = [text?, special?];
    let writer = TurnWriter::new(case, style, tools(format, case))?;
    let mut random = RandomTurns::new(format, case, 7);
    let mut explained = BTreeSet::new();
    for k in 0..turns_of_a_case() {
        let grammar = &grammars[k % 2];
        let message = random.turn();
        let written = writer.write(&message, format)?;
        let want = expected(case, style, &message, written.is_led);
        let fault = |what: String| format!("turn {k}: {:?} {what}", written.text);
        let read = grammar.read(&written.text, written.is_opened).map_err(fault)?;
        if let Some(what) = difference(&want, &read) {
            return Err(fault(what));
        }
        let text = rendered(&grammar.format, &want, &written).map_err(fault)?;
        if text == written.text {
            continue;
        }
        let reasons = case.differs.iter().filter(|known| explains(known, &want, format));
        let reasons: Vec<&String> = reasons.collect();
        if reasons.is_empty() {
            return Err(fault(format!("is rendered as {text:?}")));
        }
        explained.extend(reasons.into_iter().cloned());
        let read = grammar.read(&text, written.is_opened);
        let read = read.map_err(|what| format!("turn {k}: its rendering {text:?} {what}"))?;
        if let Some(what) = difference(&want, &read) {
            return Err(format!("turn {k}: its rendering {text:?}: {what}"));
        }
    }
    let mut seen = seen.lock().expect("no panic");
    seen.extend(explained.into_iter().map(|difference| (case.name.clone(), difference)));
    Ok(())
}

#[test]
fn families_read_and_write_what_templates_write() {
    let seen = Mutex::new(BTreeSet::new());
    check_all(|case| check(case, &seen));
    let seen = seen.into_inner().expect("no panic");
    let cases = family_templates().case;
    println!("{} turns of {} templates", turns_of_a_case() * cases.len(), cases.len());
    // A difference that no turn shows is not one.
    let renders = |difference: &&String| RENDERED.contains(&difference.as_str());
    let unseen = cases.iter().flat_map(|case| {
        case.differs
            .iter()
            .filter(renders)
            .map(|difference| (case.name.clone(), difference.clone()))
    });
    let unseen: Vec<_> = unseen.filter(|pair| !seen.contains(pair)).collect();
    assert!(unseen.is_empty(), "not seen: {unseen:?}");
}

/// The differences of rendered turns.
const RENDERED: [&str; 16] = [
    "a line feed before calls",
    "a space before calls",
    "JSON without spaces",
    "a line feed after calls",
    "the end of a block alone",
    "two line feeds before the first call",
    "text after calls",
    "no line feed before calls",
    "a line feed before calls without text",
    "a line feed for no arguments",
    "an id in each call",
    "the recipient after the role",
    "another spelling of calls",
    "no line feed between calls",
    "a line feed after reasoning",
    "values as Python prints them",
];
