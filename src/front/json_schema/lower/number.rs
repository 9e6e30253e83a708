//! Number automata: lowers the number facets of a schema (bounds, multiples, excluded values) to
//! DFAs over the bytes of JSON number text.
//!
//! All comparisons are exact: bounds are [`Decimal`]s, and no floating point is involved. Numbers
//! without an exponent are the intersection of a syntax automaton with one comparison automaton per
//! facet. Numbers with an exponent come from [`super::exponent`]. Finished automata of non-listed
//! numbers are cached for the whole process, because different schemas use the same few bounds.

use std::sync::Arc;

use super::super::options::{Dialect as Draft, Exponents, Integers, SchemaOptions};
use super::super::read::doc::LocId;
use super::super::read::facets::{Bound, JsonTypes, NumberFacets};
use super::SchemaLowering;
use super::comparison::{comparison_dfa, equality_dfa};
use super::exponent::scientific_dfa;
use super::listed::{NumberSpellings, listed_dfa};
use super::multiples::multiples_dfa;
use super::number_text::{MantissaSyntax, Signs, digit_cap_dfa, double_range_dfa};
use crate::cache::ProcessCache;
use crate::decimal::Decimal;
use crate::fsm::{Combine, Dfa, TooLarge};
use crate::hash::HashMap;
use crate::ir::regular::BYTES;
use crate::ir::{Expr, Literal};

/// Approximate maximum size of all cached automata, in bytes.
const MAX_CACHED_BYTES: usize = 4 << 20;

/// Number automata of the process, by facets, syntax, maximum number of digits and limit on states.
static AUTOMATA: ProcessCache<(NumberFacets, NumberSyntax, Option<u32>, usize), Arc<Dfa>> =
    ProcessCache::new(MAX_CACHED_BYTES);

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

/// Memo of numbers.
#[derive(Default)]
pub(super) struct NumberMemo {
    /// By facets and types.
    by_facets: HashMap<(NumberFacets, JsonTypes), Expr>,
    /// How many numbers were listed (`enum`, `const`) so far.
    listed: usize,
}

impl<'a> SchemaLowering<'a, '_> {
    /// Whether the dialect is draft 4, in which `1.0` is no integer.
    pub(super) fn is_draft_4(&self) -> bool {
        self.normalizer.reader.doc.dialect(LocId::ROOT) <= Draft::Draft4
    }

    /// Whether `1.0` is an integer: the option allows it and the dialect is newer than draft 4.
    fn zero_fraction(&self) -> bool {
        self.normalizer.reader.options.integers == Integers::ZeroFraction && !self.is_draft_4()
    }

    /// Lowers numbers listed by `enum` or `const`. Each comes with its text in the schema, which is
    /// accepted regardless of the options, unless it is no integer in draft 4 and an integer is
    /// asked for. Texts without an automaton are appended to `scalars`.
    pub(super) fn listed_numbers(
        &mut self,
        mut numbers: Vec<(Decimal, &str)>,
        types: JsonTypes,
        scalars: &mut Vec<Literal>,
    ) -> Expr {
        let SchemaOptions { integers, exponents, max_digits, .. } = self.normalizer.reader.options;
        let spellings = NumberSpellings {
            // In dialects where `1.0` is not an integer, it still equals the listed number 1.
            zero_fraction: integers == Integers::ZeroFraction
                && (self.zero_fraction() || types.meets(JsonTypes::FRACTION)),
            exponents: exponents == Exponents::Allowed,
        };
        let takes_all_texts = !self.is_draft_4() || types.meets(JsonTypes::FRACTION);
        let is_taken = |text: &str| takes_all_texts || !text.contains(['.', 'e', 'E']);
        self.numbers.listed += numbers.len();
        if self.numbers.listed > MAX_LISTED_WITH_EXPONENT || exponents != Exponents::Allowed {
            for (value, text) in numbers {
                let plain = value.plain(64);
                if spellings.zero_fraction && value.is_integer() {
                    scalars.extend(
                        plain.iter().map(|plain| Literal::concat(&[plain.as_bytes(), b".0"])),
                    );
                }
                scalars.extend(plain.map(|plain| plain.as_bytes().into()));
                if is_taken(text) {
                    scalars.push(text.as_bytes().into());
                }
            }
            return Expr::Never;
        }
        numbers.sort();
        numbers.dedup();
        let values: Vec<Decimal> = numbers.iter().map(|(value, _)| value.clone()).collect();
        let mut dfa = match listed_dfa(&values, spellings) {
            Ok(dfa) => dfa,
            Err(what) => {
                self.report_limit(&["enum", "const"], what);
                return Expr::Never;
            }
        };
        if let Some(cap) = max_digits {
            let limit = self.max_states();
            match digit_cap_dfa(cap, limit)
                .and_then(|capped| dfa.combine(&capped, Combine::And, limit))
            {
                Ok(short) => dfa = short,
                Err(error) => return self.too_large(&error),
            }
        }
        let texts = numbers.iter().filter(|(_, text)| is_taken(text));
        let texts = texts.map(|(_, text)| text.as_bytes());
        scalars.extend(
            texts
                .filter(|text| !dfa.accepts(text.iter().copied().map(u32::from)))
                .map(Literal::from),
        );
        if dfa.is_empty() { Expr::Never } else { Expr::Automaton(Arc::new(dfa)) }
    }

    /// Lowers a number of the given types (integers, fractions or both) with the given facets.
    /// Equal requests share one rule.
    pub(super) fn number(&mut self, facets: &NumberFacets, types: JsonTypes) -> Expr {
        let types = types.intersect(JsonTypes::NUMBER);
        if facets.allows_all() {
            match types {
                JsonTypes::NUMBER => return Expr::Ref(self.number_rule()),
                JsonTypes::INTEGER => return Expr::Ref(self.integer_rule()),
                _ => {}
            }
        }
        let key = (facets.clone(), types);
        if let Some(cached) = self.numbers.by_facets.get(&key) {
            return cached.clone();
        }
        let body = self.bounded(facets, types);
        let out = self.as_rule("number", body);
        self.numbers.by_facets.insert(key, out.clone());
        out
    }

    /// The automaton of the numbers of the given types that satisfy the facets. Reports a conflict
    /// if there are none, and a limit if the automaton is too large.
    pub(super) fn bounded(&mut self, facets: &NumberFacets, types: JsonTypes) -> Expr {
        let mantissa = match types {
            JsonTypes::INTEGER if self.zero_fraction() => MantissaSyntax::ZeroFraction,
            JsonTypes::INTEGER => MantissaSyntax::Digits,
            JsonTypes::FRACTION => MantissaSyntax::Fraction,
            _ => MantissaSyntax::Decimal,
        };
        let syntax = NumberSyntax { mantissa, exponents: self.normalizer.reader.options.exponents };
        let (cap, limit) = (self.normalizer.reader.options.max_digits, self.max_states());
        let key = (facets.clone(), syntax, cap, limit);
        if let Some(cached) = AUTOMATA.lock().get(&key) {
            return Expr::Automaton(cached);
        }
        if !self.normalizer.reader.spend(AUTOMATON_STEPS) {
            return Expr::Never;
        }
        match number_dfa(facets, types, syntax, cap, limit) {
            Ok(dfa) if dfa.is_empty() => {
                let what = "no number lies within the bounds";
                self.normalizer.reader.note_contradiction(self.location, "", what);
                Expr::Never
            }
            Ok(dfa) => {
                let dfa = Arc::new(dfa);
                AUTOMATA.insert(key, dfa.clone(), dfa.bytes());
                Expr::Automaton(dfa)
            }
            Err(what) => {
                self.report_limit(&["multipleOf", "minimum", "maximum"], what);
                Expr::Never
            }
        }
    }
}

/// Builds the automaton over bytes of the numbers of the given types that satisfy the facets. `cap`
/// limits the digits of each part of the number, `limit` the states of the automaton.
fn number_dfa(
    facets: &NumberFacets,
    types: JsonTypes,
    syntax: NumberSyntax,
    cap: Option<u32>,
    limit: usize,
) -> Result<Dfa, String> {
    let too_large = |e: TooLarge| e.to_string();
    let restrict_digits = |mut dfa: Dfa, cap: Option<u32>| {
        if syntax.exponents == Exponents::Double && syntax.mantissa != MantissaSyntax::Digits {
            dfa = dfa.combine(double_range_dfa(), Combine::And, limit).map_err(too_large)?;
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
        return restrict_digits(accepted_signs(facets).dfa().clone(), cap);
    }
    let mut parts = Vec::new();
    for (bound, order) in facets.bounds() {
        parts.push((comparison_dfa(bound, order)?, true));
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
    let parts = parts.iter().map(|(dfa, within)| (dfa, *within));
    let parts: Vec<(&Dfa, bool)> = parts.chain([(syntax.mantissa.dfa(), true)]).collect();
    let mut dfa = Dfa::all_of(&parts, &BYTES, limit).map_err(too_large)?;
    if exponents && syntax.mantissa != MantissaSyntax::Digits && facets.not_multiples.is_empty() {
        let mut scientific = scientific_dfa(facets, types, limit)?;
        for value in &facets.excluded {
            let bound = || Some(Bound { value: value.clone(), exclusive: false });
            let just_value =
                NumberFacets { low: bound(), high: bound(), ..NumberFacets::default() };
            scientific = scientific
                .combine(
                    &scientific_dfa(&just_value, JsonTypes::NUMBER, limit)?,
                    Combine::Minus,
                    limit,
                )
                .map_err(too_large)?;
        }
        dfa = dfa.combine(&scientific, Combine::Or, limit).map_err(too_large)?;
    }
    restrict_digits(dfa, cap)
}

/// The signs of the numbers that satisfy the facets, where only the sign decides.
fn accepted_signs(facets: &NumberFacets) -> Signs {
    let allows = |text: &str| facets.allow(&Decimal::parse(text));
    Signs { zero: allows("0"), positive: allows("1"), negative: allows("-1") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str, exclusive: bool) -> Bound {
        Bound { value: Decimal::parse(text), exclusive }
    }

    /// All JSON numbers of up to `n` bytes with the digits 0, 1, 2, 5.
    fn numbers(n: usize) -> Vec<String> {
        let any = accepted_signs(&NumberFacets::default()).dfa();
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
    fn is_spelled(text: &str, facets: &NumberFacets, types: JsonTypes) -> bool {
        let Some((mantissa, exponent)) = text.split_once('e') else { return true };
        if facets.sign_decides() && types == JsonTypes::NUMBER {
            return true;
        }
        let mantissa = mantissa.trim_start_matches('-');
        let (first, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let zeros = fraction.bytes().all(|b| b == b'0');
        let negative = exponent.starts_with('-') && exponent.bytes().any(|b| b"125".contains(&b));
        first.len() == 1
            && (first != "0" || zeros)
            && (zeros || types != JsonTypes::INTEGER && facets.multiples.is_empty())
            && (negative || types != JsonTypes::FRACTION)
    }

    #[test]
    fn number_automata_agree_with_facets_and_documented_spellings() {
        let texts = numbers(7);
        let syntax = |types| NumberSyntax {
            mantissa: match types {
                JsonTypes::INTEGER => MantissaSyntax::ZeroFraction,
                JsonTypes::FRACTION => MantissaSyntax::Fraction,
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
            for types in [JsonTypes::INTEGER, JsonTypes::NUMBER, JsonTypes::FRACTION] {
                for cap in [None, Some(2)] {
                    let dfa = number_dfa(facets, types, syntax(types), cap, 100_000).unwrap();
                    let divides = !facets.multiples.is_empty() || !facets.not_multiples.is_empty();
                    // The reference does not divide numbers with exponents of four digits.
                    for text in texts
                        .iter()
                        .filter(|text| !divides || !text.split('e').any(|part| part.len() > 3))
                    {
                        let value = Decimal::parse(text);
                        let of_type = if value.is_integer() {
                            JsonTypes::INTEGER
                        } else {
                            JsonTypes::FRACTION
                        };
                        let fits = cap.is_none_or(|cap| {
                            text.split(['-', '+', '.', 'e']).all(|d| d.len() <= cap as usize)
                        });
                        let spelled = is_spelled(text, facets, types)
                            && (facets.not_multiples.is_empty() || !text.contains('e'));
                        let want = types.meets(of_type) && facets.allow(&value) && fits && spelled;
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
