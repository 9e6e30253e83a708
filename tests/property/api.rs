//! What the engine offers beyond one mask, on random grammars and random vocabularies, against the oracle.

use std::sync::Arc;

use louver::engine::{DraftNode, DraftTree, EngineOptions, RowStatus};
use louver::ids::TokenId;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{Shown, WORK, compile, config, generate, show};
use crate::harness::oracle::Oracle;

fn bits(row: &[u32], width: usize) -> Vec<bool> {
    (0..width).map(|id| row[id / 32] >> (id % 32) & 1 == 1).collect()
}

proptest! {
    #![proptest_config(config(250))]

    /// A draft whose nodes mostly may follow, and a batch of matchers that stand at its nodes: every mask is the oracle's.
    #[test]
    fn drafts_and_batches_are_what_the_oracle_says(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        nodes in proptest::collection::vec((any::<u16>(), any::<u16>(), 0u8..8), 1..30),
        direct: bool,
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        let direct_walk = if direct { EngineOptions::default().direct_walk } else { 0 };
        let Some(constraint) = compile(&grammar, &vocab, &oracle, direct_walk)? else { return Ok(()) };
        let (words, width) = (vocab.mask_words(), vocab.width());
        // The oracle's mask and verdict per node: `None` where its token may not follow.
        let (mut paths, mut masks): (Vec<Vec<TokenId>>, Vec<Option<Vec<bool>>>) = (Vec::new(), Vec::new());
        let (mut parents, mut tokens) = (Vec::new(), Vec::new());
        let first = oracle.mask(&vocab);
        for &(parent, token, wild) in &nodes {
            if oracle.work() > WORK {
                break;
            }
            let parent = usize::from(parent) % (parents.len() + 1);
            let is_root = parent == parents.len();
            let before = if is_root { Some(&first) } else { masks[parent].as_ref() };
            let follow: Vec<usize> = (0..width).filter(|&id| wild == 0 || before.is_some_and(|m| m[id])).collect();
            let Some(&token) = follow.get(usize::from(token) % follow.len().max(1)) else { continue };
            let token = TokenId::new(token);
            let mut path = if is_root { Vec::new() } else { paths[parent].clone() };
            // Nothing is taken after a stop token, whose row allows more of them.
            let allowed = before.is_some_and(|m| m[token.index()]) && path.last() != Some(&generate::STOP);
            path.push(token);
            oracle.back_to(0);
            let read = allowed && path.iter().all(|&t| oracle.push_token(&vocab, t));
            masks.push(match (allowed, read) {
                (false, _) => None,
                (true, true) => Some(oracle.mask(&vocab)),
                // A stop token is the only one that may follow and is not read.
                (true, false) => Some((0..width).map(|id| TokenId::new(id) == generate::STOP).collect()),
            });
            paths.push(path);
            parents.push(if is_root { DraftTree::ROOT } else { parent });
            tokens.push(token);
        }
        let tree = DraftTree::new(parents, tokens).expect("a tree");
        let mut rows = vec![u32::MAX; tree.len() * words];
        let got = constraint.matcher().fill_draft_masks(&tree, &mut rows).expect("fits");
        let mut matchers = Vec::new();
        for (node, want) in masks.iter().enumerate() {
            let row = bits(&rows[node * words..][..words], width);
            let path = show(&vocab, &paths[node]);
            prop_assert_eq!(got[node].is_accepted(), want.is_some(), "{:?}", path);
            prop_assert_eq!(row, want.clone().unwrap_or_else(|| vec![false; width]), "{:?}", path);
            if let Some(want) = want {
                let mut matcher = constraint.matcher();
                paths[node].iter().for_each(|&t| matcher.advance(t).expect("accepted"));
                matchers.push((matcher, want, got[node] == DraftNode::Ended));
            }
        }
        batch(&vocab, matchers)?;
    }
}

fn batch(
    vocab: &Arc<louver::vocab::Vocabulary>,
    mut rows: Vec<(louver::engine::Matcher, &Vec<bool>, bool)>,
) -> Result<(), TestCaseError> {
    let (words, width) = (vocab.mask_words(), vocab.width());
    // Another engine of the same vocabulary may fill the batch.
    let engine = louver::engine::Engine::new(vocab.clone(), EngineOptions { batch_threads: 2, ..Default::default() });
    let mut masks = vec![u32::MAX; rows.len() * words];
    let status = engine.fill_masks(rows.iter_mut().map(|row| &mut row.0), &mut masks).expect("fits");
    let mut distinct = Vec::new();
    let unique = engine.fill_masks_unique(rows.iter_mut().map(|row| &mut row.0), &mut distinct).expect("fits");
    for (i, (_, want, ended)) in rows.iter().enumerate() {
        prop_assert_eq!(&bits(&masks[i * words..][..words], width), *want);
        let everything = want.iter().all(|&allowed| allowed);
        let expected = match (ended, everything) {
            (true, _) => RowStatus::Finished,
            (false, true) => RowStatus::Free,
            (false, false) => RowStatus::Constrained,
        };
        prop_assert_eq!(status[i], expected);
        prop_assert_eq!(unique.rows[i].0, expected);
        match unique.rows[i].1 {
            Some(row) => prop_assert_eq!(&bits(&distinct[row as usize * words..][..words], width), *want),
            None => prop_assert_eq!(expected, RowStatus::Free),
        }
    }
    Ok(())
}
