//! Masks where names must differ: those of plain configurations, in which nothing is known of names, without the tokens that fail.
//!
//! A token fails where a name ends as one that there has been. Either that name is under way, or the token begins with it, and a walk along names
//! that there have been finds it; or something else is read before it. Those tokens are few, as they have two quotes at least, and are
//! read one by one.

use std::sync::Arc;

use super::index::{Index, IndexState};
use super::set::TokenSet;
use crate::fsm::ByteSet;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, Naming, ParserLimit};
use crate::vocab::{begins_quoted, quotes};

impl Index {
    /// The mask of a configuration that knows of names; whether it is one of its own.
    pub(super) fn mask_named(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<(Arc<TokenSet>, bool), ParserLimit> {
        let plain = state.parser.store().plain(config);
        let all = self.mask(state, plain)?;
        let naming = self.naming(state, config)?;
        let mut less = self.failing(state, config, &naming)?;
        self.walk_named(state, config, &mut less)?;
        self.less(all, &less)
    }

    /// Tokens that are read one by one.
    fn naming(&self, state: &mut IndexState, config: ConfigId) -> Result<Arc<[TokenId]>, ParserLimit> {
        let (quoting, naming) = (self.vocab.quoting(), state.parser.naming(config));
        let plain = state.parser.store().plain(config);
        let place = state.parser.normal(plain);
        if let Some(known) = state.naming.get(&(place, naming)) {
            return Ok(known.clone());
        }
        let some = match naming {
            Naming::Outside => quoting.inner(),
            Naming::Called => quoting.behind_another(),
            Naming::Text => quoting.behind_text(),
        };
        let found: Arc<[TokenId]> = self.another_name(state, (place, naming), some)?.into();
        state.naming.insert((place, naming), found.clone());
        Ok(found)
    }

    /// Those of some tokens that can be read and hold another name than the one that is under way, or that they begin with.
    fn another_name(
        &self,
        state: &mut IndexState,
        (config, naming): (ConfigId, Naming),
        tokens: &[TokenId],
    ) -> Result<Vec<TokenId>, ParserLimit> {
        let mut out = Vec::new();
        if tokens.is_empty() {
            return Ok(out);
        }
        // The configurations that masks are made of.
        let (parser, mut limit) = (&mut state.parser, None);
        let loose = if self.compiled.gaps { parser.loose_of(config) } else { config };
        parser.set_loose(true);
        // Few get farther than a quote.
        let first = parser.allowed(loose);
        let second = match first.contains(b'"') {
            true => parser.step(loose, b'"').map(|behind| parser.allowed(behind)),
            false => Ok(ByteSet::EMPTY),
        };
        let second = second.unwrap_or(ByteSet::ALL);
        for &token in tokens {
            let bytes = self.vocab.bytes(token).unwrap_or_default();
            if !first.contains(bytes[0]) || bytes[0] == b'"' && !second.contains(bytes[1]) {
                continue;
            }
            // Where the token begins with a name, that ends at the second quote; one that is under way, at the first.
            let first = if naming == Naming::Called && begins_quoted(bytes) { 2 } else { 1 };
            let places: Vec<usize> = quotes(bytes, naming == Naming::Text || first == 2).skip(first).collect();
            match parser.ends_names(loose, bytes, &places) {
                Ok(false) => {}
                Ok(true) => out.push(token),
                Err(reached) => limit = Some(reached),
            }
        }
        parser.set_loose(false);
        limit.map_or(Ok(out), Err)
    }

    /// Tokens that fail along names that there have been.
    fn walk_named(&self, state: &mut IndexState, config: ConfigId, less: &mut Vec<TokenId>) -> Result<(), ParserLimit> {
        let trie = self.vocab.trie();
        let parser = &mut state.parser;
        // With whether nothing but white space has been read.
        let mut queue = vec![(0, config, true)];
        while let Some((node, config, begin)) = queue.pop() {
            let towards = parser.towards_names(config, begin);
            if towards.is_empty() {
                continue;
            }
            for byte in parser.allowed(config).intersect(&towards).iter() {
                let Some(child) = trie.child(node, byte) else { continue };
                let next = parser.step(config, byte)?;
                if next == DEAD {
                    less.extend_from_slice(trie.words_below(child));
                } else if trie.node(child).end > child + 1 {
                    queue.push((child, next, begin && ByteSet::WHITE_SPACE.contains(byte)));
                }
            }
        }
        Ok(())
    }

    /// Tokens in which the same name is there twice.
    pub(super) fn twice_named(&self, state: &mut IndexState, config: ConfigId) -> Result<Vec<TokenId>, ParserLimit> {
        let quoting = self.vocab.quoting().twice();
        if quoting.is_empty() || !state.parser.program().has_names() {
            return Ok(Vec::new());
        }
        let naming = state.parser.naming(config);
        let some = self.another_name(state, (config, naming), quoting)?;
        self.failing(state, config, &some)
    }
}
