//! Scientific notation: the automaton of numbers with an exponent that lie within bounds.
//!
//! Numbers are zero, or have one digit before the point that is not zero. With mantissas `m` and
//! `l` from 1 to below 10, `m * 10^e` is at least `l * 10^p` if `e > p`, or if `e = p` and
//! `m >= l`. So a bound divides the mantissas into two classes, and all mantissas of a class may
//! have the same exponents. The automaton is the union of the mantissas of each class with its
//! exponents.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::super::decimal::Decimal;
use super::super::read::facets::{Bound, JsonTypes, NumberFacets};
use super::builtin_pattern::builtin_pattern_dfa;
use super::comparison::comparison_dfa;
use super::number_text::{LOWER_E, MINUS, PLUS, UPPER_E, ZERO};
use crate::cache::ProcessCell;
use crate::fsm::{Dfa, Nfa};
use crate::hash::HashMap;

/// All bytes.
const BYTES: [(u32, u32); 1] = [(0, 255)];

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
    let mut out = Scientific::new(limit);
    let zero = Decimal::parse("0");
    if types != JsonTypes::FRACTION && facets.is_within_bounds(&zero) {
        static CELL: ProcessCell<Dfa> = ProcessCell::new();
        let mantissa = CELL.get_or_make(|| builtin_pattern_dfa(r"-?0(?:\.0+)?"));
        out.add(out.start, mantissa, ExponentInterval(None, None))?;
    }
    let mantissas = mantissas(&units);
    for negative in [false, true] {
        let Some([low, high]) = magnitude_bounds(facets, negative) else { continue };
        let from = out.after_sign(negative);
        let low = BoundClass::both(low.as_ref(), Ordering::Greater)?;
        let high = BoundClass::both(high.as_ref(), Ordering::Less)?;
        for (mantissas, least) in &mantissas {
            for (low, high) in low.iter().flat_map(|low| high.iter().map(move |high| (low, high))) {
                let bounds = [low, high].into_iter().flat_map(|class| &class.mantissas);
                let parts: Vec<(&Dfa, bool)> =
                    bounds.chain([mantissas]).map(|dfa| (dfa, true)).collect();
                let part = Dfa::all_of(&parts, &BYTES, limit).map_err(|e| e.to_string())?;
                let highest = (types == JsonTypes::FRACTION).then_some(-1);
                let high = [high.exponent, highest].into_iter().flatten().min();
                out.add(from, &part, ExponentInterval(low.exponent.max(*least), high))?;
            }
        }
    }
    out.finish()
}

/// The mantissas that are not zero. Where numbers must be multiples of units, those of one digit,
/// grouped by the least exponent with which they are.
fn mantissas(units: &[Decimal]) -> Vec<(Dfa, Option<i64>)> {
    if units.is_empty() {
        return vec![(builtin_pattern_dfa(r"[1-9](?:\.[0-9]+)?"), None)];
    }
    let mut digits: BTreeMap<i64, String> = BTreeMap::new();
    for digit in 1..=9 {
        if let Some(least) = least_exponent(digit, units) {
            digits.entry(least).or_default().push(char::from(b'0' + digit));
        }
    }
    let group =
        |(least, digits)| (builtin_pattern_dfa(&format!(r"[{digits}](?:\.0+)?")), Some(least));
    digits.into_iter().map(group).collect()
}

/// The least exponent for which a digit followed by zeros is a multiple of all units; `None` if
/// there is none.
fn least_exponent(digit: u8, units: &[Decimal]) -> Option<i64> {
    // No unit whose remainders are tracked has this many factors of two or five.
    const FACTORS: i64 = 64;
    let least_for = |unit: &Decimal| {
        let is_multiple = |&power: &i64| {
            let value = Decimal::new(false, vec![digit], power + 1);
            value.is_multiple_of(unit, 4_096) == Some(true)
        };
        (unit.last_place()..unit.last_place() + FACTORS).find(is_multiple)
    };
    units.iter().map(least_for).try_fold(i64::MIN, |least, next| next.map(|next| least.max(next)))
}

/// The lower and the upper bound of the magnitudes of the numbers of one sign; `None` if only zero
/// satisfies the facets with this sign.
fn magnitude_bounds(facets: &NumberFacets, negative: bool) -> Option<[Option<Bound>; 2]> {
    let mut out = [None, None];
    for (bound, from_below) in [(&facets.low, true), (&facets.high, false)] {
        let Some(bound) = bound else { continue };
        let has_sign = !bound.value.is_zero() && bound.value.is_negative() == negative;
        let magnitude = Bound { value: bound.value.abs(), ..*bound };
        match (from_below == negative, has_sign) {
            (true, true) => out[1] = Some(magnitude),
            (true, false) => return None,
            (false, true) => out[0] = Some(magnitude),
            (false, false) => {}
        }
    }
    Some(out)
}

/// The mantissas that lie on one side of a bound's, with the exponent next to the bound.
struct BoundClass {
    /// `None`: all mantissas.
    mantissas: Option<Dfa>,
    /// The last exponent within the bound. `None`: any exponent.
    exponent: Option<i64>,
}

impl BoundClass {
    /// Both classes of a bound, which numbers are on the given side of. One class without a bound.
    fn both(bound: Option<&Bound>, side: Ordering) -> Result<Vec<BoundClass>, String> {
        let Some(Bound { value, exclusive }) = bound else {
            return Ok(vec![BoundClass { mantissas: None, exponent: None }]);
        };
        let mantissa = Decimal::new(false, value.digits().to_vec(), 1);
        let class = |exclusive: bool, order: Ordering, away: i64| -> Result<BoundClass, String> {
            let bound = Bound { value: mantissa.clone(), exclusive };
            let mantissas = Some(comparison_dfa(&bound, order)?);
            Ok(BoundClass { mantissas, exponent: Some(value.first_place() + away) })
        };
        let away = if side == Ordering::Greater { 1 } else { -1 };
        Ok(vec![class(*exclusive, side, 0)?, class(!exclusive, side.reverse(), away)?])
    }
}

/// An inclusive interval of exponents; `None` is unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ExponentInterval(Option<i64>, Option<i64>);

/// A union of mantissas with their exponents.
struct Scientific {
    nfa: Nfa,
    limit: usize,
    start: u32,
    end: u32,
    /// States after `e`.
    exponents: HashMap<ExponentInterval, u32>,
}

impl Scientific {
    /// The empty union.
    fn new(limit: usize) -> Self {
        let mut nfa = Nfa::new();
        let [start, end] = [0; 2].map(|_| nfa.state());
        nfa.set_final(end);
        Scientific { nfa, limit, start, end, exponents: HashMap::default() }
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

    /// Adds mantissas with the exponents of an interval.
    fn add(&mut self, from: u32, mantissas: &Dfa, range: ExponentInterval) -> Result<(), String> {
        if mantissas.is_empty() || range.0.zip(range.1).is_some_and(|(low, high)| low > high) {
            return Ok(());
        }
        let after_mark = match self.exponents.get(&range) {
            Some(&state) => state,
            None => self.add_exponents(range)?,
        };
        let (start, end) = self.nfa.embed(mantissas);
        self.nfa.epsilon(from, start);
        for mark in [UPPER_E, LOWER_E] {
            self.nfa.edge(end, mark, mark, after_mark);
        }
        Ok(())
    }

    /// Adds the exponents of an interval, with leading zeros. Returns the state before them.
    fn add_exponents(&mut self, range: ExponentInterval) -> Result<u32, String> {
        static CELL: ProcessCell<Dfa> = ProcessCell::new();
        let whole = CELL.get_or_make(|| builtin_pattern_dfa("0|[1-9][0-9]*"));
        let from = self.nfa.state();
        self.exponents.insert(range, from);
        let ExponentInterval(low, high) = range;
        let negate = |end: Option<i64>| end.map(|exponent| -exponent);
        for (sign, low, high) in [(PLUS, low, high), (MINUS, negate(high), negate(low))] {
            let mut ends = Vec::new();
            for (end, order) in [(low, Ordering::Greater), (high, Ordering::Less)] {
                let Some(end) = end else { continue };
                let bound = Bound { value: Decimal::parse(&end.to_string()), exclusive: false };
                ends.push(comparison_dfa(&bound, order)?);
            }
            let parts: Vec<(&Dfa, bool)> =
                ends.iter().chain([whole]).map(|dfa| (dfa, true)).collect();
            let magnitudes =
                Dfa::all_of(&parts, &BYTES, self.limit).map_err(|error| error.to_string())?;
            let zeros = self.nfa.state();
            self.nfa.edge(from, sign, sign, zeros);
            if sign == PLUS {
                self.nfa.epsilon(from, zeros);
            }
            self.nfa.edge(zeros, ZERO, ZERO, zeros);
            let (start, end) = self.nfa.embed(&magnitudes);
            self.nfa.epsilon(zeros, start);
            self.nfa.epsilon(end, self.end);
        }
        Ok(from)
    }

    /// The automaton of the union.
    fn finish(self) -> Result<Dfa, String> {
        self.nfa.determinize(self.limit).map_err(|error| error.to_string())
    }
}
