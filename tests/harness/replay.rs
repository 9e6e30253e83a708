//! Fuzz targets without libFuzzer: seeds and regressions are replayed, and mutated seeds are run
//! (`LOUVER_FUZZ_SECONDS` for each target, `LOUVER_FUZZ_TARGET` for one of them).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use louver::fuel;
use proptest::prelude::Rng;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A target and its name.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Inputs of a target where no time is given.
const INPUTS: usize = 400;
/// Longest mutated input, in bytes.
const MAX_INPUT_BYTES: usize = 4 << 10;

/// The folder `fuzz`, and how its targets are run.
pub(crate) struct Corpus {
    pub(crate) fuzz: &'static str,
    /// Runs a target; panics if it takes more than its fuel.
    pub(crate) bounded: fn(fn(&[u8]), &[u8]),
}

impl Corpus {
    fn files(&self, folder: &str, target: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(Path::new(self.fuzz).join(folder).join(target)) else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        files
    }

    /// Runs all seeds and regressions.
    pub(crate) fn replay(&self, targets: &[Target]) {
        for &(name, target) in targets {
            let seeds = self.files("seeds", name);
            assert!(!seeds.is_empty(), "target {name} has no seeds");
            for path in seeds.iter().chain(&self.files("regressions", name)) {
                self.run(target, &read(path), &path.display().to_string());
            }
        }
    }

    /// Runs mutated seeds.
    pub(crate) fn mutate(&self, targets: &[Target]) {
        let seconds: Option<u64> =
            std::env::var("LOUVER_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
        let only = std::env::var("LOUVER_FUZZ_TARGET").ok();
        for &(name, target) in
            targets.iter().filter(|(name, _)| only.as_deref().is_none_or(|o| o == *name))
        {
            let files =
                self.files("seeds", name).into_iter().chain(self.files("regressions", name));
            let seeds: Vec<Vec<u8>> = files
                .map(|path| read(&path))
                .filter(|seed| seed.len() <= MAX_INPUT_BYTES)
                .collect();
            let rng = match seconds {
                // Different inputs in each run.
                Some(_) => TestRunner::new(Config::default()).new_rng(),
                None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
            };
            let mut mutate = Mutator { seeds: &seeds, rng };
            let (begin, mut count, mut most) = (Instant::now(), 0, 0);
            while seconds.map_or(count < INPUTS, |s| begin.elapsed() < Duration::from_secs(s)) {
                let input = mutate.next();
                most = most.max(self.run(target, &input, name));
                count += 1;
            }
            println!(
                "{name}: {count} inputs in {:?}, at most {most} units of fuel",
                begin.elapsed()
            );
        }
    }

    /// Runs a target; returns the fuel that the input took.
    fn run(&self, target: fn(&[u8]), input: &[u8], what: &str) -> u64 {
        let (result, spent) =
            fuel::measure(|| std::panic::catch_unwind(|| (self.bounded)(target, input)));
        if let Err(panic) = result {
            eprintln!("{what}: {}", input.escape_ascii());
            std::panic::resume_unwind(panic);
        }
        spent
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A source of mutated seeds.
struct Mutator<'s> {
    seeds: &'s [Vec<u8>],
    rng: TestRng,
}

impl Mutator<'_> {
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

    /// A seed with one to five mutations.
    fn next(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut out = self.seeds[seed].clone();
        for _ in 0..=self.below(5) {
            let position = self.below(out.len() + 1);
            let end = (position + self.below(6)).min(out.len());
            match self.below(6) {
                0 => drop(out.drain(position..end)),
                1 => {
                    let piece = self.piece();
                    out.splice(position..position, piece);
                }
                2 => {
                    let piece = self.piece();
                    out.splice(position..end, piece);
                }
                3 => out.insert(position, self.rng.next_u32() as u8 & 0x7F),
                4 => {
                    let again = out[position..end].repeat(self.below(40) + 1);
                    out.splice(position..position, again);
                }
                _ => {
                    let number = self.rng.next_u32() >> self.below(32);
                    out.splice(position..position, number.to_string().into_bytes());
                }
            }
            out.truncate(MAX_INPUT_BYTES);
        }
        out
    }
}
