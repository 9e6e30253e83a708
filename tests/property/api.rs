//! Property tests of the engine's other operations against the oracle: drafts, batches, forced
//! text, completions, preparation.

use std::sync::Arc;

use louver::engine::{
    CompletionOptions, DraftNode, DraftTree, Engine, EngineOptions, Matcher, Piece, PrepareBudget,
    RowStatus,
};
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::mask::MaskRow;
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{Shown, WORK, compile, config, generate, show};
use crate::harness::columns::mask;
use crate::harness::oracle::{Oracle, Symbol};

fn bits(row: &[u32], width: usize) -> Vec<bool> {
    (0..width).map(|id| row[id / 32] >> (id % 32) & 1 == 1).collect()
}

proptest! {
    #![proptest_config(config(250))]

    /// A draft most of whose nodes are allowed, and a batch of matchers at its nodes: every mask is
    /// the oracle's.
    #[test]
    fn draft_and_batch_masks_equal_the_oracle(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        nodes in proptest::collection::vec((any::<u16>(), any::<u16>(), 0u8..8), 1..30),
        direct: bool,
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        let direct_walk = if direct { crate::harness::unlimited().tuning.direct_walk } else { 0 };
        let change = |options: &mut EngineOptions| options.tuning.direct_walk = direct_walk;
        let Some(constraint) = compile(&grammar, &vocab, &oracle, change)? else { return Ok(()) };
        let (words, width) = (vocab.mask_words(), vocab.width());
        // The oracle's mask and verdict per node: `None` where its token may not follow.
        let (mut paths, mut masks): (Vec<Vec<TokenId>>, Vec<Option<Vec<bool>>>) =
            (Vec::new(), Vec::new());
        let (mut parents, mut tokens) = (Vec::new(), Vec::new());
        let first = oracle.mask(&vocab);
        for &(parent, token, wild) in &nodes {
            if oracle.work() > WORK {
                break;
            }
            let parent = usize::from(parent) % (parents.len() + 1);
            let is_root = parent == parents.len();
            let before = if is_root { Some(&first) } else { masks[parent].as_ref() };
            let follow: Vec<usize> =
                (0..width).filter(|&id| wild == 0 || before.is_some_and(|m| m[id])).collect();
            let Some(&token) = follow.get(usize::from(token) % follow.len().max(1)) else {
                continue;
            };
            let token = TokenId::new(token);
            let mut path = if is_root { Vec::new() } else { paths[parent].clone() };
            // Nothing is taken after a stop token, whose row allows more of them.
            let allowed =
                before.is_some_and(|m| m[token.index()]) && path.last() != Some(&generate::STOP);
            path.push(token);
            oracle.back_to(0);
            let read = allowed && path.iter().all(|&t| oracle.push_token(&vocab, t));
            masks.push(match (allowed, read) {
                (false, _) => None,
                (true, true) => Some(oracle.mask(&vocab)),
                // A stop token is the only one that may follow and is not read.
                (true, false) => {
                    Some((0..width).map(|id| TokenId::new(id) == generate::STOP).collect())
                }
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
        check_batch(&vocab, matchers)?;
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Along a walk: forced text, forced tokens, and the shortest completion.
    #[test]
    fn forced_text_and_completions_equal_the_oracle(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), 12),
        special_length in 0u32..4,
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        let Some(constraint) = compile(&grammar, &vocab, &oracle, |_| {})? else { return Ok(()) };
        let mut matcher = constraint.matcher();
        let options = CompletionOptions::default()
            .with_special_length(special_length)
            .with_longest(60);
        for (i, &choice) in path.iter().enumerate() {
            let position = oracle.position();
            check_completions(&mut matcher, &mut oracle, &options)?;
            if i < 6 {
                check_forced(&mut matcher, &mut oracle, &path)?;
            }
            oracle.back_to(position);
            let mask = oracle.mask(&vocab);
            let follow: Vec<TokenId> = (0..vocab.width())
                .filter(|&id| mask[id])
                .map(TokenId::new)
                .filter(|&t| !vocab.is_stop(t))
                .collect();
            if follow.is_empty() || oracle.work() > WORK {
                break;
            }
            let token = follow[usize::from(choice) % follow.len()];
            prop_assert!(oracle.push_token(&vocab, token));
            prop_assert_eq!(matcher.advance(token), Ok(()));
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// Masks along a walk while background threads make others, with caches of all sizes.
    #[test]
    fn prepared_masks_equal_the_oracle(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), 16),
        direct: bool,
        small: bool,
        wait: bool,
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        if !oracle.derives_something() {
            return Ok(());
        }
        let options = crate::harness::unlimited()
            .with_limits(super::limits().with_parser_bytes(if small { 20_000 } else { 64 << 20 }))
            .with_tuning(MaskTuning::with_direct_walk(if direct { 1024 } else { 0 }))
            .with_background_threads(2);
        let engine = Engine::new(vocab.clone(), options);
        let constraint = engine.compile(&grammar).expect("compiles");
        let prepared =
            constraint.prepare(PrepareBudget::default().with_steps(1_024));
        if wait {
            prepared.wait();
        }
        let mut matcher = constraint.matcher();
        for &choice in &path {
            let want = oracle.mask(&vocab);
            let got = mask(&mut matcher, &vocab);
            if matcher.limit().is_some() {
                prop_assert!(small);
                break;
            }
            prop_assert_eq!(&got, &want);
            let follow: Vec<TokenId> = (0..vocab.width())
                .filter(|&id| want[id])
                .map(TokenId::new)
                .filter(|&t| !vocab.is_stop(t))
                .collect();
            if follow.is_empty() || oracle.work() > WORK {
                break;
            }
            let token = follow[usize::from(choice) % follow.len()];
            let other = TokenId::new(usize::from(choice) % vocab.width());
            prop_assert!(matcher.prefetch(&[other, token, TokenId::new(usize::MAX >> 40)]));
            prop_assert!(oracle.push_token(&vocab, token));
            match matcher.advance(token) {
                Ok(()) => {}
                Err(AdvanceError::Limit { .. }) if small => break,
                other => prop_assert_eq!(other, Ok(())),
            }
        }
        prepared.wait();
        prop_assert_eq!(engine.stats().background_panics, 0);
    }
}

/// Symbols of a text with special tokens.
fn symbols(oracle: &Oracle, vocab: &Vocabulary, pieces: &[Piece]) -> Vec<Symbol> {
    let piece = |piece: &Piece| match piece {
        Piece::Bytes(bytes) => bytes.iter().map(|&b| Symbol::Byte(b)).collect(),
        Piece::Special(token) => {
            oracle.symbols(vocab, *token).expect("a special token of the grammar")
        }
    };
    pieces.iter().flat_map(piece).collect()
}

/// A shortest completion is a completion of the oracle's length. Its tokens spell it and are
/// allowed.
fn check_completions(
    matcher: &mut Matcher,
    oracle: &mut Oracle,
    options: &CompletionOptions,
) -> Result<(), TestCaseError> {
    let vocab = matcher.vocab().clone();
    let position = oracle.position();
    let completion = matcher.shortest_completion(options).expect("no limit");
    prop_assert_eq!(
        Some(completion.length),
        oracle.shortest(u64::from(options.special_length.max(1)))
    );
    let tokens = matcher.shortest_completion_tokens(options).expect("no limit");
    let Some(pieces) = &completion.pieces else {
        prop_assert!(completion.length > options.longest as u64 && tokens.is_none());
        return Ok(());
    };
    let text = symbols(oracle, &vocab, pieces);
    let weight = |s: &Symbol| {
        if matches!(s, Symbol::Byte(_)) { 1 } else { u64::from(options.special_length.max(1)) }
    };
    prop_assert_eq!(text.iter().map(weight).sum::<u64>(), completion.length);
    prop_assert!(
        text.iter().all(|&s| oracle.push(s)) && oracle.is_complete(),
        "{:?} does not complete",
        pieces
    );
    oracle.back_to(position);
    let expressible = pieces.iter().all(|piece| match piece {
        Piece::Bytes(bytes) => bytes.iter().all(|&b| !vocab.missing_bytes().contains(b)),
        Piece::Special(_) => true,
    });
    prop_assert!(tokens.is_some() || !expressible);
    let mut fork = matcher.clone();
    for token in tokens.iter().flatten() {
        prop_assert!(fork.allows(*token) && oracle.push_token(&vocab, *token));
        prop_assert_eq!(fork.advance(*token), Ok(()));
    }
    prop_assert!(tokens.is_none() || fork.is_complete() && oracle.is_complete());
    oracle.back_to(position);
    Ok(())
}

/// What may follow: bytes and special tokens.
fn follow(oracle: &mut Oracle) -> Vec<Symbol> {
    let position = oracle.position();
    let symbols = (0..=255).map(Symbol::Byte).chain((0..2).map(Symbol::Special));
    let mut read = |&symbol: &Symbol| {
        let read = oracle.push(symbol);
        oracle.back_to(position);
        read
    };
    symbols.filter(&mut read).collect()
}

/// Forced text is the oracle's. Forced tokens begin every continuation that is cut into longest
/// tokens.
fn check_forced(
    matcher: &mut Matcher,
    oracle: &mut Oracle,
    path: &[u16],
) -> Result<(), TestCaseError> {
    const LONGEST: usize = 12;
    let vocab = matcher.vocab().clone();
    let position = oracle.position();
    let mut want = Vec::new();
    while want.len() < LONGEST && !oracle.is_complete() {
        let [symbol] = follow(oracle)[..] else { break };
        want.push(symbol);
        oracle.push(symbol);
    }
    oracle.back_to(position);
    let pieces = matcher.forced(LONGEST);
    prop_assert_eq!(&symbols(oracle, &vocab, &pieces), &want);
    let bytes: Vec<u8> =
        want.iter().map_while(|s| if let Symbol::Byte(b) = s { Some(*b) } else { None }).collect();
    prop_assert_eq!(matcher.forced_bytes(LONGEST), bytes);
    let tokens = matcher.forced_tokens(LONGEST);
    let with = matcher.forced_tokens_with(LONGEST, &mut |bytes| longest_tokens(&vocab, bytes));
    prop_assert!(tokens.starts_with(&with), "{:?} {:?}", tokens, with);
    let mut fork = matcher.clone();
    for &token in &tokens {
        prop_assert!(fork.allows(token));
        prop_assert_eq!(fork.advance(token), Ok(()));
    }
    // Some continuations, each longer than any token by what is forced.
    for start in 0..3 {
        oracle.back_to(position);
        let mut text: Vec<Symbol> = Vec::new();
        for &choice in path.iter().cycle().skip(start * 4).take(LONGEST + 8) {
            let next = follow(oracle);
            if next.is_empty()
                || oracle.is_complete() && choice % 3 == 0
                || oracle.work() > 2 * WORK
            {
                break;
            }
            let letters: Vec<Symbol> =
                next.iter().copied().filter(|s| matches!(s, Symbol::Byte(b'a'..=b'd'))).collect();
            let next = if letters.is_empty() { next } else { letters };
            let symbol = next[usize::from(choice) % next.len()];
            oracle.push(symbol);
            text.push(symbol);
        }
        let cut = cut(oracle, &vocab, &text);
        let enough = text.len() >= LONGEST + 8 || oracle.is_complete();
        prop_assert!(
            !enough || cut.starts_with(&tokens),
            "{:?} begins {:?}, not {:?}",
            text,
            cut,
            tokens
        );
    }
    oracle.back_to(position);
    Ok(())
}

/// A text cut into longest tokens and special tokens.
fn cut(oracle: &Oracle, vocab: &Vocabulary, text: &[Symbol]) -> Vec<TokenId> {
    let mut out = Vec::new();
    for run in text.chunk_by(|a, b| matches!((a, b), (Symbol::Byte(_), Symbol::Byte(_)))) {
        let bytes: Vec<u8> = run
            .iter()
            .filter_map(|s| if let Symbol::Byte(b) = s { Some(*b) } else { None })
            .collect();
        out.extend(longest_tokens(vocab, &bytes));
        if bytes.is_empty() {
            let is_run =
                |id: &usize| oracle.symbols(vocab, TokenId::new(*id)).is_some_and(|s| s == run);
            out.extend((0..vocab.width()).find(is_run).map(TokenId::new));
        }
    }
    out
}

/// The longest token at each position, by comparison with every token; up to a byte that no token
/// begins with.
fn longest_tokens(vocab: &Vocabulary, bytes: &[u8]) -> Vec<TokenId> {
    let mut out = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let tokens =
            (0..vocab.width()).map(TokenId::new).filter_map(|t| Some((t, vocab.bytes(t)?)));
        let fits = tokens.filter(|(_, text)| bytes[position..].starts_with(text));
        let Some((token, text)) = fits.max_by_key(|(t, text)| (text.len(), std::cmp::Reverse(*t)))
        else {
            break;
        };
        out.push(token);
        position += text.len();
    }
    out
}

/// Masks of a batch are those of its matchers.
fn check_batch(
    vocab: &Arc<Vocabulary>,
    mut rows: Vec<(Matcher, &Vec<bool>, bool)>,
) -> Result<(), TestCaseError> {
    let (words, width) = (vocab.mask_words(), vocab.width());
    // Another engine of the same vocabulary may fill the batch.
    let engine = Engine::new(vocab.clone(), EngineOptions::default().with_batch_threads(2));
    let mut masks = vec![u32::MAX; rows.len() * words];
    let status =
        engine.fill_masks(rows.iter_mut().map(|row| &mut row.0), &mut masks).expect("fits");
    let mut distinct = Vec::new();
    let unique = engine
        .fill_masks_unique(rows.iter_mut().map(|row| &mut row.0), &mut distinct)
        .expect("fits");
    // One row for all matchers in turn.
    let mut row_for_all = MaskRow::new(vocab);
    for _ in 0..2 {
        for (matcher, want, _) in &mut rows {
            matcher.update_mask(&mut row_for_all);
            prop_assert_eq!(&bits(row_for_all.words(), width), *want);
            prop_assert!(!matcher.update_mask(&mut row_for_all));
        }
    }
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
            Some(row) => {
                prop_assert_eq!(&bits(&distinct[row as usize * words..][..words], width), *want)
            }
            None => prop_assert_eq!(expected, RowStatus::Free),
        }
    }
    Ok(())
}
