//! A tokenizer environment as Louver's vocabulary, and the engines for it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use louver::vocab::MAX_TOKEN_BYTES;
use louver::{Engine, EngineOptions, Limits, TokenId, Vocabulary};
use toktrie::{TokEnv, TokTrie};

use crate::api::ParserLimits;
use crate::masks::{MaskVectors, tokens_mask};

/// Engines that are kept for different limits.
const MAX_ENGINES: usize = 8;

/// The tokens of one environment.
///
/// The vocabulary has one id more than the environment: its only stop token, allowed exactly where
/// the text may end. End-of-sequence tokens keep their bytes or their name, so that a grammar can
/// ask for them as such.
pub(crate) struct TokenSpace {
    pub(crate) env: TokEnv,
    pub(crate) vocab: Arc<Vocabulary>,
    pub(crate) masks: MaskVectors,
    /// One engine for each set of limits.
    engines: Mutex<Vec<Arc<Engine>>>,
}

impl TokenSpace {
    /// The tokens of an environment. Cost: one sort of the tokens.
    pub(crate) fn new(env: &TokEnv) -> Result<TokenSpace> {
        let trie = env.tok_trie();
        let size = trie.vocab_size();
        let (mut builder, mut names) = (Vocabulary::builder(size + 1), HashSet::from(["".into()]));
        for id in 0..size as u32 {
            match trie.token(id) {
                [TokTrie::SPECIAL_TOKEN_MARKER, name @ ..]
                    if names.insert(String::from_utf8_lossy(name)) =>
                {
                    builder.special(id, &String::from_utf8_lossy(name))
                }
                // A token without a text of its own can be named by its id.
                [] | [TokTrie::SPECIAL_TOKEN_MARKER, ..] => {
                    builder.special(id, &format!("<[{id}]>"))
                }
                // The vocabulary does not take it, so that it is never allowed.
                bytes if bytes.len() > MAX_TOKEN_BYTES => &mut builder,
                bytes => builder.token(id, bytes),
            };
        }
        builder.stop(size as u32);
        Ok(TokenSpace {
            env: env.clone(),
            vocab: Arc::new(builder.build()?),
            masks: MaskVectors::new(tokens_mask(trie.eos_tokens(), size), end_of(trie)),
            engines: Mutex::default(),
        })
    }

    /// The stop token of the vocabulary, which stands for the end of the text.
    pub(crate) fn end(&self) -> TokenId {
        end_of(self.env.tok_trie())
    }

    /// The engine for these limits.
    pub(crate) fn engine(&self, limits: &ParserLimits) -> Arc<Engine> {
        let limits = limits.scaled();
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = engines.iter().find(|engine| engine.options().limits == limits) {
            return engine.clone();
        }
        let options = EngineOptions::default().with_limits(limits);
        let engine = Arc::new(Engine::new(self.vocab.clone(), options));
        engines.insert(0, engine.clone());
        engines.truncate(MAX_ENGINES);
        engine
    }

    /// The tokens of bytes after other tokens, as the tokenizer makes them of both together if it
    /// keeps those.
    pub(crate) fn tokens_after(&self, before: &[u32], bytes: &[u8]) -> Vec<TokenId> {
        let text = [&self.env.tok_trie().decode_raw(before)[..], bytes].concat();
        let tokens = match self.env.tokenize_bytes_marker(&text).0.strip_prefix(before) {
            Some(after) => after.to_vec(),
            None => self.env.tokenize_bytes(bytes),
        };
        tokens.into_iter().map(TokenId::from_raw).collect()
    }
}

/// The id after those of a tokenizer.
fn end_of(trie: &TokTrie) -> TokenId {
    TokenId::from_raw(trie.vocab_size() as u32)
}

impl ParserLimits {
    /// Louver's limits: its defaults, in proportion to how far these are from theirs. The units of
    /// the two engines differ, so a number cannot be taken over.
    pub(crate) fn scaled(&self) -> Limits {
        let (usual, ours) = (ParserLimits::default(), Limits::default());
        macro_rules! scaled {
            ($ours:ident by $given:ident) => {
                // In floating point, so that a product cannot overflow; `as` saturates.
                (ours.$ours as f64 * (self.$given as f64 / usual.$given as f64)).max(1.0) as _
            };
        }
        let walk: u64 = scaled!(mask_fuel by step_max_items);
        Limits::default()
            .with_compile_fuel(scaled!(compile_fuel by initial_lexer_fuel))
            .with_mask_fuel(walk.min(scaled!(mask_fuel by step_lexer_fuel)))
            .with_config_items(scaled!(config_items by max_items_in_row))
            .with_automaton_states(scaled!(automaton_states by max_lexer_states))
            .with_nodes(scaled!(nodes by max_grammar_size))
    }
}
