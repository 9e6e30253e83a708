//! Runs hostile inputs one after the other, and checks fuel, memory, time and masks of each.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use louver::engine::{Constraint, Engine, EngineOptions, Matcher, PrepareBudget};
use louver::fuel::{self, CancelToken};
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::mask::{PoolScope, bit};
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;
pub(crate) use peak_alloc::PeakAlloc;

/// Tokens of a walk, unless an input says otherwise.
const STEPS: usize = 24;
/// Memory that one input may take, in bytes.
const MAX_BYTES: usize = 200 << 20;
/// Processor time that a phase may take on its thread: many times the equivalent of its fuel. A
/// longer phase does work that is not counted.
const MAX_PROCESSOR_TIME: Duration = Duration::from_secs(2);
/// Processor time from a check of cancel tokens to the next one, and from a cancellation to the end
/// of its work, for each started MiB of text. Many times what Louver promises: here dependencies
/// are not optimised, every allocation is counted, the system updates the time at each tick of its
/// clock, and programs that share a core slow each other down.
const MAX_CHECK_GAP: Duration = Duration::from_millis(150);
/// Longest time from a cancellation to the end of its work, without what
/// [`MAX_CHECK_GAP`] allows for. Printed only.
const PROMISED_GAP: Duration = Duration::from_millis(10);
/// Compilations are cancelled at these checks of their cancel token.
const CANCELLED_CHECKS: [usize; 4] = [0, 5, 60, 500];
/// Processes that share the inputs.
const PROCESSES: usize = 2;
/// The variable with which a process is told its part of the inputs.
const SHARD: &str = "LOUVER_HOSTILE_SHARD";
/// Time after which an input counts as hanging.
const HANG_TIME: Duration = Duration::from_secs(120);
/// Phases that take longer are marked.
const SLOW_PHASE: Duration = Duration::from_millis(500);
/// Tokens of the vocabulary beside the bytes.
const TOKENS: &[&str] = &[
    "aa",
    "aaaa",
    "ab",
    "ba",
    "abc",
    "a b",
    " a",
    "the",
    " the",
    "10",
    "100",
    "0.",
    "e+",
    "\"",
    "\"a",
    "a\"",
    "\": ",
    "\",\"",
    "{\"",
    "\"}",
    "[[",
    "]]",
    "],[",
    "{}",
    "null",
    "true",
    "false",
    "\\u00",
    "\\\"",
    "\n\n",
    "    ",
    "<",
    "</",
    "<t",
    "<tool",
    "ing",
    "\u{e9}",
    "\u{416}",
    "\u{65e5}\u{672c}",
    "\u{1F600}",
    "--",
    "::",
    "()",
    "((",
    "))",
    "aaaaaaaa",
];

/// Compiles an input with an engine. The error is what a user reads.
pub(crate) type Compile = Box<dyn Fn(&Engine) -> Result<Constraint, Refused>>;

/// A typed refusal.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The error as it is shown.
    pub(crate) message: String,
    /// Where in the input it is: a JSON pointer, a line and column, an offset, or the name of a
    /// rule or tool. Empty if the error has no place.
    pub(crate) place: String,
}

/// One hostile input.
pub(crate) struct Input {
    /// Kind, generator and size: `regex/class-product/20`.
    pub(crate) name: String,
    /// Length of its text.
    pub(crate) bytes: usize,
    /// Tokens of a walk.
    pub(crate) steps: usize,
    pub(crate) compile: Compile,
}

/// Inputs of one generator at several sizes.
pub(crate) fn family(
    name: &str,
    sizes: &[usize],
    text: impl Fn(usize) -> String,
    compile: impl Fn(&Engine, &str) -> Result<Constraint, Refused> + Clone + 'static,
) -> Vec<Input> {
    let make = |size: &usize| {
        let text = text(*size);
        let (name, bytes, compile) = (format!("{name}/{size}"), text.len(), compile.clone());
        Input { name, bytes, steps: STEPS, compile: Box::new(move |engine| compile(engine, &text)) }
    };
    sizes.iter().map(make).collect()
}

/// What a test does with one input.
pub(crate) type Check = fn(&Suite, &Input, &mut Outcome);

/// The longest processor time between two checks of cancel tokens. Before the first one the text is
/// read, which has no checks.
#[derive(Clone, Debug, Default)]
struct CheckGaps {
    last: Rc<Cell<Option<Duration>>>,
    longest: Rc<Cell<Duration>>,
}

impl CheckGaps {
    /// Notes a check, or the end.
    fn check(&self) {
        let now = processor_time();
        if let (Some(now), Some(last)) = (now, self.last.replace(now)) {
            self.longest.set(self.longest.get().max(now.saturating_sub(last)));
        }
    }

    /// Runs work, and returns the longest time from a check to the next one or to the end.
    fn longest_of<T>(work: impl FnOnce() -> T) -> (T, Duration) {
        let gaps = CheckGaps::default();
        let observer = gaps.clone();
        let result = fuel::observe_checks(move || observer.check(), work);
        gaps.check();
        (result, gaps.longest.get())
    }
}

/// What became of an input, and what each phase cost.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// A description.
    what: String,
    /// The longest processor time between two checks of cancel tokens, or after a cancellation.
    longest_gap: Duration,
    /// Fuel and time of each phase, the largest of a kind.
    phases: Vec<(&'static str, u64, Duration)>,
}

impl Outcome {
    /// Runs a phase, and checks its fuel and processor time.
    fn phase<T>(&mut self, name: &'static str, most: u64, work: impl FnOnce() -> T) -> T {
        let (begin, before) = (Instant::now(), processor_time());
        let ((result, gap), spent) = fuel::measure(|| CheckGaps::longest_of(work));
        let took = begin.elapsed();
        // Without fuel there is nothing to cancel.
        if most > 0 {
            self.longest_gap = self.longest_gap.max(gap);
        }
        assert!(spent <= most, "{name} spent {spent} of {most} units");
        if let (Some(before), Some(after)) = (before, processor_time()) {
            let used = after.saturating_sub(before);
            assert!(
                used <= MAX_PROCESSOR_TIME,
                "{name} took {used:?} of processor time for {spent} units"
            );
        }
        match self.phases.iter_mut().find(|(known, ..)| *known == name) {
            Some(phase) => *phase = (name, phase.1.max(spent), phase.2.max(took)),
            None => self.phases.push((name, spent, took)),
        }
        result
    }
}

/// Processor time of this thread, to which other processes do not add; None where the system does
/// not report it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Runs inputs and checks them.
pub(crate) struct Suite {
    memory: &'static PeakAlloc,
    vocab: Arc<Vocabulary>,
}

impl Suite {
    pub(crate) fn new(memory: &'static PeakAlloc) -> Suite {
        let words: Vec<&[u8]> = TOKENS.iter().map(|word| word.as_bytes()).collect();
        Suite { memory, vocab: Arc::new(Vocabulary::toy(&words)) }
    }

    /// Runs the inputs whose names contain `LOUVER_HOSTILE`, or all. A `$` matches the end of a
    /// name. All are run by processes of the test with this name, side by side: memory is measured
    /// for a whole process.
    pub(crate) fn run(&self, test: &str, inputs: &[Input], check: Check) {
        match (std::env::var("LOUVER_HOSTILE"), std::env::var(SHARD)) {
            (Ok(only), _) => {
                let inputs = inputs.iter();
                let inputs = inputs.filter(|input| format!("{}$", input.name).contains(&only));
                self.run_here(inputs, check);
            }
            (_, Ok(shard)) => {
                let shard: usize = shard.parse().expect("the number of a shard");
                self.run_here(inputs.iter().skip(shard).step_by(PROCESSES), check);
            }
            _ => run_shards(test),
        }
    }

    /// Runs inputs in this process.
    fn run_here<'i>(&self, inputs: impl Iterator<Item = &'i Input>, check: Check) {
        let watchdog = Watchdog::start();
        let (mut failed, mut ran, mut refused) = (Vec::new(), 0, 0);
        let mut gaps = Vec::new();
        let begin = Instant::now();
        for input in inputs {
            watchdog.begins(&input.name);
            ran += 1;
            self.memory.reset_peak_usage();
            let before = self.memory.current_usage();
            let tried = || {
                let mut outcome = Outcome::default();
                let checked = || check(self, input, &mut outcome);
                (catch_unwind(AssertUnwindSafe(checked)), outcome)
            };
            let (mut result, mut outcome) = tried();
            let longest = MAX_CHECK_GAP * (1 + (input.bytes >> 20) as u32);
            if result.is_ok() && outcome.longest_gap > longest {
                // The system may have been busy with this thread's memory.
                (result, outcome) = tried();
            }
            let peak = self.memory.peak_usage().saturating_sub(before);
            println!(
                "{:40} {:>9} B {:>5} MB  {}",
                input.name,
                input.bytes,
                peak >> 20,
                outcome.what
            );
            for (phase, fuel, took) in &outcome.phases {
                println!(
                    "    {phase:10} {fuel:>10} units {took:>10.1?}{}",
                    if *took > SLOW_PHASE { "  SLOW" } else { "" }
                );
            }
            if outcome.longest_gap > longest {
                failed.push(format!("{}: not cancelled for {:?}", input.name, outcome.longest_gap));
            }
            gaps.push((outcome.longest_gap, &input.name));
            refused += usize::from(outcome.what.starts_with("refused"));
            if let Err(panic) = result {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                failed.push(format!("{}: {text}", input.name));
            }
            if peak > MAX_BYTES {
                failed.push(format!("{}: {} MB", input.name, peak >> 20));
            }
        }
        assert!(ran > 0, "there are no such inputs");
        gaps.sort_unstable();
        let slow = gaps.iter().filter(|(gap, _)| *gap > PROMISED_GAP).count();
        let longest = gaps.last().map(|(gap, name)| format!("{gap:.1?} ({name})"));
        println!(
            "{ran} inputs, {refused} refused, in {:?}; not cancelled for {PROMISED_GAP:?}: {slow}, \
             at most {}",
            begin.elapsed(),
            longest.unwrap_or_default()
        );
        assert!(failed.is_empty(), "{} of {ran} fail:\n{}", failed.len(), failed.join("\n"));
    }

    fn engine(&self) -> Engine {
        let options =
            EngineOptions::default().with_pool_scope(PoolScope::Engine).with_batch_threads(1);
        Engine::new(self.vocab.clone(), options)
    }

    /// Compiles one input several times, and cancels each compilation at another check.
    pub(crate) fn cancel_compilations(&self, input: &Input, outcome: &mut Outcome) {
        for at in CANCELLED_CHECKS {
            let (engine, token) = (self.engine(), CancelToken::default());
            let (canceller, mut checks) = (token.clone(), 0);
            let cancelled_at = Rc::new(Cell::new(None));
            let observer = {
                let cancelled_at = cancelled_at.clone();
                move || {
                    if checks == at {
                        canceller.cancel();
                        cancelled_at.set(processor_time());
                    }
                    checks += 1;
                }
            };
            let compiled = token
                .run(|| fuel::observe_checks(observer, || (input.compile)(&engine).map(|_| ())));
            let ended = processor_time();
            let Some(begun) = cancelled_at.get() else { break };
            let used = ended.unwrap_or_default().saturating_sub(begun);
            outcome.what = match compiled {
                Ok(()) => "compiled".to_owned(),
                Err(refused) => format!("refused: {}", cut(&refused.message, 100)),
            };
            outcome.longest_gap = outcome.longest_gap.max(used);
        }
    }

    /// Compiles one input, and walks its masks.
    pub(crate) fn compile_and_walk(&self, input: &Input, outcome: &mut Outcome) {
        let limits = Limits::default();
        let engine = self.engine();
        // The first mask belongs to compilation, and has its own fuel.
        let most = limits.compile_budget(input.bytes) + limits.mask_fuel;
        let constraint = match outcome.phase("compile", most, || (input.compile)(&engine)) {
            Ok(constraint) => constraint,
            Err(refused) => {
                outcome.what = format!(
                    "refused at {}: {}",
                    cut(&refused.place, 40),
                    cut(&refused.message, 120)
                );
                assert!(!refused.place.is_empty(), "the error has no place: {}", refused.message);
                assert!(!refused.message.is_empty(), "the error says nothing");
                return;
            }
        };
        outcome.what = "compiled".to_owned();
        for seed in 1..=2 {
            self.walk(&mut constraint.matcher(), (seed, input.steps), outcome);
        }
        let prepared = constraint.prepare(PrepareBudget::default());
        outcome.phase("prepare", 0, || prepared.wait());
        self.walk(&mut constraint.matcher(), (3, input.steps), outcome);
        // Background work ends with its engine.
        outcome.phase("drop", 0, || drop((constraint, engine)));
    }

    /// Takes random tokens of the masks. No mask is empty; masks agree with `allows`; an allowed
    /// token can be taken; a limit leaves the stop tokens.
    fn walk(&self, matcher: &mut Matcher, (seed, steps): (u32, usize), outcome: &mut Outcome) {
        let limits = Limits::default();
        let mut mask = vec![0; self.vocab.mask_words()];
        let mut random = seed.wrapping_mul(0x9E37_79B9);
        for _ in 0..steps {
            // A full parser is cleared, and the work is done again.
            outcome.phase("mask", 4 * limits.mask_fuel, || matcher.fill_mask(&mut mask));
            let allowed: Vec<TokenId> =
                (0..self.vocab.width()).map(TokenId::new).filter(|&t| bit(&mask, t)).collect();
            assert!(!allowed.is_empty(), "an empty mask after {:?}", matcher.tokens());
            if let Some(limit) = matcher.limit() {
                outcome.what =
                    format!("compiled, then {limit} after {} tokens", matcher.tokens().len());
                assert_eq!(allowed, self.vocab.stops(), "a limit leaves the stop tokens");
                return;
            }
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random_token = TokenId::from_raw((random >> 8) % self.vocab.width() as u32);
            let allows =
                outcome.phase("allows", 4 * limits.mask_fuel, || matcher.allows(random_token));
            assert!(
                allows == bit(&mask, random_token) || !allows,
                "mask and test differ for token {random_token}"
            );
            let going_on: Vec<TokenId> =
                allowed.iter().copied().filter(|&t| !self.vocab.is_stop(t)).collect();
            let tokens = if going_on.is_empty() { &allowed } else { &going_on };
            let token = tokens[(random >> 16) as usize % tokens.len()];
            if seed == 3 {
                matcher.prefetch(&tokens[..tokens.len().min(4)]);
            }
            match outcome.phase("token", 4 * limits.mask_fuel, || matcher.advance(token)) {
                Ok(()) => {}
                Err(AdvanceError::Limit { what }) => {
                    outcome.what =
                        format!("compiled, then {what} after {} tokens", matcher.tokens().len());
                    return;
                }
                Err(error) => {
                    panic!("token {token} is in the mask after {:?}: {error}", matcher.tokens())
                }
            }
            if matcher.is_terminated() {
                return;
            }
        }
    }
}

/// Runs all inputs in processes of their own. Prints what these print, and fails if one fails.
fn run_shards(test: &str) {
    let program = std::env::current_exe().expect("the test's program");
    let run = &|shard: usize| {
        let mut command = Command::new(&program);
        command.args(["--exact", test, "--nocapture"]).env(SHARD, shard.to_string());
        command.output().expect("the output of a process")
    };
    // Each output is read while its process runs: a full pipe would stop it.
    let outputs: Vec<Output> = std::thread::scope(|scope| {
        let shards: Vec<_> = (0..PROCESSES).map(|shard| scope.spawn(move || run(shard))).collect();
        shards.into_iter().map(|shard| shard.join().expect("no panic")).collect()
    });
    for (shard, output) in outputs.iter().enumerate() {
        let printed = String::from_utf8_lossy(&output.stdout);
        println!("{printed}");
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "part {shard} fails: {}", output.status);
        assert!(printed.contains(" inputs, "), "part {shard} ran no input");
    }
}

/// Names are unique. Prints them.
pub(crate) fn check_names(inputs: &[Input]) {
    let mut names = BTreeSet::new();
    for input in inputs {
        println!("{}", input.name);
        assert!(names.insert(&input.name), "{} is there twice", input.name);
    }
}

fn cut(text: &str, chars: usize) -> String {
    let line = text.replace('\n', " / ");
    line.chars().take(chars).collect()
}

/// Ends the process when an input hangs, and names it.
struct Watchdog {
    names: Sender<String>,
}

impl Watchdog {
    fn start() -> Watchdog {
        let (names, begun) = channel::<String>();
        std::thread::spawn(move || {
            let mut name = String::new();
            loop {
                match begun.recv_timeout(HANG_TIME) {
                    Ok(next) => name = next,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("{name} hangs: over {HANG_TIME:?}");
                        std::process::exit(101);
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Watchdog { names }
    }

    fn begins(&self, name: &str) {
        self.names.send(name.to_owned()).expect("the watchdog waits");
    }
}

/// Errors of the engine's front ends, with their places.
pub(crate) mod refusals {
    use louver::compile::CompileError;
    use louver::engine::{
        RegexCompileError, SchemaCompileError, StructuralTagCompileError, TextCompileError,
    };
    use louver::front::diagnostic::Diagnostics;
    use louver::front::regex::RegexError;

    use super::Refused;

    impl Refused {
        pub(crate) fn new(error: &dyn std::error::Error, place: String) -> Refused {
            Refused { message: error.to_string(), place }
        }
    }

    pub(crate) fn of_compiling(error: &CompileError) -> String {
        match error {
            CompileError::Empty { rule }
            | CompileError::Limit { rule, .. }
            | CompileError::Fuel { rule, .. }
            | CompileError::EmptyMember { rule }
            | CompileError::Scope { rule, .. } => format!("rule {rule:?}"),
            CompileError::UnknownSpecial { token } => format!("token {token}"),
            CompileError::Start { .. } | CompileError::NoToken => "the first mask".to_owned(),
            // All variants of a malformed grammar name their rule in backticks.
            other => other
                .to_string()
                .split('`')
                .nth(1)
                .map(|rule| format!("rule {rule:?}"))
                .unwrap_or_default(),
        }
    }

    fn of_a_pattern(error: &RegexError) -> String {
        match error {
            RegexError::Syntax { offset, .. } | RegexError::Unsupported { offset, .. } => {
                format!("offset {offset}")
            }
            // The pattern as a whole.
            _ => "offset 0".to_owned(),
        }
    }

    pub(crate) fn of_text(diagnostics: &Diagnostics) -> String {
        let Some(first) = diagnostics.list().first() else { return String::new() };
        let (line, column) = diagnostics.place(first.span.start);
        format!("{line}:{column}")
    }

    impl From<RegexCompileError> for Refused {
        fn from(error: RegexCompileError) -> Refused {
            let place = match &error {
                RegexCompileError::Regex(error) => of_a_pattern(error),
                RegexCompileError::Compile(error) => of_compiling(error),
                _ => String::new(),
            };
            Refused::new(&error, place)
        }
    }

    impl From<TextCompileError> for Refused {
        fn from(error: TextCompileError) -> Refused {
            let place = match &error {
                TextCompileError::Text(diagnostics) => of_text(diagnostics),
                TextCompileError::Compile(error) => of_compiling(error),
                _ => String::new(),
            };
            Refused::new(&error, place)
        }
    }

    impl From<SchemaCompileError> for Refused {
        fn from(error: SchemaCompileError) -> Refused {
            let place = match &error {
                SchemaCompileError::Json(error) => format!("{}:{}", error.line, error.column),
                SchemaCompileError::Schema(errors) => errors
                    .iter()
                    .next()
                    .map(|error| format!("pointer {:?}", error.pointer))
                    .unwrap_or_default(),
                SchemaCompileError::Compile(error) => of_compiling(error),
                _ => String::new(),
            };
            Refused::new(&error, place)
        }
    }

    impl From<StructuralTagCompileError> for Refused {
        fn from(error: StructuralTagCompileError) -> Refused {
            let place = match &error {
                StructuralTagCompileError::Document(errors) => errors
                    .iter()
                    .next()
                    .map(|error| format!("pointer {:?}", error.pointer))
                    .unwrap_or_default(),
                StructuralTagCompileError::Compile(error) => of_compiling(error),
                _ => String::new(),
            };
            Refused::new(&error, place)
        }
    }
}
