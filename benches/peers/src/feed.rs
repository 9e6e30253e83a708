//! One token sequence through one matcher, with the clock running.

use crate::cases::{Case, Task};
use crate::clock::Clock;
use crate::engine::{Engine, Matcher};
use crate::record::Record;

/// How it went.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    /// Mask and advance of each token, together.
    pub(crate) masks_ns: Vec<u64>,
    /// The mask of the first token alone.
    pub(crate) first_mask_ns: Option<u64>,
    /// Every token was allowed.
    pub(crate) consumed: bool,
    /// And the text may end behind them.
    pub(crate) accepted: bool,
}

/// Feeds tokens up to the first that is refused.
pub(crate) fn feed(matcher: &mut dyn Matcher, tokens: &[u32]) -> Fed {
    let mut fed =
        Fed { masks_ns: Vec::with_capacity(tokens.len()), consumed: true, ..Fed::default() };
    for (i, &token) in tokens.iter().enumerate() {
        let clock = Clock::start();
        let masked = matcher.mask();
        if i == 0 {
            fed.first_mask_ns = Some(clock.nanos());
        }
        let taken = masked && matcher.take(token);
        fed.masks_ns.push(clock.nanos());
        if !taken {
            fed.consumed = false;
            return fed;
        }
    }
    fed.accepted = matcher.is_complete();
    fed
}

/// Compiles a case and feeds all its instances.
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
        let fed = feed(constraint.matcher().as_mut(), tokens);
        record.first_mask_ns = record.first_mask_ns.or(fed.first_mask_ns);
        masks.extend(fed.masks_ns);
        if fed.accepted != *valid {
            wrong.push((i, *valid, fed.consumed));
        }
    }
    (record.masks_ns, record.wrong) = (Some(masks), Some(wrong));
    record
}
