//! The branches of a token: the groups of bytes and the special tokens that may go on with it, and
//! how likely each is.

use super::byte_groups::{ByteGroup, CLASSES, NAME_CLASSES, weight};
use super::continuations::{Continuations, MANY_BYTES, TextKind};
use crate::fsm::ByteSet;
use crate::matcher::{ConfigId, Symbol};
use crate::vocab::{NodeId, Trie};

/// One group or special token that may follow a partial token.
pub(super) struct TokenBranch {
    /// Of a group: the byte with the most tokens.
    pub(super) symbol: Symbol,
    pub(super) to: ConfigId,
    /// The trie node that the byte leads to, if a token goes on so.
    pub(super) child: Option<NodeId>,
    /// Relative to the other branches: they add up to 1.
    pub(super) likelihood: f64,
    pub(super) has_many_bytes: bool,
    /// Of a group: the weight of the byte, and the number of trie nodes from `child` on.
    best: (f64, u32),
}

impl TokenBranch {
    /// Takes a byte of the group that leads to a trie node, if it has more weight or more tokens
    /// than the one before.
    fn offer(&mut self, trie: &Trie, child: NodeId, (byte, weight): (u8, f64)) {
        if weight >= self.best.0
            && let nodes = trie.subtree_len(child)
            && (weight, nodes) > self.best
        {
            self.best = (weight, nodes);
            (self.symbol, self.child) = (Symbol::Byte(byte), Some(child));
        }
    }
}

impl Continuations {
    /// The branches from a partial token at trie node `node` whose last byte is `last`. Groups less
    /// likely than `min_likelihood` get no trie node.
    pub(super) fn branches(
        &self,
        trie: &Trie,
        node: NodeId,
        (last, min_likelihood): (Option<u8>, f64),
    ) -> Vec<TokenBranch> {
        let mut out: Vec<TokenBranch> = Vec::with_capacity(self.groups.len() + self.specials.len());
        for (number, group) in self.groups.iter().enumerate() {
            let classes =
                CLASSES.iter().enumerate().filter(|(class, _)| group.classes >> class & 1 == 1);
            let likeliest = classes.map(|(_, &byte)| weight(byte, last)).fold(0.0, f64::max);
            let is_text = self.text == Some(number);
            let likelihood = self.likelihood(group, is_text, (node, last)).unwrap_or(likeliest);
            out.push(TokenBranch {
                symbol: Symbol::Byte(group.bytes.iter().next().unwrap_or_default()),
                to: group.to,
                child: None,
                likelihood: likelihood * group.likelihood,
                has_many_bytes: group.bytes.len() >= MANY_BYTES,
                best: (likeliest, 0),
            });
        }
        out.extend(self.specials.iter().map(|&(special, to)| TokenBranch {
            symbol: Symbol::Special(special),
            to,
            child: None,
            likelihood: 1.0,
            has_many_bytes: false,
            best: (0.0, 0),
        }));
        let sum: f64 = out.iter().map(|branch| branch.likelihood).sum();
        // Free text may also go on as it is, which leads nowhere else.
        let is_text = self.text_kind == TextKind::Returns && node == NodeId::ROOT;
        let least = if is_text { 1.0 } else { f64::MIN_POSITIVE };
        out.iter_mut().for_each(|branch| branch.likelihood /= sum.max(least));
        self.find_children(trie, node, (last, min_likelihood), &mut out);
        out
    }

    /// The likelihood of a group relative to others; `None` if only the weights of its bytes say
    /// more.
    fn likelihood(
        &self,
        group: &ByteGroup,
        is_text: bool,
        (node, last): (NodeId, Option<u8>),
    ) -> Option<f64> {
        // Inside of a member name or a trigger, text would mean that it turns out to be another
        // one.
        let quoted = matches!(last, None | Some(b'"' | b'\'' | b'>' | b'`'));
        Some(match (is_text, self.text_kind) {
            _ if group.advances_trigger => 1.0,
            // A trigger that has begun is probably meant.
            _ if self.in_trigger => 0.001,
            (true, TextKind::Returns) if node == NodeId::ROOT => 0.0,
            (true, TextKind::Returns) => 30.0,
            (true, TextKind::Enters) if quoted && !self.in_name => 30.0,
            (true, TextKind::Enters) => 0.0005,
            (true, TextKind::Counted | TextKind::NotText) => 1.0,
            (false, TextKind::Enters) if self.in_name && group.classes & NAME_CLASSES == 0 => 0.001,
            (false, _) => return None,
        })
    }

    /// Finds the trie nodes of the likely groups.
    fn find_children(
        &self,
        trie: &Trie,
        node: NodeId,
        (last, min_likelihood): (Option<u8>, f64),
        branches: &mut [TokenBranch],
    ) {
        let likely = self
            .groups
            .iter()
            .zip(&*branches)
            .filter(|(_, branch)| branch.likelihood >= min_likelihood);
        let bytes = likely.fold(ByteSet::EMPTY, |bytes, (group, _)| bytes.union(&group.bytes));
        let mut offer = |child: NodeId, byte: u8| {
            let number = usize::from(self.group_of_byte[usize::from(byte)]);
            if number < self.groups.len() {
                branches[number].offer(trie, child, (byte, weight(byte, last)));
            }
        };
        if node == NodeId::ROOT {
            bytes
                .iter()
                .filter_map(|byte| Some((trie.root_child(byte)?, byte)))
                .for_each(|(child, byte)| offer(child, byte));
            return;
        }
        let last_byte = bytes.ranges().last().map_or(0, |(_, last)| last);
        let (mut child, end) = (node.next(), trie.node(node).end);
        while child < end && !bytes.is_empty() {
            let next = trie.node(child);
            if bytes.contains(next.byte) {
                offer(child, next.byte);
            }
            if next.byte >= last_byte {
                break;
            }
            child = next.end;
        }
    }
}
