//! Subtraction of rejected tokens from the mask of a relaxed configuration.
//!
//! A constraint that states do not express is left out of a configuration. The mask of the result
//! is shared by many configurations; the tokens that the constraint rejects are taken out of it.

use std::sync::Arc;

use super::found_mask::FoundMask;
use super::grammar_masks::GrammarMasks;
use super::mask_state::MaskState;
use super::token_set::TokenSet;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, ParserLimit};

/// Those of some tokens that pass a test, which a limit of the parser may end.
pub(super) fn filter_tokens(
    tokens: impl IntoIterator<Item = TokenId>,
    mut passes: impl FnMut(TokenId) -> Result<bool, ParserLimit>,
) -> Result<Vec<TokenId>, ParserLimit> {
    let mut passing = Vec::new();
    for token in tokens {
        if passes(token)? {
            passing.push(token);
        }
    }
    Ok(passing)
}

impl GrammarMasks {
    /// Those of some tokens that the configuration rejects.
    pub(super) fn rejected_tokens(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        tokens: &[TokenId],
    ) -> Result<Vec<TokenId>, ParserLimit> {
        filter_tokens(tokens.iter().copied(), |token| {
            Ok(state.step_token(self, config, token)? == ConfigId::DEAD)
        })
    }

    /// The mask of another configuration without rejected tokens.
    pub(super) fn subtract(&self, mask: Arc<TokenSet>, rejected: &[TokenId]) -> FoundMask {
        if rejected.is_empty() {
            return FoundMask { mask, is_new: false };
        }
        FoundMask::new(mask.changed(rejected, &[], self.vocab.mask_words()))
    }

    /// As [`GrammarMasks::subtract`] for tokens that repeat a value or key. An empty result is an
    /// error: the search for another value was bounded.
    pub(super) fn subtract_repeated(
        &self,
        mask: Arc<TokenSet>,
        rejected: &[TokenId],
    ) -> Result<FoundMask, ParserLimit> {
        let remaining = self.subtract(mask, rejected);
        if remaining.is_new && remaining.mask.is_empty() {
            return Err(ParserLimit::Search);
        }
        Ok(remaining)
    }
}
