//! Load test with many connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use louver::internals::SplitMix64;
use louver_server::Config;

use super::chat_cases::{CaseGenerator, ChoiceKind, MAX_TOKENS};
use super::client::Client;
use super::record::{RequestRecord, fault_lines, faulty};
use super::test_server::{self, TestServer};
use super::{BenchOutcome, LoadArgs};
use crate::bench::stats::quantile;
use crate::counts::{counts, joined_counts};

pub(super) async fn run(args: &LoadArgs, seed: u64) -> Result<BenchOutcome> {
    let config =
        Config { models: vec![test_server::model_config("tiny", None)?], ..Config::default() };
    let server = TestServer::start(config).await?;
    let generator = Arc::new(CaseGenerator::new()?);
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let started = Instant::now();
    let mut clients = Vec::with_capacity(args.connections);
    for number in 0..args.connections {
        // Each client has its own connection.
        let (client, generator) = (server.client.separate_connection()?, generator.clone());
        let random = SplitMix64::new(seed ^ ((number as u64) << 32));
        clients.push(tokio::spawn(async move {
            run_connection(&client, &generator, random, number, end).await
        }));
    }
    let mut records = Vec::new();
    for client in clients {
        records.extend(client.await.context("a client panicked")?);
    }
    let took = started.elapsed();
    let health = server.client.get("/healthz").await?;
    server.stop().await?;
    Ok(summarise(records, args.connections, took, health.0))
}

/// Runs one connection: requests in sequence.
async fn run_connection(
    client: &Client,
    generator: &CaseGenerator,
    mut random: SplitMix64,
    number: usize,
    end: Instant,
) -> Vec<RequestRecord> {
    let mut records = Vec::new();
    while Instant::now() < end {
        let choice = ChoiceKind::ALL[random.below(ChoiceKind::ALL.len())];
        let case = generator.case("tiny", choice, MAX_TOKENS, &mut random);
        let stream = random.below(2) == 1;
        let id = format!("connection {number} request {} {choice:?}", records.len());
        let response = client.send_chat(&case.body(stream)).await;
        records.push(RequestRecord::new(id, &response, |response| {
            generator.fault(&case, response, stream)
        }));
    }
    records
}

fn summarise(
    records: Vec<RequestRecord>,
    connections: usize,
    took: Duration,
    health: u16,
) -> BenchOutcome {
    let statuses =
        counts(records.iter().map(|record| {
            record.status.map_or("no answer".to_owned(), |status| status.to_string())
        }));
    let faulty = faulty(&records);
    let tokens: u64 = records.iter().filter_map(|record| record.tokens).sum();
    let seconds = took.as_secs_f64();
    let overhead =
        |record: &RequestRecord| Some(record.louver_ns? + record.compile_ns.unwrap_or(0));
    let (louver, steps): (u64, u64) = records
        .iter()
        .filter_map(|r| Some((r.louver_ns?, r.steps_ns?)))
        .fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    let mut summary = vec![
        format!(
            "requests   {} over {connections} connections in {seconds:.0} s: {:.1} a second, \
             {:.0} tokens a second",
            records.len(),
            records.len() as f64 / seconds,
            tokens as f64 / seconds
        ),
        format!("status     {}", joined_counts(&statuses, ": ")),
        quantile_line("latency", records.iter().map(|record| record.took_ns).collect()),
        quantile_line("Louver", records.iter().filter_map(overhead).collect()),
        quantile_line("compile", records.iter().filter_map(|record| record.compile_ns).collect()),
        format!(
            "share      {:.2} % of the step time is Louver's",
            100.0 * louver as f64 / steps.max(1) as f64
        ),
        format!("health     {health} afterwards"),
        format!("faulty     {}", faulty.len()),
    ];
    summary.extend(fault_lines(&faulty, "  "));
    let passed = faulty.is_empty() && !records.is_empty() && health == 200;
    BenchOutcome { records, summary, passed }
}

/// Formats a line of quantiles in milliseconds.
fn quantile_line(name: &str, mut values: Vec<u64>) -> String {
    let [p50, p90, p99, max] =
        [0.5, 0.9, 0.99, 1.0].map(|share| quantile(&mut values, share) as f64 / 1e6);
    format!(
        "{name:<10} p50 {p50:.3} ms, p90 {p90:.3} ms, p99 {p99:.3} ms, max {max:.3} ms a request"
    )
}
