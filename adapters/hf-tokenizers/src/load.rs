//! Conversion of a tokenizer to a vocabulary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use louver::fsm::ByteSet;
use louver::vocab::{MAX_TOKEN_BYTES, VocabError, Vocabulary};
use louver::with_methods;
use tokenizers::Tokenizer;

use crate::decode::{DecoderError, TokenDecoder};
use crate::stops::{self, StopToken};

/// Options of the conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VocabOptions {
    /// Width of the model's logits. Models pad their vocabularies: ids beyond the tokenizer's are
    /// never allowed. By default the tokenizer's own width.
    pub width: Option<usize>,
    /// Stop tokens by id.
    pub stop_ids: Vec<u32>,
    /// Stop tokens by text; unknown ones cause a warning.
    pub stop_names: Vec<String>,
}

with_methods!(VocabOptions {
    with_width: width = impl Into<Option<usize>>,
    with_stop_ids: stop_ids = Vec<u32>,
    with_stop_names: stop_names = Vec<String>,
});

/// A vocabulary with its tokenizer and warnings.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The vocabulary.
    pub vocab: Vocabulary,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// A part of the tokenizer that could not be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// No single token has one of these bytes; a grammar that needs one can reach a dead end.
    #[error("no token can express the bytes {0}")]
    MissingBytes(ByteSet),
    /// The tokenizer's decoder disagrees with the derived bytes; the token is never allowed.
    #[error(
        "token {id} {token:?} is left out: it should decode to {expected:?}, but decodes to \
         {decoded:?}"
    )]
    Undecodable {
        /// The id.
        id: u32,
        /// Its text in the tokenizer.
        token: String,
        /// Its derived bytes as text.
        expected: String,
        /// The decoder's output.
        decoded: String,
    },
    /// An added token whose decoded text differs from its own; it has the decoded bytes.
    #[error("added token {id} {token:?} is shown as {shown:?}")]
    ShownDifferently {
        /// The id.
        id: u32,
        /// Its text in the tokenizer.
        token: String,
        /// The decoder's output.
        shown: String,
    },
    /// A token without text; it is never allowed.
    #[error("token {id} {token:?} is left out: it has no text")]
    NoText {
        /// The id.
        id: u32,
        /// Its text in the tokenizer.
        token: String,
    },
    /// A token longer than [`MAX_TOKEN_BYTES`]; it is never allowed.
    #[error("token {id} is left out: it has {len} bytes")]
    TooLong {
        /// The id.
        id: u32,
        /// Its length in bytes.
        len: usize,
    },
    /// Token ids beyond the width of the logits.
    #[error("{count} tokens from id {first} on are left out: the logits have {width} ids")]
    BeyondWidth {
        /// The first id.
        first: u32,
        /// Their number.
        count: usize,
        /// The logits' width.
        width: usize,
    },
    /// The tokenizer does not have a named stop token.
    #[error("stop token {0:?} is not in the tokenizer")]
    UnknownStop(String),
    /// No stop token was given or found in the files; a well-known one was used.
    #[error("no stop token was given; taking {name} (id {id})")]
    StopGuessed {
        /// The id.
        id: u32,
        /// Its text.
        name: String,
    },
}

/// Why a tokenizer cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read or is not a tokenizer.
    #[error("cannot load tokenizer {path}: {message}")]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// The message of the `tokenizers` crate.
        message: String,
    },
    /// The decoder cannot be used per token.
    #[error(transparent)]
    Decoder(#[from] DecoderError),
    /// The tokens are not a valid vocabulary.
    #[error(transparent)]
    Vocab(#[from] VocabError),
}

/// Loads a `tokenizer.json`. Stop tokens are those of the options or, if there are none, those of
/// `generation_config.json`, `config.json` and `tokenizer_config.json` in the same folder, or else
/// a well-known one.
///
/// Cost: decodes every token once; a fraction of a second for 150,000 tokens.
pub fn load(path: impl AsRef<Path>, options: &VocabOptions) -> Result<Loaded, LoadError> {
    let path = path.as_ref();
    let mut tokenizer = Tokenizer::from_file(path).map_err(|error| LoadError::Tokenizer {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    keep_whole_texts(&mut tokenizer);
    let mut options = options.clone();
    if options.stop_ids.is_empty() && options.stop_names.is_empty() {
        for stop in stops::read_from_folder(path.parent().unwrap_or(Path::new("."))) {
            match stop {
                StopToken::Id(id) => options.stop_ids.push(id),
                StopToken::Name(name) => options.stop_names.push(name),
            }
        }
    }
    let (vocab, warnings) = vocabulary(&tokenizer, &options)?;
    Ok(Loaded { vocab, tokenizer, warnings })
}

/// Removes the truncation and the padding of a tokenizer, which many files of fine-tuned models
/// have: with them, it encodes only the beginning of a longer text, without an error.
pub fn keep_whole_texts(tokenizer: &mut Tokenizer) {
    tokenizer.with_padding(None);
    // Only an invalid truncation is an error.
    let _ = tokenizer.with_truncation(None);
}

/// Converts a loaded tokenizer. Reads no files.
pub fn vocabulary(
    tokenizer: &Tokenizer,
    options: &VocabOptions,
) -> Result<(Vocabulary, Vec<Warning>), LoadError> {
    let decoder = TokenDecoder::new(tokenizer)?;
    let mut warnings = Vec::new();
    let tokens = collect_tokens(tokenizer);
    let required_width = tokens.last_key_value().map_or(0, |(id, _)| *id as usize + 1);
    let width = options.width.unwrap_or(required_width);
    let mut builder = Vocabulary::builder(width);
    let probe = DecodeProbe::new(tokenizer, &decoder, &tokens);
    let mut beyond_width: Option<(u32, usize)> = None;
    for (&id, token) in &tokens {
        if id as usize >= width {
            beyond_width = Some(beyond_width.map_or((id, 1), |(first, count)| (first, count + 1)));
            continue;
        }
        // GGUF files flag the tokens of single bytes as special, but they are text.
        if token.kind == TokenKind::Special && !decoder.is_byte(&token.text) {
            builder.special(id, &token.text);
            continue;
        }
        let (bytes, decoded) = (decoder.bytes(&token.text), probe.decode(id));
        match unusable(id, &token.text, &bytes, &decoded) {
            Some(warning) => warnings.push(warning),
            None => {
                if token.kind == TokenKind::Added && bytes != token.text.as_bytes() {
                    let token = token.text.clone();
                    warnings.push(Warning::ShownDifferently { id, token, shown: decoded });
                }
                builder.token(id, &bytes);
            }
        }
    }
    warnings.extend(beyond_width.map(|(first, count)| Warning::BeyondWidth {
        first,
        count,
        width,
    }));
    let stops = stop_ids(tokenizer, options, &mut warnings);
    for id in stops {
        builder.stop(id);
    }
    let vocab = builder.build()?;
    if !vocab.missing_bytes().is_empty() {
        warnings.push(Warning::MissingBytes(vocab.missing_bytes()));
    }
    Ok((vocab, warnings))
}

/// Why a token has no place in masks, if so. `decoded` is its text by the tokenizer.
fn unusable(id: u32, token: &str, bytes: &[u8], decoded: &str) -> Option<Warning> {
    let (shown, token) = (String::from_utf8_lossy(bytes), token.to_owned());
    if decoded != shown {
        let (expected, decoded) = (shown.into_owned(), decoded.to_owned());
        return Some(Warning::Undecodable { id, token, expected, decoded });
    }
    match bytes.len() {
        0 => Some(Warning::NoText { id, token }),
        len if len > MAX_TOKEN_BYTES => Some(Warning::TooLong { id, len }),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    /// A token of the model's vocabulary.
    Model,
    /// An added token with the flag `special`.
    Special,
    /// An added token without the flag: text.
    Added,
}

struct TokenizerEntry {
    text: String,
    kind: TokenKind,
}

/// All tokens by id; an added token overrides the model's token with the same id.
fn collect_tokens(tokenizer: &Tokenizer) -> BTreeMap<u32, TokenizerEntry> {
    let model = tokenizer.get_vocab(false).into_iter();
    let mut tokens: BTreeMap<u32, TokenizerEntry> =
        model.map(|(text, id)| (id, TokenizerEntry { text, kind: TokenKind::Model })).collect();
    for (id, added) in tokenizer.get_added_tokens_decoder() {
        let kind = if added.special { TokenKind::Special } else { TokenKind::Added };
        tokens.insert(id, TokenizerEntry { text: added.content, kind });
    }
    tokens
}

/// Decodes tokens in the middle of a text: after an anchor token, because decoders treat the first
/// token differently.
struct DecodeProbe<'t> {
    tokenizer: &'t Tokenizer,
    anchor: Option<(u32, String)>,
}

impl<'t> DecodeProbe<'t> {
    fn new(
        tokenizer: &'t Tokenizer,
        decoder: &TokenDecoder,
        tokens: &BTreeMap<u32, TokenizerEntry>,
    ) -> Self {
        let anchor = tokens.iter().find_map(|(&id, token)| {
            // A literal letter: after `<0x61>`, another byte token would form one invalid run with
            // it.
            let letter = token.text.len() == 1 && token.text.as_bytes()[0].is_ascii_alphanumeric();
            if token.kind != TokenKind::Model
                || !letter
                || decoder.bytes(&token.text) != token.text.as_bytes()
            {
                return None;
            }
            let text = tokenizer.decode(&[id], false).ok()?;
            (text == token.text).then_some((id, text))
        });
        DecodeProbe { tokenizer, anchor }
    }

    fn decode(&self, id: u32) -> String {
        let text = match &self.anchor {
            Some((anchor, shown)) => self
                .tokenizer
                .decode(&[*anchor, id], false)
                .map(|text| text.strip_prefix(shown.as_str()).map(str::to_owned).unwrap_or(text)),
            None => self.tokenizer.decode(&[id], false),
        };
        text.unwrap_or_default()
    }
}

fn stop_ids(
    tokenizer: &Tokenizer,
    options: &VocabOptions,
    warnings: &mut Vec<Warning>,
) -> Vec<u32> {
    let mut ids = options.stop_ids.clone();
    for name in &options.stop_names {
        match tokenizer.token_to_id(name) {
            Some(id) => ids.push(id),
            None => warnings.push(Warning::UnknownStop(name.clone())),
        }
    }
    if ids.is_empty()
        && let Some((id, name)) = stops::find_common(tokenizer)
    {
        warnings.push(Warning::StopGuessed { id, name: name.to_owned() });
        ids.push(id);
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}
