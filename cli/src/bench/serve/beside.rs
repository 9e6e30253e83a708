//! Latency of good requests during attacks, compared with a quiet server.
//!
//! ```text
//! quiet, attack 1, quiet, attack 2, ...     the same good requests in each phase
//! ```
//!
//! Quiet phases alternate with attacks, so that drift of the machine shows. Clients and server
//! share this process and its cores.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use louver::internals::SplitMix64;
use louver_server::Config;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};

use super::chat_cases::{CaseGenerator, ChatCase, ChoiceKind, MAX_TOKENS};
use super::client::Client;
use super::faults::wait_until_idle;
use super::record::{RequestRecord, fault_lines, faulty};
use super::test_server::{self, TestServer};
use super::{BenchOutcome, BesideArgs};
use crate::bench::stats::quantile;
use crate::counts::joined_counts;

mod attacks;

use attacks::{ATTACKS, Attack, AttackMode};

/// The cycle of good requests: the kind of request, and whether it is streamed.
const REFERENCE_MIX: [(ChoiceKind, bool); 6] = [
    (ChoiceKind::Named, false),
    (ChoiceKind::ChatResponse, false),
    (ChoiceKind::Required, true),
    (ChoiceKind::Required, false),
    (ChoiceKind::ChatResponse, true),
    (ChoiceKind::Named, true),
];
/// Number of unmeasured cycles at the start.
const WARM_UP: usize = 3;
/// Time that an attack runs before good requests are measured.
const ATTACK_LEAD_TIME: Duration = Duration::from_millis(300);
/// Pause before a closed connection is reopened.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Counts of the attackers' outcomes.
type AttackOutcomes = Arc<Mutex<BTreeMap<String, usize>>>;

/// The client of the good requests.
struct ReferenceClient {
    client: Client,
    generator: CaseGenerator,
    mix: Vec<(ChatCase, bool)>,
}

/// The result of one attack.
struct AttackResult {
    name: &'static str,
    quiet: Vec<RequestRecord>,
    beside: Vec<RequestRecord>,
    outcomes: BTreeMap<String, usize>,
}

/// The attacks' names, as values of a flag.
pub(super) fn attack_names() -> PossibleValuesParser {
    PossibleValuesParser::new(ATTACKS.iter().map(|attack| attack.name))
}

pub(super) async fn run(args: &BesideArgs, seed: u64) -> Result<BenchOutcome> {
    let config =
        Config { models: vec![test_server::model_config("tiny", None)?], ..Config::default() };
    let server = TestServer::start(config).await?;
    let (generator, mut random) = (CaseGenerator::new()?, SplitMix64::new(seed));
    let mix = REFERENCE_MIX
        .into_iter()
        .map(|(choice, stream)| (generator.case("tiny", choice, MAX_TOKENS, &mut random), stream))
        .collect();
    let reference =
        ReferenceClient { client: server.client.separate_connection()?, generator, mix };
    reference.send_chat("warm-up", REFERENCE_MIX.len() * WARM_UP).await;
    let is_selected = |attack: &&Attack| {
        args.attacks.is_empty() || args.attacks.iter().any(|name| name == attack.name)
    };
    let mut results = Vec::new();
    for attack in ATTACKS.iter().filter(is_selected) {
        let quiet =
            reference.send_chat(&format!("quiet, before {}", attack.name), args.requests).await;
        let (beside, outcomes) =
            measure_during_attack(attack, &server, &reference, args.requests).await?;
        results.push(AttackResult { name: attack.name, quiet, beside, outcomes });
        // Remaining work of an attack must not affect the next phase.
        wait_until_idle(&server.client).await;
    }
    let health = server.client.get("/healthz").await?;
    server.stop().await?;
    Ok(summarise(results, health.0))
}

impl ReferenceClient {
    /// Sends good requests in sequence.
    async fn send_chat(&self, phase: &str, requests: usize) -> Vec<RequestRecord> {
        let mut records = Vec::with_capacity(requests);
        for (number, (case, stream)) in self.mix.iter().cycle().take(requests).enumerate() {
            let response = self.client.send_chat(&case.body(*stream)).await;
            let fault = |response: &_| self.generator.fault(case, response, *stream);
            records.push(RequestRecord::new(
                format!("{phase}: request {number}"),
                &response,
                fault,
            ));
        }
        records
    }
}

/// Sends the good requests during an attack. Returns their records and the attack's outcomes.
async fn measure_during_attack(
    attack: &'static Attack,
    server: &TestServer,
    reference: &ReferenceClient,
    requests: usize,
) -> Result<(Vec<RequestRecord>, BTreeMap<String, usize>)> {
    let outcomes = AttackOutcomes::default();
    let mut attackers = tokio::task::JoinSet::new();
    let connections =
        if let AttackMode::Hold { connections, .. } = attack.mode { connections } else { 1 };
    for first in 0..connections as u64 {
        let (client, address, outcomes) =
            (server.client.separate_connection()?, server.address, outcomes.clone());
        attackers.spawn(async move {
            for number in (first..).step_by(connections) {
                let got = match attack.run_once(&client, address, number).await {
                    Ok(got) => got,
                    Err(error) => format!("error: {}", error.root_cause()),
                };
                *outcomes.lock().entry(got).or_default() += 1;
            }
        });
    }
    sleep(ATTACK_LEAD_TIME).await;
    let records = reference.send_chat(&format!("beside {}", attack.name), requests).await;
    attackers.abort_all();
    while let Some(ended) = attackers.join_next().await {
        // Attackers run until they are aborted.
        if let Some(error) = ended.err().filter(|error| error.is_panic()) {
            return Err(error).context("an attacker panicked");
        }
        if matches!(attack.mode, AttackMode::Hold { .. }) {
            *outcomes.lock().entry("open at the end".to_owned()).or_default() += 1;
        }
    }
    let outcomes = outcomes.lock().clone();
    Ok((records, outcomes))
}

impl Attack {
    /// Runs one request or connection of the attack and describes its outcome.
    async fn run_once(&self, client: &Client, address: SocketAddr, number: u64) -> Result<String> {
        let body = (self.body)(number);
        match self.mode {
            AttackMode::Post(path) => Ok(client.post(path, body).await?.to_string()),
            AttackMode::Leave(after) => {
                match timeout(after, client.post("/v1/chat/completions", body)).await {
                    Ok(status) => Ok(status?.to_string()),
                    Err(_) => Ok("left".to_owned()),
                }
            }
            AttackMode::Hold { reads, at_most, .. } => {
                let got = hold(address, &body, reads, at_most).await;
                sleep(RECONNECT_PAUSE).await;
                got
            }
        }
    }
}

/// Sends bytes on a connection and keeps it open for some time, or with `reads` until the server
/// closes it. Returns the response's status, if there is one.
async fn hold(address: SocketAddr, bytes: &[u8], reads: bool, at_most: Duration) -> Result<String> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(bytes).await?;
    if !reads {
        sleep(at_most).await;
        return Ok("not read".to_owned());
    }
    let mut head = [0; 12];
    match timeout(at_most, stream.read_exact(&mut head)).await {
        Err(_) => Ok("held".to_owned()),
        Ok(Err(_)) => Ok("closed".to_owned()),
        Ok(Ok(_)) => Ok(String::from_utf8_lossy(&head[9..]).into_owned()),
    }
}

/// Builds the table, and checks that every good response was correct.
fn summarise(results: Vec<AttackResult>, health: u16) -> BenchOutcome {
    let mut summary = vec![
        "| attack | quiet p50 | p99 | beside p50 | p99 | ratio p50 | p99 | what the attack got |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    summary.extend(results.iter().map(AttackResult::row));
    let crashed = results.iter().any(|result| result.outcomes.contains_key("500"));
    let records: Vec<RequestRecord> = results
        .into_iter()
        .flat_map(|result| result.quiet.into_iter().chain(result.beside))
        .collect();
    let faulty = faulty(&records);
    summary.push(format!(
        "good requests: {}, wrong or failed: {}; health {health} afterwards",
        records.len(),
        faulty.len()
    ));
    summary.extend(fault_lines(&faulty, "  "));
    let passed = faulty.is_empty() && !records.is_empty() && health == 200 && !crashed;
    BenchOutcome { records, summary, passed }
}

impl AttackResult {
    fn row(&self) -> String {
        let times = |records: &[RequestRecord]| {
            let mut took: Vec<u64> = records.iter().map(|record| record.took_ns).collect();
            [0.5, 0.99].map(|share| quantile(&mut took, share) as f64 / 1e6)
        };
        let ([q50, q99], [b50, b99]) = (times(&self.quiet), times(&self.beside));
        format!(
            "| {} | {q50:.0} ms | {q99:.0} ms | {b50:.0} ms | {b99:.0} ms | {:.1} | {:.1} | {} |",
            self.name,
            b50 / q50,
            b99 / q99,
            joined_counts(&self.outcomes, ": ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_responses_fail_and_slow_ones_do_not() {
        let record = |took_ns, error: Option<&str>| RequestRecord {
            took_ns,
            error: error.map(str::to_owned),
            ..RequestRecord::default()
        };
        let result = |error, status: &str| AttackResult {
            name: "noise",
            quiet: vec![record(10_000_000, None)],
            beside: vec![record(990_000_000, error)],
            outcomes: BTreeMap::from([(status.to_owned(), 3)]),
        };
        let slow = summarise(vec![result(None, "400")], 200);
        assert!(slow.passed);
        assert_eq!(
            slow.summary[2],
            "| noise | 10 ms | 10 ms | 990 ms | 990 ms | 99.0 | 99.0 | 400: 3 |"
        );
        for (results, health) in [
            (vec![result(Some("status 429"), "400")], 200),
            (vec![result(None, "500")], 200),
            (vec![result(None, "400")], 503),
            (Vec::new(), 200),
        ] {
            assert!(!summarise(results, health).passed);
        }
    }
}
