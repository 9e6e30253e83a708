//! Translation of a Messages body to the equivalent Chat Completions body, with pointer
//! translation.

use louver::spec::json::{Json, Object};

use crate::config::UnknownMembers;
use crate::error::{ApiError, ApiFault};
use crate::messages::BodyRules;
use crate::messages::conversation::ConversationTranslator;
use crate::messages::tools::{translate_choice, translate_tools};
use crate::request::member_table::{MemberTable, RouteAdvice};
use crate::request::members::{Faults, Members};
use crate::request::pointers::PointerMap;
use crate::request::{object, replace_member, structure, text};

/// A translated body, the map of its JSON pointers to the original, and what only Messages has.
#[derive(Debug)]
pub(super) struct TranslatedMessages {
    pub(super) body: Json,
    pub(super) pointers: PointerMap,
    /// The same map for calls and the ids of results.
    pub(super) call_pointers: Vec<(String, String)>,
    pub(super) options: MessageOptions,
}

/// Members that decide how the message is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageOptions {
    /// Whether the text of reasoning is left out.
    pub(crate) omits_thinking: bool,
}

/// Members that the translated body has unchanged.
const COPIED: [&str; 12] = [
    "model",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "stream",
    "louver",
];

const OUTPUT_FORMAT: &str = "use `output_config.format`";
const THINKING: &str = "use `thinking`";

pub(crate) const MEMBER_TABLE: MemberTable = MemberTable {
    accepted: &[
        "system",
        "messages",
        "max_tokens",
        "stop_sequences",
        "thinking",
        "output_config",
        "output_format",
        "thread",
    ],
    ignored: &[
        "cache_control",
        "context_management",
        "inference_geo",
        "speed",
        "diagnostics",
        "user_profile_id",
        "workspace_id",
    ],
    unsupported: &[
        ("container", "the server does not run code"),
        ("mcp_servers", "MCP servers are named in the server's configuration: use /v1/responses"),
        ("prefill", "messages are not continued: use `output_config.format`"),
        ("compaction", "conversations are not summarised: shorten `messages`"),
        ("stop", "use `stop_sequences`"),
        ("parallel_tool_calls", "use `tool_choice.disable_parallel_tool_use`"),
        ("response_format", OUTPUT_FORMAT),
        ("text", OUTPUT_FORMAT),
        ("reasoning_effort", THINKING),
        ("enable_thinking", THINKING),
        ("chat_template_kwargs", "use `thinking`, or /v1/chat/completions"),
        ("input", "use `messages`"),
        ("prompt", "use `messages`"),
        ("instructions", "use `system`"),
        ("max_completion_tokens", "use `max_tokens`"),
        ("max_output_tokens", "use `max_tokens`"),
        ("max_tokens_to_sample", "use `max_tokens`"),
    ],
    advice: RouteAdvice {
        structure: OUTPUT_FORMAT,
        max_tokens: "use `max_tokens`",
        reasoning: THINKING,
        stop: "use `stop_sequences`",
        tools: "use `tools` and `tool_choice`",
    },
};

/// Translates a body with at most `max_tools` tools. Errors: the faults of members that only
/// Messages has. Other faults are found when the result is parsed.
pub(super) fn translate(
    body: &Json,
    max_tools: usize,
    unknown: UnknownMembers,
    rules: BodyRules,
) -> Result<TranslatedMessages, ApiError> {
    let (members, mut faults) = (Members::of_body(body)?, Faults::new());
    // The first fault: on this code Anthropic's client libraries send the whole conversation.
    if members.get("thread").is_some_and(|thread| *thread != Json::Bool(false)) {
        let message = "conversations are not stored: send the whole one in `messages`";
        members.fail(&mut faults, "thread", "thread_unsupported_request", message);
    }
    let mut pointers = PointerMap::default();
    MEMBER_TABLE.check(&members, unknown, &mut faults, &mut pointers);
    if rules.requires_max_tokens {
        members.require(&mut faults, "max_tokens");
    }
    let mut translator = BodyTranslator {
        members: &members,
        out: Vec::new(),
        pointers,
        faults,
        options: MessageOptions::default(),
    };
    for name in COPIED.into_iter().chain(structure::names()) {
        if let Some(value) = members.get(name) {
            translator.set(name, value.clone());
        }
    }
    translator.stop();
    translator.thinking(rules);
    translator.output_format();
    translator.tools(max_tools);
    let BodyTranslator { mut out, mut pointers, mut faults, options, .. } = translator;
    let mut conversation = ConversationTranslator::new(&mut pointers, &mut faults);
    conversation.read(&members);
    let (messages, call_pointers) = conversation.finish();
    out.push(("messages", messages));
    ApiError::reject(faults)?;
    Ok(TranslatedMessages { body: object(out), pointers, call_pointers, options })
}

struct BodyTranslator<'a> {
    members: &'a Members<'a>,
    out: Vec<(&'static str, Json)>,
    pointers: PointerMap,
    faults: Faults,
    options: MessageOptions,
}

impl BodyTranslator<'_> {
    /// Sets a member of the translated body.
    fn set(&mut self, name: &'static str, value: Json) {
        self.out.retain(|(other, _)| *other != name);
        self.out.push((name, value));
    }

    fn stop(&mut self) {
        self.pointers.insert("/stop", "/stop_sequences");
        let Some(sequences) = self.members.array(&mut self.faults, "stop_sequences") else {
            return;
        };
        // Items that are not texts are reported when the result is parsed.
        self.set("stop", Json::Array(sequences.to_vec()));
    }

    /// Translates `thinking` to `enable_thinking` and `louver.reasoning_budget`.
    fn thinking(&mut self, rules: BodyRules) {
        self.pointers.insert("/enable_thinking", "/thinking/type");
        self.pointers.insert("/reasoning_effort", "/thinking/type");
        let Some(thinking) = self.members.object(&mut self.faults, "thinking") else { return };
        let faults = &mut self.faults;
        let known = ["type", "budget_tokens", "display"];
        thinking.refuse_unknown(faults, &known);
        thinking.require(faults, "type");
        let kind = thinking.one_of(faults, "type", &["enabled", "disabled", "adaptive"]);
        let display = thinking.one_of(faults, "display", &["summarized", "omitted"]);
        self.options.omits_thinking = display == Some("omitted");
        let budget = thinking.integer(faults, "budget_tokens", 1..=i64::from(u32::MAX));
        if budget.is_some() && kind.is_some_and(|kind| kind != "enabled") {
            let message = "requires the type \"enabled\"";
            thinking.fail(faults, "budget_tokens", "contradiction", message);
        }
        // Invalid values of `max_tokens` are reported when the result is parsed.
        let max_tokens = self.members.integer(&mut Faults::new(), "max_tokens", 1..=i64::MAX);
        if max_tokens.is_some_and(|max| budget >= Some(max)) && !rules.has_interleaved_thinking {
            let message = "must be less than `max_tokens`, which includes thinking";
            thinking.fail(faults, "budget_tokens", "contradiction", message);
        }
        if let Some(kind) = kind {
            self.set("enable_thinking", Json::Bool(kind != "disabled"));
        }
        if let Some(value) = thinking.get("budget_tokens") {
            self.reasoning_budget(value);
        }
    }

    fn reasoning_budget(&mut self, budget: &Json) {
        const NAME: &str = "reasoning_budget";
        let extension = match self.members.get("louver") {
            None => &Object::default(),
            Some(Json::Object(members)) => members,
            // Reported when the result is parsed.
            Some(_) => return,
        };
        if extension.get_non_null(NAME).is_some() {
            let message = "contradicts `thinking.budget_tokens`";
            let fault = ApiFault::at(format!("/louver/{NAME}"), "contradiction", message);
            return self.faults.push(fault);
        }
        self.pointers.insert(format!("/louver/{NAME}"), "/thinking/budget_tokens");
        self.set("louver", replace_member(extension, NAME, budget.clone()));
    }

    /// Translates `output_config.format`, or the older `output_format`, to `response_format`.
    fn output_format(&mut self) {
        let config = self.members.object(&mut self.faults, "output_config");
        if let Some(config) = &config {
            let advice = ": use `effort` and `format`";
            config.refuse_unknown_with(&mut self.faults, &["effort", "format"], advice);
            let efforts = ["low", "medium", "high", "xhigh", "max"];
            if let Some(effort) = config.one_of(&mut self.faults, "effort", &efforts) {
                // For the chat template. It does not turn thinking on, as `thinking` does.
                let variables = object([("reasoning_effort", text(effort))]);
                self.set("chat_template_kwargs", variables);
            }
        }
        let inner = config.as_ref().and_then(|config| config.object(&mut self.faults, "format"));
        let older = self.members.object(&mut self.faults, "output_format");
        let (pointer, format) = match (inner, older) {
            (Some(format), _) => ("/output_config/format", format),
            (None, Some(format)) => ("/output_format", format),
            (None, None) => return,
        };
        let is_other = |name: &&str| *name != &pointer[1..] && self.members.get(name).is_some();
        if let Some(other) = structure::names().chain(["output_format"]).find(is_other) {
            let message = format!("{pointer} already constrains the response");
            self.members.fail(&mut self.faults, other, "contradiction", message);
        }
        let advice = ": the schema belongs in `schema`";
        format.refuse_unknown_with(&mut self.faults, &["type", "schema"], advice);
        for name in ["type", "schema"] {
            format.require(&mut self.faults, name);
        }
        format.one_of(&mut self.faults, "type", &["json_schema"]);
        let Some(schema) = format.get("schema") else { return };
        self.pointers.insert("/response_format", pointer);
        self.pointers.insert("/response_format/json_schema/schema", format!("{pointer}/schema"));
        let inner = object([("name", text("answer")), ("schema", schema.clone())]);
        let format = object([("type", text("json_schema")), ("json_schema", inner)]);
        self.set("response_format", format);
    }

    fn tools(&mut self, max: usize) {
        let Self { members, pointers, faults, .. } = self;
        let tools = translate_tools(members, max, pointers, faults);
        let choice = translate_choice(members, pointers, faults);
        if let Some(tools) = tools {
            self.set("tools", tools);
        }
        if let Some((choice, is_parallel)) = choice {
            self.set("tool_choice", choice);
            self.set("parallel_tool_calls", Json::Bool(is_parallel));
        }
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::{Value, json};

    use super::*;
    use crate::request::to_value;

    fn read(body: &Value) -> Result<TranslatedMessages, Vec<String>> {
        let body = Json::parse(&body.to_string(), &Limits::default()).unwrap();
        let pointers = |error: ApiError| {
            error.faults().map(|fault| fault.param.clone().unwrap_or_default()).collect()
        };
        let rules = BodyRules { requires_max_tokens: true, has_interleaved_thinking: false };
        translate(&body, 4, UnknownMembers::Ignore, rules).map_err(pointers)
    }

    /// Tools beyond the limit are not looked at: they may be millions. Null counts as absent.
    #[test]
    fn tools_are_counted_before_they_are_read() {
        let with_tools = |tools: Vec<Value>| {
            let message = json!({"role": "user", "content": "x"});
            json!({"max_tokens": 9, "messages": [message], "tools": tools})
        };
        let faults = read(&with_tools(vec![json!(1); 5])).unwrap_err();
        assert_eq!(faults, ["/tools"]);
        let faults = read(&with_tools(vec![json!(1), json!({"name": "f"})])).unwrap_err();
        assert_eq!(faults, ["/tools/0", "/tools/1/input_schema"]);
        let tool = json!({"name": "f", "input_schema": {}, "parameters": null, "x": null});
        assert!(read(&with_tools(vec![tool])).is_ok());
    }

    #[test]
    fn members_are_translated() {
        let schema = json!({"type": "object"});
        let body = json!({
            "model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "messages": [{"role": "user", "content": "hi"}],
            "stop_sequences": ["x"], "temperature": 0.5, "top_k": 3, "stream": true, "service_tier": "auto",
            "metadata": {"user_id": "u"}, "thinking": {"type": "enabled", "budget_tokens": 5, "display": "omitted"},
            "louver": {"whitespace": "compact"}, "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
            "tools": [{"name": "f", "input_schema": schema, "description": "d", "strict": true, "cache_control": {"type": "ephemeral"}},
                {"type": "custom", "name": "g", "input_schema": schema, "input_examples": [{}]}],
            "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
        });
        let translated = read(&body).unwrap();
        let expected = json!({
            "model": "m", "max_tokens": 9, "temperature": 0.5, "top_k": 3, "stream": true, "stop": ["x"],
            "enable_thinking": true, "louver": {"whitespace": "compact", "reasoning_budget": 5},
            "chat_template_kwargs": {"reasoning_effort": "low"},
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
            "tools": [
                {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema, "strict": true}},
                {"type": "function", "function": {"name": "g", "parameters": schema}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false,
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        });
        assert_eq!(to_value(&translated.body), expected);
        let options = MessageOptions { omits_thinking: true };
        assert_eq!(translated.options, options);
        for (from, to) in [
            ("/tools/1/function/parameters/type", "/tools/1/input_schema/type"),
            ("/tools/0/function/name", "/tools/0/name"),
            ("/response_format/json_schema/schema/type", "/output_config/format/schema/type"),
            ("/stop/0", "/stop_sequences/0"),
            ("/louver/reasoning_budget", "/thinking/budget_tokens"),
            ("/reasoning_effort", "/thinking/type"),
            ("/messages/1", "/messages/0"),
            ("/parallel_tool_calls", "/tool_choice/disable_parallel_tool_use"),
            ("/max_tokens", "/max_tokens"),
        ] {
            assert_eq!(translated.pointers.original(from), to);
        }
    }

    #[test]
    fn choices_and_thinking_are_translated() {
        for (choice, expected) in [
            (json!({"type": "auto"}), json!(["auto", true])),
            (json!({"type": "any"}), json!(["required", true])),
            (json!({"type": "any", "disable_parallel_tool_use": true}), json!(["required", false])),
            (json!({"type": "none"}), json!(["none", true])),
        ] {
            let body = json!({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "tool_choice": choice});
            let body = to_value(&read(&body).unwrap().body);
            assert_eq!(json!([body["tool_choice"], body["parallel_tool_calls"]]), expected);
        }
        for (thinking, expected) in [
            (json!(null), json!(null)),
            (json!({"type": "disabled"}), json!(false)),
            (json!({"type": "adaptive"}), json!(true)),
            (json!({"type": "enabled"}), json!(true)),
        ] {
            let body = json!({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "thinking": thinking});
            assert_eq!(to_value(&read(&body).unwrap().body)["enable_thinking"], expected);
        }
    }
}
