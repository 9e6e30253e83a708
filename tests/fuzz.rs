//! The engine's fuzz targets, run without libFuzzer.

use crate::harness::replay::Corpus;

#[path = "../fuzz/src/engine.rs"]
#[allow(unreachable_pub)] // a library of its own elsewhere
mod targets;

const CORPUS: Corpus =
    Corpus { fuzz: concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz"), bounded: targets::bounded };

#[test]
fn fuzz_regressions_are_replayed() {
    CORPUS.replay(targets::TARGETS);
}

#[test]
fn fuzz_mutated_seeds() {
    CORPUS.mutate(targets::TARGETS);
}
