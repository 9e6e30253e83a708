//! What goes wrong with one request is no other's concern: answers are those of a quiet server, health checks are
//! answered, and memory does not grow.
//!
//! ```text
//! references   good requests, asked on a quiet server
//! abuse        requests of all kinds, a quarter left by their clients     -> what each kind came to
//! soak         the same for longer, with shorter texts, memory watched    -> likewise
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::demands::{Choice, Demand, Demands, MOST_TOKENS, difference};
use super::dice::Dice;
use super::http::{Answer, Client};
use super::record::{Record, nanos};
use super::world::World;
use super::{FaultsArgs, Outcome};

mod acts;
mod bodies;
mod summary;
mod watch;

use acts::{Act, act};
use summary::Memory;
use watch::Watch;

/// How many different good requests there are.
const REFERENCES: usize = 24;
/// Longest generation of the soak: room for every call, and less free text.
const SOAK_TOKENS: u32 = 96;
/// Longest a hostile request may take once its turn has come, and longest for that.
const BOUND: Duration = Duration::from_secs(120);

/// A server, and what is asked of it.
struct Stage {
    client: Client,
    address: std::net::SocketAddr,
    models: Vec<String>,
    demands: Demands,
    references: Vec<(Demand, Answer)>,
    /// Whether good answers are compared with those of a quiet server.
    exact: bool,
}

pub(super) async fn run(args: &FaultsArgs, seed: u64) -> Result<Outcome> {
    let world = World::start_hostile(args.models, args.generations).await?;
    let mut dice = Dice::new(seed);
    let watch = Watch::start(world.client.fresh()?);
    let (mut records, mut good) = (Vec::new(), true);
    let phases = [
        ("abuse", args.requests, MOST_TOKENS, Memory::Shown),
        ("soak", args.soak, SOAK_TOKENS, Memory::Flat),
    ];
    for (name, requests, most_tokens, memory) in
        phases.into_iter().filter(|(_, requests, ..)| *requests > 0)
    {
        let stage = Arc::new(Stage::new(&world, args, most_tokens, &mut dice).await?);
        watch.begin(name, requests);
        let acts: Vec<Act> = (0..requests).map(|i| act(i, &mut dice)).collect();
        let part = stage.play_all(acts, args.at_once, &watch).await?;
        let settled = settle(&world.client).await;
        let seen = watch.end();
        let (lines, fine) = summary::phase(name, &part, settled, (&seen, memory));
        // Now rather than in the end: the next phase takes long.
        lines.iter().for_each(|line| println!("{line}"));
        good &= fine;
        records.extend(part);
    }
    watch.stop().await?;
    world.stop().await?;
    Ok(Outcome { good: good && !records.is_empty(), records, summary: Vec::new() })
}

impl Stage {
    /// Asks the good requests while nobody else asks anything.
    async fn new(
        world: &World,
        args: &FaultsArgs,
        most_tokens: u32,
        dice: &mut Dice,
    ) -> Result<Stage> {
        let models = world.models.clone();
        let demands = Demands::new()?;
        let mut references = Vec::with_capacity(REFERENCES);
        for i in 0..REFERENCES {
            let model = &models[i % models.len()];
            let demand =
                demands.demand(model, Choice::ALL[i % Choice::ALL.len()], most_tokens, dice);
            let answer = world.client.ask(&demand.body(false)).await?;
            let fault = demands.fault(&demand, &answer, false);
            ensure!(fault.is_none(), "a quiet server's answer: {fault:?}");
            references.push((demand, answer));
        }
        let exact = args.generations == 1;
        Ok(Stage {
            client: world.client.clone(),
            address: world.address,
            models,
            demands,
            references,
            exact,
        })
    }

    async fn play_all(
        self: &Arc<Self>,
        acts: Vec<Act>,
        at_once: usize,
        watch: &Watch,
    ) -> Result<Vec<Record>> {
        let playing = futures::stream::iter(acts.into_iter().map(|act| {
            let stage = self.clone();
            tokio::spawn(async move { stage.play(act).await })
        }));
        let mut playing = playing.buffer_unordered(at_once.max(1));
        let mut records = Vec::new();
        while let Some(record) = playing.next().await {
            let record = record.context("a client panicked")?;
            watch.count(&record);
            records.push(record);
        }
        Ok(records)
    }

    async fn play(&self, act: Act) -> Record {
        let begun = Instant::now();
        let id = format!("{act:?}").chars().take(60).collect();
        let (answer, fault) = match self.outcome(act).await {
            Ok(outcome) => outcome,
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let record = match answer {
            Some(answer) => Record::of(id, &Ok(answer), |_| fault),
            None => Record { id, error: fault, ..Record::default() },
        };
        Record { took_ns: nanos(begun.elapsed()), ..record }
    }

    /// The answer, where the client waits for one, and what is wrong with it.
    async fn outcome(&self, act: Act) -> Result<(Option<Answer>, Option<String>)> {
        match act {
            Act::Good { at, traced } => {
                let (demand, expected) = &self.references[at];
                let mut body = demand.body(false);
                body["louver"]["trace"] = traced.into();
                let answer = self.client.ask(&body).await?;
                let mut fault = self.demands.fault(demand, &answer, false);
                if self.exact && fault.is_none() {
                    fault = difference(expected, &answer)
                        .map(|how| format!("not as when alone: {how}"));
                }
                if traced && fault.is_none() {
                    fault = self.trace_fault(&answer).await?;
                }
                Ok((Some(answer), fault))
            }
            Act::LeaveStream { at, chunks, traced } => {
                let mut body = self.references[at].0.body(true);
                body["louver"]["trace"] = traced.into();
                self.client.leave(&body, chunks).await?;
                Ok((None, None))
            }
            Act::GiveUp { at, micros } => {
                let body = self.references[at].0.body(false);
                let asked = self.client.ask(&body);
                match tokio::time::timeout(Duration::from_micros(micros), asked).await {
                    Ok(answer) => Ok((Some(answer?), None)),
                    Err(_) => Ok((None, None)),
                }
            }
            Act::HangUp { at, half } => {
                self.hang_up(&self.references[at].0.body(true), half).await?;
                Ok((None, None))
            }
            Act::Malformed(which) => {
                let answer = self.client.send(bodies::malformed(which)).await?;
                let fault = (answer.status != 400 || answer.error.is_none())
                    .then(|| format!("{:?}", answer.error));
                Ok((Some(answer), fault))
            }
            Act::Large => match self.client.send(bodies::large()).await {
                Ok(answer) => {
                    let fault =
                        (answer.status != 413).then(|| "a body of 10 MB was taken".to_owned());
                    Ok((Some(answer), fault))
                }
                // The server may close the connection while the body is still being sent.
                Err(_) => Ok((None, None)),
            },
            Act::Hostile(which) => {
                let (name, body) = bodies::hostile(self.model(which), which);
                let asked = tokio::time::timeout(BOUND, self.client.send(body)).await;
                let Ok(answer) = asked else { bail!("{name}: no answer in {} s", BOUND.as_secs()) };
                let answer = answer.context(name)?;
                let fault = (answer.status >= 500).then(|| format!("{name}: {:?}", answer.error));
                Ok((Some(answer), fault))
            }
            Act::Odd { at, marker } => {
                let mut demand = self.references[at].0.clone();
                demand.body["messages"][0]["content"] =
                    format!("{} Plan a day in Oslo.", marker.text()).into();
                let answer = self.client.ask(&demand.body(false)).await?;
                let fault = self.demands.fault(&demand, &answer, false);
                Ok((Some(answer), fault))
            }
            Act::Fresh(number) => {
                let answer =
                    self.client.ask(&bodies::fresh(self.model(number as usize), number)).await?;
                let expected = json!({"id": format!("{number:x}")});
                let same = serde_json::from_str::<Value>(&answer.text)
                    .is_ok_and(|value| value == expected);
                let fault = (!same).then(|| format!("{:?} {:?}", answer.text, answer.error));
                Ok((Some(answer), fault))
            }
        }
    }

    fn model(&self, which: usize) -> &str {
        &self.models[which % self.models.len()]
    }

    /// What is wrong with an answer's trace: it must have a step for every token, and one for the stop token where there was
    /// one. Newer traces may have taken its place.
    async fn trace_fault(&self, answer: &Answer) -> Result<Option<String>> {
        let Some(id) = answer.louver["trace"].as_str() else {
            return Ok(Some("no trace".to_owned()));
        };
        let (status, text) = self.client.get(&format!("/v1/louver/traces/{id}")).await?;
        if status == 404 {
            return Ok(None);
        }
        let trace: Value = serde_json::from_str(&text).context("a trace is not JSON")?;
        let steps = trace["steps"].as_array().map_or(0, |steps| steps.len() as u64);
        let right = status == 200 && (answer.tokens..=answer.tokens + 1).contains(&steps);
        Ok((!right).then(|| {
            format!("a trace of {steps} steps for {} tokens, status {status}", answer.tokens)
        }))
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
pub(super) async fn settle(client: &Client) -> bool {
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
