//! One token sequence through one matcher, with the clock running.

use std::time::Instant;

use louver::engine::Matcher;
use louver::ids::TokenId;

/// How it went.
#[derive(Debug, Default)]
pub(super) struct Fed {
    /// Mask and advance of each token, together.
    pub(super) masks_ns: Vec<u64>,
    /// The mask of the first token alone.
    pub(super) first_mask_ns: Option<u64>,
    /// Every token was allowed.
    pub(super) consumed: bool,
    /// And the grammar may end behind them.
    pub(super) accepted: bool,
}

/// Feeds tokens up to the first that is refused. `mask` is the caller's buffer.
pub(super) fn feed(mut matcher: Matcher, tokens: &[u32], mask: &mut [u32]) -> Fed {
    let mut fed = Fed { masks_ns: Vec::with_capacity(tokens.len()), consumed: true, ..Fed::default() };
    for (i, &token) in tokens.iter().enumerate() {
        let begin = Instant::now();
        matcher.fill_mask(mask);
        if i == 0 {
            fed.first_mask_ns = Some(nanos(begin));
        }
        let allowed = mask.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1);
        let taken = allowed && matcher.advance(TokenId::from_raw(token)).is_ok();
        fed.masks_ns.push(nanos(begin));
        if !taken {
            fed.consumed = false;
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
