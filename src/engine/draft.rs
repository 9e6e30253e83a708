//! Masks for every node of a speculative tree of tokens.

use std::sync::Arc;

use super::shared::count;
use super::{Matcher, stops_only};
use crate::ids::TokenId;
use crate::mask::{Index, IndexState, TokenSet};
use crate::matcher::{ConfigId, DEAD, ParserLimit};

/// Why a list of nodes is no tree, or a buffer does not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// There is not one parent a token.
    #[error("{tokens} tokens and {parents} parents")]
    Length {
        /// Tokens given.
        tokens: usize,
        /// Parents given.
        parents: usize,
    },
    /// A node's parent does not come before it.
    #[error("node {node} has parent {parent}, which does not come before it")]
    Order {
        /// The node.
        node: usize,
        /// Its parent.
        parent: usize,
    },
    /// The buffer does not have one row a node.
    #[error("{got} words of masks for {nodes} nodes of {words} words")]
    Masks {
        /// Nodes of the tree.
        nodes: usize,
        /// Words of a row.
        words: usize,
        /// Words given.
        got: usize,
    },
}

/// Tokens that a draft model proposes to follow: a tree, or several. Invariant: a node's parent comes before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTree {
    parents: Vec<usize>,
    tokens: Vec<TokenId>,
}

impl DraftTree {
    /// The parent of a node that directly follows what the matcher has taken.
    pub const ROOT: usize = usize::MAX;

    /// Node `i` is `tokens[i]` after node `parents[i]`, which is less than `i`, or [`DraftTree::ROOT`].
    pub fn new(parents: Vec<usize>, tokens: Vec<TokenId>) -> Result<DraftTree, DraftError> {
        if parents.len() != tokens.len() {
            return Err(DraftError::Length { tokens: tokens.len(), parents: parents.len() });
        }
        match parents
            .iter()
            .enumerate()
            .find(|&(node, &parent)| parent != Self::ROOT && parent >= node)
        {
            Some((node, &parent)) => Err(DraftError::Order { node, parent }),
            None => Ok(DraftTree { parents, tokens }),
        }
    }

    /// One token after the other.
    pub fn chain(tokens: Vec<TokenId>) -> DraftTree {
        let parents =
            (0..tokens.len()).map(|node| node.checked_sub(1).unwrap_or(Self::ROOT)).collect();
        DraftTree { parents, tokens }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The token of each node.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The parent of each node.
    pub fn parents(&self) -> &[usize] {
        &self.parents
    }

    /// The tokens from the root to a node, in this order.
    fn path(&self, mut node: usize) -> Vec<TokenId> {
        let mut path = Vec::new();
        while node != Self::ROOT {
            path.push(self.tokens[node]);
            node = self.parents[node];
        }
        path.reverse();
        path
    }
}

/// What became of a node of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DraftNode {
    /// Its token and all before it may follow; its row is the mask of what may follow it.
    Accepted,
    /// As accepted, and its token is a stop token: its row allows only stop tokens.
    Ended,
    /// Its token or one before it may not follow; its row is empty.
    Rejected,
    /// The parser ran into a limit at its token or one before it: not decided, not to be accepted; its row is empty.
    Limit,
}

impl DraftNode {
    /// Whether the node's token may be taken.
    pub fn is_accepted(self) -> bool {
        matches!(self, DraftNode::Accepted | DraftNode::Ended)
    }
}

/// Where a node is.
#[derive(Clone, Debug)]
struct Place {
    node: DraftNode,
    config: ConfigId,
    /// None: only stop tokens, or nothing.
    mask: Option<Arc<TokenSet>>,
}

impl Matcher {
    /// Writes, for every node of a draft, the mask of the token after it: row `i` is what [`Matcher::fill_mask`] would write
    /// after the tokens on the path to node `i`. Tells per node whether its token may follow. The matcher stays where it is.
    ///
    /// Cost: one step a node and one look-up a row for known masks; the constraint is locked once.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::engine::{DraftNode, DraftTree, Engine, EngineOptions};
    /// # use louver::front::json_schema::SchemaOptions;
    /// # use louver::ids::TokenId;
    /// # use louver::vocab::Vocabulary;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"tr", b"ue", b"fa"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let mut matcher = engine.compile_json_schema(r#"{"type": "boolean"}"#, &SchemaOptions::default())?.matcher();
    /// let [tr, ue, fa] = [257, 258, 259].map(TokenId::from_raw);
    /// // Either `tr`, then `ue` or `fa`; or `fa`.
    /// let tree = DraftTree::new(vec![DraftTree::ROOT, 0, 0, DraftTree::ROOT], vec![tr, ue, fa, fa])?;
    /// let mut masks = vec![0; tree.len() * vocab.mask_words()];
    /// let nodes = matcher.fill_draft_masks(&tree, &mut masks)?;
    /// assert_eq!(nodes, [DraftNode::Accepted, DraftNode::Accepted, DraftNode::Rejected, DraftNode::Accepted]);
    /// assert!(matcher.tokens().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_draft_masks(
        &mut self,
        tree: &DraftTree,
        masks: &mut [u32],
    ) -> Result<Vec<DraftNode>, DraftError> {
        let index = self.index.clone();
        let words = index.vocab.mask_words();
        if masks.len() != tree.len() * words {
            return Err(DraftError::Masks { nodes: tree.len(), words, got: masks.len() });
        }
        count(&self.shared.counters.draft_nodes, tree.len());
        let places = if self.is_over() {
            let nothing = if self.terminated { DraftNode::Rejected } else { DraftNode::Limit };
            Ok(vec![Place { node: nothing, config: DEAD, mask: None }; tree.len()])
        } else {
            let mut state = index.lock();
            self.with_retry(&index, &mut state, |matcher, state| {
                matcher.places(&index, state, tree)
            })
        };
        let rows = masks.chunks_mut(words.max(1));
        let Ok(places) = places else {
            // All nodes together need more memory than there may be; each path alone may not.
            return Ok(rows
                .enumerate()
                .map(|(node, row)| self.draft_alone(&tree.path(node), row))
                .collect());
        };
        let write = |(place, row): (Place, &mut [u32])| {
            match &place.mask {
                Some(mask) => mask.write(row),
                None if place.node.is_accepted() => stops_only(&index.vocab, row),
                None => row.fill(0),
            }
            place.node
        };
        Ok(places.into_iter().zip(rows).map(write).collect())
    }

    /// Follows the whole tree. Fails where memory runs out; other limits are a node's own.
    fn places(
        &self,
        index: &Index,
        state: &mut IndexState,
        tree: &DraftTree,
    ) -> Result<Vec<Place>, ParserLimit> {
        let own = |node, limit| match limit {
            ParserLimit::Memory => Err(limit),
            _ => Ok(Place { node, config: DEAD, mask: None }),
        };
        let mut places: Vec<Place> = Vec::with_capacity(tree.len());
        for (&parent, &token) in tree.parents.iter().zip(&tree.tokens) {
            let before = match places.get(parent) {
                None => self.config(),
                Some(Place { node: DraftNode::Accepted, config, .. }) => *config,
                Some(Place { node, .. }) => {
                    let node = if *node == DraftNode::Limit {
                        DraftNode::Limit
                    } else {
                        DraftNode::Rejected
                    };
                    places.push(Place { node, config: DEAD, mask: None });
                    continue;
                }
            };
            let complete = state.parser.store().done(before).root;
            places.push(match state.step_token(index, before, token) {
                Err(limit) => own(DraftNode::Limit, limit)?,
                Ok((DEAD, _)) if complete && index.vocab.is_stop(token) => {
                    Place { node: DraftNode::Ended, config: DEAD, mask: None }
                }
                Ok((DEAD, _)) => Place { node: DraftNode::Rejected, config: DEAD, mask: None },
                Ok((config, _)) => match index.mask(state, config) {
                    Ok(mask) => Place { node: DraftNode::Accepted, config, mask: Some(mask) },
                    // As `fill_mask`: the token is fine, what follows is not known.
                    Err(limit) => Place { config, ..own(DraftNode::Accepted, limit)? },
                },
            });
        }
        Ok(places)
    }

    /// One node by a fork that takes the path to it.
    fn draft_alone(&self, path: &[TokenId], row: &mut [u32]) -> DraftNode {
        let mut fork = self.clone();
        for &token in path {
            match fork.advance(token) {
                Ok(()) => {}
                Err(error) => {
                    row.fill(0);
                    let limit = matches!(error, crate::matcher::AdvanceError::Limit { .. });
                    return if limit { DraftNode::Limit } else { DraftNode::Rejected };
                }
            }
        }
        fork.fill_mask(row);
        if fork.is_terminated() { DraftNode::Ended } else { DraftNode::Accepted }
    }
}

#[cfg(test)]
mod tests;
