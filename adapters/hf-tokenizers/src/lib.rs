//! Louver vocabularies from Hugging Face `tokenizer.json` files.
//!
//! A token's bytes are those that the tokenizer's own decoder produces for it in the middle of a
//! text, because the host streams these. Supported are byte-level alphabets (GPT-2), byte fallback
//! (`<0x0A>`, `▁`) and plain replacements. Every token is then decoded once and compared. Tokens
//! that do not agree are left out and reported, never guessed.
//!
//! ```no_run
//! use louver_hf_tokenizers::{VocabOptions, load};
//!
//! let options = VocabOptions::default().with_width(151_936);
//! let loaded = load("model/tokenizer.json", &options)?;
//! for warning in &loaded.warnings {
//!     eprintln!("warning: {warning}");
//! }
//! println!("{} token ids, {} stop tokens", loaded.vocab.width(), loaded.vocab.stops().len());
//! # Ok::<(), louver_hf_tokenizers::LoadError>(())
//! ```

mod decode;
mod encode;
mod load;
mod stops;

pub use decode::DecoderError;
pub use encode::{EncodeError, Encoder};
pub use load::{LoadError, Loaded, VocabOptions, Warning, keep_whole_texts, load, vocabulary};
