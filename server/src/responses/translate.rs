//! Translation of a Responses body to the equivalent Chat Completions body, with pointer
//! translation.

use louver::spec::json::{Json, Object};

use crate::config::UnknownMembers;
use crate::error::{ApiError, ApiFault};
use crate::request::member_table::{COMMON, MemberTable};
use crate::request::members::{Faults, Members};
use crate::request::pointers::PointerMap;
use crate::request::{object, structure, text};

/// A translated body, and the map of its JSON pointers to the original.
#[derive(Debug)]
pub(crate) struct TranslatedBody {
    pub(crate) body: Json,
    pub(crate) pointers: PointerMap,
}

const NOT_STORED: &str = "responses are not stored: send the whole conversation in `input`";

const MEMBER_TABLE: MemberTable = MemberTable {
    accepted: &[
        "input",
        "instructions",
        "text",
        "reasoning",
        "max_output_tokens",
        "truncation",
        "include",
    ],
    ignored: &[
        "metadata",
        "user",
        "store",
        "stream_options",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
        "service_tier",
    ],
    unsupported: &[
        ("previous_response_id", NOT_STORED),
        ("conversation", NOT_STORED),
        ("background", "background responses are not supported"),
        ("prompt", "there are no stored prompts"),
        ("max_tool_calls", "the server does not call tools itself"),
        ("top_logprobs", "not supported here: use /v1/chat/completions"),
        ("context_management", "contexts are not compacted"),
        ("moderation", "there is no moderation"),
        ("response_format", "use `text.format`"),
        ("messages", "use `input`"),
        ("max_tokens", "use `max_output_tokens`"),
        ("max_completion_tokens", "use `max_output_tokens`"),
        ("reasoning_effort", "use `reasoning.effort`"),
    ],
};

/// Tool types that are services hosted by OpenAI.
const HOSTED_TOOLS: [&str; 14] = [
    "web_search",
    "web_search_preview",
    "file_search",
    "computer",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "mcp",
    "local_shell",
    "shell",
    "apply_patch",
    "namespace",
    "tool_search",
    "programmatic_tool_calling",
];

/// Translates a body. Errors: the faults of members that only Responses has. Other faults are found
/// when the result is parsed.
pub(crate) fn translate(body: &Json, unknown: UnknownMembers) -> Result<TranslatedBody, ApiError> {
    let mut faults = Faults::new();
    let Some(members) = Members::from_json(body, "", &mut faults) else {
        return Err(ApiError::reject(faults).err().unwrap_or_else(no_fault));
    };
    MEMBER_TABLE.check(&members, unknown, &mut faults);
    reject_hosted_tools(&members, &mut faults);
    check_options(&members, &mut faults);
    let mut out: Vec<(String, Json)> = Vec::new();
    for name in COMMON.into_iter().chain(structure::names()) {
        out.extend(members.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    out.iter_mut()
        .filter(|(name, _)| name == "tools")
        .for_each(|(_, tools)| default_to_strict(tools));
    let mut pointers = PointerMap::default();
    pointers.insert("/max_completion_tokens", "/max_output_tokens");
    out.extend(
        members.get("max_output_tokens").map(|n| ("max_completion_tokens".to_owned(), n.clone())),
    );
    if let Some(reasoning) = members.object(&mut faults, "reasoning") {
        pointers.insert("/reasoning_effort", "/reasoning/effort");
        out.extend(
            reasoning.get("effort").map(|effort| ("reasoning_effort".to_owned(), effort.clone())),
        );
    }
    if let Some(text) = members.object(&mut faults, "text") {
        let message = "there is no such member: use `text.format`";
        text.refuse_unknown(&mut faults, &["format", "verbosity"], message);
        out.extend(
            translate_format(&text, &mut pointers, &mut faults)
                .map(|translate_format| ("response_format".to_owned(), translate_format)),
        );
    }
    let mut messages = MessageTranslator { list: Vec::new(), pointers, faults };
    messages.read(&members);
    let MessageTranslator { list, pointers, faults } = messages;
    ApiError::reject(faults)?;
    out.push(("messages".to_owned(), Json::Array(list)));
    let body = object(out);
    Ok(TranslatedBody { body, pointers })
}

/// The error for an empty list of faults.
fn no_fault() -> ApiError {
    ApiError::invalid("", "invalid", "refused without a reason")
}

/// Marks functions as strict by default, as the Responses API does.
fn default_to_strict(tools: &mut Json) {
    let Json::Array(tools) = tools else { return };
    for tool in tools {
        let Json::Object(members) = tool else { continue };
        let is_function = members.get("type").and_then(Json::as_str) == Some("function");
        let has_strict =
            |members: &Object| members.get("strict").is_some_and(|strict| *strict != Json::Null);
        let is_wrapped = members.get("function").is_some();
        if is_function && !is_wrapped && !has_strict(members) {
            let others = members.iter().filter(|(name, _)| *name != "strict");
            let others = others.map(|(name, value)| (name.to_owned(), value.clone()));
            *tool = object(others.chain([("strict".to_owned(), Json::Bool(true))]).collect());
        }
    }
}

fn reject_hosted_tools(members: &Members<'_>, faults: &mut Faults) {
    let tools = members.get("tools").and_then(Json::as_array).unwrap_or_default();
    for (k, tool) in tools.iter().enumerate() {
        let kind = tool.get("type").and_then(Json::as_str).unwrap_or_default();
        // Some types end with a date.
        if HOSTED_TOOLS.iter().any(|hosted| {
            kind == *hosted || kind.strip_prefix(hosted).is_some_and(|r| r.starts_with("_20"))
        }) {
            let message =
                format!("tools of type {kind:?} are not supported: use functions and custom tools");
            faults.push(ApiFault::at(format!("/tools/{k}/type"), "unsupported_tool", message));
        }
    }
}

fn check_options(members: &Members<'_>, faults: &mut Faults) {
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

/// Translates `text.translate_format` to `response_format`.
fn translate_format(
    members: &Members<'_>,
    pointers: &mut PointerMap,
    faults: &mut Faults,
) -> Option<Json> {
    pointers.insert("/response_format", "/text/format");
    let translate_format = members.object(faults, "format")?;
    if translate_format.get("type").and_then(Json::as_str) != Some("json_schema") {
        return members.get("format").cloned();
    }
    pointers.insert("/response_format/json_schema", "/text/format");
    // Unknown members are reported when `response_format` is parsed.
    let inner =
        translate_format.iter().filter(|(name, value)| *name != "type" && **value != Json::Null);
    let inner = inner.map(|(name, value)| (name.to_owned(), value.clone()));
    Some(object(vec![
        ("type".to_owned(), text("json_schema")),
        ("json_schema".to_owned(), object(inner.collect())),
    ]))
}

struct MessageTranslator {
    list: Vec<Json>,
    pointers: PointerMap,
    faults: Faults,
}

impl MessageTranslator {
    fn read(&mut self, body: &Members<'_>) {
        self.pointers.insert("/messages", "/input");
        if let Some(instructions) = body.string(&mut self.faults, "instructions") {
            self.message(
                "/instructions",
                vec![("role", text("system")), ("content", text(instructions))],
            );
        }
        match body.get("input") {
            None => body.fail(&mut self.faults, "input", "missing", "is missing"),
            Some(Json::String(input)) => {
                self.message("/input", vec![("role", text("user")), ("content", text(input))]);
                self.pointers
                    .insert(format!("/messages/{}/content", self.list.len() - 1), "/input");
            }
            Some(Json::Array(items)) if !items.is_empty() => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(j, item)| self.item(item, format!("/input/{j}")));
            }
            Some(_) => body.fail(
                &mut self.faults,
                "input",
                "invalid_type",
                "must be a string or a list of items",
            ),
        }
    }

    fn message(&mut self, pointer: &str, members: Vec<(&str, Json)>) {
        self.pointers.insert(format!("/messages/{}", self.list.len()), pointer);
        self.list.push(object(
            members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ));
    }

    fn item(&mut self, item: &Json, pointer: String) {
        let Some(members) = Members::from_json(item, &*pointer, &mut self.faults) else { return };
        let kind = members.string(&mut self.faults, "type");
        match kind.or_else(|| members.get("role").map(|_| "message")) {
            Some("message") => {
                let copied = ["role", "content"].into_iter();
                let copied =
                    copied.filter_map(|name| Some((name, members.get(name)?.clone()))).collect();
                self.message(&pointer, copied);
            }
            Some("function_call") => self.call(&members, "function", "arguments"),
            Some("custom_tool_call") => self.call(&members, "custom", "input"),
            Some("function_call_output" | "custom_tool_call_output") => {
                let id = self.required_string(&members, "call_id");
                let output = members.get("output").cloned();
                if output.is_none() {
                    members.fail(&mut self.faults, "output", "missing", "is missing");
                }
                let output = output.unwrap_or(Json::Null);
                self.message(
                    &pointer,
                    vec![("role", text("tool")), ("tool_call_id", text(&id)), ("content", output)],
                );
                self.pointers.insert(
                    format!("/messages/{}/content", self.list.len() - 1),
                    format!("{pointer}/output"),
                );
            }
            // Reasoning of earlier turns, which templates leave out.
            Some("reasoning") => {}
            Some("item_reference") => {
                members.fail(&mut self.faults, "type", "unsupported", NOT_STORED);
            }
            Some(other) => {
                let message = format!("items of type {other:?} are not supported");
                members.fail(&mut self.faults, "type", "unsupported", message);
            }
            None => members.fail(&mut self.faults, "type", "missing", "is missing"),
        }
    }

    fn required_string(&mut self, members: &Members<'_>, name: &str) -> String {
        let value = members.string(&mut self.faults, name);
        if members.get(name).is_none() {
            members.fail(&mut self.faults, name, "missing", "is missing");
        }
        value.unwrap_or_default().to_owned()
    }

    /// Adds a call to the preceding assistant message, or to a new one.
    fn call(&mut self, members: &Members<'_>, kind: &str, argument_member: &str) {
        let (id, name) =
            (self.required_string(members, "call_id"), self.required_string(members, "name"));
        let value = self.required_string(members, argument_member);
        let holder = object(vec![
            ("name".to_owned(), text(&name)),
            (argument_member.to_owned(), text(&value)),
        ]);
        let members = vec![
            ("id".to_owned(), text(&id)),
            ("type".to_owned(), text(kind)),
            (kind.to_owned(), holder),
        ];
        let call = object(members);
        let last = self
            .list
            .last_mut()
            .filter(|last| last.get("role").and_then(Json::as_str) == Some("assistant"));
        if let Some(Json::Object(last)) = last {
            let mut calls =
                last.get("tool_calls").and_then(Json::as_array).unwrap_or_default().to_vec();
            calls.push(call);
            let others = last.iter().filter(|(name, _)| *name != "tool_calls");
            let mut members: Vec<(String, Json)> =
                others.map(|(n, v)| (n.to_owned(), v.clone())).collect();
            members.push(("tool_calls".to_owned(), Json::Array(calls)));
            *last = Object::new(members).unwrap_or_default();
            return;
        }
        self.list.push(object(vec![
            ("role".to_owned(), text("assistant")),
            ("tool_calls".to_owned(), Json::Array(vec![call])),
        ]));
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::{Value, json};

    use super::*;

    fn read(body: &Value) -> Result<TranslatedBody, Vec<String>> {
        let body = Json::parse(&body.to_string(), &Limits::default()).unwrap();
        let pointers = |error: ApiError| {
            error.faults().map(|fault| fault.param.clone().unwrap_or_default()).collect()
        };
        translate(&body, UnknownMembers::Refuse).map_err(pointers)
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
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok", "annotations": []}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "2", "name": "c", "input": "x"},
                {"type": "function_call_output", "call_id": "1", "output": "r"},
                {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "s"}]},
                {"type": "function_call", "call_id": "3", "name": "f", "arguments": "{}"}
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
                {"role": "assistant", "content": [{"type": "output_text", "text": "ok", "annotations": []}], "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                    {"id": "2", "type": "custom", "custom": {"name": "c", "input": "x"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "r"},
                {"role": "tool", "tool_call_id": "2", "content": [{"type": "input_text", "text": "s"}]},
                {"role": "assistant", "tool_calls": [{"id": "3", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
            ]
        });
        assert_eq!(crate::request::to_value(&translated.body), expected);
        for (from, to) in [
            ("/messages/1/content", "/input/0/content"),
            ("/messages/2/content/0/type", "/input/2/content/0/type"),
            ("/messages/3/content", "/input/5/output"),
            ("/messages/4/content/0/text", "/input/6/output/0/text"),
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

    #[test]
    fn faults_have_pointers_into_the_original() {
        for (body, want) in [
            (json!([]), vec![""]),
            (json!({}), vec!["/input"]),
            (json!({"input": []}), vec!["/input"]),
            (
                json!({"input": 5, "previous_response_id": "resp_1"}),
                vec!["/previous_response_id", "/input"],
            ),
            (
                json!({"input": "x", "conversation": "c", "background": true}),
                vec!["/conversation", "/background"],
            ),
            (json!({"input": "x", "background": false, "previous_response_id": null}), vec![]),
            (
                json!({"input": "x", "nonsense": 1, "truncation": "auto"}),
                vec!["/nonsense", "/truncation"],
            ),
            (
                json!({"input": "x", "tools": [{"type": "function", "name": "f"}, {"type": "web_search_preview_2025_03_11"}]}),
                vec!["/tools/1/type"],
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
                    "/input/2/type",
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
