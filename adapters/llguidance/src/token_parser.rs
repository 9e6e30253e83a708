//! One sequence of tokens under a grammar.

use std::fmt::{Display, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use louver::{AdvanceError, MaskRow, Refusal};
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokTrie, TokenId};

use crate::api::{ParserLimits, StopReason};
use crate::cancel::{CancellationHandle, Cancelled};
use crate::compile::SharedGrammar;
use crate::earley::ParserStats;
use crate::logger::Logger;
use crate::masks;
use crate::tokens::TokenSpace;

/// Longest forced text that is looked for at once, in bytes.
const MAX_FORCED: usize = 2_000;
/// The message for a grammar that nothing can follow.
const NO_TOKEN: &str = "NoExtensionBias";

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
    /// When the last mask was begun.
    pub compute_mask_start_time: Instant,
    /// How long the last mask took.
    pub last_bias_time: Duration,
    space: Arc<TokenSpace>,
    grammar: SharedGrammar,
    sequence: Sequence,
    cancellation: Option<CancellationHandle>,
    stats: StepStats,
}

/// What tokens have been taken, and where they lead.
#[derive(Clone)]
struct Sequence {
    matcher: louver::Matcher,
    row: MaskRow,
    started: bool,
    /// All tokens, a last one for the end included.
    tokens: Vec<TokenId>,
    /// Their bytes.
    bytes: Vec<u8>,
    /// Whether the last token ended the text.
    ended: bool,
    /// Tokens that may still be consumed.
    tokens_left: Option<usize>,
    /// Forced tokens that were found and not yet consumed.
    forced: Vec<TokenId>,
    stop_reason: StopReason,
    error: Option<String>,
    captures: OnceLock<Vec<(String, Vec<u8>)>>,
}

/// Counters: of all steps, of the last one, the greatest of each.
#[derive(Clone, Default)]
struct StepStats {
    all: ParserStats,
    last: ParserStats,
    max: ParserStats,
}

impl TokenParser {
    /// A parser that was not started yet.
    pub(crate) fn new(
        space: Arc<TokenSpace>,
        grammar: SharedGrammar,
        max_tokens: Option<usize>,
        mut logger: Logger,
        inference_caps: InferenceCapabilities,
    ) -> TokenParser {
        grammar.warnings.iter().for_each(|warning| logger.warn(warning));
        let sequence = Sequence {
            matcher: grammar.constraint.matcher(),
            row: MaskRow::new(&space.vocab),
            started: false,
            tokens: Vec::new(),
            bytes: Vec::new(),
            ended: false,
            tokens_left: max_tokens,
            forced: Vec::new(),
            stop_reason: StopReason::NotStopped,
            error: None,
            captures: OnceLock::new(),
        };
        TokenParser {
            token_env: space.env.clone(),
            inference_caps,
            logger,
            limits: ParserLimits::default(),
            compute_mask_start_time: Instant::now(),
            last_bias_time: Duration::ZERO,
            space,
            grammar,
            sequence,
            cancellation: None,
            stats: StepStats::default(),
        }
    }

    /// The same parser with other limits in its fields.
    pub(crate) fn with_limits(self, limits: ParserLimits) -> TokenParser {
        TokenParser { limits, ..self }
    }

    /// Starts with an empty prompt. Panics if the parser was started.
    pub fn start_without_prompt(&mut self) {
        assert!(self.is_fresh(), "start_without_prompt() needs a fresh parser");
        self.sequence.started = true;
    }

    /// Starts with a prompt. Returns the prompt to use: the tokens that the grammar forces first
    /// are appended, cut as the tokenizer cuts them behind the prompt. Panics if the parser was
    /// started, or the tokenizer is not canonical.
    pub fn process_prompt(&mut self, prompt: Vec<TokenId>) -> Vec<TokenId> {
        assert!(
            self.token_env.tokenize_is_canonical(),
            "process_prompt() needs a canonical tokenizer"
        );
        self.start_without_prompt();
        let env = self.token_env.clone();
        let prompt_bytes = env.tok_trie().decode_raw(&prompt);
        let forced = self.sequence.matcher.forced_tokens_with(MAX_FORCED, &mut |bytes| {
            let (found, _) = env.tokenize_bytes_marker(&[&prompt_bytes, bytes].concat());
            let behind = tokens_behind(env.tok_trie(), &found, prompt_bytes.len());
            let plain = || env.tokenize_bytes(bytes);
            behind.unwrap_or_else(plain).into_iter().map(louver::TokenId::from_raw).collect()
        });
        let mut prompt = prompt;
        for token in forced.iter().map(|token| token.raw()) {
            if self.consume_token(token).is_err() {
                break;
            }
            prompt.push(token);
        }
        prompt
    }

    /// The mask of the next token, and errors for a stopped parser, or one that no token can
    /// follow. Where text is forced and the tokenizer is canonical, the mask is the token that the
    /// tokenizer would choose.
    pub fn compute_mask(&mut self) -> Result<SimpleVob> {
        self.compute_mask_start_time = Instant::now();
        self.check_running("compute_mask")?;
        let mask = self.step(TokenParser::mask)?;
        self.last_bias_time = self.compute_mask_start_time.elapsed();
        let micros = self.last_bias_time.as_micros() as u64;
        self.count(ParserStats { compute_time_us: micros, ..ParserStats::default() });
        Ok(mask)
    }

    /// The mask, without checks.
    fn mask(&mut self) -> Result<SimpleVob> {
        let env = self.token_env.clone();
        let trie = env.tok_trie();
        if self.forces_tokens() {
            self.find_forced_tokens();
            if let Some(&token) = self.sequence.forced.first() {
                return Ok(masks::tokens_mask(&[token], trie.vocab_size()));
            }
        }
        let Sequence { matcher, row, .. } = &mut self.sequence;
        matcher.update_mask(row);
        if let Some(limit) = matcher.limit() {
            return Err(self.limit_reached(limit));
        }
        let mut mask = self.space.bases.vector(row.words(), trie.vocab_size());
        if row.allows(self.space.end()) {
            let size = mask.len() as TokenId;
            trie.eos_tokens()
                .iter()
                .filter(|&&eos| eos < size)
                .for_each(|&eos| mask.allow_token(eos));
        }
        if mask.first_bit_set().is_none() {
            return Err(self.stop(StopReason::NoExtensionBias, NO_TOKEN));
        }
        Ok(mask)
    }

    /// The mask of the end-of-sequence tokens.
    pub(crate) fn end_mask(&self) -> SimpleVob {
        let trie = self.token_env.tok_trie();
        masks::tokens_mask(trie.eos_tokens(), trie.vocab_size())
    }

    /// Takes a token. Returns how many tokens the host should take back, which is none.
    pub fn consume_token(&mut self, token: TokenId) -> Result<usize> {
        self.check_running("consume_token")?;
        if self.sequence.tokens_left == Some(0) {
            return Err(self.stop(StopReason::MaxTokensTotal, "max_tokens_total reached"));
        }
        self.check_range(token)?;
        self.step(|parser| parser.take(token))?;
        let sequence = &mut self.sequence;
        sequence.tokens_left = sequence.tokens_left.map(|left| left - 1);
        sequence.tokens.push(token);
        sequence.captures = OnceLock::new();
        Ok(0)
    }

    /// Moves over a token.
    fn take(&mut self, token: TokenId) -> Result<()> {
        if self.ends_with(token) {
            self.sequence.ended = true;
            self.sequence.forced.clear();
            return Ok(());
        }
        if let Err(error) = self.sequence.matcher.advance(louver::TokenId::from_raw(token)) {
            return Err(match error {
                AdvanceError::Limit { what } => self.limit_reached(what),
                _ => {
                    let message = self.refusal(token);
                    self.stop(StopReason::ParserTooComplex, &message)
                }
            });
        }
        let sequence = &mut self.sequence;
        match sequence.forced.first() == Some(&token) {
            true => drop(sequence.forced.remove(0)),
            false => sequence.forced.clear(),
        }
        let bytes = self.token_env.tok_trie().decode_raw(&[token]);
        sequence.bytes.extend_from_slice(&bytes);
        self.count(ParserStats {
            rows: 1,
            definitive_bytes: bytes.len(),
            ..ParserStats::default()
        });
        Ok(())
    }

    /// Whether a token would end the text: it is an end-of-sequence token, and the text may end.
    fn ends_with(&mut self, token: TokenId) -> bool {
        self.token_env.tok_trie().eos_tokens().contains(&token)
            && self.sequence.matcher.is_complete()
    }

    /// Why a token is refused.
    fn refusal(&mut self, token: TokenId) -> String {
        let shown = self.token_env.tok_trie().token_str(token);
        let matcher = &mut self.sequence.matcher;
        let forced = matcher.forced_bytes(1);
        let refusal = matcher.refusal(louver::TokenId::from_raw(token));
        let why = match refusal {
            Ok(Some(Refusal::Byte { byte, .. })) if !forced.is_empty() => {
                format!(
                    "forced bytes: got {}; applying {}",
                    shown_byte(forced[0]),
                    shown_byte(byte)
                )
            }
            Ok(Some(Refusal::Byte { byte, .. })) => {
                format!("byte {} fails parse", shown_byte(byte))
            }
            Ok(Some(refusal)) => refusal.to_string(),
            Ok(None) => "it may not follow".to_owned(),
            Err(error) => error.to_string(),
        };
        format!("Parser Error: token {shown:?} doesn't satisfy the grammar; {why}")
    }

    /// Stops if the text has ended or cannot go on. Returns whether the parser is stopped.
    pub fn check_stop(&mut self) -> Result<bool> {
        if self.stopped() {
            return Ok(true);
        }
        self.check_started("check_stop")?;
        if self.sequence.ended || self.is_at_named_end() {
            self.sequence.stop_reason = StopReason::EndOfSentence;
        } else if self.sequence.matcher.is_complete() && !self.step(TokenParser::goes_on)? {
            self.sequence.stop_reason = StopReason::NoExtension;
        }
        Ok(self.stopped())
    }

    /// Whether the last token was an end-of-sequence token of the grammar, and the text may end.
    fn is_at_named_end(&mut self) -> bool {
        let eos = self.token_env.tok_trie().eos_tokens();
        let last = self.sequence.tokens.last();
        let is_end = last.is_some_and(|&token| eos.contains(&token) && self.is_special(token));
        is_end && self.sequence.matcher.is_complete()
    }

    /// Whether a token has no text.
    fn is_special(&self, token: TokenId) -> bool {
        self.token_env.tok_trie().is_special_token(token)
    }

    /// Whether anything may follow.
    fn goes_on(&mut self) -> Result<bool> {
        match self.sequence.matcher.expected(b"") {
            Ok(next) => Ok(!next.bytes.is_empty() || !next.specials.is_empty()),
            Err(error) => Err(self.limit_reached(&error.to_string())),
        }
    }

    /// Whether the text may end here.
    pub fn is_accepting(&mut self) -> bool {
        self.sequence.ended || self.sequence.matcher.is_complete()
    }

    /// Whether the parser is stopped.
    pub fn stopped(&self) -> bool {
        self.sequence.stop_reason != StopReason::NotStopped
    }

    /// Why it is stopped.
    pub fn stop_reason(&self) -> StopReason {
        self.sequence.stop_reason
    }

    /// Whether it was not started yet.
    pub fn is_fresh(&self) -> bool {
        !self.sequence.started
    }

    /// Whether a token may follow.
    pub fn validate_token(&mut self, token: TokenId) -> Result<bool> {
        Ok(self.validate_tokens_raw(&[token])? == 1)
    }

    /// How many of these tokens may follow one after the other. An end-of-sequence token where the
    /// text may end is the last one. An id without a token is never valid.
    pub fn validate_tokens_raw(&mut self, tokens: &[TokenId]) -> Result<usize> {
        self.check_started("validate_tokens_raw")?;
        if self.stopped() || self.sequence.ended {
            return Ok(0);
        }
        self.step(|parser| {
            let mut valid = 0;
            let mut last = 0;
            for &token in tokens {
                if parser.ends_with(token) {
                    last = 1;
                    break;
                }
                if parser.sequence.matcher.advance(louver::TokenId::from_raw(token)).is_err() {
                    break;
                }
                valid += 1;
            }
            parser.sequence.matcher.rollback(valid);
            Ok(valid + last)
        })
    }

    /// Takes tokens back. A parser that has stopped because the text was at its end goes on.
    pub fn rollback(&mut self, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.check_started("rollback")?;
        let taken = self.sequence.tokens.len();
        if count > taken {
            bail!("rollback: {count} > {taken}");
        }
        if !self.stop_reason().is_ok() {
            bail!("rollback: the parser has stopped: {}", self.stop_reason());
        }
        let sequence = &mut self.sequence;
        let of_text = count - usize::from(std::mem::take(&mut sequence.ended));
        sequence.matcher.rollback(of_text);
        let trie = self.token_env.tok_trie();
        let length: usize =
            sequence.tokens[taken - count..][..of_text].iter().map(|&t| trie.token_len(t)).sum();
        sequence.bytes.truncate(sequence.bytes.len() - length);
        sequence.tokens.truncate(taken - count);
        sequence.tokens_left = sequence.tokens_left.map(|left| left + count);
        sequence.forced.clear();
        sequence.captures = OnceLock::new();
        sequence.stop_reason = StopReason::NotStopped;
        Ok(())
    }

    /// Takes all tokens back.
    pub fn reset(&mut self) -> Result<()> {
        self.rollback(self.num_tokens())
    }

    /// A copy of its own. Copies share the caches of the grammar, which have a lock.
    pub fn deep_clone(&self) -> Self {
        self.clone()
    }

    /// The forced tokens.
    pub fn compute_ff_tokens(&mut self) -> Vec<TokenId> {
        if self.stopped() || self.sequence.ended || !self.forces_tokens() {
            return Vec::new();
        }
        self.find_forced_tokens();
        self.sequence.forced.clone()
    }

    /// Takes the forced tokens.
    pub fn consume_ff_tokens(&mut self) -> Result<Vec<TokenId>> {
        let tokens = self.compute_ff_tokens();
        tokens.iter().try_for_each(|&token| self.consume_token(token).map(drop))?;
        Ok(tokens)
    }

    /// The forced bytes, whether or not they can be cut into tokens.
    pub fn force_bytes(&mut self) -> Vec<u8> {
        if self.stopped() || self.sequence.ended {
            return Vec::new();
        }
        let pieces = self.sequence.matcher.forced(MAX_FORCED);
        let trie = self.token_env.tok_trie();
        let bytes = |piece: louver::Piece| match piece {
            louver::Piece::Bytes(bytes) => bytes,
            louver::Piece::Special(token) => trie.decode_as_special(token.raw()),
        };
        pieces.into_iter().flat_map(bytes).collect()
    }

    /// Whether forced text is cut into tokens.
    fn forces_tokens(&self) -> bool {
        self.token_env.tokenize_is_canonical() && !self.grammar.no_forcing
    }

    /// Finds the forced tokens, if none are left. The tokenizer gets the last token, too, and
    /// counts if it keeps that.
    fn find_forced_tokens(&mut self) {
        let Sequence { matcher, forced, tokens, .. } = &mut self.sequence;
        if !forced.is_empty() {
            return;
        }
        let (env, mut last) = (&self.token_env, tokens.last().copied());
        let found = matcher.forced_tokens_with(MAX_FORCED, &mut |bytes| {
            if bytes.is_empty() {
                return Vec::new();
            }
            let cut = last.take().and_then(|last| tokens_after(env, last, bytes));
            let cut = cut.unwrap_or_else(|| env.tokenize_bytes(bytes));
            cut.into_iter().map(louver::TokenId::from_raw).collect()
        });
        forced.extend(found.iter().map(|token| token.raw()));
    }

    /// The number of tokens taken.
    pub fn num_tokens(&self) -> usize {
        self.sequence.tokens.len()
    }

    /// The bytes of the tokens taken.
    pub fn final_bytes(&self) -> &[u8] {
        &self.sequence.bytes
    }

    /// Those from an offset on.
    pub fn bytes_since(&self, offset: usize) -> &[u8] {
        self.sequence.bytes.get(offset..).unwrap_or_default()
    }

    /// The temperature that the grammar asks for here; None if it is 0.
    pub fn temperature(&self) -> Option<f32> {
        self.sequence.matcher.clone().temperature().filter(|&temperature| temperature != 0.0)
    }

    /// The error that the parser has stopped with.
    pub fn error_message(&self) -> Option<String> {
        self.sequence.error.clone()
    }

    /// A message with the parser's state.
    pub fn augment_err(&self, message: impl Display) -> String {
        match self.limits.verbose_errors {
            true => {
                format!("{message}\n<state>\n{}\n</state><grammar>\n</grammar>", self.dump_state())
            }
            false => format!("{message}\n<non-verbose/>"),
        }
    }

    /// The parser's state, for people.
    pub fn dump_state(&self) -> String {
        let Sequence { tokens, bytes, error, stop_reason, .. } = &self.sequence;
        let mut state = format!("Tokens: {}\n", self.token_env.tok_trie().tokens_dbg(tokens));
        let _ = writeln!(state, "{} tokens, {} bytes; grm_prefix: \"\"", tokens.len(), bytes.len());
        let _ = writeln!(state, "Flags:\nParser: {}", self.stats.all);
        let _ = writeln!(state, "Stop: {stop_reason}");
        let _ = write!(state, "Error: {}", error.as_deref().unwrap_or("None"));
        state
    }

    /// Counters of all steps.
    pub fn parser_stats(&self) -> &ParserStats {
        &self.stats.all
    }

    /// Counters of the last step.
    pub fn last_step_stats(&self) -> &ParserStats {
        &self.stats.last
    }

    /// The greatest of each counter.
    pub fn max_step_stats(&self) -> &ParserStats {
        &self.stats.max
    }

    /// Adds to the counters.
    fn count(&mut self, step: ParserStats) {
        self.stats.all.compute_time_us += step.compute_time_us;
        self.stats.all.rows += step.rows;
        self.stats.all.definitive_bytes += step.definitive_bytes;
        self.stats.max = self.stats.max.max(&step);
        self.stats.last = step;
    }

    /// Warnings about the grammar.
    pub fn grammar_warnings(&mut self) -> Vec<String> {
        self.grammar.warnings.clone()
    }

    /// The last text that was captured under a name.
    pub fn get_capture(&self, name: &str) -> Option<&[u8]> {
        let found = self.captures().iter().rev().find(|(of, _)| of == name);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// What rules with a capture name have derived, in the order in which they ended.
    pub fn captures(&self) -> &[(String, Vec<u8>)] {
        self.sequence.captures.get_or_init(|| {
            let captures = self.sequence.matcher.clone().captures().unwrap_or_default();
            captures.into_iter().map(|capture| (capture.name, capture.bytes)).collect()
        })
    }

    /// Without effect: Louver's masks are exact, cached or not.
    pub fn invalidate_bias_cache(&mut self) {}

    /// Makes the parser stop when the returned handle is cancelled.
    pub fn enable_cancellation(&mut self) -> CancellationHandle {
        self.cancellation.get_or_insert_default().clone()
    }

    /// The handle, if there is one.
    pub fn cancellation_handle(&self) -> Option<CancellationHandle> {
        self.cancellation.clone()
    }

    /// Does a step that ends when it is cancelled.
    fn step<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Some(handle) = self.cancellation.clone() else { return work(self) };
        let done = match handle.is_cancelled() {
            true => Err(anyhow!(Cancelled)),
            false => handle.run(|| work(self)),
        };
        if !handle.is_cancelled() {
            return done;
        }
        self.stop(StopReason::Cancelled, &Cancelled.to_string());
        Err(anyhow!(Cancelled))
    }

    /// Stops with an error.
    fn stop(&mut self, reason: StopReason, message: &str) -> anyhow::Error {
        self.sequence.stop_reason = reason;
        self.sequence.error = Some(message.to_owned());
        anyhow!(message.to_owned())
    }

    /// Stops at a limit.
    fn limit_reached(&mut self, limit: &str) -> anyhow::Error {
        let reason = match limit.contains("fuel") {
            true => StopReason::LexerTooComplex,
            false => StopReason::ParserTooComplex,
        };
        self.stop(reason, &format!("parser error: {limit}"))
    }

    /// An error for a parser that was not started.
    fn check_started(&self, what: &str) -> Result<()> {
        match self.sequence.started {
            true => Ok(()),
            false => bail!("process_prompt() not called in {what}"),
        }
    }

    /// An error for a parser that is stopped or was not started.
    fn check_running(&self, what: &str) -> Result<()> {
        self.check_started(what)?;
        if self.cancellation.as_ref().is_some_and(CancellationHandle::is_cancelled) {
            bail!(Cancelled);
        }
        if self.stopped() || self.sequence.ended {
            let message = self.error_message();
            bail!("parser stopped in {what}; {}", message.as_deref().unwrap_or("no error message"));
        }
        Ok(())
    }

    /// An error for an id that no token has.
    fn check_range(&mut self, token: TokenId) -> Result<()> {
        if (token as usize) < self.token_env.tok_trie().vocab_size() {
            return Ok(());
        }
        Err(self.stop(StopReason::InternalError, &format!("token id {token} out of range")))
    }
}

/// A byte as a character in quotes.
fn shown_byte(byte: u8) -> String {
    format!("'{}'", std::ascii::escape_default(byte))
}

/// The tokens of bytes behind a token, if the tokenizer keeps that token.
fn tokens_after(env: &TokEnv, last: TokenId, bytes: &[u8]) -> Option<Vec<TokenId>> {
    let before = env.tok_trie().token(last);
    if before.is_empty() || env.tok_trie().is_special_token(last) {
        return None;
    }
    let tokens = env.tokenize_bytes(&[before, bytes].concat());
    (tokens.first() == Some(&last)).then(|| tokens[1..].to_vec())
}

/// The tokens that begin behind so many bytes, if a token ends there.
fn tokens_behind(trie: &TokTrie, tokens: &[TokenId], length: usize) -> Option<Vec<TokenId>> {
    let mut at = 0;
    for (index, &token) in tokens.iter().enumerate() {
        if at == length {
            return Some(tokens[index..].to_vec());
        }
        at += trie.token_len(token);
    }
    None
}
