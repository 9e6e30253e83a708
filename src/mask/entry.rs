//! The adaptive token-mask entry of one automaton state: tokens accepted whatever follows the rule, and what has to be
//! decided by what follows it, grouped by the remainder.

use std::sync::Arc;

use super::profile::Profile;
use super::section::Sections;
use super::set::{TokenSet, bit, set_bit};
use super::walk::{Stopped, Walk, descend};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, Exit, Parser, Room};
use crate::vocab::{Trie, Vocabulary};

/// Where few nodes have everything undecided below them, the subtrees are walked in place; otherwise remainders are grouped.
const SUBTREES: usize = 4;

/// What a state's rule leaves undecided.
#[derive(Debug)]
enum Undecided {
    /// What follows an exit decides.
    Behind(Box<[(Exit, Rest)]>),
    /// As another entry, but for some tokens, which the words below `own` decide.
    Like { base: Arc<Entry>, without: Without, own: Box<[(Exit, u32)]> },
    /// As a counted block's profile says for this counter.
    Counted { profile: Arc<Profile>, room: Room },
}

/// A set of tokens.
#[derive(Debug)]
enum Without {
    /// Sorted.
    Few(Box<[TokenId]>),
    /// One bit a token, up to the last one.
    Many(Box<[u32]>),
}

impl Without {
    fn new(tokens: &[TokenId]) -> Without {
        let last = tokens.iter().map(|t| t.index()).max().unwrap_or(0);
        if tokens.len() < last / 64 {
            let mut few = tokens.to_vec();
            few.sort_unstable();
            few.dedup();
            return Without::Few(few.into());
        }
        let mut bits = vec![0; last / 32 + 1];
        tokens.iter().for_each(|&t| set_bit(&mut bits, t));
        Without::Many(bits.into())
    }

    fn is_empty(&self) -> bool {
        matches!(self, Without::Few(few) if few.is_empty())
    }

    fn has(&self, token: TokenId) -> bool {
        match self {
            Without::Few(few) => few.binary_search(&token).is_ok(),
            Without::Many(bits) => token.index() / 32 < bits.len() && bit(bits, token),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Without::Few(few) => few.len() * 4,
            Without::Many(bits) => bits.len() * 4,
        }
    }
}

/// What is left of undecided tokens behind one exit.
#[derive(Debug)]
enum Rest {
    /// The words below these nodes of the vocabulary's trie.
    Subtrees(Box<[u32]>),
    /// What is left of each token; equal remainders share a node.
    Remainders(Trie),
}

/// Accepted / rejected / uncertain for one state (XGrammar's adaptive token-mask cache). Everything else is rejected.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) accepted: TokenSet,
    undecided: Undecided,
    /// Exits behind which something is undecided.
    exits: Box<[Exit]>,
    /// No token is undecided in two ways.
    simple: bool,
}

impl Entry {
    fn new(accepted: TokenSet, undecided: Undecided, simple: bool) -> Entry {
        let exits = undecided.exits().into();
        Entry { accepted, undecided, exits, simple }
    }

    /// Walks the whole vocabulary with an isolated item. `all` is the row of every token with text, and their number.
    pub(crate) fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        (all, all_count): (&Arc<[u32]>, usize),
        isolated: ConfigId,
    ) -> Result<Entry, Stopped> {
        let mut walk = Walk::default();
        walk.run(parser, vocab.trie(), 0, isolated, usize::MAX)?;
        let accepted = TokenSet::new(walk.words, all, all_count);
        let (undecided, simple) = Undecided::below(vocab, walk.exits, &accepted);
        Ok(Entry::new(accepted, undecided, simple))
    }

    /// The entry of a state most of whose bytes lead to where `like` (another isolated item, with this base entry) loops:
    /// walks only where the two differ. A key that must not be one of the declared names is any key but along those
    /// names. `None` where the base is not simple enough.
    pub(crate) fn build_like(
        parser: &mut Parser,
        vocab: &Vocabulary,
        base: &Arc<Entry>,
        isolated: ConfigId,
        like: ConfigId,
    ) -> Result<Option<Entry>, Stopped> {
        if !base.simple {
            return Ok(None);
        }
        let mut diff = Difference::default();
        diff.walk(parser, vocab.trie(), isolated, like)?;
        let accepted = base.accepted.changed(&diff.less, &diff.more, vocab.mask_words());
        Ok(Some(Entry::new(accepted, Undecided::like(base, &diff), false)))
    }

    /// The entry of a state in a counted block.
    pub(crate) fn counted(accepted: TokenSet, profile: Arc<Profile>, room: Room) -> Entry {
        Entry::new(accepted, Undecided::Counted { profile, room }, false)
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let undecided = match &self.undecided {
            Undecided::Behind(rests) => rests.iter().map(|(_, rest)| rest.bytes()).sum(),
            Undecided::Like { without, own, .. } => without.bytes() + own.len() * 12,
            Undecided::Counted { profile, .. } => profile.bytes() / Arc::strong_count(profile).clamp(1, 16),
        };
        self.accepted.bytes() + undecided + 64
    }

    /// Exits behind which something is undecided.
    pub(crate) fn exits(&self) -> &[Exit] {
        &self.exits
    }

    /// Adds to `walk` the tokens undecided behind an exit that `next` (what follows it) can finish.
    pub(crate) fn resolve(
        &self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        (exit, next): (Exit, ConfigId),
        walk: &mut Walk,
    ) -> Result<(), Stopped> {
        match &self.undecided {
            Undecided::Behind(rests) => {
                for (_, rest) in rests.iter().filter(|(e, _)| *e == exit) {
                    match rest {
                        Rest::Subtrees(nodes) => below(parser, vocab, nodes.iter().copied(), next, walk)?,
                        Rest::Remainders(trie) => walk.run(parser, trie, 0, next, usize::MAX)?,
                    }
                }
                Ok(())
            }
            Undecided::Like { base, without, own } => {
                let from = walk.words.len();
                base.resolve(parser, vocab, (exit, next), walk)?;
                if !without.is_empty() {
                    let mut at = from;
                    while at < walk.words.len() {
                        if without.has(walk.words[at]) {
                            walk.words.swap_remove(at);
                        } else {
                            at += 1;
                        }
                    }
                }
                let own = own.iter().filter(|(e, _)| *e == exit).map(|&(_, node)| node);
                below(parser, vocab, own, next, walk)
            }
            Undecided::Counted { profile, room } => profile.resolve(parser, *room, next, walk),
        }
    }

    /// As [`Entry::resolve`], rule by rule. Only remainders of its own are read that way.
    pub(crate) fn resolve_in_sections(
        entry: &Arc<Entry>,
        parser: &mut Parser,
        vocab: &Vocabulary,
        (exit, next): (Exit, ConfigId),
        (walk, sections): (&mut Walk, &mut Sections),
    ) -> Result<(), Stopped> {
        let Undecided::Behind(rests) = &entry.undecided else {
            return entry.resolve(parser, vocab, (exit, next), walk);
        };
        for (_, rest) in rests.iter().filter(|(e, _)| *e == exit) {
            match rest {
                Rest::Subtrees(nodes) => {
                    sections.resolve(parser, (vocab.trie(), entry), (nodes, next), walk)?;
                }
                Rest::Remainders(trie) => sections.resolve(parser, (trie, entry), (&[0], next), walk)?,
            }
        }
        Ok(())
    }
}

fn below(
    parser: &mut Parser,
    vocab: &Vocabulary,
    mut nodes: impl Iterator<Item = u32>,
    next: ConfigId,
    walk: &mut Walk,
) -> Result<(), Stopped> {
    nodes.try_for_each(|node| walk.run(parser, vocab.trie(), node, next, usize::MAX))
}

impl Undecided {
    fn exits(&self) -> Vec<Exit> {
        match self {
            Undecided::Behind(rests) => rests.iter().map(|&(exit, _)| exit).collect(),
            Undecided::Like { base, own, .. } => {
                let mut exits = base.exits().to_vec();
                exits.extend(own.iter().map(|&(exit, _)| exit));
                exits.sort_unstable();
                exits.dedup();
                exits
            }
            Undecided::Counted { .. } => vec![Exit::End],
        }
    }

    /// What is undecided below these nodes, accepted tokens left out (free text may end after any of its bytes; nearly
    /// everything below is accepted anyway), and whether no token is undecided twice.
    fn below(vocab: &Vocabulary, mut exits: Vec<(Exit, u32)>, accepted: &TokenSet) -> (Undecided, bool) {
        if exits.is_empty() {
            return (Undecided::Behind(Box::default()), true);
        }
        let mut row = vec![0; vocab.mask_words()];
        accepted.write(&mut row);
        let mut seen = vec![0; row.len()];
        let mut simple = true;
        exits.sort_unstable();
        let mut rests = Vec::new();
        for exits in exits.chunk_by(|a, b| a.0 == b.0) {
            if let Some(rest) = Rest::of(vocab, &row, exits, |id| {
                simple &= !bit(&seen, id);
                set_bit(&mut seen, id);
            }) {
                rests.push((exits[0].0, rest));
            }
        }
        (Undecided::Behind(rests.into()), simple)
    }

    fn like(base: &Arc<Entry>, diff: &Difference) -> Undecided {
        Undecided::Like { base: base.clone(), without: Without::new(&diff.without), own: diff.exits.clone().into() }
    }
}

impl Rest {
    /// What is open below some nodes (that is, not in the row `accepted`), if anything; `each` gets every token. The nodes are
    /// in ascending order.
    fn of(vocab: &Vocabulary, accepted: &[u32], exits: &[(Exit, u32)], mut each: impl FnMut(TokenId)) -> Option<Rest> {
        let trie = vocab.trie();
        let (mut remainders, mut nodes): (Vec<(&[u8], TokenId)>, Vec<u32>) = (Vec::new(), Vec::new());
        // Open words of one subtree, and how many of them are before each of its words.
        let (mut open, mut before): (Vec<TokenId>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut subtree = 0..0;
        let mut end = 0;
        for &(_, node) in exits {
            if node >= end {
                end = trie.node(node).end;
                subtree = trie.range_below(node);
                open.clear();
                before.clear();
                for &word in strictly_below(trie, node) {
                    before.push(open.len() as u32);
                    if !bit(accepted, word) {
                        open.push(word);
                    }
                }
                before.push(open.len() as u32);
            }
            let range = trie.range_below(node);
            let at = |word: usize| before[word - subtree.start] as usize;
            let left = &open[at(range.start)..at(range.end)];
            if left.is_empty() {
                continue;
            }
            nodes.push(node);
            let depth = usize::from(trie.node(node).depth);
            remainders.extend(left.iter().filter_map(|&id| Some((&vocab.bytes(id)?[depth..], id))));
        }
        remainders.iter().for_each(|&(_, id)| each(id));
        match nodes.len() {
            0 => None,
            n if n <= SUBTREES => Some(Rest::Subtrees(nodes.into_boxed_slice())),
            _ => Some(Rest::Remainders(Trie::build(remainders))),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Rest::Subtrees(nodes) => nodes.len() * 4,
            Rest::Remainders(trie) => trie.len() * 24 + 1024,
        }
    }
}

fn strictly_below(trie: &Trie, node: u32) -> &[TokenId] {
    &trie.words_below(node)[trie.words_at(node).len()..]
}

/// Where two configurations part ways on the vocabulary.
#[derive(Debug, Default)]
struct Difference {
    /// Accepted by the other only.
    less: Vec<TokenId>,
    /// Accepted by this one only.
    more: Vec<TokenId>,
    /// Undecided by the other in a way that is not this one's.
    without: Vec<TokenId>,
    /// Nodes looked at below which this one is undecided (the other may be as well), and behind which exit.
    exits: Vec<(Exit, u32)>,
}

impl Difference {
    /// Visits the nodes at which the configurations differ; equal ones decide everything below alike.
    fn walk(&mut self, parser: &mut Parser, trie: &Trie, this: ConfigId, other: ConfigId) -> Result<(), Stopped> {
        descend(trie, (this, other), |at, byte, (this, other)| {
            let (a, b) = (parser.step(this, byte)?, parser.step(other, byte)?);
            if a == b {
                return Ok(None);
            }
            if a == DEAD {
                // Whatever the other accepts or leaves open below, this one rejects.
                self.less.extend_from_slice(trie.words_below(at));
                self.without.extend_from_slice(trie.words_below(at));
                return Ok(None);
            }
            let words = trie.words_at(at);
            if b == DEAD {
                self.more.extend_from_slice(words);
            }
            if parser.exits(b).any(|exit| parser.exits(a).all(|own| own != exit)) {
                self.without.extend_from_slice(strictly_below(trie, at));
            }
            self.exits.extend(parser.exits(a).map(|exit| (exit, at)));
            Ok(Some((a, b)))
        })
    }
}
