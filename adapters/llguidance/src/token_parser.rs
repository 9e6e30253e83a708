//! One sequence of tokens under a grammar.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::{Result, anyhow, bail, ensure};
use louver::{AdvanceError, MaskRow};
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokenId};

use crate::api::{ParserLimits, StopReason, TopLevelGrammar};
use crate::cancel::{Cancellation, CancellationHandle, Cancelled};
use crate::compile::{Findings, compile};
use crate::earley::ParserStats;
use crate::logger::Logger;
use crate::masks;
use crate::tokens::TokenSpace;

/// Longest forced text that is looked for at once, in bytes.
const MAX_FORCED: usize = 2_000;

/// The state of one sequence. It is started with or without a prompt, and then takes masks and
/// tokens in turns. [`crate::Matcher`] is the same with fewer duties for its caller.
///
/// ```
/// use llguidance::ParserFactory;
/// use llguidance::api::TopLevelGrammar;
/// use llguidance::toktrie::ApproximateTokEnv;
///
/// # fn main() -> anyhow::Result<()> {
/// let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env())?;
/// let mut parser = factory.create_parser(TopLevelGrammar::from_regex("ab"))?;
/// parser.start_without_prompt();
/// assert_eq!(parser.force_bytes(), b"ab");
/// parser.consume_token(u32::from(b'a'))?;
/// parser.consume_token(u32::from(b'b'))?;
/// assert!(parser.check_stop()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TokenParser {
    /// The tokenizer.
    pub token_env: TokEnv,
    /// What the host can do.
    pub inference_caps: InferenceCapabilities,
    /// The log.
    pub logger: Logger,
    /// The limits.
    pub limits: ParserLimits,
    pub(crate) space: Arc<TokenSpace>,
    findings: Arc<Findings>,
    /// Its tokens are those taken; the end of the text is one of them.
    matcher: louver::Matcher,
    row: MaskRow,
    progress: Progress,
    pub(crate) cancellation: Cancellation,
    /// Counters of all steps, and of the last one.
    stats: (ParserStats, ParserStats),
}

/// How far the parser is.
#[derive(Clone, Default)]
struct Progress {
    started: bool,
    /// How many tokens may be consumed.
    max_tokens: Option<usize>,
    /// Forced tokens that were found and not yet consumed.
    forced: VecDeque<TokenId>,
    stop_reason: StopReason,
    error: Option<String>,
    texts: Texts,
}

/// What the tokens derive, made when it is asked for.
#[derive(Clone, Default)]
struct Texts {
    bytes: OnceLock<Vec<u8>>,
    /// Or the limit that was reached, which stops the parser.
    captures: OnceLock<Result<Vec<(String, Vec<u8>)>, String>>,
}

impl TokenParser {
    /// A parser for the first grammar of a list, not started yet.
    pub(crate) fn new(
        space: Arc<TokenSpace>,
        list: &TopLevelGrammar,
        mut logger: Logger,
        inference_caps: InferenceCapabilities,
        limits: ParserLimits,
    ) -> Result<TokenParser> {
        let (constraint, findings) = compile(&space, list, &limits)?;
        findings.warnings.iter().for_each(|warning| logger.warn(warning));
        Ok(TokenParser {
            token_env: space.env.clone(),
            inference_caps,
            logger,
            limits,
            matcher: constraint.matcher(),
            row: MaskRow::new(&space.vocab),
            space,
            findings,
            progress: Progress { max_tokens: list.max_tokens, ..Progress::default() },
            cancellation: Cancellation::default(),
            stats: Default::default(),
        })
    }

    /// Starts with an empty prompt. Panics if the parser was started.
    pub fn start_without_prompt(&mut self) {
        assert!(self.is_fresh(), "start_without_prompt() needs a fresh parser");
        self.progress.started = true;
    }

    /// Starts with a prompt. Returns the prompt to use: the tokens that the grammar forces first
    /// are appended, as the tokenizer makes them after the prompt. Panics if the parser was
    /// started, or the tokenizer is not canonical.
    pub fn process_prompt(&mut self, mut prompt: Vec<TokenId>) -> Vec<TokenId> {
        assert!(self.token_env.tokenize_is_canonical(), "the tokenizer is not canonical");
        self.start_without_prompt();
        self.find_forced_tokens(&prompt);
        prompt.extend(self.consume_ff_tokens().unwrap_or_default());
        prompt
    }

    /// The mask of the next token, and errors for a stopped parser, or one that no token can
    /// follow. Where text is forced and the tokenizer is canonical, the mask is the token that the
    /// tokenizer would choose.
    pub fn compute_mask(&mut self) -> Result<SimpleVob> {
        let started = Instant::now();
        self.check_running("compute_mask")?;
        let mask = self.step(TokenParser::mask)?;
        let compute_time_us = started.elapsed().as_micros() as u64;
        self.count(ParserStats { compute_time_us, ..ParserStats::default() });
        Ok(mask)
    }

    /// The mask, without checks.
    fn mask(&mut self) -> Result<SimpleVob> {
        if let Some(&token) = self.compute_ff_tokens().first() {
            return Ok(masks::tokens_mask(&[token], self.token_env.tok_trie().vocab_size()));
        }
        self.matcher.update_mask(&mut self.row);
        if let Some(limit) = self.matcher.limit() {
            return Err(self.limit_reached(limit));
        }
        let mask = self.space.masks.mask(&self.row);
        if mask.is_zero() {
            return Err(self.stop(StopReason::NoExtensionBias, "NoExtensionBias"));
        }
        Ok(mask)
    }

    /// Takes a token. Returns how many tokens the host should take back, which is none.
    pub fn consume_token(&mut self, token: TokenId) -> Result<usize> {
        self.check_running("consume_token")?;
        if self.progress.max_tokens == Some(self.num_tokens()) {
            return Err(self.stop(StopReason::MaxTokensTotal, "max_tokens_total reached"));
        }
        let trie = self.token_env.tok_trie();
        if trie.vocab_size() <= token as usize {
            let message = format!("token id {token} out of range");
            return Err(self.stop(StopReason::InternalError, message));
        }
        let definitive_bytes = trie.token_len(token);
        self.step(|parser| parser.take(token))?;
        self.count(ParserStats { rows: 1, definitive_bytes, ..ParserStats::default() });
        Ok(0)
    }

    /// Moves over a token.
    fn take(&mut self, token: TokenId) -> Result<()> {
        let engine_token = self.engine_token(token);
        match self.matcher.advance(engine_token) {
            Ok(()) => {}
            Err(AdvanceError::Limit { what }) => return Err(self.limit_reached(what)),
            Err(error) => {
                let refusal = self.matcher.refusal(engine_token).ok().flatten();
                let why = refusal.map_or_else(|| error.to_string(), |why| why.to_string());
                let text = self.token_env.tok_trie().token_str(token);
                let what =
                    format!("Parser Error: token {text:?} doesn't satisfy the grammar; {why}");
                return Err(self.stop(StopReason::ParserTooComplex, what));
            }
        }
        if self.progress.forced.pop_front() != Some(token) {
            self.progress.forced.clear();
        }
        self.progress.texts = Texts::default();
        Ok(())
    }

    /// The token of the engine's vocabulary that a token stands for here: the end of the text for
    /// an end-of-sequence token where the text may end, otherwise itself.
    fn engine_token(&mut self, token: TokenId) -> louver::TokenId {
        let is_eos = self.token_env.tok_trie().eos_tokens().contains(&token);
        let is_end = is_eos && self.matcher.is_complete();
        if is_end { self.space.end() } else { louver::TokenId::from_raw(token) }
    }

    /// Stops if the text has ended or cannot go on. Returns whether the parser is stopped. An error
    /// if the captures of the whole text reach a limit.
    pub fn check_stop(&mut self) -> Result<bool> {
        self.check_started("check_stop")?;
        if self.stopped() || !self.is_accepting() {
            return Ok(self.stopped());
        }
        if self.matcher.is_terminated() || self.is_after_named_end() {
            self.progress.stop_reason = StopReason::EndOfSentence;
        } else if !self.step(TokenParser::can_continue)? {
            self.progress.stop_reason = StopReason::NoExtension;
        }
        if self.stopped() {
            // The host may look at the stop reason first, and not again after the captures.
            self.step(|parser| {
                parser.captures();
                parser.check_captures()
            })?;
        }
        Ok(self.stopped())
    }

    /// Whether the last token is an end-of-sequence token that the grammar has asked for.
    fn is_after_named_end(&self) -> bool {
        let trie = self.token_env.tok_trie();
        let is_end = |token| trie.eos_tokens().contains(&token) && trie.is_special_token(token);
        self.last_token().is_some_and(is_end)
    }

    /// The last token taken.
    fn last_token(&self) -> Option<TokenId> {
        self.matcher.tokens().last().map(|token| token.raw())
    }

    /// Whether anything may follow.
    fn can_continue(&mut self) -> Result<bool> {
        let next = self.matcher.expected(b"");
        let next = next.map_err(|error| self.limit_reached(&error.to_string()))?;
        Ok(!next.bytes.is_empty() || !next.specials.is_empty())
    }

    /// How many of these tokens may follow one after the other. An end-of-sequence token where the
    /// text may end is the last one. An id without a token is never valid.
    pub fn validate_tokens_raw(&mut self, tokens: &[TokenId]) -> Result<usize> {
        self.check_started("validate_tokens_raw")?;
        if self.is_over() {
            return Ok(0);
        }
        self.step(|parser| {
            let takes = |&&token: &&TokenId| {
                let token = parser.engine_token(token);
                parser.matcher.advance(token).is_ok()
            };
            let valid = tokens.iter().take_while(takes).count();
            parser.matcher.rollback(valid);
            Ok(valid)
        })
    }

    /// Takes tokens back. A parser that has stopped because the text was at its end goes on.
    pub fn rollback(&mut self, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.check_started("rollback")?;
        let taken = self.num_tokens();
        ensure!(count <= taken, "rollback: {count} > {taken}");
        ensure!(self.stop_reason().is_ok(), "rollback: stopped by {}", self.stop_reason());
        self.matcher.rollback(count);
        self.progress.forced.clear();
        self.progress.texts = Texts::default();
        self.progress.stop_reason = StopReason::NotStopped;
        Ok(())
    }

    /// The forced tokens; none where forced text is not tokenized.
    pub fn compute_ff_tokens(&mut self) -> Vec<TokenId> {
        let is_forcing = self.token_env.tokenize_is_canonical() && !self.findings.no_forcing;
        if self.is_over() || !is_forcing {
            return Vec::new();
        }
        if self.progress.forced.is_empty() {
            self.find_forced_tokens(self.last_token().as_slice());
        }
        self.progress.forced.iter().copied().collect()
    }

    /// Finds the forced tokens. The tokenizer gets the tokens before them, too, and its tokens
    /// count if it keeps those.
    fn find_forced_tokens(&mut self, mut before: &[TokenId]) {
        let space = &self.space;
        let found = self.matcher.forced_tokens_with(MAX_FORCED, &mut |bytes| {
            space.tokens_after(std::mem::take(&mut before), bytes)
        });
        self.progress.forced = found.iter().map(|token| token.raw()).collect();
    }

    /// Takes the forced tokens.
    pub fn consume_ff_tokens(&mut self) -> Result<Vec<TokenId>> {
        let tokens = self.compute_ff_tokens();
        tokens.iter().try_for_each(|&token| self.consume_token(token).map(drop))?;
        Ok(tokens)
    }

    /// The forced bytes, whether or not they can be tokenized.
    pub fn force_bytes(&mut self) -> Vec<u8> {
        if self.is_over() {
            return Vec::new();
        }
        let pieces = self.matcher.forced(MAX_FORCED);
        let trie = self.token_env.tok_trie();
        let bytes = |piece: louver::Piece| match piece {
            louver::Piece::Bytes(bytes) => bytes,
            louver::Piece::Special(token) => trie.decode_as_special(token.raw()),
        };
        pieces.into_iter().flat_map(bytes).collect()
    }

    /// The tokens taken, without one that ended the text.
    fn tokens(&self) -> Vec<TokenId> {
        let tokens = self.matcher.tokens().iter();
        tokens.filter(|&&token| token != self.space.end()).map(|token| token.raw()).collect()
    }

    /// The bytes of the tokens taken. Cost: once after each change, linear.
    pub fn final_bytes(&self) -> &[u8] {
        let trie = self.token_env.tok_trie();
        self.progress.texts.bytes.get_or_init(|| trie.decode_raw(&self.tokens()))
    }

    /// A message with the parser's state.
    pub fn augment_err(&self, message: impl Display) -> String {
        if !self.limits.verbose_errors {
            return format!("{message}\n<non-verbose/>");
        }
        format!("{message}\n<state>\n{}\n</state><grammar>\n</grammar>", self.dump_state())
    }

    /// The parser's state, for people.
    pub fn dump_state(&self) -> String {
        let tokens = self.token_env.tok_trie().tokens_dbg(&self.tokens());
        let error = self.progress.error.as_deref().unwrap_or("None");
        let (stats, stop) = (&self.stats.0, self.stop_reason());
        format!("Tokens: {tokens}\nParser: {stats}\nStop: {stop}\nError: {error}")
    }

    /// Adds the counters of a step.
    fn count(&mut self, step: ParserStats) {
        let (all, last) = &mut self.stats;
        all.compute_time_us += step.compute_time_us;
        all.rows += step.rows;
        all.definitive_bytes += step.definitive_bytes;
        *last = step;
    }

    /// The last text that was captured under a name.
    pub fn get_capture(&self, name: &str) -> Option<&[u8]> {
        let found = self.captures().iter().rev().find(|(of, _)| of == name);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// What rules with a capture name have derived, in the order in which they ended. None at a
    /// limit, which stops the parser. Cost: once after each change, that of parsing the text.
    pub fn captures(&self) -> &[(String, Vec<u8>)] {
        let found = self.progress.texts.captures.get_or_init(|| {
            let captures = self.matcher.clone().captures().map_err(|error| error.to_string())?;
            Ok(captures.into_iter().map(|capture| (capture.name, capture.bytes)).collect())
        });
        found.as_ref().map_or(&[], Vec::as_slice)
    }

    /// The limit that captures have reached.
    fn limit_of_captures(&self) -> Option<&str> {
        self.progress.texts.captures.get()?.as_ref().err().map(String::as_str)
    }

    /// An error if captures have reached a limit.
    pub(crate) fn check_captures(&self) -> Result<()> {
        self.limit_of_captures().map_or(Ok(()), |limit| bail!(limit_message(limit)))
    }

    /// Without effect: masks are exact, cached or not.
    pub fn invalidate_bias_cache(&mut self) {}

    /// Does a step that ends when it is cancelled.
    fn step<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Some(handle) = self.cancellation.0.clone() else { return work(self) };
        let done = handle.run(|| work(self));
        if handle.is_cancelled() {
            self.stop(StopReason::Cancelled, Cancelled.to_string());
            bail!(Cancelled);
        }
        done
    }

    /// Stops with an error.
    fn stop(&mut self, reason: StopReason, message: impl Into<String>) -> anyhow::Error {
        self.progress.stop_reason = reason;
        anyhow!(self.progress.error.insert(message.into()).clone())
    }

    /// Stops at a limit.
    fn limit_reached(&mut self, limit: &str) -> anyhow::Error {
        self.stop(reason_of_limit(limit), limit_message(limit))
    }

    /// An error for a parser that was not started.
    fn check_started(&self, what: &str) -> Result<()> {
        ensure!(self.progress.started, "process_prompt() not called in {what}");
        Ok(())
    }

    /// An error for a parser that is stopped or was not started.
    fn check_running(&self, what: &str) -> Result<()> {
        self.check_started(what)?;
        ensure!(!self.cancellation.is_cancelled(), Cancelled);
        let message = self.error_message();
        let message = message.as_deref().unwrap_or("no error message");
        ensure!(!self.is_over(), "parser stopped in {what}; {message}");
        Ok(())
    }

    /// Whether no token can be taken any more.
    fn is_over(&self) -> bool {
        self.stopped() || self.matcher.is_terminated()
    }
    /// Whether the text may end here.
    pub fn is_accepting(&mut self) -> bool {
        self.matcher.is_complete()
    }

    /// Whether the parser is stopped.
    pub fn stopped(&self) -> bool {
        self.stop_reason() != StopReason::NotStopped
    }

    /// Why it is stopped.
    pub fn stop_reason(&self) -> StopReason {
        let own = self.progress.stop_reason;
        self.limit_of_captures().filter(|_| own.is_ok()).map_or(own, reason_of_limit)
    }

    /// Whether it was not started yet.
    pub fn is_fresh(&self) -> bool {
        !self.progress.started
    }

    /// Whether a token may follow.
    pub fn validate_token(&mut self, token: TokenId) -> Result<bool> {
        Ok(self.validate_tokens_raw(&[token])? == 1)
    }

    /// Takes all tokens back.
    pub fn reset(&mut self) -> Result<()> {
        self.rollback(self.num_tokens())
    }

    /// A copy of its own, as a clone is. Copies share the caches of the grammar, which have a lock.
    pub fn deep_clone(&self) -> Self {
        self.clone()
    }

    /// The number of tokens taken.
    pub fn num_tokens(&self) -> usize {
        self.matcher.tokens().len()
    }

    /// Those from an offset on.
    pub fn bytes_since(&self, offset: usize) -> &[u8] {
        self.final_bytes().get(offset..).unwrap_or_default()
    }

    /// The temperature that the grammar asks for here; None if it is 0.
    pub fn temperature(&self) -> Option<f32> {
        self.matcher.clone().temperature().filter(|&temperature| temperature != 0.0)
    }

    /// The error that the parser has stopped with.
    pub fn error_message(&self) -> Option<String> {
        let of_captures = || self.limit_of_captures().map(limit_message);
        self.progress.error.clone().or_else(of_captures)
    }

    /// Counters of all steps.
    pub fn parser_stats(&self) -> &ParserStats {
        &self.stats.0
    }

    /// Counters of the last step.
    pub fn last_step_stats(&self) -> &ParserStats {
        &self.stats.1
    }

    /// Warnings about the grammar.
    pub fn grammar_warnings(&mut self) -> Vec<String> {
        self.findings.warnings.clone()
    }

    /// Makes the parser stop when the returned handle is cancelled.
    pub fn enable_cancellation(&mut self) -> CancellationHandle {
        self.cancellation.enable()
    }

    /// The handle, if there is one.
    pub fn cancellation_handle(&self) -> Option<CancellationHandle> {
        self.cancellation.0.clone()
    }
}

/// The stop reason at a limit.
fn reason_of_limit(limit: &str) -> StopReason {
    let is_fuel = limit.contains("fuel");
    if is_fuel { StopReason::LexerTooComplex } else { StopReason::ParserTooComplex }
}

/// The error at a limit.
fn limit_message(limit: &str) -> String {
    format!("parser error: {limit}")
}
