//! The decoder of a tokenizer, as a function from one token's text to its bytes.

use serde_json::Value;
use tokenizers::Tokenizer;

/// Why a tokenizer's decoder gives no bytes per token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecoderError {
    /// There is none: tokens would be joined with spaces.
    #[error("the tokenizer has no decoder")]
    Missing,
    /// A decoder whose output for a token depends on its neighbours, or one this version does not know.
    #[error("{pointer}: decoder `{kind}` does not give each token bytes of its own")]
    Unsupported {
        /// JSON pointer into `tokenizer.json`.
        pointer: String,
        /// Its type.
        kind: String,
    },
    /// A decoder without a field it needs.
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
enum Step {
    /// GPT-2's alphabet: every byte as one printable character. A token with any other character is literal.
    ByteLevel,
    /// `<0x41>` is a byte.
    ByteFallback,
    /// A text becomes another.
    Replace { pattern: String, content: String },
    /// Up to so many of a character are cut off at each token's ends.
    Strip { content: char, start: usize, stop: usize },
}

/// What a token's text became so far.
enum Piece {
    Text(String),
    Bytes(Vec<u8>),
}

/// A decoder's steps that act on tokens in the middle of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenDecoder {
    steps: Vec<Step>,
    /// A fusing step was seen: later steps see the whole text, so that stripping is about its ends only.
    fused: bool,
    alphabet: Box<[Option<u8>; ALPHABET]>,
}

/// Characters of the byte-level alphabet lie below this.
const ALPHABET: usize = 0x180;

impl TokenDecoder {
    /// Reads a tokenizer's decoder.
    pub(crate) fn new(tokenizer: &Tokenizer) -> Result<TokenDecoder, DecoderError> {
        let decoder = tokenizer.get_decoder().ok_or(DecoderError::Missing)?;
        let value = serde_json::to_value(decoder).unwrap_or(Value::Null);
        let mut out =
            TokenDecoder { steps: Vec::new(), fused: false, alphabet: byte_level_alphabet() };
        out.add(&value, "/decoder")?;
        Ok(out)
    }

    fn add(&mut self, decoder: &Value, pointer: &str) -> Result<(), DecoderError> {
        let kind = decoder["type"].as_str().unwrap_or("unknown");
        let malformed = |field| DecoderError::Malformed {
            pointer: pointer.to_owned(),
            kind: kind.to_owned(),
            field,
        };
        let character = |field: &'static str| {
            decoder[field].as_str().and_then(|s| s.chars().next()).ok_or_else(|| malformed(field))
        };
        match kind {
            "Sequence" => {
                let decoders =
                    decoder["decoders"].as_array().ok_or_else(|| malformed("decoders"))?;
                for (i, inner) in decoders.iter().enumerate() {
                    self.add(inner, &format!("{pointer}/decoders/{i}"))?;
                }
            }
            "ByteLevel" => {
                self.steps.push(Step::ByteLevel);
                self.fused = true;
            }
            "ByteFallback" => self.steps.push(Step::ByteFallback),
            "Fuse" => self.fused = true,
            "Replace" => {
                // A regular expression could look across tokens.
                let pattern =
                    decoder["pattern"]["String"].as_str().ok_or_else(|| malformed("pattern"))?;
                let content = decoder["content"].as_str().ok_or_else(|| malformed("content"))?;
                if pattern.is_empty() || self.fused && pattern.chars().count() > 1 {
                    return Err(malformed("pattern"));
                }
                self.steps.push(Step::Replace {
                    pattern: pattern.to_owned(),
                    content: content.to_owned(),
                });
            }
            "Metaspace" => {
                let pattern = character("replacement")?.to_string();
                self.steps.push(Step::Replace { pattern, content: " ".to_owned() });
            }
            "Strip" if self.fused => {}
            "Strip" => {
                let count = |field: &'static str| {
                    decoder[field]
                        .as_u64()
                        .and_then(|n| usize::try_from(n).ok())
                        .ok_or_else(|| malformed(field))
                };
                self.steps.push(Step::Strip {
                    content: character("content")?,
                    start: count("start")?,
                    stop: count("stop")?,
                });
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

    /// A token's bytes in the middle of a text.
    pub(crate) fn bytes(&self, token: &str) -> Vec<u8> {
        let mut piece = Piece::Text(token.to_owned());
        for step in &self.steps {
            let Piece::Text(text) = &piece else { break };
            piece = match step {
                Step::ByteLevel => {
                    let mapped: Option<Vec<u8>> =
                        text.chars().map(|c| *self.alphabet.get(c as usize)?).collect();
                    Piece::Bytes(mapped.unwrap_or_else(|| text.as_bytes().to_vec()))
                }
                Step::ByteFallback => match fallback_byte(text) {
                    Some(byte) => Piece::Bytes(vec![byte]),
                    None => continue,
                },
                Step::Replace { pattern, content } => {
                    Piece::Text(text.replace(pattern.as_str(), content))
                }
                Step::Strip { content, start, stop } => {
                    Piece::Text(strip(text, *content, *start, *stop))
                }
            };
        }
        match piece {
            Piece::Text(text) => text.into_bytes(),
            Piece::Bytes(bytes) => bytes,
        }
    }
}

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

/// GPT-2's table: printable Latin-1 bytes stand for themselves, the other 68 follow from U+0100 in byte order.
fn byte_level_alphabet() -> Box<[Option<u8>; ALPHABET]> {
    let mut table = Box::new([None; ALPHABET]);
    let mut next = 0x100;
    for byte in 0..=255u8 {
        let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let at = if printable { usize::from(byte) } else { next };
        next += usize::from(!printable);
        table[at] = Some(byte);
    }
    table
}
