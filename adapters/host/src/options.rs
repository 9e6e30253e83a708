//! Options of running a request.

use louver::PrepareBudget;
use louver::with_methods;
use serde::{Deserialize, Serialize};

use crate::error::SendError;
use crate::record::Record;
use crate::report::DrawnBy;
use crate::truncation::LimitPolicy;

/// Options of running a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunOptions {
    /// Who draws the tokens.
    pub draw: Draw,
    /// Makes drawing a function of this seed, independent of the host's other requests (the host
    /// draws for all requests from one generator). Choice `i` uses seed + i. By default a random
    /// one, which the report names ([`EnforcementReport::drawn_by`]). With [`Draw::Host`] a seed is
    /// an error, because the host has none for a request.
    ///
    /// [`EnforcementReport::drawn_by`]: crate::EnforcementReport::drawn_by
    pub seed: Option<u64>,
    /// Behaviour near the length limit.
    pub limit_policy: LimitPolicy,
    /// Speculative work on the engine's background threads.
    pub overlap: Overlap,
    /// What is recorded of each step.
    pub record: Record,
}

with_methods!(RunOptions {
    with_draw: draw = Draw,
    with_seed: seed = impl Into<Option<u64>>,
    with_limit_policy: limit_policy = LimitPolicy,
    with_overlap: overlap = Overlap,
    with_record: record = Record,
});

impl RunOptions {
    /// Who draws the tokens of the first choice. Chooses a seed if none is given. Fails with
    /// [`SendError::HostSeed`] for a seed that nobody would use.
    pub fn drawn_by(&self) -> Result<DrawnBy, SendError> {
        match (self.draw, self.seed) {
            (Draw::Louver, seed) => Ok(DrawnBy::Louver { seed: seed.unwrap_or_else(fresh_seed) }),
            (Draw::Host, None) => Ok(DrawnBy::Host),
            (Draw::Host, Some(_)) => Err(SendError::HostSeed),
        }
    }
}

/// Who draws the tokens of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Draw {
    /// Louver, with the request's `temperature` (1.0 if there is none), `top_k`, `top_p` and
    /// `min_p`, after the host's penalties and the request's processors. Faster than the host,
    /// which sorts the vocabulary, and the next mask can be prefetched. Two differences: `min_p`
    /// also applies without `top_p`, and an absent temperature is 1, where the host takes the
    /// likeliest token.
    #[default]
    Louver,
    /// The host, from the masked logits. A part whose shortest text does not fit into the length
    /// limit may be begun, so that the answer is truncated.
    Host,
}

/// Speculative work that overlaps with the model's computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overlap {
    /// How much of the first masks is computed while the host processes the prompt; `None` for
    /// nothing.
    pub prepare: Option<PrepareBudget>,
    /// Computes the next mask while the model computes. Not with [`Draw::Host`], because the token
    /// must be known.
    pub prefetch: Prefetch,
}

impl Default for Overlap {
    fn default() -> Self {
        Overlap { prepare: Some(PrepareBudget::default()), prefetch: Prefetch::Adaptive }
    }
}

with_methods!(Overlap {
    with_prepare: prepare = impl Into<Option<PrepareBudget>>,
    with_prefetch: prefetch = Prefetch,
});

/// When to prefetch the next mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// While recent masks were slow. Cached masks cost less than the hand-over to another thread.
    #[default]
    Adaptive,
    /// At every step.
    Always,
    /// Never.
    Off,
}

/// A random seed of 53 bits, which every JSON reader keeps exactly. It need not be unpredictable,
/// only different.
pub(crate) fn fresh_seed() -> u64 {
    fresh_id_seed() >> 11
}

/// A random seed of call ids, from what the operating system gives hash maps.
pub(crate) fn fresh_id_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
