//! What each call does in each state: running, stopped, failed, cancelled.

mod constraint;
mod grammars;
mod matcher;
mod options;
mod speculative;

use std::sync::Arc;

use llguidance::api::{
    GrammarInit, GrammarWithLexer, ParserLimits, StopReason, TopLevelGrammar, ValidationResult,
};
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId,
    TokenizerEnv,
};
use llguidance::{Cancelled, Constraint, Matcher, ParserFactory};
use serde_json::{Value, json};

/// `<|end|>` of the single-byte environment.
const EOS: TokenId = 261;

/// A factory over single bytes, without a log and with short errors.
fn factory() -> ParserFactory {
    let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    factory.limits_mut().verbose_errors = false;
    factory.quiet();
    factory
}

fn lark(text: &str) -> Matcher {
    let matcher = Matcher::new(factory().create_parser(TopLevelGrammar::from_lark(text.into())));
    assert_eq!(matcher.get_error(), None);
    matcher
}

fn schema(schema: Value) -> Matcher {
    let grammar = TopLevelGrammar::from_json_schema(schema);
    let matcher = Matcher::new(factory().create_parser(grammar));
    assert_eq!(matcher.get_error(), None);
    matcher
}

fn tokens(text: &str) -> Vec<TokenId> {
    text.bytes().map(TokenId::from).collect()
}

/// Whether a text is accepted as a whole.
fn accepts(matcher: &Matcher, text: &str) -> bool {
    let mut matcher = matcher.deep_clone();
    let all = tokens(text);
    matcher.try_consume_tokens(&all).unwrap() == all.len() && matcher.is_accepting().unwrap()
}

fn error<T: std::fmt::Debug>(result: anyhow::Result<T>) -> String {
    result.unwrap_err().to_string()
}

/// Greedy tokenization that counts as canonical.
struct Greedy(TokTrie);

impl TokenizerEnv for Greedy {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.0.greedy_tokenize(bytes)
    }
}

/// Tokens 0 to 6: a, b, c, ab, abc, bc, ab once more. 7: no text. 8 and 9: `<eos>`, `<eot>`.
/// 10: the text `</s>`.
fn words(eos: &[TokenId], canonical: bool) -> TokEnv {
    let texts = ["a", "b", "c", "ab", "abc", "bc", "ab", "", "\0<eos>", "\0<eot>", "</s>"];
    let bytes = |text: &&str| match text.strip_prefix('\0') {
        Some(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
        None => text.as_bytes().to_vec(),
    };
    let words: Vec<Vec<u8>> = texts.iter().map(bytes).collect();
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, eos[0]), &words);
    let trie = trie.with_eos_tokens(eos);
    if canonical { Arc::new(Greedy(trie)) } else { Arc::new(ApproximateTokEnv::new(trie)) }
}

fn matcher_of(env: &TokEnv, text: &str) -> Matcher {
    let factory = ParserFactory::new_simple(env).unwrap();
    Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(text.to_owned())))
}

fn list(mask: anyhow::Result<SimpleVob>) -> Vec<u32> {
    mask.unwrap().to_list()
}
