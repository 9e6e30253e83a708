//! The unique continuation: what follows whatever the model says.

use super::Matcher;
use crate::ids::TokenId;
use crate::mask::Tokens;
use crate::mask::{Index, IndexState};
use crate::matcher::{ConfigId, DEAD, ParserLimit};
use crate::vocab::Vocabulary;

/// Part of a text that has special tokens in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// A special token.
    Special(TokenId),
}

/// Bytes that must follow one another, and the special token that must follow them, if one must.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    /// Behind all bytes.
    end: ConfigId,
    special: Option<TokenId>,
}

/// Makes tokens of bytes as the model's tokenizer does. The tokens must spell the bytes one after the other; from the first
/// on that does not, they are not used.
pub type Tokenize<'t> = dyn FnMut(&[u8]) -> Vec<TokenId> + 't;

impl Matcher {
    /// What must follow: as long as exactly one byte or one special token can, and the text may not end. At most `longest`
    /// bytes and special tokens. Cost: one step a byte.
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

    /// The bytes that must follow, up to the first special token: as long as exactly one byte can follow, and the text may
    /// not end. At most `longest`. Cost: one step a byte.
    pub fn forced_bytes(&mut self, longest: usize) -> Vec<u8> {
        self.forced_runs(longest).into_iter().next().map(|run| run.bytes).unwrap_or_default()
    }

    /// The tokens that must follow, of at most `longest` bytes and special tokens; every one of them is allowed by the mask
    /// after those before it. They can be appended without asking the model, or used as a draft ([`DraftTree::chain`]).
    ///
    /// The bytes are cut into tokens by taking the longest token at each place. A token is only returned if every
    /// continuation that the grammar allows, cut that way from here, has it: a last token is left out if a longer token that
    /// the grammar allows could take its place. Tokenizers cut text differently where they merge in another order (BPE) or
    /// look at what is around: use [`Matcher::forced_tokens_with`] where the model should see its own tokenisation. Neither
    /// looks at the text before the matcher's place, so the first token may be one that the tokenizer would
    /// have merged with the last token taken.
    ///
    /// [`DraftTree::chain`]: super::DraftTree::chain
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::engine::{Engine, EngineOptions};
    /// # use louver::front::json_schema::SchemaOptions;
    /// # use louver::vocab::Vocabulary;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"\"o", b"n\"", b"\"ready"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let schema = r#"{"enum": ["ready", "really"]}"#;
    /// let mut matcher = engine.compile_json_schema(schema, &SchemaOptions::default())?.matcher();
    /// assert_eq!(matcher.forced_bytes(100), b"\"rea");
    /// // All of these could still become the token `"ready`.
    /// assert_eq!(matcher.forced_tokens(100), []);
    /// matcher.advance(vocab.find(b"\"").unwrap())?;
    /// let tokens: Vec<_> = matcher.forced_tokens(100).iter().map(|&t| vocab.bytes(t).unwrap()).collect();
    /// assert_eq!(tokens, [b"r", b"e", b"a"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn forced_tokens(&mut self, longest: usize) -> Vec<TokenId> {
        let vocab = self.index.vocab.clone();
        self.tokenized(longest, Boundaries::OfTokens, &mut |bytes| greedy(&vocab, bytes))
    }

    /// As [`Matcher::forced_tokens`] with a tokenizer. Where a longer token that the grammar allows could begin anywhere
    /// in the last bytes and reach beyond them, all tokens from there on are left out.
    pub fn forced_tokens_with(
        &mut self,
        longest: usize,
        tokenize: &mut Tokenize<'_>,
    ) -> Vec<TokenId> {
        self.tokenized(longest, Boundaries::Anywhere, tokenize)
    }

    fn forced_runs(&mut self, longest: usize) -> Vec<Run> {
        if self.is_over() {
            return Vec::new();
        }
        let index = self.index.clone();
        let mut state = index.lock();
        let runs = self
            .with_retry(&index, &mut state, |matcher, state| matcher.runs(&index, state, longest));
        runs.unwrap_or_default()
    }

    /// Empty where a limit is reached on the way: forcing is never needed.
    fn runs(
        &self,
        index: &Index,
        state: &mut IndexState,
        longest: usize,
    ) -> Result<Vec<Run>, ParserLimit> {
        let mut runs = Vec::new();
        let mut run = Run { end: self.config(), ..Run::default() };
        for _ in 0..longest {
            let parser = &mut state.parser;
            if parser.store().done(run.end).root {
                break;
            }
            let bytes = parser.follows(run.end)?;
            let mut specials: Vec<u32> = parser.specials(run.end).collect();
            specials.sort_unstable();
            specials.dedup();
            match (bytes.len(), specials[..].first()) {
                (1, None) => {
                    let Some(byte) = bytes.iter().next() else { break };
                    run.end = parser.advance(run.end, byte)?;
                    run.bytes.push(byte);
                }
                (0, Some(&special)) if specials.len() == 1 => {
                    let Tokens::One(token) = index.specials[special as usize] else { break };
                    let end = parser.step_special(run.end, special)?;
                    run.special = Some(token);
                    runs.push(std::mem::replace(&mut run, Run { end, ..Run::default() }));
                }
                _ => break,
            }
        }
        runs.push(run);
        Ok(runs)
    }

    fn tokenized(
        &mut self,
        longest: usize,
        boundaries: Boundaries,
        tokenize: &mut Tokenize<'_>,
    ) -> Vec<TokenId> {
        if self.is_over() {
            return Vec::new();
        }
        let index = self.index.clone();
        // The tokenizer is called without the lock; what it gives is checked against the bytes.
        let runs = self.forced_runs(longest);
        let mut out = Vec::new();
        for run in &runs {
            let mut tokens = spelling(&index.vocab, &run.bytes, tokenize(&run.bytes));
            match run.special {
                // Bytes and special tokens do not merge.
                Some(special) if tokens.last().map_or(0, |t| t.1) == run.bytes.len() => {
                    out.extend(tokens.iter().map(|t| t.0));
                    out.push(special);
                }
                Some(_) => {
                    out.extend(tokens.iter().map(|t| t.0));
                    return out;
                }
                None => {
                    let mut state = index.lock();
                    let open = self.with_retry(&index, &mut state, |matcher, state| {
                        let runs = matcher.runs(&index, state, longest)?;
                        let last = runs.last().map_or(DEAD, |run| run.end);
                        first_open(&index, state, (&run.bytes, last), &tokens, boundaries)
                    });
                    let settled = open.unwrap_or(0);
                    tokens.retain(|&(_, end)| end <= settled);
                    out.extend(tokens.iter().map(|t| t.0));
                }
            }
        }
        out
    }
}

/// Where a token may begin that takes others' place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boundaries {
    /// Where one of the tokens begins.
    OfTokens,
    Anywhere,
}

/// The tokens as far as they spell the bytes, each with where it ends.
fn spelling(vocab: &Vocabulary, bytes: &[u8], tokens: Vec<TokenId>) -> Vec<(TokenId, usize)> {
    let mut at = 0;
    let mut out = Vec::new();
    for token in tokens {
        let spells = vocab
            .bytes(token)
            .filter(|text| !vocab.is_stop(token) && bytes[at..].starts_with(text));
        let Some(text) = spells else { break };
        at += text.len();
        out.push((token, at));
    }
    out
}

/// The longest token at each place.
fn greedy(vocab: &Vocabulary, bytes: &[u8]) -> Vec<TokenId> {
    let trie = vocab.trie();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (mut node, mut best) = (0, None);
        for (i, &byte) in bytes[at..].iter().enumerate() {
            let Some(child) = trie.child(node, byte) else { break };
            node = child;
            best = trie.words_at(node).first().map(|&word| (word, i + 1)).or(best);
        }
        let Some((word, len)) = best else { break };
        out.push(word);
        at += len;
    }
    out
}

/// The first place from which on a longer token may take the place of the last ones: one that begins with all bytes from
/// there on, goes on beyond them, and may follow. All of `bytes` is settled if there is none.
fn first_open(
    index: &Index,
    state: &mut IndexState,
    (bytes, end): (&[u8], ConfigId),
    tokens: &[(TokenId, usize)],
    boundaries: Boundaries,
) -> Result<usize, ParserLimit> {
    let trie = index.vocab.trie();
    for from in bytes.len().saturating_sub(index.vocab.reach())..bytes.len() {
        let begins = from == 0 || tokens.iter().any(|&(_, end)| end == from);
        if boundaries == Boundaries::OfTokens && !begins {
            continue;
        }
        let node = bytes[from..].iter().try_fold(0, |node, &byte| trie.child(node, byte));
        if let Some(node) = node
            && goes_on(index, state, node, end)?
        {
            return Ok(from);
        }
    }
    Ok(bytes.len())
}

/// Whether a word strictly below a node can be read on from a configuration.
fn goes_on(
    index: &Index,
    state: &mut IndexState,
    node: u32,
    config: ConfigId,
) -> Result<bool, ParserLimit> {
    let trie = index.vocab.trie();
    let end = trie.node(node).end;
    let mut stack = vec![(end, config)];
    let mut at = node + 1;
    while at < end {
        while at >= stack[stack.len() - 1].0 {
            stack.pop();
        }
        let here = *trie.node(at);
        let next = state.parser.advance(stack[stack.len() - 1].1, here.byte)?;
        if next == DEAD {
            at = here.end;
            continue;
        }
        if !trie.words_at(at).is_empty() {
            return Ok(true);
        }
        stack.push((here.end, next));
        at += 1;
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
