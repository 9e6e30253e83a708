//! What a generation cost, and what held during it.

use std::time::{Duration, Instant};

use louver::front::json_schema::SchemaError;
use serde::{Deserialize, Serialize};

/// Time spent in the hook.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    first: Option<Instant>,
    masks: Vec<Duration>,
    hook: Duration,
    /// Rows with unusable logits among the allowed ones.
    pub(crate) repaired: usize,
}

impl Clock {
    pub(crate) fn step(&mut self, begun: Instant, masked: Instant) {
        self.first.get_or_insert(begun);
        self.masks.push(masked - begun);
        self.hook += masked - begun;
    }

    pub(crate) fn timing(&self, reading: Duration, ended: Instant) -> Timing {
        Timing {
            masks: self.masks.clone(),
            louver: self.hook + reading,
            steps: self.first.map_or(Duration::ZERO, |first| ended - first),
        }
    }
}

/// What a generation cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// For each step: following the last token, filling the mask and applying it to the row.
    pub masks: Vec<Duration>,
    /// All of Louver's work: the masks, and reading the output into events.
    pub louver: Duration,
    /// From the first call of the hook (the prompt has been read by then) to the end.
    pub steps: Duration,
}

impl Timing {
    /// Mean time of a mask.
    pub fn mask_mean(&self) -> Duration {
        let count = u32::try_from(self.masks.len()).unwrap_or(u32::MAX);
        self.masks.iter().sum::<Duration>().checked_div(count).unwrap_or_default()
    }

    /// The time that this share (0 to 1) of the masks did not exceed.
    pub fn mask_quantile(&self, share: f64) -> Duration {
        let mut sorted = self.masks.clone();
        sorted.sort_unstable();
        let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
    }

    /// Share of the step time that is Louver's, 0 to 1.
    pub fn share(&self) -> f64 {
        let steps = self.steps.as_secs_f64();
        if steps > 0.0 { self.louver.as_secs_f64() / steps } else { 0.0 }
    }

    /// Adds another generation.
    pub fn add(&mut self, other: &Timing) {
        self.masks.extend_from_slice(&other.masks);
        self.louver += other.louver;
        self.steps += other.steps;
    }
}

/// What was enforced in a generation, and how it came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnforcementReport {
    /// How much of what the request says the grammar enforced.
    pub level: Level,
    /// What it did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relaxed: Vec<Relaxed>,
    /// With the policy `validate`: what was said against the schemas that `relaxed` speaks of, found when it had been said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// How the turn came out.
    pub completion: Completion,
    /// Steps at which the grammar left one token.
    pub forced_tokens: usize,
    /// Steps at which the model's likeliest token was refused. Counted where Louver draws, that is, with a seed.
    pub refused_tokens: usize,
}

/// How much of what a request says is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// All of it.
    Full,
    /// All but what `relaxed` lists.
    Partial,
    /// Nothing: the plan has no constraint.
    None,
}

/// Something that is not enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relaxed {
    /// JSON pointer into the request.
    pub pointer: String,
    /// The keyword; empty for a schema as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub keyword: String,
    /// Why.
    pub reason: String,
}

impl From<&SchemaError> for Relaxed {
    fn from(error: &SchemaError) -> Self {
        let (pointer, keyword) = (error.pointer.clone(), error.keyword.clone());
        Relaxed { pointer, keyword, reason: error.reason.to_string() }
    }
}

/// Something that was said against its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Where.
    #[serde(flatten)]
    pub part: Part,
    /// Whether it is known to be wrong.
    pub kind: ViolationKind,
    /// JSON pointer into what was said; empty for all of it.
    pub pointer: String,
    /// What is wrong, for people.
    pub message: String,
}

/// A part of a turn that has a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// The arguments of a call.
    Call {
        /// Which of the turn's calls, from 0.
        index: usize,
        /// The tool's name.
        tool: String,
    },
    /// The answer that a response format asks for.
    ResponseFormat,
}

/// Whether a violation is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationKind {
    /// The text is not what the schema says.
    Violated,
    /// It is not known: the schema cannot be validated, or not within bounds.
    Unchecked,
}

/// How a turn came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// Whole.
    Complete,
    /// Whole, but the length limit pressed: the model wanted to say more.
    Pressed,
    /// Cut off at the length limit.
    Truncated,
    /// Cancelled.
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let us = Duration::from_micros;
        let mut timing =
            Timing { masks: (1..=100).map(us).collect(), louver: us(10), steps: us(40) };
        assert_eq!(timing.mask_quantile(0.99), us(99));
        assert_eq!(timing.mask_quantile(1.0), us(100));
        assert_eq!(timing.mask_quantile(0.0), us(1));
        assert_eq!(timing.mask_mean(), Duration::from_nanos(50_500));
        assert_eq!(timing.share(), 0.25);
        timing.add(&timing.clone());
        assert_eq!((timing.masks.len(), timing.louver, timing.steps), (200, us(20), us(80)));
        assert_eq!(Timing::default().mask_quantile(0.5), Duration::ZERO);
        assert_eq!(Timing::default().mask_mean(), Duration::ZERO);
        assert_eq!(Timing::default().share(), 0.0);
    }
}
