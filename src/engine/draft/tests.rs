//! Draft trees compared with forks that take each path. Random grammars are in `tests/`.

use proptest::prelude::*;

use super::*;
use crate::engine::{Constraint, Engine, EngineOptions, Payer};
use crate::front::json_schema::SchemaOptions;
use crate::ir::{Expr, GrammarBuilder};
use crate::limits::Limits;
use crate::vocab::Vocabulary;

const EXTRA: [&[u8]; 8] = [b"{\"", b"a\": ", b"tru", b"\"x", b"\", \"", b"12", b"}", b"[["];
const SCHEMA: &str = r#"{"type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"type": "string", "maxLength": 30}},
    "required": ["a"], "additionalProperties": {"type": "array", "items": {"type": "integer"}}}"#;

fn constraint(limits: Limits) -> Constraint {
    let vocab = Arc::new(Vocabulary::toy(&EXTRA));
    let engine = Engine::new(vocab, EngineOptions { limits, ..EngineOptions::default() });
    engine.compile_json_schema(SCHEMA, &SchemaOptions::default()).unwrap()
}

/// Compares a draft with forks and returns the outcomes of its nodes.
fn check(matcher: &mut Matcher, tree: &DraftTree) -> Vec<DraftNode> {
    let words = matcher.masks.vocab.mask_words();
    let (before, complete) = (matcher.tokens().to_vec(), matcher.is_complete());
    let mut masks = vec![7; tree.len() * words];
    let nodes = matcher.fill_draft_masks(tree, &mut masks).unwrap();
    assert_eq!(matcher.tokens(), before);
    assert_eq!(matcher.is_complete(), complete);
    for (node, &is) in nodes.iter().enumerate() {
        let mut fork = matcher.clone();
        let taken = tree.path(node).iter().all(|&token| fork.advance(token).is_ok());
        let mut want = vec![0; words];
        if taken {
            fork.fill_mask(&mut want);
        }
        assert_eq!(is.is_accepted(), taken, "node {node}");
        assert_eq!(is == DraftNode::Ended, taken && fork.is_terminated());
        assert_eq!(masks[node * words..][..words], want, "node {node}");
    }
    nodes
}

fn bytes(text: &str) -> Vec<TokenId> {
    text.bytes().map(|b| TokenId::from_raw(u32::from(b))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn drafts_agree_with_forks(
        prefix in 0usize..20,
        nodes in prop::collection::vec((any::<u16>(), any::<u16>(), any::<bool>()), 1..40),
    ) {
        let constraint = constraint(Limits::default());
        let mut matcher = constraint.matcher();
        bytes(&r#"{"a": true, "b": "x"}"#[..prefix])
            .iter()
            .for_each(|&t| matcher.advance(t).unwrap());
        let vocab = constraint.vocab().clone();
        let (mut parents, mut tokens) = (Vec::new(), Vec::new());
        for (i, &(parent, token, wild)) in nodes.iter().enumerate() {
            let parent = usize::from(parent) % (i + 1);
            parents.push(if parent == i { DraftTree::ROOT } else { parent });
            let mut fork = matcher.clone();
            let tree =
                DraftTree::new(parents.clone(), [tokens.as_slice(), &[TokenId::new(0)]].concat())
                    .unwrap();
            let mut path = tree.path(i);
            path.pop();
            path.iter().for_each(|&t| drop(fork.advance(t)));
            // Mostly tokens that may follow.
            let all: Vec<TokenId> =
                (0..vocab.width()).map(TokenId::new).filter(|&t| wild || fork.allows(t)).collect();
            tokens.push(all[usize::from(token) % all.len()]);
        }
        let nodes = check(&mut matcher, &DraftTree::new(parents, tokens).unwrap());
        prop_assert!(nodes.iter().all(|n| *n != DraftNode::Limit));
    }
}

#[test]
fn drafts_end_at_stop_tokens() {
    let mut matcher = constraint(Limits::default()).matcher();
    let end = TokenId::from_raw(256);
    let mut tokens = bytes(r#"{"a": true}"#);
    tokens.extend([end, end]);
    let nodes = check(&mut matcher, &DraftTree::chain(tokens.clone()));
    assert_eq!(nodes[10..], [DraftNode::Accepted, DraftNode::Ended, DraftNode::Rejected]);
    tokens[..12].iter().for_each(|&t| matcher.advance(t).unwrap());
    assert!(matcher.is_terminated());
    assert_eq!(check(&mut matcher, &DraftTree::chain(vec![end])), [DraftNode::Rejected]);
}

#[test]
fn drafts_past_the_fuel_of_one_mask_are_followed_path_by_path() {
    let tokens = bytes(r#"{"a": true, "b": "abcdefghij", "cd": [12, 3], "e": []}"#);
    let matcher = |fuel| constraint(Limits::default().with_mask_fuel(fuel)).matcher();
    // Each mask has enough fuel, all together do not.
    let is_enough = |fuel: &u64| {
        let mut matcher = matcher(*fuel);
        let mut row = vec![0; matcher.vocab().mask_words()];
        tokens.iter().all(|&token| {
            let taken = matcher.advance(token).is_ok();
            matcher.fill_mask(&mut row);
            taken && matcher.limit().is_none()
        })
    };
    let least = (1..).map(|k| k * 100).find(is_enough).unwrap();
    let nodes = check(&mut matcher(least), &DraftTree::chain(tokens.clone()));
    assert!(nodes.iter().all(|node| node.is_accepted()));
}

#[test]
fn drafts_past_the_memory_limit_are_followed_path_by_path() {
    // Each path fits, all together do not.
    let run =
        |byte| Expr::repeat(Expr::class(crate::fsm::ByteSet::range(byte, byte)), 0, Some(5000));
    let mut b = GrammarBuilder::new();
    let start = b.rule("start", Expr::seq([Expr::alt((b'a'..=b'z').map(run)), Expr::text(".")]));
    let limits = Limits { parser_bytes: 18_000, ..Limits::default() };
    let engine = Engine::new(
        Arc::new(Vocabulary::toy(&[])),
        EngineOptions { limits, ..EngineOptions::default() },
    );
    let constraint = engine.compile(b.finish(start).unwrap()).unwrap();
    let (mut parents, mut tokens) = (Vec::new(), Vec::new());
    for letter in 'a'..='z' {
        for (i, token) in bytes(&letter.to_string().repeat(30)).into_iter().enumerate() {
            parents.push(if i == 0 { DraftTree::ROOT } else { tokens.len() - 1 });
            tokens.push(token);
        }
    }
    let tree = DraftTree::new(parents, tokens).unwrap();
    let mut matcher = constraint.matcher();
    let whole = {
        let mut state = constraint.masks.lock();
        matcher.with_retry(&mut state, Payer::Nobody, |m, state| m.follow_tree(state, &tree))
    };
    assert_eq!(whole.err(), Some(ParserLimit::Memory));
    let nodes = check(&mut matcher, &tree);
    assert!(nodes.iter().all(|n| *n == DraftNode::Accepted));
}

#[test]
fn malformed_draft_trees_are_refused() {
    let token = TokenId::from_raw(1);
    let length = DraftTree::new(vec![DraftTree::ROOT], vec![]);
    assert_eq!(length, Err(DraftError::Length { tokens: 0, parents: 1 }));
    let order = DraftTree::new(vec![DraftTree::ROOT, 1], vec![token; 2]);
    assert_eq!(order, Err(DraftError::Order { node: 1, parent: 1 }));
    let tree = DraftTree::chain(vec![token; 3]);
    assert_eq!(tree.parents(), [DraftTree::ROOT, 0, 1]);
    let mut matcher = constraint(Limits::default()).matcher();
    let words = matcher.masks.vocab.mask_words();
    assert_eq!(
        matcher.fill_draft_masks(&tree, &mut vec![0; words]),
        Err(DraftError::Masks { nodes: 3, words, got: words })
    );
}
