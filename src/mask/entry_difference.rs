//! Differences of mask entries: where two automaton states decide tokens differently.
//!
//! An entry that differs from another one in few tokens is stored as that base entry and a
//! difference (see [`MaskEntry`](super::entry::MaskEntry)). The difference is found by one walk of
//! a token tree with both states at once. The walk stops where both reach the same configuration,
//! so its cost is the part of the tree in which they differ.

use super::suffixes::Suffixes;
use super::token_set::{TokenSet, bit};
use super::trie_walk::WalkError;
use crate::fuel;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, MIN_SKIP_NODES, Parser, QueryAllowance};
use crate::vocab::{NodeId, Tree, Trie, Vocabulary, descend};

/// What one state (`this`) accepts and leaves context-dependent compared with a base state
/// (`base`). Nodes are visited in depth-first order.
#[derive(Debug, Default)]
pub(crate) struct EntryDifference {
    /// Tokens accepted by the base only.
    pub(super) only_base: Vec<TokenId>,
    /// Tokens accepted by this state only.
    pub(super) only_this: Vec<TokenId>,
    /// Tokens whose suffixes in the base entry do not apply to this state.
    pub(super) excluded: Vec<TokenId>,
    /// Nodes with exits that only this state has.
    exits: Vec<(Exit, NodeId)>,
    /// Suffixes to add again, where those of the base were excluded from a node on: this state's
    /// exits on the path, each with its node and the node below which tokens were excluded.
    restored: Vec<(Exit, NodeId, NodeId)>,
    /// This state's exits on the path from the root to the current node.
    exit_path: Vec<(Exit, NodeId)>,
}

/// The exits that a state's rule has at a node; `None` where the state rejects the bytes up to it.
type NodeExits<'e> = Option<&'e [Exit]>;

impl EntryDifference {
    /// Visits the nodes at which the two configurations differ. Equal ones decide everything below
    /// equally, unless the base's suffixes were excluded further up.
    pub(super) fn walk(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        this: ConfigId,
        base: ConfigId,
    ) -> Result<(), WalkError> {
        let (mut this_exits, mut base_exits): (Vec<Exit>, Vec<Exit>) = Default::default();
        let mut visited = 0;
        let allowance = QueryAllowance::new(parser, 0);
        descend(trie, (this, base, false), |node, byte, (this, base, excluded_above)| {
            let this_config = parser.step(this, byte)?;
            let base_config = if this == base { this_config } else { parser.step(base, byte)? };
            if this_config == base_config && (this_config == ConfigId::DEAD || !excluded_above) {
                return Ok(None);
            }
            let nodes = trie.subtree_len(node);
            visited += 1;
            if this_config != ConfigId::DEAD
                && base_config != ConfigId::DEAD
                && nodes >= MIN_SKIP_NODES
            {
                // Both accept everything below, whatever stays context-dependent on the way.
                let (kinds, length) = (trie.byte_kinds_below(node), trie.longest_below(node));
                if parser.reads_all_texts(this_config, kinds, length, &allowance, visited)?
                    && parser.reads_all_texts(base_config, kinds, length, &allowance, visited)?
                {
                    return Ok(None);
                }
            }
            this_exits.clear();
            this_exits.extend(parser.exits(this_config));
            base_exits.clear();
            base_exits.extend(parser.exits(base_config));
            let this_exits = (this_config != ConfigId::DEAD).then_some(&this_exits[..]);
            let base_exits = (base_config != ConfigId::DEAD).then_some(&base_exits[..]);
            Ok(self
                .visit(trie, node, this_exits, base_exits, excluded_above)
                .map(|excluded_above| (this_config, base_config, excluded_above)))
        })
    }

    /// Records the outcomes at a node. `excluded_above`: the base's suffixes were excluded further
    /// up. Returns whether they are excluded from here on, or None where this state rejects, so
    /// that nothing below needs a visit.
    fn visit(
        &mut self,
        tree: &Tree,
        node: NodeId,
        this: NodeExits<'_>,
        base: NodeExits<'_>,
        excluded_above: bool,
    ) -> Option<bool> {
        while self.exit_path.last().is_some_and(|&(_, exit_node)| tree.node(exit_node).end <= node)
        {
            self.exit_path.pop();
        }
        let Some(this_exits) = this else {
            // This state rejects everything that the base accepts or leaves context-dependent from
            // here on.
            self.only_base.extend_from_slice(tree.tokens_below(node));
            self.exclude(tree.tokens_below(node));
            if !excluded_above {
                self.restored.extend(
                    self.exit_path.iter().map(|&(exit, exit_node)| (exit, exit_node, node)),
                );
            }
            return None;
        };
        if base.is_none() {
            self.only_this.extend_from_slice(tree.tokens_at(node));
        }
        if excluded_above {
            self.restored.extend(this_exits.iter().map(|&exit| (exit, node, node)));
            return Some(true);
        }
        self.exit_path.extend(this_exits.iter().map(|&exit| (exit, node)));
        let base_exits = base.unwrap_or_default();
        let excludes = base_exits.iter().any(|exit| !this_exits.contains(exit));
        if excludes {
            self.exclude(tree.tokens_strictly_below(node));
            self.restored
                .extend(self.exit_path.iter().map(|&(exit, exit_node)| (exit, exit_node, node)));
        } else {
            let new_exits = this_exits.iter().filter(|exit| !base_exits.contains(exit));
            self.exits.extend(new_exits.map(|&exit| (exit, node)));
        }
        Some(excludes)
    }

    /// Excludes tokens.
    fn exclude(&mut self, tokens: &[TokenId]) {
        fuel::charge(tokens.len() / 2);
        self.excluded.extend_from_slice(tokens);
    }

    /// The suffixes of this state that the base entry does not have. `accepted`: all tokens that
    /// this state accepts.
    pub(super) fn own_suffixes(
        mut self,
        vocab: &Vocabulary,
        accepted: &TokenSet,
    ) -> Result<Vec<(Exit, Suffixes)>, WalkError> {
        let tree: &Tree = vocab.trie();
        if self.exits.is_empty() && self.restored.is_empty() {
            return Ok(Vec::new());
        }
        let row = accepted.to_row(vocab.mask_words());
        let mut suffixes = Suffixes::by_exit(vocab, tree, &row, self.exits);
        self.restored.sort_unstable();
        for group in self.restored.chunk_by(|a, b| a.0 == b.0) {
            let mut listed_tokens: Vec<(TokenId, u16)> = Vec::new();
            for &(_, from, below) in group {
                let depth = tree.node(from).depth;
                let tokens = if from == below {
                    tree.tokens_strictly_below(from)
                } else {
                    tree.tokens_below(below)
                };
                fuel::spend(tokens.len() / 4)?;
                listed_tokens.extend(
                    tokens.iter().filter(|&&token| !bit(&row, token)).map(|&token| (token, depth)),
                );
            }
            fuel::charge_sort(listed_tokens.len());
            listed_tokens.sort_unstable();
            listed_tokens.dedup();
            suffixes.extend(Suffixes::listed(vocab, &listed_tokens).map(|own| (group[0].0, own)));
        }
        Ok(suffixes)
    }
}
