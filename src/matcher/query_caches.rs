//! Caches of queries about configurations, and what the queries answer.

use super::store::{ConfigId, FrameId};
use crate::capacity::{IdTable, ReserveMore};
use crate::hash::HashMap;
use crate::ids::SpecialId;

/// Cached steps of the parser other than over bytes.
#[derive(Debug, Default)]
pub(super) struct StepCaches {
    /// Over special tokens.
    pub(super) specials: HashMap<(ConfigId, SpecialId), ConfigId>,
    /// See [`super::parser::Parser::after_frame`]; the flag is [`super::parser::Parser::relaxed`].
    pub(super) after_frames: HashMap<(FrameId, bool), ConfigId>,
    /// See [`super::parser::Parser::token_ended`].
    pub(super) token_ends: HashMap<ConfigId, ConfigId>,
}

impl StepCaches {
    /// Drops all steps.
    pub(super) fn clear(&mut self) {
        self.specials.clear();
        self.after_frames.clear();
        self.token_ends.clear();
    }

    /// Reserves capacity; see [`crate::capacity`].
    pub(super) fn reserve_more(&mut self) {
        self.token_ends.reserve_more();
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.specials.len() + self.after_frames.len() + self.token_ends.len()) * 16
    }
}

/// Answers to mask construction, by configuration.
#[derive(Debug, Default)]
pub(super) struct QueryCaches {
    /// See [`super::parser::Parser::loops_on`].
    pub(super) self_loops: IdTable<ConfigId, SelfLoops>,
    /// See [`super::parser::Parser::reads_all_texts`].
    pub(super) universal: IdTable<ConfigId, UniversalText>,
    /// Configurations (or equivalent items) built by universal-text queries so far. It only grows.
    pub(super) universal_work: usize,
    /// See [`super::parser::Parser::is_uniform_shape`].
    pub(super) uniform_shapes: IdTable<ConfigId, UniformShapes>,
    /// Canonical configurations of counted blocks far from their bounds. Key: the configuration as
    /// it was read in isolation, and the frame; see [`super::parser::Parser::step_within_block`].
    pub(super) far_canonical: HashMap<(ConfigId, FrameId), ConfigId>,
}

impl QueryCaches {
    /// Drops all answers; the work that was done stays counted.
    pub(super) fn clear(&mut self) {
        self.self_loops.clear();
        self.universal.clear();
        self.uniform_shapes.clear();
        self.far_canonical.clear();
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.far_canonical.len() + self.self_loops.len()) * 16
            + self.universal.len() * size_of::<UniversalText>()
            + self.uniform_shapes.len() * 4
    }
}

/// Caches of configurations in which values are compared.
#[derive(Debug, Default)]
pub(super) struct DistinctCaches {
    /// The configuration after a byte, whether or not it has a continuation.
    pub(super) steps: HashMap<(ConfigId, u8), ConfigId>,
    /// Results of searches for a continuation.
    pub(super) has_continuation: HashMap<ConfigId, bool>,
}

impl DistinctCaches {
    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.steps.len() * 24 + self.has_continuation.len() * 16
    }
}

/// Which kinds of bytes lead a configuration back to itself; see [`crate::fsm::kind_bit`]. Kinds in
/// neither set were not examined yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelfLoops {
    /// Kinds that do.
    pub(super) looping: u64,
    /// Kinds that do not.
    pub(super) leaving: u64,
}

/// Which shapes of bytes are uniform in a configuration, one bit a shape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UniformShapes {
    /// Shapes that were examined.
    pub(super) examined: u16,
    /// Shapes that are uniform.
    pub(super) uniform: u16,
}

/// Texts that can be read from a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UniversalText {
    /// Byte kinds of the texts; see [`crate::fsm::kind_bit`].
    pub(super) kinds: u64,
    /// Largest number of characters of a text in ASCII.
    pub(super) length: u16,
    /// Largest number of characters of a text with code points outside ASCII.
    pub(super) non_ascii_length: u16,
    /// Whether the query was answered.
    pub(super) is_answered: bool,
}
