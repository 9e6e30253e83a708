//! Louver after the interface of llguidance 1.9: the types, functions and states that hosts call,
//! over Louver's engine. `docs/LLGUIDANCE.md` says how to put it in the original's place, and where
//! the two differ.
//!
//! `toktrie` is the original's: it is the part that hosts implement (tokenizers) and read (masks).
//!
//! ```
//! use llguidance::api::TopLevelGrammar;
//! use llguidance::toktrie::ApproximateTokEnv;
//! use llguidance::{Matcher, ParserFactory};
//!
//! # fn main() -> anyhow::Result<()> {
//! let env = ApproximateTokEnv::single_byte_env();
//! let factory = ParserFactory::new_simple(&env)?;
//! let grammar = TopLevelGrammar::from_lark("start: \"on\" | \"off\"".to_owned());
//! let mut matcher = Matcher::new(factory.create_parser(grammar));
//! assert_eq!(matcher.compute_mask()?.to_list(), [u32::from(b'o')]);
//! matcher.consume_tokens(&env.tokenize("off"))?;
//! assert!(matcher.is_stopped());
//! # Ok(())
//! # }
//! ```

pub mod api;
mod cancel;
mod compile;
mod constraint;
pub mod earley;
mod factory;
mod json_options;
mod logger;
mod masks;
mod matcher;
pub mod output;
pub mod panic_utils;
mod token_parser;
mod tokens;
mod tools;

pub use std::time::Instant;

pub use toktrie;

pub use cancel::{CancellationHandle, Cancelled};
pub use constraint::{CommitResult, Constraint};
pub use factory::ParserFactory;
pub use json_options::JsonCompileOptions;
pub use logger::Logger;
pub use matcher::Matcher;
pub use token_parser::TokenParser;
pub use tools::regex_to_lark;
