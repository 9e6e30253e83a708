//! What may follow a configuration on likely paths, grouped by where it leads.

use std::sync::Arc;

use super::byte_groups::{
    ByteGroup, CLASS_OF, LETTER_CLASS, NAME_CLASSES, discount_spelled_specials,
    discount_unlikely_triggers, estimate_members, group_bytes, special_continuations,
};
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::ids::SpecialId;
use crate::matcher::{ConfigId, Parser, ParserLimit};

/// Minimum number of bytes of a group that counts as free text; it must contain letters.
const MIN_TEXT_BYTES: usize = 48;
/// In a group of this many bytes or more, a token may end after any of them: no longer token is
/// searched.
pub(super) const MANY_BYTES: usize = 8;
/// Marks a byte that is in no group.
const NO_GROUP: u8 = u8::MAX;
/// Number of items of the next configurations that counts as one more step: in ambiguous grammars
/// transitions are costly.
const ITEMS_PER_STEP: usize = 8;
/// Growth of the parser, in bytes, that counts as one more step.
const BYTES_PER_STEP: usize = 4096;

/// How a configuration relates to free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// No large group of bytes contains letters.
    NotText,
    /// Free text: most bytes lead back to the same representative.
    Returns,
    /// Most bytes lead to a configuration that reads free text.
    Enters,
    /// Text with a bounded length: most bytes lead to another configuration of the text.
    Counted,
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
    /// By byte: the index of its group, or [`NO_GROUP`].
    pub(super) group_of_byte: [u8; 256],
    /// Whether a small group has name bytes only: a member name, or another known word, goes on.
    pub(super) in_name: bool,
    /// Whether free text ends in a prefix of a trigger that may go on.
    pub(super) in_trigger: bool,
}

/// Memoised continuations of the configurations that a search explores, and the steps that it
/// takes.
pub(super) struct ContinuationMemo {
    explored: HashMap<ConfigId, Arc<Continuations>>,
    /// Answers of [`ContinuationMemo::returns_on_text`] for other configurations.
    text_loops: HashMap<ConfigId, bool>,
    /// Configurations explored, at ends and inside of tokens, and the growth charged as such.
    steps: usize,
    /// The budget for `steps`.
    max_steps: usize,
}

impl ContinuationMemo {
    /// An empty memo with a budget of steps.
    pub(super) fn new(max_steps: usize) -> ContinuationMemo {
        ContinuationMemo {
            explored: HashMap::default(),
            text_loops: HashMap::default(),
            steps: 0,
            max_steps,
        }
    }

    /// Charges the growth of the parser, in bytes, as steps: in ambiguous grammars it measures the
    /// cost of masks.
    pub(super) fn charge_growth(&mut self, bytes: usize) {
        self.steps = self.steps.saturating_add(bytes / BYTES_PER_STEP);
    }

    /// Whether the budget of steps is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.steps >= self.max_steps
    }

    /// Whether an expanded configuration reads free text that leads back to it.
    pub(super) fn loops_on_text(&self, config: ConfigId) -> bool {
        self.explored
            .get(&config)
            .is_some_and(|continuations| continuations.text_kind == TextKind::Returns)
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
        let (mut groups, items) = group_bytes(parser, config, pending)?;
        let mut group_of_byte = [NO_GROUP; 256];
        for (number, group) in groups.iter_mut().enumerate() {
            let number = u8::try_from(number).unwrap_or(NO_GROUP);
            for byte in group.bytes.iter() {
                group_of_byte[usize::from(byte)] = number;
                group.classes |= 1 << CLASS_OF[usize::from(byte)];
            }
        }
        let in_name = groups
            .iter()
            .any(|group| group.bytes.len() < MANY_BYTES && group.classes & !NAME_CLASSES == 0);
        self.steps += items / ITEMS_PER_STEP;
        let in_trigger = pending > 0 && groups.iter().any(|group| group.advances_trigger);
        let text = groups.iter().position(|group| {
            group.bytes.len() >= MIN_TEXT_BYTES && group.classes & LETTER_CLASS != 0
        });
        let text_kind = match text.map(|text| groups[text].to) {
            None => TextKind::NotText,
            Some(to) if parser.canonical(to) == parser.canonical(config) => TextKind::Returns,
            Some(to) => match self.returns_on_text(parser, to)? {
                true => TextKind::Enters,
                false => TextKind::Counted,
            },
        };
        estimate_members(parser, &mut groups);
        discount_unlikely_triggers(parser, config, &mut groups);
        let specials = special_continuations(parser, config)?;
        discount_spelled_specials(parser, &specials, &mut groups);
        let continuations = Arc::new(Continuations {
            groups,
            specials,
            text,
            text_kind,
            group_of_byte,
            in_name,
            in_trigger,
        });
        self.explored.insert(config, continuations.clone());
        Ok(continuations)
    }

    /// Whether most bytes lead a configuration back to its own representative. Memoised.
    fn returns_on_text(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<bool, ParserLimit> {
        if let Some(explored) = self.explored.get(&config) {
            return Ok(explored.text_kind == TextKind::Returns);
        }
        if let Some(&explored) = self.text_loops.get(&config) {
            return Ok(explored);
        }
        let letters = ByteSet::range(b'a', b'z');
        let text = parser
            .bytes_by_edges(config)
            .into_iter()
            .find(|bytes| bytes.len() >= MIN_TEXT_BYTES && bytes.meets(&letters));
        let mut is_text = false;
        if let Some(byte) = text.and_then(|text| text.iter().next()) {
            let to = parser.step(config, byte)?;
            is_text = parser.canonical(to) == parser.canonical(config);
        }
        self.text_loops.insert(config, is_text);
        Ok(is_text)
    }
}
