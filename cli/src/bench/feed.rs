//! One token sequence through one matcher, with the clock running.

use std::time::Instant;

use louver::engine::{Constraint, Engine, Matcher, PrepareBudget};
use louver::fuel;
use louver::ids::TokenId;
use louver::mask::MaskRow;

use super::CommonArgs;
use super::record::{Ahead, Record};

/// How it went.
#[derive(Debug, Default)]
struct Fed {
    /// Mask and advance of each token, together.
    masks_ns: Vec<u64>,
    /// The mask of the first token alone.
    first_mask_ns: Option<u64>,
    /// Every token was allowed.
    consumed: bool,
    /// And the grammar may end behind them.
    accepted: bool,
    /// Most fuel of a mask and token.
    fuel: u64,
    /// The limit that was reached.
    limit: Option<&'static str>,
}

/// What one thread feeds tokens with.
pub(super) struct Feeder<'e> {
    engine: &'e Engine,
    /// The row that masks are written to, whatever they are the masks of, as a slot of a batch has one.
    mask: MaskRow,
    prepare: bool,
}

impl<'e> Feeder<'e> {
    pub(super) fn new(engine: &'e Engine, common: &CommonArgs) -> Feeder<'e> {
        Feeder { engine, mask: MaskRow::new(engine.vocab()), prepare: common.prepare }
    }

    /// The engine.
    pub(super) fn engine(&self) -> &'e Engine {
        self.engine
    }

    /// Feeds all of a case's tests: tokens, and whether they should be accepted. The first matcher is the end of what began at
    /// `begin`.
    pub(super) fn feed_all(
        &mut self,
        id: String,
        begin: Instant,
        constraint: &Constraint,
        tests: &[(Vec<u32>, bool)],
    ) -> Record {
        let mut first = Some(constraint.matcher());
        let mut record = Record { id, ttfm_ns: nanos(begin), ..Record::default() };
        let used = self.engine.stats().ahead_used;
        if self.prepare {
            let begin = Instant::now();
            let report = constraint.prepare(PrepareBudget::default()).wait();
            record.prepare_ns = Some(nanos(begin));
            record.ahead = Some(Ahead {
                places: report.places,
                built: report.built,
                known: report.known,
                used: 0,
            });
        }
        let (mut masks, mut wrong) = (Vec::new(), Vec::new());
        for (i, (tokens, valid)) in tests.iter().enumerate() {
            let fed =
                feed(first.take().unwrap_or_else(|| constraint.matcher()), tokens, &mut self.mask);
            record.first_mask_ns = record.first_mask_ns.or(fed.first_mask_ns);
            masks.extend(fed.masks_ns);
            record.mask_fuel = record.mask_fuel.max(Some(fed.fuel));
            record.limit = record.limit.or(fed.limit);
            if fed.accepted != *valid {
                wrong.push((i, *valid, fed.consumed));
            }
        }
        (record.masks_ns, record.wrong) = (Some(masks), Some(wrong));
        if let Some(ahead) = &mut record.ahead {
            ahead.used = self.engine.stats().ahead_used - used;
        }
        record
    }
}

/// Feeds tokens up to the first that is refused. `mask` is the caller's.
fn feed(mut matcher: Matcher, tokens: &[u32], mask: &mut MaskRow) -> Fed {
    let mut fed =
        Fed { masks_ns: Vec::with_capacity(tokens.len()), consumed: true, ..Fed::default() };
    for (i, &token) in tokens.iter().enumerate() {
        let begin = Instant::now();
        let token = TokenId::from_raw(token);
        let (taken, fuel) = fuel::measure(|| {
            matcher.update_mask(mask);
            if i == 0 {
                fed.first_mask_ns = Some(nanos(begin));
            }
            mask.allows(token) && matcher.advance(token).is_ok()
        });
        fed.masks_ns.push(nanos(begin));
        fed.fuel = fed.fuel.max(fuel);
        if !taken {
            fed.consumed = false;
            fed.limit = matcher.limit();
            return fed;
        }
    }
    fed.accepted = matcher.is_complete();
    fed
}

/// Nanoseconds since then.
pub(super) fn nanos(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
