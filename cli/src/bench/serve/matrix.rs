//! Every kind of choice in every wire format, whole and streamed with the same seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use louver_server::Config;

use super::demands::{Choice, Demand, Demands, MOST_TOKENS, difference};
use super::dice::Dice;
use super::http::{Answer, Client};
use super::record::Record;
use super::world::{self, World};
use super::{MatrixArgs, Outcome};

pub(super) async fn run(args: &MatrixArgs, seed: u64) -> Result<Outcome> {
    let (usable, left_out) = world::formats()?;
    let formats: Vec<String> = if args.formats.is_empty() { usable } else { args.formats.clone() };
    if let Some(name) = formats.iter().find(|name| left_out.contains(name)) {
        bail!("{name} has markers that the embedded model's vocabulary cannot spell");
    }
    let models =
        formats.iter().map(|name| world::model(name, Some(name))).collect::<Result<_>>()?;
    let world = World::start(Config { models, ..Config::default() }).await?;
    let demands = Arc::new(Demands::new()?);
    let mut dice = Dice::new(seed);
    let mut lanes: Vec<Vec<(String, Demand)>> = vec![Vec::new(); formats.len()];
    for i in 0..args.requests / 2 {
        let lane = i % formats.len();
        let choice = Choice::ALL[i / formats.len() % Choice::ALL.len()];
        let id = format!("{} {choice:?} {i}", formats[lane]);
        lanes[lane].push((id, demands.demand(&formats[lane], choice, MOST_TOKENS, &mut dice)));
    }
    // One request at a time to each model: mistralrs 0.8.1 mixes up the sequences of a batch on the CPU, so that what is said
    // twice would not be the same.
    let asked = futures::stream::iter(lanes.into_iter().map(|lane| {
        let (client, demands) = (world.client.clone(), demands.clone());
        tokio::spawn(async move {
            let mut records = Vec::with_capacity(2 * lane.len());
            for (id, demand) in lane {
                records.extend(pair(&client, &demands, id, &demand).await);
            }
            records
        })
    }));
    let mut asked = asked.buffer_unordered(args.at_once.max(1));
    let mut records = Vec::new();
    while let Some(lane) = asked.next().await {
        records.extend(lane.context("a client panicked")?);
    }
    drop(asked);
    world.stop().await?;
    Ok(sum(records, &formats, &left_out))
}

/// A demand asked whole and streamed.
async fn pair(client: &Client, demands: &Demands, id: String, demand: &Demand) -> [Record; 2] {
    let (whole, stream) =
        (client.ask(&demand.body(false)).await, client.ask(&demand.body(true)).await);
    let differs = match (&whole, &stream) {
        (Ok(whole), Ok(stream)) => difference(whole, stream),
        _ => None,
    };
    let record = |answer: &Result<Answer>, is_stream: bool| {
        let id = format!("{id} {}", if is_stream { "streamed" } else { "whole" });
        Record::of(id, answer, |answer| demands.fault(demand, answer, is_stream))
    };
    let (whole, mut stream) = (record(&whole, false), record(&stream, true));
    if let Some(differs) = differs {
        stream.error.get_or_insert(format!("the stream is not the answer: {differs}"));
    }
    [whole, stream]
}

fn sum(records: Vec<Record>, formats: &[String], left_out: &[String]) -> Outcome {
    let faulty: Vec<&Record> = records.iter().filter(|record| record.error.is_some()).collect();
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    records
        .iter()
        .filter_map(|record| record.finish.clone())
        .for_each(|reason| *ends.entry(reason).or_default() += 1);
    let calls: u64 = records.iter().filter_map(|record| record.calls).sum();
    let ends: Vec<String> =
        ends.into_iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let mut summary = vec![
        format!(
            "requests   {} in {} wire formats: {}",
            records.len(),
            formats.len(),
            formats.join(" ")
        ),
        format!(
            "left out   {} whose markers must be special tokens: {}",
            left_out.len(),
            left_out.join(" ")
        ),
        format!("ended      {}", ends.join(", ")),
        format!("calls      {calls}"),
        format!("faulty     {} of {}", faulty.len(), records.len()),
    ];
    summary.extend(
        faulty
            .iter()
            .take(10)
            .map(|r| format!("  {}: {}", r.id, r.error.as_deref().unwrap_or_default())),
    );
    let good = faulty.is_empty() && !records.is_empty();
    Outcome { records, summary, good }
}
