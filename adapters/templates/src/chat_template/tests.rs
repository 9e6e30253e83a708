use serde_json::json;

use super::*;

fn render(source: &str, messages: &[serde_json::Value], input: &TemplateInput) -> String {
    let template = ChatTemplate::new(source, [Some("<s>".to_owned()), None, None]).unwrap();
    template.render(messages, input).unwrap()
}

#[test]
fn tools_keep_their_order_and_are_not_escaped() {
    let tools =
        [json!({"type": "function", "function": {"name": "z", "description": "a < b & 'c'",
        "parameters": {"type": "object", "properties": {"y": {}, "a": {"minimum": 1}}}}})];
    let input = TemplateInput { tools: tools.to_vec(), ..TemplateInput::default() };
    let source = "{{ bos_token }}{% for tool in tools %}{{ tool | tojson }}|{{ tool.function.name }}|\
                  {{ tool.function.parameters.properties | list | join(',') }}{% endfor %}";
    let expected = "<s>{\"type\": \"function\", \"function\": {\"name\": \"z\", \"description\": \"a < b & 'c'\", \
                    \"parameters\": {\"type\": \"object\", \"properties\": {\"y\": {}, \"a\": {\"minimum\": 1}}}}}|z|y,a";
    assert_eq!(render(source, &[], &input), expected);
    assert_eq!(
        render("{{ tools[0].function.parameters | tojson(indent=2) }}", &[], &input)
            .lines()
            .count(),
        9
    );
    assert_eq!(
        render("{{ {'a': [1, tools]} | tojson }}", &[], &input).find("{\"a\": [1, [{\"type\""),
        Some(0)
    );
}

#[test]
fn undefined_unless_given() {
    let source =
        "{{ tools is defined }} {{ enable_thinking is defined }} {{ enable_thinking is false }}";
    assert_eq!(render(source, &[], &TemplateInput::default()), "False False False");
    let input = TemplateInput::new(&[], Some(false));
    assert_eq!(render(source, &[], &input), "False True True");
    // As Llama's and gpt-oss' templates ask for them.
    let source = "{{ builtin_tools is defined }} {{ builtin_tools | reject('equalto', 'code_interpreter') | join(', ') }} {{ 'python' in builtin_tools }}";
    let builtin_tools = ["code_interpreter", "python", "browser"].map(str::to_owned).to_vec();
    let input = TemplateInput { builtin_tools, ..TemplateInput::default() };
    assert_eq!(render(source, &[], &input), "True python, browser True");
    assert_eq!(render("{{ builtin_tools is defined }}", &[], &TemplateInput::default()), "False");
}

/// Some families call `enable_thinking` `thinking`; what the conversation gives is never replaced.
#[test]
fn variables_reach_the_template() {
    let variables = json!({"reasoning_effort": "high", "n": 1.5, "list": [{"b": 1, "a": true}],
        "tools": [1], "messages": 2, "add_generation_prompt": false, "bos_token": "x"});
    let variables = variables.as_object().unwrap().clone();
    let input = TemplateInput::new(&[], Some(true)).with_variables(variables);
    let source = "{{ reasoning_effort }} {{ n }} {{ list | tojson }} {{ thinking }} \
                  {{ enable_thinking }} {{ tools is defined }} {{ messages | length }} \
                  {{ add_generation_prompt }} {{ bos_token }}|";
    let messages = [json!({"role": "user", "content": "a"})];
    let expected = "high 1.5 [{\"b\": 1, \"a\": true}] True True False 1 True <s>|";
    assert_eq!(render(source, &messages, &input), expected);
    let unset = TemplateInput::default();
    assert_eq!(render("{{ thinking is defined }}", &[], &unset), "False");
}

#[test]
fn python_methods_and_refusals() {
    let messages = [json!({"role": "user", "content": " <think>x</think> y "})];
    let input = TemplateInput::default();
    let source = "{{ messages[0].content.split('</think>')[-1].strip() }}{{ messages[0]['role'].startswith('us') }}";
    assert_eq!(render(source, &messages, &input), "yTrue");
    assert_eq!(
        render("{% for m in messages[::-1] %}{{ m.role }}{% endfor %}", &messages, &input),
        "user"
    );
    let template =
        ChatTemplate::new("{{ raise_exception('no ' ~ messages[0].role) }}", Default::default())
            .unwrap();
    let error = template.render(&messages, &input).unwrap_err();
    assert!(matches!(error, TemplateError::Render(text) if text.contains("no user")));
    assert!(matches!(
        ChatTemplate::new("{% for %}", Default::default()),
        Err(TemplateError::Render(_))
    ));
}

/// Real templates, those of `tokenizer_config.json`.
#[test]
fn real_templates_render_if_present() {
    let Some(root) = louver_test_support::data_if_present("tokenizers") else { return };
    let entries = std::fs::read_dir(&root).unwrap();
    let tools = [
        json!({"type": "function", "function": {"name": "f", "description": "it's", "parameters": {
        "type": "object", "properties": {"x": {"type": "string"}}}}}),
    ];
    let conversation = [
        json!({"role": "user", "content": "question"}),
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function",
            "function": {"name": "f", "arguments": {"x": "<&>"}}}]}),
        json!({"role": "tool", "content": "result", "tool_call_id": "1"}),
    ];
    let mut rendered = 0;
    for entry in entries.flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path().join("tokenizer_config.json")) else {
            continue;
        };
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let Some(source) = config["chat_template"].as_str() else { continue };
        let template = ChatTemplate::new(source, Default::default()).unwrap();
        let text = template.render(&conversation[..1], &TemplateInput::default()).unwrap();
        assert!(text.contains("question"), "{}", entry.path().display());
        if entry.file_name() == "qwen3" {
            let input = TemplateInput::new(&tools, Some(false));
            let text = template.render(&conversation, &input).unwrap();
            assert!(text.contains("\"description\": \"it's\""), "{text}");
            assert!(
                text.contains(
                    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"<&>\"}}\n</tool_call>"
                ),
                "{text}"
            );
            assert!(text.ends_with("<|im_start|>assistant\n<think>\n\n</think>\n\n"), "{text}");
        }
        rendered += 1;
    }
    println!("{rendered} templates");
}

#[test]
fn objects_that_a_template_builds_keep_their_order() {
    assert_eq!(
        render(
            "{{ {'name': 1, 'arguments': {'z': 2, 'a': 3}} | tojson }}",
            &[],
            &TemplateInput::default()
        ),
        "{\"name\": 1, \"arguments\": {\"z\": 2, \"a\": 3}}"
    );
}

#[test]
fn tags_for_training_leave_their_white_space() {
    for (source, want) in [
        ("a {%- generation -%} b {%- endgeneration %} c", "ab c"),
        ("a {% generation %} b {% endgeneration %} c", "a  b  c"),
        ("a{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "a1"),
    ] {
        assert_eq!(render(source, &[], &TemplateInput::default()), want, "{source}");
    }
}

#[test]
fn errors_show_nothing_of_the_conversation() {
    let messages = [json!({"role": "user", "content": "secret"})];
    let template = ChatTemplate::new("\n{{ messages[0] + 1 }}", Default::default()).unwrap();
    let error = template.render(&messages, &TemplateInput::default()).unwrap_err().to_string();
    assert!(error.contains("(line 2 of the chat template)"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn values_are_written_as_python_writes_them() {
    let floats = json!({"a": [1e16, 1e-5, 1.0, -2.5e-7, 100], "b": 1e16});
    let tools = [json!({"a": ["x'y", "\"", 1.5], "b": {"c": null, "d": true}, "é": "l\n"}), floats];
    let input = TemplateInput { tools: tools.to_vec(), ..TemplateInput::default() };
    for (source, want) in [
        ("{{ tools[0] }}", "{'a': [\"x'y\", '\"', 1.5], 'b': {'c': None, 'd': True}, 'é': 'l\\n'}"),
        (
            "{{ tools[0] | tojson(separators=(',', ':'), ensure_ascii=True) }}",
            "{\"a\":[\"x'y\",\"\\\"\",1.5],\"b\":{\"c\":null,\"d\":true},\"\\u00e9\":\"l\\n\"}",
        ),
        ("{{ {'b': [], 'a': {}} | tojson(sort_keys=True) }}", "{\"a\": {}, \"b\": []}"),
        ("{{ {'b': [1, 2]} | tojson(indent=2) }}", "{\n  \"b\": [\n    1,\n    2\n  ]\n}"),
        ("{{ [1e16, 0.5] | tojson }}", "[1e+16, 0.5]"),
        ("{{ [1e16, 0.5] | tojson(separators=(',', ':')) }}", "[1e+16,0.5]"),
        ("{{ tools[1] }}", "{'a': [1e+16, 1e-05, 1.0, -2.5e-07, 100], 'b': 1e+16}"),
        ("{{ missing | length }}{{ tools | count }}", "02"),
        ("a\r\nb\rc", "a\nb\nc"),
    ] {
        assert_eq!(render(source, &[], &input), want, "{source}");
    }
}

#[test]
fn messages_are_written_as_the_template_wants_them() {
    let message = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "a", "function": {"name": "f", "arguments": "{\"a\":1}"}},
        {"id": "b", "function": {"name": "f", "arguments": {"a": 1}}}]});
    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    assert_eq!(openai_message(&parts, MessageStyle::default())["content"], "a\nb");
    let usual = openai_message(&message, MessageStyle::default());
    assert_eq!(usual["content"], "");
    for call in usual["tool_calls"].as_array().unwrap() {
        assert_eq!(call["function"]["arguments"], json!({"a": 1}));
    }
    let style = MessageStyle { arguments_as_text: true, null_content: true, ..Default::default() };
    let other = openai_message(&message, style);
    assert_eq!(other["content"], json!(null));
    assert_eq!(other["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
    assert_eq!(other["tool_calls"][1]["function"]["arguments"], "{\"a\": 1}");
}

/// Ids of another program, in the form that templates of Mistral demand; the same for a call and
/// its result.
#[test]
fn foreign_call_ids_get_the_form_of_the_format() {
    let conformed = |family: &str| {
        let format = louver_formats::Catalog::shipped().named_or_file(family).unwrap();
        let mut messages = [
            json!({"role": "user", "content": "x"}),
            json!({"role": "assistant", "tool_calls": [
                {"id": "call_V1StGXR8_Z5jdHi6B-myT", "function": {"name": "f"}},
                {"id": "abcDEF123", "function": {"name": "g"}}, {"id": null}, 5
            ]}),
            json!({"role": "tool", "tool_call_id": "call_V1StGXR8_Z5jdHi6B-myT"}),
            json!({"role": "tool", "tool_call_id": "abcDEF123"}),
        ];
        conform_call_ids(&mut messages, &format);
        let calls = messages[1]["tool_calls"].clone();
        let results = [&messages[2], &messages[3]].map(|result| result["tool_call_id"].clone());
        assert_eq!([&calls[0]["id"], &calls[1]["id"]], [&results[0], &results[1]]);
        results.map(|id| id.as_str().unwrap().to_owned())
    };
    for family in ["mistral_v3", "mistral_v7"] {
        let [foreign, own] = conformed(family);
        assert!(foreign.len() == 9 && foreign.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_eq!(own, "abcDEF123");
    }
    assert_eq!(conformed("qwen3"), ["call_V1StGXR8_Z5jdHi6B-myT", "abcDEF123"]);
}
