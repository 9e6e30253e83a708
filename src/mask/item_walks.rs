//! Memoised walks of single items, called rules included.
//!
//! Like [`super::rule_walks`], but a walk follows calls together with their callers. It serves
//! direct walks in grammars without long chains of rules. There, an item's walk is short, and what
//! is long is left to entries, which grammars share.

use std::sync::Arc;

use indexmap::IndexSet;

use super::node_sets::{NodeSetId, sort_by_group};
use super::trie_walk::{TrieWalk, WalkError};
use crate::fuel;
use crate::hash::{HashMap, HashSet, Seeded};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Item, Parser};
use crate::vocab::Trie;

/// Fuel of an item walk, beside its trie walk.
const ITEM_WALK_FUEL: usize = 16;
/// Memory for item walks of one constraint.
const MAX_BYTES: usize = 16 << 20;

/// The result of walking some trie nodes with one isolated item.
#[derive(Debug)]
struct ItemWalk {
    /// Accepted tokens.
    tokens: Box<[TokenId]>,
    /// By exit of its rule, the nodes below which what follows decides.
    exits: Box<[(Exit, NodeSetId)]>,
}

/// The item walks of the vocabulary's trie.
#[derive(Debug, Default)]
struct VocabularyWalks {
    /// Interned node sets.
    node_sets: IndexSet<Box<[u32]>, Seeded>,
    /// Item walks by node set and isolated configuration.
    item_walks: HashMap<(NodeSetId, ConfigId), Arc<ItemWalk>>,
}

/// Item walks of the vocabulary's trie, and buffers.
#[derive(Debug, Default)]
pub(crate) struct ItemWalks {
    /// The memo.
    walks: VocabularyWalks,
    /// Memory in use, in bytes, approximately.
    bytes: usize,
    /// Buffer: node sets and configurations that were followed.
    visited: HashSet<(NodeSetId, ConfigId)>,
}

impl ItemWalks {
    /// Memory in use, in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Clears everything, as ids of configurations become invalid.
    pub(crate) fn clear(&mut self) {
        *self = ItemWalks::default();
    }

    /// Adds to `tokens` the tokens of the vocabulary's trie that one item accepts, with what
    /// follows it, some perhaps twice. Fails where the isolated item visits more than `budget`
    /// nodes.
    pub(crate) fn walk_item(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (item, budget): (Item, usize),
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), WalkError> {
        if self.bytes > MAX_BYTES {
            self.clear();
        }
        self.visited.clear();
        let walks = &mut self.walks;
        let all = walks.intern_node_set(&[0]);
        let item_walk = walks.item_walk(parser, trie, (all, item, budget), &mut self.bytes)?;
        tokens.extend_from_slice(&item_walk.tokens);
        let mut queue = Vec::new();
        for &(exit, below) in &item_walk.exits {
            queue.push((below, parser.follow(&item, exit)?));
        }
        walks.follow(parser, trie, queue, (&mut self.visited, &mut self.bytes), tokens)
    }
}

impl VocabularyWalks {
    /// Walks from node sets and configurations until nothing is context-dependent.
    fn follow(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        mut queue: Vec<(NodeSetId, ConfigId)>,
        (visited, bytes): (&mut HashSet<(NodeSetId, ConfigId)>, &mut usize),
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), WalkError> {
        let mut items: Vec<Item> = Vec::new();
        while let Some((node_set, next)) = queue.pop() {
            if parser.is_near_bound(next) {
                // Isolated items know no budget.
                let mut walk = TrieWalk::default();
                for &node in &self.node_sets[node_set as usize] {
                    walk.run(parser, trie, node, next, usize::MAX)?;
                }
                tokens.extend_from_slice(&walk.tokens);
                continue;
            }
            items.clear();
            items.extend_from_slice(parser.store().items(next));
            for item in &items {
                fuel::spend(1)?;
                let item_walk =
                    self.item_walk(parser, trie, (node_set, *item, usize::MAX), bytes)?;
                tokens.extend_from_slice(&item_walk.tokens);
                for &(exit, below) in &item_walk.exits {
                    let following = parser.follow(item, exit)?;
                    if visited.insert((below, following)) {
                        queue.push((below, following));
                    }
                }
            }
        }
        Ok(())
    }

    /// Interns a node set.
    fn intern_node_set(&mut self, nodes: &[u32]) -> NodeSetId {
        match self.node_sets.get_index_of(nodes) {
            Some(node_set) => node_set as u32,
            None => self.node_sets.insert_full(nodes.into()).0 as u32,
        }
    }

    /// The memoised walk of an item at a node set.
    fn item_walk(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (node_set, item, budget): (NodeSetId, Item, usize),
        bytes: &mut usize,
    ) -> Result<Arc<ItemWalk>, WalkError> {
        let isolated = parser.isolated(item);
        let isolated = parser.canonical(isolated);
        if let Some(item_walk) = self.item_walks.get(&(node_set, isolated)) {
            return Ok(item_walk.clone());
        }
        let mut walk = TrieWalk::default();
        fuel::spend(ITEM_WALK_FUEL + self.node_sets[node_set as usize].len())?;
        for &node in &self.node_sets[node_set as usize] {
            walk.run(parser, trie, node, isolated, budget)?;
        }
        sort_by_group(&mut walk.exits);
        let mut exits = Vec::new();
        for group in walk.exits.chunk_by(|a, b| a.0 == b.0) {
            let nodes: Vec<u32> = group.iter().map(|&(_, node)| node).collect();
            *bytes += nodes.len() * 4 + 64;
            exits.push((group[0].0, self.intern_node_set(&nodes)));
        }
        *bytes += walk.tokens.len() * 4 + 128;
        let item_walk = Arc::new(ItemWalk { tokens: walk.tokens.into(), exits: exits.into() });
        self.item_walks.insert((node_set, isolated), item_walk.clone());
        Ok(item_walk)
    }
}
