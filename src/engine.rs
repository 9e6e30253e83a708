//! Stage 6, the public interface: [`Engine`], [`Constraint`] and [`Matcher`].
//!
//! An [`Engine`] belongs to one vocabulary and holds options, threads and caches. It compiles a
//! grammar or a JSON Schema into a [`Constraint`], which all sequences of that grammar share. A
//! [`Matcher`] is one sequence: it yields the mask of the next token and takes the sampled token.
//!
//! Locking: a constraint's parser and masks are after one lock, taken for each mask and each
//! token. A matcher holds ids of configurations only. Ids are valid in one *epoch* of the
//! constraint's caches; when the caches were emptied, a matcher replays its tokens.

mod background;
mod batch;
mod captures;
mod compile;
mod draft;
mod forced;
mod grammar_cache;
mod inspect;
mod options;
mod preparation;
mod resume;
mod runtime;
mod sequence_fuel;
mod shortest;
mod termination;

use std::sync::Arc;

use crate::compile::{CompileError, Compiled};
use crate::fuel;
use crate::ids::TokenId;
use crate::ir::{Grammar, Simplify};
use crate::mask::{EnginePool, GrammarMasks, MaskOptions, MaskRow, MaskState, PoolStats, TokenSet};
use crate::matcher::{AdvanceError, ConfigId, ParserLimit, Symbol, Tracer, TransitionUse};
use crate::vocab::Vocabulary;

pub use crate::cache::CacheStats;
pub use batch::{BatchError, RowStatus, UniqueRows};
pub use captures::Capture;
pub use compile::{
    RegexCompileError, SchemaCompileError, StructuralTagCompileError, TextCompileError,
    lower_and_compile,
};
pub use draft::{DraftError, DraftNode, DraftTree};
pub use forced::{Piece, Tokenize};
use grammar_cache::GrammarCache;
pub use inspect::{Expected, Refusal};
pub use options::EngineOptions;
#[doc(hidden)]
pub use options::MaskTuning;
use preparation::BackgroundParser;
pub use preparation::{PrepareBudget, PrepareReport, Prepared};
pub use resume::ResumeError;
use runtime::EngineThreads;
pub use runtime::{EngineStats, ProcessStats, process_stats};
use sequence_fuel::{Payer, SequenceFuel};
pub use shortest::{Completion, CompletionOptions};
use termination::{Termination, TokenStep, write_stop_tokens};

/// Used with counters switched off: most nodes of one repeat that is written out as copies.
const MAX_UNROLLED_NODES: usize = 2_000;
/// The same for all repeats of a grammar together.
const MAX_UNROLLED_TOTAL: usize = 100_000;

/// Tokens for which a matcher reserves capacity at first. Growing a short list calls the allocator
/// repeatedly, and an allocator that is busy (as after a grammar was dropped) takes many times as
/// long as a token costs.
const INITIAL_TOKEN_CAPACITY: usize = 1024;

/// Compiles grammars for one vocabulary. Share it in an `Arc`; all methods take `&self`.
///
/// ```
/// use std::sync::Arc;
/// use louver::{Engine, EngineOptions, RegexOptions, TokenId, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
/// let constraint = engine.compile_regex("[0-9]{2}-x", &RegexOptions::default())?;
/// let mut matcher = constraint.matcher();
/// assert_eq!(matcher.forced_bytes(10), b"");
/// for byte in *b"12" {
///     matcher.advance(TokenId::from_raw(byte.into()))?;
/// }
/// assert_eq!(matcher.forced_bytes(10), b"-x");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Engine {
    vocab: Arc<Vocabulary>,
    engine_pool: Arc<EnginePool>,
    options: EngineOptions,
    runtime: Arc<EngineThreads>,
    grammar_cache: GrammarCache,
}

impl Engine {
    /// An engine for this vocabulary. Cheap: threads and caches start empty.
    pub fn new(vocab: Arc<Vocabulary>, options: EngineOptions) -> Self {
        let engine_pool = Arc::new(EnginePool::new(&vocab, options.pool_scope, options.pool_bytes));
        let runtime = Arc::new(EngineThreads::new(&options));
        let grammar_cache = GrammarCache::new(options.grammar_cache_bytes);
        Engine { vocab, engine_pool, options, runtime, grammar_cache }
    }

    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// The options that the engine was made with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Counters of the masks of this engine and of the mask pool.
    pub fn pool_stats(&self) -> PoolStats {
        self.engine_pool.stats()
    }

    /// Counters of batches, drafts, background work and the grammar cache.
    pub fn stats(&self) -> EngineStats {
        EngineStats {
            background_masks_used: self.engine_pool.stats().background_masks_used,
            grammars: self.grammar_cache.stats(),
            ..self.runtime.stats()
        }
    }

    /// Simplifies and compiles a grammar and binds it to the vocabulary. Makes no mask yet.
    ///
    /// Errors: [`CompileError`] if the grammar is malformed, matches nothing, names a special token
    /// that the vocabulary lacks, or reaches a limit.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, Expr, GrammarBuilder, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut grammar = GrammarBuilder::new();
    /// let start = grammar.rule("start", Expr::alt([Expr::text("yes"), Expr::text("no")]));
    /// let constraint = engine.compile(grammar.finish(start)?)?;
    /// assert!(!constraint.matcher().is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile(&self, grammar: impl Into<Arc<Grammar>>) -> Result<Constraint, CompileError> {
        self.compile_with(grammar, self.options.simplify)
    }

    /// As [`Engine::compile`], with simplification as given instead of as in the options.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::ir::Simplify;
    /// use louver::{ByteSet, Engine, EngineOptions, Expr, GrammarBuilder, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut grammar = GrammarBuilder::new();
    /// let digit = grammar.rule("digit", Expr::class(ByteSet::range(b'0', b'9')));
    /// let start = grammar.rule("start", Expr::seq([Expr::Ref(digit), Expr::text("%")]));
    /// let constraint = engine.compile_with(grammar.finish(start)?, Simplify::On)?;
    /// assert_eq!(constraint.compiled().grammar().rules.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_with(
        &self,
        grammar: impl Into<Arc<Grammar>>,
        simplify: Simplify,
    ) -> Result<Constraint, CompileError> {
        fuel::with_default_budget(
            || self.options.limits.compile_fuel,
            || self.simplify_and_bind(grammar.into(), simplify),
        )
    }

    /// The work of [`Engine::compile_with`], under a budget of fuel.
    fn simplify_and_bind(
        &self,
        grammar: Arc<Grammar>,
        simplify: Simplify,
    ) -> Result<Constraint, CompileError> {
        let mut grammar = match simplify {
            Simplify::Off => grammar,
            Simplify::On => Arc::new(grammar.simplify()?),
        };
        // A simplification that runs out of fuel stops early, so the fuel is checked here.
        fuel::check().map_err(|out| CompileError::fuel(&grammar, grammar.start.into(), out))?;
        if !self.options.switches.counters.is_on() {
            grammar.validate()?;
            grammar = Arc::new(grammar.unroll_repeats(MAX_UNROLLED_NODES, MAX_UNROLLED_TOTAL));
        }
        self.bind(Arc::new(Compiled::new(grammar, &self.options.limits)?))
    }

    /// Binds a compiled grammar to the vocabulary. A [`Compiled`] can be shared between engines of
    /// different vocabularies.
    ///
    /// Errors: [`CompileError`] if the vocabulary lacks a special token of the grammar, or if the
    /// grammar's first configuration reaches a limit.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Compiled, Engine, EngineOptions, Expr, GrammarBuilder, Limits, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut grammar = GrammarBuilder::new();
    /// let start = grammar.rule("start", Expr::text("yes"));
    /// let compiled = Arc::new(Compiled::new(grammar.finish(start)?, &Limits::default())?);
    /// for extra in [b"ye", b"es"] {
    ///     let vocab = Arc::new(Vocabulary::toy(&[extra]));
    ///     let engine = Engine::new(vocab, EngineOptions::default());
    ///     assert_eq!(engine.bind(compiled.clone())?.matcher().forced_bytes(9), b"yes");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind(&self, compiled: Arc<Compiled>) -> Result<Constraint, CompileError> {
        let masks = fuel::with_default_budget(
            || self.options.limits.compile_fuel,
            || self.grammar_masks(compiled),
        )?;
        #[cfg(any(test, feature = "fault-injection"))]
        self.runtime.counters.maybe_panic(3);
        Ok(Constraint {
            masks: Arc::new(masks),
            runtime: self.runtime.clone(),
            background_parser: Arc::default(),
        })
    }

    /// The parser and the mask caches of a constraint.
    fn grammar_masks(&self, compiled: Arc<Compiled>) -> Result<GrammarMasks, CompileError> {
        let grammar = compiled.grammar().clone();
        let masks = GrammarMasks::new(
            compiled,
            self.vocab.clone(),
            self.engine_pool.clone(),
            &self.options.limits,
            MaskOptions {
                direct_walk: self.options.tuning.direct_walk,
                mutual_rules: self.options.tuning.mutual_rules,
                switches: self.options.switches,
            },
        )?;
        // A parser that ran out of fuel has no first configuration, so the fuel is checked here.
        match fuel::check() {
            Ok(()) => Ok(masks),
            Err(out) => Err(CompileError::fuel(&grammar, grammar.start.into(), out)),
        }
    }
}

/// A compiled grammar bound to a vocabulary, with its parser and caches. Clones share them; a
/// constraint can be used by many threads at once.
///
/// ```
/// use std::sync::Arc;
/// use louver::{Engine, EngineOptions, SchemaOptions, TokenId, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
/// let constraint = engine.compile_json_schema("true", &SchemaOptions::default())?;
/// // Two sequences of one grammar.
/// let (mut first, second) = (constraint.matcher(), constraint.matcher());
/// first.advance(TokenId::from_raw(b'['.into()))?;
/// assert_eq!((first.tokens().len(), second.tokens().len()), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Constraint {
    masks: Arc<GrammarMasks>,
    runtime: Arc<EngineThreads>,
    background_parser: Arc<BackgroundParser>,
}

impl Constraint {
    /// A matcher at the start of the grammar. Cost: one lock and two allocations of 4 KiB.
    pub fn matcher(&self) -> Matcher {
        let state = self.masks.lock();
        let (start, epoch) = (state.parser.start(), state.epoch);
        drop(state);
        let mut configs = Vec::with_capacity(INITIAL_TOKEN_CAPACITY + 1);
        configs.push(start);
        Matcher {
            masks: self.masks.clone(),
            runtime: self.runtime.clone(),
            background_parser: self.background_parser.clone(),
            epoch,
            configs,
            tokens: Vec::with_capacity(INITIAL_TOKEN_CAPACITY),
            terminated: false,
            limit: None,
            fuel: SequenceFuel::default(),
        }
    }

    /// Makes the first mask, so that a grammar whose first mask is too much work is refused before
    /// anything is generated. The mask is cached for the matchers.
    ///
    /// Errors: [`CompileError::Fuel`] past [`Limits::mask_fuel`](crate::limits::Limits::mask_fuel),
    /// [`CompileError::Start`] where another limit was reached, [`CompileError::NoToken`] if no
    /// token may be first.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, RegexOptions, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let constraint = engine.compile_regex("[a-z]{3,9}", &RegexOptions::default())?;
    /// constraint.make_first_mask()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn make_first_mask(&self) -> Result<(), CompileError> {
        let mut matcher = self.matcher();
        match matcher.mask() {
            Err(Termination::Limit(limit)) => {
                Err(self.masks.lock().start_error(limit, &self.masks))
            }
            Ok(mask) if mask.is_empty() && !matcher.is_complete() => Err(CompileError::NoToken),
            _ => Ok(()),
        }
    }

    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        &self.masks.vocab
    }

    /// The compiled grammar.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.masks.compiled
    }

    /// Memory of the caches, those of the background parser included, in bytes; `None` while
    /// another thread has a lock.
    fn bytes(&self) -> Option<usize> {
        Some(self.masks.try_lock()?.bytes() + self.background_parser.bytes()?)
    }
}

/// One sequence of tokens under a [`Constraint`]. Small: two ids a token. `clone` makes an
/// independent fork.
///
/// Each step of a generation takes a mask, samples a token that it allows, and advances:
///
/// ```
/// use std::sync::Arc;
/// use louver::{Engine, EngineOptions, MaskRow, SchemaOptions, TokenId, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let vocab = Arc::new(Vocabulary::toy(&[b"tr", b"ue"]));
/// let engine = Engine::new(vocab.clone(), EngineOptions::default());
/// let constraint = engine.compile_json_schema(r#"{"const": true}"#, &SchemaOptions::default())?;
/// let mut matcher = constraint.matcher();
/// let mut mask = MaskRow::new(&vocab);
/// while !matcher.is_terminated() {
///     matcher.update_mask(&mut mask);
///     // In place of a model: the allowed token with the greatest id.
///     let mut ids = (0..vocab.width()).rev().map(TokenId::new);
///     let sampled = ids.find(|&id| mask.allows(id)).expect("the vocabulary has all bytes");
///     matcher.advance(sampled)?;
/// }
/// let text: Vec<u8> =
///     matcher.tokens().iter().filter_map(|&t| vocab.bytes(t)).flatten().copied().collect();
/// assert_eq!(text, b"true");
/// # Ok(())
/// # }
/// ```
///
/// Invariant: `configs` holds the configuration after each prefix of the byte and special tokens in
/// `tokens`, the empty prefix included. A stop token, taken last, has no configuration.
#[derive(Clone, Debug)]
pub struct Matcher {
    masks: Arc<GrammarMasks>,
    runtime: Arc<EngineThreads>,
    background_parser: Arc<BackgroundParser>,
    epoch: u64,
    configs: Vec<ConfigId>,
    tokens: Vec<TokenId>,
    terminated: bool,
    limit: Option<ParserLimit>,
    fuel: SequenceFuel,
}

impl Matcher {
    /// Writes the mask of the next token: bit `t % 32` of word `t / 32` is 1 iff token `t` may
    /// follow.
    ///
    /// `mask` should have [`Vocabulary::mask_words`] words; further words become 0, and a shorter
    /// slice gets the words that fit. Stop tokens are allowed exactly where the grammar may end.
    /// After a stop token only stop tokens are allowed. The same holds where the parser reaches a
    /// limit (see [`Matcher::limit`]), so that the sequence ends. No token is allowed where none
    /// spells what must follow, which takes a vocabulary without some bytes
    /// ([`Vocabulary::missing_bytes`]).
    ///
    /// Cost: one look-up and one copy if the mask is cached.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, RegexOptions, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"ab"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("ab*", &RegexOptions::default())?.matcher();
    /// let mut mask = vec![0u32; vocab.mask_words()];
    /// matcher.fill_mask(&mut mask);
    /// // `a` has id 97, and `ab` id 257.
    /// assert_eq!(mask[97 / 32], 1 << (97 % 32));
    /// assert_eq!(mask[257 / 32], 1 << (257 % 32));
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_mask(&mut self, mask: &mut [u32]) {
        match self.mask() {
            Ok(built) => built.write(mask),
            Err(_) => write_stop_tokens(&self.masks.vocab, mask),
        }
    }

    /// Makes `row` the mask that [`Matcher::fill_mask`] would write, and returns whether it
    /// changed. Any row will do, also one that was another matcher's. Cost: the difference from a
    /// mask that the row had before; see [`MaskRow`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, MaskRow, RegexOptions, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("a+", &RegexOptions::default())?.matcher();
    /// let mut row = MaskRow::new(engine.vocab());
    /// assert!(matcher.update_mask(&mut row));
    /// assert!(!matcher.update_mask(&mut row));
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_mask(&mut self, row: &mut MaskRow) -> bool {
        let mask = self.mask().ok();
        row.update(&self.masks.vocab, mask)
    }

    /// As [`Matcher::mask_locked`]; takes the lock only if needed.
    fn mask(&mut self) -> Result<Arc<TokenSet>, Termination> {
        match self.termination() {
            Some(termination) => Err(termination),
            None => self.mask_locked(&mut self.masks.clone().lock()),
        }
    }

    /// The mask of the next token, or why only stop tokens may follow. A limit that the parser
    /// reaches ends the sequence.
    fn mask_locked(&mut self, state: &mut MaskState) -> Result<Arc<TokenSet>, Termination> {
        if let Some(termination) = self.termination() {
            return Err(termination);
        }
        let mask = self.with_retry(state, Payer::Sequence, |matcher, state| {
            matcher.masks.mask(state, matcher.config())
        });
        #[cfg(any(test, feature = "fault-injection"))]
        let mask = match self.runtime.counters.is_fault_due(2) {
            true => Err(ParserLimit::Memory),
            false => mask,
        };
        mask.map_err(|limit| {
            self.count_limit(limit);
            self.limit = Some(limit);
            Termination::Limit(limit)
        })
    }

    /// Takes a token. On an error the matcher is unchanged. Cost: one table look-up a byte once
    /// transitions are cached.
    ///
    /// Errors: [`AdvanceError::Rejected`] if the token may not follow,
    /// [`AdvanceError::UnknownToken`] if no token has this id, [`AdvanceError::Terminated`] after a
    /// stop token, [`AdvanceError::Limit`] if the parser reaches a limit.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{AdvanceError, Engine, EngineOptions, RegexOptions, TokenId, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[b"ax"])), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("ab", &RegexOptions::default())?.matcher();
    /// let token = TokenId::from_raw(257);
    /// // Its second byte is wrong.
    /// assert_eq!(matcher.advance(token), Err(AdvanceError::Rejected { token, offset: 1 }));
    /// matcher.advance(TokenId::from_raw(b'a'.into()))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn advance(&mut self, token: TokenId) -> Result<(), AdvanceError> {
        self.advance_locked(&mut self.masks.clone().lock(), token, TransitionUse::Skip)
    }

    /// As [`Matcher::advance`], and reports to the tracer which labelled rule each byte belongs to.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{
    ///     Engine, EngineOptions, Expr, GrammarBuilder, Label, TokenId, Tracer, Vocabulary,
    /// };
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut grammar = GrammarBuilder::new();
    /// let name = grammar.labelled("name", Label::from_raw(7), Expr::text("ann"));
    /// let start = grammar.rule("start", Expr::seq([Expr::text("hi "), Expr::Ref(name)]));
    /// let mut matcher = engine.compile(grammar.finish(start)?)?.matcher();
    /// let mut tracer = Tracer::new();
    /// for byte in *b"hi ann" {
    ///     matcher.advance_traced(TokenId::from_raw(byte.into()), &mut tracer)?;
    /// }
    /// let spans = tracer.finish();
    /// let labelled = spans.iter().find(|span| span.label == Some(Label::from_raw(7)));
    /// assert_eq!(labelled.map(|span| &span.bytes[..]), Some(&b"ann"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn advance_traced(
        &mut self,
        token: TokenId,
        tracer: &mut Tracer,
    ) -> Result<(), AdvanceError> {
        let masks = self.masks.clone();
        let mut state = masks.lock();
        self.advance_locked(&mut state, token, TransitionUse::Cache)?;
        if self.terminated {
            return Ok(());
        }
        let before = self.configs[self.configs.len() - 2];
        let parser = &mut state.parser;
        let mut traced = false;
        if let Some(bytes) = masks.symbols_of(token).bytes {
            // `advance_locked` cached all these transitions, so they cannot fail.
            let mut config = before;
            let mut steps = Vec::with_capacity(bytes.len());
            for &byte in bytes {
                let next = parser.step_tracking_keys(config, byte).unwrap_or(ConfigId::DEAD);
                steps.push((byte, parser.trace(config, Symbol::Byte(byte), next)));
                config = next;
            }
            if config != ConfigId::DEAD {
                steps.iter().for_each(|&(byte, step)| tracer.push(&[byte], step));
                traced = true;
            }
        }
        if !traced && let Some(special) = masks.specials_of(token).next() {
            let next = self.config();
            let step = parser.trace(before, Symbol::Special(special), next);
            tracer.push(masks.vocab.text(token), step);
        }
        Ok(())
    }

    /// Whether a token may follow. Cost: stepping its bytes; makes no mask.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, RegexOptions, TokenId, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("a", &RegexOptions::default())?.matcher();
    /// assert!(matcher.allows(TokenId::from_raw(b'a'.into())));
    /// assert!(!matcher.allows(TokenId::from_raw(b'b'.into())));
    /// # Ok(())
    /// # }
    /// ```
    pub fn allows(&mut self, token: TokenId) -> bool {
        self.find_allowed(token).unwrap_or(false)
    }

    /// As [`Matcher::allows`], or the limit that prevents an answer.
    fn find_allowed(&mut self, token: TokenId) -> Result<bool, ParserLimit> {
        if self.is_over() {
            return Ok(self.masks.vocab.is_stop(token));
        }
        let step = self.with_lock(|matcher, state| {
            let config = matcher.config();
            TokenStep::find(&matcher.masks, state, config, token, TransitionUse::Skip)
        });
        step.map(|step| matches!(step, TokenStep::Next(_) | TokenStep::Stop))
    }

    /// Takes back the last `n` tokens, or all of them if there are fewer. Cost: O(n); the mask of
    /// the restored configuration is usually cached. Also clears [`Matcher::limit`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, RegexOptions, TokenId, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("a|b", &RegexOptions::default())?.matcher();
    /// matcher.advance(TokenId::from_raw(b'a'.into()))?;
    /// matcher.rollback(1);
    /// matcher.advance(TokenId::from_raw(b'b'.into()))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn rollback(&mut self, n: usize) {
        for _ in 0..n.min(self.tokens.len()) {
            self.tokens.pop();
            if !std::mem::take(&mut self.terminated) {
                self.configs.pop();
            }
        }
        self.limit = None;
        if self.tokens.is_empty() {
            // As a new matcher.
            self.fuel = SequenceFuel::default();
        }
    }

    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        &self.masks.vocab
    }

    /// Fuel of one mask or token, in units: the engine's
    /// [`Limits::mask_fuel`](crate::limits::Limits::mask_fuel).
    pub fn mask_fuel(&self) -> u64 {
        self.masks.limits().mask_fuel
    }

    /// Fuel of the masks and tokens of a sequence as long as this one, in units: the engine's
    /// [`Limits::sequence_budget`](crate::limits::Limits::sequence_budget).
    pub fn sequence_fuel(&self) -> u64 {
        self.masks.limits().sequence_budget(self.tokens.len() as u64)
    }

    /// The tokens taken so far, a stop token included.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Whether the text so far is a sentence of the grammar, so that a stop token is allowed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, RegexOptions, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("a?", &RegexOptions::default())?.matcher();
    /// assert!(matcher.is_complete() && !matcher.is_terminated());
    /// matcher.advance(vocab.stops()[0])?;
    /// assert!(matcher.is_terminated());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_complete(&mut self) -> bool {
        self.with_lock(|matcher, state| Ok(state.parser.store().is_complete(matcher.config())))
            .unwrap_or(false)
    }

    /// Whether a stop token has been taken.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// The limit that the parser reached, if it did. From then on only stop tokens are allowed,
    /// until a [`Matcher::rollback`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::{Engine, EngineOptions, Limits, MaskRow, SchemaOptions, Vocabulary};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[]));
    /// let options = EngineOptions::default().with_limits(Limits::default().with_mask_fuel(1));
    /// let engine = Engine::new(vocab.clone(), options);
    /// let mut matcher = engine.compile_json_schema("{}", &SchemaOptions::default())?.matcher();
    /// let mut mask = MaskRow::new(&vocab);
    /// matcher.update_mask(&mut mask);
    /// assert_eq!(matcher.limit(), Some("fuel for one mask or token"));
    /// assert!(mask.allows(vocab.stops()[0]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit(&self) -> Option<&'static str> {
        self.limit.map(ParserLimit::what)
    }

    /// The configuration after the tokens taken so far.
    fn config(&self) -> ConfigId {
        self.configs[self.configs.len() - 1]
    }

    /// Takes a token under the constraint's lock.
    fn advance_locked(
        &mut self,
        state: &mut MaskState,
        token: TokenId,
        transitions: TransitionUse,
    ) -> Result<(), AdvanceError> {
        if self.terminated {
            return Err(AdvanceError::Terminated);
        }
        if !self.masks.vocab.is_used(token) {
            return Err(AdvanceError::UnknownToken { token });
        }
        if let Some(limit) = self.limit {
            if !self.masks.vocab.is_stop(token) {
                return Err(limit.into());
            }
            self.terminated = true;
            self.tokens.push(token);
            return Ok(());
        }
        let step = self.with_retry(state, Payer::Sequence, |matcher, state| {
            TokenStep::find(&matcher.masks, state, matcher.config(), token, transitions)
        });
        match step {
            Err(limit) => {
                self.count_limit(limit);
                return Err(limit.into());
            }
            Ok(TokenStep::Rejected(offset)) => {
                return Err(AdvanceError::Rejected { token, offset });
            }
            Ok(TokenStep::Stop) => self.terminated = true,
            Ok(TokenStep::Next(next)) => self.configs.push(next),
        }
        self.tokens.push(token);
        self.fuel.reach(self.tokens.len());
        Ok(())
    }

    /// Counts a limit that was reached. Cancelled work has reached none.
    fn count_limit(&self, limit: ParserLimit) {
        let is_reached = limit != ParserLimit::Cancelled;
        runtime::count(&self.runtime.counters.limits_reached, usize::from(is_reached));
    }

    /// As [`Matcher::with_retry`], and nobody pays; takes the constraint's lock.
    fn with_lock<T>(
        &mut self,
        work: impl Fn(&Matcher, &mut MaskState) -> Result<T, ParserLimit>,
    ) -> Result<T, ParserLimit> {
        self.with_retry(&mut self.masks.clone().lock(), Payer::Nobody, work)
    }

    /// Runs `work` with configurations of the current epoch. If memory runs out, empties the
    /// caches, replays the tokens and runs it once more.
    fn with_retry<T>(
        &mut self,
        state: &mut MaskState,
        payer: Payer,
        work: impl Fn(&Matcher, &mut MaskState) -> Result<T, ParserLimit>,
    ) -> Result<T, ParserLimit> {
        let mut attempt = |state: &mut MaskState| {
            // Each token of a replay has a budget of its own. The sequence does not pay for it:
            // other sequences may have filled the caches.
            self.replay(state)?;
            // No token leads to the dead configuration, so the start itself reached a limit.
            if self.config() == ConfigId::DEAD {
                return Err(state.parser.start_limit());
            }
            let mask_fuel = self.masks.limits().mask_fuel;
            if payer == Payer::Nobody {
                return fuel::with_budget(mask_fuel, || work(self, state));
            }
            let budget = mask_fuel.min(self.fuel.left(self.masks.limits()));
            let (result, units) = fuel::measure(|| fuel::with_budget(budget, || work(self, state)));
            self.fuel.charge(units);
            let is_spent = self.fuel.left(self.masks.limits()) == 0;
            result.map_err(|limit| match limit {
                ParserLimit::Fuel if is_spent => ParserLimit::SequenceFuel,
                other => other,
            })
        };
        state.clear_if_full();
        match attempt(state) {
            // Other sequences may have filled the caches.
            Err(ParserLimit::Memory) => {
                state.clear();
                attempt(state)
            }
            other => other,
        }
    }

    /// Finds this matcher's configurations again after the caches were emptied.
    fn replay(&mut self, state: &mut MaskState) -> Result<(), ParserLimit> {
        if self.epoch == state.epoch {
            return Ok(());
        }
        let mut configs = Vec::with_capacity(self.configs.len());
        configs.push(state.parser.start());
        for &token in &self.tokens[..self.configs.len() - 1] {
            let before = configs[configs.len() - 1];
            let masks = &self.masks;
            configs.push(fuel::with_budget(masks.limits().mask_fuel, || {
                state.step_token(masks, before, token)
            })?);
        }
        self.configs = configs;
        self.epoch = state.epoch;
        state.record_replay_bytes();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
