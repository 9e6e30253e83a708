//! Translation of `tools` and `tool_choice` to Chat Completions.

use louver::spec::json::Json;
use louver_formats::NEUTRAL_TOOL_MEMBERS;

use crate::error::ApiFault;
use crate::request::members::{Faults, Members};
use crate::request::pointers::PointerMap;
use crate::request::{object, text};

/// Members of a tool, and their names in Chat Completions.
const COPIED: [(&str, &str); 4] = [
    ("name", "name"),
    ("description", "description"),
    ("input_schema", "parameters"),
    ("strict", "strict"),
];

/// Members of a tool on this route that do not concern the output, beside those of all routes:
/// input is always streamed as it is generated, and examples are not shown to the model.
const IGNORED: [&str; 2] = ["eager_input_streaming", "input_examples"];

/// Translates `tools` to functions: at most so many.
pub(super) fn translate_tools(
    body: &Members<'_>,
    max_tools: usize,
    pointers: &mut PointerMap,
    faults: &mut Faults,
) -> Option<Json> {
    let tools = body.array(faults, "tools")?;
    let base = body.pointer("tools");
    if tools.len() > max_tools {
        faults.push(ApiFault::too_many(base, max_tools, "tools"));
        return None;
    }
    let tool = |(k, tool): (usize, &Json)| {
        let pointer = format!("{base}/{k}");
        let function = translate_tool(&Members::from_json(tool, &*pointer, faults)?, faults)?;
        let schema = format!("{pointer}/input_schema");
        pointers.insert(format!("{pointer}/function/parameters"), schema);
        pointers.insert(format!("{pointer}/function"), pointer);
        Some(function)
    };
    Some(Json::Array(tools.iter().enumerate().filter_map(tool).collect()))
}

fn translate_tool(tool: &Members<'_>, faults: &mut Faults) -> Option<Json> {
    let kind = tool.string(faults, "type");
    if let Some(kind) = kind.filter(|kind| *kind != "custom") {
        let message = format!(
            "tools of type {kind:?} are not supported: use tools with `name` and `input_schema`"
        );
        tool.fail(faults, "type", "unsupported_tool", message);
        return None;
    }
    for name in tool.names().filter(|name| tool.get(name).is_some()) {
        let is_known = ["type", "allowed_callers"].contains(&name)
            || IGNORED.contains(&name)
            || NEUTRAL_TOOL_MEMBERS.contains(&name)
            || COPIED.iter().any(|(known, _)| *known == name);
        if !is_known {
            let replacement = match name {
                "parameters" | "inputSchema" | "schema" => ": use `input_schema`",
                "function" => ": its members belong in the tool itself",
                _ => "",
            };
            let message = format!("there is no such member{replacement}");
            tool.fail(faults, name, "unknown_member", message);
        }
    }
    for name in ["name", "input_schema"] {
        tool.require(faults, name);
    }
    tool.require_direct_callers(faults);
    let copied =
        COPIED.iter().filter_map(|(from, to)| tool.get(from).map(|value| (*to, value.clone())));
    Some(object([("type", text("function")), ("function", object(copied))]))
}

/// Translates `tool_choice`. The second value tells whether there may be several calls.
pub(super) fn translate_choice(
    body: &Members<'_>,
    pointers: &mut PointerMap,
    faults: &mut Faults,
) -> Option<(Json, bool)> {
    pointers.insert("/parallel_tool_calls", "/tool_choice/disable_parallel_tool_use");
    let choice = body.object(faults, "tool_choice")?;
    choice.require(faults, "type");
    let kind = choice.one_of(faults, "type", &["auto", "any", "tool", "none"])?;
    let known: &[&str] = match kind {
        "tool" => &["type", "disable_parallel_tool_use", "name"],
        _ => &["type", "disable_parallel_tool_use"],
    };
    choice.refuse_unknown(faults, known);
    let is_single = choice.boolean(faults, "disable_parallel_tool_use").unwrap_or(false);
    let translated = match kind {
        "any" => text("required"),
        "tool" => {
            let name = text(choice.required_string(faults, "name"));
            object([("type", text("function")), ("function", object([("name", name)]))])
        }
        same => text(same),
    };
    Some((translated, !is_single))
}
