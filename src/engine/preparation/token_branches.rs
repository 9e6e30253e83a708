//! The branches of a token: the groups of bytes and the special tokens that may go on with it, and
//! how likely each is.

use super::byte_groups::{ByteGroup, weight};
use super::continuations::{Continuations, TextKind};
use crate::matcher::{ConfigId, Symbol};
use crate::vocab::{NodeId, Trie};

/// One group or special token that may follow a partial token.
pub(super) struct TokenBranch {
    /// Of a group: the first of its likeliest bytes with which a token goes on.
    pub(super) symbol: Symbol,
    pub(super) to: ConfigId,
    /// The trie node that the byte leads to, if a token goes on so.
    pub(super) child: Option<NodeId>,
    /// Relative to the other branches: they add up to 1.
    pub(super) likelihood: f64,
    /// Of a group: the weight of its likeliest bytes.
    weight: f64,
}

impl Continuations {
    /// The branches from a partial token at trie node `node` whose last byte is `last`.
    pub(super) fn branches(&self, trie: &Trie, node: NodeId, last: Option<u8>) -> Vec<TokenBranch> {
        let mut out: Vec<TokenBranch> = Vec::with_capacity(self.groups.len() + self.specials.len());
        for (number, group) in self.groups.iter().enumerate() {
            let likeliest = group.bytes.iter().map(|byte| weight(byte, last)).fold(0.0, f64::max);
            let is_text = self.text == Some(number);
            let likelihood = self.likelihood(group, is_text, node, last).unwrap_or(likeliest);
            out.push(TokenBranch {
                symbol: Symbol::Byte(group.bytes.iter().next().unwrap_or_default()),
                to: group.to,
                child: None,
                likelihood: likelihood * group.likelihood,
                weight: likeliest,
            });
        }
        out.extend(self.specials.iter().map(|&(special, to)| TokenBranch {
            symbol: Symbol::Special(special),
            to,
            child: None,
            likelihood: 1.0,
            weight: 0.0,
        }));
        let sum: f64 = out.iter().map(|branch| branch.likelihood).sum();
        out.iter_mut().for_each(|branch| branch.likelihood /= sum.max(f64::MIN_POSITIVE));
        for child in trie.children(node) {
            let byte = trie.node(child).byte;
            let mut groups = self.groups.iter().zip(&mut out);
            if let Some((_, branch)) = groups.find(|(group, _)| group.bytes.contains(byte))
                && branch.child.is_none()
                && weight(byte, last) >= branch.weight
            {
                (branch.symbol, branch.child) = (Symbol::Byte(byte), Some(child));
            }
        }
        out
    }

    /// The likelihood of a group relative to others; `None` if only the weights of its bytes say
    /// more.
    fn likelihood(
        &self,
        group: &ByteGroup,
        is_text: bool,
        node: NodeId,
        last: Option<u8>,
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
            (true, TextKind::NotText) => 1.0,
            (false, TextKind::Enters) if self.in_name && !group.has_name_bytes() => 0.001,
            (false, _) => return None,
        })
    }
}
