//! The shortest way to a complete sentence, as bytes and as tokens.

mod distinct;

use super::Matcher;
use super::forced::Piece;
use crate::ids::TokenId;
use crate::mask::{Index, IndexState};
use crate::matcher::{AdvanceError, Lengths, ParserLimit, Step};
use crate::vocab::Vocabulary;

/// What a shortest completion may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionOptions {
    /// What a special token counts, in bytes; 0 counts as 1.
    pub special_length: u32,
    /// Longest completion that is written out, in bytes and special tokens; of longer ones only the length is told.
    pub longest: usize,
}

impl Default for CompletionOptions {
    fn default() -> Self {
        CompletionOptions { special_length: 1, longest: 4096 }
    }
}

/// A shortest way to the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its length in bytes, special tokens counted as [`CompletionOptions::special_length`] says. Lengths that do not fit
    /// are the largest that does.
    pub length: u64,
    /// The completion; `None` where it is longer than [`CompletionOptions::longest`].
    pub pieces: Option<Vec<Piece>>,
}

impl Completion {
    /// The completion, if it is short enough to be written out and has no special token.
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
    /// The fewest bytes that make what was taken so far a whole sentence, and such a text; of equally short ones, one
    /// with as few bytes as can be that no token has. Nothing if the text is complete.
    ///
    /// In grammars in which values must differ ([`Attributes::element`](crate::ir::Attributes::element)) it is a short one: the
    /// shortest where nothing is in its way, else the shortest that goes around what is, place by place. One that is too long to be
    /// written out is then only known to be at least as long as it says.
    ///
    /// Exact otherwise, also for large counted repeats, which are not run through. Cost: what can be reached from here with no more
    /// bytes than the answer has is looked at once, and what each rule on the way can reach with as many; what was found of
    /// rules is kept. Fails where the parser runs into a limit.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::engine::{CompletionOptions, Engine, EngineOptions};
    /// # use louver::front::json_schema::SchemaOptions;
    /// # use louver::vocab::Vocabulary;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let schema = r#"{"type": "array", "items": {"type": "string", "minLength": 3}, "minItems": 100000}"#;
    /// let mut matcher = engine.compile_json_schema(schema, &SchemaOptions::default())?.matcher();
    /// let completion = matcher.shortest_completion(&CompletionOptions::default())?;
    /// assert_eq!(completion.length, 1 + 100_000 * 6);
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
        let index = self.index.clone();
        let mut state = index.lock();
        let found = self.with_retry(&index, &mut state, |matcher, state| {
            matcher.complete(&index, state, options)
        });
        found.map_err(|limit| AdvanceError::Limit { what: limit.what() })
    }

    /// Tokens that spell a shortest completion, as few as there are for its text; the masks allow each of them. A stop token
    /// may follow them and is not among them. Other texts of the same or a greater length may need fewer tokens, so their number
    /// is an upper bound. `None` where the completion is longer than [`CompletionOptions::longest`], or has bytes that no
    /// token spells.
    pub fn shortest_completion_tokens(
        &mut self,
        options: &CompletionOptions,
    ) -> Result<Option<Vec<TokenId>>, AdvanceError> {
        let completion = self.shortest_completion(options)?;
        let mut out = Vec::new();
        for piece in completion.pieces.iter().flatten() {
            match piece {
                Piece::Special(token) => out.push(*token),
                Piece::Bytes(bytes) => match fewest(&self.index.vocab, bytes) {
                    Some(tokens) => out.extend(tokens),
                    None => return Ok(None),
                },
            }
        }
        Ok(completion.pieces.is_some().then_some(out))
    }

    fn complete(
        &self,
        index: &Index,
        state: &mut IndexState,
        options: &CompletionOptions,
    ) -> Result<Completion, ParserLimit> {
        let special = u64::from(options.special_length.max(1));
        let lengths = match &mut state.lengths {
            Some(lengths) if lengths.special() == special => lengths,
            other => other.insert(Box::new(Lengths::new(special, index.vocab.missing_bytes()))),
        };
        if !index.compiled.scopes.is_empty() || state.parser.is_named(self.config()) {
            return self.complete_compared(index, state, options);
        }
        // A configuration that can be reached can be completed.
        let Some((length, steps)) = lengths.shortest(&mut state.parser, self.config())? else {
            return Ok(Completion { length: u64::MAX, pieces: None });
        };
        if length > special.saturating_mul(options.longest as u64) {
            return Ok(Completion { length, pieces: None });
        }
        let text = lengths.text(&steps, options.longest);
        let quotes = text.iter().filter(|step| matches!(step, Step::Byte(b'"'))).count();
        if quotes >= 4 && state.parser.program().has_names() {
            // There may be two names in it.
            return self.complete_compared(index, state, options);
        }
        Ok(Completion {
            length,
            pieces: (text.len() <= options.longest).then(|| pieces(index, &text)),
        })
    }
}

fn pieces(index: &Index, text: &[Step]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for &step in text {
        match (step, pieces.last_mut()) {
            (Step::Byte(byte), Some(Piece::Bytes(bytes))) => bytes.push(byte),
            (Step::Byte(byte), _) => pieces.push(Piece::Bytes(vec![byte])),
            (Step::Special(special), _) => {
                pieces.push(Piece::Special(index.specials[special as usize].first()))
            }
            _ => {}
        }
    }
    pieces
}

/// The fewest tokens that spell these bytes.
fn fewest(vocab: &Vocabulary, bytes: &[u8]) -> Option<Vec<TokenId>> {
    let trie = vocab.trie();
    // Per place, from the end: how many tokens the rest takes, and the first of them.
    let mut best: Vec<Option<(usize, TokenId, usize)>> = vec![None; bytes.len()];
    for at in (0..bytes.len()).rev() {
        let mut node = 0;
        for end in at + 1..=bytes.len() {
            let Some(child) = trie.child(node, bytes[end - 1]) else { break };
            node = child;
            let rest = if end == bytes.len() { Some(0) } else { best[end].map(|b| b.0) };
            if let (Some(&word), Some(rest)) = (trie.words_at(node).first(), rest)
                && best[at].is_none_or(|(count, ..)| rest + 1 < count)
            {
                best[at] = Some((rest + 1, word, end));
            }
        }
    }
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (_, word, end) = best[at]?;
        out.push(word);
        at = end;
    }
    Some(out)
}

#[cfg(test)]
mod tests;
