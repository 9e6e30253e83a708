//! Matches of a dispatch at the nodes of its trie: which triggers, stops and excludes a node's text
//! ends with, and which nodes a text can reach.

use std::collections::BTreeMap;

use super::DispatchTexts;
use super::trie::{AhoCorasickTrie, DispatchNodeId, count_steps};
use crate::ids::{SpecialId, id};
use crate::ir::Trigger;

id! {
    /// A trigger of a dispatch: an index into its distinct triggers.
    pub(in crate::compile) TriggerId
}

impl TriggerId {
    /// No trigger.
    const NONE: TriggerId = TriggerId::from_raw(u32::MAX);
}

/// What fires: a trigger, or a stop (`None`).
pub(super) type TriggerOrStop = Option<TriggerId>;

/// What the text of a node ends with.
#[derive(Clone, Copy, Debug)]
struct NodeMatch {
    /// Length of the longest trigger or stop.
    matched_len: u32,
    /// Length of the longest exclude.
    excluded_len: u32,
    /// Length of the longest special prefix: text that only fires together with a special token
    /// after it.
    prefix_len: u32,
    /// It ends with a stop.
    has_stop: bool,
    /// The trigger that equals the text, or [`TriggerId::NONE`].
    own_tag: TriggerId,
    /// Node of the longest suffix that is a trigger; the next one is found from its failure link.
    tag_link: DispatchNodeId,
    /// Node of the longest suffix that is a special prefix.
    prefix_link: DispatchNodeId,
}

impl NodeMatch {
    /// Nothing.
    const NONE: NodeMatch = NodeMatch {
        matched_len: 0,
        excluded_len: 0,
        prefix_len: 0,
        has_stop: false,
        own_tag: TriggerId::NONE,
        tag_link: DispatchNodeId::NONE,
        prefix_link: DispatchNodeId::NONE,
    };
}

/// A special prefix (`Trigger::TextThenSpecial`): text that fires together with the special token
/// after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpecialPrefix {
    /// The node of the text.
    pub(super) node: DispatchNodeId,
    /// Index of the special token in [`MatchTable::specials`].
    pub(super) special: u32,
    /// What the two fire.
    pub(super) fires: TriggerOrStop,
}

/// Special tokens of triggers and stops, numbered as they are met.
#[derive(Default)]
struct SpecialTokens {
    numbers: BTreeMap<SpecialId, u32>,
    /// By number; see [`MatchTable::specials`].
    tokens: Vec<(SpecialId, Vec<TriggerOrStop>)>,
}

impl SpecialTokens {
    /// The number of a token.
    fn number(&mut self, special: SpecialId) -> u32 {
        *self.numbers.entry(special).or_insert_with(|| {
            self.tokens.push((special, Vec::new()));
            self.tokens.len() as u32 - 1
        })
    }

    /// Records what a token fires without any text.
    fn fire(&mut self, special: SpecialId, fires: TriggerOrStop) {
        let number = self.number(special);
        let fired = &mut self.tokens[number as usize].1;
        if !fired.contains(&fires) {
            fired.push(fires);
        }
    }
}

/// The trie of a dispatch with the matches at each node. Cost: linear in the bytes of the texts.
#[derive(Debug)]
pub(super) struct MatchTable {
    pub(super) trie: AhoCorasickTrie,
    /// By node.
    matches: Vec<NodeMatch>,
    /// Sorted by node.
    pub(super) special_prefixes: Vec<SpecialPrefix>,
    /// Special tokens of triggers and stops; with what each fires without any text.
    pub(super) specials: Vec<(SpecialId, Vec<TriggerOrStop>)>,
    /// By node: reachable by free text in which nothing has fired.
    pub(super) free_text: Vec<bool>,
    /// By node: reachable within a longer trigger, after a trigger that is its prefix has fired.
    pub(super) committed: Vec<bool>,
    /// By node: reachable, and something fires there.
    pub(super) fired: Vec<bool>,
}

impl MatchTable {
    /// Builds the trie and finds all matches.
    pub(super) fn new(dispatch_texts: &DispatchTexts) -> MatchTable {
        let tags =
            dispatch_texts.tags.iter().zip((0..).map(|number| Some(TriggerId::from_raw(number))));
        let all: Vec<(&Trigger, TriggerOrStop)> =
            tags.chain(dispatch_texts.stops.iter().map(|stop| (stop, None))).collect();
        let with_text =
            || all.iter().filter(|(trigger, _)| !matches!(trigger, Trigger::Special(_)));
        let patterns: Vec<&[u8]> = with_text()
            .map(|(trigger, _)| trigger.bytes())
            .chain(dispatch_texts.excludes.iter().map(|exclude| &exclude[..]))
            .collect();
        let (trie, nodes) = AhoCorasickTrie::new(&patterns);
        let mut specials = SpecialTokens::default();
        for (trigger, fires) in &all {
            if let Trigger::Special(special) = trigger {
                specials.fire(*special, *fires);
            }
        }
        let len = trie.len();
        let mut match_table = MatchTable {
            trie,
            matches: vec![NodeMatch::NONE; len],
            special_prefixes: Vec::new(),
            specials: Vec::new(),
            free_text: vec![false; len],
            committed: vec![false; len],
            fired: vec![false; len],
        };
        let mut nodes = nodes.into_iter();
        for (&(trigger, fires), node) in with_text().zip(&mut nodes) {
            match_table.add_trigger(trigger, fires, node, &mut specials);
        }
        for node in nodes {
            match_table.matches[node.index()].excluded_len = match_table.trie.depth(node);
        }
        match_table.specials = specials.tokens;
        match_table.special_prefixes.sort_unstable();
        match_table.special_prefixes.dedup();
        match_table.inherit_from_suffixes();
        match_table.find_reachable();
        match_table
    }

    /// Records a trigger or stop with a text at the node of that text.
    fn add_trigger(
        &mut self,
        trigger: &Trigger,
        fires: TriggerOrStop,
        node: DispatchNodeId,
        specials: &mut SpecialTokens,
    ) {
        let (depth, at) = (self.trie.depth(node), &mut self.matches[node.index()]);
        match (trigger, fires) {
            (Trigger::TextThenSpecial(_, special), fires) => {
                (at.prefix_len, at.prefix_link) = (depth, node);
                let special = specials.number(*special);
                self.special_prefixes.push(SpecialPrefix { node, special, fires });
            }
            (_, Some(tag)) => (at.matched_len, at.own_tag, at.tag_link) = (depth, tag, node),
            (_, None) => (at.matched_len, at.has_stop) = (depth, true),
        }
    }

    /// Merges into each node the matches of its longest proper suffix.
    fn inherit_from_suffixes(&mut self) {
        for node in self.trie.nodes().skip(1) {
            count_steps(1);
            let before = self.matches[self.trie.failure(node).index()];
            let at = &mut self.matches[node.index()];
            at.matched_len = at.matched_len.max(before.matched_len);
            at.excluded_len = at.excluded_len.max(before.excluded_len);
            at.prefix_len = at.prefix_len.max(before.prefix_len);
            at.has_stop |= before.has_stop;
            at.tag_link =
                if at.tag_link == DispatchNodeId::NONE { before.tag_link } else { at.tag_link };
            at.prefix_link = if at.prefix_link == DispatchNodeId::NONE {
                before.prefix_link
            } else {
                at.prefix_link
            };
        }
    }

    /// Computes which nodes are reachable. A node that free text reaches is also reached by its own
    /// text alone: a match or exclude inside of the text is found in every text that ends with it.
    fn find_reachable(&mut self) {
        self.free_text[DispatchNodeId::ROOT.index()] = true;
        for node in self.trie.nodes().skip(1) {
            count_steps(1);
            let (at, parent) = (node.index(), self.trie.parent(node).index());
            let (plain, committed) = (self.free_text[parent], self.committed[parent]);
            if self.is_excluded(node) {
                continue;
            }
            if self.fires(node) {
                self.fired[at] = plain || committed;
                self.committed[at] = self.fired[at] && self.begins_longer(node);
            } else {
                (self.free_text[at], self.committed[at]) = (plain, committed);
            }
        }
    }

    /// Whether an exclude forbids the node. An exclude inside of a trigger or stop does not count.
    pub(super) fn is_excluded(&self, node: DispatchNodeId) -> bool {
        let NodeMatch { matched_len, excluded_len, .. } = self.matches[node.index()];
        excluded_len > matched_len
    }

    /// Whether a trigger or stop ends at the node.
    pub(super) fn fires(&self, node: DispatchNodeId) -> bool {
        self.matches[node.index()].matched_len > 0
    }

    /// Whether the trigger that fires at the node is a prefix of a longer one.
    pub(super) fn begins_longer(&self, node: DispatchNodeId) -> bool {
        let NodeMatch { matched_len, prefix_len, .. } = self.matches[node.index()];
        (prefix_len == matched_len || self.trie.children(node).len() > 0)
            && self.trie.depth(node) == matched_len
    }

    /// Length of what fires.
    pub(super) fn matched_len(&self, node: DispatchNodeId) -> u32 {
        self.matches[node.index()].matched_len
    }

    /// Whether a stop ends at the node.
    pub(super) fn fires_stop(&self, node: DispatchNodeId) -> bool {
        self.matches[node.index()].has_stop
    }

    /// The trigger that equals the node's text.
    pub(super) fn tag_at(&self, node: DispatchNodeId) -> TriggerOrStop {
        let tag = self.matches[node.index()].own_tag;
        (tag != TriggerId::NONE).then_some(tag)
    }

    /// By node: whether its text begins a trigger or stop for which `is_likely` holds.
    pub(super) fn likely_nodes(&self, is_likely: impl Fn(TriggerOrStop) -> bool) -> Box<[bool]> {
        let mut likely = vec![false; self.trie.len()];
        for node in self.trie.nodes().rev() {
            let is_stop = self.fires_stop(node) && self.matched_len(node) == self.trie.depth(node);
            let own = self.tag_at(node).map(Some).into_iter().chain(is_stop.then_some(None));
            let prefixes = self.prefixes_at(node).iter().map(|prefix| prefix.fires);
            likely[node.index()] = own.chain(prefixes).any(&is_likely)
                || self.trie.children(node).any(|child| likely[child.index()]);
        }
        likely.into()
    }

    /// Nodes of the triggers that the node's text ends with, longest first.
    pub(super) fn tag_nodes(
        &self,
        node: DispatchNodeId,
    ) -> impl Iterator<Item = DispatchNodeId> + '_ {
        self.links(node, |node_match| node_match.tag_link)
    }

    /// Nodes of the special prefixes that the node's text ends with, longest first.
    pub(super) fn prefix_nodes(
        &self,
        node: DispatchNodeId,
    ) -> impl Iterator<Item = DispatchNodeId> + '_ {
        self.links(node, |node_match| node_match.prefix_link)
    }

    /// Follows a chain of dictionary links.
    fn links(
        &self,
        node: DispatchNodeId,
        link: impl Fn(&NodeMatch) -> DispatchNodeId,
    ) -> impl Iterator<Item = DispatchNodeId> {
        let mut at = link(&self.matches[node.index()]);
        std::iter::from_fn(move || {
            let current = (at != DispatchNodeId::NONE).then_some(at)?;
            at = link(&self.matches[self.trie.failure(current).index()]);
            Some(current)
        })
    }

    /// The special prefixes that equal the node's text.
    pub(super) fn prefixes_at(&self, node: DispatchNodeId) -> &[SpecialPrefix] {
        let from = self.special_prefixes.partition_point(|prefix| prefix.node < node);
        let len = self.special_prefixes[from..].partition_point(|prefix| prefix.node == node);
        &self.special_prefixes[from..from + len]
    }

    /// Approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        let specials: usize = self
            .specials
            .iter()
            .map(|(_, fired)| 32 + fired.len() * size_of::<TriggerOrStop>())
            .sum();
        let nodes = self.trie.len() * (size_of::<NodeMatch>() + 3);
        self.trie.bytes_held()
            + nodes
            + self.special_prefixes.len() * size_of::<SpecialPrefix>()
            + specials
    }
}
