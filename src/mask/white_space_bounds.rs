//! Masks at white space with a bound: those without the bound, but for tokens that have too much of it. Otherwise each byte of white
//! space that a walk reads would be a configuration of its own, at every place where white space may be.

use std::sync::Arc;

use super::index::Index;
use super::index_state::IndexState;
use super::token_set::{TokenSet, bit, clear_bit, set_bit};
use super::trie_walk::{Stopped, Walk};
use crate::fsm::{ByteSet, LONG_GAP};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Gap, ParserLimit};

impl Index {
    /// The mask of a configuration of a grammar with gaps; whether it is one of its own.
    pub(super) fn mask_loosely(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<(Arc<TokenSet>, bool), ParserLimit> {
        let (loose, gap) = state.parser.loosened(config)?;
        let base = match state.held(loose) {
            Some(mask) => mask,
            None => {
                state.parser.set_loose(true);
                let made = self.made(state, loose);
                state.parser.set_loose(false);
                let (mask, bytes) = self.same(state, Arc::new(made?));
                state.hold(loose, &mask, (bytes, self.mask_bytes));
                mask
            }
        };
        let white = self.vocab.white_space();
        let room = if let Gap::Room(room) = gap { room } else { u32::MAX };
        // Where there is room for so much, other masks have that row, too.
        let rows = self.vocab.white_row(u32::MAX).zip(self.vocab.white_row(room.max(1)));
        let rebased = rows.and_then(|(all, some)| base.rebased(&all, &some));
        let own = rebased.is_some();
        let base = rebased.map_or(base, Arc::new);
        let mut too_long = match gap {
            Gap::Outside if state.parser.allowed(config).meets(&ByteSet::WHITE_SPACE) => {
                self.refused_of_long(state, config)?
            }
            // What begins with white space is in neither mask, or is known by how much of it there is.
            Gap::Outside | Gap::Room(_) => self.refused(state, config, white.inner())?,
            Gap::Mixed(_) => self.refused_of_long(state, config)?,
        };
        if let Gap::Mixed(least) = gap
            && (least as usize) < LONG_GAP
        {
            too_long.extend(self.refused(state, config, white.beyond(least))?);
        }
        let others = [white.beyond(room), &too_long].concat();
        if others.is_empty() {
            return Ok((base, own));
        }
        state.row.resize(self.vocab.mask_words(), 0);
        Ok(match base.without(&others, &mut state.row) {
            Some(less) => (Arc::new(less), true),
            None => (base, own),
        })
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
    fn refused_of_long(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<Vec<TokenId>, ParserLimit> {
        if let Some(white) = state.parser.endless_white(config)? {
            let mut refused = self.refused(state, config, self.vocab.white_space().mixed())?;
            refused.extend(self.vocab.white_space().runs_beside(white));
            return Ok(refused);
        }
        let long = self.vocab.white_space().long();
        let mut walk = Walk::default();
        match walk.run(&mut state.parser, long, 0, config, usize::MAX) {
            Ok(()) => {}
            Err(Stopped::Parser(limit)) => return Err(limit),
            Err(Stopped::Budget) => return Err(ParserLimit::Memory),
        }
        let all = self.vocab.white_space().all_long();
        if walk.words.len() == all.len() {
            return Ok(Vec::new());
        }
        let row = &mut state.row;
        row.resize(self.vocab.mask_words(), 0);
        walk.words.iter().for_each(|&id| set_bit(row, id));
        let refused = all.iter().filter(|id| !bit(row, **id)).copied().collect();
        walk.words.iter().for_each(|&id| clear_bit(row, id));
        Ok(refused)
    }
}
