//! Scientific notation: the automaton of numbers with an exponent that lie within bounds.
//!
//! Numbers have one digit before the point that is not zero, an optional fraction, and an exponent.
//! In this form, numbers of one sign are ordered by exponent first and by digits second, so the set
//! of numbers within bounds is regular. An automaton state records how the digits read so far
//! compare to those of both bounds; after `e` it records the interval of exponents that remain.

use std::cmp::Ordering;

use super::super::decimal::Decimal;
use super::super::read::facets::{Bound, NumberFacets, TypeSet};
use crate::fsm::{Dfa, DfaBuilder};
use crate::hash::HashMap;

/// Builds the automaton of numbers with an exponent that satisfy the bounds and multiples of the
/// facets; it ignores excluded values.
///
/// Zero takes any exponent. Whole multiples, and integers if `types` has only those, have only
/// zeros after the first digit. If `types` has only fractions, exponents are negative. The
/// automaton is not minimal. Cost: linear in the digits of the bounds.
pub(super) fn scientific_dfa(facets: &NumberFacets, types: TypeSet) -> Dfa {
    let mut units = facets.multiples.clone();
    if types == TypeSet::INTEGER {
        units.push(Decimal::parse("1"));
    }
    let zero = Decimal::parse("0");
    let low = facets.low.as_ref().is_none_or(|b| zero > b.value || !b.exclusive && zero == b.value);
    let high =
        facets.high.as_ref().is_none_or(|b| zero < b.value || !b.exclusive && zero == b.value);
    let builder = ScientificBuilder {
        magnitudes: [false, true].map(|negative| MagnitudeBounds::for_sign(facets, negative)),
        least: (!units.is_empty()).then(|| least_exponents(&units)),
        highest: (types == TypeSet::FRACTION).then_some(-1),
        zero: types != TypeSet::FRACTION && low && high,
        builder: DfaBuilder::new(),
        states: HashMap::default(),
        pending: Vec::new(),
    };
    builder.run()
}

/// For each first digit, the least exponent for which the digit followed by zeros is a multiple of
/// all units; `None` if there is no such exponent.
fn least_exponents(units: &[Decimal]) -> [Option<i64>; 9] {
    // No unit whose remainders are tracked has this many factors of two or five.
    const FACTORS: i64 = 64;
    std::array::from_fn(|i| {
        let least_for = |unit: &Decimal| {
            let is_multiple = |&power: &i64| {
                let value = Decimal::new(false, vec![i as u8 + 1], power + 1);
                value.is_multiple_of(unit, 4_096) == Some(true)
            };
            (unit.last_place()..unit.last_place() + FACTORS).find(is_multiple)
        };
        units
            .iter()
            .map(least_for)
            .try_fold(i64::MIN, |least, next| next.map(|next| least.max(next)))
    })
}

/// Bounds on the magnitudes of the numbers of one sign.
struct MagnitudeBounds {
    low: Option<Bound>,
    high: Option<Bound>,
}

impl MagnitudeBounds {
    /// The bounds for one sign; `None` if only zero satisfies the facets with this sign.
    fn for_sign(facets: &NumberFacets, negative: bool) -> Option<MagnitudeBounds> {
        let mut out = MagnitudeBounds { low: None, high: None };
        for (bound, from_below) in [(&facets.low, true), (&facets.high, false)] {
            let Some(bound) = bound else { continue };
            let same_sign = !bound.value.is_zero() && bound.value.is_negative() == negative;
            let magnitude = Bound { value: bound.value.abs(), ..*bound };
            match (from_below == negative, same_sign) {
                (true, true) => out.high = Some(magnitude),
                (true, false) => return None,
                (false, true) => out.low = Some(magnitude),
                (false, false) => {}
            }
        }
        Some(out)
    }

    /// The exponents that place digits within the bounds, given their comparison to the bounds'
    /// digits.
    fn exponents(&self, low: DigitComparison, high: DigitComparison) -> ExponentInterval {
        // At the exponent of the bound itself, the digits decide.
        let bound =
            |bound: &Option<Bound>, track: DigitComparison, outside: Ordering, away: i64| {
                let bound = bound.as_ref()?;
                let order = track.order(bound);
                let inside =
                    order == outside.reverse() || order == Ordering::Equal && !bound.exclusive;
                Some(bound.value.first_place() + if inside { 0 } else { away })
            };
        ExponentInterval(
            bound(&self.low, low, Ordering::Less, 1),
            bound(&self.high, high, Ordering::Greater, -1),
        )
    }
}

/// An inclusive interval of exponents; `None` is unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ExponentInterval(Option<i64>, Option<i64>);

impl ExponentInterval {
    /// Magnitudes of the exponents in the interval that are written with a minus sign, or
    /// without.
    fn magnitudes(self, negative: bool) -> Option<MagnitudeInterval> {
        let ExponentInterval(low, high) = self;
        let (low, high) = if negative { (high.map(|e| -e), low.map(|e| -e)) } else { (low, high) };
        let high = high.map(u64::try_from).transpose().ok()?;
        let low = low.and_then(|low| u64::try_from(low).ok()).unwrap_or(0);
        high.is_none_or(|high| low <= high).then_some(MagnitudeInterval(low, high))
    }
}

/// An inclusive interval of magnitudes of exponents; `None` is unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct MagnitudeInterval(u64, Option<u64>);

/// The decimal digit of `value` at an index; `None` past the last one.
fn digit_of(value: u64, index: u32) -> Option<u8> {
    value.to_string().as_bytes().get(index as usize).map(|digit| digit - b'0')
}

/// Comparison of the digits read so far with those of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DigitComparison {
    /// The first digits are equal; their number.
    Tied(u32),
    /// They differ, in this order.
    Decided(Ordering),
}

impl DigitComparison {
    /// The comparison after one more digit.
    fn next(self, bound: Option<&Bound>, digit: u8) -> DigitComparison {
        let (DigitComparison::Tied(n), Some(bound)) = (self, bound) else { return self };
        let digits = bound.value.digits();
        match digit.cmp(&digits.get(n as usize).copied().unwrap_or(0)) {
            Ordering::Equal => DigitComparison::Tied((n + 1).min(digits.len() as u32)),
            order => DigitComparison::Decided(order),
        }
    }

    /// The order if no more digits follow.
    fn order(self, bound: &Bound) -> Ordering {
        match self {
            DigitComparison::Tied(n) if (n as usize) < bound.value.digits().len() => Ordering::Less,
            DigitComparison::Tied(_) => Ordering::Equal,
            DigitComparison::Decided(order) => order,
        }
    }
}

/// Position within the mantissa.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum MantissaPosition {
    /// After the one digit before the point.
    First,
    /// After the point.
    Point,
    /// After a digit of the fraction.
    Fraction,
}

/// State of a mantissa that is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct MantissaState {
    negative: bool,
    position: MantissaPosition,
    /// Comparison with the lower bound of the magnitude.
    low: DigitComparison,
    /// Comparison with the upper bound of the magnitude.
    high: DigitComparison,
    /// Least exponent with which the number is a multiple of all units.
    least: Option<i64>,
}

/// A state of the automaton: the information about the text read so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PrefixState {
    /// Nothing.
    Start,
    /// A minus sign.
    Minus,
    /// A mantissa of zeros.
    Zero(MantissaPosition),
    /// A mantissa that is not zero.
    Mantissa(MantissaState),
    /// After `e`.
    Exponent(ExponentInterval),
    /// After the sign of the exponent.
    Signed(MagnitudeInterval),
    /// After leading zeros of the exponent.
    Zeros(MagnitudeInterval),
    /// After leading zeros and the given number of further digits of the exponent. The orders
    /// compare these digits to the first digits of both ends of the interval.
    Digits(MagnitudeInterval, u32, [Ordering; 2]),
}

/// Builds the automaton state by state, from the start on.
struct ScientificBuilder {
    /// Bounds of non-negative and of negative numbers.
    magnitudes: [Option<MagnitudeBounds>; 2],
    /// Least exponent per first digit, where numbers must be multiples.
    least: Option<[Option<i64>; 9]>,
    /// Greatest exponent, where numbers must not be whole.
    highest: Option<i64>,
    /// Whether zero is accepted.
    zero: bool,
    builder: DfaBuilder,
    states: HashMap<PrefixState, u32>,
    /// States without edges yet.
    pending: Vec<(PrefixState, u32)>,
}

impl ScientificBuilder {
    /// Builds all reachable states.
    fn run(mut self) -> Dfa {
        self.state(PrefixState::Start);
        while let Some((at, from)) = self.pending.pop() {
            match at {
                PrefixState::Start => {
                    self.edge(from, b'-', PrefixState::Minus);
                    self.first_digit(from, false);
                }
                PrefixState::Minus => self.first_digit(from, true),
                PrefixState::Zero(position) => {
                    self.point(from, position, PrefixState::Zero(MantissaPosition::Point));
                    if position != MantissaPosition::First {
                        self.edge(from, b'0', PrefixState::Zero(MantissaPosition::Fraction));
                    }
                    self.exponent_marks(from, position, ExponentInterval(None, None));
                }
                PrefixState::Mantissa(digits) => self.digits(from, digits),
                PrefixState::Exponent(interval) => {
                    if let Some(range) = interval.magnitudes(true) {
                        self.edge(from, b'-', PrefixState::Signed(range));
                    }
                    if let Some(range) = interval.magnitudes(false) {
                        self.edge(from, b'+', PrefixState::Signed(range));
                        self.exponent_start(from, range);
                    }
                }
                PrefixState::Signed(range) | PrefixState::Zeros(range) => {
                    self.exponent_start(from, range)
                }
                PrefixState::Digits(range, n, orders) => {
                    self.exponent_digits(from, range, n, orders)
                }
            }
        }
        self.builder.finish()
    }

    /// Interns a state.
    fn state(&mut self, at: PrefixState) -> u32 {
        if let Some(&state) = self.states.get(&at) {
            return state;
        }
        let is_final = match at {
            PrefixState::Zeros(MagnitudeInterval(low, _)) => low == 0,
            PrefixState::Digits(MagnitudeInterval(low, high), n, [to_low, to_high]) => {
                // Order of the whole exponent and an end of the interval: shorter is less.
                let order = |bound: u64, order: Ordering| {
                    if digit_of(bound, n).is_some() { Ordering::Less } else { order }
                };
                order(low, to_low) != Ordering::Less
                    && high.is_none_or(|high| order(high, to_high) != Ordering::Greater)
            }
            _ => false,
        };
        let state = self.builder.state(is_final);
        self.states.insert(at, state);
        self.pending.push((at, state));
        state
    }

    /// Adds an edge to a state, which is interned.
    fn edge(&mut self, from: u32, symbol: u8, at: PrefixState) {
        let to = self.state(at);
        self.builder.edge(from, u32::from(symbol), u32::from(symbol), to);
    }

    /// Adds the edge for the decimal point, where it may follow.
    fn point(&mut self, from: u32, position: MantissaPosition, at: PrefixState) {
        if position == MantissaPosition::First {
            self.edge(from, b'.', at);
        }
    }

    /// Adds the edges for `e` and `E`, where they may follow.
    fn exponent_marks(
        &mut self,
        from: u32,
        position: MantissaPosition,
        interval: ExponentInterval,
    ) {
        if position != MantissaPosition::Point {
            self.edge(from, b'e', PrefixState::Exponent(interval));
            self.edge(from, b'E', PrefixState::Exponent(interval));
        }
    }

    /// Adds the edges for the first digit.
    fn first_digit(&mut self, from: u32, negative: bool) {
        if self.zero {
            self.edge(from, b'0', PrefixState::Zero(MantissaPosition::First));
        }
        let Some(MagnitudeBounds { low, high }) = self.magnitudes[usize::from(negative)].take()
        else {
            return;
        };
        for digit in 1..=9u8 {
            let least = match &self.least {
                None => None,
                Some(least) => match least[usize::from(digit) - 1] {
                    None => continue,
                    exponent => exponent,
                },
            };
            let tied = DigitComparison::Tied(0);
            let (low, high) = (tied.next(low.as_ref(), digit), tied.next(high.as_ref(), digit));
            self.edge(
                from,
                b'0' + digit,
                PrefixState::Mantissa(MantissaState {
                    negative,
                    position: MantissaPosition::First,
                    low,
                    high,
                    least,
                }),
            );
        }
        self.magnitudes[usize::from(negative)] = Some(MagnitudeBounds { low, high });
    }

    /// Adds the edges after a digit or the point.
    fn digits(&mut self, from: u32, digits: MantissaState) {
        let Some(MagnitudeBounds { low, high }) =
            self.magnitudes[usize::from(digits.negative)].take()
        else {
            return;
        };
        self.point(
            from,
            digits.position,
            PrefixState::Mantissa(MantissaState { position: MantissaPosition::Point, ..digits }),
        );
        if digits.position != MantissaPosition::First {
            for digit in 0..=if self.least.is_some() { 0 } else { 9 } {
                let next = MantissaState {
                    position: MantissaPosition::Fraction,
                    low: digits.low.next(low.as_ref(), digit),
                    high: digits.high.next(high.as_ref(), digit),
                    ..digits
                };
                self.edge(from, b'0' + digit, PrefixState::Mantissa(next));
            }
        }
        let magnitudes = MagnitudeBounds { low, high };
        let ExponentInterval(low, high) = magnitudes.exponents(digits.low, digits.high);
        self.magnitudes[usize::from(digits.negative)] = Some(magnitudes);
        let low = low.max(digits.least);
        let high = [high, self.highest].into_iter().flatten().min();
        if low.zip(high).is_none_or(|(low, high)| low <= high) {
            self.exponent_marks(from, digits.position, ExponentInterval(low, high));
        }
    }

    /// Adds the edges for the first digits of an exponent, leading zeros included.
    fn exponent_start(&mut self, from: u32, range: MagnitudeInterval) {
        self.edge(from, b'0', PrefixState::Zeros(range));
        self.exponent_digits(from, range, 0, [Ordering::Equal; 2]);
    }

    /// Adds the edges after `n` digits of an exponent.
    fn exponent_digits(
        &mut self,
        from: u32,
        range: MagnitudeInterval,
        n: u32,
        orders: [Ordering; 2],
    ) {
        let MagnitudeInterval(low, high) = range;
        let end_digits = [digit_of(low, n), high.and_then(|high| digit_of(high, n))];
        if high.is_some() && end_digits[1].is_none() {
            return;
        }
        for digit in u8::from(n == 0)..=9 {
            let mut next = [Ordering::Equal; 2];
            for (i, order) in next.iter_mut().enumerate() {
                // More digits than the end of the interval: greater. No text is longer than the
                // upper end.
                *order =
                    end_digits[i].map_or(Ordering::Greater, |end| orders[i].then(digit.cmp(&end)));
            }
            // Without an upper end, digits past those of the lower end are not counted.
            let n = if high.is_none() && end_digits[0].is_none() { n } else { n + 1 };
            self.edge(from, b'0' + digit, PrefixState::Digits(range, n, next));
        }
    }
}
