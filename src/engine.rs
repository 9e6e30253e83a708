//! Stage 6, the door: a vocabulary, options and shared caches in; constraints and matchers out.

mod ahead;
mod background;
mod batch;
mod captures;
mod compile;
mod draft;
mod forced;
mod inspect;
mod kept;
mod resume;
mod shared;
mod shortest;

use std::borrow::Cow;
use std::sync::Arc;

use crate::compile::{CompileError, Compiled};
use crate::fuel;
use crate::ids::TokenId;
use crate::ir::{Grammar, Simplify};
use crate::limits::Limits;
use crate::mask::{
    AdvanceOver, Index, IndexState, MaskRow, PoolScope, PoolStats, Pooling, TokenSet, Ways,
};
use crate::matcher::{AdvanceError, ConfigId, DEAD, Parser, ParserLimit, Tracer};
use crate::switches::Switches;
use crate::vocab::Vocabulary;

use ahead::Ahead;
pub use ahead::{PrepareBudget, PrepareReport, Prepared};
pub use batch::{BatchError, RowStatus, UniqueRows};
pub use captures::Capture;
pub use compile::{
    RegexCompileError, SchemaCompileError, StructuralTagCompileError, TextCompileError,
};
pub use draft::{DraftError, DraftNode, DraftTree};
pub use forced::{Piece, Tokenize};
pub use inspect::{Expected, Refusal};
use kept::Kept;
pub use resume::ResumeError;
use shared::Shared;
pub use shared::{EngineStats, ProcessStats, process_stats};
pub use shortest::{Completion, CompletionOptions};

/// Without counters: most nodes of a repeat that is written out, and of all of a grammar.
const UNCOUNTED: usize = 2_000;
const UNCOUNTED_TOTAL: usize = 100_000;

/// Tokens that a matcher has room for from the beginning. A list that grows while it is short asks the allocator again and again, and what
/// that answers late, as behind a grammar that has just been dropped, is many times what a token costs.
const TOKENS: usize = 1024;

/// How an [`Engine`] works.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bounds on every request.
    pub limits: Limits,
    /// Memory of the mask entries and finished masks that grammars share, in bytes; what has not been used lately makes room. With 0 nothing is kept.
    pub pool_bytes: usize,
    /// With whom they are shared; see there for engines that ask for different budgets.
    pub pool_scope: PoolScope,
    /// Memory of the constraints that are kept for who asks for the same again, in bytes, with their configurations and masks, as measured when constraints
    /// are asked for: [`Engine::compile_json_schema`], [`Engine::compile_json_schema_in`] without a registry, and [`Engine::kept`]. Those not asked for lately make
    /// room. With 0 nothing is kept.
    pub grammar_cache_bytes: usize,
    /// Nodes of the vocabulary's trie that a new mask may cost by one direct walk before it is put together from pooled
    /// entries of single states instead; at most a quarter of them, unless that is less than 1,024. Changes no mask; 0 always uses entries.
    pub direct_walk: usize,
    /// Grammars with so many mutually recursive rules, as the expressions of a programming language have, are read rule by rule from the first
    /// mask on, so that what one place of an expression has cost is known in the others; grammars with fewer are where that turns out to pay. Changes no
    /// mask; 0 reads all that way.
    pub mutual_rules: usize,
    /// How much a grammar is simplified before it is compiled. Changes no mask.
    pub simplify: Simplify,
    /// The same for grammars that people write as text: EBNF and Lark. `Full` by default: one chain of rules per level of an
    /// expression is costly where masks are made, and gone once it is written out.
    pub simplify_texts: Simplify,
    /// Parts that can be switched off, to see what they are worth.
    pub switches: Switches,
    /// Threads of [`Engine::fill_masks`], started when a batch first needs them; 1 does everything on the calling thread.
    /// The default is the machine's parallelism, at most 8.
    pub batch_threads: usize,
    /// Threads of [`Constraint::prepare`] and [`Matcher::prefetch`], started when first needed; with 0 those do nothing.
    pub background_threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
        EngineOptions {
            limits: Limits::default(),
            pool_bytes: 256 << 20,
            pool_scope: PoolScope::default(),
            grammar_cache_bytes: 64 << 20,
            direct_walk: 16_384,
            mutual_rules: 24,
            simplify: Simplify::default(),
            simplify_texts: Simplify::Full,
            switches: Switches::default(),
            batch_threads: parallelism.min(8),
            background_threads: 1,
        }
    }
}

/// One model's engine. Cheap to share in an `Arc`; all methods take `&self`.
#[derive(Debug)]
pub struct Engine {
    vocab: Arc<Vocabulary>,
    pooling: Arc<Pooling>,
    options: EngineOptions,
    shared: Arc<Shared>,
    kept: Kept,
}

impl Engine {
    /// An engine for this vocabulary.
    pub fn new(vocab: Arc<Vocabulary>, options: EngineOptions) -> Self {
        let pooling = Arc::new(Pooling::new(&vocab, options.pool_scope, options.pool_bytes));
        let shared = Arc::new(Shared::new(&options));
        let kept = Kept::new(options.grammar_cache_bytes);
        Engine { vocab, pooling, options, shared, kept }
    }

    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// The options.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// How masks and the shared mask entries are used.
    pub fn pool_stats(&self) -> PoolStats {
        self.pooling.stats()
    }

    /// What batches, drafts and work ahead came to.
    pub fn stats(&self) -> EngineStats {
        EngineStats {
            ahead_used: self.pooling.stats().ahead_used,
            grammars: self.kept.stats(),
            ..self.shared.stats()
        }
    }

    /// Simplifies and compiles a grammar and binds it to the vocabulary. No mask is built yet.
    pub fn compile(&self, grammar: impl Into<Arc<Grammar>>) -> Result<Constraint, CompileError> {
        self.compile_at(grammar, self.options.simplify)
    }

    /// As [`Engine::compile`], simplified as much as `level` says, whatever the options say.
    pub fn compile_at(
        &self,
        grammar: impl Into<Arc<Grammar>>,
        level: Simplify,
    ) -> Result<Constraint, CompileError> {
        fuel::with_default_budget(
            || self.options.limits.compile_fuel,
            || self.simplify_and_bind(grammar.into(), level),
        )
    }

    fn simplify_and_bind(
        &self,
        grammar: Arc<Grammar>,
        level: Simplify,
    ) -> Result<Constraint, CompileError> {
        let simplified = match level {
            // Compiling validates the grammar itself.
            Simplify::Off => None,
            level => match grammar.simplify(level)? {
                Cow::Borrowed(_) => None,
                Cow::Owned(simplified) => Some(Arc::new(simplified)),
            },
        };
        let mut grammar = simplified.unwrap_or(grammar);
        // Out of fuel, a simplification ends early.
        fuel::check().map_err(|out| CompileError::fuel(&grammar, grammar.start.raw(), out))?;
        if !self.options.switches.counters.is_on() {
            grammar.validate()?;
            grammar = Arc::new(grammar.uncounted(UNCOUNTED, UNCOUNTED_TOTAL));
        }
        self.bind(Arc::new(Compiled::new(grammar, &self.options.limits)?))
    }

    /// Binds an already compiled grammar (shared between vocabularies) to the vocabulary. Fails if the vocabulary lacks a
    /// special token of the grammar.
    pub fn bind(&self, compiled: Arc<Compiled>) -> Result<Constraint, CompileError> {
        let index = fuel::with_default_budget(
            || self.options.limits.compile_fuel,
            || self.index(compiled),
        )?;
        Ok(Constraint {
            index: Arc::new(index),
            shared: self.shared.clone(),
            ahead: Arc::default(),
        })
    }

    fn index(&self, compiled: Arc<Compiled>) -> Result<Index, CompileError> {
        let grammar = compiled.grammar().clone();
        let index = Index::new(
            compiled,
            self.vocab.clone(),
            self.pooling.clone(),
            &self.options.limits,
            Ways {
                direct_walk: self.options.direct_walk,
                mutual_rules: self.options.mutual_rules,
                switches: self.options.switches,
            },
        )?;
        // Out of fuel, the parser has no beginning.
        match fuel::check() {
            Ok(()) => Ok(index),
            Err(out) => Err(CompileError::fuel(&grammar, grammar.start.raw(), out)),
        }
    }
}

/// A compiled grammar bound to a vocabulary, with its caches. Cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct Constraint {
    index: Arc<Index>,
    shared: Arc<Shared>,
    ahead: Arc<Ahead>,
}

impl Constraint {
    /// A matcher at the beginning.
    pub fn matcher(&self) -> Matcher {
        let state = self.index.lock();
        let (start, epoch) = (state.parser.start(), state.epoch);
        drop(state);
        let mut configs = Vec::with_capacity(TOKENS + 1);
        configs.push(start);
        Matcher {
            index: self.index.clone(),
            shared: self.shared.clone(),
            ahead: self.ahead.clone(),
            epoch,
            configs,
            tokens: Vec::with_capacity(TOKENS),
            terminated: false,
            limit: None,
        }
    }

    /// Makes the mask of the beginning, so that a grammar whose first mask is too much work is
    /// refused before anything is generated. The mask is kept for the matchers.
    ///
    /// Errors: [`CompileError::Fuel`] past [`Limits::mask_fuel`](crate::limits::Limits::mask_fuel),
    /// [`CompileError::Start`] where another limit was reached.
    pub fn make_first_mask(&self) -> Result<(), CompileError> {
        let mut matcher = self.matcher();
        matcher.mask(&self.index);
        match matcher.limit {
            None => Ok(()),
            Some(limit) => Err(self.index.lock().start_error(limit, &self.index)),
        }
    }

    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        &self.index.vocab
    }

    /// The compiled grammar.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.index.compiled
    }

    /// Memory of what grows while it is used, that of work ahead included; none while someone else has the lock.
    fn bytes(&self) -> Option<usize> {
        Some(self.index.try_lock()?.bytes() + self.ahead.bytes()?)
    }
}

/// Where one sequence is in its constraint. Small; `clone` is an independent fork.
///
/// Invariant: `configs` holds the configuration after each prefix of the byte and special tokens in `tokens`; a stop
/// token, taken last, has none.
#[derive(Clone, Debug)]
pub struct Matcher {
    index: Arc<Index>,
    shared: Arc<Shared>,
    ahead: Arc<Ahead>,
    epoch: u64,
    configs: Vec<ConfigId>,
    tokens: Vec<TokenId>,
    terminated: bool,
    limit: Option<ParserLimit>,
}

impl Matcher {
    /// Writes the mask of the next token: bit `t % 32` of word `t / 32` is 1 iff token `t` may follow. `mask` should have
    /// [`Vocabulary::mask_words`] words; further words become 0. Stop tokens are allowed exactly where the grammar may
    /// end; after a stop token only stop tokens are. Should the parser run into a limit (see [`Matcher::limit`]), only stop
    /// tokens are allowed, so that the sequence ends.
    pub fn fill_mask(&mut self, mask: &mut [u32]) {
        let index = self.index.clone();
        match self.mask(&index) {
            Some(built) => built.write(mask),
            None => stops_only(&index.vocab, mask),
        }
    }

    /// Makes a row the mask of the next token, as [`Matcher::fill_mask`] would write it; whether it has become another one. Any row will do, also one
    /// that was another matcher's. Cost: what differs from masks that the row has been; see [`MaskRow`].
    pub fn update_mask(&mut self, row: &mut MaskRow) -> bool {
        let index = self.index.clone();
        row.update(&index.vocab, self.mask(&index))
    }

    /// As [`Matcher::mask_locked`]; without the lock where that is not needed.
    fn mask(&mut self, index: &Index) -> Option<Arc<TokenSet>> {
        if self.is_over() { None } else { self.mask_locked(index, &mut index.lock()) }
    }

    /// Nothing but a stop token can follow, whatever the grammar says.
    fn is_over(&self) -> bool {
        self.terminated || self.limit.is_some()
    }

    /// The mask of the next token; `None` where only stop tokens are allowed because the sequence is over, or because the
    /// parser ran into a limit.
    fn mask_locked(&mut self, index: &Index, state: &mut IndexState) -> Option<Arc<TokenSet>> {
        if self.is_over() {
            return None;
        }
        match self.with_retry(index, state, |matcher, state| index.mask(state, matcher.config())) {
            Ok(built) => Some(built),
            Err(limit) => {
                shared::count(&self.shared.counters.limits_reached, 1);
                self.limit = Some(limit);
                None
            }
        }
    }

    /// Takes a token. On an error the state is unchanged. Cost: one table look-up a byte once transitions are known.
    pub fn advance(&mut self, token: TokenId) -> Result<(), AdvanceError> {
        let index = self.index.clone();
        let mut state = index.lock();
        self.advance_locked(&index, &mut state, (token, Parser::advance_over))
    }

    /// As [`Matcher::advance`], and tells the tracer what each byte was.
    pub fn advance_traced(
        &mut self,
        token: TokenId,
        tracer: &mut Tracer,
    ) -> Result<(), AdvanceError> {
        let index = self.index.clone();
        let mut state = index.lock();
        self.advance_locked(&index, &mut state, (token, Parser::advance_by_byte))?;
        if self.terminated {
            return Ok(());
        }
        let before = self.configs[self.configs.len() - 2];
        let parser = &mut state.parser;
        let mut traced = false;
        if let Some(bytes) = index.vocab.bytes(token) {
            // All transitions were taken just now, so they are known and cannot fail.
            let mut at = before;
            let mut steps = Vec::with_capacity(bytes.len());
            for &byte in bytes {
                let next = parser.advance(at, byte).unwrap_or(DEAD);
                steps.push((byte, parser.trace(at, byte, next)));
                at = next;
            }
            if at != DEAD {
                steps.iter().for_each(|&(byte, step)| tracer.push(&[byte], step));
                traced = true;
            }
        }
        if !traced
            && let Some(special) = index.specials.iter().position(|tokens| tokens.contains(token))
        {
            let next = self.config();
            let step = parser.trace_special(before, special as u32, next);
            let name = index
                .vocab
                .special_name(token)
                .map(str::as_bytes)
                .or_else(|| index.vocab.bytes(token));
            tracer.push(name.unwrap_or_default(), step);
        }
        Ok(())
    }

    /// Whether a token may follow, without a mask.
    pub fn allows(&mut self, token: TokenId) -> bool {
        let index = self.index.clone();
        let mut state = index.lock();
        if self.terminated || self.limit.is_some() {
            return index.vocab.is_stop(token);
        }
        let stepped = self.with_retry(&index, &mut state, |matcher, state| {
            let config = matcher.config();
            let complete = state.parser.store().done(config).root;
            Ok(state.step_token(&index, config, token)?.0 != DEAD
                || complete && index.vocab.is_stop(token))
        });
        stepped.unwrap_or(false)
    }

    /// Takes back the last `n` tokens (all of them if there are fewer).
    pub fn rollback(&mut self, n: usize) {
        for _ in 0..n.min(self.tokens.len()) {
            self.tokens.pop();
            if !std::mem::take(&mut self.terminated) {
                self.configs.pop();
            }
        }
        self.limit = None;
    }

    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        &self.index.vocab
    }

    /// Fuel of one mask or token: [`Limits::mask_fuel`](crate::limits::Limits::mask_fuel) of the
    /// engine.
    pub fn mask_fuel(&self) -> u64 {
        self.index.mask_fuel()
    }

    /// Tokens taken so far.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Whether the text so far is a whole sentence of the grammar (a stop token is allowed).
    pub fn is_complete(&mut self) -> bool {
        let index = self.index.clone();
        let mut state = index.lock();
        let result = self.with_retry(&index, &mut state, |matcher, state| {
            Ok(state.parser.store().done(matcher.config()).root)
        });
        result.unwrap_or(false)
    }

    /// Whether a stop token has been taken.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// The limit the parser ran into, if it did: from here on only stop tokens are allowed.
    pub fn limit(&self) -> Option<&'static str> {
        self.limit.map(ParserLimit::what)
    }

    fn config(&self) -> ConfigId {
        self.configs[self.configs.len() - 1]
    }

    fn advance_locked(
        &mut self,
        index: &Index,
        state: &mut IndexState,
        (token, over): (TokenId, AdvanceOver),
    ) -> Result<(), AdvanceError> {
        if self.terminated {
            return Err(AdvanceError::Terminated);
        }
        if !index.vocab.is_used(token) {
            return Err(AdvanceError::UnknownToken { token });
        }
        let step = self.with_retry(index, state, |matcher, state| {
            let config = matcher.config();
            let (next, offset) = state.step_token_by(index, (config, token), over)?;
            Ok((next, offset, next == DEAD && state.parser.store().done(config).root))
        });
        match step {
            Err(limit) => {
                shared::count(&self.shared.counters.limits_reached, 1);
                Err(AdvanceError::Limit { what: limit.what() })
            }
            Ok((DEAD, _, true)) if index.vocab.is_stop(token) => {
                self.terminated = true;
                self.tokens.push(token);
                Ok(())
            }
            Ok((DEAD, offset, _)) => Err(AdvanceError::Rejected { token, offset }),
            Ok((next, _, _)) => {
                self.configs.push(next);
                self.tokens.push(token);
                Ok(())
            }
        }
    }

    /// Runs `work` with configurations of the current epoch; once more with emptied caches if memory ran out.
    fn with_retry<T>(
        &mut self,
        index: &Index,
        state: &mut IndexState,
        work: impl Fn(&Matcher, &mut IndexState) -> Result<T, ParserLimit>,
    ) -> Result<T, ParserLimit> {
        let fuel = index.mask_fuel();
        // What an emptied parser begins with has a budget of its own, and so has each token of a replay.
        fuel::limited(fuel, || state.relieve());
        self.replay(index, state)?;
        // No token leads to the dead configuration, so the start itself was too much.
        if self.config() == DEAD {
            return Err(state.parser.start_limit());
        }
        match fuel::limited(fuel, || work(self, state)) {
            Err(ParserLimit::Memory) => {
                fuel::limited(fuel, || state.clear());
                self.replay(index, state)?;
                fuel::limited(fuel, || work(self, state))
            }
            other => other,
        }
    }

    /// Finds this matcher's configurations again after the caches were emptied.
    fn replay(&mut self, index: &Index, state: &mut IndexState) -> Result<(), ParserLimit> {
        if self.epoch == state.epoch {
            return Ok(());
        }
        let mut configs = Vec::with_capacity(self.configs.len());
        configs.push(state.parser.start());
        for &token in &self.tokens[..self.configs.len() - 1] {
            let before = configs[configs.len() - 1];
            let (next, _) =
                fuel::limited(index.mask_fuel(), || state.step_token(index, before, token))?;
            configs.push(next);
        }
        self.configs = configs;
        self.epoch = state.epoch;
        state.settle();
        Ok(())
    }
}

/// Writes a row that allows stop tokens only.
fn stops_only(vocab: &Vocabulary, mask: &mut [u32]) {
    mask.fill(0);
    for &stop in vocab.stops() {
        crate::mask::set_bit(mask, stop);
    }
}

#[cfg(test)]
mod bounded_work;
#[cfg(test)]
mod pools;
#[cfg(test)]
mod tests;
