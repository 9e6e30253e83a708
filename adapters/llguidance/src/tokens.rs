//! A tokenizer environment as Louver's vocabulary, and the engines for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use louver::{Engine, EngineOptions, Limits, TokenId, Vocabulary};
use toktrie::{TokEnv, TokTrie};

use crate::api::ParserLimits;
use crate::masks::MaskBases;

/// Longest token that the vocabulary takes, in bytes. Longer ones are never allowed.
const MAX_TOKEN_BYTES: usize = 1 << 12;
/// Engines that are kept for different limits.
const MAX_ENGINES: usize = 8;
/// Texts that are cut into tokens once.
const MAX_CUTS: usize = 1 << 12;

/// The tokens of one environment.
///
/// The vocabulary has one id more than the environment: its only stop token, allowed exactly where
/// the text may end. End-of-sequence tokens keep their bytes or their name, so that a grammar can
/// ask for them as such.
pub(crate) struct TokenSpace {
    pub(crate) env: TokEnv,
    pub(crate) vocab: Arc<Vocabulary>,
    pub(crate) bases: MaskBases,
    /// Engines by their limits.
    engines: Mutex<Vec<(Limits, Arc<Engine>)>>,
    /// Tokens of texts, by the tokens before them.
    cuts: Mutex<HashMap<(Vec<u32>, Vec<u8>), Vec<u32>>>,
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
        let (vocab, bases) = (Arc::new(builder.build()?), MaskBases::default());
        Ok(TokenSpace {
            env: env.clone(),
            vocab,
            bases,
            engines: Mutex::default(),
            cuts: Mutex::default(),
        })
    }

    /// The stop token of the vocabulary, which stands for the end of the text.
    pub(crate) fn end(&self) -> TokenId {
        TokenId::from_raw(self.env.tok_trie().vocab_size() as u32)
    }

    /// The engine for these limits.
    pub(crate) fn engine(&self, limits: &ParserLimits) -> Arc<Engine> {
        let limits = scaled(limits);
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

    /// The tokens of bytes after other tokens, as the tokenizer cuts both together if it keeps
    /// those. Cost: one look-up where it was asked for before.
    pub(crate) fn tokens_after(&self, before: &[u32], bytes: &[u8]) -> Vec<u32> {
        let key = (before.to_vec(), bytes.to_vec());
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        if cuts.len() == MAX_CUTS {
            cuts.clear();
        }
        cuts.entry(key).or_insert_with(|| cut(&self.env, before, bytes)).clone()
    }
}

/// As [`TokenSpace::tokens_after`], by the tokenizer.
fn cut(env: &TokEnv, before: &[u32], bytes: &[u8]) -> Vec<u32> {
    let text = [&env.tok_trie().decode_raw(before)[..], bytes].concat();
    match env.tokenize_bytes_marker(&text).0.strip_prefix(before) {
        Some(after) => after.to_vec(),
        None => env.tokenize_bytes(bytes),
    }
}

/// Louver's limits: its defaults, in proportion to how far the given limits are from theirs. The
/// units of the two engines differ, so a number cannot be taken over.
fn scaled(given: &ParserLimits) -> Limits {
    let (usual, ours) = (ParserLimits::default(), Limits::default());
    let scale = |of: fn(&ParserLimits) -> u64, ours: u64| {
        let scaled = u128::from(ours) * u128::from(of(given)) / u128::from(of(&usual));
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    };
    let size = |of: fn(&ParserLimits) -> u64, ours: usize| {
        usize::try_from(scale(of, ours as u64)).unwrap_or(usize::MAX)
    };
    let fuel = scale(|limits| limits.step_lexer_fuel, ours.mask_fuel);
    let items = scale(|limits| limits.step_max_items as u64, ours.mask_fuel);
    Limits::default()
        .with_compile_fuel(scale(|limits| limits.initial_lexer_fuel, ours.compile_fuel))
        .with_mask_fuel(fuel.min(items))
        .with_config_items(size(|limits| limits.max_items_in_row as u64, ours.config_items))
        .with_automaton_states(size(|limits| limits.max_lexer_states as u64, ours.automaton_states))
        .with_nodes(size(|limits| limits.max_grammar_size as u64, ours.nodes))
}
