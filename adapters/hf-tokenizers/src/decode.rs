//! Token decoding: a tokenizer's decoder as a function from one token's text to its bytes.

use serde_json::Value;
use tokenizers::Tokenizer;

/// Why a tokenizer's decoder cannot be used per token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecoderError {
    /// There is no decoder: tokens would be joined with spaces.
    #[error("the tokenizer has no decoder")]
    Missing,
    /// A decoder whose output for a token depends on adjacent tokens, or an unknown one.
    #[error("{pointer}: decoder `{kind}` does not give each token bytes of its own")]
    Unsupported {
        /// JSON pointer into `tokenizer.json`.
        pointer: String,
        /// Its type.
        kind: String,
    },
    /// A decoder without a required field.
    #[error("{pointer}: decoder `{kind}` has no usable `{field}`")]
    Malformed {
        /// JSON pointer into `tokenizer.json`.
        pointer: String,
        /// Its type.
        kind: String,
        /// The field.
        field: &'static str,
    },
}

/// One step of a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DecodeStep {
    /// GPT-2's alphabet: each byte is one printable character. A token with another character is
    /// literal.
    ByteLevel,
    /// `<0x41>` is a byte.
    ByteFallback,
    /// Replaces a text by another.
    Replace { pattern: String, content: String },
    /// Strips up to a number of occurrences of a character from each token's ends.
    Strip { content: char, start: usize, stop: usize },
}

/// The intermediate result of decoding.
enum PartialToken {
    Text(String),
    Bytes(Vec<u8>),
}

/// A decoder's steps for tokens in the middle of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenDecoder {
    steps: Vec<DecodeStep>,
    /// Whether a fusing step occurred. Later steps see the whole text, so stripping concerns its
    /// ends only.
    is_fused: bool,
    alphabet: Box<[Option<u8>; ALPHABET_SIZE]>,
}

/// Upper bound of the byte-level alphabet's code points.
const ALPHABET_SIZE: usize = 0x180;

impl TokenDecoder {
    /// Compiles a tokenizer's decoder.
    pub(crate) fn new(tokenizer: &Tokenizer) -> Result<TokenDecoder, DecoderError> {
        let decoder = tokenizer.get_decoder().ok_or(DecoderError::Missing)?;
        let value = serde_json::to_value(decoder).unwrap_or(Value::Null);
        let mut out =
            TokenDecoder { steps: Vec::new(), is_fused: false, alphabet: byte_level_alphabet() };
        out.add_steps(&value, "/decoder")?;
        Ok(out)
    }

    fn add_steps(&mut self, decoder: &Value, pointer: &str) -> Result<(), DecoderError> {
        let kind = decoder["type"].as_str().unwrap_or("unknown");
        let malformed = |field| DecoderError::Malformed {
            pointer: pointer.to_owned(),
            kind: kind.to_owned(),
            field,
        };
        let text = |field| decoder[field].as_str();
        let character =
            |field| text(field).and_then(|s| s.chars().next()).ok_or_else(|| malformed(field));
        let count = |field| {
            let number = decoder[field].as_u64().and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| malformed(field))
        };
        match kind {
            "Sequence" => {
                let decoders =
                    decoder["decoders"].as_array().ok_or_else(|| malformed("decoders"))?;
                for (i, inner) in decoders.iter().enumerate() {
                    self.add_steps(inner, &format!("{pointer}/decoders/{i}"))?;
                }
            }
            "ByteLevel" => {
                self.steps.push(DecodeStep::ByteLevel);
                self.is_fused = true;
            }
            "ByteFallback" => self.steps.push(DecodeStep::ByteFallback),
            "Fuse" => self.is_fused = true,
            "Replace" => {
                // A regular expression could match across tokens.
                let pattern =
                    decoder["pattern"]["String"].as_str().ok_or_else(|| malformed("pattern"))?;
                let content = text("content").ok_or_else(|| malformed("content"))?;
                if pattern.is_empty() || self.is_fused && pattern.chars().count() > 1 {
                    return Err(malformed("pattern"));
                }
                let (pattern, content) = (pattern.to_owned(), content.to_owned());
                self.steps.push(DecodeStep::Replace { pattern, content });
            }
            "Metaspace" => {
                let pattern = character("replacement")?.to_string();
                self.steps.push(DecodeStep::Replace { pattern, content: " ".to_owned() });
            }
            "Strip" if self.is_fused => {}
            "Strip" => {
                let (start, stop) = (count("start")?, count("stop")?);
                self.steps.push(DecodeStep::Strip { content: character("content")?, start, stop });
            }
            other => {
                return Err(DecoderError::Unsupported {
                    pointer: pointer.to_owned(),
                    kind: other.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Whether this is the token of a single byte, such as `<0x0A>`, to a decoder that knows them.
    pub(crate) fn is_byte(&self, token: &str) -> bool {
        let is_known = self.steps.iter().any(|step| matches!(step, DecodeStep::ByteFallback));
        is_known && fallback_byte(token).is_some()
    }

    /// The bytes of a token in the middle of a text.
    pub(crate) fn bytes(&self, token: &str) -> Vec<u8> {
        let mut partial = PartialToken::Text(token.to_owned());
        for step in &self.steps {
            let PartialToken::Text(text) = &partial else { break };
            partial = match step {
                DecodeStep::ByteLevel => {
                    let mapped: Option<Vec<u8>> =
                        text.chars().map(|c| *self.alphabet.get(c as usize)?).collect();
                    PartialToken::Bytes(mapped.unwrap_or_else(|| text.as_bytes().to_vec()))
                }
                DecodeStep::ByteFallback => match fallback_byte(text) {
                    Some(byte) => PartialToken::Bytes(vec![byte]),
                    None => continue,
                },
                DecodeStep::Replace { pattern, content } => {
                    PartialToken::Text(text.replace(pattern.as_str(), content))
                }
                DecodeStep::Strip { content, start, stop } => {
                    PartialToken::Text(strip(text, *content, *start, *stop))
                }
            };
        }
        match partial {
            PartialToken::Text(text) => text.into_bytes(),
            PartialToken::Bytes(bytes) => bytes,
        }
    }
}

/// The byte of a token such as `<0x0A>`.
fn fallback_byte(text: &str) -> Option<u8> {
    let hex = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() == 2 { u8::from_str_radix(hex, 16).ok() } else { None }
}

fn strip(text: &str, content: char, start: usize, stop: usize) -> String {
    let mut text = text;
    for _ in 0..start {
        text = text.strip_prefix(content).unwrap_or(text);
    }
    for _ in 0..stop {
        text = text.strip_suffix(content).unwrap_or(text);
    }
    text.to_owned()
}

/// GPT-2's table: printable Latin-1 bytes map to themselves, the other 68 to U+0100 and following,
/// in byte order.
fn byte_level_alphabet() -> Box<[Option<u8>; ALPHABET_SIZE]> {
    let mut table = Box::new([None; ALPHABET_SIZE]);
    let mut next = 0x100;
    for byte in 0..=255u8 {
        let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let index = if printable { usize::from(byte) } else { next };
        next += usize::from(!printable);
        table[index] = Some(byte);
    }
    table
}
