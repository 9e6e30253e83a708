//! Masks where values must differ from earlier ones: the mask in which nothing is compared, which all such places share, without the
//! tokens that fail.
//!
//! A token fails where an element ends as one there has been, or has got to where nothing can follow. Either the element is one that
//! may still become another, and a walk along such texts finds the token; or it is one that begins behind another's end, within
//! the token: few tokens get there, the same for all places of a kind, and those are read one by one.

use std::sync::Arc;

use super::index::Index;
use super::index_state::IndexState;
use super::token_set::{TokenSet, ids};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, ParserLimit};

impl Index {
    /// The mask of a configuration in which values are compared; whether it is one of its own.
    pub(super) fn mask_compared(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<(Arc<TokenSet>, bool), ParserLimit> {
        if self.compiled.is_entangled() {
            return Ok((Arc::new(self.build_whole(state, config)?), true));
        }
        let plain = state.parser.normal(config);
        let all = self.mask(state, plain)?;
        let candidates = self.candidates(state, config, plain)?;
        let mut less = self.failing(state, config, &candidates)?;
        self.walk_compared(state, (config, plain), &mut less)?;
        self.whole_compared(state, (config, plain), &mut less)?;
        self.less(all, &less)
    }

    /// Those of some tokens that fail.
    pub(super) fn failing(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        tokens: &[TokenId],
    ) -> Result<Vec<TokenId>, ParserLimit> {
        let mut failing = Vec::new();
        for &token in tokens {
            if state.step_token(self, config, token)?.0 == DEAD {
                failing.push(token);
            }
        }
        Ok(failing)
    }

    /// A mask without tokens that fail, and whether there are any.
    pub(super) fn less(
        &self,
        all: Arc<TokenSet>,
        less: &[TokenId],
    ) -> Result<(Arc<TokenSet>, bool), ParserLimit> {
        if less.is_empty() {
            return Ok((all, false));
        }
        let left = all.changed(less, &[], self.vocab.mask_words());
        if left.is_empty() { Err(ParserLimit::Search) } else { Ok((Arc::new(left), true)) }
    }

    /// Tokens that are looked at one by one.
    fn candidates(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        plain: ConfigId,
    ) -> Result<Arc<[TokenId]>, ParserLimit> {
        let limited = state.parser.limited(config);
        if let Some(known) = state.candidates.get(&limited) {
            return Ok(known.clone());
        }
        let all = self.mask(state, plain)?;
        if state.parser.compares_strings(config) {
            // Only a token with two quotes holds a whole element.
            let some = self.among(state, &all, self.vocab.quoting().two());
            let found: Arc<[TokenId]> = self.failing(state, limited, &some)?.into();
            state.candidates.insert(limited, found.clone());
            return Ok(found);
        }
        let few = self.mask(state, limited)?;
        let (more, less) =
            (all.written(self.vocab.mask_words()), few.written(self.vocab.mask_words()));
        let found: Arc<[TokenId]> =
            ids(more.iter().zip(&less[..]).map(|(more, less)| more & !less)).collect();
        state.candidates.insert(limited, found.clone());
        Ok(found)
    }

    /// Tokens that fail along texts which may still become what there has been.
    fn walk_compared(
        &self,
        state: &mut IndexState,
        (config, plain): (ConfigId, ConfigId),
        less: &mut Vec<TokenId>,
    ) -> Result<(), ParserLimit> {
        let trie = self.vocab.trie();
        let parser = &mut state.parser;
        let mut queue = vec![(0, config, plain)];
        while let Some((node, config, plain)) = queue.pop() {
            // What begins within a token is looked at elsewhere.
            let towards = parser.towards_rivals(config, node == 0);
            // Where an element could not end, what would have followed it fails, whatever else has been read.
            let lost = node != 0 && parser.normal(config) != plain;
            if towards.is_empty() && !lost {
                continue;
            }
            let (own, all) = (parser.allowed(config), parser.allowed(plain));
            let looked = if lost { all } else { all.intersect(&towards.union(&own.complement())) };
            for byte in looked.iter() {
                let Some(child) = trie.child(node, byte) else { continue };
                let next = if own.contains(byte) { parser.step(config, byte)? } else { DEAD };
                if next == DEAD {
                    less.extend_from_slice(trie.words_below(child));
                } else if trie.node(child).end > child + 1 {
                    let plain = parser.step(plain, byte)?;
                    queue.push((child, next, plain));
                }
            }
        }
        Ok(())
    }

    /// Special tokens and ends of the text that fail, and tokens that fail only as bytes.
    fn whole_compared(
        &self,
        state: &mut IndexState,
        (config, plain): (ConfigId, ConfigId),
        less: &mut Vec<TokenId>,
    ) -> Result<(), ParserLimit> {
        let specials: Vec<u32> = state.parser.specials(plain).collect();
        if !specials.is_empty() {
            for special in specials {
                if state.parser.step_special(config, special)? == DEAD {
                    self.specials[special as usize].each(&mut |id| less.push(id));
                }
            }
            less.sort_unstable();
            less.dedup();
            *less = self.failing(state, config, less)?;
        }
        let ends = |config| state.parser.store().done(config).root;
        if ends(plain) && !ends(config) {
            less.extend_from_slice(self.vocab.stops());
        }
        Ok(())
    }
}
