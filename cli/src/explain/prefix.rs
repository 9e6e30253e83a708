//! Explanation of a prefix: the bytes and tokens that may follow it.

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

/// The bytes and tokens that may follow a prefix.
#[derive(Debug, Default, Serialize)]
pub(super) struct PrefixReport {
    pub(super) prefix: String,
    /// Why the prefix itself is not allowed. The other fields then describe its longest allowed
    /// part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// The bytes that may follow.
    pub(super) bytes: String,
    /// Special tokens that may follow, by their names in the grammar.
    pub(super) specials: Vec<String>,
    pub(super) may_end: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<MaskReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<TokenReport>,
}

/// The token mask.
#[derive(Debug, Serialize)]
pub(super) struct MaskReport {
    /// The tokens of the prefix.
    pub(super) prefix: Vec<String>,
    pub(super) allowed: usize,
    pub(super) of: usize,
    /// The first allowed tokens, `(id, text)`.
    pub(super) first: Vec<(u32, String)>,
    /// Time to compute the mask without caches.
    pub(super) microseconds: f64,
}

/// Whether and why a token is allowed.
#[derive(Debug, Serialize)]
pub(super) struct TokenReport {
    /// `None` without a tokenizer; then the token is a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u32>,
    pub(super) token: String,
    pub(super) allowed: bool,
    /// Number of allowed leading bytes of the token.
    pub(super) accepted: usize,
    pub(super) why: String,
}

/// Explains a prefix in terms of bytes; `why` is a text.
pub(super) fn bytes(
    compiled: Arc<Compiled>,
    prefix: &str,
    why: Option<&str>,
    limits: &Limits,
) -> Result<PrefixReport> {
    let why = why.map(|text| explain_text(compiled.clone(), prefix, text)).transpose()?;
    let mut recognizer = Recognizer::with_limits(compiled, limits);
    let refused = match recognizer.push(prefix.as_bytes()) {
        Ok(()) => None,
        Err(Rejected::Byte { offset, .. }) => Some(not_allowed(prefix.as_bytes(), offset)),
        Err(limit) => Some(limit.to_string()),
    };
    let may_end = recognizer.is_complete();
    let (prefix, bytes) = (prefix.to_owned(), recognizer.allowed().to_string());
    Ok(PrefixReport { prefix, refused, bytes, may_end, why, ..PrefixReport::default() })
}

/// Explains a text after a prefix, as if it were one token.
fn explain_text(compiled: Arc<Compiled>, prefix: &str, text: &str) -> Result<TokenReport> {
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
    Ok(TokenReport { id: None, ..explain_token(&mut matcher, &vocab, token)? })
}

fn not_allowed(text: &[u8], offset: usize) -> String {
    let rest = text.get(offset..).unwrap_or_default();
    let shown = String::from_utf8_lossy(&rest[..rest.len().min(16)]).into_owned();
    format!("byte {offset} is not allowed: {shown:?}")
}

/// Explains a prefix in terms of a vocabulary's tokens.
pub(super) fn tokens(
    compiled: Arc<Compiled>,
    tokenizer: &Path,
    prefix: &str,
    why: Option<&str>,
    max_tokens: usize,
) -> Result<PrefixReport> {
    let Loaded { vocab, tokenizer, warnings, .. } =
        louver_hf_tokenizers::load(tokenizer, &VocabOptions::default())?;
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    let engine = Engine::new(Arc::new(vocab), EngineOptions::default());
    let vocab = engine.vocab().clone();
    let encoder = Encoder::new(&tokenizer, &vocab);
    let mut matcher = engine.bind(compiled)?.matcher();
    let mut report = PrefixReport { prefix: prefix.to_owned(), ..PrefixReport::default() };
    let mut consumed = 0;
    for token in encoder.encode(prefix)? {
        let token = TokenId::from_raw(token);
        match matcher.advance(token) {
            Ok(()) => {
                consumed += vocab
                    .bytes(token)
                    .map_or_else(|| vocab.special_name(token).map_or(0, str::len), <[u8]>::len)
            }
            Err(AdvanceError::Rejected { offset, .. }) => {
                report.refused = Some(not_allowed(prefix.as_bytes(), consumed + offset));
                break;
            }
            Err(other) => {
                report.refused = Some(other.to_string());
                break;
            }
        }
    }
    let expected = matcher.expected(b"")?;
    (report.bytes, report.specials, report.may_end) =
        (expected.bytes.to_string(), expected.specials, expected.may_end);
    report.tokens = Some(mask(&mut matcher, &vocab, max_tokens));
    if let Some(token) = why {
        let token = find_token(token, &vocab, &encoder)?;
        report.why = Some(explain_token(&mut matcher, &vocab, token)?);
    }
    Ok(report)
}

fn mask(matcher: &mut Matcher, vocab: &Vocabulary, max_tokens: usize) -> MaskReport {
    let mut mask = vec![0; vocab.mask_words()];
    let started = Instant::now();
    matcher.fill_mask(&mut mask);
    let microseconds = (started.elapsed().as_nanos() as f64 / 100.0).round() / 10.0;
    let ids = (0..vocab.width()).map(TokenId::new);
    let allowed: Vec<TokenId> = ids.filter(|&id| louver::mask::bit(&mask, id)).collect();
    MaskReport {
        prefix: matcher.tokens().iter().map(|&id| vocab.shown(id)).collect(),
        allowed: allowed.len(),
        of: (0..vocab.width()).filter(|&id| vocab.is_used(TokenId::new(id))).count(),
        first: allowed.iter().take(max_tokens).map(|&id| (id.raw(), vocab.shown(id))).collect(),
        microseconds,
    }
}

/// Finds a token by its id, name or text.
fn find_token(token: &str, vocab: &Vocabulary, encoder: &Encoder<'_>) -> Result<TokenId> {
    let by_text = vocab.special(token).or_else(|| vocab.find(token.as_bytes()));
    let by_id = || token.parse::<u32>().ok().map(TokenId::from_raw).filter(|&id| vocab.is_used(id));
    // Digits are an id; the text of digits can be given in quotes.
    let quoted = token
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .and_then(|t| vocab.find(t.as_bytes()));
    match by_id().or(by_text).or(quoted) {
        Some(id) => Ok(id),
        None => {
            let pieces = encoder.encode(token).context("the token's text")?;
            let pieces: Vec<String> = pieces
                .iter()
                .map(|&id| format!("{:?}", vocab.shown(TokenId::from_raw(id))))
                .collect();
            bail!("{token:?} is no single token; the tokenizer splits it into {}", pieces.join(" "))
        }
    }
}

fn explain_token(matcher: &mut Matcher, vocab: &Vocabulary, token: TokenId) -> Result<TokenReport> {
    let refusal = matcher.refusal(token)?;
    let why = refusal.as_ref().map_or_else(|| "it is allowed".to_owned(), Refusal::to_string);
    let accepted = match &refusal {
        None => vocab.bytes(token).filter(|_| !vocab.is_stop(token)).map_or(0, <[u8]>::len),
        Some(Refusal::Byte { prefix, .. }) => prefix.len(),
        Some(_) => 0,
    };
    Ok(TokenReport {
        id: Some(token.raw()),
        token: vocab.shown(token),
        allowed: refusal.is_none(),
        accepted,
        why,
    })
}
