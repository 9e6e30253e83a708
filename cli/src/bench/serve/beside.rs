//! How long good requests take beside an attack, compared with a quiet server.
//!
//! ```text
//! quiet, beside attack 1, quiet, beside attack 2, ...     the same good requests in each phase
//! ```
//!
//! The quiet phases alternate with the attacks, so that a drift of the machine shows. Clients and
//! server share this process and its cores.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use louver_server::Config;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};

use super::demands::{Choice, Demand, Demands, MOST_TOKENS};
use super::dice::Dice;
use super::faults::settle;
use super::http::Client;
use super::record::{Record, quantile};
use super::world::{self, World};
use super::{BesideArgs, Outcome};

mod attacks;

use attacks::{ATTACKS, Attack, Way};

/// The good requests, over and over: what is asked, and whether it is streamed.
const MIX: [(Choice, bool); 6] = [
    (Choice::Named, false),
    (Choice::Answer, false),
    (Choice::Required, true),
    (Choice::Required, false),
    (Choice::Answer, true),
    (Choice::Named, true),
];
/// How often the mix is asked before anything is measured.
const WARM_UP: usize = 3;
/// How long an attack runs before good requests are measured.
const LEAD: Duration = Duration::from_millis(300);
/// Pause before a held connection that ended is opened anew.
const PAUSE: Duration = Duration::from_millis(100);

/// What the attackers got, counted.
type Seen = Arc<Mutex<BTreeMap<String, usize>>>;

/// The good client.
struct Good {
    client: Client,
    demands: Demands,
    mix: Vec<(Demand, bool)>,
}

/// What one attack came to.
struct Pair {
    name: &'static str,
    quiet: Vec<Record>,
    beside: Vec<Record>,
    seen: BTreeMap<String, usize>,
}

/// The attacks' names, as values of a flag.
pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(ATTACKS.iter().map(|attack| attack.name))
}

pub(super) async fn run(args: &BesideArgs, seed: u64) -> Result<Outcome> {
    let config = Config { models: vec![world::model("tiny", None)?], ..Config::default() };
    let world = World::start(config).await?;
    let (demands, mut dice) = (Demands::new()?, Dice::new(seed));
    let mix = MIX
        .into_iter()
        .map(|(choice, stream)| (demands.demand("tiny", choice, MOST_TOKENS, &mut dice), stream))
        .collect();
    let good = Good { client: world.client.fresh()?, demands, mix };
    good.ask("warm-up", MIX.len() * WARM_UP).await;
    let chosen = |attack: &&Attack| {
        args.attacks.is_empty() || args.attacks.iter().any(|name| name == attack.name)
    };
    let mut pairs = Vec::new();
    for attack in ATTACKS.iter().filter(chosen) {
        let quiet = good.ask(&format!("quiet, before {}", attack.name), args.requests).await;
        let (beside, seen) = beside(attack, &world, &good, args.requests).await?;
        pairs.push(Pair { name: attack.name, quiet, beside, seen });
        // Work that an attack left behind belongs to it.
        settle(&world.client).await;
    }
    let health = world.client.get("/healthz").await?;
    world.stop().await?;
    Ok(outcome(pairs, health.0))
}

impl Good {
    /// Asks so many good requests, one after the other.
    async fn ask(&self, phase: &str, requests: usize) -> Vec<Record> {
        let mut records = Vec::with_capacity(requests);
        for (number, (demand, stream)) in self.mix.iter().cycle().take(requests).enumerate() {
            let answer = self.client.ask(&demand.body(*stream)).await;
            let fault = |answer: &_| self.demands.fault(demand, answer, *stream);
            records.push(Record::of(format!("{phase}: request {number}"), &answer, fault));
        }
        records
    }
}

/// Asks the good requests while an attack runs. What they got, and what the attack got.
async fn beside(
    attack: &'static Attack,
    world: &World,
    good: &Good,
    requests: usize,
) -> Result<(Vec<Record>, BTreeMap<String, usize>)> {
    let seen = Seen::default();
    let mut attackers = tokio::task::JoinSet::new();
    let connections = if let Way::Hold { connections, .. } = attack.way { connections } else { 1 };
    for first in 0..connections as u64 {
        let (client, address, seen) = (world.client.fresh()?, world.address, seen.clone());
        attackers.spawn(async move {
            for number in (first..).step_by(connections) {
                let got = match attack.once(&client, address, number).await {
                    Ok(got) => got,
                    Err(error) => format!("error: {}", error.root_cause()),
                };
                *seen.lock().entry(got).or_default() += 1;
            }
        });
    }
    sleep(LEAD).await;
    let records = good.ask(&format!("beside {}", attack.name), requests).await;
    attackers.abort_all();
    while let Some(ended) = attackers.join_next().await {
        // They go on until they are stopped.
        if let Some(error) = ended.err().filter(|error| error.is_panic()) {
            return Err(error).context("an attacker panicked");
        }
        if matches!(attack.way, Way::Hold { .. }) {
            *seen.lock().entry("open at the end".to_owned()).or_default() += 1;
        }
    }
    let seen = seen.lock().clone();
    Ok((records, seen))
}

impl Attack {
    /// One request of the attack, or one connection. What came of it, in a word.
    async fn once(&self, client: &Client, address: SocketAddr, number: u64) -> Result<String> {
        let body = (self.body)(number);
        match self.way {
            Way::Ask(path) => Ok(client.post(path, body).await?.to_string()),
            Way::Leave(after) => {
                match timeout(after, client.post("/v1/chat/completions", body)).await {
                    Ok(status) => Ok(status?.to_string()),
                    Err(_) => Ok("left".to_owned()),
                }
            }
            Way::Hold { reads, at_most, .. } => {
                let got = hold(address, &body, reads, at_most).await;
                sleep(PAUSE).await;
                got
            }
        }
    }
}

/// Sends bytes on a connection and keeps it open for a while, or until the server ends it where
/// what it sends is read. The status of the answer, if there is one.
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

/// The table, and whether every good answer was right.
fn outcome(pairs: Vec<Pair>, health: u16) -> Outcome {
    let mut summary = vec![
        "| attack | quiet p50 | p99 | beside p50 | p99 | ratio p50 | p99 | what the attack got |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    summary.extend(pairs.iter().map(Pair::row));
    let crashed = pairs.iter().any(|pair| pair.seen.contains_key("500"));
    let records: Vec<Record> =
        pairs.into_iter().flat_map(|pair| pair.quiet.into_iter().chain(pair.beside)).collect();
    let failed: Vec<&Record> = records.iter().filter(|record| record.error.is_some()).collect();
    summary.push(format!(
        "good requests: {}, wrong or failed: {}; health {health} afterwards",
        records.len(),
        failed.len()
    ));
    summary.extend(
        failed
            .iter()
            .take(10)
            .map(|r| format!("  {}: {}", r.id, r.error.as_deref().unwrap_or_default())),
    );
    let good = failed.is_empty() && !records.is_empty() && health == 200 && !crashed;
    Outcome { records, summary, good }
}

impl Pair {
    fn row(&self) -> String {
        let times = |records: &[Record]| {
            let mut took: Vec<u64> = records.iter().map(|record| record.took_ns).collect();
            [0.5, 0.99].map(|share| quantile(&mut took, share) as f64 / 1e6)
        };
        let ([q50, q99], [b50, b99]) = (times(&self.quiet), times(&self.beside));
        let seen: Vec<String> =
            self.seen.iter().map(|(what, count)| format!("{what}: {count}")).collect();
        format!(
            "| {} | {q50:.0} ms | {q99:.0} ms | {b50:.0} ms | {b99:.0} ms | {:.1} | {:.1} | {} |",
            self.name,
            b50 / q50,
            b99 / q99,
            seen.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_a_failure_and_a_slow_one_is_not() {
        let record = |took_ns, error: Option<&str>| Record {
            took_ns,
            error: error.map(str::to_owned),
            ..Record::default()
        };
        let pair = |error, status: &str| Pair {
            name: "noise",
            quiet: vec![record(10_000_000, None)],
            beside: vec![record(990_000_000, error)],
            seen: BTreeMap::from([(status.to_owned(), 3)]),
        };
        let slow = outcome(vec![pair(None, "400")], 200);
        assert!(slow.good);
        assert_eq!(
            slow.summary[2],
            "| noise | 10 ms | 10 ms | 990 ms | 990 ms | 99.0 | 99.0 | 400: 3 |"
        );
        for (pairs, health) in [
            (vec![pair(Some("status 429"), "400")], 200),
            (vec![pair(None, "500")], 200),
            (vec![pair(None, "400")], 503),
            (Vec::new(), 200),
        ] {
            assert!(!outcome(pairs, health).good);
        }
    }
}
