//! What goes wrong with one request is no other's concern: answers are those of a quiet server, health checks are
//! answered, and memory does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::demands::{Choice, Demand, Demands, difference};
use super::dice::Dice;
use super::hostile;
use super::http::{Answer, Client};
use super::record::{Record, nanos};
use super::world::World;
use super::{FaultsArgs, Outcome};

mod bodies;

/// How many different good requests there are.
const REFERENCES: usize = 24;
/// Pause between health checks.
const HEALTH: Duration = Duration::from_millis(25);
/// Longest a hostile request may take.
const BOUND: Duration = Duration::from_secs(60);

/// One thing a client does.
#[derive(Clone, Debug)]
enum Act {
    /// A request with a known answer.
    Good(usize),
    /// A stream that is left after so many chunks.
    LeaveStream(usize, usize),
    /// A request whose client gives up after so many microseconds.
    GiveUp(usize, u64),
    /// A connection that is closed in the middle of the body (half) or behind it, without reading.
    HangUp(usize, bool),
    /// A body that is no request.
    Malformed(usize),
    /// A body of 10 MB.
    Large,
    /// A request that is meant to cost much.
    Hostile(usize),
    /// A request to a model that is odd for it alone.
    Odd(usize, &'static str),
    /// A schema nobody has used before.
    Fresh(u64),
}

struct Stage {
    client: Client,
    address: std::net::SocketAddr,
    demands: Demands,
    references: Vec<(Demand, Answer)>,
    /// Whether good answers are compared with those of a quiet server.
    exact: bool,
}

pub(super) async fn run(args: &FaultsArgs, seed: u64) -> Result<Outcome> {
    let world = World::start_hostile(args.generations).await?;
    let demands = Demands::new()?;
    let mut dice = Dice::new(seed);
    let mut references = Vec::with_capacity(REFERENCES);
    for i in 0..REFERENCES {
        let demand = demands.demand("tiny", Choice::ALL[i % Choice::ALL.len()], &mut dice);
        let answer = world.client.ask(&demand.body(false)).await?;
        let fault = demands.fault(&demand, &answer, false);
        ensure!(fault.is_none(), "a quiet server's answer: {fault:?}");
        references.push((demand, answer));
    }
    let stage = Arc::new(Stage {
        client: world.client.clone(),
        address: world.address,
        demands,
        references,
        exact: args.generations == 1,
    });
    let watch = Watch::start(world.client.fresh()?);

    let acts: Vec<Act> = (0..args.requests).map(|i| act(i, &mut dice)).collect();
    let left = acts.iter().filter(|act| act.is_left()).count();
    let mut records = play(&stage, acts, args.at_once).await?;
    let quiet = world.client.clone();
    let settled = settle(&quiet).await;

    let mut memory = vec![resident()];
    let parts = 20;
    for _ in 0..if args.soak == 0 { 0 } else { parts } {
        let acts = (0..args.soak.div_ceil(parts)).map(|i| act(i, &mut dice)).collect();
        records.extend(play(&stage, acts, args.at_once).await?);
        memory.push(resident());
    }
    let settled = settled && settle(&quiet).await;
    let health = watch.stop().await?;
    world.stop().await?;
    Ok(sum(records, left, settled, &health, &memory))
}

impl Act {
    /// Whether the client does not wait for its answer.
    fn is_left(&self) -> bool {
        matches!(self, Act::LeaveStream(..) | Act::GiveUp(..) | Act::HangUp(..))
    }
}

/// The `i`th act: a quarter is left, a quarter is odd in other ways, the rest is good.
fn act(i: usize, dice: &mut Dice) -> Act {
    let good = dice.below(REFERENCES);
    match i % 16 {
        0 => Act::LeaveStream(good, 1 + dice.below(30)),
        4 => Act::LeaveStream(good, 1 + dice.below(3)),
        8 => Act::GiveUp(good, dice.roll() % 40_000),
        12 => Act::HangUp(good, dice.below(2) == 0),
        2 if i % 160 == 2 => Act::Large,
        2 => Act::Malformed(dice.below(usize::MAX)),
        6 => Act::Hostile(dice.below(usize::MAX)),
        10 => Act::Odd(good, if dice.below(2) == 0 { hostile::NAN } else { hostile::END_FIRST }),
        14 => Act::Fresh(dice.roll()),
        _ => Act::Good(good),
    }
}

async fn play(stage: &Arc<Stage>, acts: Vec<Act>, at_once: usize) -> Result<Vec<Record>> {
    let mut playing = futures::stream::iter(acts.into_iter().map(|act| {
        let stage = stage.clone();
        tokio::spawn(async move { stage.play(act).await })
    }))
    .buffered(at_once.max(1));
    let mut records = Vec::new();
    while let Some(record) = playing.next().await {
        records.push(record.context("a client panicked")?);
    }
    Ok(records)
}

impl Stage {
    async fn play(&self, act: Act) -> Record {
        let begun = Instant::now();
        let id = format!("{act:?}").chars().take(60).collect();
        let (status, error) = match self.outcome(act).await {
            Ok((status, error)) => (status, error),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        Record { id, status, took_ns: nanos(begun.elapsed()), error, ..Record::default() }
    }

    /// The status, and what is wrong.
    async fn outcome(&self, act: Act) -> Result<(Option<u16>, Option<String>)> {
        let of = |answer: Answer, fault: Option<String>| (Some(answer.status), fault);
        Ok(match act {
            Act::Good(at) => {
                let (demand, expected) = &self.references[at];
                let answer = self.client.ask(&demand.body(false)).await?;
                let fault = self.demands.fault(demand, &answer, false);
                let differs = if self.exact { difference(expected, &answer) } else { None };
                let fault = fault.or_else(|| differs.map(|how| format!("not as when alone: {how}")));
                of(answer, fault)
            }
            Act::LeaveStream(at, chunks) => {
                self.client.leave(&self.references[at].0.body(true), chunks).await?;
                (None, None)
            }
            Act::GiveUp(at, micros) => {
                let body = self.references[at].0.body(false);
                let asked = self.client.ask(&body);
                match tokio::time::timeout(Duration::from_micros(micros), asked).await {
                    Ok(answer) => of(answer?, None),
                    Err(_) => (None, None),
                }
            }
            Act::HangUp(at, half) => {
                self.hang_up(&self.references[at].0.body(true), half).await?;
                (None, None)
            }
            Act::Malformed(which) => {
                let answer = self.client.send(bodies::malformed(which)).await?;
                let fault = (answer.status != 400 || answer.error.is_none()).then(|| format!("{:?}", answer.error));
                of(answer, fault)
            }
            Act::Large => match self.client.send(bodies::large()).await {
                Ok(answer) => {
                    let fault = (answer.status != 413).then(|| "a body of 10 MB was taken".to_owned());
                    of(answer, fault)
                }
                // The server may close the connection while the body is still being sent.
                Err(_) => (None, None),
            },
            Act::Hostile(which) => {
                let (name, body) = bodies::hostile(which);
                let answer = tokio::time::timeout(BOUND, self.client.send(body)).await.context("too slow")??;
                let fault = (answer.status >= 500).then(|| format!("{name}: {:?}", answer.error));
                of(answer, fault)
            }
            Act::Odd(at, marker) => {
                let mut demand = self.references[at].0.clone();
                demand.body["messages"][0]["content"] = format!("{marker} Plan a day in Oslo.").into();
                let answer = self.client.ask(&demand.body(false)).await?;
                let fault = self.demands.fault(&demand, &answer, false);
                of(answer, fault)
            }
            Act::Fresh(number) => {
                let answer = self.client.ask(&bodies::fresh(number)).await?;
                let expected = json!({"id": format!("{number:x}")});
                let same = serde_json::from_str::<Value>(&answer.text).is_ok_and(|value| value == expected);
                let fault = (!same).then(|| format!("{:?} {:?}", answer.text, answer.error));
                of(answer, fault)
            }
        })
    }

    /// Sends a request, half of it or all, and closes the connection.
    async fn hang_up(&self, body: &Value, half: bool) -> Result<()> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.address).await?;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        let sent = if half { body.len() / 2 } else { body.len() };
        stream.write_all(&body.as_bytes()[..sent]).await?;
        Ok(())
    }
}

/// Waits until no generation runs any more. Whether that came to pass.
async fn settle(client: &Client) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if let Ok((200, text)) = client.get("/metrics").await {
            let running = text.lines().filter(|line| line.starts_with("louver_running_generations"));
            let running: f64 = running.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
            if running == 0.0 {
                return true;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

/// Health checks in the background.
struct Watch {
    over: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Health>,
}

#[derive(Debug, Default)]
struct Health {
    checks: AtomicUsize,
    failed: AtomicUsize,
    slowest_ns: AtomicU64,
}

impl Watch {
    fn start(client: Client) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let task = tokio::spawn(async move {
            let health = Health::default();
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let answer = client.get("/healthz").await;
                health.checks.fetch_add(1, Ordering::Relaxed);
                health.slowest_ns.fetch_max(nanos(begun.elapsed()), Ordering::Relaxed);
                if !matches!(answer, Ok((200, _))) {
                    health.failed.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(HEALTH).await;
            }
            health
        });
        Watch { over, task }
    }

    async fn stop(self) -> Result<Health> {
        self.over.store(true, Ordering::Relaxed);
        self.task.await.context("the health checks panicked")
    }
}

/// Memory of this process, in KiB; none where there is no /proc.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Whether memory stays what it is once a quarter of the soak is over: at most a tenth and 32 MiB more.
fn is_flat(memory: &[Option<u64>]) -> bool {
    let known: Vec<u64> = memory.iter().flatten().copied().collect();
    let settled = known[known.len() / 4..].to_vec();
    match (settled.first(), settled.iter().max()) {
        (Some(first), Some(most)) => *most <= first + first / 10 + 32 * 1024,
        _ => true,
    }
}

fn sum(records: Vec<Record>, left: usize, settled: bool, health: &Health, memory: &[Option<u64>]) -> Outcome {
    let faulty: Vec<&Record> = records.iter().filter(|record| record.error.is_some()).collect();
    let server_errors = records.iter().filter(|record| record.status.is_some_and(|status| status >= 500)).count();
    let failed = health.failed.load(Ordering::Relaxed);
    let checks = health.checks.load(Ordering::Relaxed);
    let slowest = health.slowest_ns.load(Ordering::Relaxed) as f64 / 1e6;
    let sizes: Vec<String> = memory.iter().flatten().map(|kib| format!("{:.0}", *kib as f64 / 1024.0)).collect();
    let count = |head: &str| records.iter().filter(|record| record.id.starts_with(head)).count();
    let flat = is_flat(memory);
    let mut summary = vec![
        format!(
            "requests   {}: good {}, left by their clients {} (of the first part {left}), malformed {}, 10 MB {}, hostile {}, odd models {}, schemas never seen {}",
            records.len(),
            count("Good"),
            count("Leave") + count("GiveUp") + count("HangUp"),
            count("Malformed"),
            count("Large"),
            count("Hostile"),
            count("Odd"),
            count("Fresh")
        ),
        format!("health     {checks} checks, {failed} failed, slowest {slowest:.1} ms"),
        format!("memory     {} MiB{}", sizes.join(" "), if flat { "" } else { ": IT GROWS" }),
        format!("afterwards {}", if settled { "nothing runs" } else { "GENERATIONS STILL RUN" }),
        format!("5xx        {server_errors}"),
        format!("faulty     {} of {}", faulty.len(), records.len()),
    ];
    summary.extend(faulty.iter().take(10).map(|r| format!("  {}: {}", r.id, r.error.as_deref().unwrap_or_default())));
    let good = faulty.is_empty() && server_errors == 0 && failed == 0 && checks > 0 && settled && flat;
    Outcome { records, summary, good }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_seen() {
        let mib = |sizes: &[u64]| sizes.iter().map(|mib| Some(mib * 1024)).collect::<Vec<_>>();
        assert!(is_flat(&mib(&[100, 300, 310, 305, 312, 311, 300, 310])));
        assert!(!is_flat(&mib(&[100, 300, 310, 320, 340, 360, 380, 400])));
        assert!(is_flat(&[None]) && is_flat(&[]));
    }

    #[test]
    fn a_quarter_is_left() {
        let mut dice = Dice::new(1);
        let acts: Vec<Act> = (0..2000).map(|i| act(i, &mut dice)).collect();
        assert_eq!(acts.iter().filter(|act| act.is_left()).count(), 500);
        assert!(acts.iter().any(|act| matches!(act, Act::Large)));
    }
}
