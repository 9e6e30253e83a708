//! Scientific notation: the automaton of numbers with an exponent that lie within bounds.
//!
//! Numbers are zero, or have one digit before the point that is not zero. With mantissas `m` and
//! `l` from 1 to below 10, `m * 10^e` is at least `l * 10^p` if `e > p`, or if `e = p` and
//! `m >= l`. So a bound divides the mantissas into two classes, and all mantissas of a class may
//! have the same exponents. The automaton is the union of the mantissas of each class with its
//! exponents.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::read::facets::{Bound, JsonTypes, NumberFacets};
use super::builtin_pattern::builtin_pattern_dfa;
use super::comparison::comparison_dfa;
use super::number_text::{LOWER_E, MINUS, PLUS, POINT, UPPER_E, ZERO};
use crate::cache::{ProcessCache, ProcessCell};
use crate::decimal::Decimal;
use crate::fsm::{ClassifiedLanguage, Dfa, DfaBuilder, Nfa, TooLarge};
use crate::hash::HashMap;
use crate::ir::regular::BYTES;

/// Builds the automaton of numbers with an exponent that satisfy the bounds and multiples of the
/// facets; it ignores excluded values.
///
/// Zero takes any exponent. Whole multiples, and integers if `types` has only those, have only
/// zeros after the first digit. If `types` has only fractions, exponents are negative. The
/// automaton is not minimal, and fails past `limit` states. Cost: close to linear in the digits of
/// the bounds.
pub(super) fn scientific_dfa(
    facets: &NumberFacets,
    types: JsonTypes,
    limit: usize,
) -> Result<Dfa, String> {
    let mut units = facets.multiples.clone();
    if types == JsonTypes::INTEGER {
        units.push(Decimal::parse("1"));
    }
    let mut out = NumberUnion::new(limit);
    let zero = Decimal::parse("0");
    if types != JsonTypes::FRACTION && facets.is_within_bounds(&zero) {
        static CELL: ProcessCell<Dfa> = ProcessCell::new();
        let mantissa = CELL.get_or_make(|| builtin_pattern_dfa(r"-?0(?:\.0+)?"));
        out.add(out.start, mantissa, &[], |_| ExponentInterval::ANY)?;
    }
    let highest = (types == JsonTypes::FRACTION).then_some(-1);
    let mantissas = mantissas(&units);
    for negative in [false, true] {
        let Some([low, high]) = magnitude_bounds(facets, negative) else { continue };
        let low = MantissaBound::new(low, Ordering::Greater)?;
        let high = MantissaBound::new(high, Ordering::Less)?;
        let bounds: Vec<&Dfa> =
            [&low, &high].into_iter().flatten().map(|bound| &bound.mantissas).collect();
        let from = out.after_sign(negative);
        for (mantissas, least) in &mantissas {
            out.add(from, mantissas, &bounds, |is_within| {
                let mut is_within = is_within.iter();
                let [low, high] = [&low, &high].map(|bound| {
                    let (bound, is_within) = (bound.as_ref()?, is_within.next()?);
                    Some(if *is_within { bound.at } else { bound.beyond })
                });
                let high = [high, highest].into_iter().flatten().min();
                ExponentInterval(low.max(*least), high)
            })?;
        }
    }
    out.finish()
}

/// The mantissas that are not zero. Where numbers must be multiples of units, those of one digit,
/// grouped by the least exponent with which they are.
fn mantissas(units: &[Decimal]) -> Vec<(Dfa, Option<i64>)> {
    if units.is_empty() {
        static CELL: ProcessCell<Dfa> = ProcessCell::new();
        let any = CELL.get_or_make(|| builtin_pattern_dfa(r"[1-9](?:\.[0-9]+)?"));
        return vec![(any.clone(), None)];
    }
    let mut by_least: BTreeMap<i64, DfaBuilder> = BTreeMap::new();
    for digit in 1..=9 {
        if let Some(least) = least_exponent(digit, units) {
            let code = u32::from(b'0' + digit);
            by_least.entry(least).or_insert_with(one_digit).edge(0, code, code, 1);
        }
    }
    by_least.into_iter().map(|(least, dfa)| (dfa.finish(), Some(least))).collect()
}

/// The states of a digit with an optional fraction of zeros, without the edges of the digit: from
/// state 0 to 1.
fn one_digit() -> DfaBuilder {
    let mut b = DfaBuilder::new();
    let [_, digit, point, zeros] = [false, true, false, true].map(|is_final| b.state(is_final));
    b.edge(digit, POINT, POINT, point);
    b.edge(point, ZERO, ZERO, zeros);
    b.edge(zeros, ZERO, ZERO, zeros);
    b
}

/// The least exponent for which a digit followed by zeros is a multiple of all units; `None` if
/// there is none.
fn least_exponent(digit: u8, units: &[Decimal]) -> Option<i64> {
    // No unit whose remainders are tracked has this many factors of two or five.
    const FACTORS: i64 = 64;
    let least_for = |unit: &Decimal| {
        let is_multiple = |&power: &i64| {
            let value = Decimal::new(false, vec![digit], power + 1);
            value.is_multiple_of(unit) == Some(true)
        };
        (unit.last_place()..unit.last_place() + FACTORS).find(is_multiple)
    };
    units.iter().map(least_for).try_fold(i64::MIN, |least, next| next.map(|next| least.max(next)))
}

/// The lower and the upper bound of the magnitudes of the numbers of one sign; `None` if only zero
/// satisfies the facets with this sign.
fn magnitude_bounds(facets: &NumberFacets, negative: bool) -> Option<[Option<Bound>; 2]> {
    let mut out = [None, None];
    for (bound, order) in facets.bounds() {
        let has_sign = !bound.value.is_zero() && bound.value.is_negative() == negative;
        let magnitude = Bound { value: bound.value.abs(), ..*bound };
        match ((order == Ordering::Greater) == negative, has_sign) {
            (true, true) => out[1] = Some(magnitude),
            (true, false) => return None,
            (false, true) => out[0] = Some(magnitude),
            (false, false) => {}
        }
    }
    Some(out)
}

/// A bound, as it divides mantissas.
struct MantissaBound {
    /// The mantissas that are within the bound with its exponent.
    mantissas: Dfa,
    /// The last exponent of those.
    at: i64,
    /// The last exponent of all others.
    beyond: i64,
}

impl MantissaBound {
    /// The bound whose numbers are on the given side of it.
    fn new(bound: Option<Bound>, side: Ordering) -> Result<Option<MantissaBound>, String> {
        let Some(Bound { value, exclusive }) = bound else { return Ok(None) };
        let mantissa = Decimal::new(false, value.digits().to_vec(), 1);
        let mantissas = comparison_dfa(&Bound { value: mantissa, exclusive }, side)?;
        let at = value.first_place();
        let beyond = if side == Ordering::Greater { at + 1 } else { at - 1 };
        Ok(Some(MantissaBound { mantissas, at, beyond }))
    }
}

/// An inclusive interval of exponents; `None` is unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ExponentInterval(Option<i64>, Option<i64>);

impl ExponentInterval {
    /// All exponents.
    pub(super) const ANY: ExponentInterval = ExponentInterval(None, None);

    /// One exponent.
    pub(super) fn just(exponent: i64) -> ExponentInterval {
        ExponentInterval(Some(exponent), Some(exponent))
    }
}

/// A union of mantissas with their exponents.
pub(super) struct NumberUnion {
    nfa: Nfa,
    limit: usize,
    start: u32,
    end: u32,
    /// States after `e`.
    exponents: HashMap<ExponentInterval, u32>,
}

impl NumberUnion {
    /// The empty union. Its automaton fails past `limit` states.
    pub(super) fn new(limit: usize) -> Self {
        let mut nfa = Nfa::new();
        let [start, end] = [0; 2].map(|_| nfa.state());
        nfa.set_final(end);
        NumberUnion { nfa, limit, start, end, exponents: HashMap::default() }
    }

    /// The state where numbers of one sign begin.
    fn after_sign(&mut self, negative: bool) -> u32 {
        let from = self.nfa.state();
        if negative {
            self.nfa.edge(self.start, MINUS, MINUS, from);
        } else {
            self.nfa.epsilon(self.start, from);
        }
        from
    }

    /// Adds mantissas. `exponents` are those of a mantissa, by whether it is in each of `bounds`.
    fn add(
        &mut self,
        from: u32,
        mantissas: &Dfa,
        bounds: &[&Dfa],
        exponents: impl Fn(&[bool]) -> ExponentInterval,
    ) -> Result<(), String> {
        let too_large = |error: TooLarge| error.to_string();
        let classified = mantissas.classify(bounds, self.limit).map_err(too_large)?;
        let Some(ClassifiedLanguage { dfa, classes, class_of }) = classified else {
            return Err(too_large(TooLarge::States { limit: self.limit }));
        };
        let mut after_mark = Vec::with_capacity(classes.len());
        for answers in &classes {
            let interval = exponents(answers);
            let is_empty = interval.0.zip(interval.1).is_some_and(|(low, high)| low > high);
            after_mark.push((!is_empty).then(|| self.exponents(interval)).transpose()?);
        }
        let (start, _) = self.nfa.embed(&dfa);
        self.nfa.epsilon(from, start);
        for (state, class) in (start..).zip(class_of) {
            let Some(after_mark) = class.and_then(|class| after_mark[class]) else { continue };
            self.exponent_marks(state, after_mark);
        }
        Ok(())
    }

    /// Adds a mantissa without or with exponents, and zeros at the end of its fraction. Without a
    /// fraction, `zero_fraction` tells whether it may have one of zeros.
    pub(super) fn add_text(
        &mut self,
        mantissa: &[u8],
        exponents: Option<ExponentInterval>,
        zero_fraction: bool,
    ) -> Result<(), String> {
        let mut at = self.start;
        for symbol in mantissa.iter().copied().map(u32::from) {
            let next = self.nfa.state();
            self.nfa.edge(at, symbol, symbol, next);
            at = next;
        }
        let mut ends = vec![at];
        if mantissa.contains(&b'.') {
            self.nfa.edge(at, ZERO, ZERO, at);
        } else if zero_fraction {
            let [point, zeros] = [0; 2].map(|_| self.nfa.state());
            self.nfa.edge(at, POINT, POINT, point);
            self.nfa.edge(point, ZERO, ZERO, zeros);
            self.nfa.edge(zeros, ZERO, ZERO, zeros);
            ends.push(zeros);
        }
        for end in ends {
            match exponents {
                None => self.nfa.epsilon(end, self.end),
                Some(interval) => {
                    let after_mark = self.exponents(interval)?;
                    self.exponent_marks(end, after_mark);
                }
            }
        }
        Ok(())
    }

    /// Adds the edges for `e` and `E`.
    fn exponent_marks(&mut self, from: u32, to: u32) {
        for mark in [UPPER_E, LOWER_E] {
            self.nfa.edge(from, mark, mark, to);
        }
    }

    /// The state after `e` before the exponents of an interval.
    fn exponents(&mut self, interval: ExponentInterval) -> Result<u32, String> {
        if let Some(&state) = self.exponents.get(&interval) {
            return Ok(state);
        }
        let (start, end) = self.nfa.embed(&*exponents_dfa(interval, self.limit)?);
        self.nfa.epsilon(end, self.end);
        self.exponents.insert(interval, start);
        Ok(start)
    }

    /// The automaton of the union.
    pub(super) fn finish(self) -> Result<Dfa, String> {
        self.nfa.determinize(self.limit).map_err(|error| error.to_string())
    }
}

/// Maximum size of the cached automata of exponents, in bytes.
const MAX_CACHED_BYTES: usize = 1 << 20;

/// The automaton of the exponents of an interval, with leading zeros.
fn exponents_dfa(interval: ExponentInterval, limit: usize) -> Result<Arc<Dfa>, String> {
    static CACHE: ProcessCache<(ExponentInterval, usize), Arc<Dfa>> =
        ProcessCache::new(MAX_CACHED_BYTES);
    static WHOLE: ProcessCell<Dfa> = ProcessCell::new();
    let key = (interval, limit);
    if let Some(cached) = CACHE.lock().get(&key) {
        return Ok(cached);
    }
    let too_large = |error: TooLarge| error.to_string();
    let whole = WHOLE.get_or_make(|| builtin_pattern_dfa("0|[1-9][0-9]*"));
    let mut nfa = Nfa::new();
    let [from, to] = [0; 2].map(|_| nfa.state());
    nfa.set_final(to);
    let ExponentInterval(low, high) = interval;
    let negate = |end: Option<i64>| end.map(|exponent| -exponent);
    for (sign, low, high) in [(PLUS, low, high), (MINUS, negate(high), negate(low))] {
        let mut ends = Vec::new();
        for (end, order) in [(low, Ordering::Greater), (high, Ordering::Less)] {
            let Some(end) = end else { continue };
            let bound = Bound { value: Decimal::parse(&end.to_string()), exclusive: false };
            ends.push(comparison_dfa(&bound, order)?);
        }
        let parts: Vec<(&Dfa, bool)> = ends.iter().chain([whole]).map(|dfa| (dfa, true)).collect();
        let magnitudes = Dfa::all_of(&parts, &BYTES, limit).map_err(too_large)?;
        let zeros = nfa.state();
        nfa.edge(from, sign, sign, zeros);
        if sign == PLUS {
            nfa.epsilon(from, zeros);
        }
        nfa.edge(zeros, ZERO, ZERO, zeros);
        let (start, end) = nfa.embed(&magnitudes);
        nfa.epsilon(zeros, start);
        nfa.epsilon(end, to);
    }
    let dfa = Arc::new(nfa.determinize(limit).map_err(too_large)?.minimize());
    CACHE.insert(key, dfa.clone(), dfa.bytes());
    Ok(dfa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_exponents_keep_the_limit_on_states() {
        let exponents = |limit| exponents_dfa(ExponentInterval(Some(-1234), Some(98_765)), limit);
        assert!(exponents(100_000).is_ok());
        assert!(exponents(8).is_err(), "a cached automaton must not bypass the limit");
    }
}
