//! The end of a sequence: whether a stop token is accepted, and why nothing else may follow. Masks
//! get their stop tokens from `mask::GrammarMasks`, by configuration.

use super::Matcher;
use crate::ids::TokenId;
use crate::mask::{GrammarMasks, MaskState, set_bit};
use crate::matcher::{ConfigId, ParserLimit, TransitionUse};
use crate::vocab::Vocabulary;

/// Why only stop tokens may follow, regardless of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Termination {
    /// A stop token has been taken.
    Stopped,
    /// The parser reached a limit.
    Limit(ParserLimit),
}

impl Matcher {
    /// Why the sequence is over; `None` if it is not.
    pub(super) fn termination(&self) -> Option<Termination> {
        match (self.terminated, self.limit) {
            (true, _) => Some(Termination::Stopped),
            (false, limit) => limit.map(Termination::Limit),
        }
    }

    /// Whether only stop tokens may follow, regardless of the grammar.
    pub(super) fn is_over(&self) -> bool {
        self.termination().is_some()
    }
}

/// Where a token leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenStep {
    /// To this configuration.
    Next(ConfigId),
    /// To the end: it is a stop token, and the text is complete. A stop token that the grammar has
    /// as a special token leads on.
    Stop,
    /// Nowhere: the grammar rejects the byte at this offset in the token.
    Rejected(usize),
}

impl TokenStep {
    /// The step from a configuration that `token` takes.
    pub(super) fn find(
        masks: &GrammarMasks,
        state: &mut MaskState,
        config: ConfigId,
        token: TokenId,
        transitions: TransitionUse,
    ) -> Result<TokenStep, ParserLimit> {
        let is_complete = state.parser.store().is_complete(config);
        let reached = state.parser.step_token(config, masks.symbols_of(token), transitions)?;
        Ok(match reached.config {
            ConfigId::DEAD if is_complete && masks.vocab.is_stop(token) => TokenStep::Stop,
            ConfigId::DEAD => TokenStep::Rejected(reached.accepted),
            next => TokenStep::Next(next),
        })
    }
}

/// Writes a row that allows stop tokens only.
pub(super) fn write_stop_tokens(vocab: &Vocabulary, mask: &mut [u32]) {
    mask.fill(0);
    for &stop in vocab.stops() {
        set_bit(mask, stop);
    }
}
