//! Translation of a Responses body to the equivalent Chat Completions body, with pointer
//! translation.

use std::sync::Arc;

use louver::spec::json::Json;
use serde_json::Value;

use crate::config::UnknownMembers;
use crate::error::{ApiError, ApiFault};
use crate::mcp::McpServers;
use crate::request::member_table::{COMMON, MemberTable, RouteAdvice, refuse_structure};
use crate::request::members::{Faults, Members};
use crate::request::pointers::PointerMap;
use crate::request::{object, structure, text};
use crate::responses::input::InputTranslator;
use crate::responses::tools::{ToolNames, ToolTranslator, translate_choice};

/// A translated body.
#[derive(Debug)]
pub(crate) struct TranslatedBody {
    pub(crate) body: Json,
    /// Maps its JSON pointers to the original.
    pub(crate) pointers: PointerMap,
    /// The same map for calls and the ids of results.
    pub(crate) call_pointers: Vec<(String, String)>,
    /// What the names of its tools stand for.
    pub(crate) names: ToolNames,
    /// The output items that list tools of MCP servers.
    pub(crate) lists: Vec<Value>,
}

pub(crate) const MEMBER_TABLE: MemberTable = MemberTable {
    accepted: &[
        "input",
        "instructions",
        "previous_response_id",
        "store",
        "text",
        "reasoning",
        "max_output_tokens",
        "truncation",
        "include",
    ],
    ignored: &["stream_options"],
    unsupported: &[
        ("conversation", "use `previous_response_id`, or send the whole conversation in `input`"),
        ("background", "background responses are not supported"),
        ("prompt", "there are no stored prompts"),
        ("max_tool_calls", "the server bounds the rounds of calls itself"),
        ("top_logprobs", "not supported here: use /v1/chat/completions"),
        ("context_management", "contexts are not compacted"),
        ("moderation", "there is no moderation"),
        ("response_format", "use `text.format`"),
        ("messages", "use `input`"),
        ("max_tokens", "use `max_output_tokens`"),
        ("max_completion_tokens", "use `max_output_tokens`"),
        ("reasoning_effort", "use `reasoning.effort`"),
        ("enable_thinking", "use `reasoning.effort`"),
        ("chat_template_kwargs", "use `reasoning.effort`, or /v1/chat/completions"),
        ("system", "use `instructions`"),
    ],
    advice: RouteAdvice {
        structure: "use `text.format`",
        max_tokens: "use `max_output_tokens`",
        reasoning: "use `reasoning.effort`",
        stop: "use `stop`",
        tools: "use `tools` and `tool_choice`",
    },
};

/// Reports members of `reasoning` that are unknown, or that may ask for structure.
fn check_reasoning(reasoning: &Members<'_>, unknown: UnknownMembers, faults: &mut Faults) {
    // How the client shows reasoning, and what it keeps of it.
    const KNOWN: [&str; 6] =
        ["effort", "summary", "generate_summary", "context", "mode", "exclude"];
    const ADVICE: &str = ": use `effort`, or `louver.reasoning_budget`";
    match unknown {
        UnknownMembers::Ignore => refuse_structure(reasoning, faults),
        UnknownMembers::Refuse => reasoning.refuse_unknown_with(faults, &KNOWN, ADVICE),
    }
}

/// Translates a body, after the items of the previous response's conversation and the faults of
/// finding it. Errors: the faults of members that only Responses has. Other faults are found when
/// the result is parsed.
pub(crate) fn translate(
    body: &Json,
    earlier: &[Arc<Json>],
    mut faults: Faults,
    servers: &McpServers,
    max_tools: usize,
    unknown: UnknownMembers,
) -> Result<TranslatedBody, ApiError> {
    let members = Members::of_body(body)?;
    let mut pointers = PointerMap::default();
    MEMBER_TABLE.check(&members, unknown, &mut faults, &mut pointers);
    check_options(&members, &mut faults);
    let mut tools = ToolTranslator::new(servers, max_tools);
    tools.request_tools(&members, &mut faults);
    let mut out: Vec<(&str, Json)> = Vec::new();
    let copied = COMMON.into_iter().filter(|name| !["tools", "tool_choice"].contains(name));
    for name in copied.chain(structure::names()) {
        out.extend(members.get(name).map(|value| (name, value.clone())));
    }
    pointers.insert("/max_completion_tokens", "/max_output_tokens");
    out.extend(members.get("max_output_tokens").map(|n| ("max_completion_tokens", n.clone())));
    if let Some(reasoning) = members.object(&mut faults, "reasoning") {
        check_reasoning(&reasoning, unknown, &mut faults);
        pointers.insert("/reasoning_effort", "/reasoning/effort");
        out.extend(reasoning.get("effort").map(|effort| ("reasoning_effort", effort.clone())));
    }
    if let Some(text) = members.object(&mut faults, "text") {
        let advice = ": use `text.format`";
        text.refuse_unknown_with(&mut faults, &["format", "verbosity"], advice);
        text.one_of(&mut faults, "verbosity", &["low", "medium", "high"]);
        let format = translate_format(&text, &mut pointers, &mut faults);
        let is_constraint =
            |format: &Json| format.get("type").and_then(Json::as_str) != Some("text");
        if format.as_ref().is_some_and(is_constraint)
            && let Some(other) = structure::names().find(|name| members.get(name).is_some())
        {
            let message = "/text/format already constrains the response";
            members.fail(&mut faults, other, "contradiction", message);
        }
        out.extend(format.map(|format| ("response_format", format)));
    }
    let mut input = InputTranslator::new(pointers, tools, faults);
    input.read(&members, earlier);
    let InputTranslator { messages, mut pointers, call_pointers, tools, faults, .. } = input;
    ApiError::reject(faults)?;
    let (tools, names, lists) = tools.finish(&mut pointers);
    if members.get("tools").is_some() || !tools.is_empty() {
        out.push(("tools", Json::Array(tools)));
    }
    if let Some(choice) = members.get("tool_choice") {
        out.push(("tool_choice", translate_choice(choice, &names)));
    }
    out.push(("messages", Json::Array(messages)));
    let body = object(out);
    Ok(TranslatedBody { body, pointers, call_pointers, names, lists })
}

fn check_options(members: &Members<'_>, faults: &mut Faults) {
    members.boolean(faults, "store");
    // They have no effect, and come back in the response.
    members.string(faults, "user");
    if let Some(metadata) = members.object(faults, "metadata") {
        for name in metadata.names() {
            metadata.string(faults, name);
        }
    }
    if members.one_of(faults, "truncation", &["disabled", "auto"]) == Some("auto") {
        members.fail(faults, "truncation", "unsupported", "conversations are not shortened");
    }
    let include = members.array(faults, "include").unwrap_or_default();
    for (k, what) in include.iter().enumerate() {
        // Other values concern encryption and search, which do not apply; log probabilities would
        // be missing.
        if what.as_str() == Some("message.output_text.logprobs") {
            let message = "not supported here: use /v1/chat/completions";
            faults.push(ApiFault::at(format!("/include/{k}"), "unsupported", message));
        }
    }
}

/// Translates `text.format` to `response_format`.
fn translate_format(
    members: &Members<'_>,
    pointers: &mut PointerMap,
    faults: &mut Faults,
) -> Option<Json> {
    pointers.insert("/response_format", "/text/format");
    let format = members.object(faults, "format")?;
    let is_schema = format.get("type").and_then(Json::as_str) == Some("json_schema");
    // It may be in the form of Chat Completions already.
    let has_wrapper = format.get("json_schema").is_some() && format.get("schema").is_none();
    if !is_schema || has_wrapper {
        return members.get("format").cloned();
    }
    pointers.insert("/response_format/json_schema", "/text/format");
    // Unknown members are reported when `response_format` is parsed.
    let inner = format.iter().filter(|(name, value)| *name != "type" && **value != Json::Null);
    let inner = object(inner.map(|(name, value)| (name, value.clone())));
    Some(object([("type", text("json_schema")), ("json_schema", inner)]))
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::json;

    use super::*;
    use crate::responses::tools::OfferedTool;

    const MAX_TOOLS: usize = 20;

    fn read(body: &Value) -> Result<TranslatedBody, Vec<String>> {
        let body = Json::parse(&body.to_string(), &Limits::default()).unwrap();
        let pointers = |error: ApiError| {
            error.faults().map(|fault| fault.param.clone().unwrap_or_default()).collect()
        };
        let servers = McpServers::default();
        translate(&body, &[], Faults::new(), &servers, MAX_TOOLS, UnknownMembers::Refuse)
            .map_err(pointers)
    }

    #[test]
    fn conversations_are_translated() {
        let body = json!({
            "model": "m", "instructions": "Be brief.", "max_output_tokens": 9, "reasoning": {"effort": "none", "summary": "auto"},
            "temperature": 0.5, "store": true, "include": ["reasoning.encrypted_content"],
            "text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "object"}}},
            "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "reasoning", "id": "rs_1", "summary": [],
                    "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok", "annotations": []}]},
                {"type": "reasoning", "encrypted_content": null,
                    "content": [{"type": "reasoning_text", "text": "so"}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "2", "name": "c", "input": "x"},
                {"type": "function_call_output", "call_id": "1", "output": "r"},
                {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "s"}]},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "left out"}],
                    "content": [{"type": "reasoning_text", "text": "then"}]},
                {"type": "function_call", "call_id": "3", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "3", "output": "r"},
                {"type": "reasoning", "summary": [],
                    "content": [{"type": "reasoning_text", "text": "without an answer"}]},
                {"role": "user", "content": "go on"},
                {"role": "assistant", "content": "yes"},
                {"type": "reasoning", "summary": [], "encrypted_content": "x"}
            ]
        });
        let translated = read(&body).unwrap();
        let expected = json!({
            "model": "m", "tools": [{"type": "function", "name": "f", "strict": true}, {"type": "custom", "name": "c"}], "temperature": 0.5,
            "max_completion_tokens": 9, "reasoning_effort": "none",
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "ok", "annotations": []}],
                    "reasoning_content": "hm\nso", "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                    {"id": "2", "type": "custom", "custom": {"name": "c", "input": "x"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "r"},
                {"role": "tool", "tool_call_id": "2", "content": [{"type": "input_text", "text": "s"}]},
                {"role": "assistant", "reasoning_content": "then", "tool_calls": [
                    {"id": "3", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "3", "content": "r"},
                {"role": "user", "content": "go on"},
                {"role": "assistant", "content": "yes"}
            ]
        });
        assert_eq!(crate::request::to_value(&translated.body), expected);
        for (from, to) in [
            ("/messages/1/content", "/input/0/content"),
            ("/messages/2/content/0/type", "/input/2/content/0/type"),
            ("/messages/3/content", "/input/6/output"),
            ("/messages/4/content/0/text", "/input/7/output/0/text"),
            ("/messages", "/input"),
            ("/response_format/json_schema/schema/type", "/text/format/schema/type"),
            ("/response_format/type", "/text/format/type"),
            ("/max_completion_tokens", "/max_output_tokens"),
            ("/reasoning_effort", "/reasoning/effort"),
            ("/tools/0/parameters", "/tools/0/parameters"),
        ] {
            assert_eq!(translated.pointers.original(from), to);
        }
    }

    /// The tools that the model sees, and the pointer of each in the request.
    fn offered(body: &Value) -> (Vec<(String, String)>, TranslatedBody) {
        let translated = read(body).unwrap();
        let tools = translated.body.get("tools").and_then(Json::as_array).unwrap_or_default();
        let name = |tool: &Json| tool.get("name").and_then(Json::as_str).unwrap().to_owned();
        let tools = tools.iter().enumerate();
        let tools = tools
            .map(|(k, tool)| (name(tool), translated.pointers.original(&format!("/tools/{k}"))));
        (tools.collect(), translated)
    }

    #[test]
    fn namespaces_are_flattened() {
        let body = json!({
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [
                {"type": "function", "name": "list"}, {"type": "function", "name": "f"}, {"type": "custom", "name": "q", "namespace": "db"}]},
            "tools": [
                {"type": "function", "name": "f", "defer_loading": true, "strict": null, "output_schema": {"type": "string"}, "allowed_callers": ["direct"]},
                {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [
                    {"type": "function", "name": "list", "description": "Lists.", "parameters": {"type": "object"}}]},
                {"type": "namespace", "name": "db", "description": "", "tools": [{"type": "custom", "name": "q"}]},
                {"type": "tool_search"}],
            "input": [{"type": "function_call", "call_id": "1", "namespace": "crm", "name": "list", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "none"}]
        });
        let (tools, TranslatedBody { body, names, .. }) = offered(&body);
        let expected =
            [("f", "/tools/0"), ("crm__list", "/tools/1/tools/0"), ("db__q", "/tools/2/tools/0")];
        let expected = expected.map(|(name, at)| (name.to_owned(), at.to_owned()));
        assert_eq!(tools, expected);
        let body = crate::request::to_value(&body);
        assert_eq!(body["tools"][0], json!({"type": "function", "name": "f", "strict": true}));
        assert_eq!(
            body["tools"][1],
            json!({"type": "function", "parameters": {"type": "object"}, "name": "crm__list",
                "description": "Lists.\nCustomers.", "strict": true})
        );
        let chosen: Vec<&Value> =
            body["tool_choice"]["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
        assert_eq!(chosen, ["crm__list", "f", "db__q"]);
        assert_eq!(body["messages"][0]["tool_calls"][0]["function"]["name"], "crm__list");
        let meaning = OfferedTool::Namespaced { namespace: "crm".into(), name: "list".into() };
        assert_eq!(names.meaning("crm__list"), Some(&meaning));
        assert_eq!(names.meaning("f"), None);
    }

    /// What Codex sends: hosted tools among its own, and notes of commits in the conversation.
    #[test]
    fn hosted_tools_are_left_out_with_a_warning() {
        let body = json!({
            "tools": [{"type": "web_search", "external_web_access": true}, {"type": "function", "name": "shell"},
                {"type": "local_shell"}, {"type": "image_generation", "output_format": "png"}, {"type": "web_search_preview_2025_03_11"}],
            "input": [{"role": "user", "content": "hi"}, {"type": "ghost_snapshot", "ghost_commit": {"id": "a"}},
                {"type": "additional_tools", "tools": [{"type": "shell"}]}]
        });
        let (tools, TranslatedBody { body, pointers, .. }) = offered(&body);
        assert_eq!(tools, [("shell".to_owned(), "/tools/1".to_owned())]);
        assert_eq!(body.get("messages").and_then(Json::as_array).unwrap().len(), 1);
        let warnings: Vec<&str> = pointers.warnings().iter().map(|f| &*f.pointer).collect();
        assert_eq!(warnings, ["/tools/0", "/tools/2", "/tools/3", "/tools/4", "/input/2/tools/0"]);
    }

    #[test]
    fn tools_of_searches_and_of_items_are_offered() {
        let tool = |name: &str, deferred: bool| json!({"type": "function", "name": name, "defer_loading": deferred, "parameters": {"type": "object"}});
        let namespace = |name: &str, tools: &[Value]| json!({"type": "namespace", "name": name, "description": "d", "tools": tools});
        let search = json!({"type": "tool_search", "execution": "client", "description": "Finds tools.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}});
        let mut body = json!({
            "tools": [tool("now", false), tool("later", true), namespace("a", &[tool("x", true), tool("y", false)]), search],
            "tool_choice": {"type": "tool_search"},
            "input": "hi",
        });
        let names = |body: &Value| -> Vec<String> {
            offered(body).0.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&body), ["now", "a__y", "tool_search"]);
        body["input"] = json!([
            {"role": "user", "content": "hi"},
            {"type": "tool_search_call", "call_id": "s1", "execution": "client", "arguments": {"query": "x"}, "status": "completed"},
            {"type": "tool_search_output", "call_id": "s1", "execution": "client", "status": "completed",
                "tools": [namespace("a", &[tool("x", true)]), tool("later", true)]},
            {"type": "additional_tools", "role": "developer", "tools": [tool("more", false), tool("now", false)]}]);
        let (tools, translated) = offered(&body);
        let expected = [
            ("now", "/input/3/tools/1"),
            ("a__y", "/tools/2/tools/1"),
            ("tool_search", "/tools/3"),
            ("a__x", "/input/2/tools/0/tools/0"),
            ("later", "/input/2/tools/1"),
            ("more", "/input/3/tools/0"),
        ];
        assert_eq!(tools, expected.map(|(name, at)| (name.to_owned(), at.to_owned())));
        assert_eq!(translated.names.meaning("tool_search"), Some(&OfferedTool::Search));
        let body = crate::request::to_value(&translated.body);
        assert_eq!(body["tool_choice"], json!({"type": "function", "name": "tool_search"}));
        let expected = json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "tool_calls": [{"id": "s1", "type": "function",
                "function": {"name": "tool_search", "arguments": "{\"query\":\"x\"}"}}]},
            {"role": "tool", "tool_call_id": "s1", "content": "Found: a__x, later"}]);
        assert_eq!(body["messages"], expected);
    }

    #[test]
    fn faults_have_pointers_into_the_original() {
        for (body, want) in [
            (json!([]), vec![""]),
            (json!({}), vec!["/input"]),
            (json!({"input": []}), vec!["/input"]),
            (json!({"input": 5, "previous_response_id": null}), vec!["/input"]),
            (
                json!({"input": "x", "conversation": "c", "background": true}),
                vec!["/conversation", "/background"],
            ),
            (json!({"input": "x", "background": false, "previous_response_id": null}), vec![]),
            (
                json!({"input": "x", "nonsense": 1, "truncation": "auto",
                    "reasoning": {"effort": "low", "summary": "auto", "generate_summary": null,
                        "efort": 1}}),
                vec!["/nonsense", "/truncation", "/reasoning/efort"],
            ),
            (
                json!({"input": [{"type": "additional_tools"}, {"type": "additional_tools", "tools": [{"type": "shell"}]},
                        {"type": "tool_search_output", "execution": "client", "tools": []}],
                    "tools": [{"type": "namespace", "tools": [{"type": "shell"}]}, {"type": "tool_search", "execution": "later"},
                        {"type": "function", "name": "f", "async": true, "allowed_callers": ["programmatic"]}]}),
                vec![
                    "/tools/0/name",
                    "/tools/0/tools/0/type",
                    "/tools/1/execution",
                    "/tools/2/allowed_callers",
                    "/tools/2/async",
                    "/input/0/tools",
                    "/input/2/call_id",
                ],
            ),
            (
                json!({"input": "x", "include": ["message.output_text.logprobs"]}),
                vec!["/include/0"],
            ),
            (
                json!({"input": [1, {}, {"type": "item_reference", "id": "x"}, {"type": "function_call", "name": 1}, {"type": "computer_call"},
                    {"type": "function_call_output", "call_id": "1"}]}),
                vec![
                    "/input/0",
                    "/input/1/type",
                    "/input/2/id",
                    "/input/3/call_id",
                    "/input/3/name",
                    "/input/3/arguments",
                    "/input/4/type",
                    "/input/5/output",
                ],
            ),
        ] {
            let found = read(&body).err().unwrap_or_default();
            assert_eq!(found, want, "{body}");
        }
    }
}
