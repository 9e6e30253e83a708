//! Masks near the end of what has bounds in code points: those without bounds, but for tokens as long as what is left, which are looked
//! at one by one.

use std::sync::Arc;

use super::index::Index;
use super::index_state::IndexState;
use super::token_set::TokenSet;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, ParserLimit};

/// Most tokens that are looked at one by one, where all else is a walk of the vocabulary, and where it may be less.
const BOUNDED_TOKENS: usize = 4096;
const FEW_TOKENS: usize = 2048;

impl Index {
    /// The mask near the end of a budget, where it is another one than without; or else one walk over the short tokens.
    pub(super) fn build_bounded(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        chars: usize,
    ) -> Result<TokenSet, ParserLimit> {
        let longest = self.vocab.of_chars(chars);
        if longest.len() > BOUNDED_TOKENS {
            return self.build_whole(state, config);
        }
        let unbounded = state.parser.unbounded(config);
        let base = self.mask(state, unbounded)?;
        let (mut less, mut more) = (Vec::new(), Vec::new());
        for &(_, token) in longest {
            match state.reads(&self.vocab, config, token)? {
                true => more.push(token),
                false => less.push(token),
            }
        }
        Ok(base.changed(&less, &more, self.vocab.mask_words()))
    }

    /// The mask near the end of what is counted in steps, and whether it is one of its own. None elsewhere, and where too many tokens are as long as
    /// what is left.
    pub(super) fn mask_near_end(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<Option<(Arc<TokenSet>, bool)>, ParserLimit> {
        let Some(mut near) = state.parser.near_its_end(config) else { return Ok(None) };
        let long = self.vocab.of_chars(near.chars);
        if long.len() > FEW_TOKENS {
            return Ok(None);
        }
        let base = self.mask(state, near.unbounded)?;
        let long: Vec<TokenId> = long.iter().map(|&(_, token)| token).collect();
        let mut less = Vec::new();
        for token in self.among(state, &base, &long) {
            let counted = state
                .parser
                .has_room_for(&mut near, self.vocab.bytes(token).unwrap_or_default())?;
            let fits = match counted {
                Some(fits) => fits,
                None => state.reads(&self.vocab, config, token)?,
            };
            if !fits {
                less.push(token);
            }
        }
        if less.is_empty() {
            return Ok(Some((base, false)));
        }
        Ok(Some((Arc::new(base.changed(&less, &[], self.vocab.mask_words())), true)))
    }
}
