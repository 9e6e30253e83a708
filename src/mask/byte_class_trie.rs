//! Byte-class tries: the vocabulary's trie with the bytes merged that one state does not tell
//! apart.
//!
//! States of one rule that differ only in a counter tell the same bytes apart. Examples are the
//! words of `^(\S+\s+){0,99}\S+$`, and the characters left of a `maxLength`. Tokens whose bytes
//! fall into the same classes share nodes, so such a trie has a fraction of the vocabulary's nodes.
//! The first state's walk builds it; the entries of the other states are derived on it, as
//! differences from the first state's entry. Whether a state tells no more bytes apart is checked
//! at every node.
//!
//! This is alphabet compression, with classes that depend on the node.

use std::sync::Arc;

use super::entry::MaskEntry;
use super::entry_difference::{EntryDifference, NodeOutcome};
use super::pool_counters::{PoolCounters, count};
use super::trie_walk::WalkError;
use crate::fsm::{ByteSet, shape_bytes};
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, Exit, Parser, ParserLimit};
use crate::vocab::{ShapeTree, Tree, TreeBuilder, Trie, Vocabulary, descend};

/// A walk over at least one in so many nodes of the tree of shapes is long.
const LONG_WALK_FRACTION: usize = 4;
/// Long walks of a rule after which a byte-class trie is built for it; building one costs some of
/// them.
const LONG_WALKS: u32 = 3;
/// A byte-class trie has at most one in so many of the vocabulary's nodes, or it is not worth
/// keeping.
const SIZE_FRACTION: usize = 4;
/// Fuel of a node of a byte-class trie, beside a unit for each node of the vocabulary and each
/// class.
const NODE_FUEL: usize = 4;
/// Most byte-class tries of one rule.
const MAX_TRIES: usize = 4;
/// Memory for the byte-class tries of one constraint.
const MAX_BYTES: usize = 16 << 20;
/// The class of rejected bytes. In the trie, all tokens that continue with such a byte are at one
/// node.
const REJECTED: u8 = u8::MAX;
/// Node mark: the state's rule may end here.
const ENDS: u8 = 1;
/// Node mark: some tokens continue below here, accepted or not.
const CONTINUES: u8 = 2;

/// One state's byte-class trie, and its mask entry.
#[derive(Debug)]
struct ByteClassTrie {
    /// The entry of the state that the trie was built for.
    base: Arc<MaskEntry>,
    /// What the state accepts. The byte of a node is the number of a class of its parent's classes.
    tree: Tree,
    /// By node: the id of the classes of the bytes below it.
    class_ids: Vec<u32>,
    /// By node: [`ENDS`] and [`CONTINUES`].
    marks: Vec<u8>,
    /// By id: the bytes of each class. Bytes in no class are rejected.
    class_bytes: Vec<Box<[ByteSet]>>,
    /// Memoised plans.
    plans: ProbePlans,
}

/// Which bytes to test for each class, by configuration.
#[derive(Debug, Default)]
struct ProbePlans {
    /// How configurations tell bytes apart, interned.
    looks: HashMap<Box<[u32]>, u32>,
    /// By classes and number of the configuration's look: the plan, or None where it tells bytes of
    /// one class apart.
    plan_by_look: HashMap<(u32, u32), Option<u32>>,
    /// By number.
    plans: Vec<ProbePlan>,
    /// Buffer.
    look: Vec<u32>,
}

/// For each class, the bytes to test: one of each set that the same edges read. Empty if the whole
/// class is rejected.
type ProbePlan = Box<[Box<[u8]>]>;

/// Why a state's entry cannot be derived on a byte-class trie.
enum NotDerivable {
    /// The state tells bytes of one class apart.
    FinerClasses,
    /// The parser ran into a limit.
    Limit(ParserLimit),
}

impl From<ParserLimit> for NotDerivable {
    fn from(limit: ParserLimit) -> Self {
        NotDerivable::Limit(limit)
    }
}

/// The byte-class tries of one constraint's rules.
#[derive(Debug, Default)]
pub(crate) struct ByteClassTries {
    /// By rule.
    rules: HashMap<u32, RuleTries>,
    /// Memory in use, in bytes, approximately.
    bytes: usize,
}

/// The byte-class tries of one rule.
#[derive(Debug)]
enum RuleTries {
    /// The tries, and the long walks since the last one was built.
    Tries(Vec<ByteClassTrie>, u32),
    /// Its states tell too many bytes apart.
    TooManyClasses,
}

impl ByteClassTries {
    /// The entry of an isolated item with this state (and its tail-called items), for which no
    /// other derivation applies. `all` is the row of every token with text.
    pub(super) fn entry(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        all: &Arc<[u32]>,
        (state, isolated, counters): (u32, ConfigId, &PoolCounters),
    ) -> Result<Arc<MaskEntry>, WalkError> {
        let rule = parser.program().state(state).rule;
        // Metered and compared text tells bytes apart that states do not.
        let is_uncounted = parser.compiled().frames_hold_no_counts();
        let rule_tries = self.rules.entry(rule).or_insert(if is_uncounted {
            RuleTries::Tries(Vec::new(), 0)
        } else {
            RuleTries::TooManyClasses
        });
        if let RuleTries::Tries(tries, walks) = rule_tries {
            for trie in tries.iter_mut().rev() {
                if let Some(diff) = trie.difference_of(parser, isolated)? {
                    count(&counters.derived);
                    return Ok(Arc::new(MaskEntry::from_difference(
                        vocab, &trie.base, diff, &trie.tree,
                    )));
                }
            }
            if *walks >= LONG_WALKS && tries.len() < MAX_TRIES && self.bytes < MAX_BYTES {
                *walks = 0;
                match ByteClassTrie::build(parser, vocab, isolated)? {
                    Some(trie) => {
                        let base = trie.base.clone();
                        self.bytes += trie.bytes();
                        tries.push(trie);
                        return Ok(base);
                    }
                    None => *rule_tries = RuleTries::TooManyClasses,
                }
            }
        }
        let (entry, visited) = MaskEntry::build(parser, vocab, all, isolated)?;
        if let RuleTries::Tries(_, walks) = rule_tries {
            *walks += u32::from(visited > vocab.shape_tree().tree().len() / LONG_WALK_FRACTION);
        }
        Ok(Arc::new(entry))
    }

    /// Memory in use, in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The byte classes of a configuration, while a trie is built: bytes of one class lead to the same
/// configuration.
struct ConfigByteClasses {
    /// Id of the classes, by which [`ByteClassTrie::class_bytes`] lists them.
    id: u32,
    /// The class of each byte.
    class_by_byte: Box<[u8; 256]>,
    /// Where the bytes of each class lead.
    next: Vec<ConfigId>,
}

/// Flag of a node number: it is a node of the trie, not of the tree of shapes.
const TRIE_NODE: u32 = 1 << 31;

/// The vocabulary as the tree of shapes, and as a trie from where bytes of one shape are told
/// apart.
struct VocabularyTree<'v> {
    trie: &'v Trie,
    shapes: &'v ShapeTree,
}

impl VocabularyTree<'_> {
    /// Tokens that end at a node.
    fn at(&self, node: u32) -> &[TokenId] {
        if node & TRIE_NODE == 0 {
            self.shapes.tree().words_at(node)
        } else {
            self.trie.words_at(node & !TRIE_NODE)
        }
    }

    /// Tokens that end at a node or below.
    fn below(&self, node: u32) -> &[TokenId] {
        if node & TRIE_NODE == 0 {
            self.shapes.tree().words_below(node)
        } else {
            self.trie.words_below(node & !TRIE_NODE)
        }
    }

    /// Adds a node's children with their classes; `class_by_byte` has the class of each byte.
    fn children(&self, node: u32, class_by_byte: &[u8; 256], out: &mut Vec<(u8, u32)>) {
        let trie_child = |source: u32| {
            (class_by_byte[usize::from(self.trie.node(source).byte)], source | TRIE_NODE)
        };
        if node & TRIE_NODE != 0 {
            out.extend(self.trie.children(node & !TRIE_NODE).map(trie_child));
            return;
        }
        let tree = self.shapes.tree();
        for child in tree.children(node) {
            let (lo, hi) = shape_bytes(tree.node(child).byte);
            let class = class_by_byte[usize::from(lo)];
            if class_by_byte[usize::from(lo)..=usize::from(hi)].iter().all(|&other| other == class)
            {
                out.push((class, child));
            } else {
                out.extend(self.shapes.sources(child).iter().copied().map(trie_child));
            }
        }
    }
}

/// Nodes of the vocabulary that become one node of the byte-class trie.
struct PendingNode {
    /// The configuration there.
    config: ConfigId,
    /// The class of the byte that leads there.
    class: u8,
    /// Depth in the trie.
    depth: u32,
    /// Where they begin in the list of nodes; they are the last in it.
    from: usize,
}

impl ByteClassTrie {
    /// Builds the byte-class trie of an isolated item's state. None if it is hardly smaller than
    /// the vocabulary. Cost: a visit of each node that the state reads (of the tree of shapes, or
    /// of the trie where shapes are too coarse), and one transition for each node and class.
    fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        isolated: ConfigId,
    ) -> Result<Option<ByteClassTrie>, WalkError> {
        let (trie, vocab_tree) =
            (vocab.trie(), VocabularyTree { trie: vocab.trie(), shapes: vocab.shape_tree() });
        let mut memo: HashMap<ConfigId, ConfigByteClasses> = HashMap::default();
        let mut ids: HashMap<Box<[ByteSet]>, u32> = HashMap::default();
        let mut class_bytes: Vec<Box<[ByteSet]>> = Vec::new();
        let mut tree = TreeBuilder::with_words(trie.words_below(0).len(), |_| false);
        let (mut class_ids, mut marks, mut exits) = (Vec::new(), vec![0], Vec::new());
        let (mut nodes, mut pending): (Vec<u32>, Vec<PendingNode>) = Default::default();
        let (mut sources, mut children): (Vec<u32>, Vec<(u8, u32)>) = (vec![0], Vec::new());
        let mut next_index: Vec<usize> = Vec::new();
        let (mut config, mut depth) = (isolated, 0);
        loop {
            let classes = match memo.get(&config) {
                Some(classes) => classes,
                None => {
                    let Some(classes) =
                        ConfigByteClasses::compute(parser, config, (&mut ids, &mut class_bytes))?
                    else {
                        return Ok(None);
                    };
                    memo.entry(config).or_insert(classes)
                }
            };
            class_ids.push(classes.id);
            fuel::spend(NODE_FUEL + sources.len() + classes.next.len())?;
            for &node in &sources {
                let before = children.len();
                vocab_tree.children(node, &classes.class_by_byte, &mut children);
                if children.len() > before {
                    marks[class_ids.len() - 1] |= CONTINUES;
                }
            }
            // A stack: the last node pushed is visited next. Rejected bytes are pushed first, then
            // the classes in reverse.
            let slot_of = |class: u8| usize::from(class.wrapping_add(1));
            next_index.clear();
            next_index.resize(classes.next.len() + 1, 0);
            children.iter().for_each(|&(class, _)| next_index[slot_of(class)] += 1);
            let mut from = nodes.len();
            for class in std::iter::once(REJECTED).chain((0..classes.next.len() as u8).rev()) {
                let many = std::mem::replace(&mut next_index[slot_of(class)], from);
                if many > 0 {
                    let config = classes.next.get(usize::from(class)).copied().unwrap_or(DEAD);
                    pending.push(PendingNode { config, class, depth: depth + 1, from });
                }
                from += many;
            }
            nodes.resize(from, 0);
            for (class, child) in children.drain(..) {
                let slot = &mut next_index[slot_of(class)];
                nodes[*slot] = child;
                *slot += 1;
            }
            let next = loop {
                let Some(next) = pending.pop() else { break None };
                if next.class != REJECTED {
                    break Some(next);
                }
                tree.node(next.depth as usize, REJECTED);
                nodes.drain(next.from..).for_each(|node| tree.words(vocab_tree.below(node)));
                class_ids.push(0);
                marks.push(0);
            };
            let Some(next) = next else { break };
            (config, depth) = (next.config, next.depth);
            sources.clear();
            sources.extend(nodes.drain(next.from..));
            let at = tree.node(depth as usize, next.class);
            if at as usize > trie.len() / SIZE_FRACTION {
                return Ok(None);
            }
            sources.iter().for_each(|&node| tree.words(vocab_tree.at(node)));
            let done = parser.store().done(config);
            if done.after_trigger {
                return Ok(None);
            }
            marks.push(if done.bottom { ENDS } else { 0 });
            if done.bottom {
                exits.push((Exit::End, at));
            }
        }
        let tree = tree.finish();
        let read = (1..tree.len() as u32).filter(|&node| tree.node(node).byte != REJECTED);
        let base = Arc::new(MaskEntry::from_tree_walk(vocab, &tree, read, exits));
        Ok(Some(ByteClassTrie {
            base,
            tree,
            class_ids,
            marks,
            class_bytes,
            plans: ProbePlans::default(),
        }))
    }

    /// The difference of another isolated item's state from this one's. None if it tells bytes of
    /// one class apart.
    fn difference_of(
        &mut self,
        parser: &mut Parser,
        isolated: ConfigId,
    ) -> Result<Option<EntryDifference>, WalkError> {
        let ByteClassTrie { tree, class_ids, marks, class_bytes, plans, .. } = self;
        let mut diff = EntryDifference::default();
        let mut planned: HashMap<(u32, ConfigId), u32> = HashMap::default();
        let Some(plan) =
            plans.plan(parser, class_ids[0], &class_bytes[class_ids[0] as usize], isolated)
        else {
            return Ok(None);
        };
        let walked =
            descend(tree, (isolated, plan, false), |at, class, (parent, plan, excluded_above)| {
                if class == REJECTED {
                    return Ok(None);
                }
                let mut config = DEAD;
                for (tried, &byte) in
                    plans.plans[plan as usize][usize::from(class)].iter().enumerate()
                {
                    let next = parser.step(parent, byte)?;
                    if tried > 0 && next != config {
                        return Err(NotDerivable::FinerClasses);
                    }
                    config = next;
                }
                let done = parser.store().done(config);
                if done.after_trigger {
                    return Err(NotDerivable::FinerClasses);
                }
                let exits = |ends: bool| if ends { &[Exit::End][..] } else { &[] };
                let this = NodeOutcome { dead: config == DEAD, exits: exits(done.bottom) };
                let other =
                    NodeOutcome { dead: false, exits: exits(marks[at as usize] & ENDS != 0) };
                let Some(excluded_above) = diff.visit(tree, at, (this, other), excluded_above)
                else {
                    return Ok(None);
                };
                if marks[at as usize] & CONTINUES == 0 {
                    return Ok(None);
                }
                let classes = class_ids[at as usize];
                let plan = match planned.get(&(classes, config)) {
                    Some(&plan) => plan,
                    None => {
                        let bytes = &class_bytes[classes as usize];
                        let plan = plans
                            .plan(parser, classes, bytes, config)
                            .ok_or(NotDerivable::FinerClasses)?;
                        planned.insert((classes, config), plan);
                        plan
                    }
                };
                Ok(Some((config, plan, excluded_above)))
            });
        match walked {
            Ok(()) => Ok(Some(diff)),
            Err(NotDerivable::FinerClasses) => Ok(None),
            Err(NotDerivable::Limit(limit)) => Err(limit.into()),
        }
    }

    /// Memory in use, in bytes, approximately.
    fn bytes(&self) -> usize {
        self.tree.len() * 24 + size_of_val(self.tree.words_below(0)) + 4096
    }
}

impl ConfigByteClasses {
    /// None if there are too many classes.
    fn compute(
        parser: &mut Parser,
        config: ConfigId,
        (ids, class_bytes): (&mut HashMap<Box<[ByteSet]>, u32>, &mut Vec<Box<[ByteSet]>>),
    ) -> Result<Option<ConfigByteClasses>, WalkError> {
        let (mut next, mut sets): (Vec<ConfigId>, Vec<ByteSet>) = Default::default();
        let mut class_by_byte = Box::new([REJECTED; 256]);
        for bytes in parser.bytes_by_edges(config) {
            let Some(first) = bytes.iter().next() else { continue };
            let to = parser.step(config, first)?;
            if to == DEAD {
                continue;
            }
            let class = next.iter().position(|&other| other == to).unwrap_or_else(|| {
                next.push(to);
                sets.push(ByteSet::EMPTY);
                next.len() - 1
            });
            if class >= usize::from(REJECTED) {
                return Ok(None);
            }
            sets[class] = sets[class].union(&bytes);
            bytes.iter().for_each(|byte| class_by_byte[usize::from(byte)] = class as u8);
        }
        let sets: Box<[ByteSet]> = sets.into();
        let id = *ids.entry(sets).or_insert_with_key(|sets| {
            class_bytes.push(sets.clone());
            class_bytes.len() as u32 - 1
        });
        Ok(Some(ConfigByteClasses { id, class_by_byte, next }))
    }
}

impl ProbePlans {
    /// The plan of some classes (`bytes`) for a configuration. None if it reads other bytes as
    /// well, or rejects only some bytes of a class.
    fn plan(
        &mut self,
        parser: &mut Parser,
        classes: u32,
        bytes: &[ByteSet],
        config: ConfigId,
    ) -> Option<u32> {
        parser.edge_signature(config, &mut self.look);
        let number = self.looks.len() as u32;
        let look = match self.looks.get(&self.look[..]) {
            Some(&look) => look,
            None => *self.looks.entry(self.look[..].into()).or_insert(number),
        };
        if let Some(&plan_by_look) = self.plan_by_look.get(&(classes, look)) {
            return plan_by_look;
        }
        fuel::charge(bytes.len() * parser.store().items(config).len());
        let plan = ProbePlans::make(&parser.bytes_by_edges(config), bytes).map(|plan| {
            self.plans.push(plan);
            self.plans.len() as u32 - 1
        });
        self.plan_by_look.insert((classes, look), plan);
        plan
    }

    /// Makes a plan from the sets of bytes that the same edges read.
    fn make(alike: &[ByteSet], class_bytes: &[ByteSet]) -> Option<ProbePlan> {
        let mut remaining: Vec<ByteSet> = alike.to_vec();
        let mut plan = Vec::with_capacity(class_bytes.len());
        for class in class_bytes {
            let (mut first, mut covered) = (Vec::new(), ByteSet::EMPTY);
            for set in &mut remaining {
                let common = set.intersect(class);
                if let Some(byte) = common.iter().next() {
                    first.push(byte);
                    covered = covered.union(&common);
                    *set = set.intersect(&class.complement());
                }
            }
            if !first.is_empty() && covered != *class {
                return None;
            }
            plan.push(first.into());
        }
        remaining.iter().all(ByteSet::is_empty).then(|| plan.into())
    }
}
