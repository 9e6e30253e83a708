//! Fault isolation: faulty requests must not affect others. Responses must equal those of a quiet
//! server, health checks must succeed, and memory must not grow.
//!
//! ```text
//! references   good requests on a quiet server
//! abuse        requests of all kinds; a quarter of the clients disconnects    -> results per kind
//! soak         the same for longer, with shorter texts, memory monitored      -> likewise
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use louver::internals::SplitMix64;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::chat_cases::{CaseGenerator, ChatCase, ChoiceKind, MAX_TOKENS, difference};
use super::client::{ChatResponse, Client};
use super::record::RequestRecord;
use super::test_server::TestServer;
use super::{BenchOutcome, FaultsArgs};
use crate::bench::stats::nanos;

mod actions;
mod bodies;
mod monitor;
mod summary;

use actions::{ClientAction, random_action};
use monitor::Monitor;
use summary::MemoryCheck;

/// Number of distinct good requests.
const REFERENCE_CASES: usize = 24;
/// Token limit of the soak phase: enough for every call, with less free text.
const SOAK_TOKENS: u32 = 96;
/// Time limit of a hostile request, including waiting.
const HOSTILE_TIMEOUT: Duration = Duration::from_secs(120);

/// A running benchmark: the server and its reference requests.
struct FaultBench {
    client: Client,
    address: std::net::SocketAddr,
    models: Vec<String>,
    generator: CaseGenerator,
    references: Vec<(ChatCase, ChatResponse)>,
    /// Whether good responses must equal those of a quiet server.
    exact: bool,
}

pub(super) async fn run(args: &FaultsArgs, seed: u64) -> Result<BenchOutcome> {
    let server = TestServer::start_hostile(args.models, args.generations).await?;
    let mut random = SplitMix64::new(seed);
    let monitor = Monitor::start(server.client.separate_connection()?);
    let (mut records, mut passed) = (Vec::new(), true);
    let phases = [
        ("abuse", args.requests, MAX_TOKENS, MemoryCheck::Shown),
        ("soak", args.soak, SOAK_TOKENS, MemoryCheck::Flat),
    ];
    for (name, requests, max_tokens, memory) in
        phases.into_iter().filter(|(_, requests, ..)| *requests > 0)
    {
        let bench = Arc::new(FaultBench::new(&server, args, max_tokens, &mut random).await?);
        monitor.begin(name, requests);
        let actions: Vec<ClientAction> =
            (0..requests).map(|i| random_action(i, &mut random)).collect();
        let part = bench.run_all(actions, args.at_once, &monitor).await?;
        let settled = wait_until_idle(&server.client).await;
        let observations = monitor.end();
        let (lines, fine) = summary::phase(name, &part, settled, &observations, memory);
        // Print now, because the next phase takes long.
        lines.iter().for_each(|line| println!("{line}"));
        passed &= fine;
        records.extend(part);
    }
    monitor.stop().await?;
    server.stop().await?;
    Ok(BenchOutcome { passed: passed && !records.is_empty(), records, summary: Vec::new() })
}

/// The response to an action, if the client waits for one, and its fault.
type ActionOutcome = (Option<ChatResponse>, Option<String>);

impl FaultBench {
    /// Sends the reference requests to the quiet server.
    async fn new(
        server: &TestServer,
        args: &FaultsArgs,
        max_tokens: u32,
        random: &mut SplitMix64,
    ) -> Result<FaultBench> {
        let models = server.models.clone();
        let generator = CaseGenerator::new()?;
        let mut references = Vec::with_capacity(REFERENCE_CASES);
        for i in 0..REFERENCE_CASES {
            let model = &models[i % models.len()];
            let case = generator.case(
                model,
                ChoiceKind::ALL[i % ChoiceKind::ALL.len()],
                max_tokens,
                random,
            );
            let response = server.client.send_chat(&case.body(false)).await?;
            let fault = generator.fault(&case, &response, false);
            ensure!(fault.is_none(), "a quiet server's answer: {fault:?}");
            references.push((case, response));
        }
        let exact = args.generations == 1;
        Ok(FaultBench {
            client: server.client.clone(),
            address: server.address,
            models,
            generator,
            references,
            exact,
        })
    }

    async fn run_all(
        self: &Arc<Self>,
        actions: Vec<ClientAction>,
        at_once: usize,
        monitor: &Monitor,
    ) -> Result<Vec<RequestRecord>> {
        let running = futures::stream::iter(actions.into_iter().map(|action| {
            let bench = self.clone();
            tokio::spawn(async move { bench.run_action(action).await })
        }));
        let mut running = running.buffer_unordered(at_once.max(1));
        let mut records = Vec::new();
        while let Some(record) = running.next().await {
            let record = record.context("a client panicked")?;
            monitor.count(&record);
            records.push(record);
        }
        Ok(records)
    }

    async fn run_action(&self, action: ClientAction) -> RequestRecord {
        let started = Instant::now();
        let id = format!("{action:?}").chars().take(60).collect();
        let (response, fault) = match self.perform(action).await {
            Ok(outcome) => outcome,
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let record = match response {
            Some(response) => RequestRecord::new(id, &Ok(response), |_| fault),
            None => RequestRecord { id, error: fault, ..RequestRecord::default() },
        };
        RequestRecord { took_ns: nanos(started.elapsed()), ..record }
    }

    async fn perform(&self, action: ClientAction) -> Result<ActionOutcome> {
        match action {
            ClientAction::Good { reference, traced } => self.send_good(reference, traced).await,
            ClientAction::LeaveStream { reference, chunks, traced } => {
                let mut body = self.references[reference].0.body(true);
                body["louver"]["trace"] = traced.into();
                self.client.read_partially(&body, chunks).await?;
                Ok((None, None))
            }
            ClientAction::GiveUp { reference, micros } => {
                let body = self.references[reference].0.body(false);
                let pending = self.client.send_chat(&body);
                match tokio::time::timeout(Duration::from_micros(micros), pending).await {
                    Ok(response) => Ok((Some(response?), None)),
                    Err(_) => Ok((None, None)),
                }
            }
            ClientAction::HangUp { reference, half } => {
                self.hang_up(&self.references[reference].0.body(true), half).await?;
                Ok((None, None))
            }
            ClientAction::Malformed(which) => {
                let response = self.client.send(bodies::malformed(which)).await?;
                let fault = (response.status != 400 || response.error.is_none())
                    .then(|| format!("{:?}", response.error));
                Ok((Some(response), fault))
            }
            ClientAction::Large => match self.client.send(bodies::large()).await {
                Ok(response) => {
                    let fault =
                        (response.status != 413).then(|| "a body of 10 MB was taken".to_owned());
                    Ok((Some(response), fault))
                }
                // The server may close the connection while the body is being sent.
                Err(_) => Ok((None, None)),
            },
            ClientAction::Hostile(which) => self.send_hostile(which).await,
            ClientAction::Odd { reference, marker } => {
                let mut case = self.references[reference].0.clone();
                case.body["messages"][0]["content"] =
                    format!("{} Plan a day in Oslo.", marker.text()).into();
                let response = self.client.send_chat(&case.body(false)).await?;
                let fault = self.generator.fault(&case, &response, false);
                Ok((Some(response), fault))
            }
            ClientAction::Fresh(number) => {
                let response = self
                    .client
                    .send_chat(&bodies::new_schema(self.model(number as usize), number))
                    .await?;
                let expected = json!({"id": format!("{number:x}")});
                let same = serde_json::from_str::<Value>(&response.text)
                    .is_ok_and(|value| value == expected);
                let fault = (!same).then(|| format!("{:?} {:?}", response.text, response.error));
                Ok((Some(response), fault))
            }
        }
    }

    /// Sends a request whose answer is known.
    async fn send_good(&self, reference: usize, traced: bool) -> Result<ActionOutcome> {
        let (case, expected) = &self.references[reference];
        let mut body = case.body(false);
        body["louver"]["trace"] = traced.into();
        let response = self.client.send_chat(&body).await?;
        let mut fault = self.generator.fault(case, &response, false);
        if self.exact && fault.is_none() {
            fault = difference(expected, &response)
                .map(|how| format!("differs from the reference: {how}"));
        }
        if traced && fault.is_none() {
            fault = self.trace_fault(&response).await?;
        }
        Ok((Some(response), fault))
    }

    /// Sends an expensive request, which must be answered in time and never with a server error.
    async fn send_hostile(&self, which: usize) -> Result<ActionOutcome> {
        let (name, body) = bodies::hostile(self.model(which), which);
        let outcome = tokio::time::timeout(HOSTILE_TIMEOUT, self.client.send(body)).await;
        let Ok(response) = outcome else {
            bail!("{name}: no answer in {} s", HOSTILE_TIMEOUT.as_secs())
        };
        let response = response.context(name)?;
        let fault = (response.status >= 500).then(|| format!("{name}: {:?}", response.error));
        Ok((Some(response), fault))
    }

    fn model(&self, which: usize) -> &str {
        &self.models[which % self.models.len()]
    }

    /// The fault of a response's trace, if any: it must have one step per token, and one for the
    /// stop token. The trace may have been evicted.
    async fn trace_fault(&self, response: &ChatResponse) -> Result<Option<String>> {
        let Some(id) = response.louver["trace"].as_str() else {
            return Ok(Some("no trace".to_owned()));
        };
        let (status, text) = self.client.get(&format!("/v1/louver/traces/{id}")).await?;
        if status == 404 {
            return Ok(None);
        }
        let trace: Value = serde_json::from_str(&text).context("a trace is not JSON")?;
        let steps = trace["steps"].as_array().map_or(0, |steps| steps.len() as u64);
        let right = status == 200 && (response.tokens..=response.tokens + 1).contains(&steps);
        Ok((!right).then(|| {
            format!("a trace of {steps} steps for {} tokens, status {status}", response.tokens)
        }))
    }

    /// Sends a request or half of it, and closes the connection.
    async fn hang_up(&self, body: &Value, half: bool) -> Result<()> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.address).await?;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        let sent = if half { body.len() / 2 } else { body.len() };
        stream.write_all(&body.as_bytes()[..sent]).await?;
        Ok(())
    }
}

/// Waits until no generation is running. Returns false on timeout.
pub(super) async fn wait_until_idle(client: &Client) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if let Ok((200, text)) = client.get("/metrics").await {
            let running =
                text.lines().filter(|line| line.starts_with("louver_running_generations"));
            let running: f64 =
                running.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
            if running == 0.0 {
                return true;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}
