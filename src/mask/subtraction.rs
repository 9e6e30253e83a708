//! Subtraction of rejected tokens from the mask of a relaxed configuration.
//!
//! A constraint that states do not express is left out of a configuration. The mask of the result
//! is shared by many configurations; the tokens that the constraint rejects are taken out of it.

use std::sync::Arc;

use super::found_mask::FoundMask;
use super::grammar_masks::GrammarMasks;
use super::mask_state::MaskState;
use super::token_set::TokenSet;
use crate::ids::{SpecialId, TokenId};
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

    /// The mask of another configuration without the tokens whose text this one rejects. Those that
    /// it accepts as special tokens stay.
    pub(super) fn subtract(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        mask: Arc<TokenSet>,
        mut rejected: Vec<TokenId>,
    ) -> Result<FoundMask, ParserLimit> {
        self.drop_special_tokens(state, config, &mut rejected)?;
        if rejected.is_empty() {
            return Ok(FoundMask { mask, is_new: false });
        }
        Ok(FoundMask::new(mask.with_changes(&rejected, &[], self.vocab.mask_words())))
    }

    /// Drops the tokens that the configuration accepts as special tokens.
    pub(super) fn drop_special_tokens(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        rejected: &mut Vec<TokenId>,
    ) -> Result<(), ParserLimit> {
        if rejected.is_empty() || self.specials.is_empty() {
            return Ok(());
        }
        let specials: Vec<SpecialId> = state.parser.specials(config).collect();
        for special in specials {
            if state.parser.step_special(config, special)? != ConfigId::DEAD {
                let tokens = &self.specials[special.index()];
                rejected.retain(|&token| !tokens.contains(token));
            }
        }
        Ok(())
    }

    /// As [`GrammarMasks::subtract`] for tokens that repeat a value or key. An empty result is an
    /// error: the search for another value was bounded.
    pub(super) fn subtract_repeated(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        mask: Arc<TokenSet>,
        rejected: Vec<TokenId>,
    ) -> Result<FoundMask, ParserLimit> {
        let remaining = self.subtract(state, config, mask, rejected)?;
        if remaining.is_new && remaining.mask.is_empty() {
            return Err(ParserLimit::Search);
        }
        Ok(remaining)
    }
}
