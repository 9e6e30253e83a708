//! Single hard grammars: many tools, large repeats, ambiguity.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use louver::spec::json::Json;
use louver_hf_tokenizers::Encoder;
use serde_json::json;

use super::rounds;
use crate::cases::{self, Ambiguous, Case, Schema, Task, Tool, Tools};
use crate::feed;
use crate::options::Common;
use crate::record::Record;
use crate::setup::Setup;
use crate::tool_format::ToolFormat;

/// Number of tools in one dispatch.
const TOOLS: usize = 400;

/// The wire format of these cases.
const FORMAT: ToolFormat = ToolFormat::Llama3Function;

/// A tool, and a call: its name and arguments.
type CalledTool = (Tool, Option<(String, String)>);

/// Tools of the corpus with distinct names that each engine accepts alone, with a call that all
/// accept if there is one.
pub(super) fn tools(common: &Common, setup: &Setup, most: usize) -> Result<Vec<CalledTool>> {
    let engines = setup.engines(&common.kinds())?;
    let encoder = setup.encoder();
    let all = common.unsampled();
    let mut seen = BTreeSet::new();
    let mut out: Vec<CalledTool> = Vec::new();
    let Some(lines) = cases::lines(&all, "toolcalls-dev.jsonl")? else { return Ok(out) };
    for line in lines {
        if out.len() == most {
            break;
        }
        let (line, calls) = cases::tool_calls(&line?)?;
        for tool in
            Tools::new(line.get("tools").context("`tools` is missing")?.clone(), FORMAT)?.each
        {
            if out.len() == most || !seen.insert(tool.name.clone()) {
                continue;
            }
            let call = calls.iter().find(|(name, _)| *name == tool.name).cloned();
            let text = FORMAT.turn("Nothing to do.\n", call.as_slice())?;
            let tokens = encoder.encode(&text)?;
            let task = Task::Tools(Tools::of(vec![tool.clone()], FORMAT));
            let alone = Case { id: tool.name.clone(), task, instances: vec![(tokens, true)] };
            let records: Vec<Record> =
                engines.iter().map(|engine| feed::run(engine.as_ref(), &alone)).collect();
            if records.iter().all(|record| record.error.is_none()) {
                let reads_call =
                    records.iter().all(|record| record.wrong.as_ref().is_some_and(Vec::is_empty));
                out.push((tool, call.filter(|_| reads_call)));
            }
        }
    }
    Ok(out)
}

/// A dispatch over these tools, and a text that calls some of them.
pub(super) fn tools_case(tools: &[CalledTool], encoder: &Encoder<'_>) -> Result<Case> {
    let calls: Vec<_> = tools.iter().filter_map(|(_, call)| call.clone()).collect();
    let spread: Vec<_> =
        calls.iter().step_by((calls.len() / 20).max(1)).take(20).cloned().collect();
    let text = FORMAT.turn("I will look into all of this.\n", &spread)?;
    let each = tools.iter().map(|(tool, _)| tool.clone()).collect();
    let task = Task::Tools(Tools::of(each, FORMAT));
    Ok(Case {
        id: format!("{} tools", tools.len()),
        task,
        instances: vec![(encoder.encode(&text)?, true)],
    })
}

pub(super) fn many_tools(common: &Common) -> Result<()> {
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let tools = tools(common, &setup, TOOLS)?;
    if tools.is_empty() {
        return Ok(());
    }
    let case = tools_case(&tools, &setup.encoder())?;
    rounds::run(common, &setup, "many-tools", "Many tools in one dispatch, cold", &[case], 5)
}

pub(super) fn repeats(common: &Common) -> Result<()> {
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let encoder = setup.encoder();
    let case = |id: &str, schema: serde_json::Value, instance: serde_json::Value| -> Result<Case> {
        let tokens = encoder.encode(&louver_formats::python_json(&instance))?;
        let task = Task::Schema(Schema::new(Json::from(schema))?);
        Ok(Case { id: id.to_owned(), task, instances: vec![(tokens, true)] })
    };
    let strings: Vec<String> = (0..200).map(|i| prose(40 + i * 37 % 160)).collect();
    let array =
        json!({"type": "array", "maxItems": 5000, "items": {"type": "string", "maxLength": 200}});
    let cases = [
        case("plain string, 6,000 characters", json!({"type": "string"}), json!(prose(6000)))?,
        case(
            "maxLength 65536, 6,000 characters",
            json!({"type": "string", "maxLength": 65536}),
            json!(prose(6000)),
        )?,
        case(
            "array of at most 5,000 strings of maxLength 200, 200 strings",
            array,
            json!(strings),
        )?,
        case(
            "pattern ^[a-z ,.]{1,5000}$, 4,000 characters",
            json!({"type": "string", "pattern": "^[a-z ,.]{1,5000}$"}),
            json!(prose(4000)),
        )?,
    ];
    rounds::run(common, &setup, "repeats", "Large repeats", &cases, 3)
}

/// Lower-case words, commas and full stops of exactly `characters` characters.
pub(super) fn prose(characters: usize) -> String {
    const WORDS: [&str; 24] = [
        "the",
        "river",
        "carries",
        "a",
        "small",
        "boat",
        "past",
        "quiet",
        "houses",
        "while",
        "someone",
        "reads",
        "letters",
        "about",
        "weather",
        "and",
        "distant",
        "mountains",
        "nobody",
        "expects",
        "any",
        "answer",
        "before",
        "morning",
    ];
    let mut text = String::new();
    let mut state = 1u32;
    while text.len() < characters {
        // Numerical Recipes' linear congruential generator: the same words in each run.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text += WORDS[(state >> 16) as usize % WORDS.len()];
        text += match state >> 28 {
            0 => ". ",
            1 => ", ",
            _ => " ",
        };
    }
    text.truncate(characters);
    text
}

pub(super) fn ambiguous(common: &Common) -> Result<()> {
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let a = setup.vocab.find(b"a").context("the vocabulary has no token `a`")?;
    let case = |id: &str, grammar| Case {
        id: id.to_owned(),
        task: Task::Ambiguous(grammar),
        instances: vec![(vec![a.raw(); 300], true)],
    };
    let cases = [
        case("S -> S S or \"a\", 300 tokens `a`", Ambiguous::Concatenation),
        case("(\"a\"?){0,200} \"a\"{0,200}, 300 tokens `a`", Ambiguous::Optionals),
    ];
    rounds::run(common, &setup, "ambiguous", "Ambiguous grammars", &cases, 3)
}
