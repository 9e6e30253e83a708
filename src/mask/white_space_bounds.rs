//! Masks where consecutive white space is bounded, by relaxation.
//!
//! JSON grammars bound the white space between tokens. Counting it in the parser would give each
//! byte of white space a configuration of its own, at every place where white space may be. The
//! mask is made of the *relaxed* configuration instead, in which white space has no bound and leads
//! back to the same configuration. Tokens with more white space than is left are then taken out.
//! Only tokens with long runs of white space can be among them.

use std::sync::Arc;

use super::found_mask::FoundMask;
use super::grammar_masks::GrammarMasks;
use super::mask_state::MaskState;
use super::subtraction::filter_tokens;
use super::token_set::{bit, clear_bit, set_bit};
use super::trie_walk::TrieWalk;
use crate::fsm::{ByteSet, LONG_WHITE_SPACE_RUN};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, ParserLimit, WhiteSpaceBound, with_relaxed};
use crate::vocab::NodeId;

impl GrammarMasks {
    /// The mask of a configuration of a grammar with white-space bounds.
    pub(super) fn mask_with_white_space_bound(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<FoundMask, ParserLimit> {
        let bound = state.parser.white_space_bound(config)?;
        let relaxed = state.parser.relax(config);
        let relaxed_mask = match state.masks.get(relaxed) {
            Some(mask) => mask,
            None => {
                let built = with_relaxed(state, |state| self.build(state, relaxed))?;
                let (mask, bytes) = self.intern_mask(state, Arc::new(built));
                state.insert_mask(relaxed, &mask, bytes);
                mask
            }
        };
        let white_space = self.vocab.white_space();
        let remaining =
            if let WhiteSpaceBound::Exact(remaining) = bound { remaining } else { u32::MAX };
        let mut too_long = match bound {
            WhiteSpaceBound::Outside
                if state.parser.allowed(config).meets(&ByteSet::WHITE_SPACE) =>
            {
                self.rejected_long_white_space(state, config)?
            }
            // Tokens that begin with white space are in neither mask, or the length of their white
            // space decides.
            WhiteSpaceBound::Outside | WhiteSpaceBound::Exact(_) => {
                self.rejected_by_bytes(state, config, white_space.with_inner_run())?
            }
            WhiteSpaceBound::AtLeast(_) => self.rejected_long_white_space(state, config)?,
        };
        if let WhiteSpaceBound::AtLeast(least) = bound
            && (least as usize) < LONG_WHITE_SPACE_RUN
        {
            too_long.extend(self.rejected_by_bytes(
                state,
                config,
                white_space.leading_more_than(least),
            )?);
        }
        let removed = [white_space.leading_more_than(remaining), &too_long].concat();
        // Most of these are in no mask; a mask that loses none stays shared.
        let removed = self.filter_by_mask(state, &relaxed_mask, &removed);
        self.subtract(state, config, relaxed_mask, removed)
    }

    /// Those of some tokens whose bytes the configuration rejects.
    fn rejected_by_bytes(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        tokens: &[TokenId],
    ) -> Result<Vec<TokenId>, ParserLimit> {
        let rejects = |token| Ok(!state.accepts_bytes(&self.vocab, config, token)?);
        filter_tokens(tokens.iter().copied(), rejects)
    }

    /// Those of the tokens with long runs of white space that the configuration rejects.
    fn rejected_long_white_space(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<Vec<TokenId>, ParserLimit> {
        if let Some(endless) = state.parser.endless_white_space(config)? {
            let mut rejected = self.rejected_by_bytes(
                state,
                config,
                self.vocab.white_space().long_run_with_text(),
            )?;
            rejected.extend(self.vocab.white_space().long_runs_with_other_bytes(endless));
            return Ok(rejected);
        }
        let long = self.vocab.white_space().long_trie();
        let mut walk = TrieWalk::default();
        walk.run(&mut state.parser, long, config, usize::MAX)?;
        let all_long = long.tokens_below(NodeId::ROOT);
        if walk.tokens.len() == all_long.len() {
            return Ok(Vec::new());
        }
        let row = state.walk.zero_row(self.vocab.mask_words());
        walk.tokens.iter().for_each(|&id| set_bit(row, id));
        let rejected = all_long.iter().filter(|id| !bit(row, **id)).copied().collect();
        walk.tokens.iter().for_each(|&id| clear_bit(row, id));
        Ok(rejected)
    }
}
