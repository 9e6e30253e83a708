//! The inspector's routes, without a model.

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use louver_formats::{CallKind, Event};
use louver_server::{
    App, Config, RequestSummary, TimingSummary, TraceOutcome, TraceRecorder, router,
};
use serde_json::{Value, json};
use tower::ServiceExt;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/inspect/page");
const STATIC: &str = include_str!("../inspector/static.py");

struct Answer {
    status: StatusCode,
    policy: String,
    kind: String,
    text: String,
}

async fn get(app: &App, path: &str, key: Option<&str>) -> Answer {
    let mut request = Request::get(path).header("host", "localhost");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let answer = router(app.clone())
        .oneshot(request.body(Body::empty()).expect("a request"))
        .await
        .expect("an answer");
    let header = |name: &str| {
        answer.headers().get(name).map_or("", |v| v.to_str().expect("ASCII")).to_owned()
    };
    let (status, policy, kind) =
        (answer.status(), header("content-security-policy"), header("content-type"));
    let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    Answer { status, policy, kind, text: String::from_utf8(body.to_vec()).expect("UTF-8") }
}

async fn json(app: &App, path: &str) -> (StatusCode, Value) {
    let answer = get(app, path, None).await;
    (answer.status, serde_json::from_str(&answer.text).expect("JSON"))
}

fn app(config: &str) -> App {
    App::new(toml::from_str::<Config>(config).expect("a configuration"), Vec::new())
}

/// Records a generation with a number of steps.
fn record(app: &App, id: &str, steps: usize) -> Result<(), louver_server::TraceStoreError> {
    let request = RequestSummary {
        route: "/v1/chat/completions".to_owned(),
        model: "tiny".to_owned(),
        body: json!({"messages": [{"role": "user", "content": "</script>"}]}).into(),
        ..RequestSummary::default()
    };
    let mut recorder = TraceRecorder::new(request, app.config().limits.traces.trace_bytes);
    recorder.event(
        2,
        &Event::CallStart {
            index: 0,
            id: "call_0".to_owned(),
            name: "get_weather".to_owned(),
            kind: CallKind::Function,
        },
    );
    recorder.event(steps, &Event::CallEnd { index: 0 });
    recorder.event(steps, &Event::End);
    let steps: Vec<Value> = (0..steps).map(|i| json!({"position": i, "text": "a"})).collect();
    let report = json!({"level": "full"});
    let outcome = TraceOutcome {
        prompt_tokens: 7,
        vocabulary: 548,
        finish: "tool_calls",
        steps: &steps,
        cut: false,
        report: &report,
        timing: TimingSummary::default(),
    };
    recorder.finish(app.traces(), id, &outcome)
}

#[tokio::test]
async fn page_loads_nothing_from_other_servers() {
    let app = app("");
    let mut seen = 0;
    for entry in std::fs::read_dir(PAGE).expect("the page's folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let path =
            if name == "index.html" { "/inspect".to_owned() } else { format!("/inspect/{name}") };
        let answer = get(&app, &path, None).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(
            answer.text,
            std::fs::read_to_string(format!("{PAGE}/{name}")).expect("a file"),
            "{path}"
        );
        let kind = match name.rsplit('.').next() {
            Some("html") => "text/html",
            Some("css") => "text/css",
            _ => "text/javascript",
        };
        assert!(answer.kind.starts_with(kind), "{path}: {}", answer.kind);
        // The browser tests use the same policy.
        let quoted: String =
            answer.policy.split("form-action").collect::<Vec<_>>().join("\"\n    \"form-action");
        assert!(STATIC.contains(&quoted), "{path}: {}", answer.policy);
        assert!(
            !answer.policy.contains("unsafe") && answer.policy.starts_with("default-src 'none'")
        );
        for foreign in [
            "http://",
            "https://",
            "innerHTML",
            "outerHTML",
            "document.write",
            "eval(",
            " style=",
            "onclick",
        ] {
            assert!(!answer.text.contains(foreign), "{path} has {foreign}");
        }
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[tokio::test]
async fn traces_are_listed_and_served() {
    let app = app("[limits.traces]\ntraces = 2\nbytes = 4096");
    let (status, empty) = json(&app, "/v1/louver/traces").await;
    assert_eq!(
        (status, &empty["data"], &empty["limits"]["traces"]),
        (StatusCode::OK, &json!([]), &json!(2))
    );
    for (id, steps) in [("chatcmpl-a", 3), ("chatcmpl-b", 4), ("chatcmpl-b-1", 5)] {
        record(&app, id, steps).expect("fits");
    }
    let (_, list) = json(&app, "/v1/louver/traces").await;
    let ids: Vec<&Value> =
        list["data"].as_array().expect("a list").iter().map(|entry| &entry["id"]).collect();
    assert_eq!(ids, ["chatcmpl-b-1", "chatcmpl-b"]);
    assert_eq!((&list["dropped"], &list["data"][0]["calls"]), (&json!(1), &json!(["get_weather"])));
    let (status, trace) = json(&app, "/v1/louver/traces/chatcmpl-b-1").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        (trace["steps"].as_array().map(Vec::len), &trace["prompt_tokens"]),
        (Some(5), &json!(7))
    );
    assert_eq!(trace["events"][0]["tokens"], 2);
    assert_eq!(trace["events"][0]["event"]["type"], "call_start");
    assert_eq!(trace["request"]["body"]["messages"][0]["content"], "</script>");
    assert_eq!(trace["report"]["level"], "full");

    let error = record(&app, "large", 1000).expect_err("too large");
    assert_eq!(error, louver_server::TraceStoreError::TooLarge { limit: 4096 });
    assert_eq!(app.traces().entries().len(), 2);
    for id in ["chatcmpl-a", "large", "%2e%2e", "%22%3Cscript%3E"] {
        let (status, body) = json(&app, &format!("/v1/louver/traces/{id}")).await;
        assert_eq!(
            (status, &body["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("trace_not_found")),
            "{id}"
        );
    }
}

#[tokio::test]
async fn traces_require_a_key_and_the_page_does_not() {
    let app = app("api_keys = [\"secret\"]");
    record(&app, "chatcmpl-a", 3).expect("fits");
    for path in ["/v1/louver/traces", "/v1/louver/traces/chatcmpl-a"] {
        assert_eq!(get(&app, path, None).await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(get(&app, path, Some("other")).await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(get(&app, path, Some("secret")).await.status, StatusCode::OK);
    }
    for path in ["/inspect", "/inspect/page.js"] {
        assert_eq!(get(&app, path, None).await.status, StatusCode::OK, "{path}");
    }
    // Routes that only share the prefix are not public.
    assert_eq!(get(&app, "/inspector", None).await.status, StatusCode::UNAUTHORIZED);
}
