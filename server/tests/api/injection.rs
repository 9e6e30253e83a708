//! Requests of all tables under injected faults: hosts that are slow, hang, panic or return NaN,
//! planning and background threads that panic, and limits that end work early.
//!
//! Each answer is the one of its table or the documented error of its fault. Afterwards a request
//! that takes every permit is answered as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use mistralrs::{Device, Tensor};
use serde_json::{Value, json};

use crate::support::{Answer, Processor, Server, TIMEOUT, TableRequest, data};
use crate::{cases, completions, histories, messages, mistakes, responses, structure};

/// Errors that a fault may cause: code and a part of the message.
type Errors = &'static [(&'static str, &'static str)];

const TIMED_OUT: Errors = &[("timeout", "took longer than")];
const HOST_DIED: Errors = &[("host_gone", "")];
const PANICKED: Errors = &[("internal", "internal error")];
const LIMITED: Errors = &[("schema_limit", ""), ("grammar_limit", "")];

/// Every n-th request of each table, beginning with the one at `first`. The table of origins is
/// left out: its requests do not reach a model.
fn sample(n: usize, first: usize) -> Vec<TableRequest> {
    let tables: [fn() -> Vec<TableRequest>; 7] = [
        cases::requests,
        structure::requests,
        completions::requests,
        responses::requests,
        messages::requests,
        histories::requests,
        mistakes::requests,
    ];
    let sampled = |table: fn() -> Vec<TableRequest>| {
        // In a thread of its own, so that its seeds are those of the table's own test.
        let requests = std::thread::spawn(table).join().unwrap();
        assert!(requests.len() >= n, "each table is represented");
        requests.into_iter().skip(first % n).step_by(n)
    };
    tables.into_iter().flat_map(sampled).collect()
}

/// The body with the name of the model, also where the table leaves it out, and streamed or not.
/// `None` where that is impossible.
fn variant(body: &str, is_streamed: bool) -> Option<String> {
    let members = match serde_json::from_str(body) {
        Ok(Value::Object(members)) if !members.is_empty() => members,
        _ => return (!is_streamed).then(|| body.to_owned()),
    };
    let has = |name| members.contains_key(name);
    if is_streamed && (has("stream") || serde_json::to_string(&members).unwrap() != body) {
        return None;
    }
    let model = if has("model") { "" } else { r#""model":"tiny","# };
    let stream = if is_streamed { r#""stream":true,"# } else { "" };
    Some(body.replacen('{', &format!("{{{model}{stream}"), 1))
}

/// The documented `type` of errors with a status.
fn error_type(status: u16, path: &str) -> &'static str {
    match (status, path) {
        (404, "/v1/messages") => "not_found_error",
        (413, "/v1/messages") => "request_too_large",
        (529, "/v1/messages") => "overloaded_error",
        (400 | 404 | 413 | 415, _) => "invalid_request_error",
        (500, "/v1/messages") => "api_error",
        (408, _) => "timeout_error",
        (429, _) => "rate_limit_error",
        (500 | 503, _) => "server_error",
        _ => panic!("status {status} on {path}"),
    }
}

/// The error that ends a stream, if it has one. Only a stream without has an end marker.
fn stream_error(path: &str, text: &str) -> Option<Value> {
    let events = data(text);
    let last = *events.last().expect("a stream is not empty");
    if last == "[DONE]" {
        return None;
    }
    let last: Value = serde_json::from_str(last).unwrap();
    match (path, last["type"].as_str()) {
        ("/v1/responses", Some("response.completed" | "response.incomplete"))
        | ("/v1/messages", Some("message_stop")) => None,
        ("/v1/responses", Some("response.failed")) => Some(last["response"]["error"].clone()),
        _ => Some(last["error"].clone()),
    }
}

/// The error of an answer, if it has one. Its body has to be as documented.
fn error(path: &str, answer: &Answer) -> Option<Value> {
    let is_stream = answer.status == 200 && answer.headers["content-type"] == "text/event-stream";
    let error = match answer.status {
        200 if is_stream => stream_error(path, &answer.text)?,
        200 => return None,
        _ => answer.json()["error"].clone(),
    };
    let text = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("{}", answer.text));
    assert!(!text("message").is_empty() && !text("code").is_empty());
    if !is_stream {
        assert_eq!(text("type"), error_type(answer.status, path), "{}", answer.text);
        let needs_retry_after = matches!(answer.status, 429 | 503 | 529);
        assert_eq!(answer.headers.contains_key("retry-after"), needs_retry_after);
    }
    Some(error)
}

/// Whether an error is one of these. The failure of a stream of the Responses API has the code
/// `server_error` always.
fn is_one_of(path: &str, error: &Value, errors: Errors) -> bool {
    let (code, message) = (error["code"].as_str().unwrap(), error["message"].as_str().unwrap());
    let is_failure = path == "/v1/responses" && code == "server_error";
    let mut errors = errors.iter();
    errors.any(|(known, part)| (*known == code || is_failure) && message.contains(part))
}

/// A server under test, and what it answered before the fault.
struct FaultedServer {
    server: Server,
    model: &'static str,
    before: Value,
}

impl FaultedServer {
    /// `model` is not at fault, or not yet.
    async fn new(server: Server, model: &'static str) -> FaultedServer {
        let mut faulted = FaultedServer { server, model, before: Value::Null };
        faulted.before = faulted.unfaulted_answer().await;
        faulted
    }

    /// The choices of a request that takes all permits of [`REQUEST_LIMITS`]. Waits until it is
    /// served.
    async fn unfaulted_answer(&self) -> Value {
        let schema = json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2});
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        let body = json!({"model": self.model, "messages": [{"role": "user", "content": "hello"}],
            "response_format": format, "max_tokens": 8, "seed": 1, "n": 8,
            "reasoning_effort": "none"});
        let served = async {
            loop {
                let answer = self.server.chat(&body).await;
                match answer.status {
                    200 => return answer.json()["choices"].clone(),
                    status => assert!(matches!(status, 408 | 429 | 503), "{}", answer.text),
                }
            }
        };
        tokio::time::timeout(TIMEOUT, served).await.expect("nothing is served any more")
    }

    /// Waits until no request is running, and checks that all permits are free and that answers are
    /// as before.
    async fn assert_recovered(&self) {
        for gauge in ["louver_running_generations", "louver_waiting_requests"] {
            self.server.wait_for(gauge, 0.0).await;
        }
        assert_eq!(self.unfaulted_answer().await, self.before);
        assert_eq!(self.server.get("/healthz").await.status, 200);
    }

    /// Sends requests, complete and streamed, each after `begin`. `end` follows and is told whether
    /// the fault caused an error. Returns the number of errors that it caused.
    async fn send_all(
        &self,
        requests: &[TableRequest],
        errors: Errors,
        begin: impl Fn(),
        end: impl AsyncFn(bool),
    ) -> usize {
        let mut caused = 0;
        for TableRequest { name, path, body, check } in requests {
            for is_streamed in [false, true] {
                let Some(body) = variant(body, is_streamed) else { continue };
                begin();
                let answer = self.server.post(path, body).await;
                let error = error(path, &answer);
                let is_caused = error.as_ref().is_some_and(|error| is_one_of(path, error, errors));
                if !is_caused && is_streamed && answer.status == 200 {
                    assert_eq!(error, None, "{name}");
                } else if !is_caused {
                    check(&answer);
                }
                caused += usize::from(is_caused);
                end(is_caused).await;
            }
        }
        caused
    }
}

/// Limits of requests, but for those on time. A request with 8 choices takes all permits.
const REQUEST_LIMITS: &str = "[limits.requests]\nconcurrent = 8\nmax_tokens = 7000\n";

/// A server whose host calls `fault` with each row of logits and the value that is returned, which
/// is 0 at first.
async fn faulted_host(
    limits: &str,
    fault: fn(&Tensor, &AtomicI64) -> Tensor,
) -> (FaultedServer, Arc<AtomicI64>) {
    let signal = Arc::new(AtomicI64::new(0));
    let seen = signal.clone();
    let processor: Processor = Arc::new(move |logits: &Tensor, _: &[u32]| Ok(fault(logits, &seen)));
    let limits = format!("{REQUEST_LIMITS}{limits}");
    let server = Server::with_processor(&limits, processor).await;
    (FaultedServer::new(server, "tiny").await, signal)
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_on_a_slow_host() {
    let slow = |logits: &Tensor, is_slow: &AtomicI64| {
        if is_slow.load(Ordering::Relaxed) != 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        logits.clone()
    };
    let (faulted, is_slow) = faulted_host("timeout_s = 0.5", slow).await;
    is_slow.store(1, Ordering::Relaxed);
    faulted.send_all(&sample(10, 0), TIMED_OUT, || {}, async |_| {}).await;
    is_slow.store(0, Ordering::Relaxed);
    faulted.assert_recovered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_on_a_host_that_never_answers() {
    let stuck = |logits: &Tensor, is_stuck: &AtomicI64| {
        while is_stuck.load(Ordering::Relaxed) != 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        logits.clone()
    };
    let (faulted, is_stuck) = faulted_host("timeout_s = 0.5", stuck).await;
    let begin = || is_stuck.store(1, Ordering::Relaxed);
    let end = async |_| {
        is_stuck.store(0, Ordering::Relaxed);
        faulted.server.wait_for("louver_running_generations", 0.0).await;
    };
    assert!(faulted.send_all(&sample(20, 3), TIMED_OUT, begin, end).await > 0);
    faulted.assert_recovered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_on_a_host_with_nan_logits() {
    let nan = |logits: &Tensor, is_nan: &AtomicI64| match is_nan.load(Ordering::Relaxed) {
        0 => logits.clone(),
        _ => Tensor::full(f32::NAN, logits.shape(), &Device::Cpu).unwrap(),
    };
    let (faulted, is_nan) = faulted_host("", nan).await;
    is_nan.store(1, Ordering::Relaxed);
    assert_eq!(faulted.send_all(&sample(10, 6), &[], || {}, async |_| {}).await, 0);
    is_nan.store(0, Ordering::Relaxed);
    assert!(faulted.server.metric("louver_repaired_rows_total").await > 0.0);
    faulted.assert_recovered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_on_a_host_that_panics_at_a_token() {
    let panics = |logits: &Tensor, countdown: &AtomicI64| {
        assert_ne!(countdown.fetch_sub(1, Ordering::Relaxed), 1, "injected by a test");
        logits.clone()
    };
    let (faulted, countdown) = faulted_host("", panics).await;
    for (k, token) in [2, 17].into_iter().enumerate() {
        let begin = || countdown.store(token, Ordering::Relaxed);
        let end = async |is_caused| {
            countdown.store(0, Ordering::Relaxed);
            if is_caused {
                faulted.assert_recovered().await;
            }
        };
        assert!(faulted.send_all(&sample(20, k), HOST_DIED, begin, end).await > 0, "{token}");
    }
    faulted.assert_recovered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_with_panics_in_background_threads() {
    let (server, louver) = Server::with_processors(REQUEST_LIMITS, Vec::new()).await;
    let faulted = FaultedServer::new(server, "tiny").await;
    for (k, mask) in [1, 2, 5, 17].into_iter().enumerate() {
        let panics = louver.engine().stats().background_panics;
        let begin = || louver.engine().panic_at_background_mask(mask);
        assert_eq!(faulted.send_all(&sample(20, k), &[], begin, async |_| {}).await, 0);
        assert!(louver.engine().stats().background_panics > panics, "{mask}");
    }
    louver.engine().panic_at_background_mask(0);
    faulted.assert_recovered().await;
}

/// A request whose grammar is cached compiles nothing: its fault is taken back.
#[tokio::test(flavor = "multi_thread")]
async fn tables_with_panics_while_planning() {
    let (server, louver) = Server::with_processors(REQUEST_LIMITS, Vec::new()).await;
    let faulted = FaultedServer::new(server, "tiny").await;
    let begin = || louver.engine().panic_at_compilation(1);
    let end = async |is_caused| {
        louver.engine().panic_at_compilation(0);
        if is_caused {
            faulted.assert_recovered().await;
        }
    };
    assert!(faulted.send_all(&sample(10, 0), PANICKED, begin, end).await > 0);
    faulted.assert_recovered().await;
}

/// A limit at the n-th mask stands for an allocation that fails there.
#[tokio::test(flavor = "multi_thread")]
async fn tables_with_limits_at_a_mask() {
    let (server, louver) = Server::with_processors(REQUEST_LIMITS, Vec::new()).await;
    let faulted = FaultedServer::new(server, "tiny").await;
    for (k, mask) in [1, 2, 5, 17].into_iter().enumerate() {
        let begin = || louver.engine().limit_at_mask(mask);
        let caused = faulted.send_all(&sample(20, k), LIMITED, begin, async |_| {}).await;
        assert!(caused > 0, "{mask}");
    }
    louver.engine().limit_at_mask(0);
    faulted.assert_recovered().await;
}

/// A server with low limits for the model of the tables, and a model beside it with the defaults.
async fn limited_server(limits: &[(&str, usize)]) -> FaultedServer {
    let defaults = serde_json::to_value(louver::Limits::default()).unwrap();
    let low: String = limits.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    let good: String =
        limits.iter().map(|(name, _)| format!("{name} = {}\n", defaults[name])).collect();
    let toml = format!(
        "{REQUEST_LIMITS}[limits.schema]\n{low}[[model]]\nname = \"good\"\n\
         [model.limits.schema]\n{good}"
    );
    FaultedServer::new(Server::start(&toml).await, "good").await
}

/// The limits are little above the least with which a model starts.
#[tokio::test(flavor = "multi_thread")]
async fn tables_with_low_limits() {
    let limits: [&[(&str, usize)]; 5] = [
        &[("mask_fuel", 4_000), ("prepare_fuel", 0)],
        &[("config_items", 2), ("mask_bytes", 0), ("parser_bytes", 6_000)],
        &[("compile_fuel", 5_000)],
        &[("compile_fuel", 10_000)],
        &[("automaton_states", 100), ("compiled_states", 300)],
    ];
    let mut caused = 0;
    for (k, limits) in limits.into_iter().enumerate() {
        let faulted = limited_server(limits).await;
        caused += faulted.send_all(&sample(20, k), LIMITED, || {}, async |_| {}).await;
        faulted.assert_recovered().await;
    }
    assert!(caused > 0);
}
