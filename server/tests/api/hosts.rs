//! Slow and unresponsive hosts: requests time out, the server stays healthy, and it continues when
//! the host does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::support::{Processor, Server, TIMEOUT, ask};

/// A processor that delays the host at each token, once it is signalled.
fn delaying_processor(how: impl Fn() + Send + Sync + 'static) -> (Processor, Arc<AtomicBool>) {
    let signal = Arc::new(AtomicBool::new(false));
    let notify = signal.clone();
    let processor: Processor = Arc::new(move |logits: &mistralrs::Tensor, _: &[u32]| {
        if notify.load(Ordering::Relaxed) {
            how();
        }
        Ok(logits.clone())
    });
    (processor, signal)
}

async fn wait_until_serving(server: &Server) {
    let served = async { while server.chat(&ask(json!({}))).await.status != 200 {} };
    assert!(tokio::time::timeout(TIMEOUT, served).await.is_ok(), "nothing is served any more");
    server.wait_for("louver_running_generations", 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_hosts_cause_timeouts() {
    let (processor, slow) = delaying_processor(|| std::thread::sleep(Duration::from_millis(150)));
    let limits = "[limits.requests]\nconcurrent = 2\ntimeout_s = 0.6\nqueue_timeout_s = 0.3";
    let server = Server::with_processor(limits, processor).await;
    slow.store(true, Ordering::Relaxed);
    let body = ask(json!({"max_tokens": 200}));
    let answers = futures::future::join_all((0..6).map(|_| server.chat(&body))).await;
    for answer in answers {
        assert!(matches!(answer.status, 408 | 429), "{}: {}", answer.status, answer.text);
    }
    assert_eq!(server.get("/healthz").await.status, 200);
    slow.store(false, Ordering::Relaxed);
    wait_until_serving(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_hosts_block_nothing() {
    let released = Arc::new(AtomicBool::new(false));
    let until = released.clone();
    let (processor, stuck) = delaying_processor(move || {
        while !until.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let limits = "[limits.requests]\nconcurrent = 1\nn = 1\ntimeout_s = 0.5\nqueue_timeout_s = 0.3";
    let server = Server::with_processor(limits, processor).await;
    stuck.store(true, Ordering::Relaxed);
    assert_eq!(server.chat(&ask(json!({}))).await.error(), (408, "timeout".to_owned(), None));
    // The host still holds the slot: other requests are rejected without waiting.
    for _ in 0..3 {
        let answer = server.chat(&ask(json!({}))).await;
        assert!(matches!(answer.status, 408 | 429), "{}: {}", answer.status, answer.text);
        assert_eq!(server.get("/healthz").await.status, 200);
    }
    released.store(true, Ordering::Relaxed);
    wait_until_serving(&server).await;
}
