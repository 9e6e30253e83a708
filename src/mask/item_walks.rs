//! Reading single items on their own, called rules together with their callers: the way of [`super::rule_walks`] for grammars without long
//! chains of rules. There a part is small, and what is long is left to entries, which grammars share.

use std::sync::Arc;

use indexmap::IndexSet;

use super::node_sets::sort_kinds;
use super::trie_walk::{Stopped, Walk};
use crate::fuel;
use crate::hash::{HashMap, HashSet, Seeded};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Item, Parser};
use crate::vocab::Trie;

/// Fuel of a section, beside what its walk takes.
const SECTION: usize = 16;
/// Memory for sections of one constraint.
const MAX_BYTES: usize = 16 << 20;

/// What one item, looked at on its own, does with the words below some nodes of a trie.
#[derive(Debug)]
struct Section {
    words: Box<[TokenId]>,
    /// Behind each exit of its rule, the nodes below which what follows has to decide.
    exits: Box<[(Exit, Places)]>,
}

/// Nodes of a trie, by number.
type Places = u32;

/// What is known of the vocabulary's trie.
#[derive(Debug, Default)]
struct Known {
    places: IndexSet<Box<[u32]>, Seeded>,
    sections: HashMap<(Places, ConfigId), Arc<Section>>,
}

/// Sections of the vocabulary's trie.
#[derive(Debug, Default)]
pub(crate) struct Joint {
    known: Known,
    bytes: usize,
    seen: HashSet<(Places, ConfigId)>,
}

impl Joint {
    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets everything: configurations have lost their meaning.
    pub(crate) fn clear(&mut self) {
        *self = Joint::default();
    }

    /// Adds to `words` the words of the vocabulary's trie that one item can read, some perhaps twice. Gives up, once and for
    /// all, where the item itself reads more than `budget` nodes.
    pub(crate) fn narrow(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (item, budget): (Item, usize),
        words: &mut Vec<TokenId>,
    ) -> Result<(), Stopped> {
        if self.bytes > MAX_BYTES {
            self.clear();
        }
        self.seen.clear();
        let known = &mut self.known;
        let all = known.places(&[0]);
        let section = known.section(parser, trie, (all, item, budget), &mut self.bytes)?;
        words.extend_from_slice(&section.words);
        let mut queue = Vec::new();
        for &(exit, below) in &section.exits {
            queue.push((below, parser.follow(&item, exit)?));
        }
        known.follow(parser, trie, queue, (&mut self.seen, &mut self.bytes), words)
    }
}

impl Known {
    /// Reads on from places and configurations until nothing is undecided.
    fn follow(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        mut queue: Vec<(Places, ConfigId)>,
        (seen, bytes): (&mut HashSet<(Places, ConfigId)>, &mut usize),
        words: &mut Vec<TokenId>,
    ) -> Result<(), Stopped> {
        let mut items: Vec<Item> = Vec::new();
        while let Some((places, next)) = queue.pop() {
            if parser.is_near_bound(next) {
                // Items looked at on their own know of no budget.
                let mut walk = Walk::default();
                for &node in &self.places[places as usize] {
                    walk.run(parser, trie, node, next, usize::MAX)?;
                }
                words.extend_from_slice(&walk.words);
                continue;
            }
            items.clear();
            items.extend_from_slice(parser.store().items(next));
            for item in &items {
                fuel::spend(1)?;
                let section = self.section(parser, trie, (places, *item, usize::MAX), bytes)?;
                words.extend_from_slice(&section.words);
                for &(exit, below) in &section.exits {
                    let behind = parser.follow(item, exit)?;
                    if seen.insert((below, behind)) {
                        queue.push((below, behind));
                    }
                }
            }
        }
        Ok(())
    }

    fn places(&mut self, nodes: &[u32]) -> Places {
        match self.places.get_index_of(nodes) {
            Some(places) => places as u32,
            None => self.places.insert_full(nodes.into()).0 as u32,
        }
    }

    fn section(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (places, item, budget): (Places, Item, usize),
        bytes: &mut usize,
    ) -> Result<Arc<Section>, Stopped> {
        let alone = parser.isolated(item);
        let alone = parser.normal(alone);
        if let Some(section) = self.sections.get(&(places, alone)) {
            return Ok(section.clone());
        }
        let mut walk = Walk::default();
        fuel::spend(SECTION + self.places[places as usize].len())?;
        for &node in &self.places[places as usize] {
            walk.run(parser, trie, node, alone, budget)?;
        }
        sort_kinds(&mut walk.exits);
        let mut exits = Vec::new();
        for behind in walk.exits.chunk_by(|a, b| a.0 == b.0) {
            let nodes: Vec<u32> = behind.iter().map(|&(_, node)| node).collect();
            *bytes += nodes.len() * 4 + 64;
            exits.push((behind[0].0, self.places(&nodes)));
        }
        *bytes += walk.words.len() * 4 + 128;
        let section = Arc::new(Section { words: walk.words.into(), exits: exits.into() });
        self.sections.insert((places, alone), section.clone());
        Ok(section)
    }
}
