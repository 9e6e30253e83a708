//! Truncation safety: a turn that can be completed within its length limit is.
//!
//! The invariant: after each token, some completion fits into the room that is left. Where Louver
//! draws, a drawn token that breaks it is refused and another one is drawn
//! ([`TruncationGuard::within_limit`]). Where the host draws, the mask must be narrowed before
//! ([`TruncationGuard::narrow`]): near the limit, only the first token of a shortest completion
//! and likely tokens that were checked remain allowed.
//!
//! Lengths are those of shortest completions in bytes, which is cheap to know, and close to the
//! limit in tokens.

use louver::engine::{CompletionOptions, Matcher};
use louver::fuel;
use louver::ids::TokenId;
use louver_candle::scalar;

use crate::record::largest;

/// What a length limit does to a turn: whether tokens after which no completion fits are excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LimitPolicy {
    /// They are if the turn must be structured: a required call or a response format.
    #[default]
    Auto,
    /// They always are: optional calls that were begun are finished, too.
    Safe,
    /// They are not: output beyond the limit is truncated.
    Off,
}

/// With more room than this, in tokens, nothing is checked: only a part of the grammar whose
/// shortest text is longer could not be completed.
const CHECKED_ROOM: usize = 4096;
/// Room in which a completion fits without a closer look: a multiple of its bytes, plus a
/// number of bytes for keys and values that must differ from earlier ones.
const AMPLE: (u64, u64) = (2, 32);
/// Most draws at one step. After as many refused tokens, a shortest completion is followed.
const MAX_DRAWS: usize = 8;
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
    /// Completions that fit.
    known: Vec<KnownCompletion>,
    /// Fuel of all searches so far.
    spent: u64,
}

/// A completion of the text after some of the generated tokens.
#[derive(Clone, Debug)]
struct KnownCompletion {
    /// The number of these tokens.
    position: usize,
    tokens: Vec<TokenId>,
    /// Whether a search from there was done, so that another one finds nothing shorter.
    is_searched: bool,
}

impl TruncationGuard {
    /// The drawn token, or another one if no completion would fit after it. `room` is the number
    /// of tokens that may still follow, this one included, and without a stop token. `redraw` draws
    /// another token in place of one that is refused. Where no completion fits anyway, nothing is
    /// refused. All searches share the fuel of one mask, and those of all steps that of a sequence;
    /// beyond it, nothing is refused either. Cost: mostly a look-up.
    pub(crate) fn within_limit(
        &mut self,
        matcher: &mut Matcher,
        room: usize,
        drawn: TokenId,
        mut redraw: impl FnMut(TokenId) -> Option<TokenId>,
    ) -> TokenId {
        if room > CHECKED_ROOM {
            return drawn;
        }
        let fuel = self.fuel_of_step(matcher);
        // The host may ask for a row twice: what followed another token does not count.
        let position = matcher.tokens().len();
        self.known.retain(|known| known.position == position);
        let within = |guard: &mut Self| {
            let mut token = drawn;
            for _ in 0..MAX_DRAWS {
                if guard.accepts(matcher, token, room) {
                    return token;
                }
                let Some(next) = redraw(token) else { break };
                token = next;
            }
            // A refused token means that a completion is known.
            let Some(completion) = guard.known_completion(matcher) else { return token };
            match completion.split_first() {
                Some((first, rest)) => {
                    guard.learn(matcher.tokens().len() + 1, rest.to_vec(), false);
                    *first
                }
                None => matcher.vocab().stops().first().copied().unwrap_or(token),
            }
        };
        self.charged(fuel, within).unwrap_or(drawn)
    }

    /// What the searches of one step may spend.
    fn fuel_of_step(&self, matcher: &Matcher) -> u64 {
        matcher.mask_fuel().min(matcher.sequence_fuel().saturating_sub(self.spent))
    }

    /// Runs the searches of one step; `None` without fuel for them.
    fn charged<T>(&mut self, fuel: u64, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let (done, units) =
            fuel::measure(|| (fuel > 0).then(|| fuel::with_budget(fuel, || work(self))));
        self.spent += units;
        done
    }

    /// Adds a completion after so many tokens.
    fn learn(&mut self, position: usize, tokens: Vec<TokenId>, is_searched: bool) {
        self.known.push(KnownCompletion { position, tokens, is_searched });
    }

    /// Whether a completion fits after this token, or none fits in any case.
    fn accepts(&mut self, matcher: &mut Matcher, token: TokenId, room: usize) -> bool {
        if matcher.vocab().is_stop(token) || matcher.advance(token).is_err() {
            return true;
        }
        let left = room.saturating_sub(1);
        let length = matcher.completion_length().unwrap_or(u64::MAX);
        let is_ample = length.saturating_mul(AMPLE.0).saturating_add(AMPLE.1) <= left as u64;
        let (after, is_searched) =
            if is_ample { (None, false) } else { shortest_completion(matcher) };
        matcher.rollback(1);
        if is_ample {
            return true;
        }
        let current = self.known_completion(matcher);
        // What remains of a completion that begins with the token fits as well.
        let rest = current.as_ref().and_then(|current| match current.split_first() {
            Some((first, rest)) if *first == token => Some(rest.to_vec()),
            _ => None,
        });
        let after = [after, rest].into_iter().flatten().min_by_key(Vec::len);
        match after.filter(|after| after.len() <= left) {
            Some(after) => {
                self.learn(matcher.tokens().len() + 1, after, is_searched);
                true
            }
            None => current.is_none_or(|current| current.len() > room),
        }
    }

    /// The shortest known completion of the text.
    ///
    /// The shortest completion in bytes is not always the shortest in tokens, so that a completion
    /// that was found one token earlier may be better.
    fn known_completion(&mut self, matcher: &mut Matcher) -> Option<Vec<TokenId>> {
        let position = matcher.tokens().len();
        // The host may ask for a row twice.
        self.known.retain(|known| known.position >= position);
        let here = self.known.iter().filter(|known| known.position == position);
        let valid: Vec<KnownCompletion> =
            here.filter(|known| completes(matcher, &known.tokens)).cloned().collect();
        let (found, is_searched) = match valid.iter().any(|known| known.is_searched) {
            true => (None, true),
            false => shortest_completion(matcher),
        };
        let known = valid.into_iter().map(|known| known.tokens);
        let best = known.chain(found).min_by_key(Vec::len)?;
        self.known.retain(|known| known.position != position);
        self.learn(position, best.clone(), is_searched);
        Some(best)
    }

    /// Narrows the mask if necessary: for hosts that draw themselves. `room` is the number of
    /// tokens that may still follow, without a stop token. Returns whether a token that the model
    /// preferred was removed. All searches of one step share the fuel of one mask, and those of all
    /// steps that of a sequence. Without fuel for a step, nothing is narrowed; where it ends within
    /// the step, the tokens that were checked by then are left.
    pub(crate) fn narrow(
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
        let fuel = self.fuel_of_step(matcher);
        let narrow = |guard: &mut Self| {
            let Some(completion) = guard.known_completion(matcher) else {
                guard.next_check = position + CHECK_INTERVAL;
                return false;
            };
            guard.longest = guard.longest.max(completion.len());
            // No completion fits: the turn will be truncated in any case.
            let Some(slack) = room.checked_sub(completion.len()) else { return false };
            let margin = MARGIN.0 * guard.longest + MARGIN.1;
            if slack > margin {
                guard.next_check = position + if slack > 2 * margin { CHECK_INTERVAL } else { 1 };
                return false;
            }
            guard.known.retain(|known| known.position == position);
            let candidates = largest(row, CANDIDATES, |id| scalar::allows(mask, id));
            let likely: Vec<TokenId> =
                candidates.iter().map(|(id, _)| TokenId::from_raw(*id as u32)).collect();
            let mut allowed = likely.clone();
            // Without fuel, a check says nothing.
            allowed.retain(|token| guard.accepts(matcher, *token, room) && !fuel::is_exhausted());
            // The others, the model would not have preferred.
            let is_narrowed = likely.first() != allowed.first();
            // An empty completion means that a stop token may follow.
            match completion.split_first() {
                Some((first, rest)) => {
                    allowed.push(*first);
                    guard.learn(position + 1, rest.to_vec(), false);
                }
                None => allowed.extend(matcher.vocab().stops()),
            }
            mask.fill(0);
            for id in allowed {
                mask[id.index() / 32] |= 1 << (id.index() % 32);
            }
            is_narrowed
        };
        self.charged(fuel, narrow).unwrap_or(false)
    }
}

fn completes(matcher: &mut Matcher, completion: &[TokenId]) -> bool {
    let read = completion.iter().take_while(|token| matcher.advance(**token).is_ok()).count();
    let completes = read == completion.len() && matcher.is_complete();
    matcher.rollback(read);
    completes
}

/// The shortest completion, and whether the search for it ended within its limits.
fn shortest_completion(matcher: &mut Matcher) -> (Option<Vec<TokenId>>, bool) {
    match matcher.shortest_completion_tokens(&CompletionOptions::default()) {
        Ok(found) => (found, true),
        Err(_) => (None, false),
    }
}

#[cfg(test)]
mod tests;
