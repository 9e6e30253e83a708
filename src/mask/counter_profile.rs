//! Masks of counted blocks, all bounds at once. One walk with a counter that has no bounds notes for every token how many
//! runs it needs; the entry of any real counter is then a selection. `maxLength: 50` costs one walk, not fifty.

use std::ops::Range;
use std::sync::Arc;

use super::entry::{Entry, strictly_below};
use super::token_set::{TokenSet, set_bit};
use super::trie_walk::{Stopped, Walk};
use crate::compile::NO_BLOCK;
use crate::fsm::{ByteSet, shape_bytes};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, FREE, Item, Parser, Room};
use crate::vocab::{Tree, Trie, Vocabulary, descend, descend_from};

/// What a token needs of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    token: TokenId,
    /// Runs.
    runs: u32,
}

/// What a state of a counted block allows, by runs.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Tokens that end inside the block, by how many runs they need room for.
    inside: ByRuns,
    /// All of those.
    row: Arc<[u32]>,
    /// Tokens accepted after leaving the block with exactly this many runs.
    outside: Vec<Need>,
    /// What is left of tokens that are undecided once the rule has ended; a word of this trie is an index into `left`.
    remainders: Trie,
    left: Vec<Need>,
}

/// Where a node of the walk is.
#[derive(Clone, Copy)]
enum Place {
    /// In the block, after so many whole runs.
    Inside(u32),
    /// Behind the block, which was left after so many runs.
    Outside(u32),
}

impl Profile {
    /// Walks the vocabulary once. `None` where runs cannot be told from the text alone: a run may end in several ways, or what
    /// follows the block may begin like a run.
    pub(crate) fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        item: Item,
    ) -> Result<Option<Profile>, Stopped> {
        let block = parser.program().state(item.state).block;
        if block == NO_BLOCK || parser.program_mut().block_calls(block) {
            return Ok(None);
        }
        let start = parser.isolated(Item { count: FREE, ..item });
        let Some(found) = Found::walk(parser, vocab, start)? else { return Ok(None) };
        // A block that may be all there is ends after every run: too much is left open for lists to pay.
        let open: usize =
            found.exits.iter().map(|&(at, _)| at.tree(vocab).range_below(at.node).len()).sum();
        Ok((open <= vocab.trie().words_below(0).len() / 2).then(|| found.finish(vocab)))
    }

    /// The entry of a counter this far from its bounds. Cost: the tokens the bounds rule out, or those they leave.
    pub(crate) fn entry(self: &Arc<Profile>, room: Room) -> Entry {
        let (out, kept) = self.inside.split(room.room);
        let fits = |n: &&Need| room.missing <= n.runs && n.runs <= room.room;
        let add: Vec<TokenId> = self.outside.iter().filter(fits).map(|n| n.token).collect();
        let accepted = if kept.len() < out.len() {
            let ids = kept.iter().copied().chain(add);
            if kept.len() <= self.row.len() / 4 {
                TokenSet::List(ids.collect())
            } else {
                TokenSet::built(self.row.len(), |bits| ids.for_each(|id| set_bit(bits, id)))
            }
        } else {
            let row = TokenSet::Row {
                base: self.row.clone(),
                remove: Arc::default(),
                add: Arc::default(),
            };
            row.changed(out, &add, self.row.len())
        };
        Entry::counted(accepted, self.clone(), room)
    }

    /// Adds the undecided tokens that `next` can finish and the counter allows.
    pub(crate) fn resolve(
        &self,
        parser: &mut Parser,
        room: Room,
        next: ConfigId,
        walk: &mut Walk,
    ) -> Result<(), Stopped> {
        let from = walk.words.len();
        walk.run(parser, &self.remainders, 0, next, usize::MAX)?;
        let mut to = from;
        for at in from..walk.words.len() {
            let need = self.left[walk.words[at].index()];
            if room.missing <= need.runs && need.runs <= room.room {
                walk.words[to] = need.token;
                to += 1;
            }
        }
        walk.words.truncate(to);
        Ok(())
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        (self.outside.len() + self.left.len()) * size_of::<Need>()
            + (self.inside.tokens.len() + self.row.len()) * 4
            + self.remainders.len() * 16
            + 1024
    }
}

/// What a configuration says of the counter.
#[derive(Clone, Copy)]
struct Seen {
    /// Whole runs, if it is in the block.
    inside: Option<u32>,
    /// It is behind the block.
    outside: bool,
    /// What follows the block does not begin like a run.
    apart: bool,
    /// The rule may end.
    bottom: bool,
}

impl Seen {
    /// `None` where runs cannot be told.
    fn of(parser: &mut Parser, config: ConfigId) -> Option<Seen> {
        parser.expand(config);
        let (store, program) = (parser.store(), parser.program());
        let bottom = store.done(config).bottom;
        let (mut inside, mut outside) = (None, bottom);
        let (mut run_bytes, mut exit_bytes) = (ByteSet::EMPTY, ByteSet::EMPTY);
        for item in store.items(config) {
            let bytes = if item.count & FREE != 0 {
                let runs = item.count & !FREE;
                if inside.is_some_and(|other| other != runs) {
                    return None;
                }
                inside = Some(runs);
                &mut run_bytes
            } else {
                outside = true;
                &mut exit_bytes
            };
            for e in program.byte_edges(item.state) {
                bytes.insert_range(e.lo, e.hi);
            }
        }
        Some(Seen { inside, outside, apart: run_bytes.intersect(&exit_bytes).is_empty(), bottom })
    }
}

/// What the walk has found so far.
#[derive(Default)]
struct Found {
    /// By configuration, once looked at.
    known: Vec<Option<Option<Seen>>>,
    inside: Vec<Same>,
    outside: Vec<Need>,
    /// Nodes at which the rule ended, and after how many runs.
    exits: Vec<(At, u32)>,
}

/// A node of the vocabulary.
#[derive(Clone, Copy)]
struct At {
    node: u32,
    /// Of the tree of shapes, not of the trie.
    shaped: bool,
}

impl At {
    fn tree(self, vocab: &Vocabulary) -> &Tree {
        if self.shaped { vocab.shapes().tree() } else { vocab.trie() }
    }
}

impl Found {
    /// Walks the vocabulary by shapes, and the trie from where bytes of one shape are told apart. None where runs cannot be told.
    fn walk(
        parser: &mut Parser,
        vocab: &Vocabulary,
        start: ConfigId,
    ) -> Result<Option<Found>, Stopped> {
        let (shapes, trie) = (vocab.shapes(), vocab.trie());
        let mut found = Found::default();
        let mut countable = true;
        descend(
            shapes.tree(),
            (start, Place::Inside(0)),
            |at, shape, (config, place)| -> Result<_, Stopped> {
                if !countable {
                    return Ok(None);
                }
                if parser.is_uniform(config, shape)? {
                    let at = At { node: at, shaped: true };
                    return found.step(
                        parser,
                        vocab,
                        (at, shape_bytes(shape).0),
                        (config, place),
                        &mut countable,
                    );
                }
                for &node in shapes.sources(at) {
                    let mut step = |node: u32, byte: u8, before| {
                        let at = At { node, shaped: false };
                        found.step(parser, vocab, (at, byte), before, &mut countable)
                    };
                    if let Some(behind) = step(node, trie.node(node).byte, (config, place))? {
                        descend_from(trie, node, behind, step)?;
                    }
                }
                Ok(None)
            },
        )?;
        Ok(countable.then_some(found))
    }

    /// Goes over a byte to a node.
    fn step(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        (at, byte): (At, u8),
        (config, place): (ConfigId, Place),
        countable: &mut bool,
    ) -> Result<Option<(ConfigId, Place)>, Stopped> {
        let next = if *countable { parser.step(config, byte)? } else { DEAD };
        if next == DEAD {
            return Ok(None);
        }
        let place = self.visit(parser, vocab, at, next, place);
        *countable = place.is_some();
        Ok(place.map(|place| (next, place)))
    }

    /// Notes what a node's words need; `None` where that is not a matter of counting.
    fn visit(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        at: At,
        config: ConfigId,
        parent: Place,
    ) -> Option<Place> {
        if self.known.len() <= config as usize {
            self.known.resize(parser.store().configs(), None);
        }
        let seen = *self.known[config as usize].get_or_insert_with(|| Seen::of(parser, config));
        let Seen { inside, outside, apart, bottom } = seen?;
        let (place, need) = match (parent, inside) {
            (Place::Inside(before), Some(runs)) if runs == before && !outside => {
                (Place::Inside(runs), runs + 1)
            }
            // A run has just ended. What follows the block must not begin like a run.
            (Place::Inside(before), Some(runs)) if runs == before + 1 && apart => {
                (Place::Inside(runs), runs)
            }
            (Place::Inside(runs), None) | (Place::Outside(runs), None) => {
                (Place::Outside(runs), runs)
            }
            _ => return None,
        };
        match place {
            Place::Inside(_) => self.found_inside(at, at.tree(vocab).range_at(at.node), need),
            Place::Outside(_) => {
                let words = at.tree(vocab).words_at(at.node).iter();
                self.outside.extend(words.map(|&token| Need { token, runs: need }));
            }
        }
        if bottom {
            let runs = match place {
                Place::Inside(runs) | Place::Outside(runs) => runs,
            };
            self.exits.push((at, runs));
        }
        Some(place)
    }

    /// Notes words that end inside the block.
    fn found_inside(&mut self, at: At, words: Range<usize>, runs: u32) {
        match self.inside.last_mut() {
            _ if words.is_empty() => {}
            Some(last)
                if (last.runs, last.shaped, last.words.end) == (runs, at.shaped, words.start) =>
            {
                last.words.end = words.end;
            }
            _ => self.inside.push(Same { words, shaped: at.shaped, runs }),
        }
    }

    fn finish(self, vocab: &Vocabulary) -> Profile {
        let inside = ByRuns::new(vocab, &self.inside);
        let mut row = vec![0; vocab.mask_words()];
        inside.tokens.iter().for_each(|&id| set_bit(&mut row, id));
        let (mut left, mut remainders) = (Vec::new(), Vec::new());
        for &(at, runs) in &self.exits {
            let tree = at.tree(vocab);
            let depth = usize::from(tree.node(at.node).depth);
            for &token in strictly_below(tree, at.node) {
                if let Some(bytes) = vocab.bytes(token) {
                    remainders.push((&bytes[depth..], TokenId::new(left.len())));
                    left.push(Need { token, runs });
                }
            }
        }
        Profile {
            inside,
            row: row.into(),
            outside: self.outside,
            remainders: Trie::build(remainders),
            left,
        }
    }
}

/// Words next to each other in a tree's list that need room for equally many runs.
struct Same {
    words: Range<usize>,
    /// Of the tree of shapes, not of the trie.
    shaped: bool,
    runs: u32,
}

/// Tokens by how many runs they need room for; most first.
#[derive(Debug)]
struct ByRuns {
    tokens: Box<[TokenId]>,
    /// By a number of runs: how many tokens need more. The last is 0.
    more: Box<[u32]>,
}

impl ByRuns {
    /// Sorts by counting: a token has few runs.
    fn new(vocab: &Vocabulary, found: &[Same]) -> ByRuns {
        let most = found.iter().map(|same| same.runs as usize).max().unwrap_or(0);
        let mut needing = vec![0; most + 1];
        found.iter().for_each(|same| needing[same.runs as usize] += same.words.len());
        let mut more = vec![0; most + 1];
        for runs in (0..most).rev() {
            more[runs] = more[runs + 1] + needing[runs + 1];
        }
        let mut places = more.clone();
        let mut tokens = vec![TokenId::from_raw(0); more[0] + needing[0]];
        for same in found {
            let tree = At { node: 0, shaped: same.shaped }.tree(vocab);
            let place = &mut places[same.runs as usize];
            tokens[*place..*place + same.words.len()]
                .copy_from_slice(tree.words(same.words.clone()));
            *place += same.words.len();
        }
        ByRuns { tokens: tokens.into(), more: more.into_iter().map(|many| many as u32).collect() }
    }

    /// Tokens that need more runs, and those that do not.
    fn split(&self, runs: u32) -> (&[TokenId], &[TokenId]) {
        self.tokens.split_at(self.more.get(runs as usize).map_or(0, |&many| many as usize))
    }
}
