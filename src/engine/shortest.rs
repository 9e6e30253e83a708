//! Shortest completions: the fewest bytes that complete the text, and tokens that spell them.
//!
//! The search itself is [`ShortestPaths`]: Knuth's generalisation of Dijkstra's algorithm.

mod detours;

use super::Matcher;
use super::forced::Piece;
use crate::ids::TokenId;
use crate::mask::{GrammarMasks, MaskState};
use crate::matcher::{AdvanceError, ParserLimit, ShortestPaths, Symbol};
use crate::setters::with_methods;
use crate::vocab::Vocabulary;

/// What a shortest completion counts and how much of it is written out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionOptions {
    /// The length of a special token, in bytes; 0 counts as 1. The default is 1.
    pub special_length: u32,
    /// Longest completion that is written out, in bytes and special tokens; of longer ones only the
    /// length is returned. The default is 4,096.
    pub longest: usize,
}

impl Default for CompletionOptions {
    fn default() -> Self {
        CompletionOptions { special_length: 1, longest: 4096 }
    }
}

with_methods!(CompletionOptions {
    with_special_length: special_length = u32,
    with_longest: longest = usize,
});

/// A shortest completion of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its length in bytes, special tokens counted as [`CompletionOptions::special_length`] says.
    /// Saturates at `u64::MAX`.
    pub length: u64,
    /// The completion; `None` if it is longer than [`CompletionOptions::longest`].
    pub pieces: Option<Vec<Piece>>,
}

impl Completion {
    /// The completion as bytes; `None` if it is too long or contains a special token.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for piece in self.pieces.as_ref()? {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Special(_) => return None,
            }
        }
        Some(out)
    }
}

impl Matcher {
    /// The fewest bytes that complete the text so far, and such a completion. Of equally short
    /// ones, one with the fewest bytes that no token has. Length 0 if the text is complete.
    ///
    /// Exact, also for large counted repeats, which are computed and not run through. The exception
    /// are grammars in which values must differ
    /// ([`Attributes::element`](crate::ir::Attributes::element)) or rules have budgets
    /// ([`Attributes::budget`](crate::ir::Attributes::budget)). There the result is a short
    /// completion: the shortest one where it repeats no value and stays within the budgets,
    /// otherwise one that detours around each such place. If it is too long to be written out, its
    /// length is a lower bound only. Budgets of tokens are ignored: how many tokens a text has is
    /// not known before.
    ///
    /// Errors: [`AdvanceError::Limit`]. Cost: everything that can be reached with no more bytes
    /// than the answer has is visited once, in each rule on the way. Results about rules are
    /// cached.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{CompletionOptions, Engine, EngineOptions, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let strings = r#"{"type": "array", "minItems": 90000,
    ///     "items": {"type": "string", "minLength": 3}}"#;
    /// let mut matcher = engine.compile_json_schema(strings, &SchemaOptions::default())?.matcher();
    /// let completion = matcher.shortest_completion(&CompletionOptions::default())?;
    /// assert_eq!(completion.length, 1 + 90_000 * 6);
    /// assert_eq!(completion.pieces, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn shortest_completion(
        &mut self,
        options: &CompletionOptions,
    ) -> Result<Completion, AdvanceError> {
        if self.terminated {
            return Ok(Completion { length: 0, pieces: Some(Vec::new()) });
        }
        Ok(self.with_lock(|matcher, state| matcher.find_completion(state, options))?)
    }

    /// The length of [`Matcher::shortest_completion`], in bytes; a special token counts as 1. Where
    /// values or keys must differ, it is a lower bound.
    ///
    /// Errors: [`AdvanceError::Limit`]. Cost: a look-up for a configuration that was asked about
    /// before, by any matcher of the constraint; otherwise that of a shortest completion.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let schema = r#"{"type": "string", "minLength": 9}"#;
    /// let mut matcher = engine.compile_json_schema(schema, &SchemaOptions::default())?.matcher();
    /// assert_eq!(matcher.completion_length()?, 11);
    /// # Ok(())
    /// # }
    /// ```
    pub fn completion_length(&mut self) -> Result<u64, AdvanceError> {
        if self.terminated {
            return Ok(0);
        }
        Ok(self.with_lock(|matcher, state| {
            let paths = shortest_paths(&mut state.shortest_paths, &matcher.masks.vocab, 1);
            paths.length(&mut state.parser, matcher.config())
        })?)
    }

    /// The fewest tokens that spell a shortest completion; masks allow each of them in turn. A stop
    /// token may follow them and is not included. Another completion may need fewer tokens, so
    /// their number is an upper bound. `None` where the completion is longer than
    /// [`CompletionOptions::longest`] or has bytes that no token spells.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{CompletionOptions, Engine, EngineOptions, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"rue"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let schema = r#"{"const": true}"#;
    /// let mut matcher = engine.compile_json_schema(schema, &SchemaOptions::default())?.matcher();
    /// let tokens = matcher.shortest_completion_tokens(&CompletionOptions::default())?;
    /// let spelled = [b"t".as_slice(), b"rue"].map(|text| vocab.find(text).unwrap());
    /// assert_eq!(tokens, Some(spelled.to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn shortest_completion_tokens(
        &mut self,
        options: &CompletionOptions,
    ) -> Result<Option<Vec<TokenId>>, AdvanceError> {
        let completion = self.shortest_completion(options)?;
        let mut out = Vec::new();
        for piece in completion.pieces.iter().flatten() {
            match piece {
                Piece::Special(token) => out.push(*token),
                Piece::Bytes(bytes) => match fewest_tokens(&self.masks.vocab, bytes) {
                    Some(tokens) => out.extend(tokens),
                    None => return Ok(None),
                },
            }
        }
        Ok(completion.pieces.is_some().then_some(out))
    }

    /// As [`Matcher::shortest_completion`], under the constraint's lock.
    fn find_completion(
        &self,
        state: &mut MaskState,
        options: &CompletionOptions,
    ) -> Result<Completion, ParserLimit> {
        let masks = &self.masks;
        let special = u64::from(options.special_length.max(1));
        let paths = shortest_paths(&mut state.shortest_paths, &masks.vocab, special);
        let compiled = &masks.compiled;
        if !compiled.scopes.is_empty()
            || !compiled.budgets.is_empty()
            || state.parser.tracks_keys(self.config())
        {
            return self.complete_with_detours(state, options);
        }
        // Every configuration that can be reached can be completed; this is a fallback.
        let Some((length, steps)) = paths.shortest(&mut state.parser, self.config())? else {
            return Ok(Completion { length: u64::MAX, pieces: None });
        };
        if length > special.saturating_mul(options.longest as u64) {
            return Ok(Completion { length, pieces: None });
        }
        let text = paths.text(&steps, options.longest);
        let quotes = text.iter().filter(|symbol| **symbol == Symbol::Byte(b'"')).count();
        if quotes >= 4 && state.parser.program().has_unique_keys() {
            // The completion may contain two member names, which must differ.
            return self.complete_with_detours(state, options);
        }
        Ok(Completion {
            length,
            pieces: (text.len() <= options.longest).then(|| to_pieces(masks, &text)),
        })
    }
}

/// The searches in which a special token counts as `special_cost` bytes.
fn shortest_paths<'s>(
    held: &'s mut Option<Box<ShortestPaths>>,
    vocab: &Vocabulary,
    special_cost: u64,
) -> &'s mut ShortestPaths {
    if held.as_ref().is_none_or(|paths| paths.special_cost() != special_cost) {
        *held = None;
    }
    held.get_or_insert_with(|| Box::new(ShortestPaths::new(special_cost, vocab.missing_bytes())))
}

/// A completion as bytes and special tokens.
fn to_pieces(masks: &GrammarMasks, text: &[Symbol]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for &symbol in text {
        match (symbol, pieces.last_mut()) {
            (Symbol::Byte(byte), Some(Piece::Bytes(bytes))) => bytes.push(byte),
            (Symbol::Byte(byte), _) => pieces.push(Piece::Bytes(vec![byte])),
            (Symbol::Special(special), _) => {
                pieces.push(Piece::Special(masks.specials[special.index()].first()))
            }
        }
    }
    pieces
}

/// The fewest tokens that spell these bytes, by dynamic programming; `None` if no tokens do.
fn fewest_tokens(vocab: &Vocabulary, bytes: &[u8]) -> Option<Vec<TokenId>> {
    // For each position: the number of tokens from there on, the first of them, and where it ends.
    let mut best: Vec<Option<(usize, TokenId, usize)>> = vec![None; bytes.len()];
    for start in (0..bytes.len()).rev() {
        for (length, ids) in vocab.trie().prefixes(&bytes[start..]) {
            let end = start + length;
            let rest = if end == bytes.len() { Some(0) } else { best[end].map(|b| b.0) };
            if let Some(rest) = rest
                && best[start].is_none_or(|(count, ..)| rest + 1 < count)
            {
                best[start] = Some((rest + 1, ids[0], end));
            }
        }
    }
    let mut out = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let (_, word, end) = best[start]?;
        out.push(word);
        start = end;
    }
    Some(out)
}

#[cfg(test)]
mod tests;
