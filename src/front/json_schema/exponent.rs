//! Numbers with an exponent within bounds: one digit before the point, which is not zero, perhaps a fraction, then the exponent.
//! Their order is that of the exponents and then that of the digits, so the set is regular.

use std::cmp::Ordering;

use super::decimal::Decimal;
use super::facets::{Bound, NumberFacets, Types};
use crate::fsm::{Dfa, DfaBuilder};
use crate::hash::HashMap;

/// Numbers with an exponent (as this module spells them, and zero with any exponent) that satisfy bounds and multiples. What is
/// excluded is not looked at. A whole multiple, and an integer if only those are asked for, has only zeros behind its first digit; if
/// only numbers that are not whole are asked for, exponents are negative. Not minimal; cost: the bounds' digits.
pub(super) fn with_exponent(facets: &NumberFacets, types: Types) -> Dfa {
    let mut units = facets.multiples.clone();
    if types == Types::INTEGER {
        units.push(Decimal::parse("1"));
    }
    let zero = Decimal::parse("0");
    let low = facets.low.as_ref().is_none_or(|b| zero > b.value || !b.exclusive && zero == b.value);
    let high =
        facets.high.as_ref().is_none_or(|b| zero < b.value || !b.exclusive && zero == b.value);
    let build = Build {
        magnitudes: [false, true].map(|negative| Magnitudes::of(facets, negative)),
        least: (!units.is_empty()).then(|| least(&units)),
        highest: (types == Types::FRACTION).then_some(-1),
        zero: types != Types::FRACTION && low && high,
        builder: DfaBuilder::new(),
        known: HashMap::default(),
        pending: Vec::new(),
    };
    build.run()
}

/// For each first digit, the least exponent with which it begins a whole multiple of all units if zeros follow; `None`: there is none.
fn least(units: &[Decimal]) -> [Option<i64>; 9] {
    // So many factors of two or five has no unit whose remainders are tracked.
    const FACTORS: i64 = 64;
    std::array::from_fn(|i| {
        let of = |unit: &Decimal| {
            let is_multiple = |&power: &i64| {
                let value = Decimal::new(false, vec![i as u8 + 1], power + 1);
                value.is_multiple_of(unit, 4_096) == Some(true)
            };
            (unit.place()..unit.place() + FACTORS).find(is_multiple)
        };
        units.iter().map(of).try_fold(i64::MIN, |least, next| next.map(|next| least.max(next)))
    })
}

/// Bounds of the magnitudes of numbers of one sign.
struct Magnitudes {
    low: Option<Bound>,
    high: Option<Bound>,
}

impl Magnitudes {
    /// `None`: no number of this sign but zero lies within the bounds.
    fn of(facets: &NumberFacets, negative: bool) -> Option<Magnitudes> {
        let mut out = Magnitudes { low: None, high: None };
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

    /// The exponents with which digits that compare so to those of the bounds lie within them.
    fn exponents(&self, low: Track, high: Track) -> Interval {
        // With the bound's own exponent the digits decide.
        let bound = |bound: &Option<Bound>, track: Track, outside: Ordering, away: i64| {
            let bound = bound.as_ref()?;
            let order = track.order(bound);
            let inside = order == outside.reverse() || order == Ordering::Equal && !bound.exclusive;
            Some(bound.value.power() + if inside { 0 } else { away })
        };
        Interval(
            bound(&self.low, low, Ordering::Less, 1),
            bound(&self.high, high, Ordering::Greater, -1),
        )
    }
}

/// Exponents from one to another, both included; `None`: no bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Interval(Option<i64>, Option<i64>);

impl Interval {
    /// Their magnitudes, of those that are written with a minus sign or without.
    fn magnitudes(self, negative: bool) -> Option<Range> {
        let Interval(low, high) = self;
        let (low, high) = if negative { (high.map(|e| -e), low.map(|e| -e)) } else { (low, high) };
        let high = high.map(u64::try_from).transpose().ok()?;
        let low = low.and_then(|low| u64::try_from(low).ok()).unwrap_or(0);
        high.is_none_or(|high| low <= high).then_some(Range(low, high))
    }
}

/// Magnitudes of exponents, from one to another, both included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Range(u64, Option<u64>);

/// The digit of a number at an index; `None` behind its last one.
fn digit_of(value: u64, index: u32) -> Option<u8> {
    value.to_string().as_bytes().get(index as usize).map(|digit| digit - b'0')
}

/// How digits so far compare to those of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Track {
    /// Equal, so many of them.
    Tied(u32),
    Decided(Ordering),
}

impl Track {
    fn next(self, bound: Option<&Bound>, digit: u8) -> Track {
        let (Track::Tied(n), Some(bound)) = (self, bound) else { return self };
        let digits = bound.value.digits();
        match digit.cmp(&digits.get(n as usize).copied().unwrap_or(0)) {
            Ordering::Equal => Track::Tied((n + 1).min(digits.len() as u32)),
            order => Track::Decided(order),
        }
    }

    /// How they compare if no more follow.
    fn order(self, bound: &Bound) -> Ordering {
        match self {
            Track::Tied(n) if (n as usize) < bound.value.digits().len() => Ordering::Less,
            Track::Tied(_) => Ordering::Equal,
            Track::Decided(order) => order,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// The one digit before the point.
    First,
    Point,
    Fraction,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Digits {
    negative: bool,
    part: Part,
    /// Compared to the bounds'.
    low: Track,
    high: Track,
    /// The exponent must be at least this.
    least: Option<i64>,
}

/// A state: what has been read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Start,
    Minus,
    Zero(Part),
    Digits(Digits),
    /// Behind `e`.
    Exponent(Interval),
    /// Behind an exponent's sign.
    Signed(Range),
    /// Only zeros of the exponent.
    Zeros(Range),
    /// So many digits of an exponent behind its leading zeros, and how they compare to the bounds' first ones.
    Number(Range, u32, [Ordering; 2]),
}

struct Build {
    magnitudes: [Option<Magnitudes>; 2],
    least: Option<[Option<i64>; 9]>,
    highest: Option<i64>,
    zero: bool,
    builder: DfaBuilder,
    known: HashMap<At, u32>,
    pending: Vec<(At, u32)>,
}

impl Build {
    fn run(mut self) -> Dfa {
        self.state(At::Start);
        while let Some((at, from)) = self.pending.pop() {
            match at {
                At::Start => {
                    self.edge(from, b'-', At::Minus);
                    self.first(from, false);
                }
                At::Minus => self.first(from, true),
                At::Zero(part) => {
                    self.point(from, part, At::Zero(Part::Point));
                    if part != Part::First {
                        self.edge(from, b'0', At::Zero(Part::Fraction));
                    }
                    self.exponent(from, part, Interval(None, None));
                }
                At::Digits(digits) => self.digits(from, digits),
                At::Exponent(interval) => {
                    if let Some(range) = interval.magnitudes(true) {
                        self.edge(from, b'-', At::Signed(range));
                    }
                    if let Some(range) = interval.magnitudes(false) {
                        self.edge(from, b'+', At::Signed(range));
                        self.begin(from, range);
                    }
                }
                At::Signed(range) | At::Zeros(range) => self.begin(from, range),
                At::Number(range, n, orders) => self.number(from, range, n, orders),
            }
        }
        self.builder.finish()
    }

    fn state(&mut self, at: At) -> u32 {
        if let Some(&known) = self.known.get(&at) {
            return known;
        }
        let is_final = match at {
            At::Zeros(Range(low, _)) => low == 0,
            At::Number(Range(low, high), n, [to_low, to_high]) => {
                // How the number compares to one whose first digits it has been compared to.
                let order = |bound: u64, order: Ordering| {
                    if digit_of(bound, n).is_some() { Ordering::Less } else { order }
                };
                order(low, to_low) != Ordering::Less
                    && high.is_none_or(|high| order(high, to_high) != Ordering::Greater)
            }
            _ => false,
        };
        let state = self.builder.state(is_final);
        self.known.insert(at, state);
        self.pending.push((at, state));
        state
    }

    fn edge(&mut self, from: u32, symbol: u8, at: At) {
        let to = self.state(at);
        self.builder.edge(from, u32::from(symbol), u32::from(symbol), to);
    }

    fn point(&mut self, from: u32, part: Part, at: At) {
        if part == Part::First {
            self.edge(from, b'.', at);
        }
    }

    fn exponent(&mut self, from: u32, part: Part, interval: Interval) {
        if part != Part::Point {
            self.edge(from, b'e', At::Exponent(interval));
            self.edge(from, b'E', At::Exponent(interval));
        }
    }

    /// The edges for the first digit.
    fn first(&mut self, from: u32, negative: bool) {
        if self.zero {
            self.edge(from, b'0', At::Zero(Part::First));
        }
        let Some(Magnitudes { low, high }) = self.magnitudes[usize::from(negative)].take() else {
            return;
        };
        for digit in 1..=9u8 {
            let least = match &self.least {
                None => None,
                Some(least) => match least[usize::from(digit) - 1] {
                    None => continue,
                    known => known,
                },
            };
            let tied = Track::Tied(0);
            let (low, high) = (tied.next(low.as_ref(), digit), tied.next(high.as_ref(), digit));
            self.edge(
                from,
                b'0' + digit,
                At::Digits(Digits { negative, part: Part::First, low, high, least }),
            );
        }
        self.magnitudes[usize::from(negative)] = Some(Magnitudes { low, high });
    }

    /// The edges behind a digit or the point.
    fn digits(&mut self, from: u32, digits: Digits) {
        let Some(Magnitudes { low, high }) = self.magnitudes[usize::from(digits.negative)].take()
        else {
            return;
        };
        self.point(from, digits.part, At::Digits(Digits { part: Part::Point, ..digits }));
        if digits.part != Part::First {
            for digit in 0..=if self.least.is_some() { 0 } else { 9 } {
                let next = Digits {
                    part: Part::Fraction,
                    low: digits.low.next(low.as_ref(), digit),
                    high: digits.high.next(high.as_ref(), digit),
                    ..digits
                };
                self.edge(from, b'0' + digit, At::Digits(next));
            }
        }
        let magnitudes = Magnitudes { low, high };
        let Interval(low, high) = magnitudes.exponents(digits.low, digits.high);
        self.magnitudes[usize::from(digits.negative)] = Some(magnitudes);
        let low = low.max(digits.least);
        let high = [high, self.highest].into_iter().flatten().min();
        if low.zip(high).is_none_or(|(low, high)| low <= high) {
            self.exponent(from, digits.part, Interval(low, high));
        }
    }

    /// The edges where only zeros of an exponent have been read, or nothing.
    fn begin(&mut self, from: u32, range: Range) {
        self.edge(from, b'0', At::Zeros(range));
        self.number(from, range, 0, [Ordering::Equal; 2]);
    }

    /// The edges behind `n` digits of an exponent.
    fn number(&mut self, from: u32, range: Range, n: u32, orders: [Ordering; 2]) {
        let Range(low, high) = range;
        let ends = [digit_of(low, n), high.and_then(|high| digit_of(high, n))];
        if high.is_some() && ends[1].is_none() {
            return;
        }
        for digit in u8::from(n == 0)..=9 {
            let mut next = [Ordering::Equal; 2];
            for (i, order) in next.iter_mut().enumerate() {
                // Longer than the bound: greater. (Nothing is longer than the upper one.)
                *order = ends[i].map_or(Ordering::Greater, |end| orders[i].then(digit.cmp(&end)));
            }
            // Past the lower bound's digits their number no longer matters where there is no upper bound.
            let n = if high.is_none() && ends[0].is_none() { n } else { n + 1 };
            self.edge(from, b'0' + digit, At::Number(range, n, next));
        }
    }
}
