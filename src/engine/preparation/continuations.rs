//! What may follow a configuration on likely paths, grouped by where it leads.

use std::sync::Arc;

use super::byte_groups::{
    ByteGroup, discount_unlikely_triggers, estimate_members, group_bytes, is_name_byte,
    special_continuations,
};
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::ids::SpecialId;
use crate::matcher::{ConfigId, Parser, ParserLimit};

/// Minimum number of bytes of a group that counts as free text; it must contain letters.
const MIN_TEXT_BYTES: usize = 48;
/// A group of fewer name bytes is a member name, or another known word.
const MAX_NAME_CHOICES: usize = 8;

/// How a configuration relates to free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// No large group of bytes contains letters.
    NotText,
    /// Free text: most bytes lead back to the same representative.
    Returns,
    /// Most bytes lead to another configuration: free text begins, or its length is bounded.
    Enters,
}

/// What may follow a configuration, grouped by where it leads.
#[derive(Debug)]
pub(super) struct Continuations {
    pub(super) groups: Vec<ByteGroup>,
    /// Special tokens that may follow, with where they lead.
    pub(super) specials: Vec<(SpecialId, ConfigId)>,
    /// Index of the first group of text bytes.
    pub(super) text: Option<usize>,
    /// What that group leads to.
    pub(super) text_kind: TextKind,
    /// Whether a small group has name bytes only: a member name, or another known word, goes on.
    pub(super) in_name: bool,
    /// Whether free text ends in a prefix of a trigger that may go on.
    pub(super) in_trigger: bool,
}

/// Memoised continuations of the configurations that a search explores, and the steps that it
/// takes.
pub(super) struct ContinuationMemo {
    explored: HashMap<ConfigId, Arc<Continuations>>,
    /// Configurations explored, at ends and inside of tokens.
    steps: usize,
    /// The budget for `steps`.
    max_steps: usize,
}

impl ContinuationMemo {
    /// An empty memo with a budget of steps.
    pub(super) fn new(max_steps: usize) -> ContinuationMemo {
        ContinuationMemo { explored: HashMap::default(), steps: 0, max_steps }
    }

    /// Whether the budget of steps is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.steps >= self.max_steps
    }

    /// What may follow a configuration. Memoised. Cost of a new one: a transition for each group.
    pub(super) fn get(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<Arc<Continuations>, ParserLimit> {
        if let Some(explored) = self.explored.get(&config) {
            return Ok(explored.clone());
        }
        self.steps += 1;
        let pending = parser.pending_trigger_bytes(config);
        let mut groups = group_bytes(parser, config, pending)?;
        let in_name = groups.iter().any(|group| {
            group.bytes.len() < MAX_NAME_CHOICES && group.bytes.iter().all(is_name_byte)
        });
        let in_trigger = pending > 0 && groups.iter().any(|group| group.advances_trigger);
        let letters = ByteSet::range(b'a', b'z').union(&ByteSet::range(b'A', b'Z'));
        let text = groups
            .iter()
            .position(|group| group.bytes.len() >= MIN_TEXT_BYTES && group.bytes.meets(&letters));
        let text_kind = match text.map(|text| groups[text].to) {
            None => TextKind::NotText,
            Some(to) if parser.canonical(to) == parser.canonical(config) => TextKind::Returns,
            Some(_) => TextKind::Enters,
        };
        estimate_members(parser, &mut groups);
        discount_unlikely_triggers(parser, config, &mut groups);
        let specials = special_continuations(parser, config)?;
        let continuations =
            Arc::new(Continuations { groups, specials, text, text_kind, in_name, in_trigger });
        self.explored.insert(config, continuations.clone());
        Ok(continuations)
    }
}
