//! Many connections for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use louver_server::Config;

use super::demands::{Choice, Demands, MOST_TOKENS};
use super::dice::Dice;
use super::http::Client;
use super::record::{Record, quantile};
use super::world::{self, World};
use super::{LoadArgs, Outcome};

pub(super) async fn run(args: &LoadArgs, seed: u64) -> Result<Outcome> {
    let config = Config { models: vec![world::model("tiny", None)?], ..Config::default() };
    let world = World::start(config).await?;
    let demands = Arc::new(Demands::new()?);
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let begun = Instant::now();
    let mut clients = Vec::with_capacity(args.connections);
    for number in 0..args.connections {
        // A connection of its own for each.
        let (client, demands) = (world.client.fresh()?, demands.clone());
        let dice = Dice::new(seed ^ ((number as u64) << 32));
        clients.push(tokio::spawn(async move { one(&client, &demands, dice, number, end).await }));
    }
    let mut records = Vec::new();
    for client in clients {
        records.extend(client.await.context("a client panicked")?);
    }
    let took = begun.elapsed();
    let health = world.client.get("/healthz").await?;
    world.stop().await?;
    Ok(sum(records, args.connections, took, health.0))
}

/// One connection: request after request.
async fn one(
    client: &Client,
    demands: &Demands,
    mut dice: Dice,
    number: usize,
    end: Instant,
) -> Vec<Record> {
    let mut records = Vec::new();
    while Instant::now() < end {
        let choice = Choice::ALL[dice.below(Choice::ALL.len())];
        let demand = demands.demand("tiny", choice, MOST_TOKENS, &mut dice);
        let stream = dice.below(2) == 1;
        let id = format!("connection {number} request {} {choice:?}", records.len());
        let answer = client.ask(&demand.body(stream)).await;
        records.push(Record::of(id, &answer, |answer| demands.fault(&demand, answer, stream)));
    }
    records
}

fn sum(records: Vec<Record>, connections: usize, took: Duration, health: u16) -> Outcome {
    let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
    for record in &records {
        let status = record.status.map_or("no answer".to_owned(), |status| status.to_string());
        *statuses.entry(status).or_default() += 1;
    }
    let statuses: Vec<String> =
        statuses.into_iter().map(|(status, count)| format!("{status}: {count}")).collect();
    let faulty = records.iter().filter(|record| record.error.is_some());
    let failed: Vec<&Record> = faulty.collect();
    let tokens: u64 = records.iter().filter_map(|record| record.tokens).sum();
    let seconds = took.as_secs_f64();
    let overhead = |record: &Record| Some(record.louver_ns? + record.compile_ns.unwrap_or(0));
    let (louver, steps): (u64, u64) = records
        .iter()
        .filter_map(|r| Some((r.louver_ns?, r.steps_ns?)))
        .fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    let mut summary = vec![
        format!(
            "requests   {} over {connections} connections in {seconds:.0} s: {:.1} a second, {:.0} tokens a second",
            records.len(),
            records.len() as f64 / seconds,
            tokens as f64 / seconds
        ),
        format!("status     {}", statuses.join(", ")),
        figures("latency", records.iter().map(|record| record.took_ns).collect()),
        figures("Louver", records.iter().filter_map(overhead).collect()),
        figures("compile", records.iter().filter_map(|record| record.compile_ns).collect()),
        format!(
            "share      {:.2} % of the step time is Louver's",
            100.0 * louver as f64 / steps.max(1) as f64
        ),
        format!("health     {health} afterwards"),
        format!("faulty     {}", failed.len()),
    ];
    summary.extend(
        failed
            .iter()
            .take(10)
            .map(|r| format!("  {}: {}", r.id, r.error.as_deref().unwrap_or_default())),
    );
    let good = failed.is_empty() && !records.is_empty() && health == 200;
    Outcome { records, summary, good }
}

/// A line of quantiles, in milliseconds.
fn figures(name: &str, mut values: Vec<u64>) -> String {
    let [p50, p90, p99, max] =
        [0.5, 0.9, 0.99, 1.0].map(|share| quantile(&mut values, share) as f64 / 1e6);
    format!(
        "{name:<10} p50 {p50:.3} ms, p90 {p90:.3} ms, p99 {p99:.3} ms, max {max:.3} ms a request"
    )
}
