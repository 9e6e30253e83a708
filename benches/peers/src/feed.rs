//! Timed runs of token sequences through matchers.

use crate::cases::{Case, Task};
use crate::clock::Clock;
use crate::engine::{Engine, Matcher};
use crate::record::Record;

/// The result of one token sequence.
#[derive(Debug, Default)]
pub(crate) struct SequenceResult {
    /// Time of mask and advance per token.
    pub(crate) masks_ns: Vec<u64>,
    /// Time of the first mask.
    pub(crate) first_mask_ns: Option<u64>,
    /// Whether every token was allowed.
    pub(crate) consumed: bool,
    /// Whether the text may end after them.
    pub(crate) accepted: bool,
}

/// Feeds tokens up to the first rejected one.
pub(crate) fn feed(matcher: &mut dyn Matcher, tokens: &[u32]) -> SequenceResult {
    let mut result = SequenceResult {
        masks_ns: Vec::with_capacity(tokens.len()),
        consumed: true,
        ..SequenceResult::default()
    };
    for (i, &token) in tokens.iter().enumerate() {
        let clock = Clock::start();
        let masked = matcher.mask();
        if i == 0 {
            result.first_mask_ns = Some(clock.nanos());
        }
        let is_allowed = masked && matcher.take(token);
        result.masks_ns.push(clock.nanos());
        if !is_allowed {
            result.consumed = false;
            return result;
        }
    }
    result.accepted = matcher.is_complete();
    result
}

/// Compiles a case and runs all its instances.
pub(crate) fn run(engine: &dyn Engine, case: &Case) -> Record {
    let compiled = engine.compile(&case.task);
    let mut record = Record {
        id: case.id.clone(),
        ttfm_ns: compiled.ttfm_ns,
        prepare_ns: compiled.prepare_ns,
        ..Record::default()
    };
    if let Task::Tools(tools) = &case.task {
        record.tools = Some(tools.each.len());
    }
    let constraint = match compiled.outcome {
        Ok(constraint) => constraint,
        Err(error) => {
            record.error = Some(error.chars().take(300).collect());
            return record;
        }
    };
    let (mut masks, mut wrong) = (Vec::new(), Vec::new());
    for (i, (tokens, valid)) in case.instances.iter().enumerate() {
        let result = feed(constraint.matcher().as_mut(), tokens);
        record.first_mask_ns = record.first_mask_ns.or(result.first_mask_ns);
        masks.extend(result.masks_ns);
        if result.accepted != *valid {
            wrong.push((i, *valid, result.consumed));
        }
    }
    (record.masks_ns, record.wrong) = (Some(masks), Some(wrong));
    record
}
