//! Leaf. The model's vocabulary as bytes: a flat trie over the tokens that have text, special tokens apart.

mod quoting;
mod shapes;
mod trie;
mod white;

pub(crate) use quoting::Quoting;
pub(crate) use shapes::Shapes;
pub(crate) use trie::{Fan, Planting, descend, descend_from};
pub use trie::{Node, Tree, Trie};

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use crate::fsm::{ByteSet, Grouped, Triples};
use crate::ids::TokenId;

pub(crate) use white::WhiteSpace;

/// Most token ids a vocabulary may have (the largest models have about 262,000).
pub const MAX_WIDTH: usize = 1 << 24;
/// Longest token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 1 << 12;

/// Why a vocabulary cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VocabError {
    /// A token id lies outside the logits.
    #[error("token id {id} is outside the logits of width {width}")]
    OutOfRange {
        /// The id.
        id: u32,
        /// The logits' width.
        width: usize,
    },
    /// The same id was given twice.
    #[error("token id {id} is given twice")]
    Duplicate {
        /// The id.
        id: u32,
    },
    /// The logits are wider than any model's.
    #[error("vocabulary width {width} is over the limit of {MAX_WIDTH}")]
    TooWide {
        /// The logits' width.
        width: usize,
    },
    /// A token is longer than any real one.
    #[error("token {id} has {len} bytes, over the limit of {MAX_TOKEN_BYTES}")]
    TokenTooLong {
        /// The id.
        id: u32,
        /// Its length in bytes.
        len: usize,
    },
    /// There is no stop token, so nothing could ever end.
    #[error("no stop token: a constrained generation could never end")]
    NoStopToken,
}

/// What a token id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Beyond the tokenizer, or an id it leaves out: never allowed.
    Unused,
    /// Text, matched byte by byte.
    Bytes { at: u32, len: u32 },
    /// A special token: matched by name or id only, never by bytes.
    Special,
}

/// A model's vocabulary, bound to the width of its logits. Immutable; share it in an `Arc`.
///
/// A special token is never matched by bytes, and bytes never spell a special token. Stop tokens are allowed exactly
/// where a grammar may end; they are not matched by bytes either. Ids without a token are always masked.
#[derive(Debug)]
pub struct Vocabulary {
    tokens: Vec<Token>,
    bytes: Vec<u8>,
    specials: HashMap<String, TokenId>,
    special_ids: Vec<(TokenId, String)>,
    stops: Vec<TokenId>,
    trie: Trie,
    shapes: Shapes,
    missing: ByteSet,
    reach: usize,
    fingerprint: u64,
    /// See [`Vocabulary::of_chars`].
    by_chars: Vec<(u32, TokenId)>,
    quoting: Quoting,
    white_space: WhiteSpace,
    triples: Triples,
    /// See [`Vocabulary::place`].
    places: OnceLock<Box<[u32]>>,
}

/// Collects tokens for a [`Vocabulary`].
#[derive(Debug)]
pub struct VocabularyBuilder {
    tokens: Vec<Token>,
    bytes: Vec<u8>,
    special_ids: Vec<(TokenId, String)>,
    stops: Vec<TokenId>,
    error: Option<VocabError>,
}

impl Vocabulary {
    /// A builder for logits of this width (the tokenizer may have fewer ids; the rest stays masked).
    pub fn builder(width: usize) -> VocabularyBuilder {
        let error = (width > MAX_WIDTH).then_some(VocabError::TooWide { width });
        VocabularyBuilder {
            tokens: vec![Token::Unused; if error.is_some() { 0 } else { width }],
            bytes: Vec::new(),
            special_ids: Vec::new(),
            stops: Vec::new(),
            error,
        }
    }

    /// A small vocabulary for tests and for work without a model: the 256 single bytes as ids 0..=255 and one stop
    /// token, id 256, named `<|end|>`; then the given extra tokens as ids 257 and up.
    pub fn toy(extra: &[&[u8]]) -> Vocabulary {
        let mut builder = Vocabulary::builder(257 + extra.len());
        for b in 0..=255u8 {
            builder.token(u32::from(b), &[b]);
        }
        builder.special(256, "<|end|>").stop(256);
        for (i, bytes) in extra.iter().enumerate() {
            builder.token(257 + i as u32, bytes);
        }
        builder.build().expect("the toy vocabulary is valid")
    }

    /// Width of the logits, in ids.
    pub fn width(&self) -> usize {
        self.tokens.len()
    }

    /// Tokens with text of at least so many code points, with how many those are: bytes that continue one apart.
    pub(crate) fn of_chars(&self, chars: usize) -> &[(u32, TokenId)] {
        &self.by_chars[..self.by_chars.partition_point(|&(n, _)| n as usize >= chars)]
    }

    /// Tokens that can hold whole strings.
    pub(crate) fn quoting(&self) -> &Quoting {
        &self.quoting
    }

    /// The row of the tokens that are at most so much white space and nothing else; none where they are few.
    pub(crate) fn white_row(&self, most: u32) -> Option<Arc<[u32]>> {
        let white = self.trie.white()?;
        Some(self.white_space.row(&white.only, most, self.mask_words()))
    }

    /// The runs of white space in tokens.
    pub(crate) fn white_space(&self) -> &WhiteSpace {
        &self.white_space
    }

    /// Which three bytes follow each other in some token.
    pub(crate) fn triples(&self) -> &Triples {
        &self.triples
    }

    /// Where a token with text is in the list of the trie's words.
    pub(crate) fn place(&self, token: TokenId) -> Option<u32> {
        const NOWHERE: u32 = u32::MAX;
        let places = self.places.get_or_init(|| {
            let mut places = vec![NOWHERE; self.width()];
            self.trie
                .words_below(0)
                .iter()
                .zip(0..)
                .for_each(|(id, place)| places[id.index()] = place);
            places.into()
        });
        places.get(token.index()).copied().filter(|&place| place != NOWHERE)
    }

    /// Words of a bitmask row: 32 ids a word.
    pub fn mask_words(&self) -> usize {
        self.width().div_ceil(32)
    }

    /// A token's bytes; none for special, stop-only and unused ids.
    #[inline]
    pub fn bytes(&self, token: TokenId) -> Option<&[u8]> {
        match self.tokens.get(token.index()) {
            Some(&Token::Bytes { at, len }) => Some(&self.bytes[at as usize..(at + len) as usize]),
            _ => None,
        }
    }

    /// The id of a special token by its text.
    pub fn special(&self, name: &str) -> Option<TokenId> {
        self.specials.get(name).copied()
    }

    /// A token with exactly these bytes. Cost: linear in their number.
    pub fn find(&self, bytes: &[u8]) -> Option<TokenId> {
        let node = bytes.iter().try_fold(0, |node, &byte| self.trie.child(node, byte))?;
        self.trie.words_at(node).first().copied()
    }

    /// Whether the id is a special token.
    pub fn is_special(&self, token: TokenId) -> bool {
        matches!(self.tokens.get(token.index()), Some(Token::Special))
    }

    /// The text of a special token.
    pub fn special_name(&self, token: TokenId) -> Option<&str> {
        self.special_ids.iter().find(|(id, _)| *id == token).map(|(_, name)| name.as_str())
    }

    /// A token as people read it: its text, each byte as `\xNN` where the bytes are no text, the name of a special token.
    pub fn shown(&self, token: TokenId) -> String {
        match self.bytes(token) {
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
            },
            None => self.special_name(token).unwrap_or("(unused)").to_owned(),
        }
    }

    /// All special tokens.
    pub fn specials(&self) -> &[(TokenId, String)] {
        &self.special_ids
    }

    /// The tokens that end a generation.
    pub fn stops(&self) -> &[TokenId] {
        &self.stops
    }

    /// Whether the id ends a generation.
    pub fn is_stop(&self, token: TokenId) -> bool {
        self.stops.contains(&token)
    }

    /// Whether the id stands for anything.
    pub fn is_used(&self, token: TokenId) -> bool {
        !matches!(self.tokens.get(token.index()), None | Some(Token::Unused)) || self.is_stop(token)
    }

    /// The byte trie over all tokens that have text.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// The same by shapes.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Bytes no token can express. A grammar that needs one of them can come to a point where nothing is allowed.
    pub fn missing_bytes(&self) -> ByteSet {
        self.missing
    }

    /// Length of the longest token, in bytes.
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// A hash of the whole content, found when the vocabulary is built: equal vocabularies have equal ones. Others may, too;
    /// `==` compares the content.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Vocabularies are equal if every id stands for the same in both. Cost: a look where they are the same allocation or differ in their
/// fingerprints, otherwise a walk over all tokens.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        let content = |vocab: &Vocabulary| (vocab.width(), vocab.fingerprint);
        let same = |id: usize| match (&self.tokens[id], &other.tokens[id]) {
            (Token::Bytes { .. }, Token::Bytes { .. }) => {
                self.bytes(TokenId::new(id)) == other.bytes(TokenId::new(id))
            }
            (a, b) => a == b,
        };
        std::ptr::eq(self, other)
            || content(self) == content(other)
                && self.stops == other.stops
                && self.special_ids == other.special_ids
                && (0..self.width()).all(same)
    }
}

impl Eq for Vocabulary {}

/// Tokens by their number of code points, the longest first.
fn by_chars(entries: &[(&[u8], TokenId)]) -> Vec<(u32, TokenId)> {
    let chars = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u32;
    let counted: Vec<(u32, TokenId)> =
        entries.iter().map(|&(bytes, id)| (chars(bytes), id)).collect();
    // Tokens are short: those of each length are put in their place.
    let most = counted.iter().map(|&(n, _)| n).max().unwrap_or(0);
    let sorted = Grouped::new(most as usize + 1, || counted.iter().map(|&(n, id)| (n, id.raw())));
    let of_length = |n: u32| sorted.of(n).iter().map(move |&id| (n, TokenId::from_raw(id)));
    (0..=most).rev().flat_map(of_length).collect()
}

impl VocabularyBuilder {
    fn set(&mut self, id: u32, token: Token) {
        let width = self.tokens.len();
        match self.tokens.get_mut(id as usize) {
            Some(slot @ Token::Unused) => *slot = token,
            Some(_) => self.fail(VocabError::Duplicate { id }),
            None => self.fail(VocabError::OutOfRange { id, width }),
        }
    }

    fn fail(&mut self, error: VocabError) {
        self.error.get_or_insert(error);
    }

    /// A token with text. An empty text makes the id unusable (it could repeat forever without progress).
    pub fn token(&mut self, id: u32, bytes: &[u8]) -> &mut Self {
        if bytes.len() > MAX_TOKEN_BYTES {
            self.fail(VocabError::TokenTooLong { id, len: bytes.len() });
        } else if !bytes.is_empty() {
            let at = self.bytes.len() as u32;
            self.bytes.extend_from_slice(bytes);
            self.set(id, Token::Bytes { at, len: bytes.len() as u32 });
        }
        self
    }

    /// A special token with its text.
    pub fn special(&mut self, id: u32, name: &str) -> &mut Self {
        self.set(id, Token::Special);
        self.special_ids.push((TokenId::from_raw(id), name.to_owned()));
        self
    }

    /// Marks an id as a stop token (it may be special, have text, or be otherwise unused).
    pub fn stop(&mut self, id: u32) -> &mut Self {
        if id as usize >= self.tokens.len() {
            self.fail(VocabError::OutOfRange { id, width: self.tokens.len() });
        } else if !self.stops.contains(&TokenId::from_raw(id)) {
            self.stops.push(TokenId::from_raw(id));
        }
        self
    }

    /// Over what every id stands for, in whatever order it was given; special tokens come in order here.
    fn fingerprint(&self) -> u64 {
        let mut hasher = crate::hash::hasher();
        for token in &self.tokens {
            match *token {
                Token::Unused => 0u8.hash(&mut hasher),
                Token::Bytes { at, len } => {
                    (1u8, &self.bytes[at as usize..(at + len) as usize]).hash(&mut hasher)
                }
                Token::Special => 2u8.hash(&mut hasher),
            }
        }
        (&self.special_ids, &self.stops).hash(&mut hasher);
        hasher.finish()
    }

    /// The vocabulary. Cost: sorting the tokens once. Fails with the first mistake made while building.
    pub fn build(mut self) -> Result<Vocabulary, VocabError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.stops.is_empty() {
            return Err(VocabError::NoStopToken);
        }
        self.stops.sort_unstable();
        self.special_ids.sort();
        let mut entries: Vec<(&[u8], TokenId)> = Vec::new();
        for (id, token) in self.tokens.iter().enumerate() {
            let id = TokenId::new(id);
            if let Token::Bytes { at, len } = *token
                && self.stops.binary_search(&id).is_err()
            {
                entries.push((&self.bytes[at as usize..(at + len) as usize], id));
            }
        }
        let reach = entries.iter().map(|(b, _)| b.len()).max().unwrap_or(0);
        let mut missing = ByteSet::ALL;
        for (bytes, _) in &entries {
            if let [byte] = bytes {
                missing.remove(*byte);
            }
        }
        let white_space = WhiteSpace::of(&entries, self.tokens.len());
        let quoting = Quoting::of(&entries);
        let by_chars = by_chars(&entries);
        let triples = Triples::of(entries.iter().map(|(bytes, _)| *bytes));
        let trie = Trie::build(entries);
        let shapes = Shapes::new(&trie);
        let fingerprint = self.fingerprint();
        let specials = self.special_ids.iter().map(|(id, name)| (name.clone(), *id)).collect();
        Ok(Vocabulary {
            tokens: self.tokens,
            bytes: self.bytes,
            specials,
            special_ids: self.special_ids,
            stops: self.stops,
            trie,
            shapes,
            missing,
            reach,
            fingerprint,
            by_chars,
            quoting,
            white_space,
            triples,
            places: OnceLock::new(),
        })
    }
}
