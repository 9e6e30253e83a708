//! Adaptive token-mask entries (XGrammar): what one automaton state does with each token of the
//! vocabulary, regardless of its context.
//!
//! An entry is found with an *isolated item*: the state, with an unknown frame. It divides the
//! vocabulary in three. *Accepted* tokens are read inside the rule. *Context-dependent* tokens
//! leave the rule on the way, so that what follows the rule decides; they are kept as [`Suffixes`]
//! after each exit. All other tokens are rejected.
//!
//! Entries are built by a walk of the whole vocabulary, or derived from another entry by a walk
//! where the two differ. See docs/internals/MASK_ENTRIES.md.
//!
//! Source: Dong et al., XGrammar: Flexible and Efficient Structured Generation Engine for Large
//! Language Models, 2024.

use std::sync::Arc;

use super::counter_profile::CounterProfile;
use super::entry_difference::EntryDifference;
use super::shape_walk::ShapeWalk;
use super::suffixes::{SuffixWalk, Suffixes};
use super::token_set::{TokenSet, bit, clear_bit, set_bit};
use super::trie_walk::{TrieWalk, WalkCheckpoint, WalkError};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, CounterDistance, Exit, Parser};
use crate::vocab::{NodeId, Tree, Vocabulary};

/// Up to so many trie nodes, exits of the shape walk are moved to the trie.
const FEW_SOURCES: usize = 1 << 14;

/// The context-dependent tokens of an entry.
#[derive(Debug)]
enum ContextDependent {
    /// By exit, the suffixes that what follows decides.
    Suffixes(Box<[(Exit, Suffixes)]>),
    /// As another entry, without its suffixes of some tokens, and with further ones.
    Derived { base: Arc<MaskEntry>, excluded: ExcludedTokens, added: Box<[(Exit, Suffixes)]> },
    /// As the profile of a counted block says for this distance from the bounds.
    Counted { profile: Arc<CounterProfile>, distance: CounterDistance },
}

/// The tokens for which a base entry's suffixes do not apply.
#[derive(Debug)]
pub(crate) enum ExcludedTokens {
    /// Few tokens, sorted.
    List(Box<[TokenId]>),
    /// A row, where a list would be larger.
    Row(Box<[u32]>),
}

impl ExcludedTokens {
    /// The set of these tokens of a vocabulary whose rows have this many words.
    fn new(mut tokens: Vec<TokenId>, words: usize) -> ExcludedTokens {
        if tokens.len() > words {
            let mut row = vec![0; words];
            tokens.iter().for_each(|&id| set_bit(&mut row, id));
            return ExcludedTokens::Row(row.into());
        }
        tokens.sort_unstable();
        tokens.dedup();
        ExcludedTokens::List(tokens.into())
    }

    fn contains(&self, id: TokenId) -> bool {
        match self {
            ExcludedTokens::List(tokens) => tokens.binary_search(&id).is_ok(),
            ExcludedTokens::Row(row) => bit(row, id),
        }
    }

    /// Whether a row has any of the tokens.
    fn intersects(&self, row: &[u32]) -> bool {
        match self {
            ExcludedTokens::List(tokens) => tokens.iter().any(|&id| bit(row, id)),
            ExcludedTokens::Row(excluded) => row.iter().zip(excluded).any(|(a, b)| a & b != 0),
        }
    }

    /// A row without the tokens.
    fn reduced(&self, row: &[u32]) -> Arc<[u32]> {
        let mut reduced = row.to_vec();
        match self {
            ExcludedTokens::List(tokens) => {
                tokens.iter().for_each(|&id| clear_bit(&mut reduced, id));
            }
            ExcludedTokens::Row(excluded) => {
                reduced.iter_mut().zip(excluded).for_each(|(word, out)| *word &= !out);
            }
        }
        reduced.into()
    }

    /// Removes the tokens from what a walk has found after its first tokens and rows.
    pub(crate) fn remove_from(&self, walk: &mut TrieWalk, from: WalkCheckpoint) {
        let mut at = from.tokens;
        while at < walk.tokens.len() {
            if self.contains(walk.tokens[at]) {
                walk.tokens.swap_remove(at);
            } else {
                at += 1;
            }
        }
        for row in &mut walk.rows[from.rows..] {
            if self.intersects(row) {
                *row = self.reduced(row);
            }
        }
    }

    fn bytes(&self) -> usize {
        4 * match self {
            ExcludedTokens::List(tokens) => tokens.len(),
            ExcludedTokens::Row(row) => row.len(),
        }
    }
}

/// The mask entry of one state: accepted tokens and context-dependent tokens. All others are
/// rejected.
#[derive(Debug)]
pub(crate) struct MaskEntry {
    pub(crate) accepted: TokenSet,
    context_dependent: ContextDependent,
    /// Exits after which tokens are context-dependent.
    exits: Box<[Exit]>,
}

impl MaskEntry {
    fn new(accepted: TokenSet, context_dependent: ContextDependent) -> MaskEntry {
        let exits = context_dependent.exits().into();
        MaskEntry { accepted, context_dependent, exits }
    }

    /// Walks the whole vocabulary with an isolated item. `all` is the row of every token with text.
    pub(crate) fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        all: &Arc<[u32]>,
        isolated: ConfigId,
    ) -> Result<MaskEntry, WalkError> {
        let shape_walk = ShapeWalk::walk(parser, vocab, isolated)?;
        let accepted = shape_walk.accepted(vocab, all);
        let (mut shape_exits, mut exits) = (shape_walk.exits, shape_walk.on_trie.exits);
        // A few exits are moved to the trie, which has the remaining tokens in order.
        let shapes = vocab.shape_tree();
        let sources =
            shape_exits.iter().map(|&(_, node)| shapes.sources(node).len()).sum::<usize>();
        if sources <= FEW_SOURCES {
            let to_sources =
                |(exit, node)| shapes.sources(node).iter().map(move |&source| (exit, source));
            exits.extend(shape_exits.drain(..).flat_map(to_sources));
        }
        let exits_by_tree = [(shapes.tree(), shape_exits), (&**vocab.trie(), exits)];
        let context_dependent = ContextDependent::below(vocab, exits_by_tree, &accepted);
        Ok(MaskEntry::new(accepted, context_dependent))
    }

    /// Derives the entry of a state most of whose bytes lead to where the isolated item `base_item`
    /// loops. `base` is that item's entry. Walks only where the two states differ. Example: a key
    /// that must not be declared is any key, except along the declared ones.
    pub(crate) fn derive(
        parser: &mut Parser,
        vocab: &Vocabulary,
        base: &Arc<MaskEntry>,
        isolated: ConfigId,
        base_item: ConfigId,
    ) -> Result<MaskEntry, WalkError> {
        let mut diff = EntryDifference::default();
        diff.walk(parser, vocab.trie(), isolated, base_item)?;
        let accepted =
            base.accepted.with_changes(&diff.only_base, &diff.only_this, vocab.mask_words());
        let excluded = ExcludedTokens::new(std::mem::take(&mut diff.excluded), vocab.mask_words());
        let added = diff.own_suffixes(vocab, &accepted)?;
        Ok(MaskEntry::new(
            accepted,
            ContextDependent::Derived { base: base.clone(), excluded, added: added.into() },
        ))
    }

    /// The entry of a state in a counted block, for a counter at this distance from its bounds.
    pub(crate) fn counted(profile: Arc<CounterProfile>, distance: CounterDistance) -> MaskEntry {
        MaskEntry::new(profile.accepted(distance), ContextDependent::Counted { profile, distance })
    }

    /// Memory in use, in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        let context_dependent = match &self.context_dependent {
            ContextDependent::Suffixes(suffixes) => suffixes_bytes(suffixes),
            ContextDependent::Derived { excluded, added, .. } => {
                excluded.bytes() + suffixes_bytes(added)
            }
            ContextDependent::Counted { profile, .. } => {
                profile.bytes() / Arc::strong_count(profile).clamp(1, 16)
            }
        };
        self.accepted.bytes() + context_dependent + 96
    }

    /// Exits after which tokens are context-dependent.
    pub(crate) fn exits(&self) -> &[Exit] {
        &self.exits
    }

    /// The base entry of a derived one, and the tokens for which its suffixes do not apply.
    pub(crate) fn base(&self) -> Option<(&Arc<MaskEntry>, &ExcludedTokens)> {
        match &self.context_dependent {
            ContextDependent::Derived { base, excluded, .. } => Some((base, excluded)),
            _ => None,
        }
    }

    /// Adds to `walk` the context-dependent tokens after an exit that `next` completes, apart from
    /// those of the base entry.
    pub(crate) fn resolve(
        &self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        exit: Exit,
        next: ConfigId,
        walk: &mut SuffixWalk<'_>,
    ) -> Result<(), WalkError> {
        match &self.context_dependent {
            ContextDependent::Suffixes(suffixes)
            | ContextDependent::Derived { added: suffixes, .. } => {
                let mut after_exit = suffixes.iter().filter(|(e, _)| *e == exit);
                after_exit.try_for_each(|(_, suffixes)| suffixes.resolve(parser, vocab, next, walk))
            }
            // A profile is resolved with the whole configuration.
            ContextDependent::Counted { profile, distance } => {
                profile.resolve(parser, *distance, next, walk.out)
            }
        }
    }
}

impl ContextDependent {
    /// Exits after which tokens are context-dependent, sorted.
    fn exits(&self) -> Vec<Exit> {
        match self {
            ContextDependent::Suffixes(suffixes) => {
                let mut exits: Vec<Exit> = suffixes.iter().map(|(exit, _)| *exit).collect();
                exits.sort_unstable();
                exits.dedup();
                exits
            }
            ContextDependent::Derived { base, added, .. } => {
                let mut exits = base.exits().to_vec();
                exits.extend(added.iter().map(|(exit, _)| *exit));
                exits.sort_unstable();
                exits.dedup();
                exits
            }
            ContextDependent::Counted { .. } => vec![Exit::End],
        }
    }

    /// The suffixes below these nodes of several trees, without accepted tokens. Free text may end
    /// after any of its bytes, and nearly everything below is accepted anyway.
    fn below<const N: usize>(
        vocab: &Vocabulary,
        exits_by_tree: [(&Tree, Vec<(Exit, NodeId)>); N],
        accepted: &TokenSet,
    ) -> ContextDependent {
        if exits_by_tree.iter().all(|(_, exits)| exits.is_empty()) {
            return ContextDependent::Suffixes(Box::default());
        }
        let row = accepted.to_row(vocab.mask_words());
        let mut suffixes = Vec::new();
        for (tree, exits) in exits_by_tree {
            suffixes.extend(Suffixes::by_exit(vocab, tree, &row, exits));
        }
        ContextDependent::Suffixes(suffixes.into())
    }
}

fn suffixes_bytes(suffixes: &[(Exit, Suffixes)]) -> usize {
    suffixes.iter().map(|(_, of_exit)| of_exit.bytes()).sum()
}
