//! Caches of queries that mask construction asks about configurations.

use super::counted_runs::RuleResidence;
use super::store::{ConfigId, FrameId};
use super::universal::UniversalText;
use crate::hash::HashMap;

/// Answers by configuration. Vectors are indexed by configuration and grow on demand.
#[derive(Debug, Default)]
pub(super) struct QueryCaches {
    /// Byte kinds that loop, and byte kinds that do not; see [`super::parser::Parser::loops_on`].
    pub(super) self_loops: Vec<(u64, u64)>,
    /// See [`super::parser::Parser::reads_all_texts`].
    pub(super) universal: Vec<UniversalText>,
    /// Shapes examined, and shapes that are uniform; see [`super::parser::Parser::is_uniform_shape`].
    pub(super) uniform_shapes: Vec<(u16, u16)>,
    /// See [`super::parser::Parser::converges`].
    pub(super) convergence: HashMap<(ConfigId, ConfigId), bool>,
    /// Canonical configurations of counted blocks far from their bounds. Key: the configuration as
    /// it was read in isolation, and the frame; see [`super::parser::Parser::step_within_block`].
    pub(super) far_canonical: HashMap<(ConfigId, FrameId), ConfigId>,
    /// The last rule that was asked for, and the answer.
    pub(super) rule_residence: Vec<(u32, RuleResidence)>,
}

impl QueryCaches {
    /// Drops all answers.
    pub(super) fn clear(&mut self) {
        self.self_loops.clear();
        self.universal.clear();
        self.uniform_shapes.clear();
        self.convergence.clear();
        self.far_canonical.clear();
        self.rule_residence.clear();
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.far_canonical.len() + self.self_loops.len() + self.convergence.len()) * 16
            + self.universal.len() * size_of::<UniversalText>()
            + self.uniform_shapes.len() * 4
            + self.rule_residence.len() * 8
    }
}
