//! Masks where names must differ: those of plain configurations, in which nothing is known of names, without the tokens that fail.
//!
//! A token fails where a name ends as one that there has been. Either that name is under way, or the token begins with it, and a walk along names
//! that there have been finds it; or something else is read before it. Those tokens are few, as they have two quotes at least, and are
//! read one by one.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::index::Index;
use super::index_state::IndexState;
use super::token_set::TokenSet;
use crate::fsm::ByteSet;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, Gap, Naming, Parser, ParserLimit};
use crate::vocab::Trie;

const QUOTE: u8 = b'"';

/// The beginning of a token that may hold another name than the one that is under way, or that it begins with.
#[derive(Clone, Copy, Debug)]
struct Begun {
    config: ConfigId,
    /// Quotes in it, and those that are not escaped.
    quotes: usize,
    unescaped: u32,
    /// Whether it ends in a backslash that escapes.
    escapes: bool,
    /// Whether it begins with a quote, white space apart; none where there is nothing else.
    quoted: Option<bool>,
}

type Nodes = SmallVec<[u32; 16]>;

/// A place of a walk along names that there have been.
struct Along {
    nodes: Nodes,
    config: ConfigId,
    /// What would be if names made no difference.
    plain: ConfigId,
    /// Whether nothing but white space has been read.
    begin: bool,
}

impl Along {
    /// The place behind the quote with which a name begins, however much white space there is in front of it. None where more or less white space
    /// may make a difference, or a name is under way.
    fn behind_white(
        parser: &mut Parser,
        trie: &Trie,
        config: ConfigId,
    ) -> Result<Option<Along>, ParserLimit> {
        let Some(white) = trie.white().filter(|_| parser.naming(config) == Naming::Called) else {
            return Ok(None);
        };
        let plain = parser.store().plain(config);
        // More than there is room for is in no mask.
        let reads_white = parser.allowed(plain).meets(&ByteSet::WHITE_SPACE);
        if reads_white && !matches!(parser.gap(plain)?, Gap::Room(_)) {
            return Ok(None);
        }
        let behind = (parser.step(config, QUOTE)?, parser.step(plain, QUOTE)?);
        if behind.0 == DEAD {
            return Ok(None);
        }
        for byte in ByteSet::WHITE_SPACE.iter().filter(|_| reads_white) {
            let (next, other) = (parser.step(config, byte)?, parser.step(plain, byte)?);
            if next == DEAD || (parser.step(next, QUOTE)?, parser.step(other, QUOTE)?) != behind {
                return Ok(None);
            }
        }
        let (config, plain) = behind;
        let nodes = trie.root_child(QUOTE).into_iter();
        let nodes = nodes.chain(white.behind(QUOTE).filter(|_| reads_white)).collect();
        Ok(Some(Along { nodes, config, plain, begin: false }))
    }
}

impl Begun {
    /// Whether a token that can be read holds another name.
    fn holds(
        parser: &mut Parser,
        config: ConfigId,
        naming: Naming,
        bytes: &[u8],
    ) -> Result<bool, ParserLimit> {
        let mut begun = Begun { config, quotes: 0, unescaped: 0, escapes: false, quoted: None };
        let mut behind = bytes.iter().filter(|&&byte| byte == QUOTE).count();
        for &byte in bytes {
            behind -= usize::from(byte == QUOTE);
            match begun.read(parser, (byte, behind), naming)? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// One byte more, and so many quotes behind it: whether another name ends with it; `None` if none does in such a token.
    fn read(
        &mut self,
        parser: &mut Parser,
        (byte, behind): (u8, usize),
        naming: Naming,
    ) -> Result<Option<bool>, ParserLimit> {
        if self.quoted.is_none() && !byte.is_ascii_whitespace() {
            self.quoted = Some(byte == QUOTE);
        }
        if byte == QUOTE {
            let begins = naming == Naming::Called && self.quoted == Some(true);
            let calls = parser.calls_names(self.config);
            if calls && self.ends(begins, naming) && parser.ends_name(self.config) {
                return Ok(Some(true));
            }
            // One that begins here ends at another quote; where none may begin, it takes two more.
            let least = if begins && self.quotes == 0 || !calls { 2 } else { 1 };
            if behind < least {
                return Ok(None);
            }
            self.quotes += 1;
            self.unescaped += u32::from(!self.escapes);
        } else if behind == 0 {
            return Ok(None);
        }
        self.escapes = byte == b'\\' && !self.escapes;
        self.config = parser.step(self.config, byte)?;
        Ok((self.config != DEAD).then_some(false))
    }

    /// Whether another name may end with a quote behind this; `begins`: a name that may not be meant begins the text.
    fn ends(&self, begins: bool, naming: Naming) -> bool {
        match naming {
            _ if begins => !self.escapes && self.unescaped >= 2,
            Naming::Text => !self.escapes && self.unescaped >= 1,
            Naming::Outside | Naming::Called => self.quotes >= 1,
        }
    }
}

impl Index {
    /// The mask of a configuration that knows of names; whether it is one of its own.
    pub(super) fn mask_named(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<(Arc<TokenSet>, bool), ParserLimit> {
        let plain = state.parser.store().plain(config);
        let all = self.mask(state, plain)?;
        let naming = self.naming_at(state, (plain, state.parser.naming(config)), &all)?;
        let mut less = self.failing(state, config, &naming)?;
        self.walk_named(state, config, &mut less)?;
        self.less(all, &less)
    }

    /// Tokens that are read one by one where names are known, at a plain configuration with this mask.
    fn naming_at(
        &self,
        state: &mut IndexState,
        (plain, naming): (ConfigId, Naming),
        mask: &TokenSet,
    ) -> Result<Arc<[TokenId]>, ParserLimit> {
        let place = state.parser.for_masks(plain);
        if let Some(known) = state.naming.get(&(place, naming)) {
            return Ok(known.clone());
        }
        let found =
            self.another_name(state, (place, naming), (self.vocab.quoting().two(), mask))?;
        let found: Arc<[TokenId]> = found.into();
        state.naming.insert((place, naming), found.clone());
        Ok(found)
    }

    /// The tokens that will be read one by one at a plain configuration where names are known.
    pub(crate) fn namings(
        &self,
        state: &mut IndexState,
        plain: ConfigId,
    ) -> Result<Vec<(Naming, Arc<[TokenId]>)>, ParserLimit> {
        if !state.parser.program().has_names() {
            return Ok(Vec::new());
        }
        let all: &[Naming] = match state.parser.calls_names(plain) {
            true => &[Naming::Called, Naming::Text],
            false => &[Naming::Outside],
        };
        let mask = self.mask(state, plain)?;
        all.iter()
            .map(|&naming| Ok((naming, self.naming_at(state, (plain, naming), &mask)?)))
            .collect()
    }

    /// Those of some tokens, in a mask, that hold another name than the one that is under way, or that they begin with.
    fn another_name(
        &self,
        state: &mut IndexState,
        (config, naming): (ConfigId, Naming),
        (tokens, mask): (&[TokenId], &TokenSet),
    ) -> Result<Vec<TokenId>, ParserLimit> {
        let mut some = self.among(state, mask, tokens);
        if some.is_empty() {
            return Ok(some);
        }
        // The configurations that masks are made of.
        let parser = &mut state.parser;
        let loose = if self.compiled.gaps { parser.loose_of(config) } else { config };
        parser.set_loose(true);
        let mut limit = None;
        some.retain(|&token| {
            let bytes = self.vocab.bytes(token).unwrap_or_default();
            limit.is_none()
                && Begun::holds(parser, loose, naming, bytes).unwrap_or_else(|stopped| {
                    limit = Some(stopped);
                    false
                })
        });
        parser.set_loose(false);
        limit.map_or(Ok(some), Err)
    }

    /// Tokens that fail along names that there have been.
    fn walk_named(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        less: &mut Vec<TokenId>,
    ) -> Result<(), ParserLimit> {
        let trie = self.vocab.trie();
        let parser = &mut state.parser;
        let mut queue = match Along::behind_white(parser, trie, config)? {
            Some(behind) => vec![behind],
            None => {
                vec![Along {
                    nodes: smallvec![0],
                    config,
                    plain: parser.store().plain(config),
                    begin: true,
                }]
            }
        };
        while let Some(Along { nodes, config, plain, begin }) = queue.pop() {
            let towards = parser.towards_names(config, begin);
            // Where a name could not end, what would have followed it fails, whatever else has been read.
            let lost = parser.store().plain(config) != plain;
            if towards.is_empty() && !lost {
                continue;
            }
            let all = parser.allowed(plain);
            for byte in if lost { all } else { all.intersect(&towards) }.iter() {
                let mut nodes: Nodes =
                    nodes.iter().filter_map(|&node| trie.child(node, byte)).collect();
                if nodes.is_empty() {
                    continue;
                }
                let next = parser.step(config, byte)?;
                if next == DEAD {
                    nodes.iter().for_each(|&node| less.extend_from_slice(trie.words_below(node)));
                    continue;
                }
                nodes.retain(|node| trie.node(*node).end > *node + 1);
                if !nodes.is_empty() {
                    let plain = parser.step(plain, byte)?;
                    let begin = begin && ByteSet::WHITE_SPACE.contains(byte);
                    queue.push(Along { nodes, config: next, plain, begin });
                }
            }
        }
        Ok(())
    }

    /// Tokens in which the same name is there twice.
    pub(super) fn twice_named(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        mask: &TokenSet,
    ) -> Result<Vec<TokenId>, ParserLimit> {
        if !state.parser.program().has_names() {
            return Ok(Vec::new());
        }
        let naming = state.parser.naming(config);
        let some =
            self.another_name(state, (config, naming), (self.vocab.quoting().four(), mask))?;
        self.failing(state, config, &some)
    }
}
