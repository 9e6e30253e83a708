//! Masks near a bound on length, counted in code points.
//!
//! Such a mask equals the mask without the bound, except for tokens with at least as many code
//! points as are left. There are few of these, so each is tested with the parser.
//!
//! Two representations of bounds are covered: budgets of code points of a rule
//! ([`GrammarMasks::build_near_code_point_budget`]), and steps of counted graphs
//! ([`GrammarMasks::mask_near_length_limit`]).

use super::found_mask::FoundMask;
use super::grammar_masks::GrammarMasks;
use super::mask_state::MaskState;
use super::subtraction::filter_tokens;
use super::token_set::TokenSet;
use crate::matcher::{ConfigId, ParserLimit};

/// Most tokens that are tested one by one for a budget. Beyond, the whole trie is walked.
const MAX_BUDGET_TOKENS: usize = 4096;
/// Most tokens that are tested one by one for a counted graph. Beyond, the mask is built from
/// entries.
const MAX_STEP_TOKENS: usize = 2048;

impl GrammarMasks {
    /// The mask of a configuration near the end of a budget of `chars` code points. Falls back to
    /// one walk of the trie where too many tokens are that long.
    pub(super) fn build_near_code_point_budget(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        chars: u32,
    ) -> Result<TokenSet, ParserLimit> {
        let long_tokens = self.vocab.by_chars().at_least(chars);
        if long_tokens.len() > MAX_BUDGET_TOKENS {
            return self.build_by_walk(state, config);
        }
        let unbounded = state.parser.without_char_budgets(config);
        let unbounded_mask = self.mask(state, unbounded)?;
        let mut accepted = Vec::new();
        let mut rejected = filter_tokens(long_tokens.iter().copied(), |token| {
            let is_accepted = state.accepts_bytes(&self.vocab, config, token)?;
            accepted.extend(is_accepted.then_some(token));
            Ok(!is_accepted)
        })?;
        self.drop_special_tokens(state, config, &mut rejected)?;
        Ok(unbounded_mask.with_changes(&rejected, &accepted, self.vocab.mask_words()))
    }

    /// The mask of a configuration near the upper bound of a counted graph. None where no such
    /// bound is near, and where too many tokens are as long as what is left.
    pub(super) fn mask_near_length_limit(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<Option<FoundMask>, ParserLimit> {
        let Some(mut near_bound) = state.parser.near_step_bound(config) else { return Ok(None) };
        let long_tokens = self.vocab.by_chars().at_least(near_bound.chars);
        if long_tokens.len() > MAX_STEP_TOKENS {
            return Ok(None);
        }
        let unbounded_mask = self.mask(state, near_bound.unbounded)?;
        let long_tokens = self.filter_by_mask(state, &unbounded_mask, long_tokens);
        let rejected = filter_tokens(long_tokens, |token| {
            let bytes = self.vocab.bytes(token).unwrap_or_default();
            Ok(match state.parser.keeps_step_bound(&mut near_bound, bytes)? {
                Some(fits) => !fits,
                None => !state.accepts_bytes(&self.vocab, config, token)?,
            })
        })?;
        self.subtract(state, config, unbounded_mask, rejected).map(Some)
    }
}
