//! Likely paths: a best-first search for the configurations at which tokens of a text are likely to
//! end.
//!
//! The search knows the grammar and the vocabulary, but neither the model nor the prompt. Its
//! estimate of likelihood is therefore rough: declared members in the order of their declaration;
//! the end of a value rather than more of it; white space as JSON is mostly written; tokens as long
//! as possible. The estimate decides the order of the work only.
//!
//! Candidates wait in a frontier ordered by likelihood. Expanding one walks grammar and token trie
//! together, from the candidate's configuration and the trie's root, and adds the configurations at
//! which a token may end. Candidates with one representative have one mask, so they are merged and
//! their likelihoods added. See docs/internals/PREPARATION.md.

use std::sync::Arc;

use super::byte_groups::is_punctuation;
use super::continuations::{ContinuationMemo, TextKind};
use super::frontier::{Candidate, Frontier};
use super::token_walk::{TokenTarget, TokenTargets, TokenWalk};
use super::{ConstraintConfig, word_cuts};
use crate::hash::HashMap;
use crate::matcher::{ConfigId, Parser, ParserLimit, Symbol};
use crate::vocab::Trie;

/// Likelihood that a word is not cut where [`word_cuts`] says.
const UNCUT_WORD: f64 = 0.02;

/// Tells the bytes of a word: letters, or punctuation.
type IsWordByte = fn(&u8) -> bool;

/// The state of the search.
pub(super) struct PathSearch {
    pub(super) frontier: Frontier,
    pub(super) continuations: ContinuationMemo,
    /// Memoised lengths of the first tokens of words.
    word_cuts: HashMap<Vec<u8>, usize>,
}

impl PathSearch {
    /// A search that expands at most `max_candidates` candidates and takes at most `max_steps`
    /// steps.
    pub(super) fn new(parser: &mut Parser, max_candidates: usize, max_steps: usize) -> PathSearch {
        let start = parser.start();
        PathSearch {
            frontier: Frontier::new(start, parser.canonical(start), max_candidates),
            continuations: ContinuationMemo::new(max_steps),
            word_cuts: HashMap::default(),
        }
    }

    /// Likelihood of the next candidate; `None` at the end of the search or of its budget.
    pub(super) fn next_likelihood(&self) -> Option<f64> {
        self.frontier.next_likelihood().filter(|_| !self.continuations.is_spent())
    }

    /// Adds the configurations at which the next token may end. `target` is the candidate's
    /// configuration in the constraint's parser. Returns the paths to configurations whose
    /// representative has been expanded already.
    pub(super) fn expand(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        candidate: &Candidate,
        target: ConstraintConfig,
    ) -> Result<Vec<Arc<[Symbol]>>, ParserLimit> {
        let walk = TokenWalk::new(trie, candidate);
        let mut found = walk.run(parser, &mut self.continuations)?;
        self.apply_word_cuts(parser, trie, candidate, &mut found)?;
        let mut explored = Vec::new();
        for TokenTarget { to, likelihood, path, .. } in found.list {
            if to == ConfigId::DEAD {
                continue;
            }
            let last_byte = path.last().and_then(|symbol| symbol.byte());
            let (likelihood, path): (f64, Arc<[Symbol]>) =
                (candidate.likelihood * likelihood, path.into());
            let representative = parser.canonical(to);
            if !self.frontier.add(Candidate {
                config: to,
                representative,
                origin: Some(target),
                path: path.clone(),
                likelihood,
                last_byte,
            }) {
                explored.push(path);
            }
        }
        Ok(explored)
    }

    /// Moves ends of tokens to where a tokenizer cuts the word that they begin, as far as the
    /// grammar determines that word.
    fn apply_word_cuts(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        candidate: &Candidate,
        found: &mut TokenTargets,
    ) -> Result<(), ParserLimit> {
        let mut cut_targets: Vec<(ConfigId, f64, Vec<Symbol>)> = Vec::new();
        for target in &mut found.list {
            let Some((begun, is_word_byte)) = begun_word(&target.path, candidate.last_byte) else {
                continue;
            };
            let Some(word) = self.determined_word(parser, target.to, begun, is_word_byte)? else {
                continue;
            };
            let cut = *self
                .word_cuts
                .entry(word)
                .or_insert_with_key(|word| word_cuts::first_token_length(trie, word));
            if cut < target.path.len() {
                let mut to = candidate.config;
                for &symbol in &target.path[..cut] {
                    to = parser.step_symbol(to, symbol)?;
                }
                cut_targets.push((
                    to,
                    target.likelihood * (1.0 - UNCUT_WORD),
                    target.path[..cut].to_vec(),
                ));
                target.likelihood *= UNCUT_WORD;
            }
        }
        cut_targets.into_iter().for_each(|(to, likelihood, path)| found.add(to, likelihood, &path));
        Ok(())
    }

    /// The whole word of which a part has been read up to a configuration; `None` where the grammar
    /// does not determine it.
    fn determined_word(
        &mut self,
        parser: &mut Parser,
        mut config: ConfigId,
        mut word: Vec<u8>,
        is_word_byte: IsWordByte,
    ) -> Result<Option<Vec<u8>>, ParserLimit> {
        loop {
            match self.next_word_byte(parser, config, is_word_byte)? {
                Some(Some((byte, to))) if word.len() < word_cuts::MAX_WORD_BYTES => {
                    word.push(byte);
                    config = to;
                }
                next => return Ok((next == Some(None)).then_some(word)),
            }
        }
    }

    /// The only byte that continues a word (`Some(Some(_))`), or that the word has ended
    /// (`Some(None)`). `None` where neither is certain.
    fn next_word_byte(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
        is_word_byte: IsWordByte,
    ) -> Result<Option<Option<(u8, ConfigId)>>, ParserLimit> {
        let continuations = self.continuations.get(parser, config)?;
        if continuations.text_kind == TextKind::Returns || self.continuations.is_spent() {
            return Ok(None);
        }
        let (mut next, mut is_over) = (None, false);
        for (_, group) in
            (0..).zip(&continuations.groups).filter(|(index, _)| continuations.text != Some(*index))
        {
            match group.bytes.iter().next().filter(is_word_byte) {
                // In a member name, other bytes only start a name that is not declared.
                _ if continuations.in_name && !group.has_name_bytes() => {}
                None if !group.bytes.iter().any(|byte| is_word_byte(&byte)) => is_over = true,
                Some(byte) if group.bytes.len() == 1 && next.is_none() => {
                    next = Some((byte, group.to))
                }
                _ => return Ok(None),
            }
        }
        Ok((next.is_none() || !is_over).then_some(next))
    }
}

/// The bytes of a path, and which bytes are of one word with them, if they begin a word: letters
/// after at most one other byte, or punctuation after at most a space. `last_byte` is the byte
/// before the path.
fn begun_word(path: &[Symbol], last_byte: Option<u8>) -> Option<(Vec<u8>, IsWordByte)> {
    let word: Vec<u8> = path.iter().map(|symbol| symbol.byte()).collect::<Option<_>>()?;
    let &head = word.first()?;
    let is_word_byte: IsWordByte = match word.last() {
        Some(last) if is_punctuation(last) => is_punctuation,
        _ => u8::is_ascii_alphabetic,
    };
    let prefix = match head {
        _ if is_word_byte(&head) => 0,
        b'0'..=b'9' => return None,
        _ if head == b' ' || is_word_byte(&b'a') => 1,
        _ => return None,
    };
    let goes_on = prefix == 0 && last_byte.is_some_and(|last| is_word_byte(&last));
    let is_word = !goes_on && word.len() > prefix && word[prefix..].iter().all(is_word_byte);
    is_word.then_some((word, is_word_byte))
}
