//! Number automata: lowers the number facets of a schema (bounds, multiples, excluded values) to
//! DFAs over the bytes of JSON number text.
//!
//! All comparisons are exact: bounds are [`Decimal`]s, and no floating point is involved. Numbers
//! without an exponent are the intersection of a syntax automaton with one comparison automaton per
//! facet. Numbers with an exponent come from [`super::exponent`]. Finished automata of non-listed
//! numbers are cached for the whole process, because different schemas use the same few bounds.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use super::super::decimal::Decimal;
use super::super::options::{Dialect as Draft, Exponents, Integers, SchemaOptions};
use super::super::read::doc::LocId;
use super::super::read::facets::{Bound, NumberFacets, TypeSet};
use super::SchemaLowering;
use super::exponent::scientific_dfa;
use super::listed::{NumberSpellings, listed_dfa};
use super::magnitude::{
    DOUBLE_RANGE, MINUS, NINE, ONE, PLUS, POINT, ZERO, add_exponent_marks, digit_cap_dfa,
};
use super::multiples::multiples_dfa;
use crate::fsm::{Combine, Dfa, DfaBuilder, TooLarge};
use crate::hash::HashMap;
use crate::ir::{Expr, Literal};

/// Maximum number of digits of a bound.
const MAX_DIGITS: usize = 2_000;
/// Maximum number of states of all cached automata together. The cache lives as long as the
/// process.
const MAX_CACHED_STATES: usize = 1 << 15;

/// Cache key: facets, syntax, maximum number of digits.
type AutomatonKey = (NumberFacets, NumberSyntax, Option<u32>);

/// Process-wide cache of number automata.
#[derive(Default)]
struct AutomatonCache {
    automata: HashMap<AutomatonKey, Arc<Dfa>>,
    /// Number of states of all cached automata.
    states: usize,
}

/// The cache of all schemas.
static AUTOMATON_CACHE: LazyLock<Mutex<AutomatonCache>> = LazyLock::new(Mutex::default);

/// Maximum number of listed numbers in a schema; beyond it, no exponents are allowed for them.
const MAX_LISTED_WITH_EXPONENT: usize = 1_000;
/// Normaliser steps charged for one number automaton.
const AUTOMATON_STEPS: usize = 4_000;

/// Spellings that a bounded number may have.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct NumberSyntax {
    mantissa: MantissaSyntax,
    exponents: Exponents,
}

/// Syntax of a number without its exponent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum MantissaSyntax {
    /// An integer without a fraction.
    Digits,
    /// An integer with an optional fraction of zeros.
    ZeroFraction,
    /// A number with an optional fraction.
    Decimal,
    /// A number with a fraction that is not zero.
    Fraction,
}

impl MantissaSyntax {
    /// The syntax as an automaton over bytes.
    fn dfa(self) -> Dfa {
        let mut b = DfaBuilder::new();
        let start = b.state(false);
        let minus = b.state(false);
        let zero = b.state(self != MantissaSyntax::Fraction);
        let whole = b.state(self != MantissaSyntax::Fraction);
        b.edge(start, MINUS, MINUS, minus);
        for from in [start, minus] {
            b.edge(from, ZERO, ZERO, zero);
            b.edge(from, ONE, NINE, whole);
        }
        b.edge(whole, ZERO, NINE, whole);
        if self == MantissaSyntax::Digits {
            return b.finish();
        }
        let point = b.state(false);
        let zeros = b.state(self != MantissaSyntax::Fraction);
        b.edge(zero, POINT, POINT, point);
        b.edge(whole, POINT, POINT, point);
        b.edge(point, ZERO, ZERO, zeros);
        b.edge(zeros, ZERO, ZERO, zeros);
        if self != MantissaSyntax::ZeroFraction {
            let some = b.state(true);
            for from in [point, zeros] {
                b.edge(from, ONE, NINE, some);
            }
            b.edge(some, ZERO, NINE, some);
        }
        b.finish()
    }
}

impl<'a> SchemaLowering<'a, '_> {
    /// Whether `1.0` is an integer: the option allows it and the dialect is newer than draft 4.
    fn zero_fraction(&self) -> bool {
        self.normalizer.reader.options.integers == Integers::ZeroFraction
            && self.normalizer.reader.doc.dialect(LocId::ROOT) > Draft::Draft4
    }

    /// An integer without bounds.
    pub(super) fn any_integer(&mut self) -> Expr {
        self.bounded(&NumberFacets::default(), TypeSet::INTEGER, self.location)
    }

    /// Lowers numbers listed by `enum` or `const`. Each comes with its text in the schema, which is
    /// accepted whatever the options say. Texts without an automaton are appended to `scalars`.
    pub(super) fn listed_numbers(
        &mut self,
        mut numbers: Vec<(Decimal, &str)>,
        types: TypeSet,
        scalars: &mut Vec<Literal>,
    ) -> Expr {
        let SchemaOptions { integers, exponents, max_digits, .. } = self.normalizer.reader.options;
        let spellings = NumberSpellings {
            // In dialects where `1.0` is not an integer, it still equals the listed number 1.
            zero_fraction: integers == Integers::ZeroFraction
                && (self.zero_fraction() || types.meets(TypeSet::FRACTION)),
            exponents: exponents == Exponents::Allowed,
        };
        self.listed_number_count += numbers.len();
        if self.listed_number_count > MAX_LISTED_WITH_EXPONENT || exponents != Exponents::Allowed {
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
        let mut dfa = listed_dfa(&values, spellings);
        if let Some(cap) = max_digits {
            let limit = self.normalizer.reader.limits.automaton_states;
            match digit_cap_dfa(cap, limit)
                .and_then(|capped| dfa.combine(&capped, Combine::And, limit))
            {
                Ok(short) => dfa = short,
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

    /// Lowers a number of the given types (integers, fractions or both) with the given facets.
    /// Equal requests share one rule.
    pub(super) fn number(&mut self, facets: &NumberFacets, types: TypeSet, at: LocId) -> Expr {
        let types = types.and(TypeSet::NUMBER);
        if facets.is_free() {
            match types {
                TypeSet::NUMBER => return Expr::Ref(self.number_rule()),
                TypeSet::INTEGER => return Expr::Ref(self.integer_rule()),
                _ => {}
            }
        }
        let key = (facets.clone(), types);
        if let Some(cached) = self.numbers.get(&key) {
            return cached.clone();
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

    /// The automaton of the numbers of the given types that satisfy the facets. Reports a conflict
    /// if there are none, and a limit if the automaton is too large.
    pub(super) fn bounded(&mut self, facets: &NumberFacets, types: TypeSet, at: LocId) -> Expr {
        let mantissa = match types {
            TypeSet::INTEGER if self.zero_fraction() => MantissaSyntax::ZeroFraction,
            TypeSet::INTEGER => MantissaSyntax::Digits,
            TypeSet::FRACTION => MantissaSyntax::Fraction,
            _ => MantissaSyntax::Decimal,
        };
        let syntax = NumberSyntax { mantissa, exponents: self.normalizer.reader.options.exponents };
        let (cap, limit) = (
            self.normalizer.reader.options.max_digits,
            self.normalizer.reader.limits.automaton_states,
        );
        let key = (facets.clone(), syntax, cap);
        if let Some(cached) = AUTOMATON_CACHE.lock().automata.get(&key) {
            return Expr::Automaton(cached.clone());
        }
        if !self.normalizer.reader.spend(AUTOMATON_STEPS) {
            return Expr::Never;
        }
        match number_dfa(facets, types, syntax, cap, limit) {
            Ok(dfa) if dfa.is_empty() => {
                self.normalizer.reader.conflict(at, "", "no number lies within the bounds");
                Expr::Never
            }
            Ok(dfa) => {
                let dfa = Arc::new(dfa);
                let mut cache = AUTOMATON_CACHE.lock();
                if cache.states + dfa.len() <= MAX_CACHED_STATES
                    && cache.automata.insert(key, dfa.clone()).is_none()
                {
                    cache.states += dfa.len();
                }
                Expr::Automaton(dfa)
            }
            Err(what) => {
                let keywords = ["multipleOf", "minimum", "maximum"];
                self.normalizer.reader.report_limit(at, &keywords, what);
                Expr::Never
            }
        }
    }
}

/// Builds the automaton over bytes of the numbers of the given types that satisfy the facets. `cap`
/// limits the digits of each part of the number, `limit` the states of the automaton.
fn number_dfa(
    facets: &NumberFacets,
    types: TypeSet,
    syntax: NumberSyntax,
    cap: Option<u32>,
    limit: usize,
) -> Result<Dfa, String> {
    let too_large = |e: TooLarge| e.to_string();
    let restrict_digits = |mut dfa: Dfa, cap: Option<u32>| {
        if syntax.exponents == Exponents::Double && syntax.mantissa != MantissaSyntax::Digits {
            dfa = dfa.combine(&DOUBLE_RANGE, Combine::And, limit).map_err(too_large)?;
        }
        match cap {
            None => Ok(dfa),
            Some(cap) => digit_cap_dfa(cap, limit)
                .and_then(|cap| dfa.combine(&cap, Combine::And, limit))
                .map_err(too_large),
        }
    };
    let exponents = syntax.exponents != Exponents::Forbidden;
    if syntax.mantissa == MantissaSyntax::Decimal && exponents && facets.sign_decides() {
        return restrict_digits(sign_dfa(facets), cap);
    }
    let mut parts = vec![(syntax.mantissa.dfa(), true)];
    if let Some(bound) = &facets.low {
        parts.push((comparison_dfa(bound, Ordering::Greater)?, true));
    }
    if let Some(bound) = &facets.high {
        parts.push((comparison_dfa(bound, Ordering::Less)?, true));
    }
    for unit in &facets.multiples {
        parts.push((multiples_dfa(unit)?, true));
    }
    for unit in &facets.not_multiples {
        parts.push((multiples_dfa(unit)?, false));
    }
    for value in &facets.excluded {
        parts.push((equality_dfa(value)?, false));
    }
    let parts: Vec<(&Dfa, bool)> = parts.iter().map(|(dfa, within)| (dfa, *within)).collect();
    let mut dfa = Dfa::all_of(&parts, &[(0, 255)], limit).map_err(too_large)?;
    if exponents && syntax.mantissa != MantissaSyntax::Digits && facets.not_multiples.is_empty() {
        let mut scientific = scientific_dfa(facets, types);
        for value in &facets.excluded {
            let bound = || Some(Bound { value: value.clone(), exclusive: false });
            let just_value =
                NumberFacets { low: bound(), high: bound(), ..NumberFacets::default() };
            scientific = scientific
                .combine(&scientific_dfa(&just_value, TypeSet::NUMBER), Combine::Minus, limit)
                .map_err(too_large)?;
        }
        dfa = dfa.combine(&scientific, Combine::Or, limit).map_err(too_large)?;
    }
    restrict_digits(dfa, cap)
}

/// The automaton of the numbers that satisfy the facets, where only the sign decides.
fn sign_dfa(facets: &NumberFacets) -> Dfa {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, MINUS, MINUS, minus);
    for (from, negative) in [(start, false), (minus, true)] {
        // Exponent states: after a mantissa of zero, and after any other.
        let exponents = [Decimal::parse("0"), Decimal::new(negative, vec![1], 1)].map(|value| {
            let (after, sign) = (b.state(false), b.state(false));
            let is_final = facets.allow(&value);
            let digits = b.state(is_final);
            b.edge(after, PLUS, PLUS, sign);
            b.edge(after, MINUS, MINUS, sign);
            [after, sign, digits].into_iter().for_each(|from| b.edge(from, ZERO, NINE, digits));
            (after, is_final)
        });
        // Mantissa states, of zero and of other numbers: a single zero, digits, after the point,
        // digits after the point.
        let parts = exponents.map(|(after, is_final)| {
            let [zero, digits, fraction] = [0; 3].map(|_| b.state(is_final));
            let point = b.state(false);
            for from in [zero, digits] {
                b.edge(from, POINT, POINT, point);
            }
            [zero, digits, fraction]
                .into_iter()
                .for_each(|from| add_exponent_marks(&mut b, from, after));
            [zero, digits, point, fraction]
        });
        let [[zero, ..], [_, digits, ..]] = parts;
        b.edge(from, ZERO, ZERO, zero);
        b.edge(from, ONE, NINE, digits);
        b.edge(digits, ZERO, NINE, digits);
        let [[_, _, zero_point, zeros], [_, _, point, fraction]] = parts;
        for from in [zero_point, zeros] {
            b.edge(from, ZERO, ZERO, zeros);
            b.edge(from, ONE, NINE, fraction);
        }
        for from in [point, fraction] {
            b.edge(from, ZERO, NINE, fraction);
        }
    }
    b.finish().minimize()
}

/// The automaton of the decimal texts that equal `value`. They have no exponent; their syntax is
/// not checked.
fn equality_dfa(value: &Decimal) -> Result<Dfa, String> {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, MINUS, MINUS, minus);
    let accepted = AcceptedOrders { equal: true, ..AcceptedOrders::NONE };
    for (from, negative) in [(start, false), (minus, true)] {
        if value.is_zero() || value.is_negative() == negative {
            add_magnitude_states(&mut b, from, &value.abs(), accepted)?;
        }
    }
    Ok(b.finish())
}

/// The automaton of the decimal texts that compare to the bound as `order` says, or equal it where
/// it is inclusive. The texts have no exponent; their syntax is not checked.
fn comparison_dfa(bound: &Bound, order: Ordering) -> Result<Dfa, String> {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, MINUS, MINUS, minus);
    let equal = !bound.exclusive;
    let magnitude = bound.value.abs();
    // For each sign, the magnitudes that satisfy the bound.
    let (positive, negative) = match (order, bound.value.is_negative()) {
        (Ordering::Greater, false) => (
            AcceptedOrders::of_order(Ordering::Greater, equal),
            AcceptedOrders::zero(&magnitude, equal),
        ),
        (Ordering::Greater, true) => {
            (AcceptedOrders::ALL, AcceptedOrders::of_order(Ordering::Less, equal))
        }
        (_, false) => (
            AcceptedOrders::of_order(Ordering::Less, equal),
            AcceptedOrders::below_zero(&magnitude, equal),
        ),
        (_, true) => (AcceptedOrders::NONE, AcceptedOrders::of_order(Ordering::Greater, equal)),
    };
    add_magnitude_states(&mut b, start, &magnitude, positive)?;
    add_magnitude_states(&mut b, minus, &magnitude, negative)?;
    Ok(b.finish())
}

/// The magnitudes to accept: those less than, equal to or greater than the bound's
/// magnitude.
#[derive(Clone, Copy)]
struct AcceptedOrders {
    less: bool,
    equal: bool,
    greater: bool,
}

impl AcceptedOrders {
    /// Every magnitude.
    const ALL: AcceptedOrders = AcceptedOrders { less: true, equal: true, greater: true };
    /// No magnitude.
    const NONE: AcceptedOrders = AcceptedOrders { less: false, equal: false, greater: false };

    /// Magnitudes of one order, and equal ones if `equal` is set.
    fn of_order(order: Ordering, equal: bool) -> AcceptedOrders {
        AcceptedOrders { less: order == Ordering::Less, equal, greater: order == Ordering::Greater }
    }

    /// `-m >= bound` for a non-negative bound: only `-0`, if the bound is zero.
    fn zero(bound: &Decimal, equal: bool) -> AcceptedOrders {
        AcceptedOrders { equal: bound.is_zero() && equal, ..AcceptedOrders::NONE }
    }

    /// `-m <= bound` for a non-negative bound: all, except `-0` where the bound is zero and
    /// exclusive.
    fn below_zero(bound: &Decimal, equal: bool) -> AcceptedOrders {
        AcceptedOrders { equal: equal || !bound.is_zero(), ..AcceptedOrders::ALL }
    }

    /// Whether a magnitude of this order to the bound is accepted.
    fn accepts(self, order: Ordering) -> bool {
        match order {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }
}

/// Adds states after `from` that read digits and an optional fraction. They are final where the
/// magnitude read compares to `bound` in an accepted order. Relies on a syntax without leading
/// zeros: there, more digits mean a greater number.
fn add_magnitude_states(
    b: &mut DfaBuilder,
    from: u32,
    bound: &Decimal,
    accepted: AcceptedOrders,
) -> Result<(), String> {
    let (mut integer, fraction) =
        bound.parts(MAX_DIGITS).ok_or(format!("a bound has more than {MAX_DIGITS} digits"))?;
    if integer.is_empty() {
        integer.push(0);
    }
    let n = integer.len();
    const ORDERS: [Ordering; 3] = [Ordering::Less, Ordering::Equal, Ordering::Greater];
    let slot = |order: Ordering| (order as i8 + 1) as usize;
    // After the point: the order is decided, or the texts agree up to digit j of the fraction.
    let decided: Vec<u32> = ORDERS.iter().map(|&o| b.state(accepted.accepts(o))).collect();
    for order in [Ordering::Less, Ordering::Greater] {
        let s = decided[slot(order)];
        b.edge(s, ZERO, NINE, s);
    }
    let undecided: Vec<u32> = (0..=fraction.len())
        .map(|j| {
            b.state(accepted.accepts(if j < fraction.len() {
                Ordering::Less
            } else {
                Ordering::Equal
            }))
        })
        .collect();
    for (j, &s) in undecided.iter().enumerate() {
        let digit = fraction.get(j).copied().unwrap_or(0);
        let next = undecided.get(j + 1).copied().unwrap_or(s);
        add_digit_edges(b, s, digit, [decided[0], next, decided[2]]);
    }
    let after_point = |order: Ordering| match order {
        Ordering::Equal => undecided[0],
        order => decided[slot(order)],
    };
    // More integer digits than the bound has.
    let longer = b.state(accepted.greater);
    b.edge(longer, ZERO, NINE, longer);
    b.edge(longer, POINT, POINT, decided[2]);
    // States after i digits, by their comparison with the first i digits of the bound.
    let mut row = [from; 3];
    for (i, &digit) in integer.iter().enumerate() {
        let last = i + 1 == n;
        let at_end = |order: Ordering| match order {
            _ if !last => Ordering::Less,
            Ordering::Equal if !fraction.is_empty() => Ordering::Less,
            order => order,
        };
        let next: Vec<u32> = ORDERS.iter().map(|&o| b.state(accepted.accepts(at_end(o)))).collect();
        for &order in &ORDERS {
            let s = next[slot(order)];
            b.edge(s, POINT, POINT, if last { after_point(order) } else { decided[0] });
            if last {
                b.edge(s, ZERO, NINE, longer);
            }
        }
        add_digit_edges(b, row[1], digit, [next[0], next[1], next[2]]);
        if i > 0 {
            b.edge(row[0], ZERO, NINE, next[0]);
            b.edge(row[2], ZERO, NINE, next[2]);
        }
        row = [next[0], next[1], next[2]];
    }
    Ok(())
}

/// Adds edges for the digits below, equal to and above `digit`.
fn add_digit_edges(b: &mut DfaBuilder, from: u32, digit: u8, to: [u32; 3]) {
    let code = u32::from(b'0' + digit);
    if digit > 0 {
        b.edge(from, ZERO, code - 1, to[0]);
    }
    b.edge(from, code, code, to[1]);
    if digit < 9 {
        b.edge(from, code + 1, NINE, to[2]);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The automaton of numbers without an exponent.
    pub(crate) fn decimal_syntax() -> Dfa {
        MantissaSyntax::Decimal.dfa()
    }

    fn bound(text: &str, exclusive: bool) -> Bound {
        Bound { value: Decimal::parse(text), exclusive }
    }

    pub(crate) const SAMPLES: &[&str] = &[
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
    fn bound_automata_agree_with_decimal_comparison() {
        let syntax = MantissaSyntax::Decimal.dfa();
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
                    let dfa = comparison_dfa(&b, order)
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
    fn mantissa_syntaxes_accept_their_numbers() {
        let accepts = |s: MantissaSyntax, text: &str| s.dfa().accepts(text.bytes().map(u32::from));
        assert!(
            accepts(MantissaSyntax::Digits, "-10")
                && !accepts(MantissaSyntax::Digits, "1.0")
                && !accepts(MantissaSyntax::Digits, "01")
        );
        assert!(
            accepts(MantissaSyntax::ZeroFraction, "1.00")
                && !accepts(MantissaSyntax::ZeroFraction, "1.01")
        );
        assert!(
            accepts(MantissaSyntax::Fraction, "0.50")
                && !accepts(MantissaSyntax::Fraction, "5.0")
                && !accepts(MantissaSyntax::Fraction, "5")
        );
        assert!(
            accepts(MantissaSyntax::Decimal, "0.50")
                && !accepts(MantissaSyntax::Decimal, "1.")
                && !accepts(MantissaSyntax::Decimal, ".5")
        );
    }

    /// All JSON numbers of up to `n` bytes with the digits 0, 1, 2, 5.
    fn numbers(n: usize) -> Vec<String> {
        let any = sign_dfa(&NumberFacets::default());
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

    /// Whether the text has an exponent form that `super::exponent` documents.
    fn is_spelt(text: &str, facets: &NumberFacets, types: TypeSet) -> bool {
        let Some((mantissa, exponent)) = text.split_once('e') else { return true };
        if facets.sign_decides() && types == TypeSet::NUMBER {
            return true;
        }
        let mantissa = mantissa.trim_start_matches('-');
        let (first, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let zeros = fraction.bytes().all(|b| b == b'0');
        let negative = exponent.starts_with('-') && exponent.bytes().any(|b| b"125".contains(&b));
        first.len() == 1
            && (first != "0" || zeros)
            && (zeros || types != TypeSet::INTEGER && facets.multiples.is_empty())
            && (negative || types != TypeSet::FRACTION)
    }

    #[test]
    fn number_automata_agree_with_facets_and_documented_spellings() {
        let texts = numbers(7);
        let syntax = |types| NumberSyntax {
            mantissa: match types {
                TypeSet::INTEGER => MantissaSyntax::ZeroFraction,
                TypeSet::FRACTION => MantissaSyntax::Fraction,
                _ => MantissaSyntax::Decimal,
            },
            exponents: Exponents::Allowed,
        };
        let limits = [
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
        for (i, low) in limits.iter().enumerate() {
            for (j, high) in limits.iter().enumerate() {
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
            for types in [TypeSet::INTEGER, TypeSet::NUMBER, TypeSet::FRACTION] {
                for cap in [None, Some(2)] {
                    let dfa = number_dfa(facets, types, syntax(types), cap, 100_000).unwrap();
                    let divides = !facets.multiples.is_empty() || !facets.not_multiples.is_empty();
                    // The reference does not divide numbers with exponents of four digits.
                    for text in texts
                        .iter()
                        .filter(|text| !divides || !text.split('e').any(|part| part.len() > 3))
                    {
                        let value = Decimal::parse(text);
                        let of_type =
                            if value.is_integer() { TypeSet::INTEGER } else { TypeSet::FRACTION };
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
