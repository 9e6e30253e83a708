//! The walk of grammar and token trie together that finds where the next token is likely to end.

use super::byte_groups::character_kind;
use super::continuations::ContinuationMemo;
use super::frontier::Candidate;
use super::token_branches::TokenBranch;
use crate::matcher::{ConfigId, Parser, ParserLimit, Symbol};
use crate::vocab::{NodeId, Trie};

/// Least likelihood, relative to the start of a token, at which a partial token is followed.
const MIN_TOKEN_LIKELIHOOD: f64 = 1e-3;
/// Likelihood that a token ends although a longer one would go on: at the end of a word, and inside
/// of one.
const EARLY_END: (f64, f64) = (0.02, 0.001);
/// Most trie nodes visited while one candidate is expanded.
const MAX_TRIE_NODES: usize = 512;

/// A state of the walk: a trie node, the configuration there, and the path to it.
struct PartialToken {
    config: ConfigId,
    node: NodeId,
    likelihood: f64,
    path: Vec<Symbol>,
    /// Length of the longest prefix of the path that is a token, and the configuration it leads to.
    longest_token: Option<(usize, ConfigId)>,
}

/// Configurations that tokens lead to from a candidate.
#[derive(Default)]
pub(super) struct TokenTargets {
    pub(super) list: Vec<TokenTarget>,
}

/// A configuration that tokens lead to.
pub(super) struct TokenTarget {
    pub(super) to: ConfigId,
    /// Sum over the tokens found.
    pub(super) likelihood: f64,
    /// Likelihood of the token in `path`, the likeliest one.
    best_path_likelihood: f64,
    pub(super) path: Vec<Symbol>,
}

impl TokenTargets {
    /// Adds a token that leads to `to`.
    pub(super) fn add(&mut self, to: ConfigId, likelihood: f64, path: &[Symbol]) {
        match self.list.iter_mut().find(|target| target.to == to) {
            Some(target) => {
                target.likelihood += likelihood;
                if likelihood > target.best_path_likelihood {
                    (target.best_path_likelihood, target.path) = (likelihood, path.to_vec());
                }
            }
            None => self.list.push(TokenTarget {
                to,
                likelihood,
                best_path_likelihood: likelihood,
                path: path.to_vec(),
            }),
        }
    }
}

/// The walk from one candidate.
pub(super) struct TokenWalk<'w> {
    trie: &'w Trie,
    candidate: &'w Candidate,
    stack: Vec<PartialToken>,
    found: TokenTargets,
}

impl<'w> TokenWalk<'w> {
    /// A walk that has not begun.
    pub(super) fn new(trie: &'w Trie, candidate: &'w Candidate) -> TokenWalk<'w> {
        let begin = PartialToken {
            config: candidate.config,
            node: NodeId::ROOT,
            likelihood: 1.0,
            path: Vec::new(),
            longest_token: None,
        };
        TokenWalk { trie, candidate, stack: vec![begin], found: TokenTargets::default() }
    }

    /// Walks until no partial token is left. A token ends where no longer one is likely, and, with
    /// a small likelihood, earlier.
    pub(super) fn run(
        mut self,
        parser: &mut Parser,
        memo: &mut ContinuationMemo,
    ) -> Result<TokenTargets, ParserLimit> {
        let mut visited = 0;
        while let Some(partial) = self.stack.pop() {
            visited += 1;
            if visited > MAX_TRIE_NODES || memo.is_spent() {
                break;
            }
            let last = partial.path.last().map_or(self.candidate.last_byte, |symbol| symbol.byte());
            let continuations = memo.get(parser, partial.config)?;
            let branches = continuations.branches(self.trie, partial.node, last);
            if let (true, Some((len, to))) = (branches.is_empty(), partial.longest_token) {
                self.found.add(to, partial.likelihood, &partial.path[..len]);
            }
            for branch in branches {
                self.follow(parser, &partial, last, &branch)?;
            }
        }
        Ok(self.found)
    }

    /// Follows one branch of a partial token whose last byte is `last`.
    fn follow(
        &mut self,
        parser: &mut Parser,
        partial: &PartialToken,
        last: Option<u8>,
        branch: &TokenBranch,
    ) -> Result<(), ParserLimit> {
        let PartialToken { path, longest_token, .. } = partial;
        let likelihood = partial.likelihood * branch.likelihood;
        if let (Some((len, to)), Symbol::Byte(byte), Some(_)) =
            (*longest_token, branch.symbol, branch.child)
            && len == path.len()
        {
            let word_ends = last.is_some_and(|last| character_kind(last) != character_kind(byte));
            let early_end = if word_ends { EARLY_END.0 } else { EARLY_END.1 };
            self.found.add(to, likelihood * early_end, path);
        }
        if likelihood < MIN_TOKEN_LIKELIHOOD {
            return Ok(());
        }
        match (branch.symbol, branch.child) {
            (Symbol::Special(_), _) if path.is_empty() => {
                self.found.add(branch.to, likelihood, &[branch.symbol]);
            }
            (Symbol::Byte(byte), Some(child)) => {
                // Where values are compared, the bytes of a group lead to different configurations.
                let to = parser.step(partial.config, byte)?;
                if to != ConfigId::DEAD {
                    self.descend(partial, branch.symbol, to, child, likelihood);
                }
            }
            _ => {
                if let Some((len, to)) = *longest_token {
                    self.found.add(to, likelihood, &path[..len]);
                }
            }
        }
        Ok(())
    }

    /// Goes on with a partial token at a child of its trie node, or ends it there. `to`: the
    /// configuration after `symbol`.
    fn descend(
        &mut self,
        partial: &PartialToken,
        symbol: Symbol,
        to: ConfigId,
        child: NodeId,
        likelihood: f64,
    ) {
        let mut path = partial.path.clone();
        path.push(symbol);
        let is_token = !self.trie.tokens_at(child).is_empty();
        if is_token && self.trie.is_leaf(child) {
            self.found.add(to, likelihood, &path);
            return;
        }
        let longest_token = if is_token { Some((path.len(), to)) } else { partial.longest_token };
        self.stack.push(PartialToken { config: to, node: child, likelihood, path, longest_token });
    }
}
