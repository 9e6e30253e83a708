//! Masks at white space with a bound: those without the bound, but for tokens that have too much of it. Otherwise each byte of white
//! space that a walk reads would be a configuration of its own, at every place where white space may be.

use std::sync::Arc;

use super::index::{Index, IndexState};
use super::set::TokenSet;
use super::walk::{Stopped, Walk};
use crate::fsm::{ByteSet, LONG_GAP};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Gap, ParserLimit};

impl Index {
    /// The mask of a configuration of a grammar with gaps.
    pub(super) fn build_loosely(&self, state: &mut IndexState, config: ConfigId) -> Result<Arc<TokenSet>, ParserLimit> {
        let (loose, gap) = state.parser.loosened(config)?;
        let base = match state.held(loose) {
            Some(mask) => mask,
            None => {
                state.parser.set_loose(true);
                let built = self.build(state, loose);
                state.parser.set_loose(false);
                state.walk.clear();
                let mask = Arc::new(built?);
                state.hold(loose, &mask, (mask.bytes(), self.mask_bytes));
                mask
            }
        };
        let white = self.vocab.white_space();
        let (room, mut too_long) = match gap {
            Gap::Room(room) => (room, self.refused(state, config, white.inner())?),
            // What begins with white space is in neither mask.
            Gap::Outside if !state.parser.allowed(config).meets(&ByteSet::WHITE_SPACE) => {
                (u32::MAX, self.refused(state, config, white.inner())?)
            }
            Gap::Outside => (u32::MAX, self.refused_of_long(state, config)?),
            Gap::Mixed(room) => {
                let mut too_long = self.refused_of_long(state, config)?;
                if (room as usize) < LONG_GAP {
                    too_long.extend(self.refused(state, config, white.beyond(room))?);
                }
                (u32::MAX, too_long)
            }
        };
        too_long.sort_unstable();
        too_long.dedup();
        let others = [white.beyond(room), &too_long].concat();
        if others.is_empty() {
            return Ok(base);
        }
        let fits = |id: TokenId| white.lead(id) <= room && too_long.binary_search(&id).is_err();
        Ok(base.without(&others, fits, self.vocab.mask_words()).map_or(base, Arc::new))
    }

    /// Those of some tokens that cannot follow.
    fn refused(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        tokens: &[TokenId],
    ) -> Result<Vec<TokenId>, ParserLimit> {
        let mut out = Vec::new();
        for &token in tokens {
            if !state.reads(&self.vocab, config, token)? {
                out.push(token);
            }
        }
        Ok(out)
    }

    /// Those of the tokens with long runs of white space that cannot follow.
    fn refused_of_long(&self, state: &mut IndexState, config: ConfigId) -> Result<Vec<TokenId>, ParserLimit> {
        let long = self.vocab.white_space().long();
        let mut walk = Walk::default();
        match walk.run(&mut state.parser, long, 0, config, usize::MAX) {
            Ok(()) => {}
            Err(Stopped::Parser(limit)) => return Err(limit),
            Err(Stopped::Budget) => return Err(ParserLimit::Memory),
        }
        if walk.words.len() == long.words_below(0).len() {
            return Ok(Vec::new());
        }
        walk.words.sort_unstable();
        let refused = |id: &&TokenId| walk.words.binary_search(id).is_err();
        Ok(long.words_below(0).iter().filter(refused).copied().collect())
    }
}
