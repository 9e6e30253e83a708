//! What may follow a prefix.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use louver::compile::Compiled;
use louver::engine::{Engine, EngineOptions, Matcher, Refusal};
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::matcher::{AdvanceError, Recognizer, Rejected};
use louver::vocab::Vocabulary;
use louver_hf_tokenizers::{Encoder, Loaded, VocabOptions};
use serde::Serialize;

/// What may follow a prefix.
#[derive(Debug, Default, Serialize)]
pub(super) struct At {
    pub(super) prefix: String,
    /// Why the prefix itself is not allowed; what is said below is then about the part that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// The bytes that may follow.
    pub(super) bytes: String,
    /// Special tokens that may follow, as the grammar names them.
    pub(super) specials: Vec<String>,
    pub(super) may_end: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<Why>,
}

/// The mask.
#[derive(Debug, Serialize)]
pub(super) struct Tokens {
    /// The prefix as the tokenizer cuts it.
    pub(super) prefix: Vec<String>,
    pub(super) allowed: usize,
    pub(super) of: usize,
    /// The first ones, `(id, text)`.
    pub(super) first: Vec<(u32, String)>,
    /// Of the mask, made anew.
    pub(super) microseconds: f64,
}

/// What becomes of one token.
#[derive(Debug, Serialize)]
pub(super) struct Why {
    /// None without a tokenizer: then the token is a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u32>,
    pub(super) token: String,
    pub(super) allowed: bool,
    /// Bytes of the token that are fine.
    pub(super) good: usize,
    pub(super) why: String,
}

/// About bytes alone; `why` is a text.
pub(super) fn bytes(
    compiled: Arc<Compiled>,
    prefix: &str,
    why: Option<&str>,
    limits: &Limits,
) -> Result<At> {
    let why = why.map(|text| refusal_of_text(compiled.clone(), prefix, text)).transpose()?;
    let mut recognizer = Recognizer::with_limits(compiled, limits);
    let refused = match recognizer.push(prefix.as_bytes()) {
        Ok(()) => None,
        Err(Rejected::Byte { offset, .. }) => Some(not_allowed(prefix.as_bytes(), offset)),
        Err(limit) => Some(limit.to_string()),
    };
    let may_end = recognizer.is_complete();
    let (prefix, bytes) = (prefix.to_owned(), recognizer.allowed().to_string());
    Ok(At { prefix, refused, bytes, may_end, why, ..At::default() })
}

/// What becomes of a text behind a prefix, as if it were a token.
fn refusal_of_text(compiled: Arc<Compiled>, prefix: &str, text: &str) -> Result<Why> {
    let vocab = Arc::new(Vocabulary::toy(&[text.as_bytes()]));
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let mut matcher =
        engine.bind(compiled).context("without a tokenizer, tokens have no ids")?.matcher();
    for byte in prefix.bytes() {
        if matcher.advance(TokenId::from_raw(byte.into())).is_err() {
            break;
        }
    }
    let token = vocab.find(text.as_bytes()).context("an empty text")?;
    Ok(Why { id: None, ..explain(&mut matcher, &vocab, token)? })
}

fn not_allowed(text: &[u8], offset: usize) -> String {
    let rest = text.get(offset..).unwrap_or_default();
    let shown = String::from_utf8_lossy(&rest[..rest.len().min(16)]).into_owned();
    format!("byte {offset} is not allowed: {shown:?}")
}

/// About the tokens of a vocabulary.
pub(super) fn tokens(
    compiled: Arc<Compiled>,
    tokenizer: &Path,
    prefix: &str,
    why: Option<&str>,
    most: usize,
) -> Result<At> {
    let Loaded { vocab, tokenizer, warnings } =
        louver_hf_tokenizers::load(tokenizer, &VocabOptions::default())?;
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    let engine = Engine::new(Arc::new(vocab), EngineOptions::default());
    let vocab = engine.vocab().clone();
    let encoder = Encoder::new(&tokenizer, &vocab);
    let mut matcher = engine.bind(compiled)?.matcher();
    let mut at = At { prefix: prefix.to_owned(), ..At::default() };
    let mut taken = 0;
    for token in encoder.encode(prefix)? {
        let token = TokenId::from_raw(token);
        match matcher.advance(token) {
            Ok(()) => {
                taken += vocab
                    .bytes(token)
                    .map_or_else(|| vocab.special_name(token).map_or(0, str::len), <[u8]>::len)
            }
            Err(AdvanceError::Rejected { offset, .. }) => {
                at.refused = Some(not_allowed(prefix.as_bytes(), taken + offset));
                break;
            }
            Err(other) => {
                at.refused = Some(other.to_string());
                break;
            }
        }
    }
    let expected = matcher.expected(b"")?;
    (at.bytes, at.specials, at.may_end) =
        (expected.bytes.to_string(), expected.specials, expected.may_end);
    at.tokens = Some(mask(&mut matcher, &vocab, most));
    if let Some(token) = why {
        let token = find(token, &vocab, &encoder)?;
        at.why = Some(explain(&mut matcher, &vocab, token)?);
    }
    Ok(at)
}

fn mask(matcher: &mut Matcher, vocab: &Vocabulary, most: usize) -> Tokens {
    let mut mask = vec![0; vocab.mask_words()];
    let begin = Instant::now();
    matcher.fill_mask(&mut mask);
    let microseconds = (begin.elapsed().as_nanos() as f64 / 100.0).round() / 10.0;
    let ids = (0..vocab.width()).map(TokenId::new);
    let allowed: Vec<TokenId> = ids.filter(|&id| louver::mask::bit(&mask, id)).collect();
    Tokens {
        prefix: matcher.tokens().iter().map(|&id| vocab.shown(id)).collect(),
        allowed: allowed.len(),
        of: (0..vocab.width()).filter(|&id| vocab.is_used(TokenId::new(id))).count(),
        first: allowed.iter().take(most).map(|&id| (id.raw(), vocab.shown(id))).collect(),
        microseconds,
    }
}

/// A token by its id, its name or its text.
fn find(token: &str, vocab: &Vocabulary, encoder: &Encoder<'_>) -> Result<TokenId> {
    let by_text = vocab.special(token).or_else(|| vocab.find(token.as_bytes()));
    let by_id = || token.parse::<u32>().ok().map(TokenId::from_raw).filter(|&id| vocab.is_used(id));
    // Digits are an id: their text can be given in quotes.
    let quoted = token
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .and_then(|t| vocab.find(t.as_bytes()));
    match by_id().or(by_text).or(quoted) {
        Some(id) => Ok(id),
        None => {
            let cut = encoder.encode(token).context("the token's text")?;
            let cut: Vec<String> =
                cut.iter().map(|&id| format!("{:?}", vocab.shown(TokenId::from_raw(id)))).collect();
            bail!("{token:?} is no single token; the tokenizer cuts it into {}", cut.join(" "))
        }
    }
}

fn explain(matcher: &mut Matcher, vocab: &Vocabulary, token: TokenId) -> Result<Why> {
    let refusal = matcher.refusal(token)?;
    let why = refusal.as_ref().map_or_else(|| "it is allowed".to_owned(), Refusal::to_string);
    let good = match &refusal {
        None => vocab.bytes(token).filter(|_| !vocab.is_stop(token)).map_or(0, <[u8]>::len),
        Some(Refusal::Byte { behind, .. }) => behind.len(),
        Some(_) => 0,
    };
    Ok(Why {
        id: Some(token.raw()),
        token: vocab.shown(token),
        allowed: refusal.is_none(),
        good,
        why,
    })
}
