//! The vocabulary as one state reads it: tokens whose bytes it does not tell apart share the nodes of a tree, which is then a fraction of
//! the vocabulary's. States of one rule that differ in a count alone (the words of `^(\S+\s+){0,99}\S+$`, the characters left of a
//! `maxLength`) tell the same bytes apart: the entry of another one is found on the small tree, as what it differs in. That the
//! other one tells no more bytes apart is checked at every node, not assumed.

use std::sync::Arc;

use super::entry::Entry;
use super::entry_difference::{Difference, Seen};
use super::pool_scope::{Counters, count};
use super::trie_walk::Stopped;
use crate::fsm::{ByteSet, shape_bytes};
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, Exit, Parser, ParserLimit};
use crate::vocab::{Planting, Shapes, Tree, Trie, Vocabulary, descend};

/// A walk over this part of the vocabulary's nodes by shapes is long.
const LONG: usize = 4;
/// After so many long walks that no fold has spared, a rule is worth a fold: it costs some of them.
const WALKS: u32 = 3;
/// A fold has at most this part of the vocabulary's nodes, or it is no help.
const SMALLER: usize = 4;
/// Fuel of a node of a fold, beside a unit for each node of the vocabulary and each group.
const GROUPING: usize = 4;
/// Most folds of one rule.
const FOLDS: usize = 4;
/// Memory for the folds of one constraint.
const MAX_BYTES: usize = 16 << 20;
/// Bytes that lead nowhere. In the tree, all words that go on with such a byte are at one node.
const NO_GROUP: u8 = u8::MAX;
/// The state's rule may end here.
const ENDS: u8 = 1;
/// Some tokens go on behind here, whether the state reads them or not.
const GOES_ON: u8 = 2;

/// One state's fold of the vocabulary, and its entry.
#[derive(Debug)]
struct Fold {
    base: Arc<Entry>,
    /// What the state can read. The byte of a node is the number of a group of its parent's grouping.
    tree: Tree,
    /// Per node: how the bytes below it are grouped.
    groupings: Vec<u32>,
    /// Per node: [`ENDS`] and [`GOES_ON`].
    marks: Vec<u8>,
    /// Groupings: the bytes of each group. Bytes of none lead nowhere.
    groups: Vec<Box<[ByteSet]>>,
    plans: Plans,
}

/// Which bytes to try for the groups of a grouping.
#[derive(Debug, Default)]
struct Plans {
    /// How configurations tell bytes apart, by content.
    looks: HashMap<Box<[u32]>, u32>,
    /// By grouping and number of the look; none where it tells bytes of one group apart.
    known: HashMap<(u32, u32), Option<u32>>,
    plans: Vec<Plan>,
    look: Vec<u32>,
}

/// For each group, bytes of it: one of each set that the same edges read. None: all of the group lead nowhere.
type Plan = Box<[Box<[u8]>]>;

/// Why a state's entry is not found on a fold.
enum Unlike {
    /// It tells bytes apart that the fold does not.
    Apart,
    Limit(ParserLimit),
}

impl From<ParserLimit> for Unlike {
    fn from(limit: ParserLimit) -> Self {
        Unlike::Limit(limit)
    }
}

/// The folds of one constraint's rules.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    rules: HashMap<u32, OfRule>,
    bytes: usize,
}

/// What is known of a rule.
#[derive(Debug)]
enum OfRule {
    /// Its folds, and the long walks since the last one.
    Folded(Vec<Fold>, u32),
    /// Its states tell too many bytes apart.
    Apart,
}

impl Folds {
    /// The entry of an isolated item with this state (and others that end alike), of which no other entry is known. `all` is the row of every token with text.
    pub(super) fn entry(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        all: &Arc<[u32]>,
        (own, isolated, counters): (u32, ConfigId, &Counters),
    ) -> Result<Arc<Entry>, Stopped> {
        let rule = parser.program().state(own).rule;
        // What is kept account of tells bytes apart that states do not.
        let plain = parser.compiled().keeps_no_account();
        let of_rule = self.rules.entry(rule).or_insert(if plain {
            OfRule::Folded(Vec::new(), 0)
        } else {
            OfRule::Apart
        });
        if let OfRule::Folded(folds, walks) = of_rule {
            for fold in folds.iter_mut().rev() {
                if let Some(diff) = fold.differ(parser, isolated)? {
                    count(&counters.derived);
                    return Ok(Arc::new(Entry::differing(vocab, &fold.base, diff, &fold.tree)));
                }
            }
            if *walks >= WALKS && folds.len() < FOLDS && self.bytes < MAX_BYTES {
                *walks = 0;
                match Fold::build(parser, vocab, isolated)? {
                    Some(fold) => {
                        let base = fold.base.clone();
                        self.bytes += fold.bytes();
                        folds.push(fold);
                        return Ok(base);
                    }
                    None => *of_rule = OfRule::Apart,
                }
            }
        }
        let (entry, looked) = Entry::build(parser, vocab, all, isolated)?;
        if let OfRule::Folded(_, walks) = of_rule {
            *walks += u32::from(looked > vocab.shapes().tree().len() / LONG);
        }
        Ok(Arc::new(entry))
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// How a configuration groups bytes, while a fold is built: those that lead to the same configuration.
struct Grouping {
    id: u32,
    of: Box<[u8; 256]>,
    next: Vec<ConfigId>,
}

/// In a number of a node: it is one of the trie, not of the tree of shapes.
const FINE: u32 = 1 << 31;

/// The vocabulary by shapes, and as a trie from where bytes of one shape are told apart.
struct Words<'v> {
    trie: &'v Trie,
    shapes: &'v Shapes,
}

impl Words<'_> {
    /// Words that end at a node.
    fn at(&self, node: u32) -> &[TokenId] {
        if node & FINE == 0 {
            self.shapes.tree().words_at(node)
        } else {
            self.trie.words_at(node & !FINE)
        }
    }

    /// Words that end at a node or below.
    fn below(&self, node: u32) -> &[TokenId] {
        if node & FINE == 0 {
            self.shapes.tree().words_below(node)
        } else {
            self.trie.words_below(node & !FINE)
        }
    }

    /// Adds a node's children with their groups; `of` has the group of each byte.
    fn children(&self, node: u32, of: &[u8; 256], out: &mut Vec<(u8, u32)>) {
        let fine = |own: u32| (of[usize::from(self.trie.node(own).byte)], own | FINE);
        if node & FINE != 0 {
            out.extend(self.trie.children(node & !FINE).map(fine));
            return;
        }
        let tree = self.shapes.tree();
        for child in tree.children(node) {
            let (lo, hi) = shape_bytes(tree.node(child).byte);
            let group = of[usize::from(lo)];
            if of[usize::from(lo)..=usize::from(hi)].iter().all(|&other| other == group) {
                out.push((group, child));
            } else {
                out.extend(self.shapes.sources(child).iter().copied().map(fine));
            }
        }
    }
}

/// Nodes of the vocabulary that become one node.
struct Pending {
    config: ConfigId,
    group: u8,
    depth: u32,
    /// Where in the list of nodes they begin; it ends with them.
    from: usize,
}

impl Fold {
    /// The fold of an isolated item's state. None if it is hardly smaller than the vocabulary. Cost: a look at each node by
    /// shapes (and of the trie, where shapes do not do) that the state can read, and one transition a node of the fold and group of bytes.
    fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        isolated: ConfigId,
    ) -> Result<Option<Fold>, Stopped> {
        let (trie, words) = (vocab.trie(), Words { trie: vocab.trie(), shapes: vocab.shapes() });
        let mut known: HashMap<ConfigId, Grouping> = HashMap::default();
        let mut ids: HashMap<Box<[ByteSet]>, u32> = HashMap::default();
        let mut groups: Vec<Box<[ByteSet]>> = Vec::new();
        let mut tree = Planting::with_words(trie.words_below(0).len(), |_| false);
        let (mut groupings, mut marks, mut exits) = (Vec::new(), vec![0], Vec::new());
        let (mut nodes, mut pending): (Vec<u32>, Vec<Pending>) = Default::default();
        let (mut here, mut children): (Vec<u32>, Vec<(u8, u32)>) = (vec![0], Vec::new());
        let mut places: Vec<usize> = Vec::new();
        let (mut config, mut depth) = (isolated, 0);
        loop {
            let grouping = match known.get(&config) {
                Some(grouping) => grouping,
                None => {
                    let Some(grouping) = Grouping::of(parser, config, (&mut ids, &mut groups))?
                    else {
                        return Ok(None);
                    };
                    known.entry(config).or_insert(grouping)
                }
            };
            groupings.push(grouping.id);
            fuel::spend(GROUPING + here.len() + grouping.next.len())?;
            for &node in &here {
                let before = children.len();
                words.children(node, &grouping.of, &mut children);
                if children.len() > before {
                    marks[groupings.len() - 1] |= GOES_ON;
                }
            }
            // The last that is pushed is the next that is visited: the first group comes last, those that lead nowhere first.
            let slot = |group: u8| usize::from(group.wrapping_add(1));
            places.clear();
            places.resize(grouping.next.len() + 1, 0);
            children.iter().for_each(|&(group, _)| places[slot(group)] += 1);
            let mut from = nodes.len();
            for group in std::iter::once(NO_GROUP).chain((0..grouping.next.len() as u8).rev()) {
                let many = std::mem::replace(&mut places[slot(group)], from);
                if many > 0 {
                    let config = grouping.next.get(usize::from(group)).copied().unwrap_or(DEAD);
                    pending.push(Pending { config, group, depth: depth + 1, from });
                }
                from += many;
            }
            nodes.resize(from, 0);
            for (group, child) in children.drain(..) {
                let place = &mut places[slot(group)];
                nodes[*place] = child;
                *place += 1;
            }
            let next = loop {
                let Some(next) = pending.pop() else { break None };
                if next.group != NO_GROUP {
                    break Some(next);
                }
                tree.node(next.depth as usize, NO_GROUP);
                nodes.drain(next.from..).for_each(|node| tree.words(words.below(node)));
                groupings.push(0);
                marks.push(0);
            };
            let Some(next) = next else { break };
            (config, depth) = (next.config, next.depth);
            here.clear();
            here.extend(nodes.drain(next.from..));
            let at = tree.node(depth as usize, next.group);
            if at as usize > trie.len() / SMALLER {
                return Ok(None);
            }
            here.iter().for_each(|&node| tree.words(words.at(node)));
            let done = parser.store().done(config);
            if done.gated {
                return Ok(None);
            }
            marks.push(if done.bottom { ENDS } else { 0 });
            if done.bottom {
                exits.push((Exit::End, at));
            }
        }
        let tree = tree.finish();
        let read = (1..tree.len() as u32).filter(|&node| tree.node(node).byte != NO_GROUP);
        let base = Arc::new(Entry::found(vocab, &tree, read, exits));
        Ok(Some(Fold { base, tree, groupings, marks, groups, plans: Plans::default() }))
    }

    /// What another isolated item's state differs in. None if it tells bytes apart that this fold does not.
    fn differ(
        &mut self,
        parser: &mut Parser,
        isolated: ConfigId,
    ) -> Result<Option<Difference>, Stopped> {
        let Fold { tree, groupings, marks, groups, plans, .. } = self;
        let mut diff = Difference::default();
        let mut planned: HashMap<(u32, ConfigId), u32> = HashMap::default();
        let Some(plan) = plans.of(parser, groupings[0], &groups[groupings[0] as usize], isolated)
        else {
            return Ok(None);
        };
        let walked = descend(tree, (isolated, plan, false), |at, group, (parent, plan, taken)| {
            if group == NO_GROUP {
                return Ok(None);
            }
            let mut config = DEAD;
            for (tried, &byte) in plans.plans[plan as usize][usize::from(group)].iter().enumerate()
            {
                let next = parser.step(parent, byte)?;
                if tried > 0 && next != config {
                    return Err(Unlike::Apart);
                }
                config = next;
            }
            let done = parser.store().done(config);
            if done.gated {
                return Err(Unlike::Apart);
            }
            let exits = |ends: bool| if ends { &[Exit::End][..] } else { &[] };
            let this = Seen { dead: config == DEAD, exits: exits(done.bottom) };
            let other = Seen { dead: false, exits: exits(marks[at as usize] & ENDS != 0) };
            let Some(taken) = diff.visit(tree, at, (this, other), taken) else { return Ok(None) };
            if marks[at as usize] & GOES_ON == 0 {
                return Ok(None);
            }
            let grouping = groupings[at as usize];
            let plan = match planned.get(&(grouping, config)) {
                Some(&plan) => plan,
                None => {
                    let bytes = &groups[grouping as usize];
                    let plan = plans.of(parser, grouping, bytes, config).ok_or(Unlike::Apart)?;
                    planned.insert((grouping, config), plan);
                    plan
                }
            };
            Ok(Some((config, plan, taken)))
        });
        match walked {
            Ok(()) => Ok(Some(diff)),
            Err(Unlike::Apart) => Ok(None),
            Err(Unlike::Limit(limit)) => Err(limit.into()),
        }
    }

    fn bytes(&self) -> usize {
        self.tree.len() * 24 + size_of_val(self.tree.words_below(0)) + 4096
    }
}

impl Grouping {
    /// None if there are too many groups.
    fn of(
        parser: &mut Parser,
        config: ConfigId,
        (ids, groups): (&mut HashMap<Box<[ByteSet]>, u32>, &mut Vec<Box<[ByteSet]>>),
    ) -> Result<Option<Grouping>, Stopped> {
        let (mut next, mut sets): (Vec<ConfigId>, Vec<ByteSet>) = Default::default();
        let mut of = Box::new([NO_GROUP; 256]);
        for bytes in parser.alike(config) {
            let Some(first) = bytes.iter().next() else { continue };
            let to = parser.step(config, first)?;
            if to == DEAD {
                continue;
            }
            let group = next.iter().position(|&known| known == to).unwrap_or_else(|| {
                next.push(to);
                sets.push(ByteSet::EMPTY);
                next.len() - 1
            });
            if group >= usize::from(NO_GROUP) {
                return Ok(None);
            }
            sets[group] = sets[group].union(&bytes);
            bytes.iter().for_each(|byte| of[usize::from(byte)] = group as u8);
        }
        let sets: Box<[ByteSet]> = sets.into();
        let id = *ids.entry(sets).or_insert_with_key(|sets| {
            groups.push(sets.clone());
            groups.len() as u32 - 1
        });
        Ok(Some(Grouping { id, of, next }))
    }
}

impl Plans {
    /// The plan of a grouping's groups (its `bytes`) for a configuration. None if it reads other bytes as well, or tells those of a group
    /// apart by what some of them lead nowhere.
    fn of(
        &mut self,
        parser: &mut Parser,
        grouping: u32,
        bytes: &[ByteSet],
        config: ConfigId,
    ) -> Option<u32> {
        parser.look(config, &mut self.look);
        let number = self.looks.len() as u32;
        let look = match self.looks.get(&self.look[..]) {
            Some(&look) => look,
            None => *self.looks.entry(self.look[..].into()).or_insert(number),
        };
        if let Some(&known) = self.known.get(&(grouping, look)) {
            return known;
        }
        fuel::charge(bytes.len() * parser.store().items(config).len());
        let plan = Plans::make(&parser.alike(config), bytes).map(|plan| {
            self.plans.push(plan);
            self.plans.len() as u32 - 1
        });
        self.known.insert((grouping, look), plan);
        plan
    }

    fn make(alike: &[ByteSet], groups: &[ByteSet]) -> Option<Plan> {
        let mut left: Vec<ByteSet> = alike.to_vec();
        let mut plan = Vec::with_capacity(groups.len());
        for group in groups {
            let (mut first, mut covered) = (Vec::new(), ByteSet::EMPTY);
            for set in &mut left {
                let both = set.intersect(group);
                if let Some(byte) = both.iter().next() {
                    first.push(byte);
                    covered = covered.union(&both);
                    *set = set.intersect(&group.complement());
                }
            }
            if !first.is_empty() && covered != *group {
                return None;
            }
            plan.push(first.into());
        }
        left.iter().all(ByteSet::is_empty).then(|| plan.into())
    }
}
