//! Events do not depend on how the stream is cut into tokens: all cuts in two and a hundred random
//! cuts of each rendering give the same events as single bytes. With `LOUVER_ALL_CASES=1` (in
//! release: minutes) three hundred renderings per family.

use louver_formats::{Catalog, LowerError, LoweredRequest, RenderError, Turn, WireFormat};
use louver_test_support::text_if_present;
use serde_json::{Value, json};

use crate::harness::{all_cases, request};
use crate::matrix::cells;
use crate::real_calls::case_turn;
use crate::rig::{Rig, Specials, Unit, split};

/// The number of renderings per family.
struct Amount {
    matrix: usize,
    real: usize,
    /// Random cuts of each rendering.
    random: u64,
    /// Renderings whose spans are also cut in two everywhere: tokens are bytes, and the extractor
    /// gets the spans in two chunks.
    chunked: usize,
}

const FEW: Amount = Amount { matrix: 4, real: 1, random: 20, chunked: 1 };
const ALL: Amount = Amount { matrix: 180, real: 120, random: 100, chunked: 20 };

/// At most `most` of the items, at equal distances.
fn spread<T>(all: Vec<T>, most: usize) -> impl Iterator<Item = T> {
    let len = all.len();
    all.into_iter()
        .enumerate()
        .filter(move |(k, _)| k * most / len.max(1) != (k + 1) * most / len.max(1))
        .map(|(_, t)| t)
}

/// Renderings for requests of the matrix (`matrix.rs`).
fn of_the_matrix(rig: &Rig, most: usize) -> Vec<(LoweredRequest, String)> {
    let mut renderings = Vec::new();
    for cell in cells(rig) {
        renderings.extend(cell.turns().into_iter().map(|(_, wire)| (cell.request(), wire)));
    }
    let lower = |request| rig.format.lower(&request).expect("lowers");
    spread(renderings, most).map(|(request, wire)| (lower(request), wire)).collect()
}

fn written(format: &WireFormat, turn: Turn) -> String {
    match format.render(&turn) {
        Err(RenderError::TextBesideCalls) => format.render(&turn.with_text(String::new())),
        other => other,
    }
    .expect("renders")
}

/// Renderings of real function-calling cases, if this machine has them.
fn of_real_cases(rig: &Rig, cases: &[Value]) -> Vec<(LoweredRequest, String)> {
    let rendering = |case: &Value| {
        let lowered = match rig.format.lower(&request(&case["tools"].to_string(), &json!("auto"))) {
            Ok(lowered) => lowered,
            Err(LowerError::Parts(_)) => return None,
            Err(error) => panic!("{}: {error}", case["id"]),
        };
        Some((lowered, written(&rig.format, case_turn(&rig.format, case))))
    };
    cases.iter().filter_map(rendering).collect()
}

#[derive(Default)]
struct Count {
    renderings: usize,
    single: usize,
    random: usize,
    chunked: usize,
}

/// Checks that a rendering gives the same events for all cuts.
fn check(
    rig: &Rig,
    lowered: &LoweredRequest,
    wire: &str,
    amount: &Amount,
    chunked: bool,
    count: &mut Count,
) {
    let units = rig.units(wire);
    let len: usize = units.iter().map(Unit::bytes).sum();
    let session = rig.session(lowered, &units, &[]);
    let tokens = session.tokens(&units, 0);
    let whole = session.run(&tokens, 1);
    assert!(whole.complete, "{}: {wire:?} {:?}", rig.format.name, whole.taken);
    if chunked {
        for at in 0..tokens.len() {
            let cut = session.run_when(&tokens, |n| n == at);
            assert_eq!(
                cut.events, whole.events,
                "{}: {wire:?} chunks cut at {at}",
                rig.format.name
            );
            count.chunked += 1;
        }
    }
    let starts = units.iter().scan(0, |from, unit| {
        let start = *from;
        *from += unit.bytes();
        Some((unit, start))
    });
    let pieces = starts.flat_map(|(unit, from)| {
        let len = unit.bytes();
        (from..from + len).flat_map(move |at| split(unit, from, at))
    });
    let session = rig.session_of(lowered, pieces);
    for at in 0..len.max(1) {
        let cut = session.run(&session.tokens_split(&units, at), 1);
        assert_eq!(cut.events, whole.events, "{}: {wire:?} cut at {at}", rig.format.name);
        count.single += 1;
    }
    let seeds: Vec<u64> =
        (1..=amount.random).map(|seed| seed + 1_000 * count.renderings as u64).collect();
    let session = rig.session(lowered, &units, &seeds);
    for &seed in &seeds {
        let cut = session.run(&session.tokens(&units, seed), 1 + seed as usize % 5);
        assert_eq!(cut.events, whole.events, "{}: {wire:?} cut by {seed}", rig.format.name);
        count.random += 1;
    }
    count.renderings += 1;
}

#[test]
fn events_do_not_depend_on_chunks() {
    let amount = if all_cases() { ALL } else { FEW };
    // Without it: only the matrix.
    let file = text_if_present("toolcalls-dev.jsonl").unwrap_or_default();
    let cases: Vec<Value> =
        file.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut total = Count::default();
    for (k, format) in Catalog::shipped().formats().iter().enumerate() {
        let rig = Rig::new(format, Specials::Most);
        let mut count = Count::default();
        let mut renderings = of_the_matrix(&rig, amount.matrix);
        // If the matrix has fewer renderings, real cases fill up.
        let real = amount.matrix + amount.real - renderings.len();
        let from = k % (cases.len() / real.max(1)).max(1);
        renderings.extend(of_real_cases(
            &rig,
            &spread(cases.iter().skip(from).cloned().collect(), real).collect::<Vec<_>>(),
        ));
        for (n, (lowered, wire)) in renderings.iter().enumerate() {
            check(&rig, lowered, wire, &amount, n < amount.chunked, &mut count);
        }
        let Count { renderings, single, random, chunked } = count;
        println!(
            "{}: {renderings} renderings, {single} single cuts, {random} random, {chunked} of chunks",
            format.name
        );
        total.renderings += renderings;
        total.single += single;
        total.random += random;
        total.chunked += chunked;
    }
    let Count { renderings, single, random, chunked } = total;
    println!("{renderings} renderings, {} runs", single + random + chunked);
    assert!(
        renderings >= 29 * amount.matrix.min(40) && single > 50 * renderings,
        "{renderings} {single}"
    );
}
