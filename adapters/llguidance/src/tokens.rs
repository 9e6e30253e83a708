//! A tokenizer environment as Louver's vocabulary, and the engines for it.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use louver::{Engine, EngineOptions, Limits, TokenId, Vocabulary};
use toktrie::{SimpleVob, TokEnv, TokTrie};

use crate::api::ParserLimits;
use crate::masks::{MaskVectors, tokens_mask};

/// Longest token that the vocabulary takes, in bytes. Longer ones are never allowed.
const MAX_TOKEN_BYTES: usize = 1 << 12;
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
    pub(crate) vectors: MaskVectors,
    /// The mask of the end-of-sequence tokens.
    pub(crate) end_mask: SimpleVob,
    /// Engines by their limits.
    engines: Mutex<Vec<(Limits, Arc<Engine>)>>,
}

impl TokenSpace {
    /// The tokens of an environment. Cost: one sort of the tokens.
    pub(crate) fn new(env: &TokEnv) -> Result<TokenSpace> {
        let trie = env.tok_trie();
        let size = trie.vocab_size();
        let mut builder = Vocabulary::builder(size + 1);
        for id in 0..size as u32 {
            match trie.token(id) {
                // A token without text can be named by its id.
                [] | [TokTrie::SPECIAL_TOKEN_MARKER] => builder.special(id, &format!("<[{id}]>")),
                [TokTrie::SPECIAL_TOKEN_MARKER, name @ ..] => {
                    builder.special(id, &String::from_utf8_lossy(name))
                }
                bytes if bytes.len() > MAX_TOKEN_BYTES => &mut builder,
                bytes => builder.token(id, bytes),
            };
        }
        builder.stop(size as u32);
        Ok(TokenSpace {
            env: env.clone(),
            vocab: Arc::new(builder.build()?),
            vectors: MaskVectors::default(),
            end_mask: tokens_mask(trie.eos_tokens(), size),
            engines: Mutex::default(),
        })
    }

    /// The stop token of the vocabulary, which stands for the end of the text.
    pub(crate) fn end(&self) -> TokenId {
        TokenId::from_raw(self.env.tok_trie().vocab_size() as u32)
    }

    /// The engine for these limits.
    pub(crate) fn engine(&self, limits: &ParserLimits) -> Arc<Engine> {
        let limits = limits.scaled();
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, engine)) = engines.iter().find(|(of, _)| *of == limits) {
            return engine.clone();
        }
        let options = EngineOptions::default().with_limits(limits.clone());
        let engine = Arc::new(Engine::new(self.vocab.clone(), options));
        engines.insert(0, (limits, engine.clone()));
        engines.truncate(MAX_ENGINES);
        engine
    }

    /// The tokens of bytes after other tokens, as the tokenizer makes them of both together if it
    /// keeps those.
    pub(crate) fn tokens_after(&self, before: &[u32], bytes: &[u8]) -> Vec<u32> {
        let text = [&self.env.tok_trie().decode_raw(before)[..], bytes].concat();
        match self.env.tokenize_bytes_marker(&text).0.strip_prefix(before) {
            Some(after) => after.to_vec(),
            None => self.env.tokenize_bytes(bytes),
        }
    }
}

impl ParserLimits {
    /// Louver's limits: its defaults, in proportion to how far these are from theirs. The units of
    /// the two engines differ, so a number cannot be taken over.
    pub(crate) fn scaled(&self) -> Limits {
        let (usual, ours) = (ParserLimits::default(), Limits::default());
        let scale = |given: u64, usual: u64, ours: u64| {
            let scaled = u128::from(ours) * u128::from(given) / u128::from(usual);
            u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
        };
        let size = |given: usize, usual: usize, ours: usize| {
            scale(given as u64, usual as u64, ours as u64).try_into().unwrap_or(usize::MAX)
        };
        let fuel = scale(self.step_lexer_fuel, usual.step_lexer_fuel, ours.mask_fuel);
        let walk = scale(self.step_max_items as u64, usual.step_max_items as u64, ours.mask_fuel);
        let compile = scale(self.initial_lexer_fuel, usual.initial_lexer_fuel, ours.compile_fuel);
        let items = size(self.max_items_in_row, usual.max_items_in_row, ours.config_items);
        let states = size(self.max_lexer_states, usual.max_lexer_states, ours.automaton_states);
        Limits::default()
            .with_compile_fuel(compile)
            .with_mask_fuel(fuel.min(walk))
            .with_config_items(items)
            .with_automaton_states(states)
            .with_nodes(size(self.max_grammar_size, usual.max_grammar_size, ours.nodes))
    }
}
