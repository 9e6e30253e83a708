//! Encoding of text to tokens as a model emits them in the middle of its output.

use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use tokenizers::Tokenizer;

/// The tokenizer failed to encode a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot encode the text: {message}")]
pub struct EncodeError {
    /// The message of the `tokenizers` crate.
    pub message: String,
}

/// Encodes text without the special tokens and the leading space that some tokenizers add.
#[derive(Debug)]
pub struct Encoder<'t> {
    tokenizer: &'t Tokenizer,
    anchor: Option<Anchor>,
}

/// A prefix that is added before encoding and removed afterwards, for tokenizers that add a leading
/// space.
#[derive(Debug)]
struct Anchor {
    text: &'static str,
    tokens: Vec<u32>,
}

/// A control character that no merge of a real tokenizer contains.
const ANCHOR: &str = "\u{2}";

impl<'t> Encoder<'t> {
    /// Creates an encoder. Special tokens in a text are encoded as such; to keep them as text, use
    /// the tokenizer's `set_encode_special_tokens`.
    pub fn new(tokenizer: &'t Tokenizer, vocab: &Vocabulary) -> Encoder<'t> {
        let plain = Encoder { tokenizer, anchor: None };
        let first = plain.encode("a").unwrap_or_default();
        if bytes(vocab, &first).starts_with(b" ") {
            let tokens = plain.encode(ANCHOR).unwrap_or_default();
            return Encoder { tokenizer, anchor: Some(Anchor { text: ANCHOR, tokens }) };
        }
        plain
    }

    /// The token ids of a text. Errors: those of the tokenizer's pre-tokenizer or model.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        let run = |text: String| match self.tokenizer.encode(text, false) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(EncodeError { message: error.to_string() }),
        };
        let Some(anchor) = &self.anchor else { return run(text.to_owned()) };
        let ids = run(format!("{}{text}", anchor.text))?;
        match ids.strip_prefix(anchor.tokens.as_slice()) {
            Some(rest) => Ok(rest.to_vec()),
            None => run(text.to_owned()),
        }
    }
}

/// The bytes of tokens; special tokens as their text.
fn bytes(vocab: &Vocabulary, ids: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    for &id in ids {
        let id = TokenId::from_raw(id);
        match vocab.bytes(id) {
            Some(bytes) => out.extend_from_slice(bytes),
            None => out.extend_from_slice(vocab.special_name(id).unwrap_or_default().as_bytes()),
        }
    }
    out
}
