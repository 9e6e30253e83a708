//! The factory of parsers for one tokenizer.

use std::sync::Arc;

use anyhow::{Result, ensure};
use toktrie::{InferenceCapabilities, TokEnv};

use crate::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use crate::logger::Logger;
use crate::panic_utils::guard;
use crate::token_parser::TokenParser;
use crate::tokens::TokenSpace;

/// Makes parsers for one tokenizer. It holds the vocabulary, the engine and its caches, so there
/// should be one for each model; it can be used by many threads at once.
///
/// ```
/// use llguidance::ParserFactory;
/// use llguidance::api::TopLevelGrammar;
/// use llguidance::toktrie::ApproximateTokEnv;
///
/// # fn main() -> anyhow::Result<()> {
/// let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env())?;
/// assert!(factory.create_parser(TopLevelGrammar::from_regex("[0-9]+")).is_ok());
/// let error = factory.create_parser(TopLevelGrammar::from_lark("start: a".to_owned()));
/// assert!(error.is_err_and(|error| error.to_string().contains("`a`")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ParserFactory {
    space: Arc<TokenSpace>,
    inference_caps: InferenceCapabilities,
    limits: ParserLimits,
    /// Of new parsers.
    logger: Logger,
}

impl ParserFactory {
    /// A factory. `_slices` have no effect. Cost: one sort of the tokens.
    pub fn new(
        tok_env: &TokEnv,
        inference_caps: InferenceCapabilities,
        _slices: &[String],
    ) -> Result<Self> {
        Ok(ParserFactory {
            space: Arc::new(TokenSpace::new(tok_env)?),
            inference_caps,
            limits: ParserLimits::default(),
            logger: Logger::new(0, 1),
        })
    }

    /// A factory for hosts that only mask.
    pub fn new_simple(tok_env: &TokEnv) -> Result<Self> {
        Self::new(tok_env, InferenceCapabilities::default(), &[])
    }

    /// The same factory, sharing vocabulary and caches: slices have no effect.
    pub fn with_slices(&self, _slices: &[String]) -> Result<ParserFactory> {
        Ok(self.clone())
    }

    /// Sets the log level of the buffer.
    pub fn set_buffer_log_level(&mut self, level: u32) -> &mut Self {
        self.logger.set_buffer_level(level);
        self
    }

    /// Sets the log level of stderr.
    pub fn set_stderr_log_level(&mut self, level: u32) -> &mut Self {
        self.logger.set_stderr_level(level);
        self
    }

    /// A parser with other log levels.
    pub fn create_parser_from_init(
        &self,
        init: GrammarInit,
        buffer_log_level: u32,
        stderr_log_level: u32,
    ) -> Result<TokenParser> {
        let logger = Logger::new(buffer_log_level, stderr_log_level);
        let (caps, limits) = (self.inference_caps.clone(), self.limits.clone());
        self.create_parser_from_init_ext(init, logger, caps, limits)
    }

    /// A parser with other options. Equal grammars are compiled once for each factory.
    pub fn create_parser_from_init_ext(
        &self,
        init: GrammarInit,
        logger: Logger,
        inference_caps: InferenceCapabilities,
        limits: ParserLimits,
    ) -> Result<TokenParser> {
        let (caps, is_canonical) = (&inference_caps, self.space.env.tokenize_is_canonical());
        ensure!(!caps.ff_tokens || is_canonical, "ff_tokens requires canonical tokenization");
        ensure!(!caps.backtrack || caps.ff_tokens, "backtrack requires ff_tokens");
        let GrammarInit::Serialized(list) = init;
        guard(|| TokenParser::new(self.space.clone(), &list, logger, inference_caps, limits))
    }
    /// The limits of new parsers.
    pub fn limits(&self) -> &ParserLimits {
        &self.limits
    }

    /// The limits of new parsers, to change them.
    pub fn limits_mut(&mut self) -> &mut ParserLimits {
        &mut self.limits
    }

    /// The tokenizer.
    pub fn tok_env(&self) -> &TokEnv {
        &self.space.env
    }

    /// No log.
    pub fn quiet(&mut self) -> &mut Self {
        self.set_buffer_log_level(0).set_stderr_log_level(0)
    }

    /// The log level of the buffer.
    pub fn buffer_log_level(&self) -> u32 {
        self.logger.buffer_level()
    }

    /// The log level of stderr.
    pub fn stderr_log_level(&self) -> u32 {
        self.logger.stderr_level()
    }

    /// A parser for a grammar.
    pub fn create_parser(&self, grammar: TopLevelGrammar) -> Result<TokenParser> {
        self.create_parser_from_init_default(GrammarInit::Serialized(grammar))
    }

    /// A parser with the factory's options.
    pub fn create_parser_from_init_default(&self, init: GrammarInit) -> Result<TokenParser> {
        self.create_parser_from_init(init, self.buffer_log_level(), self.stderr_log_level())
    }
}
