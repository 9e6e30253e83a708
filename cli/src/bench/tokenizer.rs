//! Vocabularies and tokenization: from a `tokenizer.json`, or of gpt-oss.

use std::sync::Arc;

use anyhow::{Result, bail};
use louver::vocab::Vocabulary;
use louver_hf_tokenizers::{Encoder, Loaded, VocabOptions};
use tokenizers::Tokenizer;

use super::CommonArgs;

/// Special value of `--tokenizer`: the vocabulary of gpt-oss.
const O200K: &str = "o200k_harmony";

/// The source of a vocabulary.
pub(super) enum TokenizerSource {
    /// A `tokenizer.json`.
    Json(Box<Tokenizer>),
    /// The tiktoken-rs crate.
    #[cfg(feature = "o200k")]
    O200k(Box<tiktoken_rs::CoreBPE>),
}

/// Tokenizes text.
pub(super) enum TextEncoder<'s> {
    Json(Encoder<'s>),
    #[cfg(feature = "o200k")]
    O200k(&'s tiktoken_rs::CoreBPE),
}

/// Loads the `tokenizer.json` of the command line. Prints warnings to stderr.
pub(super) fn load_json(common: &CommonArgs) -> Result<(Tokenizer, Arc<Vocabulary>)> {
    let options = VocabOptions::default().with_width(common.width);
    let Loaded { vocab, tokenizer, warnings, .. } =
        louver_hf_tokenizers::load(&common.tokenizer, &options)?;
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    Ok((tokenizer, Arc::new(vocab)))
}

impl TokenizerSource {
    /// Loads the tokenizer of the command line and its vocabulary. Prints warnings to stderr.
    pub(super) fn load(common: &CommonArgs) -> Result<(TokenizerSource, Arc<Vocabulary>)> {
        if common.tokenizer.as_os_str() == O200K {
            return o200k();
        }
        let (tokenizer, vocab) = load_json(common)?;
        Ok((TokenizerSource::Json(Box::new(tokenizer)), vocab))
    }

    pub(super) fn encoder<'s>(&'s self, vocab: &Vocabulary) -> TextEncoder<'s> {
        match self {
            TokenizerSource::Json(tokenizer) => TextEncoder::Json(Encoder::new(tokenizer, vocab)),
            #[cfg(feature = "o200k")]
            TokenizerSource::O200k(bpe) => TextEncoder::O200k(bpe),
        }
    }
}

impl TextEncoder<'_> {
    /// The token ids of a text. Special tokens in the text are recognised.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(match self {
            TextEncoder::Json(encoder) => encoder.encode(text)?,
            #[cfg(feature = "o200k")]
            TextEncoder::O200k(bpe) => bpe.encode_with_special_tokens(text),
        })
    }
}

#[cfg(not(feature = "o200k"))]
fn o200k() -> Result<(TokenizerSource, Arc<Vocabulary>)> {
    bail!("{O200K}: this program was built without the feature `o200k`")
}

#[cfg(feature = "o200k")]
fn o200k() -> Result<(TokenizerSource, Arc<Vocabulary>)> {
    /// Number of ordinary tokens, which come before the special ones.
    const ORDINARY: u32 = 199_998;
    let bpe = tiktoken_rs::o200k_harmony()?;
    let specials =
        bpe.special_tokens().into_iter().map(|name| (bpe.encode_with_special_tokens(name), name));
    let specials: Vec<(u32, &str)> =
        specials.filter_map(|(ids, name)| Some((*ids.first()?, name))).collect();
    let Some(width) = specials.iter().map(|(id, _)| id + 1).max() else {
        bail!("{O200K}: no special tokens")
    };
    let mut builder = Vocabulary::builder(width as usize);
    for (id, bytes) in (0..ORDINARY).zip(bpe._decode_native_and_split((0..ORDINARY).collect())) {
        builder.token(id, &bytes);
    }
    for (id, name) in specials {
        builder.special(id, name);
        if matches!(name, "<|return|>" | "<|call|>") {
            builder.stop(id);
        }
    }
    let vocab = builder.build()?;
    Ok((TokenizerSource::O200k(Box::new(bpe)), Arc::new(vocab)))
}
