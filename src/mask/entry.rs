//! The adaptive token-mask entry of one automaton state: tokens accepted whatever follows the rule, and what has to be
//! decided by what follows it, grouped by the remainder.

use std::sync::{Arc, OnceLock};

use super::counter_profile::Profile;
use super::entry_difference::Difference;
use super::node_sets::sort_kinds;
use super::rule_walks::Sections;
use super::shape_walk::Shaped;
use super::suffixes::Rest;
use super::token_set::{TokenSet, bit, clear_bit, set_bit};
use super::trie_walk::{Stopped, Walk};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Parser, Room};
use crate::vocab::{Tree, Vocabulary};

/// So few nodes of the trie are few.
const FEW_SOURCES: usize = 1 << 14;

/// What a state's rule leaves undecided.
#[derive(Debug)]
enum Undecided {
    /// What follows an exit decides.
    Behind(Box<[(Exit, Rest)]>),
    /// As another entry, but without its say on some tokens, and with one of its own.
    Like { base: Arc<Entry>, without: Without, own: Box<[(Exit, Rest)]> },
    /// As a counted block's profile says for this counter.
    Counted { profile: Arc<Profile>, room: Room },
}

/// A set of tokens.
#[derive(Debug)]
pub(crate) enum Without {
    /// Sorted.
    Few(Box<[TokenId]>),
    /// One bit a token, up to the last one.
    Many(Box<[u32]>),
}

impl Without {
    fn new(tokens: &[TokenId]) -> Without {
        let Some(last) = tokens.iter().map(|t| t.index()).max() else {
            return Without::Few(Box::default());
        };
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

    /// Takes the tokens out of what a walk has found behind its first words and rows.
    pub(crate) fn take_from(&self, walk: &mut Walk, (words, rows): (usize, usize)) {
        if matches!(self, Without::Few(few) if few.is_empty()) {
            return;
        }
        let mut at = words;
        while at < walk.words.len() {
            if self.has(walk.words[at]) {
                walk.words.swap_remove(at);
            } else {
                at += 1;
            }
        }
        for row in &mut walk.rows[rows..] {
            match self {
                Without::Few(few) => {
                    if few.iter().any(|&id| bit(row, id)) {
                        let mut less = row.to_vec();
                        few.iter().for_each(|&id| clear_bit(&mut less, id));
                        *row = less.into();
                    }
                }
                Without::Many(bits) => {
                    if row.iter().zip(bits).any(|(a, b)| a & b != 0) {
                        let mut less = row.to_vec();
                        less.iter_mut().zip(bits).for_each(|(a, b)| *a &= !b);
                        *row = less.into();
                    }
                }
            }
        }
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

/// Accepted / rejected / uncertain for one state (XGrammar's adaptive token-mask cache). Everything else is rejected.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) accepted: TokenSet,
    undecided: Undecided,
    /// Exits behind which something is undecided.
    exits: Box<[Exit]>,
    /// See [`Entry::left_open`].
    open: OnceLock<Arc<[u32]>>,
}

impl Entry {
    fn new(accepted: TokenSet, undecided: Undecided) -> Entry {
        let exits = undecided.exits().into();
        Entry { accepted, undecided, exits, open: OnceLock::new() }
    }

    /// The tokens with text that are not accepted, and perhaps some that are, by their places in the list of the trie's words. Cost: a look at all words, once; of
    /// an entry that is like another one, at the tokens in which it differs.
    pub(crate) fn left_open(&self, vocab: &Vocabulary) -> Arc<[u32]> {
        if let (Some((base, _)), TokenSet::Row { base: row, remove, .. }) =
            (self.base(), &self.accepted)
            && matches!(&base.accepted, TokenSet::Row { base: other, .. } if Arc::ptr_eq(row, other))
        {
            let mut places = base.left_open(vocab).to_vec();
            places.extend(remove.iter().filter_map(|&id| vocab.place(id)));
            places.sort_unstable();
            return places.into();
        }
        let open = self.open.get_or_init(|| {
            let row = self.accepted.written(vocab.mask_words());
            (0..)
                .zip(vocab.trie().words_below(0))
                .filter(|(_, id)| !bit(&row, **id))
                .map(|(place, _)| place)
                .collect()
        });
        open.clone()
    }

    /// Walks the whole vocabulary with an isolated item. `all` is the row of every token with text. Also returns how many nodes were
    /// looked at one by one.
    pub(crate) fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        all: &Arc<[u32]>,
        isolated: ConfigId,
    ) -> Result<(Entry, usize), Stopped> {
        let shaped = Shaped::walk(parser, vocab, isolated)?;
        let (accepted, looked) = (shaped.accepted(vocab, all), shaped.looked());
        let (mut shaped_exits, mut exits) = (shaped.exits, shaped.fine.exits);
        // Where there are few, they are found in the trie: it has what is left of the words in order.
        let shapes = vocab.shapes();
        let sources =
            shaped_exits.iter().map(|&(_, node)| shapes.sources(node).len()).sum::<usize>();
        if sources <= FEW_SOURCES {
            let of = |(exit, node)| shapes.sources(node).iter().map(move |&source| (exit, source));
            exits.extend(shaped_exits.drain(..).flat_map(of));
        }
        let sides = [(shapes.tree(), shaped_exits), (&**vocab.trie(), exits)];
        let undecided = Undecided::below(vocab, sides, &accepted);
        Ok((Entry::new(accepted, undecided), looked))
    }

    /// The entry of a state from what was found on a tree of words: the nodes that it reads, and where its rule may end.
    pub(crate) fn found(
        vocab: &Vocabulary,
        tree: &Tree,
        read: impl Iterator<Item = u32>,
        exits: Vec<(Exit, u32)>,
    ) -> Entry {
        let read = read.flat_map(|node| tree.words_at(node));
        let accepted =
            TokenSet::built(vocab.mask_words(), |bits| read.for_each(|&id| set_bit(bits, id)));
        let undecided = Undecided::below(vocab, [(tree, exits)], &accepted);
        Entry::new(accepted, undecided)
    }

    /// The entry of a state most of whose bytes lead to where `like` (another isolated item, with this base entry) loops:
    /// walks only where the two differ. A key that must not be one of the declared names is any key but along those
    /// names.
    pub(crate) fn build_like(
        parser: &mut Parser,
        vocab: &Vocabulary,
        base: &Arc<Entry>,
        isolated: ConfigId,
        like: ConfigId,
    ) -> Result<Entry, Stopped> {
        let mut diff = Difference::default();
        diff.walk(parser, vocab.trie(), isolated, like)?;
        Ok(Entry::differing(vocab, base, diff, vocab.trie()))
    }

    /// The entry of a state that differs so from that of another, on a tree of words.
    pub(crate) fn differing(
        vocab: &Vocabulary,
        base: &Arc<Entry>,
        diff: Difference,
        tree: &Tree,
    ) -> Entry {
        let accepted = base.accepted.changed(&diff.less, &diff.more, vocab.mask_words());
        let without = Without::new(&diff.without);
        let own = diff.own(vocab, &accepted, tree);
        Entry::new(accepted, Undecided::Like { base: base.clone(), without, own: own.into() })
    }

    /// The entry of a state in a counted block.
    pub(crate) fn counted(accepted: TokenSet, profile: Arc<Profile>, room: Room) -> Entry {
        Entry::new(accepted, Undecided::Counted { profile, room })
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let undecided = match &self.undecided {
            Undecided::Behind(rests) => rests_bytes(rests),
            Undecided::Like { without, own, .. } => without.bytes() + rests_bytes(own),
            Undecided::Counted { profile, .. } => {
                profile.bytes() / Arc::strong_count(profile).clamp(1, 16)
            }
        };
        self.accepted.bytes() + undecided + 96
    }

    /// Exits behind which something is undecided.
    pub(crate) fn exits(&self) -> &[Exit] {
        &self.exits
    }

    /// Another entry that decides as this one does, but for some tokens, if it is like another.
    pub(crate) fn base(&self) -> Option<(&Arc<Entry>, &Without)> {
        match &self.undecided {
            Undecided::Like { base, without, .. } => Some((base, without)),
            _ => None,
        }
    }

    /// Adds to `walk` the tokens undecided behind an exit that `next` (what follows it) can finish, but for what the entry's base
    /// says.
    pub(crate) fn resolve(
        &self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        (exit, next): (Exit, ConfigId),
        walk: &mut Walk,
    ) -> Result<(), Stopped> {
        match &self.undecided {
            Undecided::Behind(rests) | Undecided::Like { own: rests, .. } => {
                let mut here = rests.iter().filter(|(e, _)| *e == exit);
                here.try_for_each(|(_, rest)| rest.resolve(parser, vocab, next, walk))
            }
            Undecided::Counted { profile, room } => profile.resolve(parser, *room, next, walk),
        }
    }

    /// As [`Entry::resolve`], rule by rule. Counted blocks are not read that way.
    pub(crate) fn resolve_in_sections(
        entry: &Arc<Entry>,
        parser: &mut Parser,
        vocab: &Vocabulary,
        (exit, next): (Exit, ConfigId),
        (walk, sections): (&mut Walk, &mut Sections),
    ) -> Result<(), Stopped> {
        let (Undecided::Behind(rests) | Undecided::Like { own: rests, .. }) = &entry.undecided
        else {
            return entry.resolve(parser, vocab, (exit, next), walk);
        };
        let mut here = rests.iter().filter(|(e, _)| *e == exit);
        here.try_for_each(|(_, rest)| {
            rest.resolve_in_sections((parser, vocab), entry, next, (walk, sections))
        })
    }
}

impl Undecided {
    fn exits(&self) -> Vec<Exit> {
        match self {
            Undecided::Behind(rests) => {
                let mut exits: Vec<Exit> = rests.iter().map(|(exit, _)| *exit).collect();
                exits.sort_unstable();
                exits.dedup();
                exits
            }
            Undecided::Like { base, own, .. } => {
                let mut exits = base.exits().to_vec();
                exits.extend(own.iter().map(|(exit, _)| *exit));
                exits.sort_unstable();
                exits.dedup();
                exits
            }
            Undecided::Counted { .. } => vec![Exit::End],
        }
    }

    /// What is undecided below these nodes, accepted tokens left out (free text may end after any of its bytes; nearly
    /// everything below is accepted anyway). The nodes are of several trees.
    fn below<const N: usize>(
        vocab: &Vocabulary,
        sides: [(&Tree, Vec<(Exit, u32)>); N],
        accepted: &TokenSet,
    ) -> Undecided {
        if sides.iter().all(|(_, exits)| exits.is_empty()) {
            return Undecided::Behind(Box::default());
        }
        let row = accepted.written(vocab.mask_words());
        let mut rests = Vec::new();
        for (tree, mut exits) in sides {
            sort_kinds(&mut exits);
            for exits in exits.chunk_by(|a, b| a.0 == b.0) {
                rests.extend(Rest::of((vocab, tree), &row, exits).map(|rest| (exits[0].0, rest)));
            }
        }
        Undecided::Behind(rests.into())
    }
}

fn rests_bytes(rests: &[(Exit, Rest)]) -> usize {
    rests.iter().map(|(_, rest)| rest.bytes()).sum()
}

pub(super) fn strictly_below(tree: &Tree, node: u32) -> &[TokenId] {
    &tree.words_below(node)[tree.words_at(node).len()..]
}
