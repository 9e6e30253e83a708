//! A vocabulary and text as its tokens: of a `tokenizer.json`, or that of gpt-oss.

use std::sync::Arc;

use anyhow::{Result, bail};
use louver::vocab::Vocabulary;
use louver_hf_tokenizers::{Encoder, Loaded, VocabOptions};
use tokenizers::Tokenizer;

use super::CommonArgs;

/// In the place of a file's name: the vocabulary of gpt-oss.
const O200K: &str = "o200k_harmony";

/// Where a vocabulary comes from.
pub(super) enum Source {
    /// A `tokenizer.json`.
    Json(Box<Tokenizer>),
    /// The tiktoken-rs crate.
    #[cfg(feature = "o200k")]
    O200k(Box<tiktoken_rs::CoreBPE>),
}

/// Makes tokens of text.
pub(super) enum Encode<'s> {
    Json(Encoder<'s>),
    #[cfg(feature = "o200k")]
    O200k(&'s tiktoken_rs::CoreBPE),
}

impl Source {
    /// The tokenizer of the command line and its vocabulary. Warnings go to stderr.
    pub(super) fn load(common: &CommonArgs) -> Result<(Source, Arc<Vocabulary>)> {
        if common.tokenizer.as_os_str() == O200K {
            return o200k();
        }
        let options = VocabOptions { width: common.width, ..VocabOptions::default() };
        let Loaded { vocab, tokenizer, warnings } =
            louver_hf_tokenizers::load(&common.tokenizer, &options)?;
        for warning in warnings {
            eprintln!("warning: {warning}");
        }
        Ok((Source::Json(Box::new(tokenizer)), Arc::new(vocab)))
    }

    pub(super) fn encoder<'s>(&'s self, vocab: &Vocabulary) -> Encode<'s> {
        match self {
            Source::Json(tokenizer) => Encode::Json(Encoder::new(tokenizer, vocab)),
            #[cfg(feature = "o200k")]
            Source::O200k(bpe) => Encode::O200k(bpe),
        }
    }
}

impl Encode<'_> {
    /// The token ids of a text. Special tokens written out in it are those tokens.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(match self {
            Encode::Json(encoder) => encoder.encode(text)?,
            #[cfg(feature = "o200k")]
            Encode::O200k(bpe) => bpe.encode_with_special_tokens(text),
        })
    }
}

#[cfg(not(feature = "o200k"))]
fn o200k() -> Result<(Source, Arc<Vocabulary>)> {
    bail!("{O200K}: this program was built without the feature `o200k`")
}

#[cfg(feature = "o200k")]
fn o200k() -> Result<(Source, Arc<Vocabulary>)> {
    /// Ordinary tokens come first.
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
    Ok((Source::O200k(Box::new(bpe)), Arc::new(vocab)))
}
