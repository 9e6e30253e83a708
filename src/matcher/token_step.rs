//! Steps over whole tokens.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::ConfigId;
use super::value_constraints::QUOTE;
use super::value_constraints::key_tracker::TokenLookup;
use crate::ids::SpecialId;

/// What a token stands for: bytes, special tokens of the grammar, or both.
#[derive(Debug)]
pub(crate) struct TokenSymbols<'t, S> {
    pub(crate) bytes: Option<&'t [u8]>,
    /// Special tokens of the grammar.
    pub(crate) specials: S,
}

/// Whether a step over a token adds to the transition cache what no other token is likely to need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransitionUse {
    /// Interns nothing inside of keys and of counted blocks.
    Skip,
    /// Caches the transition of every byte.
    Cache,
}

/// Where a token leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReachedConfig {
    /// The configuration after the token; dead if it is rejected.
    pub(crate) config: ConfigId,
    /// Number of bytes that were accepted.
    pub(crate) accepted: usize,
}

impl Parser {
    /// Steps over a token.
    pub(crate) fn step_token(
        &mut self,
        config: ConfigId,
        token: TokenSymbols<'_, impl Iterator<Item = SpecialId>>,
        transitions: TransitionUse,
    ) -> Result<ReachedConfig, ParserLimit> {
        let (mut reached, mut accepted) = (ConfigId::DEAD, 0);
        if let Some(bytes) = token.bytes {
            (reached, accepted) = match transitions {
                TransitionUse::Skip => self.step_bytes(config, bytes)?,
                TransitionUse::Cache => self.step_bytes_cached(config, bytes)?,
            };
        }
        for special in token.specials {
            let next = self.step_special(config, special)?;
            reached = self.union(reached, next);
        }
        Ok(ReachedConfig { config: self.token_ended(reached)?, accepted })
    }

    /// As [`Parser::step_token`] for a token that stands for bytes only. Caches the result if it
    /// has keys.
    pub(crate) fn cache_token_step(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<ConfigId, ParserLimit> {
        let (next, _) = self.step_bytes(config, bytes)?;
        if next != ConfigId::DEAD && self.tracks_keys(next) {
            self.keys.tokens.insert((config, bytes.into()), next);
        }
        self.token_ended(next)
    }

    /// As [`Parser::step_bytes`], and caches every transition.
    fn step_bytes_cached(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let mut current = config;
        for (accepted, &byte) in bytes.iter().enumerate() {
            current = self.step_tracking_keys(current, byte)?;
            if current == ConfigId::DEAD {
                return Ok((ConfigId::DEAD, accepted));
            }
        }
        Ok((current, bytes.len()))
    }

    /// The configuration after the bytes of a token, and the number of bytes that were accepted.
    /// Equal to [`Parser::step_tracking_keys`] byte by byte, but interns nothing inside of keys.
    fn step_bytes(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let (mut current, mut accepted) = (config, 0);
        while current != ConfigId::DEAD
            && let Some(&byte) = bytes.get(accepted)
        {
            // Cached transitions ignore keys; only a quote can begin one.
            if byte != QUOTE
                && let Some(next) = self.cached_step(current, byte)
            {
                current = next;
                accepted += usize::from(current != ConfigId::DEAD);
            } else if accepted == 0
                && let Some(next) = self.step_within_block(current, bytes)?
            {
                return Ok((next, bytes.len()));
            } else if let Some(&next) = self.cached_key_start(current, byte) {
                current = next;
                accepted += 1;
            } else if self.is_key_byte(current, byte) {
                if let Some(&next) = self.keys.tokens.get(&TokenLookup(config, bytes)) {
                    return Ok((next, bytes.len()));
                }
                let read;
                (current, read) = self.step_over_keys(current, &bytes[accepted..])?;
                accepted += read;
            } else {
                current = self.step(current, byte)?;
                accepted += usize::from(current != ConfigId::DEAD);
            }
        }
        Ok((current, accepted))
    }
}
