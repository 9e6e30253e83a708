//! Masks under the constraint that the keys of one object differ.
//!
//! The mask is that of the *base* configuration, which knows no earlier keys, less the tokens in
//! which an earlier key ends again. There are two cases:
//!
//! * The key is under way, or the token begins with it. A walk of the trie along the earlier keys
//!   finds these tokens.
//! * The token contains another key after other text. Such tokens have at least two quotes, so
//!   there are few. They are found once for all places of a kind, and tested one by one.
//!
//! The parser's side is `matcher::value_constraints::duplicate_keys`.

use std::sync::Arc;

use smallvec::smallvec;

use super::comparison_walk::{ComparisonKind, ComparisonWalkState};
use super::found_mask::FoundMask;
use super::grammar_masks::GrammarMasks;
use super::mask_state::MaskState;
use super::subtraction::filter_tokens;
use super::token_set::TokenSet;
use crate::fsm::ByteSet;
use crate::ids::TokenId;
use crate::matcher::{
    ConfigId, KeyStatus, Parser, ParserLimit, QUOTE, WhiteSpaceBound, with_relaxed,
};
use crate::vocab::{NodeId, Trie};

/// The position after the opening quote of a key, for any amount of white space in front of it.
/// None where the amount may make a difference, and where a key is under way.
fn after_white_space(
    parser: &mut Parser,
    trie: &Trie,
    config: ConfigId,
) -> Result<Option<ComparisonWalkState>, ParserLimit> {
    if parser.key_status(config) != KeyStatus::MayBegin {
        return Ok(None);
    }
    let base = parser.store().base(config);
    // Longer white space is in no mask.
    let reads_white = parser.allowed(base).meets(&ByteSet::WHITE_SPACE);
    if reads_white && !matches!(parser.white_space_bound(base)?, WhiteSpaceBound::Exact(_)) {
        return Ok(None);
    }
    let after_quote = (parser.step(config, QUOTE)?, parser.step(base, QUOTE)?);
    if after_quote.0 == ConfigId::DEAD {
        return Ok(None);
    }
    for byte in ByteSet::WHITE_SPACE.iter().filter(|_| reads_white) {
        let (next, other_base) = (parser.step(config, byte)?, parser.step(base, byte)?);
        if next == ConfigId::DEAD
            || (parser.step(next, QUOTE)?, parser.step(other_base, QUOTE)?) != after_quote
        {
            return Ok(None);
        }
    }
    let (config, base) = after_quote;
    let nodes = trie.root_child(QUOTE).into_iter();
    let nodes = nodes.chain(trie.after_white_space(QUOTE).filter(|_| reads_white)).collect();
    Ok(Some(ComparisonWalkState { nodes, config, base, may_begin: false }))
}

/// A scanner for tokens that may contain a further key, beside the one that is under way or that
/// the token begins with.
#[derive(Clone, Copy, Debug)]
struct KeyScan {
    /// The configuration after the bytes read so far.
    config: ConfigId,
    /// Quotes read so far.
    quotes: usize,
    /// Those of them that are not escaped.
    unescaped: u32,
    /// Whether the last byte is a backslash that escapes the next one.
    escaping: bool,
    /// Whether the token begins with a quote, white space skipped; None while only white space was
    /// read.
    begins_quoted: Option<bool>,
}

impl KeyScan {
    /// Whether a token that the configuration accepts contains a further key.
    fn contains_further_key(
        parser: &mut Parser,
        config: ConfigId,
        key_status: KeyStatus,
        bytes: &[u8],
    ) -> Result<bool, ParserLimit> {
        let mut scan =
            KeyScan { config, quotes: 0, unescaped: 0, escaping: false, begins_quoted: None };
        let mut quotes_ahead = bytes.iter().filter(|&&byte| byte == QUOTE).count();
        for &byte in bytes {
            quotes_ahead -= usize::from(byte == QUOTE);
            match scan.read(parser, byte, quotes_ahead, key_status)? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Reads one byte that `quotes_ahead` quotes follow in the token. Returns whether a further key
    /// ends with it, or None if none can end in this token.
    fn read(
        &mut self,
        parser: &mut Parser,
        byte: u8,
        quotes_ahead: usize,
        key_status: KeyStatus,
    ) -> Result<Option<bool>, ParserLimit> {
        if self.begins_quoted.is_none() && !byte.is_ascii_whitespace() {
            self.begins_quoted = Some(byte == QUOTE);
        }
        if byte == QUOTE {
            let begins_with_key =
                key_status == KeyStatus::MayBegin && self.begins_quoted == Some(true);
            let may_begin_key = parser.may_begin_key(self.config);
            if may_begin_key
                && self.ends(begins_with_key, key_status)
                && parser.quote_ends_key(self.config)
            {
                return Ok(Some(true));
            }
            // A key that begins here ends at another quote. Where none may begin here, it takes two
            // more.
            let needed = if begins_with_key && self.quotes == 0 || !may_begin_key { 2 } else { 1 };
            if quotes_ahead < needed {
                return Ok(None);
            }
            self.quotes += 1;
            self.unescaped += u32::from(!self.escaping);
        } else if quotes_ahead == 0 {
            return Ok(None);
        }
        self.escaping = byte == b'\\' && !self.escaping;
        self.config = parser.step(self.config, byte)?;
        Ok((self.config != ConfigId::DEAD).then_some(false))
    }

    /// Whether a further key may end with a quote at this point. `begins_with_key`: the token
    /// begins with a key, which does not count.
    fn ends(&self, begins_with_key: bool, key_status: KeyStatus) -> bool {
        match key_status {
            _ if begins_with_key => !self.escaping && self.unescaped >= 2,
            KeyStatus::Open => !self.escaping && self.unescaped >= 1,
            KeyStatus::Outside | KeyStatus::MayBegin => self.quotes >= 1,
        }
    }
}

impl GrammarMasks {
    /// The mask of a configuration that knows earlier keys.
    pub(super) fn mask_with_earlier_keys(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<FoundMask, ParserLimit> {
        let base = state.parser.store().base(config);
        let mask = self.mask(state, base)?;
        let candidates =
            self.key_candidates_at(state, base, state.parser.key_status(config), &mask)?;
        let mut rejected = self.rejected_tokens(state, config, &candidates)?;
        let (parser, trie) = (&mut state.parser, self.vocab.trie());
        let start = after_white_space(parser, trie, config)?.unwrap_or(ComparisonWalkState {
            nodes: smallvec![NodeId::ROOT],
            config,
            base,
            may_begin: true,
        });
        ComparisonKind::Keys.walk(parser, trie, start, &mut rejected)?;
        self.subtract_repeated(state, config, mask, rejected)
    }

    /// The tokens to test one by one at a base configuration with this mask; memoised.
    fn key_candidates_at(
        &self,
        state: &mut MaskState,
        base: ConfigId,
        key_status: KeyStatus,
        mask: &TokenSet,
    ) -> Result<Arc<[TokenId]>, ParserLimit> {
        let memo_config = state.parser.mask_representative(base);
        if let Some(memoised) = state.candidates.keys.get(&(memo_config, key_status)) {
            return Ok(memoised.clone());
        }
        let candidates = self.tokens_with_further_key(
            state,
            memo_config,
            key_status,
            self.vocab.by_quotes().at_least(2),
            mask,
        )?;
        let candidates: Arc<[TokenId]> = candidates.into();
        state.candidates.keys.insert((memo_config, key_status), candidates.clone());
        Ok(candidates)
    }

    /// The tokens to test one by one at a base configuration, for each state that keys may be in.
    pub(crate) fn key_candidates_by_status(
        &self,
        state: &mut MaskState,
        base: ConfigId,
    ) -> Result<Vec<(KeyStatus, Arc<[TokenId]>)>, ParserLimit> {
        if !state.parser.program().has_unique_keys() {
            return Ok(Vec::new());
        }
        let key_statuses: &[KeyStatus] = match state.parser.may_begin_key(base) {
            true => &[KeyStatus::MayBegin, KeyStatus::Open],
            false => &[KeyStatus::Outside],
        };
        let mask = self.mask(state, base)?;
        key_statuses
            .iter()
            .map(|&key_status| {
                Ok((key_status, self.key_candidates_at(state, base, key_status, &mask)?))
            })
            .collect()
    }

    /// Those of some tokens, all in a mask, that contain a further key.
    fn tokens_with_further_key(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        key_status: KeyStatus,
        tokens: &[TokenId],
        mask: &TokenSet,
    ) -> Result<Vec<TokenId>, ParserLimit> {
        let tokens = self.filter_by_mask(state, mask, tokens);
        if tokens.is_empty() {
            return Ok(tokens);
        }
        // Masks are made of relaxed configurations.
        let parser = &mut state.parser;
        let relaxed =
            if self.compiled.has_bounded_white_space { parser.relax(config) } else { config };
        with_relaxed(parser, |parser| {
            filter_tokens(tokens, |token| {
                let bytes = self.vocab.bytes(token).unwrap_or_default();
                KeyScan::contains_further_key(parser, relaxed, key_status, bytes)
            })
        })
    }

    /// Tokens of a mask that contain the same key twice.
    pub(super) fn tokens_repeating_a_key(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        mask: &TokenSet,
    ) -> Result<Vec<TokenId>, ParserLimit> {
        if !state.parser.program().has_unique_keys() {
            return Ok(Vec::new());
        }
        let key_status = state.parser.key_status(config);
        let candidates = self.tokens_with_further_key(
            state,
            config,
            key_status,
            self.vocab.by_quotes().at_least(4),
            mask,
        )?;
        self.rejected_tokens(state, config, &candidates)
    }
}
