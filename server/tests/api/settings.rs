//! Settings of single models.

use serde_json::json;

use crate::support::{Server, ask, long_request};

/// A model with settings of its own beside `tiny`, which has those of the configuration.
const TWO_MODELS: &str = r#"
strict_tools = "all"
[[model]]
name = "own"
strict_tools = "off"
reasoning = "required"
reasoning_budget = 5
draw = "host"
schema_options = { whitespace = "compact" }
engine = { background_threads = 0 }
preparation = { enabled = false }
[model.limits]
requests = { max_tokens = 7, prompt_bytes = 2000 }
schema = { depth = 40 }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn models_have_settings_of_their_own() {
    let server = Server::start(TWO_MODELS).await;
    let own = |more: serde_json::Value| {
        let mut body = ask(more);
        body["model"] = "own".into();
        body
    };
    // Whose schemas are enforced, and so must be right.
    let tool = json!({"name": "a", "parameters": {"type": "frog"}});
    let loose = json!({"tools": [{"type": "function", "function": tool}]});
    assert_eq!(server.chat(&ask(loose.clone())).await.status, 400);
    let answer = server.chat(&own(loose)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    // White space; a request's member comes first.
    let schema = json!({"type": "json_schema", "json_schema": {"schema": {"const": [1, 2]}}});
    for (louver, text) in
        [(json!({}), "[1,2]"), (json!({"schema_options": {"whitespace": "python_like"}}), "[1, 2]")]
    {
        let answer = server.chat(&own(json!({"response_format": schema, "louver": louver}))).await;
        assert_eq!(answer.json()["choices"][0]["message"]["content"], text, "{}", answer.text);
    }
    // Lengths and depths. The engine's limits are the model's, too.
    let answer = server.chat(&own(json!({"n": 2}))).await.json();
    assert!(answer["usage"]["completion_tokens"].as_u64().unwrap() <= 14, "{answer}");
    let long = json!({"messages": [{"role": "user", "content": "word ".repeat(500)}]});
    assert_eq!(server.chat(&ask(long.clone())).await.status, 200);
    assert_eq!(server.chat(&own(long)).await.error().0, 400);
    let deep = (0..60).fold(json!({}), |inner, _| json!({"items": inner}));
    let deep = json!({"response_format": {"type": "json_schema", "json_schema": {"schema": deep}}});
    assert_eq!(server.chat(&ask(deep.clone())).await.status, 200);
    assert_eq!(server.chat(&own(deep)).await.error().1, "schema_limit");
    // Reasoning of requests that do not say.
    // A block may be empty; not all are.
    let mut most = 0;
    for seed in 0..4 {
        let quiet = json!({"reasoning_effort": null, "max_tokens": 60, "seed": seed});
        let answer = server.chat(&own(quiet)).await.json();
        let reasoning = &answer["usage"]["completion_tokens_details"]["reasoning_tokens"];
        most = most.max(reasoning.as_u64().unwrap());
        assert!(most <= 5, "{answer}");
    }
    assert!(most > 0);
    let message = &own(json!({})).clone();
    let answer = server.chat(message).await.json();
    assert!(answer["choices"][0]["message"]["reasoning_content"].is_null(), "{answer}");
    // A seed makes Louver draw.
    let completion = json!({"model": "own", "prompt": "a", "max_tokens": 3}).to_string();
    assert_eq!(server.post("/v1/completions", completion).await.status, 200);
    let [first, second] = [server.chat(message).await.json(), server.chat(message).await.json()];
    assert_eq!(
        first["choices"][0]["message"]["content"],
        second["choices"][0]["message"]["content"]
    );
    let answer = server.chat(&own(json!({"seed": null}))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);

    let models = server.get("/v1/models").await.json();
    let settings = |i: usize| &models["data"][i]["louver"]["settings"];
    assert_eq!((&settings(0)["draw"], &settings(1)["draw"]), (&json!("host"), &json!("louver")));
    assert_eq!(settings(0)["limits"]["requests"]["max_tokens"], 7);
    assert_eq!(settings(1)["strict_tools"], "all");
    let own = server.get("/v1/models/own").await.json();
    assert_eq!(own["louver"], models["data"][0]["louver"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_bounds_its_own_generations() {
    let toml = "[[model]]\nname = \"one\"\nbatching = \"on\"\nlimits.requests.concurrent = 1";
    let server = Server::start(toml).await;
    let one = |mut body: serde_json::Value| {
        body["model"] = "one".into();
        body
    };
    let answer = server.chat(&one(ask(json!({"n": 2})))).await;
    assert_eq!(answer.error(), (400, "out_of_range".to_owned(), Some("/n".to_owned())));
    let body = one(ask(json!({"n": 2}))).to_string();
    let checked = server.post("/v1/louver/check", body).await.json();
    assert_eq!((&checked["ok"], &checked["errors"][0]["pointer"]), (&json!(false), &json!("/n")));
    // A second generation of the model waits, and one of the other model does not.
    let (long, _) = server.begin(&one(long_request())).await;
    let brief = one(ask(json!({"max_tokens": 1})));
    let waiting = server.chat(&brief);
    let others = async {
        server.wait_for("louver_waiting_requests", 1.0).await;
        assert_eq!(server.chat(&ask(json!({"max_tokens": 1}))).await.status, 200);
        drop(long);
    };
    let (answer, ()) = tokio::join!(waiting, others);
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// By default an object has no members that its schema does not declare.
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_closed_unless_options_or_the_schema_open_them() {
    let server = Server::start("").await;
    let answers = async |schema: serde_json::Value, options: serde_json::Value| {
        let mut answers = Vec::new();
        for seed in 0..6 {
            let format = json!({"type": "json_schema", "json_schema": {"schema": schema}});
            let louver = json!({"whitespace": "compact", "schema_options": options});
            let body = json!({"response_format": format, "seed": seed, "max_tokens": 80, "louver": louver});
            let answer = server.chat(&ask(body)).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let content = answer.json()["choices"][0]["message"]["content"].clone();
            answers.push(content.as_str().expect("text").to_owned());
        }
        answers
    };
    let schema = json!({"type": "object", "properties": {}});
    assert_eq!(answers(schema.clone(), json!({})).await, ["{}"; 6]);
    let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
    for answers in
        [answers(schema, json!({"undeclared": "allowed"})).await, answers(open, json!({})).await]
    {
        assert!(answers.iter().any(|answer| answer != "{}"), "{answers:?}");
    }
}

/// Structural tags may be as deep as the configuration allows.
#[tokio::test(flavor = "multi_thread")]
async fn depths_of_structural_tags_are_those_of_the_configuration() {
    let nested = |depth: usize| {
        let literal = json!({"type": "const_string", "value": "a"});
        let format =
            (0..depth).fold(literal, |format, _| json!({"type": "sequence", "elements": [format]}));
        ask(json!({"response_format": {"type": "structural_tag", "format": format}}))
    };
    let server = Server::start("[limits.schema]\ndepth = 500").await;
    let checked = async |depth: usize| {
        server.post("/v1/louver/check", nested(depth).to_string()).await.json()
    };
    let answer = checked(180).await;
    assert_eq!(answer["ok"], true, "{answer}");
    // Each format is an object in an array.
    let answer = checked(300).await;
    assert_eq!(answer["error"]["code"], "invalid_json", "{answer}");
}

/// A template whose prompt is longer by as many words as the variables ask for.
const COUNTING_TEMPLATE: &str = "{% for message in messages %}{{ message.content }}{% endfor %}\
    {% if reasoning_effort is defined %}{{ reasoning_effort }} a b c d e f g{% endif %}\
    {% if thinking %} h i j k l m n o p q{% endif %}\
    {% for word in words or [] %} {{ word }}{% endfor %}";

/// Reasoning efforts and the variables of `chat_template_kwargs` reach the chat template, from each
/// API's own members.
#[tokio::test(flavor = "multi_thread")]
async fn variables_reach_the_chat_template() {
    let file = std::env::temp_dir().join(format!("louver-template-{}.jinja", std::process::id()));
    std::fs::write(&file, COUNTING_TEMPLATE).unwrap();
    let model = format!(
        "[[model]]\nname = 'counting'\nformat = 'qwen3'\nchat_template = '{}'",
        file.display()
    );
    let server = Server::start(&model).await;
    let counted = async |path: &str, mut body: serde_json::Value, pointer: &str| {
        body["model"] = "counting".into();
        let answer = server.post(path, body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json().pointer(pointer).and_then(serde_json::Value::as_u64).unwrap()
    };
    let chat = async |more: serde_json::Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        counted("/v1/chat/completions", body, "/usage/prompt_tokens").await
    };
    let plain = chat(json!({})).await;
    let high = chat(json!({"reasoning_effort": "high"})).await;
    assert!(high > plain + 10, "{high} {plain}");
    let variables = json!({"chat_template_kwargs": {"reasoning_effort": "high"}});
    let (named, off) = (chat(variables).await, chat(json!({"reasoning_effort": "none"})).await);
    // Only the member turns thinking on.
    assert!(plain < off && off < high && plain < named && named < high, "{off} {named} {high}");
    let words = chat(json!({"chat_template_kwargs": {"words": ["r", "s", "t"]}})).await;
    assert!(words > plain, "{words} {plain}");
    let body = json!({"input": "hello", "reasoning": {"effort": "high"}, "max_output_tokens": 1});
    assert_eq!(counted("/v1/responses", body, "/usage/input_tokens").await, high);
    let body = |more: serde_json::Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        counted("/v1/messages/count_tokens", body, "/input_tokens")
    };
    let effort = json!({"effort": "high"});
    assert_eq!(body(json!({"output_config": effort})).await, named);
    let thinking = json!({"output_config": effort, "thinking": {"type": "adaptive"}});
    assert_eq!(body(thinking).await, high);
    let reserved = json!({"chat_template_kwargs": {"tools": [], "messages": []}});
    let (status, _, param) = server.chat(&ask(reserved)).await.error();
    assert_eq!((status, param.as_deref()), (400, Some("/chat_template_kwargs/tools")));
    std::fs::remove_file(file).unwrap();
}
