//! What a dispatch finds where a text of its trie has been read, and which nodes a text can get to.

use std::collections::BTreeMap;

use super::Watched;
use super::trie::{NONE, ROOT, Trie, steps};
use crate::ir::Trigger;

/// What fires: the number of a trigger of tags, or a stop.
pub(super) type Fired = Option<u32>;

/// What the text of a node ends with.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Length of the longest trigger or stop.
    matched: u32,
    /// Length of the longest exclude.
    excluded: u32,
    /// Length of the longest lead: what stands before a special token, and is text alone.
    led: u32,
    /// It ends with a stop.
    stop: bool,
    /// The trigger that is the whole text.
    tag: u32,
    /// Of the suffixes that are triggers, the longest one's node.
    tags: u32,
    /// Of the suffixes that are leads, the longest one's node.
    leads: u32,
}

/// A lead with the special token behind it, and what that fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lead {
    pub(super) node: u32,
    /// The number of the special token in [`Texts::specials`].
    pub(super) special: u32,
    pub(super) fires: Fired,
}

/// The texts of a dispatch and what they mean. Linear in their bytes.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) trie: Trie,
    found: Vec<Found>,
    /// Sorted by node.
    pub(super) leads: Vec<Lead>,
    /// Special tokens of triggers and stops, with what each fires alone.
    pub(super) specials: Vec<(u32, Vec<Fired>)>,
    /// By node: whether it is reached by free text, in which nothing has fired.
    pub(super) plain: Vec<bool>,
    /// By node: whether it is reached once a trigger has fired whose text begins a longer one.
    pub(super) committed: Vec<bool>,
    /// By node: whether something fires there.
    pub(super) fired: Vec<bool>,
}

/// The text of a trigger, which a special token may follow.
fn text_of(trigger: &Trigger) -> Option<&[u8]> {
    match trigger {
        Trigger::Text(text) | Trigger::Led(text, _) => Some(text),
        Trigger::Special(_) => None,
    }
}

impl Texts {
    pub(super) fn new(watched: &Watched) -> Texts {
        let fires = |tag: usize| Some(tag as u32);
        let tags = watched.tags.iter().enumerate().map(|(tag, trigger)| (trigger, fires(tag)));
        let all: Vec<(&Trigger, Fired)> =
            tags.chain(watched.stops.iter().map(|stop| (stop, None))).collect();
        let triggers: Vec<&(&Trigger, Fired)> =
            all.iter().filter(|(trigger, _)| text_of(trigger).is_some()).collect();
        let patterns = triggers.iter().filter_map(|(trigger, _)| text_of(trigger));
        let patterns: Vec<&[u8]> =
            patterns.chain(watched.excludes.iter().map(|exclude| &exclude[..])).collect();
        let (trie, nodes) = Trie::new(&patterns);
        let nothing = Found {
            matched: 0,
            excluded: 0,
            led: 0,
            stop: false,
            tag: NONE,
            tags: NONE,
            leads: NONE,
        };
        let mut found = vec![nothing; trie.len()];
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut specials: Vec<(u32, Vec<Fired>)> = Vec::new();
        let mut number = |special: u32, specials: &mut Vec<(u32, Vec<Fired>)>| {
            *numbers.entry(special).or_insert_with(|| {
                specials.push((special, Vec::new()));
                specials.len() as u32 - 1
            })
        };
        for (trigger, fires) in &all {
            if let Trigger::Special(special) = trigger {
                let at = number(special.raw(), &mut specials);
                let fired = &mut specials[at as usize].1;
                if !fired.contains(fires) {
                    fired.push(*fires);
                }
            }
        }
        let mut leads = Vec::new();
        for (&(trigger, fires), &node) in triggers.iter().zip(&nodes) {
            let (depth, at) = (trie.depth(node), &mut found[node as usize]);
            match (trigger, fires) {
                (Trigger::Led(_, special), fires) => {
                    (at.led, at.leads) = (depth, node);
                    leads.push(Lead {
                        node,
                        special: number(special.raw(), &mut specials),
                        fires: *fires,
                    });
                }
                (_, Some(tag)) => (at.matched, at.tag, at.tags) = (depth, *tag, node),
                (_, None) => (at.matched, at.stop) = (depth, true),
            }
        }
        for &node in &nodes[triggers.len()..] {
            found[node as usize].excluded = trie.depth(node);
        }
        leads.sort_unstable();
        leads.dedup();
        let len = trie.len();
        let (plain, committed, fired) = (vec![false; len], vec![false; len], vec![false; len]);
        let mut texts = Texts { trie, found, leads, specials, plain, committed, fired };
        texts.inherit();
        texts.reach();
        texts
    }

    /// A node's text ends with what its longest suffix ends with.
    fn inherit(&mut self) {
        for node in 1..self.trie.len() as u32 {
            steps(1);
            let before = self.found[self.trie.fail_of(node) as usize];
            let at = &mut self.found[node as usize];
            at.matched = at.matched.max(before.matched);
            at.excluded = at.excluded.max(before.excluded);
            at.led = at.led.max(before.led);
            at.stop |= before.stop;
            at.tags = if at.tags == NONE { before.tags } else { at.tags };
            at.leads = if at.leads == NONE { before.leads } else { at.leads };
        }
    }

    /// Which nodes are reached. Where free text gets to a node, the node's text alone does, too: whatever would have fired or
    /// been excluded in that fires or is excluded in every text that ends with it.
    fn reach(&mut self) {
        self.plain[ROOT as usize] = true;
        for node in 1..self.trie.len() as u32 {
            steps(1);
            let (at, parent) = (node as usize, self.trie.parent(node) as usize);
            let (plain, committed) = (self.plain[parent], self.committed[parent]);
            if self.is_excluded(node) {
                continue;
            }
            if self.fires(node) {
                self.fired[at] = plain || committed;
                self.committed[at] = self.fired[at] && self.goes_on(node);
            } else {
                (self.plain[at], self.committed[at]) = (plain, committed);
            }
        }
    }

    /// Whether an exclude forbids to get to a node. It only loses against a trigger or stop that contains it.
    pub(super) fn is_excluded(&self, node: u32) -> bool {
        let Found { matched, excluded, .. } = self.found[node as usize];
        excluded > matched
    }

    /// Whether a trigger or stop has been read.
    pub(super) fn fires(&self, node: u32) -> bool {
        self.found[node as usize].matched > 0
    }

    /// Whether what has fired at a node also begins something longer.
    pub(super) fn goes_on(&self, node: u32) -> bool {
        let Found { matched, led, .. } = self.found[node as usize];
        (led == matched || !self.trie.children(node).is_empty()) && self.trie.depth(node) == matched
    }

    /// Length of what has fired.
    pub(super) fn matched(&self, node: u32) -> u32 {
        self.found[node as usize].matched
    }

    pub(super) fn stops(&self, node: u32) -> bool {
        self.found[node as usize].stop
    }

    /// The trigger that is a node's text.
    pub(super) fn tag(&self, node: u32) -> Fired {
        let tag = self.found[node as usize].tag;
        (tag != NONE).then_some(tag)
    }

    /// The nodes of the triggers that a node's text ends with, longest first.
    pub(super) fn tags(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.chain(node, |found| found.tags)
    }

    /// The nodes of the leads that a node's text ends with, longest first.
    pub(super) fn lead_nodes(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.chain(node, |found| found.leads)
    }

    fn chain(&self, node: u32, link: impl Fn(&Found) -> u32) -> impl Iterator<Item = u32> {
        let mut at = link(&self.found[node as usize]);
        std::iter::from_fn(move || {
            let here = (at != NONE).then_some(at)?;
            at = link(&self.found[self.trie.fail_of(here) as usize]);
            Some(here)
        })
    }

    /// The leads that are a node's text.
    pub(super) fn leads_of(&self, node: u32) -> &[Lead] {
        let from = self.leads.partition_point(|lead| lead.node < node);
        let len = self.leads[from..].partition_point(|lead| lead.node == node);
        &self.leads[from..from + len]
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let specials: usize =
            self.specials.iter().map(|(_, fired)| 32 + fired.len() * size_of::<Fired>()).sum();
        let nodes = self.trie.len() * (size_of::<Found>() + 3);
        self.trie.bytes_held() + nodes + self.leads.len() * size_of::<Lead>() + specials
    }
}
