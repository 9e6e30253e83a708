//! Reports of a generation: timing, enforcement and violations.

use std::time::{Duration, Instant};

use louver::front::json_schema::SchemaError;
use louver::with_methods;
use louver_formats::{LoweredRequest, RequestFault, SchemaRule};
use serde::{Deserialize, Serialize};

/// Measures the time spent in the hook.
#[derive(Debug, Default)]
pub(crate) struct StepClock {
    first: Option<Instant>,
    masks: Vec<Duration>,
}

impl StepClock {
    pub(crate) fn step(&mut self, started: Instant, masked: Instant) {
        self.first.get_or_insert(started);
        self.masks.push(masked - started);
    }

    /// Whether the host has called the hook.
    pub(crate) fn has_started(&self) -> bool {
        self.first.is_some()
    }

    pub(crate) fn timing(&self, reading: Duration, ended: Instant) -> Timing {
        Timing {
            masks: self.masks.clone(),
            louver: self.masks.iter().sum::<Duration>() + reading,
            steps: self.first.map_or(Duration::ZERO, |first| ended - first),
        }
    }
}

/// Timing of a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Per step: advancing by the last token, filling the mask, and applying it to the row if the
    /// host draws. What Louver takes to draw is not in it.
    pub masks: Vec<Duration>,
    /// Total time of Louver's work: masks, and parsing the output into events.
    pub louver: Duration,
    /// Time from the first call of the hook, after the prompt was processed, to the end.
    pub steps: Duration,
}

with_methods!(Timing {
    with_masks: masks = Vec<Duration>,
    with_louver: louver = Duration,
    with_steps: steps = Duration,
});

impl Timing {
    /// Mean time per mask.
    pub fn mask_mean(&self) -> Duration {
        let count = u32::try_from(self.masks.len()).unwrap_or(u32::MAX);
        self.masks.iter().sum::<Duration>().checked_div(count).unwrap_or_default()
    }

    /// The quantile of the time per mask; `share` is from 0 to 1.
    pub fn mask_quantile(&self, share: f64) -> Duration {
        let mut sorted = self.masks.clone();
        sorted.sort_unstable();
        let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
    }

    /// Louver's share of the step time, from 0 to 1.
    pub fn share(&self) -> f64 {
        let steps = self.steps.as_secs_f64();
        if steps > 0.0 { self.louver.as_secs_f64() / steps } else { 0.0 }
    }

    /// Adds the timing of another generation.
    pub fn add(&mut self, other: &Timing) {
        self.masks.extend_from_slice(&other.masks);
        self.louver += other.louver;
        self.steps += other.steps;
    }
}

/// The enforcement report of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EnforcementReport {
    /// How much of the request the grammar enforced.
    pub level: EnforcementLevel,
    /// Of each function that could be called: whether its schema was enforced, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolReport>,
    /// The parts of the request that were not enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relaxed: Vec<Relaxed>,
    /// What probably constrains less than it was written to, with pointers into the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RequestFault>,
    /// With the policy `validate`: violations of relaxed schemas, found after generation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// How the turn ended.
    pub completion: Completion,
    /// Number of steps at which the grammar allowed one token only.
    pub forced_tokens: usize,
    /// Number of steps at which the model's most likely token was not allowed. Counted only if
    /// Louver draws.
    pub refused_tokens: usize,
    /// Who drew the tokens.
    pub drawn_by: DrawnBy,
}

/// What was enforced of a function's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolReport {
    /// The function's name.
    pub name: String,
    /// Whether its schema was enforced. Otherwise, the arguments were any JSON object.
    pub enforced: bool,
    /// The rule that decided it.
    pub rule: SchemaRule,
}

impl ToolReport {
    pub(crate) fn of_request(lowered: &LoweredRequest) -> Vec<ToolReport> {
        let callable = lowered.tools().iter().filter(|tool| tool.is_callable());
        let reports = callable.filter_map(|tool| {
            let (name, rule) = (tool.name.clone(), tool.schema_rule?);
            Some(ToolReport { name, enforced: rule.is_enforced(), rule })
        });
        reports.collect()
    }
}

/// Who drew the tokens of a generation. A request with this seed, one choice and the same prompt,
/// plan and sampling parameters gives the same tokens, as far as the host computes the same logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum DrawnBy {
    /// Louver.
    Louver {
        /// The seed of this choice.
        seed: u64,
    },
    /// The host, from a generator that its requests share.
    Host,
}

impl DrawnBy {
    /// The seed, if Louver draws.
    pub fn seed(self) -> Option<u64> {
        match self {
            DrawnBy::Louver { seed } => Some(seed),
            DrawnBy::Host => None,
        }
    }

    /// Who draws the choice at this index of a request whose first choice is drawn by `self`: each
    /// choice has a seed of its own.
    pub fn of_choice(self, index: u64) -> DrawnBy {
        match self {
            DrawnBy::Louver { seed } => DrawnBy::Louver { seed: seed.wrapping_add(index) },
            DrawnBy::Host => DrawnBy::Host,
        }
    }
}

/// How much of a request is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EnforcementLevel {
    /// All of it.
    Full,
    /// All but the parts in `relaxed`.
    Partial,
    /// Nothing: the plan has no constraint.
    None,
}

/// A keyword or schema that is not enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Relaxed {
    /// JSON pointer into the request.
    pub pointer: String,
    /// The keyword; empty for a schema as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub keyword: String,
    /// The reason.
    pub reason: String,
}

impl Relaxed {
    /// A response that a stop string has cut.
    pub(crate) fn by_stop_string() -> Relaxed {
        let reason = "the response ended at a stop string before its structure was complete";
        Relaxed { pointer: "/stop".to_owned(), keyword: String::new(), reason: reason.to_owned() }
    }
}

impl From<&SchemaError> for Relaxed {
    fn from(error: &SchemaError) -> Self {
        let (pointer, keyword) = (error.pointer.clone(), error.keyword.clone());
        Relaxed { pointer, keyword, reason: error.reason.to_string() }
    }
}

/// A violation of a relaxed schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Violation {
    /// The part of the turn.
    #[serde(flatten)]
    pub part: CheckedPart,
    /// Whether the text is invalid or could not be checked.
    pub kind: ViolationKind,
    /// JSON pointer into the part's value; empty for the whole value.
    pub pointer: String,
    /// A description for people.
    pub message: String,
}

/// A part of a turn that has a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CheckedPart {
    /// The arguments of a call.
    Call {
        /// Index of the call, from 0.
        index: usize,
        /// The tool's name.
        tool: String,
    },
    /// The response in a response format.
    ResponseFormat,
}

/// The kind of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// The value does not match the schema.
    Violated,
    /// The value could not be checked: the schema cannot be validated, or not within the limits.
    Unchecked,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Completion {
    /// Complete. The length limit has excluded nothing that the model preferred.
    Complete,
    /// Complete, but without the length limit it might be longer: the limit ended it after a
    /// complete call or response in a format, or excluded something that would not have fitted.
    Limited,
    /// A stop string has ended the response before its structure was complete.
    Stopped,
    /// Truncated at the length limit.
    Truncated,
    /// Cancelled.
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_statistics() {
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
