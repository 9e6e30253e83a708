//! Suffixes of context-dependent tokens: the first use walks the vocabulary's trie, and later ones
//! a trie of suffixes. Both give the same masks.

use std::sync::Arc;

use louver::engine::Engine;
use louver::front::ebnf;
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::ir::Simplify;
use louver::limits::Limits;
use louver::mask::PoolScope;
use louver::matcher::Recognizer;
use louver::vocab::Vocabulary;

use crate::harness::columns::mask;

#[test]
fn suffixes_are_decided_alike_in_place_and_in_a_trie() {
    let heads: Vec<u8> = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z').collect();
    let tails = [
        "a", "b", "bc", "c", "d", "e", "f", "fg", "g", "h", "i", "k", "m", "n", "o", "ox", "p",
        "q", "r", "s", "t", "u", "v", "w", "x", "y",
    ];
    let words: Vec<Vec<u8>> = heads
        .iter()
        .flat_map(|&head| tails.map(|tail| [&[head], tail.as_bytes()].concat()))
        .collect();
    let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
    let vocab = Arc::new(Vocabulary::toy(&words));
    let text = r#"
        root ::= "1" head [a-h] | "2" head [g-z] "!" | "3" head ("b" "c")? | "4" head [^a-y]
        head ::= [0-9A-Za-z] | "-" head
    "#;
    let grammar =
        ebnf::lower(text, &Default::default(), &Limits::default()).expect("a grammar").grammar;
    for direct_walk in [16_384, 0] {
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning::with_direct_walk(direct_walk))
            .with_simplify(Simplify::Off)
            .with_pool_scope(PoolScope::Engine);
        let constraint =
            Engine::new(vocab.clone(), options).compile(grammar.clone()).expect("compiles");
        for first in ["1", "2", "3", "4", "1-", "2--"] {
            let mut matcher = constraint.matcher();
            first.bytes().for_each(|byte| {
                matcher.advance(TokenId::from_raw(u32::from(byte))).expect("begins")
            });
            for (id, got) in mask(&mut matcher, &vocab).into_iter().enumerate() {
                let token = TokenId::new(id);
                let Some(bytes) = vocab.bytes(token) else { continue };
                let mut recognizer = Recognizer::new(constraint.compiled().clone());
                let want = recognizer.push(&[first.as_bytes(), bytes].concat()).is_ok();
                assert_eq!(
                    got,
                    want,
                    "{direct_walk}: {:?} after {first}",
                    String::from_utf8_lossy(bytes)
                );
            }
        }
    }
}
