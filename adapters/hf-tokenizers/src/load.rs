//! From a tokenizer to a vocabulary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use louver::fsm::ByteSet;
use louver::vocab::{MAX_TOKEN_BYTES, VocabError, Vocabulary};
use tokenizers::Tokenizer;

use crate::decode::{DecoderError, TokenDecoder};
use crate::stops::{self, Stop};

/// How a vocabulary is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VocabOptions {
    /// Width of the model's logits. Models pad their vocabularies: ids beyond the tokenizer's are never allowed. Without it,
    /// the tokenizer's own width.
    pub width: Option<usize>,
    /// Tokens that end a generation, by id.
    pub stop_ids: Vec<u32>,
    /// The same by text; what the tokenizer lacks is a warning.
    pub stop_names: Vec<String>,
}

/// A vocabulary, and what could not be taken over.
#[derive(Debug)]
pub struct Loaded {
    /// The vocabulary.
    pub vocab: Vocabulary,
    /// The tokenizer it came from.
    pub tokenizer: Tokenizer,
    /// What to tell the user.
    pub warnings: Vec<Warning>,
}

/// What could not be taken over as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// No token is one of these bytes; a grammar that needs one can come to a point where nothing is allowed.
    #[error("no token can express the bytes {0}")]
    MissingBytes(ByteSet),
    /// The tokenizer's decoder shows something else than the bytes derived for the token; it is never allowed.
    #[error(
        "token {id} {token:?} is left out: it should decode to {expected:?}, but decodes to {decoded:?}"
    )]
    Undecodable {
        /// The id.
        id: u32,
        /// Its text in the tokenizer.
        token: String,
        /// Its derived bytes as text.
        expected: String,
        /// What the decoder shows.
        decoded: String,
    },
    /// An added token that the decoder shows differently from its text; its bytes are what is shown.
    #[error("added token {id} {token:?} is shown as {shown:?}")]
    ShownDifferently {
        /// The id.
        id: u32,
        /// Its text in the tokenizer.
        token: String,
        /// What the decoder shows.
        shown: String,
    },
    /// Tokens without any text; they are never allowed.
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
    /// Ids of the tokenizer beyond the logits.
    #[error("{count} tokens from id {first} on are left out: the logits have {width} ids")]
    BeyondWidth {
        /// The first.
        first: u32,
        /// How many.
        count: usize,
        /// The logits' width.
        width: usize,
    },
    /// A stop token was named that the tokenizer lacks.
    #[error("stop token {0:?} is not in the tokenizer")]
    UnknownStop(String),
    /// No stop token was given or found in the files; a well-known one was taken.
    #[error("no stop token was given; taking {name} (id {id})")]
    StopGuessed {
        /// The id.
        id: u32,
        /// Its text.
        name: String,
    },
}

/// Why there is no vocabulary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read or is no tokenizer.
    #[error("cannot load tokenizer {path}: {message}")]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What the `tokenizers` crate says.
        message: String,
    },
    /// Its decoder gives no bytes per token.
    #[error(transparent)]
    Decoder(#[from] DecoderError),
    /// The tokens make no vocabulary.
    #[error(transparent)]
    Vocab(#[from] VocabError),
}

/// Loads a `tokenizer.json`. Stop tokens are those of the options or, where these name none, those of
/// `generation_config.json`, `config.json` and `tokenizer_config.json` in the same folder, or else a well-known one.
///
/// Cost: decodes every token once; a fraction of a second for 150,000 tokens.
pub fn load(path: impl AsRef<Path>, options: &VocabOptions) -> Result<Loaded, LoadError> {
    let path = path.as_ref();
    let tokenizer = Tokenizer::from_file(path).map_err(|error| LoadError::Tokenizer {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    let mut options = options.clone();
    if options.stop_ids.is_empty() && options.stop_names.is_empty() {
        for stop in stops::beside(path.parent().unwrap_or(Path::new("."))) {
            match stop {
                Stop::Id(id) => options.stop_ids.push(id),
                Stop::Name(name) => options.stop_names.push(name),
            }
        }
    }
    let (vocab, warnings) = vocabulary(&tokenizer, &options)?;
    Ok(Loaded { vocab, tokenizer, warnings })
}

/// The vocabulary of a tokenizer that is already loaded. Reads no files.
pub fn vocabulary(
    tokenizer: &Tokenizer,
    options: &VocabOptions,
) -> Result<(Vocabulary, Vec<Warning>), LoadError> {
    let decoder = TokenDecoder::new(tokenizer)?;
    let mut warnings = Vec::new();
    let tokens = tokens(tokenizer);
    let needed = tokens.last_key_value().map_or(0, |(id, _)| *id as usize + 1);
    let width = options.width.unwrap_or(needed);
    let mut builder = Vocabulary::builder(width);
    let probe = Probe::new(tokenizer, &decoder, &tokens);
    let mut beyond: Option<(u32, usize)> = None;
    for (&id, token) in &tokens {
        if id as usize >= width {
            beyond = Some(beyond.map_or((id, 1), |(first, count)| (first, count + 1)));
            continue;
        }
        if token.kind == Kind::Special {
            builder.special(id, &token.text);
            continue;
        }
        let bytes = decoder.bytes(&token.text);
        let shown = String::from_utf8_lossy(&bytes);
        let decoded = probe.decode(id);
        if decoded != shown {
            let expected = shown.into_owned();
            warnings.push(Warning::Undecodable {
                id,
                token: token.text.clone(),
                expected,
                decoded,
            });
        } else if bytes.is_empty() {
            warnings.push(Warning::NoText { id, token: token.text.clone() });
        } else if bytes.len() > MAX_TOKEN_BYTES {
            warnings.push(Warning::TooLong { id, len: bytes.len() });
        } else {
            if token.kind == Kind::Added && bytes != token.text.as_bytes() {
                warnings.push(Warning::ShownDifferently {
                    id,
                    token: token.text.clone(),
                    shown: decoded,
                });
            }
            builder.token(id, &bytes);
        }
    }
    warnings.extend(beyond.map(|(first, count)| Warning::BeyondWidth { first, count, width }));
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of the model's vocabulary.
    Model,
    /// Added, and flagged special.
    Special,
    /// Added, not special: text.
    Added,
}

struct Token {
    text: String,
    kind: Kind,
}

/// All tokens by id; an added token hides the model's of the same id.
fn tokens(tokenizer: &Tokenizer) -> BTreeMap<u32, Token> {
    let model = tokenizer.get_vocab(false).into_iter();
    let mut tokens: BTreeMap<u32, Token> =
        model.map(|(text, id)| (id, Token { text, kind: Kind::Model })).collect();
    for (id, added) in tokenizer.get_added_tokens_decoder() {
        let kind = if added.special { Kind::Special } else { Kind::Added };
        tokens.insert(id, Token { text: added.content, kind });
    }
    tokens
}

/// Decodes tokens as they appear in the middle of a text: behind an anchor, because decoders treat the first token apart.
struct Probe<'t> {
    tokenizer: &'t Tokenizer,
    anchor: Option<(u32, String)>,
}

impl<'t> Probe<'t> {
    fn new(
        tokenizer: &'t Tokenizer,
        decoder: &TokenDecoder,
        tokens: &BTreeMap<u32, Token>,
    ) -> Self {
        let anchor = tokens.iter().find_map(|(&id, token)| {
            // A letter that stands for itself: behind `<0x61>`, another byte token would be one invalid run with it.
            let letter = token.text.len() == 1 && token.text.as_bytes()[0].is_ascii_alphanumeric();
            if token.kind != Kind::Model
                || !letter
                || decoder.bytes(&token.text) != token.text.as_bytes()
            {
                return None;
            }
            let text = tokenizer.decode(&[id], false).ok()?;
            (text == token.text).then_some((id, text))
        });
        Probe { tokenizer, anchor }
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
        && let Some((id, name)) = stops::common(tokenizer)
    {
        warnings.push(Warning::StopGuessed { id, name: name.to_owned() });
        ids.push(id);
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}
