//! Host names and origins of requests, from a table.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use louver_server::{App, Config, router};
use serde::Deserialize;
use serde_json::Value;
use tower::ServiceExt;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The configuration, in TOML.
    #[serde(default)]
    config: String,
    /// Method and path.
    request: String,
    headers: Vec<(String, String)>,
    status: u16,
    /// The error's code.
    code: Option<String>,
    /// Headers of the response; an empty value means that the header is absent.
    #[serde(default)]
    answer: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

async fn ask(case: &Case) -> (u16, HeaderMap, String) {
    let config: Config =
        toml::from_str(&case.config).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let (method, path) = case.request.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in &case.headers {
        request = request.header(name, value);
    }
    // No model is needed: requests that pass the origin check are rejected for their messages.
    let routes = router(App::new(config, Vec::new()));
    let answer = routes.oneshot(request.body(Body::from("{}")).unwrap()).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, headers, String::from_utf8(body.to_vec()).unwrap())
}

/// Sends a case's request and checks the response.
async fn check(case: &Case) {
    let (status, headers, text) = ask(case).await;
    assert_eq!(status, case.status, "{}: {text}", case.name);
    if let Some(code) = &case.code {
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(body["error"]["code"], code.as_str(), "{}", case.name);
        let kind = if status == 403 { "permission_error" } else { "" };
        assert!(kind.is_empty() || body["error"]["type"] == kind, "{}: {text}", case.name);
    }
    for (name, value) in &case.answer {
        let all: Vec<&str> =
            headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(all.join(", "), *value, "{}: {name}", case.name);
    }
    // No CORS headers by default.
    if !case.config.contains("cors_origins") {
        assert!(
            !headers.keys().any(|name| name.as_str().starts_with("access-control")),
            "{}",
            case.name
        );
        assert!(!headers.contains_key("vary"), "{}", case.name);
    }
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_rejected() {
    let cases: Cases = toml::from_str(include_str!("origins.toml")).unwrap();
    assert!(cases.case.len() > 30);
    for case in cases.case {
        check(&case).await;
    }
}

/// Method and path of each route in the table of docs/SERVER.md.
fn documented_routes() -> Vec<String> {
    let page = include_str!("../../../docs/SERVER.md");
    let (_, table) = page.split_once("| route | function |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    quoted.filter(|quote| quote.contains(" /")).map(|route| route.replace("{id}", "x")).collect()
}

#[tokio::test]
async fn every_route_rejects_foreign_hosts_and_origins() {
    let refusals: [(&str, &[(&str, &str)]); 3] = [
        ("host_not_allowed", &[("host", "evil.example")]),
        ("cross_site", &[("host", "localhost:8080"), ("sec-fetch-site", "cross-site")]),
        ("origin_not_allowed", &[("host", "localhost:8080"), ("origin", "https://evil.example")]),
    ];
    let mut requests = documented_routes();
    assert!(requests.len() > 12, "{requests:?}");
    // Health probes may use any host.
    requests.retain(|request| !request.starts_with("GET /health"));
    requests.extend(["GET /inspect/page.js", "GET /no/such/route"].map(str::to_owned));
    for request in requests {
        for (code, headers) in refusals {
            let all = headers.iter().chain(&[("content-type", "application/json")]);
            check(&Case {
                name: format!("{code}, {request}"),
                config: String::new(),
                request: request.clone(),
                headers: all.map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
                status: 403,
                code: Some(code.to_owned()),
                answer: Vec::new(),
            })
            .await;
        }
    }
}
