//! Whole generations, step by step: forced texts and sampled ones in turns.

use std::collections::VecDeque;

use llguidance::Constraint;
use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::toktrie::{TokTrie, TokenId};
use serde_json::Value;

use crate::{factory, get_tok_env};

/// What is expected next.
#[derive(Debug)]
enum Expected {
    /// A token that the mask must not have.
    Refused(TokenId),
    /// A token that it must have, and that is sampled.
    Sampled(TokenId),
}

/// A Lark text gives these texts: a forced one, a sampled one, and so on.
pub fn check_lark_grammar(lark: &str, texts: &[&str]) -> Constraint {
    check_lark_grammar_prompt(lark, "", texts)
}

/// The same after a prompt, which is the beginning of the first text.
pub fn check_lark_grammar_prompt(lark: &str, prompt: &str, texts: &[&str]) -> Constraint {
    check_grammar(TopLevelGrammar::from_lark(lark.to_owned()), prompt, texts)
}

/// The same for a Lark text that refers to another one as `@sub`.
pub fn check_lark_grammar_nested(lark: &str, sub: &str, texts: &[&str]) -> Constraint {
    check_with(lark, GrammarWithLexer::from_lark(sub.to_owned()), texts)
}

/// The same for a schema.
pub fn check_lark_json(lark: &str, schema: Value, texts: &[&str]) -> Constraint {
    check_with(lark, GrammarWithLexer::from_json_schema(schema), texts)
}

/// The last text of a capture.
pub fn check_capture(constraint: &Constraint, name: &str, expected: &str) {
    let found = constraint.parser.get_capture(name).map(String::from_utf8_lossy);
    assert_eq!(found.as_deref(), Some(expected), "capture {name}");
}

fn check_with(lark: &str, mut sub: GrammarWithLexer, texts: &[&str]) -> Constraint {
    sub.name = Some("sub".to_owned());
    let mut grammar = TopLevelGrammar::from_lark(lark.to_owned());
    grammar.grammars.push(sub);
    check_grammar(grammar, "", texts)
}

fn check_grammar(grammar: TopLevelGrammar, prompt: &str, texts: &[&str]) -> Constraint {
    let parser = factory(true).create_parser(grammar);
    let mut constraint = Constraint::new(parser.unwrap_or_else(|error| panic!("{error:#}")));
    let env = get_tok_env();
    let trie = env.tok_trie();
    // A special token of the prompt stands for itself.
    let prompt = env.tokenize_special(prompt);
    let started = constraint.process_prompt(prompt);
    assert_eq!(trie.tokens_dbg(&started), trie.tokens_dbg(&tokens(trie, texts[0])), "the prompt");
    let mut texts = texts[1..].iter();
    let mut sampled = texts.next().map(|text| expected(trie, text)).unwrap_or_default();
    loop {
        let step = constraint.compute_mask().unwrap_or_else(|error| panic!("{error:#}")).clone();
        if step.is_stop() {
            assert!(sampled.is_empty(), "stopped before {sampled:?}");
            assert_eq!(texts.next(), None, "stopped");
            return constraint;
        }
        let mask = step.sample_mask.expect("a mask");
        let token = loop {
            let allows = |token: TokenId| mask.is_allowed(token);
            match sampled.pop_front() {
                Some(Expected::Refused(token)) => {
                    assert!(!allows(token), "{} is allowed", trie.token_dbg(token));
                }
                Some(Expected::Sampled(token)) => {
                    assert!(allows(token), "{} is not allowed", trie.token_dbg(token));
                    break token;
                }
                None => panic!("not stopped at the end: {} tokens", mask.num_set()),
            }
        };
        let taken = constraint.commit_token(Some(token));
        let taken = taken.unwrap_or_else(|error| panic!("{error:#}"));
        if taken.stop && taken.ff_tokens.is_empty() {
            continue;
        }
        if !sampled.is_empty() {
            assert_eq!(taken.ff_tokens, [token], "forced before {sampled:?}");
            continue;
        }
        let Some(text) = texts.next() else {
            assert_eq!((taken.backtrack, &taken.ff_tokens[..]), (0, &[token][..]), "at the end");
            continue;
        };
        let (backtrack, text) = match text.split_once('↶') {
            Some((count, text)) => (count.parse().expect("a number"), text),
            None => (0, *text),
        };
        assert_eq!(taken.backtrack, backtrack, "tokens taken back before {text:?}");
        let forced = taken.ff_tokens.strip_prefix(&[token][..]).unwrap_or(&taken.ff_tokens);
        assert_eq!(trie.tokens_dbg(forced), trie.tokens_dbg(&tokens(trie, text)), "forced");
        sampled = texts.next().map(|text| expected(trie, text)).unwrap_or_default();
    }
}

/// The entries of a sampled text.
fn expected(trie: &TokTrie, text: &str) -> VecDeque<Expected> {
    let mut entries = VecDeque::new();
    for part in text.split('‧').filter(|part| !part.is_empty()) {
        let mut names = part.split('✖');
        let own = names.next().filter(|name| !name.is_empty());
        entries.extend(own.map(|name| Expected::Sampled(token(trie, name))));
        entries.extend(names.map(|name| Expected::Refused(token(trie, name))));
    }
    entries
}

/// The tokens of a forced text.
fn tokens(trie: &TokTrie, text: &str) -> Vec<TokenId> {
    text.split('‧').filter(|part| !part.is_empty()).map(|part| token(trie, part)).collect()
}

/// The token of a name, which is its text, its name as a special token, or its id.
fn token(trie: &TokTrie, name: &str) -> TokenId {
    if name == "≺EOS≻" {
        return trie.eos_token();
    }
    if let Some(id) = name.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>")) {
        return id.parse().expect("an id");
    }
    let special = trie.get_special_token(name);
    let plain = || trie.token_id(name.as_bytes());
    special.or_else(plain).unwrap_or_else(|| panic!("{name:?} is no token"))
}
