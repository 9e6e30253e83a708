//! Deciding undecided tokens rule by rule. Behind an exit, each item is looked at on its own: which remainders it reads whatever
//! follows *its* rule, and which leave that, too. What is found depends on no frame, so that expressions nested ever
//! deeper, in grammars with long chains of rules, are not read again at every depth; only what leaves a rule is looked up
//! with what its frame returns to. A section itself is made that way: it walks with its own rule, and asks for the sections
//! of the rules that are called on the way, which other callers have asked for as well.

use std::sync::Arc;

use indexmap::IndexMap;

use super::entry::Entry;
use super::node_sets::{sort_kinds, sort_nodes, sorted_by_bytes};
use super::token_set::{bit, set_bit};
use super::trie_walk::{Stopped, Walk};
use crate::compile::NO_BLOCK;
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{HashMap, HashSet, Seeded};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Item, Parser};
use crate::vocab::{Trie, Vocabulary};

/// Memory for sections of one constraint.
const MAX_BYTES: usize = 32 << 20;
/// Sections within sections; deeper, a walk reads called rules with their callers.
const MAX_DEPTH: usize = 48;
/// Parts of the vocabulary's trie; a larger subtree is looked at on its own.
const LARGE: usize = 16;
/// Fuel of a section, beside what its walk takes.
const SECTION: usize = 16;
/// So few words that what is below them is looked at in any case.
const FEW: usize = 32;
/// Numbers of a row to a word from which on a rule's own words become a row, which callers share.
const ROW: usize = 4;

/// What one item, looked at on its own, does with the words below some nodes of a trie.
#[derive(Debug)]
struct Section {
    words: Words,
    /// Behind each exit of its rule, the nodes below which what follows has to decide.
    exits: Box<[(Exit, Places)]>,
}

/// A set of words that is kept: single ones, and rows. A word may be in several of those.
#[derive(Debug, Default)]
pub(crate) struct Words {
    few: Box<[TokenId]>,
    rows: Box<[Arc<[u32]>]>,
}

impl Words {
    /// The single words a walk has found behind its first ones, which are distinct.
    pub(crate) fn single(walk: &Walk, from: (usize, usize)) -> Words {
        Words { few: walk.words[from.0..].into(), rows: Box::default() }
    }

    /// What a walk has found behind its first `from` words and rows.
    pub(crate) fn of(walk: &mut Walk, from: (usize, usize), width: usize) -> Words {
        walk.distinct(from.0, width);
        if walk.words.len() - from.0 > width {
            walk.fold_words(from.0, width);
        }
        let few = walk.words[from.0..].into();
        let rows = &mut walk.rows[from.1..];
        rows.sort_unstable_by_key(|row| row.as_ptr());
        let mut rows = rows.to_vec();
        rows.dedup_by_key(|row| row.as_ptr());
        Words { few, rows: rows.into() }
    }

    /// Adds them to what a walk has found.
    pub(crate) fn add_to(&self, walk: &mut Walk) {
        walk.words.extend_from_slice(&self.few);
        walk.rows.extend_from_slice(&self.rows);
    }

    /// Memory held, in bytes. Rows that others have as well are theirs.
    pub(crate) fn bytes(&self) -> usize {
        let own = self.rows.iter().filter(|row| Arc::strong_count(row) == 1);
        self.few.len() * 4 + own.map(|row| row.len() * 4).sum::<usize>() + self.rows.len() * 16 + 64
    }
}

/// A set of nodes of a trie, by number: what is below their parents is undecided, as far as it goes through them.
type Places = u32;

/// Nodes of a trie, to be looked at by the bytes that lead to them.
#[derive(Debug, Default)]
struct Children {
    /// Bytes that lead to one.
    first: ByteSet,
    /// By byte, in ascending order.
    nodes: Box<[(u8, u32)]>,
}

impl Children {
    /// Of nodes in ascending order.
    fn of(trie: &Trie, nodes: &[u32]) -> Children {
        let mut first = ByteSet::EMPTY;
        let nodes: Vec<(u8, u32)> =
            nodes.iter().map(|&node| (trie.node(node).byte, node)).collect();
        nodes.iter().for_each(|&(byte, _)| first.insert(byte));
        Children { first, nodes: sorted_by_bytes(nodes).into() }
    }
}

/// What is known of one trie.
#[derive(Debug)]
struct Known {
    /// Holds the trie, so that its address stays its own; the vocabulary's stays anyway.
    _owner: Option<Arc<Entry>>,
    places: IndexMap<Box<[u32]>, Arc<Children>, Seeded>,
    sections: HashMap<(Places, State), Arc<Section>>,
    all: Option<Places>,
}

/// A state and its counter, moved to where no word can tell the difference.
type State = (u32, u32);

/// Sections of all tries that were looked at this way, by the tries' addresses.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    tries: HashMap<usize, Known>,
    shared: Shared,
}

/// What does not depend on the trie, and buffers.
#[derive(Debug, Default)]
struct Shared {
    bytes: usize,
    /// Length of a row.
    width: usize,
    /// Nodes of a subtree from which on it is looked at on its own: others have come by there, too.
    large: u32,
    /// Bytes that a state reads, once asked for.
    reads: Vec<Option<ByteSet>>,
    depth: usize,
    seen: Vec<Seen>,
    walks: Vec<Walk>,
}

/// What has been looked at while one question is answered.
#[derive(Debug, Default)]
struct Seen {
    configs: HashSet<(Places, ConfigId)>,
    items: HashSet<(Places, Item)>,
    /// By their addresses: a section's words are added once, whatever follows it.
    sections: HashSet<usize>,
    /// What is looked at now.
    now: Vec<(Places, ConfigId)>,
}

impl Shared {
    /// Bytes that a state reads.
    fn reads(&mut self, parser: &mut Parser, state: u32) -> ByteSet {
        if self.reads.len() <= state as usize {
            self.reads.resize(state as usize + 1, None);
        }
        *self.reads[state as usize].get_or_insert_with(|| parser.reads_of(state))
    }
}

impl Sections {
    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.shared.bytes
    }

    pub(crate) fn new(vocab: &Vocabulary) -> Sections {
        let (width, large) = (vocab.mask_words(), (vocab.trie().len() / LARGE) as u32);
        Sections { tries: HashMap::default(), shared: Shared { width, large, ..Shared::default() } }
    }

    /// Forgets everything: configurations have lost their meaning.
    pub(crate) fn clear(&mut self) {
        let Shared { width, large, .. } = self.shared;
        *self = Sections {
            tries: HashMap::default(),
            shared: Shared { width, large, ..Shared::default() },
        };
    }

    /// Adds to `out` the words of `trie` below `nodes` that `next` can read, some perhaps twice.
    pub(crate) fn resolve(
        &mut self,
        parser: &mut Parser,
        (trie, owner): (&Trie, &Arc<Entry>),
        (nodes, next): (&[u32], ConfigId),
        out: &mut Walk,
    ) -> Result<(), Stopped> {
        let children: Vec<u32> = nodes.iter().flat_map(|&node| trie.children(node)).collect();
        self.resolve_at(parser, (trie, owner), (&children, next), out)
    }

    /// As [`Sections::resolve`] for the words at and below `nodes`, which `next` stands in front of.
    pub(crate) fn resolve_at(
        &mut self,
        parser: &mut Parser,
        (trie, owner): (&Trie, &Arc<Entry>),
        (nodes, next): (&[u32], ConfigId),
        out: &mut Walk,
    ) -> Result<(), Stopped> {
        if self.shared.bytes > MAX_BYTES && out.behind.is_empty() {
            self.clear();
        }
        let known = Known::of(&mut self.tries, trie, Some(owner));
        let mut queue = Vec::new();
        known.at(trie, (nodes.iter().copied(), None), &mut self.shared, |places| {
            queue.push((places, next))
        });
        known.follow(parser, trie, queue, &mut self.shared, (out, &mut Vec::new()))
    }

    /// Adds to `out` the words of the vocabulary's trie that one item's rule can read, some perhaps twice. What follows the rule
    /// is read by [`Sections::rest`], for all items of a mask at once. Gives up, once and for all, where the rule reads more than
    /// `budget` nodes.
    pub(crate) fn narrow(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (item, budget): (Item, usize),
        out: &mut Walk,
    ) -> Result<(), Stopped> {
        let known = Known::of(&mut self.tries, trie, None);
        let all = known.all(trie, &mut self.shared);
        let section = known.section(parser, trie, (all, item, budget), &mut self.shared)?;
        section.words.add_to(out);
        for &(exit, below) in &section.exits {
            let next = parser.follow(&item, exit)?;
            out.behind.push((below, next));
        }
        Ok(())
    }

    /// Adds to `out` what follows the items that were given to [`Sections::narrow`] before.
    pub(crate) fn rest(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        out: &mut Walk,
    ) -> Result<(), Stopped> {
        let queue = std::mem::take(&mut out.behind);
        if !queue.is_empty() {
            let known = Known::of(&mut self.tries, trie, None);
            known.follow(parser, trie, queue, &mut self.shared, (out, &mut Vec::new()))?;
        }
        if self.shared.bytes > MAX_BYTES {
            self.clear();
        }
        Ok(())
    }
}

impl Known {
    fn of<'k>(
        tries: &'k mut HashMap<usize, Known>,
        trie: &Trie,
        owner: Option<&Arc<Entry>>,
    ) -> &'k mut Known {
        tries.entry(std::ptr::from_ref(trie) as usize).or_insert_with(|| Known {
            _owner: owner.cloned(),
            places: IndexMap::default(),
            sections: HashMap::default(),
            all: None,
        })
    }

    /// Reads on from places and configurations until nothing is undecided, or only what follows an item looked at on its own
    /// decides: that goes to `exits`.
    fn follow(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        mut queue: Vec<(Places, ConfigId)>,
        shared: &mut Shared,
        (out, exits): (&mut Walk, &mut Vec<(Exit, Places)>),
    ) -> Result<(), Stopped> {
        let mut seen = shared.seen.pop().unwrap_or_default();
        let result =
            self.follow_unseen(parser, trie, (&mut queue, &mut seen), shared, (out, exits));
        seen.configs.clear();
        seen.items.clear();
        seen.sections.clear();
        seen.now.clear();
        shared.seen.push(seen);
        result
    }

    fn follow_unseen(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (queue, seen): (&mut Vec<(Places, ConfigId)>, &mut Seen),
        shared: &mut Shared,
        (out, exits): (&mut Walk, &mut Vec<(Exit, Places)>),
    ) -> Result<(), Stopped> {
        while !queue.is_empty() {
            let mut now = std::mem::take(&mut seen.now);
            now.clear();
            std::mem::swap(queue, &mut now);
            now.sort_unstable_by_key(|&(places, next)| (next, places));
            now.dedup();
            for same in now.chunk_by(|a, b| a.1 == b.1) {
                self.follow_one(parser, trie, (same, queue, seen), shared, (out, exits))?;
            }
            seen.now = now;
        }
        Ok(())
    }

    /// Reads on from one configuration, at all its places.
    fn follow_one(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (same, queue, seen): (&[(Places, ConfigId)], &mut Vec<(Places, ConfigId)>, &mut Seen),
        shared: &mut Shared,
        (out, exits): (&mut Walk, &mut Vec<(Exit, Places)>),
    ) -> Result<(), Stopped> {
        let next = same[0].1;
        if parser.is_near_bound(next) {
            // Items looked at on their own know of no budget.
            let mut left = usize::MAX;
            for &(places, _) in same {
                let children = self.places[places as usize].clone();
                for &(byte, node) in &children.nodes {
                    let to = parser.step(next, byte)?;
                    out.enter(parser, trie, node, (next, to), &mut left)?;
                }
            }
            return Ok(());
        }
        let mut first = ByteSet::EMPTY;
        for &(places, _) in same {
            first = first.union(&self.places[places as usize].first);
        }
        for i in 0..parser.store().items(next).len() {
            fuel::spend(1 + same.len())?;
            let item = parser.store().items(next)[i];
            let reads = shared.reads(parser, item.state);
            if !reads.meets(&first) {
                continue;
            }
            for &(places, _) in same {
                if !reads.meets(&self.places[places as usize].first)
                    || !seen.items.insert((places, item))
                {
                    continue;
                }
                let section = self.section(parser, trie, (places, item, usize::MAX), shared)?;
                if seen.sections.insert(Arc::as_ptr(&section) as usize) {
                    section.words.add_to(out);
                }
                for &(exit, below) in &section.exits {
                    // A dispatch that is called last stands in its caller's place: its gates are not the caller's.
                    if item.leaves_by(exit) {
                        exits.push((exit, below));
                        continue;
                    }
                    let behind = parser.follow(&item, exit)?;
                    if seen.configs.insert((below, behind)) {
                        if parser.store().done(behind).open() {
                            exits.extend(parser.exits(behind).map(|exit| (exit, below)));
                        }
                        queue.push((below, behind));
                    }
                }
            }
        }
        Ok(())
    }

    /// All of the trie.
    fn all(&mut self, trie: &Trie, shared: &mut Shared) -> Places {
        if let Some(all) = self.all {
            return all;
        }
        let all = self.places(trie, trie.children(0).collect(), shared);
        self.all = Some(all);
        all
    }

    /// As [`Known::at`] for what is below some nodes.
    fn below(
        &mut self,
        trie: &Trie,
        (nodes, found): (impl Iterator<Item = u32>, Option<&[u32]>),
        shared: &mut Shared,
        add: impl FnMut(Places),
    ) {
        self.at(trie, (nodes.flat_map(|node| trie.children(node)), found), shared, add);
    }

    /// Calls `add` with some nodes, but for those all of whose words are in a row: nothing can be found there. What is large is a place of its
    /// own.
    fn at(
        &mut self,
        trie: &Trie,
        (nodes, found): (impl Iterator<Item = u32>, Option<&[u32]>),
        shared: &mut Shared,
        mut add: impl FnMut(Places),
    ) {
        let (mut small, mut large): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for node in nodes {
            fuel::charge(1);
            let decided = |row: &[u32]| trie.words_below(node).iter().all(|&word| bit(row, word));
            if trie.node(node).end - node > shared.large {
                large.push(node);
            } else if !found.is_some_and(decided) {
                small.push(node);
            }
        }
        for node in large {
            add(self.places(trie, vec![node], shared));
        }
        if !small.is_empty() {
            add(self.places(trie, small, shared));
        }
    }

    fn places(&mut self, trie: &Trie, mut nodes: Vec<u32>, shared: &mut Shared) -> Places {
        sort_nodes(&mut nodes);
        match self.places.get_index_of(&nodes[..]) {
            Some(places) => places as u32,
            None => {
                let children = Children::of(trie, &nodes);
                shared.bytes += nodes.len() * 12 + 128;
                self.places.insert_full(nodes.into(), Arc::new(children)).0 as u32
            }
        }
    }

    fn section(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (places, item, budget): (Places, Item, usize),
        shared: &mut Shared,
    ) -> Result<Arc<Section>, Stopped> {
        // Where nothing is counted, an item looked at on its own is its state.
        let plain = parser.program().state(item.state).block == NO_BLOCK
            && parser.compiled().meters.is_empty();
        let alone = if plain {
            None
        } else {
            Some(parser.isolated(item)).map(|alone| parser.normal(alone))
        };
        let key = alone.map_or((item.state, 0), |alone| {
            let Item { state, count, .. } = parser.store().items(alone)[0];
            (state, count)
        });
        if let Some(section) = self.sections.get(&(places, key)) {
            return Ok(section.clone());
        }
        let alone = alone.unwrap_or_else(|| parser.isolated(item));
        let mut walk = shared.walks.pop().unwrap_or_default();
        shared.depth += 1;
        let reads = shared.reads(parser, item.state);
        let made = self.make(parser, trie, (places, alone, reads, budget), shared, &mut walk);
        shared.depth -= 1;
        walk.clear();
        shared.walks.push(walk);
        let section = Arc::new(made?);
        shared.bytes += section.words.bytes() + section.exits.len() * 16 + 128;
        self.sections.insert((places, key), section.clone());
        Ok(section)
    }

    fn make(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (places, alone, reads, budget): (Places, ConfigId, ByteSet, usize),
        shared: &mut Shared,
        walk: &mut Walk,
    ) -> Result<Section, Stopped> {
        walk.apart = shared.depth < MAX_DEPTH && parser.compiled().meters.is_empty();
        let children = self.places[places as usize].clone();
        let mut left = budget;
        for same in children.nodes.chunk_by(|a, b| a.0 == b.0) {
            if !reads.contains(same[0].0) {
                continue;
            }
            let next = parser.step(alone, same[0].0)?;
            for &(_, child) in same {
                walk.enter(parser, trie, child, (alone, next), &mut left)?;
            }
        }
        fuel::spend(SECTION + children.nodes.len() + walk.exits.len() + walk.called.len())?;
        let (mut ends, mut called) =
            (std::mem::take(&mut walk.exits), std::mem::take(&mut walk.called));
        sort_kinds(&mut ends);
        sort_kinds(&mut called);
        // Whatever is read below words that are found anyway need not be found again.
        let found =
            (walk.words.len() > FEW && !(ends.is_empty() && called.is_empty())).then(|| {
                let mut row = vec![0; shared.width];
                walk.words.iter().for_each(|&word| set_bit(&mut row, word));
                row
            });
        if walk.words.len() > shared.width / ROW {
            walk.fold_words(0, shared.width);
        }
        let (mut exits, mut queue): (Vec<(Exit, Places)>, Vec<(Places, ConfigId)>) =
            (Vec::new(), Vec::new());
        for behind in ends.chunk_by(|a, b| a.0 == b.0) {
            let nodes = behind.iter().map(|&(_, node)| node);
            self.below(trie, (nodes, found.as_deref()), shared, |places| {
                exits.push((behind[0].0, places))
            });
        }
        for same in called.chunk_by(|a, b| a.0 == b.0) {
            let nodes = same.iter().map(|&(_, node)| node);
            self.below(trie, (nodes, found.as_deref()), shared, |places| {
                queue.push((places, same[0].0))
            });
        }
        if !queue.is_empty() {
            self.follow(parser, trie, queue, shared, (walk, &mut exits))?;
        }
        exits.sort_unstable();
        exits.dedup();
        Ok(Section { words: Words::of(walk, (0, 0), shared.width), exits: exits.into() })
    }
}
