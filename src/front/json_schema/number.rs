//! Numbers: bounds and multiples of any size as automata over the digits, without floating point.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::SchemaErrorReason as Reason;
use super::decimal::Decimal;
use super::doc::LocId;
use super::facets::{Bound, NumberFacets, Types};
use super::lower::Lowering;
use super::{Dialect as Draft, Integers};
use crate::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge};
use crate::ir::Expr;

/// Most digits of a bound.
const MAX_DIGITS: usize = 2_000;
/// Automata of bounds that schemas share, kept for the life of the process: so many, so large.
const MAX_KNOWN: usize = 512;
const MAX_KNOWN_STATES: usize = 64;

type Key = (NumberFacets, Syntax, Option<u32>);

static KNOWN: LazyLock<Mutex<FxHashMap<Key, Arc<Dfa>>>> = LazyLock::new(Mutex::default);

/// Most remainders of a multiple that are tracked.
const MAX_REMAINDERS: u64 = 20_000;

fn digits() -> Expr {
    Expr::Class(ByteSet::range(b'0', b'9'))
}

/// One digit or more, up to the cap.
fn some_digits(cap: Option<u32>) -> Expr {
    Expr::repeat(digits(), 1, cap)
}

/// `0|[1-9][0-9]*`
fn whole(cap: Option<u32>) -> Expr {
    let more = Expr::repeat(digits(), 0, cap.map(|cap| cap.saturating_sub(1)));
    Expr::alt([Expr::text("0"), Expr::seq([Expr::Class(ByteSet::range(b'1', b'9')), more])])
}

fn sign() -> Expr {
    Expr::optional(Expr::text("-"))
}

fn tail(cap: Option<u32>) -> Expr {
    let fraction = Expr::seq([Expr::text("."), some_digits(cap)]);
    let signs = Expr::optional(Expr::Class(ByteSet::of(b"+-")));
    let exponent = Expr::seq([Expr::Class(ByteSet::of(b"eE")), signs, some_digits(cap)]);
    Expr::seq([Expr::optional(fraction), Expr::optional(exponent)])
}

/// Any JSON number with at most this many digits in each of its parts.
pub(super) fn any_number(cap: Option<u32>) -> Expr {
    Expr::seq([sign(), whole(cap), tail(cap)])
}

/// Numbers without exponent whose parts have at most this many digits, as an automaton over bytes.
fn capped(cap: u32, limit: usize) -> Result<Dfa, TooLarge> {
    if cap as usize * 2 > limit {
        return Err(TooLarge { limit });
    }
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let sign = b.state(false);
    b.edge(start, 45, 45, sign);
    let mut last = vec![start, sign];
    let mut wholes = Vec::new();
    for _ in 0..cap {
        let next = b.state(true);
        last.drain(..).for_each(|from| b.edge(from, 48, 57, next));
        wholes.push(next);
        last.push(next);
    }
    let mut from = b.state(false);
    wholes.iter().for_each(|&state| b.edge(state, 46, 46, from));
    for _ in 0..cap {
        let next = b.state(true);
        b.edge(from, 48, 57, next);
        from = next;
    }
    Ok(b.finish())
}

/// How a bounded number may be spelt, as an automaton over bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Syntax {
    /// Digits.
    Digits,
    /// Digits, perhaps a fraction of zeros.
    ZeroFraction,
    /// Digits, perhaps a fraction. No exponent.
    Decimal,
    /// A fraction that is not zero.
    Fraction,
}

impl Syntax {
    fn dfa(self) -> Dfa {
        let mut b = DfaBuilder::new();
        let start = b.state(false);
        let minus = b.state(false);
        let zero = b.state(self != Syntax::Fraction);
        let whole = b.state(self != Syntax::Fraction);
        b.edge(start, 45, 45, minus);
        for from in [start, minus] {
            b.edge(from, 48, 48, zero);
            b.edge(from, 49, 57, whole);
        }
        b.edge(whole, 48, 57, whole);
        if self == Syntax::Digits {
            return b.finish();
        }
        let point = b.state(false);
        let zeros = b.state(self != Syntax::Fraction);
        b.edge(zero, 46, 46, point);
        b.edge(whole, 46, 46, point);
        b.edge(point, 48, 48, zeros);
        b.edge(zeros, 48, 48, zeros);
        if self != Syntax::ZeroFraction {
            let some = b.state(true);
            for from in [point, zeros] {
                b.edge(from, 49, 57, some);
            }
            b.edge(some, 48, 57, some);
        }
        b.finish()
    }
}

impl<'a> Lowering<'a, '_> {
    fn zero_fraction(&self) -> bool {
        self.norm.options.integers == Integers::ZeroFraction && self.norm.doc.draft(LocId::ROOT) > Draft::Draft4
    }

    /// Any integer.
    pub(super) fn any_integer(&self) -> Expr {
        let cap = self.norm.options.max_digits;
        let fraction = Expr::seq([Expr::text("."), Expr::repeat(Expr::text("0"), 1, cap)]);
        let fraction = if self.zero_fraction() { Expr::optional(fraction) } else { Expr::Empty };
        Expr::seq([sign(), whole(cap), fraction])
    }

    /// A number of these types (whole numbers, fractions or both) with these facets.
    pub(super) fn number(&mut self, facets: &NumberFacets, types: Types, at: LocId) -> Expr {
        let types = types.and(Types::NUMBER);
        if facets.is_free() {
            match types {
                Types::NUMBER => return Expr::Ref(self.number_rule()),
                Types::INTEGER => return Expr::Ref(self.integer_rule()),
                _ => {}
            }
        }
        let key = (facets.clone(), types);
        if let Some(known) = self.numbers.get(&key) {
            return known.clone();
        }
        let body = self.bounded(facets, types, at);
        let out = if body == Expr::Never { Expr::Never } else { Expr::Ref(self.rule("number".into(), body)) };
        self.numbers.insert(key, out.clone());
        out
    }

    fn bounded(&mut self, facets: &NumberFacets, types: Types, at: LocId) -> Expr {
        let syntax = match types {
            Types::INTEGER if self.zero_fraction() => Syntax::ZeroFraction,
            Types::INTEGER => Syntax::Digits,
            Types::FRACTION => Syntax::Fraction,
            _ => Syntax::Decimal,
        };
        if let NumberFacets { low: Some(Bound { value, exclusive: false }), high: None, multiples, .. } = facets
            && syntax == Syntax::Decimal
            && value.is_zero()
            && multiples.is_empty()
            && facets.excluded.is_empty()
            && facets.not_multiples.is_empty()
        {
            // The sign alone decides, so exponents do no harm.
            let cap = self.norm.options.max_digits;
            return Expr::seq([whole(cap), tail(cap)]);
        }
        let key = (facets.clone(), syntax, self.norm.options.max_digits);
        if let Some(known) = KNOWN.lock().get(&key) {
            return Expr::Automaton(known.clone());
        }
        match self.number_dfa(facets, syntax) {
            Ok(dfa) if dfa.is_empty() => {
                self.norm.conflict(at, "", "no number lies within the bounds");
                Expr::Never
            }
            Ok(dfa) => {
                let dfa = Arc::new(dfa);
                let mut known = KNOWN.lock();
                if known.len() < MAX_KNOWN && dfa.len() <= MAX_KNOWN_STATES {
                    known.insert(key, dfa.clone());
                }
                Expr::Automaton(dfa)
            }
            Err(what) => {
                self.norm.report(at, "", Reason::Limit(what));
                Expr::Never
            }
        }
    }

    fn number_dfa(&self, facets: &NumberFacets, syntax: Syntax) -> Result<Dfa, String> {
        let limit = self.norm.limits.automaton_states;
        let too_large = |e: TooLarge| e.to_string();
        let mut dfa = syntax.dfa();
        if let Some(cap) = self.norm.options.max_digits {
            let next = capped(cap, limit).map_err(too_large)?;
            dfa = dfa.combine(&next, Combine::And, limit).map_err(too_large)?;
        }
        if let Some(bound) = &facets.low {
            let next = compared(bound, Ordering::Greater)?;
            dfa = dfa.combine(&next, Combine::And, limit).map_err(too_large)?;
        }
        if let Some(bound) = &facets.high {
            let next = compared(bound, Ordering::Less)?;
            dfa = dfa.combine(&next, Combine::And, limit).map_err(too_large)?;
        }
        for unit in &facets.multiples {
            dfa = dfa.combine(&multiples(unit)?, Combine::And, limit).map_err(too_large)?;
        }
        for value in &facets.excluded {
            dfa = dfa.combine(&equal(value)?, Combine::Minus, limit).map_err(too_large)?;
        }
        for unit in &facets.not_multiples {
            dfa = dfa.combine(&multiples(unit)?, Combine::Minus, limit).map_err(too_large)?;
        }
        Ok(dfa)
    }
}

/// Decimal numbers (without exponent, syntax not checked) that equal this one.
fn equal(value: &Decimal) -> Result<Dfa, String> {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, 45, 45, minus);
    let wanted = Wanted { equal: true, ..Wanted::NONE };
    for (from, negative) in [(start, false), (minus, true)] {
        if value.is_zero() || value.is_negative() == negative {
            magnitudes(&mut b, from, &value.abs(), wanted)?;
        }
    }
    Ok(b.finish())
}

/// Decimal numbers (without exponent, syntax not checked) that stand in this order to a bound, or equal it unless it is exclusive.
fn compared(bound: &Bound, order: Ordering) -> Result<Dfa, String> {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, 45, 45, minus);
    let equal = !bound.exclusive;
    let magnitude = bound.value.abs();
    // For each sign: the wanted order of magnitudes, or all, or none of them.
    let (positive, negative) = match (order, bound.value.is_negative()) {
        (Ordering::Greater, false) => (Wanted::only(Ordering::Greater, equal), Wanted::zero(&magnitude, equal)),
        (Ordering::Greater, true) => (Wanted::ALL, Wanted::only(Ordering::Less, equal)),
        (_, false) => (Wanted::only(Ordering::Less, equal), Wanted::below_zero(&magnitude, equal)),
        (_, true) => (Wanted::NONE, Wanted::only(Ordering::Greater, equal)),
    };
    magnitudes(&mut b, start, &magnitude, positive)?;
    magnitudes(&mut b, minus, &magnitude, negative)?;
    Ok(b.finish())
}

/// Which magnitudes are wanted: those less than, equal to, greater than the bound's.
#[derive(Clone, Copy)]
struct Wanted {
    less: bool,
    equal: bool,
    greater: bool,
}

impl Wanted {
    const ALL: Wanted = Wanted { less: true, equal: true, greater: true };
    const NONE: Wanted = Wanted { less: false, equal: false, greater: false };

    fn only(order: Ordering, equal: bool) -> Wanted {
        Wanted { less: order == Ordering::Less, equal, greater: order == Ordering::Greater }
    }

    /// `-m >= bound` for a bound that is not negative: only `-0`, if the bound is zero.
    fn zero(bound: &Decimal, equal: bool) -> Wanted {
        Wanted { equal: bound.is_zero() && equal, ..Wanted::NONE }
    }

    /// `-m <= bound` for a bound that is not negative: all, except `-0` where the bound is zero and exclusive.
    fn below_zero(bound: &Decimal, equal: bool) -> Wanted {
        Wanted { equal: equal || !bound.is_zero(), ..Wanted::ALL }
    }

    fn of(self, order: Ordering) -> bool {
        match order {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }
}

/// Adds states behind `from` that read digits, perhaps a point and digits, and are final where the number compares to
/// `bound` as wanted. Relies on the syntax having no leading zeros: then more digits mean a greater number.
fn magnitudes(b: &mut DfaBuilder, from: u32, bound: &Decimal, wanted: Wanted) -> Result<(), String> {
    let (mut integer, fraction) =
        bound.parts(MAX_DIGITS).ok_or(format!("a bound has more than {MAX_DIGITS} digits"))?;
    if integer.is_empty() {
        integer.push(0);
    }
    let n = integer.len();
    const ORDERS: [Ordering; 3] = [Ordering::Less, Ordering::Equal, Ordering::Greater];
    let slot = |order: Ordering| (order as i8 + 1) as usize;
    // Behind the point: decided, or still equal up to digit j of the fraction.
    let decided: Vec<u32> = ORDERS.iter().map(|&o| b.state(wanted.of(o))).collect();
    for order in [Ordering::Less, Ordering::Greater] {
        let s = decided[slot(order)];
        b.edge(s, 48, 57, s);
    }
    let undecided: Vec<u32> = (0..=fraction.len())
        .map(|j| b.state(wanted.of(if j < fraction.len() { Ordering::Less } else { Ordering::Equal })))
        .collect();
    for (j, &s) in undecided.iter().enumerate() {
        let digit = fraction.get(j).copied().unwrap_or(0);
        let next = undecided.get(j + 1).copied().unwrap_or(s);
        by_digit(b, s, digit, [decided[0], next, decided[2]]);
    }
    let behind_point = |order: Ordering| match order {
        Ordering::Equal => undecided[0],
        order => decided[slot(order)],
    };
    // More digits than the bound has.
    let more = b.state(wanted.greater);
    b.edge(more, 48, 57, more);
    b.edge(more, 46, 46, decided[2]);
    // After i digits, compared to the bound's first i.
    let mut row = [from; 3];
    for (i, &digit) in integer.iter().enumerate() {
        let last = i + 1 == n;
        let at_end = |order: Ordering| match order {
            _ if !last => Ordering::Less,
            Ordering::Equal if !fraction.is_empty() => Ordering::Less,
            order => order,
        };
        let next: Vec<u32> = ORDERS.iter().map(|&o| b.state(wanted.of(at_end(o)))).collect();
        for &order in &ORDERS {
            let s = next[slot(order)];
            b.edge(s, 46, 46, if last { behind_point(order) } else { decided[0] });
            if last {
                b.edge(s, 48, 57, more);
            }
        }
        by_digit(b, row[1], digit, [next[0], next[1], next[2]]);
        if i > 0 {
            b.edge(row[0], 48, 57, next[0]);
            b.edge(row[2], 48, 57, next[2]);
        }
        row = [next[0], next[1], next[2]];
    }
    Ok(())
}

/// Edges for digits below, equal to and above one digit.
fn by_digit(b: &mut DfaBuilder, from: u32, digit: u8, to: [u32; 3]) {
    let code = u32::from(b'0' + digit);
    if digit > 0 {
        b.edge(from, 48, code - 1, to[0]);
    }
    b.edge(from, code, code, to[1]);
    if digit < 9 {
        b.edge(from, code + 1, 57, to[2]);
    }
}

/// Decimal numbers (without exponent, syntax not checked) that are whole multiples of a positive unit.
fn multiples(unit: &Decimal) -> Result<Dfa, String> {
    let too_large = || format!("multiples are tracked up to {MAX_REMAINDERS} remainders");
    let (integer, fraction) = unit.parts(18).ok_or_else(too_large)?;
    if integer.len() + fraction.len() > 18 {
        return Err(too_large());
    }
    let places = fraction.len();
    let modulus = integer.iter().chain(&fraction).fold(0u64, |n, &d| n * 10 + u64::from(d));
    if modulus * (places as u64 + 2) > MAX_REMAINDERS {
        return Err(too_large());
    }
    let scaled = |rest: u64, by: usize| (0..by).fold(rest, |r, _| r * 10 % modulus) == 0;
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    // One block of states a digit position: the integer part, then each place behind the point; the last is for zeros.
    let block = |position: usize, rest: u64| (1 + position as u64 * modulus + rest) as u32;
    for position in 0..=places + 1 {
        for rest in 0..modulus {
            let is_final = match position {
                0 => scaled(rest, places),
                p if p <= places => scaled(rest, places - p),
                _ => rest == 0,
            };
            b.state(is_final);
        }
    }
    b.edge(start, 45, 45, start);
    for position in 0..=places + 1 {
        for rest in 0..modulus {
            let from = block(position, rest);
            let zeros_only = position > places;
            for digit in 0..=if zeros_only { 0 } else { 9u64 } {
                let code = 48 + digit as u32;
                let next = (rest * 10 + digit) % modulus;
                match position {
                    0 => b.edge(from, code, code, block(0, next)),
                    p if p < places => b.edge(from, code, code, block(p + 1, next)),
                    _ if digit == 0 => b.edge(from, code, code, block(places + 1, rest)),
                    _ => {}
                }
            }
        }
    }
    for digit in 0..10u64 {
        let code = 48 + digit as u32;
        b.edge(start, code, code, block(0, digit % modulus));
    }
    Ok(with_point(b, modulus, places))
}

/// Adds the decimal point's edges to [`multiples`]: a state of its own for each remainder, so that a digit must follow.
fn with_point(mut b: DfaBuilder, modulus: u64, places: usize) -> Dfa {
    for rest in 0..modulus {
        let point = b.state(false);
        b.edge(1 + rest as u32, 46, 46, point);
        for digit in 0..10u64 {
            let code = 48 + digit as u32;
            let to = match places {
                0 if digit == 0 => 1 + (modulus + rest) as u32,
                0 => continue,
                _ => (1 + modulus + (rest * 10 + digit) % modulus) as u32,
            };
            b.edge(point, code, code, to);
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str, exclusive: bool) -> Bound {
        Bound { value: Decimal::parse(text), exclusive }
    }

    const SAMPLES: &[&str] = &[
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1",
        "-1",
        "9",
        "10",
        "11",
        "99",
        "100",
        "101",
        "-9",
        "-10",
        "-11",
        "0.1",
        "0.10",
        "0.09",
        "0.11",
        "-0.1",
        "1.5",
        "1.49",
        "1.51",
        "10.0",
        "10.01",
        "9.99",
        "-9.99",
        "-10.01",
        "12345678901234567890",
        "5e-1",
    ];

    #[test]
    fn bounds_agree_with_comparison() {
        let syntax = Syntax::Decimal.dfa();
        for limit in ["0", "1", "-1", "10", "-10", "0.1", "-0.1", "1.5", "100", "12345678901234567890", "0.09"] {
            for exclusive in [false, true] {
                let b = bound(limit, exclusive);
                for order in [Ordering::Less, Ordering::Greater] {
                    let dfa = compared(&b, order).unwrap().combine(&syntax, Combine::And, 10_000).unwrap();
                    for sample in SAMPLES.iter().filter(|s| !s.contains('e')) {
                        let value = Decimal::parse(sample);
                        let want = value.cmp(&b.value) == order || (!exclusive && value == b.value);
                        let got = dfa.accepts(sample.bytes().map(u32::from));
                        assert_eq!(got, want, "{sample} {order:?} {limit} exclusive {exclusive}");
                    }
                }
            }
        }
    }

    #[test]
    fn multiples_agree_with_division() {
        let syntax = Syntax::Decimal.dfa();
        for unit in ["1", "2", "3", "7", "10", "100", "0.5", "0.1", "0.01", "2.5", "1.50"] {
            let unit = Decimal::parse(unit);
            let dfa = multiples(&unit).unwrap().combine(&syntax, Combine::And, 100_000).unwrap();
            for sample in SAMPLES.iter().filter(|s| !s.contains('e')) {
                let want = Decimal::parse(sample).is_multiple_of(&unit, 100).unwrap();
                assert_eq!(dfa.accepts(sample.bytes().map(u32::from)), want, "{sample} of {unit:?}");
            }
        }
        assert!(multiples(&Decimal::parse("123456789")).is_err());
    }

    #[test]
    fn syntaxes() {
        let accepts = |s: Syntax, text: &str| s.dfa().accepts(text.bytes().map(u32::from));
        assert!(accepts(Syntax::Digits, "-10") && !accepts(Syntax::Digits, "1.0") && !accepts(Syntax::Digits, "01"));
        assert!(accepts(Syntax::ZeroFraction, "1.00") && !accepts(Syntax::ZeroFraction, "1.01"));
        assert!(
            accepts(Syntax::Fraction, "0.50") && !accepts(Syntax::Fraction, "5.0") && !accepts(Syntax::Fraction, "5")
        );
        assert!(accepts(Syntax::Decimal, "0.50") && !accepts(Syntax::Decimal, "1.") && !accepts(Syntax::Decimal, ".5"));
    }
}
