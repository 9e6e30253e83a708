//! Leaf: the model's vocabulary as bytes, with the indexes that masks are made from.
//!
//! A [`Vocabulary`] holds a [`Trie`] over the tokens that have text; special tokens are apart.
//! Further indexes answer questions about all tokens at once: tokens by shape, by code points, by
//! white space, by quotes, and by trigrams.

mod shape_tree;
mod tokens_by_count;
mod trie;
mod white_space;

pub(crate) use shape_tree::ShapeTree;
pub(crate) use tokens_by_count::TokensByCount;
pub use trie::{Node, NodeId, Tree, Trie};
pub(crate) use trie::{descend, descend_from};

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::fsm::{ByteSet, Trigrams};
use crate::ids::TokenId;

pub(crate) use white_space::WhiteSpaceIndex;

/// Most token ids of a vocabulary. The largest models have about 262,000.
pub const MAX_WIDTH: usize = 1 << 24;
/// Longest token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 1 << 12;

/// Why a vocabulary was not built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VocabError {
    /// A token id is not less than the width of the logits.
    #[error("token id {id} is outside the logits of width {width}")]
    OutOfRange {
        /// The id.
        id: u32,
        /// The width of the logits, in ids.
        width: usize,
    },
    /// Two tokens have the same id.
    #[error("token id {id} is given twice")]
    Duplicate {
        /// The id.
        id: u32,
    },
    /// Two special tokens have the same name.
    #[error("two special tokens are called {name:?}")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The logits are wider than [`MAX_WIDTH`].
    #[error("vocabulary width {width} is over the limit of {MAX_WIDTH}")]
    TooWide {
        /// The width of the logits, in ids.
        width: usize,
    },
    /// A token is longer than [`MAX_TOKEN_BYTES`].
    #[error("token {id} has {len} bytes, over the limit of {MAX_TOKEN_BYTES}")]
    TokenTooLong {
        /// The id.
        id: u32,
        /// Its length in bytes.
        len: usize,
    },
    /// There is no stop token, so a constrained generation could never end.
    #[error("no stop token: a constrained generation could never end")]
    NoStopToken,
}

/// What a token id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Nothing: beyond the tokenizer's ids, or left out by it. Never allowed.
    Unused,
    /// Text, matched byte by byte.
    Bytes { at: u32, len: u32 },
    /// A special token, matched by name or id only.
    Special,
}

/// A model's vocabulary, bound to the width of its logits. Immutable; share it in an `Arc`.
///
/// Special tokens are never matched by bytes, and bytes never spell a special token. Stop tokens
/// are allowed exactly where a grammar may end; they are not matched by bytes either. Ids without a
/// token are always masked.
///
/// ```
/// use louver::{TokenId, VocabError, Vocabulary};
///
/// // 100 logits; ids without a token stay masked.
/// let mut builder = Vocabulary::builder(100);
/// builder.token(0, b"a").token(1, b"ab").special(2, "<|end|>").stop(2);
/// let vocab = builder.build()?;
/// assert_eq!(vocab.bytes(TokenId::from_raw(1)), Some(&b"ab"[..]));
/// assert_eq!(vocab.special("<|end|>"), Some(TokenId::from_raw(2)));
/// assert_eq!(vocab.mask_words(), 4);
/// assert!(!vocab.is_used(TokenId::from_raw(50)));
/// # Ok::<(), VocabError>(())
/// ```
#[derive(Debug)]
pub struct Vocabulary {
    tokens: Vec<Token>,
    bytes: Vec<u8>,
    specials: HashMap<String, TokenId>,
    special_ids: Vec<(TokenId, String)>,
    stops: Vec<TokenId>,
    missing: ByteSet,
    max_token_bytes: usize,
    fingerprint: u64,
    indexes: TokenIndexes,
}

/// Indexes of the tokens that have text and are not stop tokens.
#[derive(Debug)]
struct TokenIndexes {
    trie: Arc<Trie>,
    shape_tree: ShapeTree,
    /// See [`Vocabulary::by_chars`].
    by_chars: TokensByCount,
    /// See [`Vocabulary::by_quotes`].
    by_quotes: TokensByCount,
    white_space: WhiteSpaceIndex,
    trigrams: Trigrams,
}

impl TokenIndexes {
    /// Indexes tokens. Cost: linear in all bytes, and one sort.
    fn new(entries: Vec<(&[u8], TokenId)>) -> TokenIndexes {
        let number_of = |bytes: &[u8], is_counted: fn(&u8) -> bool| {
            bytes.iter().filter(|byte| is_counted(byte)).count() as u32
        };
        let with_number =
            |is_counted| entries.iter().map(move |&(bytes, id)| (number_of(bytes, is_counted), id));
        let chars: Vec<_> = with_number(|byte| byte & 0xC0 != 0x80).collect();
        let quotes: Vec<_> =
            with_number(|byte| *byte == b'"').filter(|&(quotes, _)| quotes > 1).collect();
        let [by_chars, by_quotes] = [chars, quotes].map(|pairs| TokensByCount::from_pairs(&pairs));
        let white_space = WhiteSpaceIndex::new(&entries);
        let trigrams = Trigrams::new(entries.iter().map(|(bytes, _)| *bytes));
        let trie = Arc::new(Trie::build(entries));
        let shape_tree = ShapeTree::new(&trie);
        TokenIndexes { trie, shape_tree, by_chars, by_quotes, white_space, trigrams }
    }
}

/// Collects the tokens of a [`Vocabulary`]. Mistakes are reported by [`VocabularyBuilder::build`].
///
/// ```
/// use louver::{VocabError, Vocabulary};
///
/// let mut builder = Vocabulary::builder(10);
/// builder.token(3, b"x").token(3, b"y").stop(9);
/// assert_eq!(builder.build().unwrap_err(), VocabError::Duplicate { id: 3 });
/// let mut builder = Vocabulary::builder(10);
/// builder.special(3, "<end>").special(4, "<end>").stop(9);
/// let name = "<end>".to_owned();
/// assert_eq!(builder.build().unwrap_err(), VocabError::DuplicateName { name });
/// ```
#[derive(Debug)]
pub struct VocabularyBuilder {
    tokens: Vec<Token>,
    bytes: Vec<u8>,
    special_ids: Vec<(TokenId, String)>,
    stops: Vec<TokenId>,
    error: Option<VocabError>,
}

impl Vocabulary {
    /// A builder for logits of this width, in ids. A tokenizer may have fewer ids than the logits.
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

    /// A small vocabulary for tests and for work without a model: the 256 single bytes as ids 0 to
    /// 255, one stop token `<|end|>` with id 256, then the given tokens from id 257 on.
    ///
    /// ```
    /// use louver::Vocabulary;
    ///
    /// let vocab = Vocabulary::toy(&[b"true", b"null"]);
    /// assert_eq!((vocab.width(), vocab.find(b"null").unwrap().raw()), (259, 258));
    /// ```
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

    /// Tokens by their number of code points. Bytes that continue a code point are not counted.
    pub(crate) fn by_chars(&self) -> &TokensByCount {
        &self.indexes.by_chars
    }

    /// Tokens with at least two quotes, by their number: a token with two can contain a whole JSON
    /// string, and one with four can contain two, such as two member names.
    pub(crate) fn by_quotes(&self) -> &TokensByCount {
        &self.indexes.by_quotes
    }

    /// Tokens by the runs of white space in them.
    pub(crate) fn white_space(&self) -> &WhiteSpaceIndex {
        &self.indexes.white_space
    }

    /// The trigrams (three consecutive bytes) of all tokens.
    pub(crate) fn trigrams(&self) -> &Trigrams {
        &self.indexes.trigrams
    }

    /// Words of a mask: 32 ids a word.
    pub fn mask_words(&self) -> usize {
        self.width().div_ceil(32)
    }

    /// The bytes of a token; `None` for special, stop-only and unused ids.
    #[inline]
    pub fn bytes(&self, token: TokenId) -> Option<&[u8]> {
        match self.tokens.get(token.index()) {
            Some(&Token::Bytes { at, len }) => Some(&self.bytes[at as usize..(at + len) as usize]),
            _ => None,
        }
    }

    /// The id of a special token by its name.
    ///
    /// ```
    /// use louver::Vocabulary;
    ///
    /// let vocab = Vocabulary::toy(&[]);
    /// assert_eq!(vocab.special("<|end|>"), Some(vocab.stops()[0]));
    /// assert_eq!(vocab.special("<|start|>"), None);
    /// ```
    pub fn special(&self, name: &str) -> Option<TokenId> {
        self.specials.get(name).copied()
    }

    /// A token with exactly these bytes. Cost: linear in their number.
    ///
    /// ```
    /// use louver::{TokenId, Vocabulary};
    ///
    /// let vocab = Vocabulary::toy(&[b"true"]);
    /// assert_eq!(vocab.find(b"true"), Some(TokenId::from_raw(257)));
    /// assert_eq!(vocab.find(b"tru"), None);
    /// ```
    pub fn find(&self, bytes: &[u8]) -> Option<TokenId> {
        self.trie().tokens_at(self.trie().find(bytes)?).first().copied()
    }

    /// Whether the id is a special token.
    pub fn is_special(&self, token: TokenId) -> bool {
        matches!(self.tokens.get(token.index()), Some(Token::Special))
    }

    /// The name of a special token. Cost: linear in the number of special tokens.
    pub fn special_name(&self, token: TokenId) -> Option<&str> {
        self.special_ids.iter().find(|(id, _)| *id == token).map(|(_, name)| name.as_str())
    }

    /// What a token adds to the text: the name of a special token, or its bytes.
    pub fn text(&self, token: TokenId) -> &[u8] {
        let name = self.special_name(token).map(str::as_bytes);
        name.or_else(|| self.bytes(token)).unwrap_or_default()
    }

    /// A token for display: its text; `\xNN` for each byte if it is not UTF-8; the name of a
    /// special token.
    ///
    /// ```
    /// use louver::{TokenId, Vocabulary};
    ///
    /// let vocab = Vocabulary::toy(&[]);
    /// let shown = [97, 255, 256].map(|id| vocab.shown(TokenId::from_raw(id)));
    /// assert_eq!(shown, ["a", r"\xff", "<|end|>"]);
    /// ```
    pub fn shown(&self, token: TokenId) -> String {
        match self.bytes(token) {
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
            },
            None => self.special_name(token).unwrap_or("(unused)").to_owned(),
        }
    }

    /// All special tokens with their names, by id.
    pub fn specials(&self) -> &[(TokenId, String)] {
        &self.special_ids
    }

    /// The stop tokens, by id.
    pub fn stops(&self) -> &[TokenId] {
        &self.stops
    }

    /// Whether the id is a stop token.
    pub fn is_stop(&self, token: TokenId) -> bool {
        self.stops.contains(&token)
    }

    /// Whether the id stands for a token.
    pub fn is_used(&self, token: TokenId) -> bool {
        !matches!(self.tokens.get(token.index()), None | Some(Token::Unused)) || self.is_stop(token)
    }

    /// The trie over all tokens that have text and are not stop tokens.
    pub fn trie(&self) -> &Trie {
        &self.indexes.trie
    }

    /// As [`Vocabulary::trie`], for those who keep it.
    pub(crate) fn shared_trie(&self) -> &Arc<Trie> {
        &self.indexes.trie
    }

    /// The trie by the shapes of bytes.
    pub(crate) fn shape_tree(&self) -> &ShapeTree {
        &self.indexes.shape_tree
    }

    /// Bytes that are not a token by themselves. A grammar that needs one can reach a configuration
    /// in which no token is allowed.
    pub fn missing_bytes(&self) -> ByteSet {
        self.missing
    }

    /// Length of the longest token, in bytes.
    pub fn max_token_bytes(&self) -> usize {
        self.max_token_bytes
    }

    /// A hash of the content: equal vocabularies have equal fingerprints. `==` compares the
    /// content. Valid within one process only.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Vocabularies are equal if every id stands for the same token in both. Cost: constant if they are
/// one allocation or their fingerprints differ, otherwise linear in all bytes.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        let content = |vocab: &Vocabulary| (vocab.width(), vocab.fingerprint);
        let is_equal = |id: usize| match (&self.tokens[id], &other.tokens[id]) {
            (Token::Bytes { .. }, Token::Bytes { .. }) => {
                self.bytes(TokenId::new(id)) == other.bytes(TokenId::new(id))
            }
            (a, b) => a == b,
        };
        std::ptr::eq(self, other)
            || content(self) == content(other)
                && self.stops == other.stops
                && self.special_ids == other.special_ids
                && (0..self.width()).all(is_equal)
    }
}

impl Eq for Vocabulary {}

impl VocabularyBuilder {
    /// Sets what an id stands for.
    fn set(&mut self, id: u32, token: Token) {
        let width = self.tokens.len();
        match self.tokens.get_mut(id as usize) {
            Some(slot @ Token::Unused) => *slot = token,
            Some(_) => self.fail(VocabError::Duplicate { id }),
            None => self.fail(VocabError::OutOfRange { id, width }),
        }
    }

    /// Keeps the first error.
    fn fail(&mut self, error: VocabError) {
        self.error.get_or_insert(error);
    }

    /// Adds a token with text. An empty text leaves the id unused: such a token could repeat for
    /// ever.
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

    /// Adds a special token with its name.
    pub fn special(&mut self, id: u32, name: &str) -> &mut Self {
        self.set(id, Token::Special);
        self.special_ids.push((TokenId::from_raw(id), name.to_owned()));
        self
    }

    /// Marks an id as a stop token. It may be special, have text, or be otherwise unused.
    pub fn stop(&mut self, id: u32) -> &mut Self {
        if id as usize >= self.tokens.len() {
            self.fail(VocabError::OutOfRange { id, width: self.tokens.len() });
        } else if !self.stops.contains(&TokenId::from_raw(id)) {
            self.stops.push(TokenId::from_raw(id));
        }
        self
    }

    /// A hash of what every id stands for, independent of the order in which ids were given.
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

    /// The vocabulary. Cost: one sort of the tokens, and the indexes: linear in all bytes.
    ///
    /// Errors: the first mistake made while building, [`VocabError::NoStopToken`], or
    /// [`VocabError::DuplicateName`].
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
        let max_token_bytes = entries.iter().map(|(b, _)| b.len()).max().unwrap_or(0);
        let mut missing = ByteSet::ALL;
        for (bytes, _) in &entries {
            if let [byte] = bytes {
                missing.remove(*byte);
            }
        }
        let indexes = TokenIndexes::new(entries);
        let fingerprint = self.fingerprint();
        let mut specials = HashMap::default();
        for (id, name) in &self.special_ids {
            if specials.insert(name.clone(), *id).is_some() {
                return Err(VocabError::DuplicateName { name: name.clone() });
            }
        }
        Ok(Vocabulary {
            tokens: self.tokens,
            bytes: self.bytes,
            specials,
            special_ids: self.special_ids,
            stops: self.stops,
            missing,
            max_token_bytes,
            fingerprint,
            indexes,
        })
    }
}
