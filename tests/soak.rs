//! Soak test: eight threads take random engine steps on shared constraints whose caches are too
//! small for them, while masks are prepared in the background. Invariants are checked on the way.
//!
//! `just soak-engine 100000000` takes that many steps; without a number, as in `cargo test`,
//! 400,000.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use louver::engine::{Constraint, Engine, EngineOptions, Matcher, PrepareBudget, RowStatus};
use louver::front::ebnf::EbnfOptions;
use louver::front::json_schema::SchemaOptions;
use louver::front::regex::RegexOptions;
use louver::front::structural_tag::StructuralTagOptions;
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::mask::{PoolScope, bit};
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const THREADS: u64 = 8;
/// Steps where no number is given.
const DEFAULT_STEPS: u64 = 400_000;
/// Tokens after which a sequence is given up.
const MAX_TOKENS: usize = 300;
/// Tokens of the vocabulary beside the bytes.
const TOKENS: &[&str] = &[
    "aa", "ab", "the", " the", "10", "0.", "\"", "\": ", "\",\"", "{\"", "\"}", "]]", "},{",
    "null", "true", "\\u00", "\n", "    ", "<t", "<t>", "</t>", "a\"", "ing", "\u{e9}", "\u{65e5}",
    "()", "((",
];

/// What a constraint is compiled from.
enum Source {
    Schema(&'static str),
    Regex(&'static str),
    Ebnf(&'static str),
    Tag(&'static str),
}

const SOURCES: &[Source] = &[
    Source::Schema("true"),
    Source::Schema(
        r##"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "size": {"type": "integer", "minimum": 1, "maximum": 900}, "tags": {"type": "array", "items": {"enum": ["a", "ab", "abc"]}, "uniqueItems": true}, "in": {"$ref": "#"}}, "required": ["name"]}"##,
    ),
    Source::Schema(
        r#"{"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}, "minItems": 2}"#,
    ),
    Source::Schema(
        r#"{"anyOf": [{"type": "string", "pattern": "^(\\w+ ?){1,30}[.!]$"}, {"type": "number", "multipleOf": 7}]}"#,
    ),
    Source::Schema(r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#),
    Source::Regex(r"(\p{L}+[ ,]){3,80}\d{2,4}"),
    Source::Regex(".*a.{12}b"),
    Source::Ebnf(
        "root ::= e\ne ::= e [-+] t | t\nt ::= t [*/] f | f\n\
         f ::= \"(\" e \")\" | [0-9]+ | [a-z]+ \"(\" (e (\",\" e)*)? \")\"\n",
    ),
    Source::Ebnf("root ::= root root | root root root | \"a\" | \"ab\"\n"),
    Source::Tag(
        r#"{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<t"], "tags": [{"begin": "<t>", "content": {"type": "json_schema", "json_schema": {"type": "object"}}, "end": "</t>"}, {"begin": "<tt>", "content": {"type": "any_text", "max_tokens": 9}, "end": "</t>"}]}}"#,
    ),
];

impl Source {
    fn compile(&self, engine: &Engine) -> Constraint {
        match self {
            Source::Schema(text) => {
                engine.compile_json_schema(text, &SchemaOptions::default()).expect("compiles")
            }
            Source::Regex(text) => {
                engine.compile_regex(text, &RegexOptions::default()).expect("compiles")
            }
            Source::Ebnf(text) => {
                engine.compile_ebnf(text, &EbnfOptions::default()).expect("compiles")
            }
            Source::Tag(text) => engine
                .compile_structural_tag(text, &StructuralTagOptions::default())
                .expect("compiles"),
        }
    }
}

/// Operations of all threads, counted.
#[derive(Default)]
struct OperationCounts {
    tokens: AtomicU64,
    rollbacks: AtomicU64,
    forks: AtomicU64,
    batches: AtomicU64,
    prefetches: AtomicU64,
    preparations: AtomicU64,
    replays: AtomicU64,
    sequences: AtomicU64,
    finished: AtomicU64,
    limits: AtomicU64,
    compiled: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn engine(vocab: &Arc<Vocabulary>, limited_engine: bool) -> Engine {
    let mut options =
        EngineOptions::default().with_background_threads(2).with_pool_scope(PoolScope::Engine);
    if limited_engine {
        options.limits = Limits::default()
            .with_parser_bytes(512 << 10)
            .with_mask_bytes(64 << 10)
            .with_mask_fuel(20_000);
        options.pool_bytes = 1 << 20;
        options.grammar_cache_bytes = 4 << 20;
    }
    Engine::new(vocab.clone(), options)
}

/// A sequence, and a hash of the mask before each of its tokens.
struct Sequence {
    source: usize,
    matcher: Matcher,
    masks: Vec<u64>,
}

/// One thread of the test.
struct Worker<'a> {
    engine: &'a Engine,
    /// Constraints of an engine with default limits, for comparison.
    reference: &'a [Constraint],
    constraints: Vec<Constraint>,
    counts: &'a OperationCounts,
    random: u64,
    mask: Vec<u32>,
}

fn hash(mask: &[u32]) -> u64 {
    mask.iter().fold(0xCBF2_9CE4_8422_2325, |h, &word| {
        (h ^ u64::from(word)).wrapping_mul(0x0100_0000_01B3)
    })
}

impl Worker<'_> {
    /// A random number below `n` (xorshift).
    fn below(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % n.max(1)
    }

    /// Begins a sequence; now and then with a newly compiled constraint.
    fn begin(&mut self) -> Sequence {
        count(&self.counts.sequences);
        let source = self.below(SOURCES.len());
        if self.below(64) == 0 {
            self.constraints[source] = SOURCES[source].compile(self.engine);
            count(&self.counts.compiled);
        }
        Sequence { source, matcher: self.constraints[source].matcher(), masks: Vec::new() }
    }

    /// The hash of the sequence's mask; None if a limit has ended the sequence.
    fn mask(&mut self, sequence: &mut Sequence) -> Option<u64> {
        sequence.matcher.fill_mask(&mut self.mask);
        assert!(self.mask.iter().any(|&word| word != 0), "an empty mask");
        if sequence.matcher.limit().is_some() {
            let vocab = sequence.matcher.vocab();
            let stops = (0..vocab.width())
                .map(TokenId::new)
                .all(|t| !bit(&self.mask, t) || vocab.is_stop(t));
            assert!(stops, "a limit leaves the stop tokens");
            count(&self.counts.limits);
            return None;
        }
        Some(hash(&self.mask))
    }

    /// A random token of the mask, mostly not the stop token.
    fn pick(&mut self) -> TokenId {
        let words = self.mask.len();
        let from = self.below(words * 32);
        let allowed =
            (from..words * 32).chain(0..from).map(TokenId::new).filter(|&t| bit(&self.mask, t));
        let mut two = allowed.take(2);
        let (first, second) = (two.next().expect("a token"), two.next());
        match second {
            Some(second) if first.raw() == 256 => second,
            _ => first,
        }
    }

    /// Takes a token of the mask. Returns whether the sequence goes on.
    fn advance(&mut self, sequence: &mut Sequence, token: TokenId, before: u64) -> bool {
        count(&self.counts.tokens);
        match sequence.matcher.advance(token) {
            Ok(()) => {
                sequence.masks.push(before);
                true
            }
            Err(AdvanceError::Limit { .. }) => {
                count(&self.counts.limits);
                false
            }
            Err(error) => panic!("token {token} is in the mask: {error}"),
        }
    }

    /// One step of a sequence. Returns the number of operations, and whether the sequence goes on.
    fn step(&mut self, sequence: &mut Sequence) -> (u64, bool) {
        let Some(before) = self.mask(sequence) else { return (1, false) };
        if self.below(200) == 0 {
            return (1, false);
        }
        let token = self.pick();
        match self.below(256) {
            0..8 => {
                let random_token = TokenId::new(self.below(sequence.matcher.vocab().width()));
                let allows = sequence.matcher.allows(random_token);
                assert!(
                    allows == bit(&self.mask, random_token) || !allows,
                    "mask and test differ for token {random_token}"
                );
            }
            8..16 => return self.roll_back(sequence),
            16..20 => return self.fork(sequence, token, before),
            20..22 => {
                count(&self.counts.prefetches);
                sequence.matcher.prefetch(&[token]);
            }
            22 => return self.batch(sequence, before),
            23 if self.below(16) == 0 => return self.replay(sequence, before),
            24 if self.below(64) == 0 => {
                count(&self.counts.preparations);
                drop(
                    self.constraints[sequence.source]
                        .prepare(PrepareBudget::default().with_candidates(60)),
                );
            }
            _ => {}
        }
        let goes_on = self.advance(sequence, token, before);
        if sequence.matcher.is_terminated() {
            count(&self.counts.finished);
            return (1, false);
        }
        (1, goes_on && sequence.masks.len() < MAX_TOKENS)
    }

    /// Rolls tokens back: the mask is what it was.
    fn roll_back(&mut self, sequence: &mut Sequence) -> (u64, bool) {
        count(&self.counts.rollbacks);
        let n = self.below(sequence.masks.len() + 1);
        let length = sequence.masks.len() - n;
        let Some(&want) = sequence.masks.get(length) else { return (1, true) };
        sequence.matcher.rollback(n);
        sequence.masks.truncate(length);
        let Some(got) = self.mask(sequence) else { return (1, false) };
        assert_eq!(got, want, "rolling {n} tokens back to {length} changed the mask");
        (1, true)
    }

    /// Forks: both take the same token, and agree.
    fn fork(&mut self, sequence: &mut Sequence, token: TokenId, before: u64) -> (u64, bool) {
        count(&self.counts.forks);
        let (matcher, masks) = (sequence.matcher.clone(), sequence.masks.clone());
        let mut other = Sequence { source: sequence.source, matcher, masks };
        if !self.advance(sequence, token, before) || !self.advance(&mut other, token, before) {
            return (2, false);
        }
        let (Some(one), Some(two)) = (self.mask(sequence), self.mask(&mut other)) else {
            return (2, false);
        };
        assert_eq!(one, two, "forks differ");
        (2, !sequence.matcher.is_terminated())
    }

    /// A batch has the masks of its matchers.
    fn batch(&mut self, sequence: &mut Sequence, before: u64) -> (u64, bool) {
        count(&self.counts.batches);
        let mut matchers =
            vec![sequence.matcher.clone(), self.constraints[0].matcher(), sequence.matcher.clone()];
        let words = self.mask.len();
        let mut rows = vec![0; matchers.len() * words];
        let status = self.engine.fill_masks(&mut matchers, &mut rows).expect("a batch");
        for row in [0, 2] {
            let is_same = hash(&rows[row * words..][..words]) == before;
            assert!(
                is_same || status[row] != RowStatus::Constrained,
                "a batch changed a mask: {:?}",
                status[row]
            );
        }
        (3, true)
    }

    /// An engine with default limits has the same mask after the same tokens.
    fn replay(&mut self, sequence: &Sequence, before: u64) -> (u64, bool) {
        count(&self.counts.replays);
        let mut matcher = self.reference[sequence.source].matcher();
        let mut steps = 1;
        for &token in sequence.matcher.tokens() {
            matcher.advance(token).expect("a token that another engine has taken");
            steps += 1;
        }
        matcher.fill_mask(&mut self.mask);
        assert_eq!(hash(&self.mask), before, "an engine with more room has another mask");
        (steps, true)
    }

    fn run(&mut self, steps: u64) {
        let mut steps_left = steps;
        while steps_left > 0 {
            let mut sequence = self.begin();
            loop {
                let (done, goes_on) = self.step(&mut sequence);
                steps_left = steps_left.saturating_sub(done);
                if !goes_on || steps_left == 0 {
                    break;
                }
            }
        }
    }
}

#[test]
fn soak_of_engine_steps() {
    let steps = std::env::var("LOUVER_SOAK_STEPS")
        .ok()
        .map(|n| n.replace('_', "").parse().expect("a number of steps"));
    let steps: u64 = steps.unwrap_or(DEFAULT_STEPS);
    let words: Vec<&[u8]> = TOKENS.iter().map(|word| word.as_bytes()).collect();
    let vocab = Arc::new(Vocabulary::toy(&words));
    let (limited_engine, default_engine) = (engine(&vocab, true), engine(&vocab, false));
    let reference: Vec<Constraint> =
        SOURCES.iter().map(|source| source.compile(&default_engine)).collect();
    let constraints: Vec<Constraint> =
        SOURCES.iter().map(|source| source.compile(&limited_engine)).collect();
    let counts = OperationCounts::default();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, reference, counts) = (&limited_engine, &reference[..], &counts);
            let (constraints, mask) = (constraints.clone(), vec![0; vocab.mask_words()]);
            let random = (thread + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut worker = Worker { engine, reference, constraints, counts, random, mask };
            scope.spawn(move || worker.run(steps / THREADS));
        }
    });
    let took = begin.elapsed();
    let (stats, pool) = (limited_engine.stats(), limited_engine.pool_stats());
    println!(
        "{steps} steps on {THREADS} threads in {took:.1?}, at most {} MB",
        MEMORY.peak_usage() >> 20
    );
    let show = |name: &str, counter: &AtomicU64| {
        let n = counter.load(Ordering::Relaxed);
        println!("{n:>12} {name}");
        n
    };
    let done = [
        show("tokens taken", &counts.tokens),
        show("rollbacks", &counts.rollbacks),
        show("forks", &counts.forks),
        show("batches", &counts.batches),
        show("masks prefetched", &counts.prefetches),
        show("masks compared with an engine with room", &counts.replays),
        show("sequences", &counts.sequences),
        show("finished", &counts.finished),
        show("constraints compiled anew", &counts.compiled),
        show("preparations", &counts.preparations),
    ];
    show("ended by a limit", &counts.limits);
    println!(
        "{:>12} masks made in the background, {} used",
        stats.background_masks_built, stats.background_masks_used
    );
    println!("{:>12} masks made, {} found", pool.mask_misses, pool.mask_hits);
    println!(
        "{:>12} pooled values evicted; {} kept constraints evicted",
        pool.evicted, stats.grammars.evicted
    );
    assert!(done.iter().all(|&n| n > 0) || steps < DEFAULT_STEPS, "something was never done");
    assert_eq!((stats.background_panics, stats.batch_rows_failed), (0, 0));
}
