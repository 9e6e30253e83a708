//! Draft trees: a mask for every node of a speculative tree of tokens.
//!
//! Configurations are stepped from node to node, so a token that several paths share is checked
//! once. The matcher does not move.

use std::sync::Arc;

use super::Matcher;
use super::runtime::count;
use super::termination::{Termination, TokenStep, write_stop_tokens};
use crate::ids::TokenId;
use crate::mask::{MaskState, TokenSet};
use crate::matcher::{AdvanceError, ConfigId, ParserLimit, TransitionUse};

/// Why a draft tree is malformed, or a buffer does not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// The numbers of tokens and parents differ.
    #[error("a draft tree of {tokens} tokens has {parents} parents")]
    Length {
        /// Number of tokens.
        tokens: usize,
        /// Number of parents.
        parents: usize,
    },
    /// A node's parent does not come before it.
    #[error("the parent {parent} of node {node} does not come before it")]
    Order {
        /// Index of the node.
        node: usize,
        /// Index of its parent.
        parent: usize,
    },
    /// The buffer does not have one row for each node.
    #[error("the mask buffer has {got} words instead of {nodes} rows of {words} words")]
    Masks {
        /// Nodes of the tree.
        nodes: usize,
        /// Words of one row.
        words: usize,
        /// Words of the buffer.
        got: usize,
    },
}

/// Tokens that a draft model proposes: one tree, or several.
///
/// ```
/// use louver::{DraftError, DraftTree, TokenId};
///
/// let tokens = [7, 8, 9].map(TokenId::from_raw).to_vec();
/// // Two continuations of token 7: 8 and 9.
/// let tree = DraftTree::new(vec![DraftTree::ROOT, 0, 0], tokens.clone())?;
/// assert_eq!((tree.len(), tree.parents()[2]), (3, 0));
/// assert_eq!(DraftTree::chain(tokens).parents(), [DraftTree::ROOT, 0, 1]);
/// # Ok::<(), DraftError>(())
/// ```
///
/// Invariant: a node's parent comes before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTree {
    parents: Vec<usize>,
    tokens: Vec<TokenId>,
}

impl DraftTree {
    /// The parent of a node that directly follows the tokens that the matcher has taken.
    pub const ROOT: usize = usize::MAX;

    /// A tree in which node `i` is `tokens[i]` after node `parents[i]`. A parent is less than `i`,
    /// or [`DraftTree::ROOT`].
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

    /// A single path: each token follows the one before it.
    pub fn chain(tokens: Vec<TokenId>) -> DraftTree {
        let parents =
            (0..tokens.len()).map(|node| node.checked_sub(1).unwrap_or(Self::ROOT)).collect();
        DraftTree { parents, tokens }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether the tree has no node.
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

    /// The tokens from the root to a node.
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

/// Whether the token of a node may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DraftNode {
    /// The token and all before it may follow. Its row is the mask of the next token.
    Accepted,
    /// As accepted, and the token is a stop token: its row allows stop tokens only.
    Ended,
    /// The token or one before it may not follow. Its row is empty.
    Rejected,
    /// The parser reached a limit at the token or one before it, so the token must not be taken.
    /// Its row is empty.
    Limit,
}

impl DraftNode {
    /// Whether the node's token may be taken.
    pub fn is_accepted(self) -> bool {
        matches!(self, DraftNode::Accepted | DraftNode::Ended)
    }
}

/// A node while its tree is followed.
#[derive(Clone, Debug)]
struct NodeState {
    outcome: DraftNode,
    config: ConfigId,
    /// `None`: stop tokens only if the node is accepted, otherwise nothing.
    mask: Option<Arc<TokenSet>>,
}

impl NodeState {
    /// A node after which no configuration is known.
    fn new(outcome: DraftNode) -> NodeState {
        NodeState { outcome, config: ConfigId::DEAD, mask: None }
    }
}

impl Matcher {
    /// Writes, for every node of a draft, the mask of the token after it. Row `i` is what
    /// [`Matcher::fill_mask`] would write after the tokens on the path to node `i`. Returns for
    /// each node whether its token may follow. The matcher does not move.
    ///
    /// Errors: [`DraftError::Masks`] if the buffer has another length than `tree.len()` rows of
    /// [`Vocabulary::mask_words`](crate::vocab::Vocabulary::mask_words) words. Cost: one step a
    /// node and, for cached masks, one look-up and copy a row; the constraint is locked once.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{
    /// #     DraftNode, DraftTree, Engine, EngineOptions, SchemaOptions, TokenId, Vocabulary,
    /// # };
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"tr", b"ue", b"fa"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let schema = r#"{"type": "boolean"}"#;
    /// let mut matcher = engine.compile_json_schema(schema, &SchemaOptions::default())?.matcher();
    /// let [tr, ue, fa] = [257, 258, 259].map(TokenId::from_raw);
    /// // Either `tr`, then `ue` or `fa`; or `fa`.
    /// const ROOT: usize = DraftTree::ROOT;
    /// let tree = DraftTree::new(vec![ROOT, 0, 0, ROOT], vec![tr, ue, fa, fa])?;
    /// let mut masks = vec![0; tree.len() * vocab.mask_words()];
    /// let nodes = matcher.fill_draft_masks(&tree, &mut masks)?;
    /// let accepted: Vec<bool> = nodes.iter().map(|node| node.is_accepted()).collect();
    /// assert_eq!(accepted, [true, true, false, true]);
    /// assert!(matcher.tokens().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_draft_masks(
        &mut self,
        tree: &DraftTree,
        masks: &mut [u32],
    ) -> Result<Vec<DraftNode>, DraftError> {
        let words = self.vocab().mask_words();
        if masks.len() != tree.len() * words {
            return Err(DraftError::Masks { nodes: tree.len(), words, got: masks.len() });
        }
        count(&self.runtime.counters.draft_nodes, tree.len());
        let states = match self.termination() {
            Some(Termination::Stopped) => Ok(vec![NodeState::new(DraftNode::Rejected); tree.len()]),
            Some(Termination::Limit(_)) => Ok(vec![NodeState::new(DraftNode::Limit); tree.len()]),
            None => self.with_lock(|matcher, state| matcher.follow_tree(state, tree)),
        };
        let rows = masks.chunks_mut(words.max(1));
        let Ok(states) = states else {
            // The whole tree is over a limit; each path alone, with fuel of its own, may not be.
            return Ok(rows
                .enumerate()
                .map(|(node, row)| self.follow_alone(&tree.path(node), row))
                .collect());
        };
        let write = |(state, row): (NodeState, &mut [u32])| {
            match &state.mask {
                Some(mask) => mask.write(row),
                None if state.outcome.is_accepted() => write_stop_tokens(self.vocab(), row),
                None => row.fill(0),
            }
            state.outcome
        };
        Ok(states.into_iter().zip(rows).map(write).collect())
    }

    /// Follows the whole tree. Fails if memory or fuel runs out, which the nodes share; other
    /// limits concern one node only.
    fn follow_tree(
        &self,
        state: &mut MaskState,
        tree: &DraftTree,
    ) -> Result<Vec<NodeState>, ParserLimit> {
        let masks = &self.masks;
        let with_limit = |outcome, limit| match limit {
            ParserLimit::Memory | ParserLimit::Fuel => Err(limit),
            _ => Ok(NodeState::new(outcome)),
        };
        let mut states: Vec<NodeState> = Vec::with_capacity(tree.len());
        for (&parent, &token) in tree.parents.iter().zip(&tree.tokens) {
            let before = match states.get(parent) {
                None => self.config(),
                Some(NodeState { outcome: DraftNode::Accepted, config, .. }) => *config,
                Some(NodeState { outcome, .. }) => {
                    let outcome = if *outcome == DraftNode::Limit {
                        DraftNode::Limit
                    } else {
                        DraftNode::Rejected
                    };
                    states.push(NodeState::new(outcome));
                    continue;
                }
            };
            let step = TokenStep::find(masks, state, before, token, TransitionUse::Skip);
            states.push(match step {
                Err(limit) => with_limit(DraftNode::Limit, limit)?,
                Ok(TokenStep::Stop) => NodeState::new(DraftNode::Ended),
                Ok(TokenStep::Rejected(_)) => NodeState::new(DraftNode::Rejected),
                Ok(TokenStep::Next(config)) => match masks.mask(state, config) {
                    Ok(mask) => {
                        NodeState { outcome: DraftNode::Accepted, config, mask: Some(mask) }
                    }
                    // As in `fill_mask`: the token may follow, but the mask after it is unknown.
                    Err(limit) => NodeState { config, ..with_limit(DraftNode::Accepted, limit)? },
                },
            });
        }
        Ok(states)
    }

    /// Follows the path to one node with a fork of the matcher.
    fn follow_alone(&self, path: &[TokenId], row: &mut [u32]) -> DraftNode {
        let mut fork = self.clone();
        for &token in path {
            match fork.advance(token) {
                Ok(()) => {}
                Err(error) => {
                    row.fill(0);
                    let limit = matches!(error, AdvanceError::Limit { .. });
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
