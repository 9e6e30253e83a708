//! Truncation safety: near the length limit the mask narrows, so that open structures can be
//! closed.
//!
//! The length of the shortest completion is known (in tokens, as an upper bound). While much more
//! room is left, nothing happens. Near the limit, only tokens remain allowed after which a
//! completion still fits: the first token of the shortest completion, and those of the most likely
//! candidates that were checked and fit.

use louver::engine::{CompletionOptions, Matcher};
use louver::fuel;
use louver::ids::TokenId;
use louver_candle::scalar;

use crate::record::largest;

/// When to narrow the mask near the length limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Truncation {
    /// If the turn must be structured: a required call or a response format.
    #[default]
    Auto,
    /// Always: optional calls that were begun are finished, too.
    Safe,
    /// Never: output beyond the limit is truncated.
    Off,
}

/// Number of most likely tokens to check near the limit.
const CANDIDATES: usize = 8;
/// The slack below which narrowing begins: a multiple of the longest of the shortest completions so
/// far, plus a number of tokens.
const MARGIN: (usize, usize) = (2, 32);
/// Number of tokens between checks while there is ample room.
const CHECK_INTERVAL: usize = 16;

/// Keeps a turn within its length limit.
#[derive(Debug, Default)]
pub(crate) struct TruncationGuard {
    /// Number of generated tokens at which to check again.
    next_check: usize,
    /// The longest of the shortest completions so far.
    longest: usize,
    /// Completions from the last check, each with the allowed token that precedes it.
    ///
    /// The shortest completion in bytes is not always the shortest in tokens. Among texts of equal
    /// length the search may now find one with few tokens, and after its first token another with
    /// more. So earlier results are kept.
    completions: Vec<(TokenId, Vec<TokenId>)>,
    /// The completions of the last check at an earlier position. The host may ask for a row twice,
    /// and the second check must find what the first found.
    earlier: Vec<(TokenId, Vec<TokenId>)>,
    /// Number of generated tokens at the last check.
    position: usize,
}

impl TruncationGuard {
    /// Narrows the mask if necessary. `room` is the number of tokens that may still follow, without
    /// a stop token. Returns whether a token that the model preferred was removed. All searches of
    /// one step share the fuel of one mask; beyond it, only the first shortest completion is kept.
    pub(crate) fn narrow(
        &mut self,
        matcher: &mut Matcher,
        mask: &mut [u32],
        row: &[f32],
        room: usize,
    ) -> bool {
        let fuel = matcher.mask_fuel();
        fuel::limited(fuel, || self.narrow_within(matcher, mask, row, room))
    }

    fn narrow_within(
        &mut self,
        matcher: &mut Matcher,
        mask: &mut [u32],
        row: &[f32],
        room: usize,
    ) -> bool {
        let position = matcher.tokens().len();
        if position < self.next_check {
            return false;
        }
        let last = std::mem::take(&mut self.completions);
        if std::mem::replace(&mut self.position, position) != position {
            self.earlier = last;
        }
        let earlier = self.earlier_completion(matcher);
        let best =
            [shortest_completion(matcher), earlier].into_iter().flatten().min_by_key(Vec::len);
        let Some(completion) = best else {
            self.next_check = position + CHECK_INTERVAL;
            return false;
        };
        self.longest = self.longest.max(completion.len());
        // No completion fits: the turn will be truncated in any case.
        let Some(slack) = room.checked_sub(completion.len()) else { return false };
        let margin = MARGIN.0 * self.longest + MARGIN.1;
        if slack > margin {
            self.next_check = position + if slack > 2 * margin { CHECK_INTERVAL } else { 1 };
            return false;
        }
        let candidates = largest(row, CANDIDATES, |id| scalar::allows(mask, id));
        // The shortest completion after a token; a stop token needs none.
        let completion_after = |matcher: &mut Matcher, token: TokenId| {
            if matcher.vocab().is_stop(token) {
                return Some(Vec::new());
            }
            matcher.advance(token).ok()?;
            let completion = shortest_completion(matcher);
            matcher.rollback(1);
            completion.filter(|completion| completion.len() < room)
        };
        let mut is_narrowed = false;
        for (id, _) in candidates {
            let token = TokenId::from_raw(id as u32);
            let completion = completion_after(matcher, token);
            is_narrowed |= completion.is_none();
            self.completions.extend(completion.map(|completion| (token, completion)));
        }
        let mut allowed: Vec<u32> = self.completions.iter().map(|(token, _)| token.raw()).collect();
        // An empty completion means that a stop token may follow.
        match completion.split_first() {
            Some((first, rest)) => {
                allowed.push(first.raw());
                self.completions.push((*first, rest.to_vec()));
            }
            None => allowed.extend(matcher.vocab().stops().iter().map(|stop| stop.raw())),
        }
        mask.fill(0);
        for id in allowed {
            mask[id as usize / 32] |= 1 << (id % 32);
        }
        is_narrowed
    }

    /// An earlier completion that starts with the token taken since, if it still completes the
    /// text.
    fn earlier_completion(&self, matcher: &mut Matcher) -> Option<Vec<TokenId>> {
        let last = *matcher.tokens().last()?;
        let matching = self.earlier.iter().filter(|(token, _)| *token == last);
        let matching = matching.map(|(_, completion)| completion);
        matching
            .filter(|completion| completes(matcher, completion))
            .min_by_key(|c| c.len())
            .cloned()
    }
}

fn completes(matcher: &mut Matcher, completion: &[TokenId]) -> bool {
    let read = completion.iter().take_while(|token| matcher.advance(**token).is_ok()).count();
    let completes = read == completion.len() && matcher.is_complete();
    matcher.rollback(read);
    completes
}

fn shortest_completion(matcher: &mut Matcher) -> Option<Vec<TokenId>> {
    matcher.shortest_completion_tokens(&CompletionOptions::default()).ok().flatten()
}

#[cfg(test)]
mod tests;
