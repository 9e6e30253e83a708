//! Forced text and forced tokens: the only continuation that the grammar allows, which a host can
//! append without asking the model (jump-forward decoding).
//!
//! Forced bytes are read off configurations. Forced tokens are harder: the tokenizer might merge
//! the last forced bytes with text that is not forced. So tokens at the end are left out where a
//! longer token that the grammar allows could take their place.

use super::Matcher;
use crate::ids::TokenId;
use crate::mask::{MaskState, SpecialTokenIds};
use crate::matcher::{ConfigId, ParserLimit};
use crate::vocab::{NodeId, Trie, Vocabulary, descend_from};

/// A part of a text that may contain special tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// A special token.
    Special(TokenId),
}

/// Bytes that are forced one after the other, and the special token that is forced after them, if
/// any.
#[derive(Debug)]
struct ForcedRun {
    bytes: Vec<u8>,
    /// The configuration after the bytes.
    end: ConfigId,
    special: Option<TokenId>,
}

impl ForcedRun {
    /// A run without bytes that stays in a configuration.
    fn empty(end: ConfigId) -> ForcedRun {
        ForcedRun { bytes: Vec::new(), end, special: None }
    }
}

/// A tokenizer: the tokens of these bytes. The tokens must spell the bytes in order; from the first
/// that does not on, they are ignored.
pub type Tokenize<'t> = dyn FnMut(&[u8]) -> Vec<TokenId> + 't;

impl Matcher {
    /// The forced text: it goes on while exactly one byte or one special token may follow and the
    /// text may not end. At most `longest` bytes and special tokens. Cost: one step a byte. Empty
    /// where a limit is reached: forcing is never needed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, Piece, RegexOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("id=[0-9]", &RegexOptions::default())?.matcher();
    /// assert_eq!(matcher.forced(100), [Piece::Bytes(b"id=".to_vec())]);
    /// assert_eq!(matcher.forced_bytes(2), b"id");
    /// # Ok(())
    /// # }
    /// ```
    pub fn forced(&mut self, longest: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for run in self.forced_runs(longest) {
            if !run.bytes.is_empty() {
                pieces.push(Piece::Bytes(run.bytes));
            }
            pieces.extend(run.special.map(Piece::Special));
        }
        pieces
    }

    /// The forced bytes before the first special token: they go on while exactly one byte may
    /// follow and the text may not end. At most `longest` bytes. Cost: one step a byte.
    pub fn forced_bytes(&mut self, longest: usize) -> Vec<u8> {
        self.forced_runs(longest).into_iter().next().map(|run| run.bytes).unwrap_or_default()
    }

    /// The forced tokens, of at most `longest` bytes and special tokens. Each is allowed by the
    /// mask after those before it. They can be appended without asking the model, or used as a
    /// draft ([`DraftTree::chain`]).
    ///
    /// The bytes are cut by taking the longest token at each position. A token is returned only if
    /// every continuation that the grammar allows, cut in this way, begins with it: a last token is
    /// left out if a longer token that the grammar allows could take its place.
    ///
    /// Tokenizers may cut differently, because they merge in another order (BPE) or look at the
    /// surrounding text. Use [`Matcher::forced_tokens_with`] where the model should see its own
    /// tokenisation. Neither looks at the text before the matcher's position, so the tokenizer
    /// might have merged the first token with the last one taken.
    ///
    /// [`DraftTree::chain`]: super::DraftTree::chain
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"\"o", b"n\"", b"\"ready"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let schema = r#"{"enum": ["ready", "really"]}"#;
    /// let mut matcher = engine.compile_json_schema(schema, &SchemaOptions::default())?.matcher();
    /// assert_eq!(matcher.forced_bytes(100), b"\"rea");
    /// // All of these could still become the token `"ready`.
    /// assert_eq!(matcher.forced_tokens(100), []);
    /// matcher.advance(vocab.find(b"\"").unwrap())?;
    /// let forced = matcher.forced_tokens(100);
    /// let texts: Vec<_> = forced.iter().map(|&token| vocab.bytes(token).unwrap()).collect();
    /// assert_eq!(texts, [b"r", b"e", b"a"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn forced_tokens(&mut self, longest: usize) -> Vec<TokenId> {
        let vocab = self.masks.vocab.clone();
        self.forced_tokens_by(longest, TokenBoundaries::OfTokens, &mut |bytes| {
            longest_match_tokens(&vocab, bytes)
        })
    }

    /// As [`Matcher::forced_tokens`], cut by a tokenizer. All tokens from a position on are left
    /// out where a longer token that the grammar allows could begin there and reach past the forced
    /// bytes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, RegexOptions, TokenId, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[b"id"])), EngineOptions::default());
    /// let mut matcher = engine.compile_regex("id=[0-9]", &RegexOptions::default())?.matcher();
    /// // A tokenizer without merges.
    /// let mut tokenize = |bytes: &[u8]| -> Vec<TokenId> {
    ///     bytes.iter().map(|&byte| TokenId::from_raw(byte.into())).collect()
    /// };
    /// assert_eq!(matcher.forced_tokens_with(9, &mut tokenize).len(), 3);
    /// assert_eq!(matcher.forced_tokens(9).len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn forced_tokens_with(
        &mut self,
        longest: usize,
        tokenize: &mut Tokenize<'_>,
    ) -> Vec<TokenId> {
        self.forced_tokens_by(longest, TokenBoundaries::Anywhere, tokenize)
    }

    /// The forced text, in runs; empty where a limit is reached.
    fn forced_runs(&mut self, longest: usize) -> Vec<ForcedRun> {
        if self.is_over() {
            return Vec::new();
        }
        self.with_lock(|matcher, state| matcher.find_forced_runs(state, longest))
            .unwrap_or_default()
    }

    /// As [`Matcher::forced_runs`], under the constraint's lock.
    fn find_forced_runs(
        &self,
        state: &mut MaskState,
        longest: usize,
    ) -> Result<Vec<ForcedRun>, ParserLimit> {
        let mut runs = Vec::new();
        let mut run = ForcedRun::empty(self.config());
        for _ in 0..longest {
            let parser = &mut state.parser;
            // Where a budget counts tokens, what follows depends on how the text is cut.
            if parser.store().is_complete(run.end) || parser.token_ended(run.end)? != run.end {
                break;
            }
            // A second byte says that none is forced; the others would cost a step each.
            let bytes = parser.exact_allowed_up_to(run.end, 2)?;
            let mut specials: Vec<_> = parser.specials(run.end).collect();
            specials.sort_unstable();
            specials.dedup();
            let mut allowed = Vec::new();
            for special in specials {
                if parser.step_special(run.end, special)? != ConfigId::DEAD {
                    allowed.push(special);
                }
            }
            match (bytes.len(), allowed[..].first()) {
                (1, None) => {
                    let Some(byte) = bytes.iter().next() else { break };
                    run.end = parser.step_tracking_keys(run.end, byte)?;
                    run.bytes.push(byte);
                }
                (0, Some(&special)) if allowed.len() == 1 => {
                    let SpecialTokenIds::One(token) = self.masks.specials[special.index()] else {
                        break;
                    };
                    let end = parser.step_special(run.end, special)?;
                    run.special = Some(token);
                    runs.push(std::mem::replace(&mut run, ForcedRun::empty(end)));
                }
                _ => break,
            }
        }
        runs.push(run);
        Ok(runs)
    }

    /// The forced tokens, cut by `tokenize`.
    fn forced_tokens_by(
        &mut self,
        longest: usize,
        boundaries: TokenBoundaries,
        tokenize: &mut Tokenize<'_>,
    ) -> Vec<TokenId> {
        if self.is_over() {
            return Vec::new();
        }
        let found = self.with_lock(|matcher, state| {
            let runs = matcher.find_forced_runs(state, longest)?;
            let settled = settled_length(matcher.vocab(), state, runs.last(), boundaries)?;
            Ok((runs, settled))
        });
        // The tokenizer is called without the lock. Its tokens are checked against the bytes.
        let Ok((runs, settled)) = found else { return Vec::new() };
        let mut out = Vec::new();
        for run in &runs {
            // A special token does not merge with bytes, so the tokens before it are final.
            let settled = if run.special.is_some() { run.bytes.len() } else { settled };
            let cut = if settled > 0 { tokenize(&run.bytes) } else { Vec::new() };
            let tokens = spelled_prefix(self.vocab(), &run.bytes, cut);
            out.extend(tokens.iter().filter(|&&(_, end)| end <= settled).map(|t| t.0));
            match run.special {
                Some(special) if tokens.last().map_or(0, |t| t.1) == settled => out.push(special),
                _ => break,
            }
        }
        out
    }
}

/// Where a longer token may begin that takes the place of forced tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenBoundaries {
    /// Only at the start of a forced token.
    OfTokens,
    /// At every byte.
    Anywhere,
}

/// The tokens as far as they spell the bytes, each with the position of its end.
fn spelled_prefix(vocab: &Vocabulary, bytes: &[u8], tokens: Vec<TokenId>) -> Vec<(TokenId, usize)> {
    let mut end = 0;
    let mut out = Vec::new();
    for token in tokens {
        let spells = vocab
            .bytes(token)
            .filter(|text| !vocab.is_stop(token) && bytes[end..].starts_with(text));
        let Some(text) = spells else { break };
        end += text.len();
        out.push((token, end));
    }
    out
}

/// The tokens by longest match, from left to right.
fn longest_match_tokens(vocab: &Vocabulary, bytes: &[u8]) -> Vec<TokenId> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((length, ids)) = vocab.trie().prefixes(rest).last() {
        out.push(ids[0]);
        rest = &rest[length..];
    }
    out
}

/// The length of the bytes of the last run that no longer token may replace: one that begins with
/// all bytes from a position on, continues past them, and may follow.
fn settled_length(
    vocab: &Vocabulary,
    state: &mut MaskState,
    last: Option<&ForcedRun>,
    boundaries: TokenBoundaries,
) -> Result<usize, ParserLimit> {
    let Some(ForcedRun { bytes, end, .. }) = last else { return Ok(0) };
    let trie = vocab.trie();
    let tokens = match boundaries {
        TokenBoundaries::Anywhere => Vec::new(),
        TokenBoundaries::OfTokens => {
            spelled_prefix(vocab, bytes, longest_match_tokens(vocab, bytes))
        }
    };
    for from in bytes.len().saturating_sub(vocab.max_token_bytes())..bytes.len() {
        let begins = from == 0 || tokens.iter().any(|&(_, end)| end == from);
        if boundaries == TokenBoundaries::OfTokens && !begins {
            continue;
        }
        if let Some(node) = trie.find(&bytes[from..])
            && can_extend(trie, state, node, *end)?
        {
            return Ok(from);
        }
    }
    Ok(bytes.len())
}

/// Whether a token strictly below a trie node can be read on from a configuration.
fn can_extend(
    trie: &Trie,
    state: &mut MaskState,
    node: NodeId,
    config: ConfigId,
) -> Result<bool, ParserLimit> {
    // The first token ends the descent with `None` for an error.
    let descent: Result<(), Option<ParserLimit>> =
        descend_from(trie, node, config, |at, byte, before| {
            match state.parser.step_tracking_keys(before, byte).map_err(Some)? {
                ConfigId::DEAD => Ok(None),
                next if trie.tokens_at(at).is_empty() => Ok(Some(next)),
                _ => Err(None),
            }
        });
    match descent {
        Ok(()) => Ok(false),
        Err(None) => Ok(true),
        Err(Some(limit)) => Err(limit),
    }
}

#[cfg(test)]
mod tests;
