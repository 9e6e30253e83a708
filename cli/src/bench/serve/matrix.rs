//! Every kind of tool choice in every wire format, complete and streamed with the same seed.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use louver::internals::SplitMix64;
use louver_server::Config;

use super::chat_cases::{CaseGenerator, ChatCase, ChoiceKind, MAX_TOKENS, difference};
use super::client::{ChatResponse, Client};
use super::record::{RequestRecord, fault_lines, faulty};
use super::test_server::{self, TestServer};
use super::{BenchOutcome, MatrixArgs};
use crate::counts::{counts, joined_counts};

pub(super) async fn run(args: &MatrixArgs, seed: u64) -> Result<BenchOutcome> {
    let (usable, unsupported) = test_server::partition_formats()?;
    let formats: Vec<String> = if args.formats.is_empty() { usable } else { args.formats.clone() };
    if let Some(name) = formats.iter().find(|name| unsupported.contains(name)) {
        bail!("{name} has markers that the embedded model's vocabulary cannot spell");
    }
    let models = formats
        .iter()
        .map(|name| test_server::model_config(name, Some(name)))
        .collect::<Result<_>>()?;
    let server = TestServer::start(Config { models, ..Config::default() }).await?;
    let generator = Arc::new(CaseGenerator::new()?);
    let mut random = SplitMix64::new(seed);
    let mut lanes: Vec<Vec<(String, ChatCase)>> = vec![Vec::new(); formats.len()];
    for i in 0..args.requests / 2 {
        let lane = i % formats.len();
        let choice = ChoiceKind::ALL[i / formats.len() % ChoiceKind::ALL.len()];
        let id = format!("{} {choice:?} {i}", formats[lane]);
        lanes[lane].push((id, generator.case(&formats[lane], choice, MAX_TOKENS, &mut random)));
    }
    // One request at a time per model: mistralrs 0.8.1 mixes up the sequences of a batch on the
    // CPU, so that equal requests would have different responses.
    let running = futures::stream::iter(lanes.into_iter().map(|lane| {
        let (client, generator) = (server.client.clone(), generator.clone());
        tokio::spawn(async move {
            let mut records = Vec::with_capacity(2 * lane.len());
            for (id, case) in lane {
                records.extend(run_pair(&client, &generator, id, &case).await);
            }
            records
        })
    }));
    let mut running = running.buffer_unordered(args.at_once.max(1));
    let mut records = Vec::new();
    while let Some(lane) = running.next().await {
        records.extend(lane.context("a client panicked")?);
    }
    drop(running);
    server.stop().await?;
    Ok(summarise(records, &formats, &unsupported))
}

/// Sends a request with and without streaming and compares the responses.
async fn run_pair(
    client: &Client,
    generator: &CaseGenerator,
    id: String,
    case: &ChatCase,
) -> [RequestRecord; 2] {
    let (whole, stream) =
        (client.send_chat(&case.body(false)).await, client.send_chat(&case.body(true)).await);
    let differs = match (&whole, &stream) {
        (Ok(whole), Ok(stream)) => difference(whole, stream),
        _ => None,
    };
    let record = |response: &Result<ChatResponse>, is_stream: bool| {
        let id = format!("{id} {}", if is_stream { "streamed" } else { "whole" });
        RequestRecord::new(id, response, |response| generator.fault(case, response, is_stream))
    };
    let (whole, mut stream) = (record(&whole, false), record(&stream, true));
    if let Some(differs) = differs {
        stream
            .error
            .get_or_insert(format!("the stream differs from the complete response: {differs}"));
    }
    [whole, stream]
}

fn summarise(
    records: Vec<RequestRecord>,
    formats: &[String],
    unsupported: &[String],
) -> BenchOutcome {
    let faulty = faulty(&records);
    let ends = counts(records.iter().filter_map(|record| record.finish.as_deref()));
    let calls: u64 = records.iter().filter_map(|record| record.calls).sum();
    let mut summary = vec![
        format!(
            "requests   {} in {} wire formats: {}",
            records.len(),
            formats.len(),
            formats.join(" ")
        ),
        format!(
            "left out   {} whose markers must be special tokens: {}",
            unsupported.len(),
            unsupported.join(" ")
        ),
        format!("ended      {}", joined_counts(&ends, " ")),
        format!("calls      {calls}"),
        format!("faulty     {} of {}", faulty.len(), records.len()),
    ];
    summary.extend(fault_lines(&faulty, "  "));
    let passed = faulty.is_empty() && !records.is_empty();
    BenchOutcome { records, summary, passed }
}
