//! One sequence for hosts that take forced tokens and reports as well.

use anyhow::{Result, anyhow, bail, ensure};
use toktrie::{StepResult, TokTrie, TokenId};

use crate::api::StopReason::NoExtensionBias;
use crate::output::ParserOutput;
use crate::token_parser::TokenParser;

/// What a host does after a token.
#[derive(Clone, Debug, Default)]
pub struct CommitResult {
    /// Whether the generation is over.
    pub stop: bool,
    /// How many tokens to take back; 0.
    pub backtrack: u32,
    /// The tokens to append: the sampled one, and those that the grammar forces after it.
    pub ff_tokens: Vec<TokenId>,
}

impl CommitResult {
    /// The end of a generation.
    pub fn stop() -> Self {
        CommitResult { stop: true, ..CommitResult::default() }
    }

    /// What a step without a mask asks for.
    pub fn from_step_result(step: &StepResult) -> Self {
        let (stop, splice) = (step.is_stop(), step.unconditional_splice());
        let backtrack = splice.map_or(0, |splice| splice.backtrack);
        let ff_tokens = splice.map_or_else(Vec::new, |splice| splice.ff_tokens.clone());
        CommitResult { stop, backtrack, ff_tokens }
    }
}

/// A sequence of steps: [`Constraint::compute_mask`], sampling, [`Constraint::commit_token`].
///
/// ```
/// use llguidance::api::TopLevelGrammar;
/// use llguidance::toktrie::ApproximateTokEnv;
/// use llguidance::{Constraint, ParserFactory};
///
/// # fn main() -> anyhow::Result<()> {
/// let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env())?;
/// let grammar = TopLevelGrammar::from_regex("[ab]");
/// let mut constraint = Constraint::new(factory.create_parser(grammar)?);
/// assert!(constraint.compute_mask()?.sample_mask.is_some());
/// assert_eq!(constraint.commit_token(Some(97))?.ff_tokens, [97]);
/// assert!(constraint.compute_mask()?.is_stop());
/// assert!(constraint.commit_token(None)?.stop);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Constraint {
    /// The parser.
    pub parser: TokenParser,
    /// Whether reports go to the log.
    pub log_json_progress: bool,
    /// The last temperature that the grammar has asked for.
    pub temperature: f32,
    step: StepResult,
    /// Bytes, tokens and captures that were reported, and whether the final text was.
    reported: (usize, usize, usize, bool),
    pending_stop: bool,
}

impl Constraint {
    /// A constraint for a parser. Panics if the parser was started.
    pub fn new(parser: TokenParser) -> Self {
        assert!(parser.is_fresh(), "Parser was already used");
        Constraint {
            parser,
            log_json_progress: false,
            temperature: 0.0,
            step: StepResult::noop(),
            reported: (0, 0, 0, false),
            pending_stop: false,
        }
    }

    /// The mask of the next token, or the end.
    pub fn compute_mask(&mut self) -> Result<&StepResult> {
        ensure!(!self.step.is_stop(), self.parser.augment_err("compute_mask() called after stop"));
        if self.parser.is_fresh() {
            self.parser.start_without_prompt();
        }
        self.pending_stop = self.parser.check_stop()?;
        let step = if self.pending_stop {
            StepResult::stop()
        } else {
            match self.parser.compute_mask() {
                Ok(mask) => StepResult::sample(mask, self.parser.temperature()),
                Err(_) if self.parser.stop_reason() == NoExtensionBias => StepResult::stop(),
                Err(error) => bail!(self.parser.augment_err(error)),
            }
        };
        self.end_step(step);
        Ok(&self.step)
    }

    /// Takes the sampled token, and the tokens that are forced after it if the host can take them.
    /// An error where no mask was asked for since the last token: none is dropped.
    pub fn commit_token(&mut self, sampled: Option<TokenId>) -> Result<CommitResult> {
        if self.step.is_stop() {
            return Ok(CommitResult::from_step_result(&self.step));
        }
        let token = match (&self.step.sample_mask, sampled) {
            (Some(_), Some(token)) => Ok(token),
            (Some(_), None) => Err("sampled_token is required when mask was present"),
            (None, _) => Err("commit_token() called without compute_mask()"),
        };
        let token = token.map_err(|missing| anyhow!(self.parser.augment_err(missing)))?;
        let taken = self.parser.consume_token(token);
        taken.map_err(|error| anyhow!(self.parser.augment_err(error)))?;
        let mut ff_tokens = vec![token];
        self.pending_stop = self.parser.check_stop()?;
        if !self.pending_stop && self.parser.inference_caps.ff_tokens {
            ff_tokens.extend(self.parser.consume_ff_tokens()?);
            self.pending_stop = self.parser.check_stop()?;
        }
        self.end_step(StepResult::splice(0, ff_tokens));
        Ok(CommitResult::from_step_result(&self.step))
    }

    /// Keeps the temperature that the grammar asks for, if it does.
    fn keep_temperature(&mut self) {
        self.temperature = self.parser.temperature().unwrap_or(self.temperature);
    }

    /// Keeps the result of a step; writes reports to the log, if asked for.
    fn end_step(&mut self, step: StepResult) {
        self.step = step;
        self.keep_temperature();
        if !self.log_json_progress {
            return;
        }
        for output in self.flush_progress() {
            let line = serde_json::to_string(&output).unwrap_or_default();
            self.parser.logger.write_buffer(&format!("JSON-OUT: {line}\n"));
        }
    }

    /// What was generated since the last call.
    pub fn flush_progress(&mut self) -> Vec<ParserOutput> {
        let (bytes, tokens, captures, is_final) = self.reported;
        let mut outputs = Vec::new();
        let all = self.parser.final_bytes().len();
        if all > bytes {
            outputs.push(ParserOutput::Text {
                bytes: self.parser.bytes_since(bytes).into(),
                log_prob: 0.0,
                // Fewer than reported, after a rollback of the parser.
                num_tokens: self.parser.num_tokens().saturating_sub(tokens),
                is_generated: true,
                stats: self.parser.last_step_stats().clone(),
            });
        }
        let found = self.parser.captures();
        outputs.extend(found.iter().skip(captures).map(|(name, bytes)| ParserOutput::Capture {
            name: name.clone(),
            bytes: bytes.as_slice().into(),
            log_prob: 0.0,
        }));
        self.reported = (all, self.parser.num_tokens(), found.len(), self.step.is_stop());
        if self.step.is_stop() && !is_final {
            outputs.push(ParserOutput::FinalText {
                bytes: self.parser.final_bytes().into(),
                stop_reason: self.parser.stop_reason(),
            });
        }
        outputs
    }
    /// Starts with an empty prompt.
    pub fn start_without_prompt(&mut self) {
        self.parser.start_without_prompt();
        self.keep_temperature();
    }

    /// A copy of its own.
    pub fn deep_clone(&self) -> Self {
        self.clone()
    }

    /// Starts with a prompt; see [`TokenParser::process_prompt`]. Without a canonical tokenizer the
    /// prompt has no effect and is returned.
    pub fn process_prompt(&mut self, prompt: Vec<TokenId>) -> Vec<TokenId> {
        if !self.parser.token_env.tokenize_is_canonical() {
            self.start_without_prompt();
            return prompt;
        }
        let prompt = self.parser.process_prompt(prompt);
        self.keep_temperature();
        prompt
    }

    /// Takes tokens that the host has chosen.
    pub fn force_tokens(&mut self, tokens: &[TokenId]) -> Result<()> {
        tokens.iter().try_for_each(|&token| self.parser.consume_token(token).map(drop))
    }

    /// Whether the next step is the last.
    pub fn has_pending_stop(&self) -> bool {
        self.pending_stop
    }

    /// The last step.
    pub fn step_result(&self) -> &StepResult {
        &self.step
    }

    /// How many of these tokens may follow. One of them can be committed then without a mask.
    pub fn validate_tokens_raw(&mut self, tokens: &[TokenId]) -> Result<usize> {
        if self.step.unconditional_splice().is_some() {
            let mask = self.tok_trie().alloc_token_set();
            self.end_step(StepResult::sample(mask, self.parser.temperature()));
        }
        self.parser.validate_tokens_raw(tokens)
    }

    /// Takes the log.
    pub fn flush_logs(&mut self) -> String {
        self.parser.logger.get_and_clear_logs()
    }

    /// The tokens of the tokenizer.
    pub fn tok_trie(&self) -> &TokTrie {
        self.parser.token_env.tok_trie()
    }
}
