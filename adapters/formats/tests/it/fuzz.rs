//! The fuzz targets of the wire formats, without libFuzzer.

#[path = "../../../../tests/harness/replay.rs"]
mod replay;
#[path = "../../../../fuzz/src/formats.rs"]
#[allow(unreachable_pub)] // the file is also a library
mod targets;

use replay::Corpus;

const CORPUS: Corpus =
    Corpus { fuzz: concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"), bounded: targets::bounded };

#[test]
fn fuzz_regressions_of_formats_are_replayed() {
    CORPUS.replay(targets::TARGETS);
}

#[test]
fn fuzz_mutated_seeds_of_formats() {
    CORPUS.mutate(targets::TARGETS);
}
