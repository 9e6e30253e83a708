//! The fuzz targets without libFuzzer: regressions are replayed, and seeds are mutated for a while (`LOUVER_FUZZ_SECONDS` a target).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::Rng;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub)] // a library of its own elsewhere
mod targets;

/// Inputs a target gets where no time is given.
const INPUTS: usize = 400;
/// No input may take longer, in a build with debug assertions on a busy machine.
const SLOW: Duration = Duration::from_secs(20);

fn files(folder: &str, target: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder).join(target);
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn run(target: fn(&[u8]), input: &[u8], what: &str) {
    let begin = Instant::now();
    if let Err(panic) = std::panic::catch_unwind(|| target(input)) {
        eprintln!("{what}: {}", input.escape_ascii());
        std::panic::resume_unwind(panic);
    }
    assert!(begin.elapsed() < SLOW, "{what} took {:?}: {}", begin.elapsed(), input.escape_ascii());
}

#[test]
fn fuzz_regressions_are_replayed() {
    for (name, target) in targets::TARGETS {
        assert!(!files("seeds", name).is_empty(), "target {name} has no seeds");
        for path in files("seeds", name).iter().chain(&files("regressions", name)) {
            run(*target, &read(path), &path.display().to_string());
        }
    }
}

#[test]
fn fuzz_mutated_seeds() {
    let seconds: Option<u64> = std::env::var("LOUVER_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let only = std::env::var("LOUVER_FUZZ_TARGET").ok();
    for (name, target) in targets::TARGETS.iter().filter(|(name, _)| only.as_deref().is_none_or(|o| o == *name)) {
        let seeds: Vec<Vec<u8>> =
            files("seeds", name).iter().chain(&files("regressions", name)).map(|p| read(p)).collect();
        let seed = match seconds {
            // Other inputs with each run.
            Some(_) => TestRunner::new(Config::default()).new_rng(),
            None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
        };
        let mut mutate = Mutate { seeds: &seeds, rng: seed };
        let begin = Instant::now();
        let mut count = 0;
        while seconds.map_or(count < INPUTS, |s| begin.elapsed() < Duration::from_secs(s)) {
            let input = mutate.next();
            run(*target, &input, name);
            count += 1;
        }
        println!("{name}: {count} inputs in {:?}", begin.elapsed());
    }
}

struct Mutate<'s> {
    seeds: &'s [Vec<u8>],
    rng: TestRng,
}

impl Mutate<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.rng.next_u32() as usize % n.max(1)
    }

    /// A piece of some seed.
    fn piece(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let seeds: &[Vec<u8>] = self.seeds;
        let seed = &seeds[seed];
        let from = self.below(seed.len());
        let len = self.below(12) + 1;
        seed[from..(from + len).min(seed.len())].to_vec()
    }

    fn next(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut out = self.seeds[seed].clone();
        for _ in 0..=self.below(5) {
            let at = self.below(out.len() + 1);
            let end = (at + self.below(6)).min(out.len());
            match self.below(6) {
                0 => drop(out.drain(at..end)),
                1 => {
                    let piece = self.piece();
                    out.splice(at..at, piece);
                }
                2 => {
                    let piece = self.piece();
                    out.splice(at..end, piece);
                }
                3 => out.insert(at, self.rng.next_u32() as u8 & 0x7F),
                4 => {
                    let again = out[at..end].repeat(self.below(40) + 1);
                    out.splice(at..at, again);
                }
                _ => {
                    let number = self.rng.next_u32() >> self.below(32);
                    out.splice(at..at, number.to_string().into_bytes());
                }
            }
            out.truncate(4 << 10);
        }
        out
    }
}
