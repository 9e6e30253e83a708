//! Numbers: bounds and multiples of any size as automata over the digits, without floating point.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use super::SchemaErrorReason as Reason;
use super::decimal::Decimal;
use super::doc::LocId;
use super::exponent::with_exponent;
use super::facets::{Bound, NumberFacets, Types};
use super::listed::{Spellings, listed};
use super::lower::Lowering;
use super::magnitude::{DOUBLE, capped, marks};
use super::multiples::multiples;
use super::{Dialect as Draft, Exponents, Integers, SchemaOptions};
use crate::fsm::{Combine, Dfa, DfaBuilder, TooLarge};
use crate::hash::HashMap;
use crate::ir::{Expr, Literal};

/// Most digits of a bound.
const MAX_DIGITS: usize = 2_000;
/// Most states of the automata of bounds that schemas share, all together, kept for the life of the process.
const MAX_KNOWN_STATES: usize = 1 << 15;

/// Facets, syntax, most digits.
type Key = (NumberFacets, Syntax, Option<u32>);

/// Automata that schemas share, and how many states they have.
#[derive(Default)]
struct Known {
    automata: HashMap<Key, Arc<Dfa>>,
    states: usize,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Most listed numbers that may have exponents, in a schema.
const MAX_LISTED: usize = 1_000;
/// Steps that an automaton of bounds costs.
const BOUNDED: usize = 4_000;

/// How a bounded number may be spelt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Syntax {
    plain: Plain,
    exponents: Exponents,
}

/// How a number may be spelt without an exponent, as an automaton over bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Plain {
    /// Digits.
    Digits,
    /// Digits, perhaps a fraction of zeros.
    ZeroFraction,
    /// Digits, perhaps a fraction.
    Decimal,
    /// A fraction that is not zero.
    Fraction,
}

impl Plain {
    fn dfa(self) -> Dfa {
        let mut b = DfaBuilder::new();
        let start = b.state(false);
        let minus = b.state(false);
        let zero = b.state(self != Plain::Fraction);
        let whole = b.state(self != Plain::Fraction);
        b.edge(start, 45, 45, minus);
        for from in [start, minus] {
            b.edge(from, 48, 48, zero);
            b.edge(from, 49, 57, whole);
        }
        b.edge(whole, 48, 57, whole);
        if self == Plain::Digits {
            return b.finish();
        }
        let point = b.state(false);
        let zeros = b.state(self != Plain::Fraction);
        b.edge(zero, 46, 46, point);
        b.edge(whole, 46, 46, point);
        b.edge(point, 48, 48, zeros);
        b.edge(zeros, 48, 48, zeros);
        if self != Plain::ZeroFraction {
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
        self.norm.options.integers == Integers::ZeroFraction
            && self.norm.doc.draft(LocId::ROOT) > Draft::Draft4
    }

    /// Any integer.
    pub(super) fn any_integer(&mut self) -> Expr {
        self.bounded(&NumberFacets::default(), Types::INTEGER, self.at)
    }

    /// Listed numbers, each with the text it is listed as, which is a spelling of it whatever the options say.
    pub(super) fn listed_numbers(
        &mut self,
        mut numbers: Vec<(Decimal, &str)>,
        types: Types,
        scalars: &mut Vec<Literal>,
    ) -> Expr {
        let SchemaOptions { integers, exponents, max_digits, .. } = self.norm.options;
        let spellings = Spellings {
            // Where the dialect does not call `1.0` an integer, it is still the same number.
            zero_fraction: integers == Integers::ZeroFraction
                && (self.zero_fraction() || types.meets(Types::FRACTION)),
            exponents: exponents == Exponents::Allowed,
        };
        self.listed += numbers.len();
        if self.listed > MAX_LISTED || exponents != Exponents::Allowed {
            for (value, text) in numbers {
                let plain = value.plain(64);
                if spellings.zero_fraction && value.is_integer() {
                    scalars.extend(
                        plain.iter().map(|plain| Literal::concat(&[plain.as_bytes(), b".0"])),
                    );
                }
                scalars.extend(plain.map(|plain| plain.as_bytes().into()));
                scalars.push(text.as_bytes().into());
            }
            return Expr::Never;
        }
        numbers.sort();
        numbers.dedup();
        let values: Vec<Decimal> = numbers.iter().map(|(value, _)| value.clone()).collect();
        let mut dfa = listed(&values, spellings);
        if let Some(cap) = max_digits {
            let limit = self.norm.limits.automaton_states;
            match capped(cap, limit).and_then(|capped| dfa.combine(&capped, Combine::And, limit)) {
                Ok(within) => dfa = within,
                Err(error) => return self.too_large(&error),
            }
        }
        let texts = numbers.iter().map(|(_, text)| text.as_bytes());
        scalars.extend(
            texts
                .filter(|text| !dfa.accepts(text.iter().copied().map(u32::from)))
                .map(Literal::from),
        );
        if dfa.is_empty() { Expr::Never } else { Expr::Automaton(Arc::new(dfa)) }
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
        let out = if body == Expr::Never {
            Expr::Never
        } else {
            Expr::Ref(self.rule("number".into(), body))
        };
        self.numbers.insert(key, out.clone());
        out
    }

    pub(super) fn bounded(&mut self, facets: &NumberFacets, types: Types, at: LocId) -> Expr {
        let plain = match types {
            Types::INTEGER if self.zero_fraction() => Plain::ZeroFraction,
            Types::INTEGER => Plain::Digits,
            Types::FRACTION => Plain::Fraction,
            _ => Plain::Decimal,
        };
        let syntax = Syntax { plain, exponents: self.norm.options.exponents };
        let (cap, limit) = (self.norm.options.max_digits, self.norm.limits.automaton_states);
        let key = (facets.clone(), syntax, cap);
        if let Some(known) = KNOWN.lock().automata.get(&key) {
            return Expr::Automaton(known.clone());
        }
        if !self.norm.spend(BOUNDED) {
            return Expr::Never;
        }
        match number_dfa(facets, types, syntax, cap, limit) {
            Ok(dfa) if dfa.is_empty() => {
                self.norm.conflict(at, "", "no number lies within the bounds");
                Expr::Never
            }
            Ok(dfa) => {
                let dfa = Arc::new(dfa);
                let mut known = KNOWN.lock();
                if known.states + dfa.len() <= MAX_KNOWN_STATES
                    && known.automata.insert(key, dfa.clone()).is_none()
                {
                    known.states += dfa.len();
                }
                Expr::Automaton(dfa)
            }
            Err(what) => {
                self.norm.report(at, "", Reason::Limit(what));
                Expr::Never
            }
        }
    }
}

/// The numbers of these types with these facets, spelt so, as an automaton over bytes.
fn number_dfa(
    facets: &NumberFacets,
    types: Types,
    syntax: Syntax,
    cap: Option<u32>,
    limit: usize,
) -> Result<Dfa, String> {
    let too_large = |e: TooLarge| e.to_string();
    let within = |mut dfa: Dfa, cap: Option<u32>| {
        if syntax.exponents == Exponents::Double && syntax.plain != Plain::Digits {
            dfa = dfa.combine(&DOUBLE, Combine::And, limit).map_err(too_large)?;
        }
        match cap {
            None => Ok(dfa),
            Some(cap) => capped(cap, limit)
                .and_then(|cap| dfa.combine(&cap, Combine::And, limit))
                .map_err(too_large),
        }
    };
    let exponents = syntax.exponents != Exponents::Forbidden;
    if syntax.plain == Plain::Decimal && exponents && facets.sign_decides() {
        return within(of_sign(facets), cap);
    }
    let mut parts = vec![(syntax.plain.dfa(), true)];
    if let Some(bound) = &facets.low {
        parts.push((compared(bound, Ordering::Greater)?, true));
    }
    if let Some(bound) = &facets.high {
        parts.push((compared(bound, Ordering::Less)?, true));
    }
    for unit in &facets.multiples {
        parts.push((multiples(unit)?, true));
    }
    for unit in &facets.not_multiples {
        parts.push((multiples(unit)?, false));
    }
    for value in &facets.excluded {
        parts.push((equal(value)?, false));
    }
    let parts: Vec<(&Dfa, bool)> = parts.iter().map(|(dfa, within)| (dfa, *within)).collect();
    let mut dfa = Dfa::all_of(&parts, &[(0, 255)], limit).map_err(too_large)?;
    if exponents && syntax.plain != Plain::Digits && facets.not_multiples.is_empty() {
        let mut powers = with_exponent(facets, types);
        for value in &facets.excluded {
            let bound = || Some(Bound { value: value.clone(), exclusive: false });
            let only = NumberFacets { low: bound(), high: bound(), ..NumberFacets::default() };
            powers = powers
                .combine(&with_exponent(&only, Types::NUMBER), Combine::Minus, limit)
                .map_err(too_large)?;
        }
        dfa = dfa.combine(&powers, Combine::Or, limit).map_err(too_large)?;
    }
    within(dfa, cap)
}

/// JSON numbers that satisfy facets that look at the sign alone.
fn of_sign(facets: &NumberFacets) -> Dfa {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, 45, 45, minus);
    for (from, negative) in [(start, false), (minus, true)] {
        // Exponents of zero, and of other numbers.
        let exponents = [Decimal::parse("0"), Decimal::new(negative, vec![1], 1)].map(|value| {
            let (behind, sign) = (b.state(false), b.state(false));
            let is_final = facets.allow(&value);
            let digits = b.state(is_final);
            b.edge(behind, 43, 43, sign);
            b.edge(behind, 45, 45, sign);
            [behind, sign, digits].into_iter().for_each(|from| b.edge(from, 48, 57, digits));
            (behind, is_final)
        });
        // Of zero and of other numbers: a single zero, digits, behind the point, digits behind the point.
        let parts = exponents.map(|(behind, is_final)| {
            let [zero, digits, fraction] = [0; 3].map(|_| b.state(is_final));
            let point = b.state(false);
            for from in [zero, digits] {
                b.edge(from, 46, 46, point);
            }
            [zero, digits, fraction].into_iter().for_each(|from| marks(&mut b, from, behind));
            [zero, digits, point, fraction]
        });
        let [[zero, ..], [_, digits, ..]] = parts;
        b.edge(from, 48, 48, zero);
        b.edge(from, 49, 57, digits);
        b.edge(digits, 48, 57, digits);
        let [[_, _, zero_point, zeros], [_, _, point, fraction]] = parts;
        for from in [zero_point, zeros] {
            b.edge(from, 48, 48, zeros);
            b.edge(from, 49, 57, fraction);
        }
        for from in [point, fraction] {
            b.edge(from, 48, 57, fraction);
        }
    }
    b.finish().minimize()
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
        (Ordering::Greater, false) => {
            (Wanted::only(Ordering::Greater, equal), Wanted::zero(&magnitude, equal))
        }
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
fn magnitudes(
    b: &mut DfaBuilder,
    from: u32,
    bound: &Decimal,
    wanted: Wanted,
) -> Result<(), String> {
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
        .map(|j| {
            b.state(wanted.of(if j < fraction.len() { Ordering::Less } else { Ordering::Equal }))
        })
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Numbers without an exponent.
    pub(in super::super) fn decimal() -> Dfa {
        Plain::Decimal.dfa()
    }

    fn bound(text: &str, exclusive: bool) -> Bound {
        Bound { value: Decimal::parse(text), exclusive }
    }

    pub(in super::super) const SAMPLES: &[&str] = &[
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
        let syntax = Plain::Decimal.dfa();
        for limit in [
            "0",
            "1",
            "-1",
            "10",
            "-10",
            "0.1",
            "-0.1",
            "1.5",
            "100",
            "12345678901234567890",
            "0.09",
        ] {
            for exclusive in [false, true] {
                let b = bound(limit, exclusive);
                for order in [Ordering::Less, Ordering::Greater] {
                    let dfa = compared(&b, order)
                        .unwrap()
                        .combine(&syntax, Combine::And, 10_000)
                        .unwrap();
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
    fn syntaxes() {
        let accepts = |s: Plain, text: &str| s.dfa().accepts(text.bytes().map(u32::from));
        assert!(
            accepts(Plain::Digits, "-10")
                && !accepts(Plain::Digits, "1.0")
                && !accepts(Plain::Digits, "01")
        );
        assert!(accepts(Plain::ZeroFraction, "1.00") && !accepts(Plain::ZeroFraction, "1.01"));
        assert!(
            accepts(Plain::Fraction, "0.50")
                && !accepts(Plain::Fraction, "5.0")
                && !accepts(Plain::Fraction, "5")
        );
        assert!(
            accepts(Plain::Decimal, "0.50")
                && !accepts(Plain::Decimal, "1.")
                && !accepts(Plain::Decimal, ".5")
        );
    }

    /// All JSON numbers of up to `n` bytes with the digits 0, 1, 2, 5.
    fn numbers(n: usize) -> Vec<String> {
        let any = of_sign(&NumberFacets::default());
        let mut stack = vec![(0, String::new())];
        let mut out = Vec::new();
        while let Some((at, text)) = stack.pop() {
            if any.is_final(at) {
                out.push(text.clone());
            }
            if text.len() < n {
                let symbols = "-+0125.e".chars();
                stack.extend(
                    symbols
                        .filter_map(|c| Some((any.next(at, u32::from(c))?, format!("{text}{c}")))),
                );
            }
        }
        out
    }

    /// Whether a number with an exponent is spelt as documented.
    fn is_spelt(text: &str, facets: &NumberFacets, types: Types) -> bool {
        let Some((mantissa, exponent)) = text.split_once('e') else { return true };
        if facets.sign_decides() && types == Types::NUMBER {
            return true;
        }
        let mantissa = mantissa.trim_start_matches('-');
        let (first, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let zeros = fraction.bytes().all(|b| b == b'0');
        let negative = exponent.starts_with('-') && exponent.bytes().any(|b| b"125".contains(&b));
        first.len() == 1
            && (first != "0" || zeros)
            && (zeros || types != Types::INTEGER && facets.multiples.is_empty())
            && (negative || types != Types::FRACTION)
    }

    #[test]
    fn numbers_with_exponents_are_within_bounds_and_as_documented() {
        let texts = numbers(7);
        let syntax = |types| Syntax {
            plain: match types {
                Types::INTEGER => Plain::ZeroFraction,
                Types::FRACTION => Plain::Fraction,
                _ => Plain::Decimal,
            },
            exponents: Exponents::Allowed,
        };
        let ends = [
            None,
            Some("0"),
            Some("-0.2"),
            Some("1"),
            Some("12.5"),
            Some("-150"),
            Some("2e10"),
            Some("5e-12"),
        ];
        let mut all = Vec::new();
        for (i, low) in ends.iter().enumerate() {
            for (j, high) in ends.iter().enumerate() {
                let exclusive = (i + j) % 2 == 0;
                let low = low.map(|text| bound(text, exclusive));
                let high = high.map(|text| bound(text, i % 2 == 0));
                all.push(NumberFacets { low, high, ..NumberFacets::default() });
            }
        }
        for units in [vec!["0.25"], vec!["20"], vec!["0.1", "0.2"], vec!["3"], vec!["1e3"]] {
            let multiples = units.into_iter().map(Decimal::parse).collect();
            all.push(NumberFacets {
                multiples,
                low: Some(bound("-20", true)),
                ..NumberFacets::default()
            });
        }
        for excluded in [vec!["0"], vec!["20", "1.5"], vec!["0", "500"]] {
            let excluded = excluded.into_iter().map(Decimal::parse).collect();
            all.push(NumberFacets {
                excluded,
                high: Some(bound("1e3", false)),
                ..NumberFacets::default()
            });
        }
        all.push(NumberFacets { excluded: vec![Decimal::parse("0")], ..NumberFacets::default() });
        all.push(NumberFacets {
            not_multiples: vec![Decimal::parse("0.5")],
            ..NumberFacets::default()
        });
        let mut accepted = 0;
        for facets in &all {
            for types in [Types::INTEGER, Types::NUMBER, Types::FRACTION] {
                for cap in [None, Some(2)] {
                    let dfa = number_dfa(facets, types, syntax(types), cap, 100_000).unwrap();
                    let divides = !facets.multiples.is_empty() || !facets.not_multiples.is_empty();
                    // Exponents of four digits the comparison does not divide.
                    for text in texts
                        .iter()
                        .filter(|text| !divides || !text.split('e').any(|part| part.len() > 3))
                    {
                        let value = Decimal::parse(text);
                        let of_type =
                            if value.is_integer() { Types::INTEGER } else { Types::FRACTION };
                        let fits = cap.is_none_or(|cap| {
                            text.split(['-', '+', '.', 'e']).all(|d| d.len() <= cap as usize)
                        });
                        let spelt = is_spelt(text, facets, types)
                            && (facets.not_multiples.is_empty() || !text.contains('e'));
                        let want = types.meets(of_type) && facets.allow(&value) && fits && spelt;
                        let got = dfa.accepts(text.bytes().map(u32::from));
                        assert_eq!(got, want, "{text} {facets:?} {types:?} {cap:?}");
                        accepted += usize::from(got && text.contains('e'));
                    }
                }
            }
        }
        assert!(accepted > 10_000, "{accepted}");
    }
}
