//! MaskBench through the interface of llguidance: the adapter and the original token by token, in
//! turns. `maskbench [EVERY [unforced]]` takes every so manieth schema, with the vocabulary of
//! Llama 3.1; `unforced` has all allowed tokens in the masks of forced text, so that no text is cut
//! into tokens. Times are those of the thread, so that other processes do not count.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use llguidance_conformance::{BenchCase, bench_cases, data};
use serde_json::Value;
use toktrie::{TokEnv, TokTrie, TokenId, TokenizerEnv};
use toktrie_hf_tokenizers::ByteTokenizer;

/// Times and verdicts of one side.
#[derive(Default)]
struct Tally {
    refused: usize,
    wrongly_accepted: Vec<String>,
    wrongly_rejected: Vec<String>,
    masks: Vec<Duration>,
    first: Vec<Duration>,
    /// Times and verdicts of schemas that both sides take.
    both_masks: Vec<Duration>,
    both_first: Vec<Duration>,
    both_wrongly_rejected: Vec<String>,
}

/// One side on one schema.
trait Library {
    fn start(&mut self) -> Result<()>;
    fn mask_allows(&mut self, token: TokenId) -> Result<bool>;
    fn take(&mut self, token: TokenId) -> Result<()>;
    fn accepts(&mut self) -> bool;
}

macro_rules! side {
    ($name:ident, $library:ident) => {
        struct $name<'a> {
            factory: &'a $library::ParserFactory,
            schema: Value,
            parsed: Option<$library::Matcher>,
            matcher: Option<$library::Matcher>,
        }

        impl Library for $name<'_> {
            fn start(&mut self) -> Result<()> {
                if self.parsed.is_none() {
                    let schema = self.schema.clone();
                    let grammar = $library::api::TopLevelGrammar::from_json_schema(schema);
                    let parser = self.factory.create_parser(grammar)?;
                    self.parsed = Some($library::Matcher::new(Ok(parser)));
                }
                self.matcher = self.parsed.clone();
                Ok(())
            }

            fn mask_allows(&mut self, token: TokenId) -> Result<bool> {
                let matcher = self.matcher.as_mut().context("not started")?;
                let mask = matcher.compute_mask_or_eos()?;
                // A mask of forced text has the token of one tokenization only.
                let allowed = mask.is_allowed(token);
                std::hint::black_box(&mask);
                Ok(allowed)
            }

            fn take(&mut self, token: TokenId) -> Result<()> {
                let matcher = self.matcher.as_mut().context("not started")?;
                anyhow::ensure!(matcher.try_consume_tokens(&[token])? == 1, "refused");
                Ok(())
            }

            fn accepts(&mut self) -> bool {
                self.matcher.as_mut().is_some_and(|m| m.is_accepting().unwrap_or(false))
            }
        }
    };
}

side!(Ours, llguidance);
side!(Original, original);

fn main() -> Result<()> {
    let every = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let data = data().context("the data is not there: set LOUVER_DATA")?;
    let file = data.join("tokenizers/llama3_1/tokenizer.json");
    let tokenizer = ByteTokenizer::from_file(&file)?;
    let mut env: TokEnv = tokenizer.into_tok_env(None)?;
    if std::env::args().nth(2).is_some_and(|arg| arg == "unforced") {
        env = Arc::new(Unforced(env));
    }
    let mut ours = llguidance::ParserFactory::new_simple(&env)?;
    ours.quiet();
    let mut original = original::ParserFactory::new_simple(&env)?;
    original.quiet();
    let mut tallies = [Tally::default(), Tally::default()];
    for case in bench_cases(&data, every) {
        let mut sides: [Box<dyn Library + '_>; 2] = [
            Box::new(Ours {
                factory: &ours,
                schema: case.schema.clone(),
                parsed: None,
                matcher: None,
            }),
            Box::new(Original {
                factory: &original,
                schema: case.schema.clone(),
                parsed: None,
                matcher: None,
            }),
        ];
        run(&case, &env, &mut sides, &mut tallies)?;
    }
    print(&mut tallies);
    Ok(())
}

/// Runs both sides over all instances of a schema, in turns.
fn run(
    case: &BenchCase,
    env: &TokEnv,
    sides: &mut [Box<dyn Library + '_>; 2],
    tallies: &mut [Tally; 2],
) -> Result<()> {
    let lengths = tallies
        .each_ref()
        .map(|tally| (tally.masks.len(), tally.first.len(), tally.wrongly_rejected.len()));
    let mut taken = [true; 2];
    for (index, test) in case.tests.iter().enumerate() {
        let text = serde_json::to_string(&test.data)?;
        let tokens = env.tokenize(&text);
        let mut alive = [false; 2];
        for (at, side) in sides.iter_mut().enumerate() {
            if !taken[at] {
                continue;
            }
            let begun = thread_time();
            let started = side.start().and_then(|()| side.mask_allows(tokens[0]));
            if started.is_err() {
                taken[at] = false;
                tallies[at].refused += 1;
                continue;
            }
            if index == 0 {
                tallies[at].first.push(thread_time() - begun);
            }
            alive[at] = true;
        }
        for (step, &token) in tokens.iter().enumerate() {
            for (at, side) in sides.iter_mut().enumerate().filter(|(at, _)| taken[*at]) {
                if !alive[at] {
                    continue;
                }
                let begun = thread_time();
                let allowed = side.mask_allows(token);
                if step > 0 {
                    tallies[at].masks.push(thread_time() - begun);
                }
                alive[at] = allowed.is_ok() && side.take(token).is_ok();
            }
        }
        for (at, side) in sides.iter_mut().enumerate().filter(|(at, _)| taken[*at]) {
            match (alive[at] && side.accepts(), test.valid) {
                (true, false) => tallies[at].wrongly_accepted.push(case.id.clone()),
                (false, true) => tallies[at].wrongly_rejected.push(case.id.clone()),
                _ => {}
            }
        }
    }
    if taken == [true; 2] {
        for (tally, (masks, first, rejected)) in tallies.iter_mut().zip(lengths) {
            tally.both_masks.extend_from_slice(&tally.masks[masks..]);
            tally.both_first.extend_from_slice(&tally.first[first..]);
            tally.both_wrongly_rejected.extend_from_slice(&tally.wrongly_rejected[rejected..]);
        }
    }
    Ok(())
}

/// Prints both sides and their ratios.
fn print(tallies: &mut [Tally; 2]) {
    for (name, tally) in ["adapter", "original"].iter().zip(tallies.iter()) {
        println!(
            "{name}: {} refused, {} valid instances rejected, {} of schemas that both take {:?}, \
             {} invalid accepted {:?}",
            tally.refused,
            tally.wrongly_rejected.len(),
            tally.both_wrongly_rejected.len(),
            tally.both_wrongly_rejected,
            tally.wrongly_accepted.len(),
            tally.wrongly_accepted,
        );
    }
    println!("| | adapter (us) | original (us) | ratio |\n|:--|--:|--:|--:|");
    let [ours, original] = tallies;
    row("mask", &mut ours.masks, &mut original.masks);
    row("first mask", &mut ours.first, &mut original.first);
    row("mask, both take it", &mut ours.both_masks, &mut original.both_masks);
    row("first mask, both take it", &mut ours.both_first, &mut original.both_first);
}

/// A tokenizer that does not count as canonical, so that masks have all allowed tokens.
struct Unforced(TokEnv);

impl TokenizerEnv for Unforced {
    fn tok_trie(&self) -> &TokTrie {
        self.0.tok_trie()
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.0.tokenize_bytes(bytes)
    }

    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

/// The time that this thread has run.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn row(name: &str, ours: &mut [Duration], original: &mut [Duration]) {
    ours.sort();
    original.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let mean = |all: &[Duration]| {
        all.iter().map(|&time| micros(time)).sum::<f64>() / all.len().max(1) as f64
    };
    let at = |all: &[Duration], part: f64| {
        all.get((all.len() as f64 * part) as usize).map_or(0.0, |&time| micros(time))
    };
    let line = |what: &str, a: f64, b: f64| {
        println!("| {name}, {what} | {a:.2} | {b:.2} | {:.3} |", a / b)
    };
    line("avg", mean(ours), mean(original));
    line("p50", at(ours, 0.5), at(original, 0.5));
    line("p99", at(ours, 0.99), at(original, 0.99));
}
