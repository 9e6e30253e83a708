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

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::byte_groups::{
    ByteGroup, CLASS_OF, CLASSES, LETTER_CLASS, NAME_CLASSES, character_kind,
    discount_spelled_specials, discount_unusual_triggers, estimate_members, group_bytes,
    is_punctuation, special_continuations, weight,
};
use super::{ConstraintConfig, PathSymbol, word_cuts};
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::matcher::{ConfigId, DEAD, Parser, ParserLimit};
use crate::vocab::Trie;

/// A group of at least so many bytes, letters among them, is text.
const MIN_TEXT_BYTES: usize = 48;
/// In a group of at least so many bytes a token may end after any of them: no longer token is
/// looked for.
const MANY_BYTES: usize = 8;
/// Least likelihood, relative to the start of a token, at which a partial token is followed.
const MIN_TOKEN_LIKELIHOOD: f64 = 1e-3;
/// Least likelihood, relative to the start of the text, at which a candidate is added.
const MIN_LIKELIHOOD: f64 = 1e-5;
/// The frontier holds one spare candidate for each so many that may still be expanded: some turn
/// out to share a representative with others.
const FRONTIER_SLACK: usize = 4;
/// Likelihood that a token ends although a longer one would go on: at the end of a word, and inside
/// of one.
const EARLY_END: (f64, f64) = (0.02, 0.001);
/// Likelihood that a word is not cut where [`word_cuts`] says.
const UNCUT_WORD: f64 = 0.02;
/// Most trie nodes visited while one candidate is expanded.
const MAX_TRIE_NODES: usize = 512;
/// Marks a byte that is in no group.
const NO_GROUP: u8 = u8::MAX;
/// So many items of the configurations that follow count as one more step: in ambiguous grammars
/// transitions are costly.
const ITEMS_PER_STEP: usize = 8;
/// So many bytes of growth of the parser count as one more step.
const BYTES_PER_STEP: usize = 4096;

/// A configuration at the end of a likely token, and the path to it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The configuration itself. Its representative would not do: counters of a representative are
    /// right for one token only.
    pub(super) config: ConfigId,
    /// The representative of all configurations with the same mask.
    representative: ConfigId,
    /// The configuration before the token, in the constraint's own parser; `None` at the start.
    pub(super) origin: Option<ConstraintConfig>,
    /// The symbols of the token.
    pub(super) path: Arc<[PathSymbol]>,
    /// Estimated likelihood that a text passes here, relative to the start of the text.
    likelihood: f64,
    /// The last byte of the token, if it is no special token.
    last_byte: Option<u8>,
}

/// The priority of a candidate: higher likelihood first, then earlier insertion.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rank {
    likelihood: f64,
    sequence: usize,
}

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.likelihood.total_cmp(&other.likelihood).then(other.sequence.cmp(&self.sequence))
    }
}

/// How a configuration relates to free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    /// No large group of bytes contains letters.
    NotText,
    /// Free text: most bytes lead back to the same representative.
    Returns,
    /// Most bytes lead to a configuration that reads free text.
    Enters,
    /// Text with a bounded length: most bytes lead to another configuration of the text.
    Counted,
}

/// What may follow a configuration, grouped by where it leads.
#[derive(Debug)]
struct Continuations {
    groups: Vec<ByteGroup>,
    /// Special tokens that may follow, with where they lead.
    specials: Vec<(u32, ConfigId)>,
    /// Index of the first group of text bytes.
    text: Option<usize>,
    /// What that group leads to.
    text_kind: TextKind,
    /// By byte: the index of its group, or [`NO_GROUP`].
    group_of_byte: [u8; 256],
    /// Whether a small group has name bytes only: a member name, or another known word, goes on.
    in_name: bool,
    /// Whether free text ends in a prefix of a trigger that may go on.
    in_trigger: bool,
}

/// One group or special token that may follow a partial token.
struct TokenBranch {
    /// Of a group: the byte with the most tokens.
    symbol: PathSymbol,
    to: ConfigId,
    /// The trie node that the byte leads to, if a token goes on so.
    child: Option<u32>,
    /// Relative to the other branches: they add up to 1.
    likelihood: f64,
    has_many_bytes: bool,
}

/// A state of the token walk: a trie node, the configuration there, and the path to it.
struct PartialToken {
    config: ConfigId,
    node: u32,
    likelihood: f64,
    path: Vec<PathSymbol>,
    /// Length of the longest prefix of the path that is a token, and the configuration it leads to.
    longest_token: Option<(usize, ConfigId)>,
}

/// Configurations that tokens lead to from a candidate.
#[derive(Default)]
struct TokenTargets {
    list: Vec<TokenTarget>,
}

/// A configuration that tokens lead to.
struct TokenTarget {
    to: ConfigId,
    /// Sum over the tokens found.
    likelihood: f64,
    /// Likelihood of the token in `path`, the likeliest one.
    best_path_likelihood: f64,
    path: Vec<PathSymbol>,
}

impl TokenTargets {
    /// Adds a token that leads to `to`.
    fn add(&mut self, to: ConfigId, likelihood: f64, path: &[PathSymbol]) {
        match self.list.iter_mut().find(|target| target.to == to) {
            Some(target) => {
                target.likelihood += likelihood;
                if likelihood > target.best_path_likelihood {
                    (target.best_path_likelihood, target.path) = (likelihood, path.to_vec());
                }
            }
            None => self.list.push(TokenTarget {
                to,
                likelihood,
                best_path_likelihood: likelihood,
                path: path.to_vec(),
            }),
        }
    }
}

/// The state of the search.
pub(super) struct PathSearch {
    /// Candidates that have not been expanded, by rank.
    frontier: BTreeMap<Rank, Candidate>,
    /// By representative: its rank in the frontier, or `None` once it has been expanded.
    ranks: HashMap<ConfigId, Option<Rank>>,
    /// Memoised continuations.
    continuations: HashMap<ConfigId, Arc<Continuations>>,
    /// Memoised answers of [`PathSearch::returns_on_text`] for other configurations.
    text_loops: HashMap<ConfigId, bool>,
    /// Memoised lengths of the first tokens of words.
    word_cuts: HashMap<Vec<u8>, usize>,
    /// Number of candidates inserted, to order those of equal likelihood.
    next_sequence: usize,
    /// Candidates that may still be expanded.
    candidates_left: usize,
    /// Configurations explored, at ends and inside of tokens, and the growth charged as such.
    steps: usize,
    /// The budget for `steps`.
    max_steps: usize,
}

impl PathSearch {
    /// A search that expands at most `max_candidates` candidates and takes at most `max_steps`
    /// steps.
    pub(super) fn new(parser: &mut Parser, max_candidates: usize, max_steps: usize) -> PathSearch {
        let config = parser.start();
        let representative = parser.canonical(config);
        let start = Candidate {
            config,
            representative,
            origin: None,
            path: Arc::new([]),
            likelihood: 1.0,
            last_byte: None,
        };
        let rank = Rank { likelihood: 1.0, sequence: 0 };
        PathSearch {
            frontier: BTreeMap::from([(rank, start)]),
            ranks: HashMap::from_iter([(representative, Some(rank))]),
            continuations: HashMap::default(),
            text_loops: HashMap::default(),
            word_cuts: HashMap::default(),
            next_sequence: 0,
            candidates_left: max_candidates,
            steps: 0,
            max_steps,
        }
    }

    /// Removes and returns the likeliest candidate; `None` at the end of the search or of its
    /// budget.
    pub(super) fn next_candidate(&mut self) -> Option<Candidate> {
        self.candidates_left = self.candidates_left.checked_sub(1)?;
        let (_, candidate) = self.frontier.pop_last()?;
        self.ranks.insert(candidate.representative, None);
        Some(candidate)
    }

    /// Likelihood of the next candidate; `None` at the end of the search or of its budget.
    pub(super) fn next_likelihood(&self) -> Option<f64> {
        let (rank, _) = self.frontier.last_key_value()?;
        (self.candidates_left > 0 && !self.is_spent()).then_some(rank.likelihood)
    }

    /// Most candidates that the frontier holds.
    fn frontier_capacity(&self) -> usize {
        self.candidates_left.saturating_add(self.candidates_left / FRONTIER_SLACK)
    }

    /// A candidate that is not likelier than this will never be expanded.
    fn likelihood_floor(&self) -> f64 {
        match self.frontier.first_key_value() {
            Some((rank, _)) if self.frontier.len() >= self.frontier_capacity() => {
                rank.likelihood.max(MIN_LIKELIHOOD)
            }
            _ if self.candidates_left == 0 => f64::INFINITY,
            _ => MIN_LIKELIHOOD,
        }
    }

    /// Adds a candidate, or adds its likelihood to one with the same representative. `false` if
    /// that representative has been expanded.
    fn add(&mut self, mut candidate: Candidate) -> bool {
        match self.ranks.get(&candidate.representative) {
            Some(None) => return false,
            Some(Some(rank)) => {
                let rank = *rank;
                let Some(other) = self.frontier.remove(&rank) else { return true };
                let likelihood = other.likelihood + candidate.likelihood;
                if other.likelihood >= candidate.likelihood {
                    candidate = other;
                }
                candidate.likelihood = likelihood;
            }
            None if candidate.likelihood <= self.likelihood_floor() => return true,
            None => {}
        }
        self.next_sequence += 1;
        let rank = Rank { likelihood: candidate.likelihood, sequence: self.next_sequence };
        self.ranks.insert(candidate.representative, Some(rank));
        self.frontier.insert(rank, candidate);
        while self.frontier.len() > self.frontier_capacity()
            && let Some((_, last)) = self.frontier.pop_first()
        {
            self.ranks.remove(&last.representative);
        }
        true
    }

    /// Charges the growth of the parser, in bytes, as steps: in ambiguous grammars it measures the
    /// cost of masks.
    pub(super) fn charge_growth(&mut self, bytes: usize) {
        self.steps = self.steps.saturating_add(bytes / BYTES_PER_STEP);
    }

    /// Whether the budget of steps is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.steps >= self.max_steps
    }

    /// Whether an expanded configuration reads free text that leads back to it.
    pub(super) fn loops_on_text(&self, config: ConfigId) -> bool {
        self.continuations
            .get(&config)
            .is_some_and(|continuations| continuations.text_kind == TextKind::Returns)
    }

    /// Adds the configurations at which the next token may end. `target` is the candidate's
    /// configuration in the constraint's own parser. Returns the paths to configurations whose
    /// representative has been expanded already.
    pub(super) fn expand(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        candidate: &Candidate,
        target: ConstraintConfig,
    ) -> Result<Vec<Arc<[PathSymbol]>>, ParserLimit> {
        let mut found = TokenTargets::default();
        self.walk_tokens(parser, trie, candidate, &mut found)?;
        self.apply_word_cuts(parser, trie, candidate, &mut found)?;
        let mut explored = Vec::new();
        for TokenTarget { to, likelihood, path, .. } in found.list {
            if to == DEAD {
                continue;
            }
            let last_byte = match path.last() {
                Some(PathSymbol::Byte(byte)) => Some(*byte),
                _ => None,
            };
            let (likelihood, path): (f64, Arc<[PathSymbol]>) =
                (candidate.likelihood * likelihood, path.into());
            let representative = parser.canonical(to);
            if !self.add(Candidate {
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

    /// Walks grammar and token trie together. A token ends where no longer one is likely, and, with
    /// a small likelihood, earlier.
    fn walk_tokens(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        candidate: &Candidate,
        found: &mut TokenTargets,
    ) -> Result<(), ParserLimit> {
        let begin = PartialToken {
            config: candidate.config,
            node: 0,
            likelihood: 1.0,
            path: Vec::new(),
            longest_token: None,
        };
        let min_likelihood =
            MIN_TOKEN_LIKELIHOOD.max(self.likelihood_floor() / candidate.likelihood);
        let mut stack = vec![begin];
        let mut visited = 0;
        while let Some(PartialToken { config, node, likelihood, path, longest_token }) = stack.pop()
        {
            visited += 1;
            if visited > MAX_TRIE_NODES || self.is_spent() {
                break;
            }
            let last = match path.last() {
                Some(PathSymbol::Byte(byte)) => Some(*byte),
                Some(PathSymbol::Special(_)) => None,
                None => candidate.last_byte,
            };
            let ends_here = longest_token.filter(|token| token.0 == path.len());
            let branches =
                self.branches(parser, trie, (config, node), (last, min_likelihood / likelihood))?;
            if let (true, Some((len, to))) = (branches.is_empty(), longest_token) {
                found.add(to, likelihood, &path[..len]);
            }
            for branch in branches {
                let likelihood = likelihood * branch.likelihood;
                if let (Some((_, to)), PathSymbol::Byte(byte), Some(_)) =
                    (ends_here, branch.symbol, branch.child)
                {
                    let word_ends =
                        last.is_some_and(|last| character_kind(last) != character_kind(byte));
                    found.add(
                        to,
                        likelihood * if word_ends { EARLY_END.0 } else { EARLY_END.1 },
                        &path,
                    );
                }
                if likelihood < min_likelihood {
                    continue;
                }
                let child = match (branch.symbol, branch.child) {
                    (PathSymbol::Special(_), _) if path.is_empty() => {
                        found.add(branch.to, likelihood, &[branch.symbol]);
                        continue;
                    }
                    (PathSymbol::Byte(_), Some(child)) => Some(child),
                    _ => None,
                };
                let Some(child) = child else {
                    if let Some((len, to)) = longest_token {
                        found.add(to, likelihood, &path[..len]);
                    }
                    continue;
                };
                let mut path = path.clone();
                path.push(branch.symbol);
                let is_token = !trie.words_at(child).is_empty();
                if is_token && (branch.has_many_bytes || trie.node(child).end == child + 1) {
                    found.add(branch.to, likelihood, &path);
                    continue;
                }
                let longest_token =
                    if is_token { Some((path.len(), branch.to)) } else { longest_token };
                stack.push(PartialToken {
                    config: branch.to,
                    node: child,
                    likelihood,
                    path,
                    longest_token,
                });
            }
        }
        Ok(())
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
        let min_likelihood = self.likelihood_floor() / candidate.likelihood;
        let mut cut_targets: Vec<(ConfigId, f64, Vec<PathSymbol>)> = Vec::new();
        for target in found.list.iter_mut().filter(|target| target.likelihood >= min_likelihood) {
            let bytes = target.path.iter().map_while(|symbol| match symbol {
                PathSymbol::Byte(byte) => Some(*byte),
                PathSymbol::Special(_) => None,
            });
            let mut word: Vec<u8> = bytes.collect();
            // Letters after at most one other byte, or punctuation after at most a space.
            let Some(&head) = word.first().filter(|_| word.len() == target.path.len()) else {
                continue;
            };
            let is_word_byte: fn(&u8) -> bool = match word.last() {
                Some(last) if is_punctuation(last) => is_punctuation,
                _ => u8::is_ascii_alphabetic,
            };
            let prefix = match head {
                _ if is_word_byte(&head) => 0,
                b'0'..=b'9' => continue,
                _ if head == b' ' || is_word_byte(&b'a') => 1,
                _ => continue,
            };
            if prefix == 0 && candidate.last_byte.is_some_and(|last| is_word_byte(&last))
                || word.len() == prefix
                || !word[prefix..].iter().all(is_word_byte)
            {
                continue;
            }
            let mut word_end = target.to;
            let is_unambiguous = loop {
                match self.next_word_byte(parser, word_end, is_word_byte)? {
                    Some(Some((byte, to))) if word.len() < word_cuts::MAX_WORD_BYTES => {
                        word.push(byte);
                        word_end = to;
                    }
                    next => break next == Some(None),
                }
            };
            if !is_unambiguous {
                continue;
            }
            let cut = *self
                .word_cuts
                .entry(word)
                .or_insert_with_key(|word| word_cuts::first_token_length(trie, word));
            if cut < target.path.len() {
                let mut to = candidate.config;
                for symbol in &target.path[..cut] {
                    to = symbol.step(parser, to)?;
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

    /// The only byte that continues a word (`Some(Some(_))`), or that the word has ended
    /// (`Some(None)`). `None` where neither is certain. `is_word_byte` tells the bytes of words.
    fn next_word_byte(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
        is_word_byte: fn(&u8) -> bool,
    ) -> Result<Option<Option<(u8, ConfigId)>>, ParserLimit> {
        let continuations = self.continuations(parser, config)?;
        if continuations.text_kind == TextKind::Returns || self.is_spent() {
            return Ok(None);
        }
        let (mut next, mut is_over) = (None, false);
        for (_, group) in
            (0..).zip(&continuations.groups).filter(|(index, _)| continuations.text != Some(*index))
        {
            match group.bytes.iter().next().filter(is_word_byte) {
                // In a member name, other bytes only start a name that is not declared.
                _ if continuations.in_name && group.classes & NAME_CLASSES == 0 => {}
                None if !group.bytes.iter().any(|byte| is_word_byte(&byte)) => is_over = true,
                Some(byte) if group.bytes.len() == 1 && next.is_none() => {
                    next = Some((byte, group.to))
                }
                _ => return Ok(None),
            }
        }
        Ok((next.is_none() || !is_over).then_some(next))
    }

    /// What may follow a configuration. Memoised. Cost of a new one: a transition for each group.
    fn continuations(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<Arc<Continuations>, ParserLimit> {
        if let Some(explored) = self.continuations.get(&config) {
            return Ok(explored.clone());
        }
        self.steps += 1;
        let pending = parser.pending_trigger_bytes(config);
        let (mut groups, items) = group_bytes(parser, config, pending)?;
        let mut group_of_byte = [NO_GROUP; 256];
        for (number, group) in groups.iter_mut().enumerate() {
            let number = u8::try_from(number).unwrap_or(NO_GROUP);
            for byte in group.bytes.iter() {
                group_of_byte[usize::from(byte)] = number;
                group.classes |= 1 << CLASS_OF[usize::from(byte)];
            }
        }
        let in_name = groups
            .iter()
            .any(|group| group.bytes.len() < MANY_BYTES && group.classes & !NAME_CLASSES == 0);
        self.steps += items / ITEMS_PER_STEP;
        let in_trigger = pending > 0 && groups.iter().any(|group| group.advances_trigger);
        let text = groups.iter().position(|group| {
            group.bytes.len() >= MIN_TEXT_BYTES && group.classes & LETTER_CLASS != 0
        });
        let text_kind = match text.map(|text| groups[text].to) {
            None => TextKind::NotText,
            Some(to) if parser.canonical(to) == parser.canonical(config) => TextKind::Returns,
            Some(to) => match self.returns_on_text(parser, to)? {
                true => TextKind::Enters,
                false => TextKind::Counted,
            },
        };
        estimate_members(parser, &mut groups);
        discount_unusual_triggers(parser, config, &mut groups);
        let specials = special_continuations(parser, config)?;
        discount_spelled_specials(parser, &specials, &mut groups);
        let continuations = Arc::new(Continuations {
            groups,
            specials,
            text,
            text_kind,
            group_of_byte,
            in_name,
            in_trigger,
        });
        self.continuations.insert(config, continuations.clone());
        Ok(continuations)
    }

    /// Whether most bytes lead a configuration back to its own representative. Memoised.
    fn returns_on_text(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<bool, ParserLimit> {
        if let Some(explored) = self.continuations.get(&config) {
            return Ok(explored.text_kind == TextKind::Returns);
        }
        if let Some(&explored) = self.text_loops.get(&config) {
            return Ok(explored);
        }
        let letters = ByteSet::range(b'a', b'z');
        let text = parser
            .bytes_by_edges(config)
            .into_iter()
            .find(|bytes| bytes.len() >= MIN_TEXT_BYTES && bytes.meets(&letters));
        let mut is_text = false;
        if let Some(byte) = text.and_then(|text| text.iter().next()) {
            let to = parser.step(config, byte)?;
            is_text = parser.canonical(to) == parser.canonical(config);
        }
        self.text_loops.insert(config, is_text);
        Ok(is_text)
    }

    /// The branches from a partial token at trie node `node`. Groups less likely than
    /// `min_likelihood` get no trie node.
    fn branches(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (config, node): (ConfigId, u32),
        (last, min_likelihood): (Option<u8>, f64),
    ) -> Result<Vec<TokenBranch>, ParserLimit> {
        let continuations = self.continuations(parser, config)?;
        let Continuations { groups, specials, text, text_kind, group_of_byte, in_trigger, .. } =
            &*continuations;
        let in_name = continuations.in_name;
        // Inside of a member name or a trigger, text would mean that it turns out to be another
        // one.
        let quoted = matches!(last, None | Some(b'"' | b'\'' | b'>' | b'`'));
        let mut out: Vec<TokenBranch> = Vec::with_capacity(groups.len() + specials.len());
        // Of each group: the weight and the number of trie nodes of its best byte.
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(groups.len());
        for (number, group) in groups.iter().enumerate() {
            let classes =
                CLASSES.iter().enumerate().filter(|(class, _)| group.classes >> class & 1 == 1);
            let likeliest = classes.map(|(_, &byte)| weight(byte, last)).fold(0.0, f64::max);
            best.push((likeliest, 0));
            let likelihood = match (*text == Some(number), text_kind) {
                _ if group.advances_trigger => 1.0,
                // A trigger that has begun is probably meant.
                _ if *in_trigger => 0.001,
                (true, TextKind::Returns) if node == 0 => 0.0,
                (true, TextKind::Returns) => 30.0,
                (true, TextKind::Enters) if quoted && !in_name => 30.0,
                (true, TextKind::Enters) => 0.0005,
                (true, TextKind::Counted | TextKind::NotText) => 1.0,
                (false, TextKind::Enters) if in_name && group.classes & NAME_CLASSES == 0 => 0.001,
                (false, _) => likeliest,
            };
            let first = group.bytes.iter().next().unwrap_or_default();
            out.push(TokenBranch {
                symbol: PathSymbol::Byte(first),
                to: group.to,
                child: None,
                likelihood: likelihood * group.likelihood,
                has_many_bytes: group.bytes.len() >= MANY_BYTES,
            });
        }
        for &(special, to) in specials {
            out.push(TokenBranch {
                symbol: PathSymbol::Special(special),
                to,
                child: None,
                likelihood: 1.0,
                has_many_bytes: false,
            });
        }
        let sum: f64 = out.iter().map(|branch| branch.likelihood).sum();
        // Free text may also go on as it is, which leads nowhere else.
        let is_text = *text_kind == TextKind::Returns && node == 0;
        let least = if is_text { 1.0 } else { f64::MIN_POSITIVE };
        out.iter_mut().for_each(|branch| branch.likelihood /= sum.max(least));
        // Find the trie nodes of the likely groups.
        let likely =
            groups.iter().zip(&out).filter(|(_, branch)| branch.likelihood >= min_likelihood);
        let bytes = likely.fold(ByteSet::EMPTY, |bytes, (group, _)| bytes.union(&group.bytes));
        let mut consider = |child: u32, byte: u8| {
            let number = usize::from(group_of_byte[usize::from(byte)]);
            if number < groups.len()
                && let weight = weight(byte, last)
                && weight >= best[number].0
                && let nodes = trie.node(child).end - child
                && (weight, nodes) > best[number]
            {
                best[number] = (weight, nodes);
                (out[number].symbol, out[number].child) = (PathSymbol::Byte(byte), Some(child));
            }
        };
        if node == 0 {
            bytes
                .iter()
                .filter_map(|byte| Some((trie.root_child(byte)?, byte)))
                .for_each(|(child, byte)| consider(child, byte));
            return Ok(out);
        }
        let last = bytes.ranges().last().map_or(0, |(_, last)| last);
        let (mut child, end) = (node + 1, trie.node(node).end);
        while child < end && !bytes.is_empty() {
            let next = trie.node(child);
            if bytes.contains(next.byte) {
                consider(child, next.byte);
            }
            if next.byte >= last {
                break;
            }
            child = next.end;
        }
        Ok(out)
    }
}
