//! One sequence for hosts that mask: errors are states.

use anyhow::{Result, anyhow, bail, ensure};
use toktrie::{SimpleVob, TokEnv, TokenId};

use crate::api::StopReason;
use crate::cancel::{Cancellation, CancellationHandle, Cancelled};
use crate::earley::ParserStats;
use crate::panic_utils::guard;
use crate::token_parser::TokenParser;

/// One sequence of tokens under a grammar. After an error every call fails with its message, for
/// good. A clone goes its own way, and its cancellation is its own.
///
/// ```
/// use llguidance::api::{StopReason, TopLevelGrammar};
/// use llguidance::toktrie::ApproximateTokEnv;
/// use llguidance::{Matcher, ParserFactory};
///
/// # fn main() -> anyhow::Result<()> {
/// let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env())?;
/// let mut matcher = Matcher::new(factory.create_parser(TopLevelGrammar::from_regex("ab?")));
/// let [a, b] = *b"ab";
/// assert_eq!(matcher.validate_tokens(&[a.into(), a.into()])?, 1);
/// matcher.consume_tokens(&[a.into(), b.into()])?;
/// assert_eq!(matcher.stop_reason(), StopReason::NoExtension);
/// matcher.rollback(1)?;
/// assert!(!matcher.is_stopped() && matcher.is_accepting()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Matcher(Result<Box<TokenParser>, (String, Cancellation)>);

impl Matcher {
    /// A matcher for a parser, which is started if it was not. The error of a parser that could not
    /// be made is the matcher's.
    pub fn new(parser: Result<TokenParser>) -> Self {
        let failed = |message| Err((message, Cancellation::default()));
        Matcher(match parser {
            // With the grammar of a list in which it is.
            Err(error) => failed(format!("{error:#}")),
            Ok(p) if p.inference_caps.backtrack => failed("backtracking not supported".to_owned()),
            Ok(mut parser) => {
                if parser.is_fresh() {
                    parser.start_without_prompt();
                }
                Ok(Box::new(parser))
            }
        })
    }

    /// Does a step; an error becomes the state.
    fn step<T>(&mut self, work: impl FnOnce(&mut TokenParser) -> Result<T>) -> Result<T> {
        let parser = self.0.as_mut().map_err(|(message, _)| anyhow!(message.clone()))?;
        ensure!(!parser.cancellation.is_cancelled(), Cancelled);
        match guard(|| parser.check_captures().and_then(|()| work(parser))) {
            Err(error) if !error.is::<Cancelled>() => {
                parser.logger.warn(&format!("{error}; stopping"));
                let message = parser.augment_err(&error);
                let cancellation = std::mem::take(&mut parser.cancellation);
                self.0 = Err((message.clone(), cancellation));
                Err(anyhow!(message))
            }
            done => done,
        }
    }

    /// The parser, unless an error has ended it.
    fn parser(&self) -> Result<&TokenParser> {
        let parser = self.0.as_ref().map_err(|(message, _)| anyhow!(message.clone()))?;
        ensure!(!parser.cancellation.is_cancelled(), Cancelled);
        parser.check_captures()?;
        Ok(parser)
    }

    /// Takes tokens, and then stops if the text is at its end.
    pub fn consume_tokens(&mut self, tokens: &[TokenId]) -> Result<()> {
        self.step(|parser| {
            tokens.iter().try_for_each(|&token| parser.consume_token(token).map(drop))?;
            parser.check_stop().map(drop)
        })
    }

    /// Takes tokens as long as they are right and the text is not at its end. Returns how many.
    pub fn try_consume_tokens(&mut self, tokens: &[TokenId]) -> Result<usize> {
        self.step(|parser| {
            for (taken, &token) in tokens.iter().enumerate() {
                if parser.stopped() || !parser.validate_token(token)? {
                    return Ok(taken);
                }
                parser.consume_token(token)?;
                parser.check_stop()?;
            }
            Ok(tokens.len())
        })
    }

    /// The mask of the next token: the end-of-sequence tokens where the matcher is stopped.
    pub fn compute_mask_or_eos(&mut self) -> Result<SimpleVob> {
        self.step(|parser| match parser.stopped() {
            true => Ok(parser.space.masks.end_mask.clone()),
            false => parser.compute_mask(),
        })
    }

    /// Takes the forced tokens and returns them.
    pub fn consume_ff_tokens(&mut self) -> Vec<TokenId> {
        let tokens = self.compute_ff_tokens();
        let are_taken = !tokens.is_empty() && self.consume_tokens(&tokens).is_ok();
        if are_taken { tokens } else { Vec::new() }
    }

    /// Why it is stopped.
    pub fn stop_reason(&self) -> StopReason {
        match &self.0 {
            Ok(parser) if parser.cancellation.is_cancelled() => StopReason::Cancelled,
            Ok(parser) => parser.stop_reason(),
            Err(_) => StopReason::InternalError,
        }
    }

    /// Without effect: masks are exact, cached or not.
    pub fn invalidate_bias_cache(&mut self) {}

    /// The same matcher, which stops when its handle is cancelled.
    #[must_use]
    pub fn into_cancellable(mut self) -> Self {
        match &mut self.0 {
            Ok(parser) => parser.cancellation.enable(),
            Err((_, cancellation)) => cancellation.enable(),
        };
        self
    }
    /// Takes a token.
    pub fn consume_token(&mut self, token: TokenId) -> Result<()> {
        self.consume_tokens(&[token])
    }

    /// How many of these tokens may follow one after the other.
    pub fn validate_tokens(&mut self, tokens: &[TokenId]) -> Result<usize> {
        self.step(|parser| parser.validate_tokens_raw(tokens))
    }

    /// The mask of the next token; an error where the matcher is stopped.
    pub fn compute_mask(&mut self) -> Result<SimpleVob> {
        self.step(TokenParser::compute_mask)
    }

    /// The forced tokens.
    pub fn compute_ff_tokens(&mut self) -> Vec<TokenId> {
        self.step(|parser| Ok(parser.compute_ff_tokens())).unwrap_or_default()
    }

    /// The forced bytes.
    pub fn compute_ff_bytes(&mut self) -> Vec<u8> {
        self.step(|parser| Ok(parser.force_bytes())).unwrap_or_default()
    }

    /// Takes tokens back.
    pub fn rollback(&mut self, count: usize) -> Result<()> {
        self.step(|parser| parser.rollback(count))
    }

    /// Takes all tokens back.
    pub fn reset(&mut self) -> Result<()> {
        self.step(TokenParser::reset)
    }

    /// Whether the text may end here.
    pub fn is_accepting(&mut self) -> Result<bool> {
        self.step(|parser| Ok(parser.is_accepting()))
    }

    /// Whether only the end can follow, or an error has ended the matcher.
    pub fn is_stopped(&self) -> bool {
        self.parser().map_or(true, TokenParser::stopped)
    }

    /// Whether an error has ended the matcher.
    pub fn is_error(&self) -> bool {
        self.parser().is_err()
    }

    /// That error.
    pub fn get_error(&self) -> Option<String> {
        self.parser().err().map(|error| error.to_string())
    }

    /// Warnings about the grammar.
    pub fn grammar_warnings(&mut self) -> Vec<String> {
        self.step(|parser| Ok(parser.grammar_warnings())).unwrap_or_default()
    }

    /// The tokenizer.
    pub fn tok_env(&self) -> Result<TokEnv> {
        self.parser().map(|parser| parser.token_env.clone())
    }

    /// Counters of the last step.
    pub fn last_step_stats(&self) -> Result<&ParserStats> {
        self.parser().map(TokenParser::last_step_stats)
    }

    /// The last text that was captured under a name.
    pub fn get_capture(&self, name: &str) -> Option<&[u8]> {
        self.parser().ok()?.get_capture(name)
    }

    /// What rules with a capture name have derived. None at a limit, which ends the matcher.
    pub fn captures(&self) -> &[(String, Vec<u8>)] {
        self.parser().map_or(&[], TokenParser::captures)
    }

    /// A copy of its own.
    pub fn deep_clone(&self) -> Self {
        self.clone()
    }

    /// Fails on purpose, as a panic inside would.
    pub fn test_trigger_lexer_error(&mut self) -> Result<()> {
        self.step(|_| bail!("panic: synthetic error for tests"))
    }

    /// The handle, if there is one.
    pub fn cancellation_handle(&self) -> Option<CancellationHandle> {
        match &self.0 {
            Ok(parser) => parser.cancellation_handle(),
            Err((_, cancellation)) => cancellation.0.clone(),
        }
    }

    /// Whether cancellation has ended the matcher.
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_ok_and(|parser| parser.cancellation.is_cancelled())
    }
}
