//! `uniqueItems` by comparison: the array is a scope in which the parser compares the values of the
//! elements.
//!
//! Used if elements come from more values than a graph can keep (see `array`). The parser rejects
//! an element that is equal to an earlier one. So the grammar must never require more elements than
//! there are values, or a text could reach a dead end. This file bounds the number of values of
//! element schemas, and refuses the keyword if the bound is not good enough.

use std::sync::Arc;

use super::super::normalize::EMPTINESS_DEPTH;
use super::super::options::UniqueItems;
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{
    ArrayFacets, Bound, Facets, JsonTypes, MembershipTest, NumberFacets, ObjectFacets, StringFacets,
};
use super::SchemaLowering;
use crate::decimal::{Decimal, common_multiple};
use crate::fsm::{Combine, Dfa};
use crate::ir::Expr;

/// A number of values that no text can exhaust.
const INEXHAUSTIBLE: u64 = 1 << 32;
/// From this many digits on, a bound on digits leaves more numbers than a text can use up.
const PLENTY_OF_DIGITS: u32 = 10;
/// Limit on lengths times states, in counting the words of an automaton.
const MAX_COUNTING_STEPS: usize = 4_000_000;
/// How many levels of values are counted.
const MAX_DEPTH: u32 = 3;

/// Bounds on a number of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueCount {
    least: u64,
    most: u64,
}

impl ValueCount {
    /// Nothing is known.
    const UNKNOWN: ValueCount = ValueCount { least: 0, most: u64::MAX };

    /// Whether there are more values than a text can use up.
    pub(super) fn is_inexhaustible(self) -> bool {
        self.least >= INEXHAUSTIBLE
    }

    /// A known number.
    fn exactly(n: u64) -> ValueCount {
        ValueCount { least: n, most: n }
    }

    /// A number that no text can exhaust.
    fn inexhaustible() -> ValueCount {
        ValueCount::exactly(u64::MAX)
    }

    /// The sum, for disjoint sets of values.
    fn sum(self, other: ValueCount) -> ValueCount {
        ValueCount {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    /// The union, for sets of values that may overlap.
    fn union(self, other: ValueCount) -> ValueCount {
        ValueCount {
            least: self.least.max(other.least),
            most: self.most.saturating_add(other.most),
        }
    }
}

impl<'a> SchemaLowering<'a, '_> {
    /// An array whose elements are compared as they are read. `Err`: why this cannot be enforced.
    pub(super) fn compared_array(&mut self, facets: &ArrayFacets) -> Result<Expr, String> {
        if !self.syntax.is_json() {
            let what = "elements in another syntax than JSON are compared only if they come from a \
                        small set";
            return Err(what.into());
        }
        let prefix = facets.prefix();
        let mut max = facets.max.map_or(usize::MAX, |max| max as usize);
        if (0..=prefix).any(|i| i < max && self.may_be_container(facets.element(i))) {
            if self.normalizer.reader.options.unique_items == UniqueItems::Scalars {
                let what = "objects and arrays are compared only with `unique_items: any`";
                return Err(what.into());
            }
            self.normalizer.reader.features.distinct_names = true;
        }
        for i in 0..prefix.min(max) {
            let count = self.count_values(facets.element(i), MAX_DEPTH);
            if count.most == 0 {
                max = i;
                break;
            }
            if i > 0 && count.least <= i as u64 {
                let what = "a position may have no more values than there are elements before it";
                return Err(what.into());
            }
        }
        let mut facets = ArrayFacets { unique: None, ..facets.clone() };
        if max > prefix && self.has_values(facets.element(prefix)) {
            let count = self.count_values(facets.element(prefix), MAX_DEPTH);
            match count.least {
                INEXHAUSTIBLE.. => {}
                least if max as u64 <= least => {}
                least if least == count.most && prefix == 0 => {
                    facets.max = Some(u32::try_from(least).unwrap_or(u32::MAX));
                }
                0 | 1 => {
                    let what = "the elements may run out of distinct values, as their number is \
                                not known; list their values";
                    return Err(what.into());
                }
                least => {
                    let what = format!(
                        "the elements may run out of distinct values; set `maxItems` of this array \
                         to at most {least}"
                    );
                    return Err(what);
                }
            }
        }
        if facets.max.is_some_and(|max| max < facets.min) {
            return Ok(Expr::Never);
        }
        let list = match facets.contains.is_empty() {
            true => self.positional_array(&facets, true),
            false => self.compared_and_counted_array(&facets)?,
        };
        let rule = self.rule("array".into(), list);
        self.builder.attributes(rule).scope = true;
        Ok(Expr::Ref(rule))
    }

    /// An array whose elements are compared and counted by schema (`contains`). At every position
    /// enough values must remain.
    fn compared_and_counted_array(&mut self, facets: &ArrayFacets) -> Result<Expr, String> {
        let rest = facets.element(facets.prefix());
        let and = |schema: LocId| rest.iter().copied().chain([schema]).collect::<Locs>();
        // Each kind of element is counted (except in the first positions), so enough values of a
        // missing kind remain. That does not suffice if several kinds share positions, or if an
        // element of none of the kinds is required.
        let mut enough = true;
        for contains in &facets.contains {
            let needed = if contains.min > 0 {
                u64::from(contains.min) + u64::from(contains.from)
            } else {
                0
            };
            enough &= self.count_values(and(contains.schema), MAX_DEPTH).least >= needed;
            enough &=
                contains.max.is_none() || self.has_many_values(and(contains.schema.negated()));
        }
        let unbounded =
            facets.max.is_none() && facets.contains.iter().all(|contains| contains.max.is_none());
        if enough && (unbounded || facets.contains.len() == 1 && facets.prefix() == 0) {
            return Ok(self.counted_array(facets, true).0);
        }
        let (list, elements) = self.counted_array(facets, true);
        let possible = elements.into_iter().filter(|(_, element)| *element != Expr::Never);
        let mut possible: Vec<Locs> = possible.map(|((_, locs), _)| locs).collect();
        possible.sort_unstable();
        match possible.into_iter().all(|locs| self.has_many_values(locs)) {
            false => Err("a position may have no more values than there are elements before it, \
                 as `contains` counts some of them"
                .into()),
            true => Ok(list),
        }
    }

    /// Whether more values satisfy all of the locations than any text can have.
    pub(super) fn has_many_values(&mut self, locs: Locs) -> bool {
        self.count_values(locs, MAX_DEPTH).least >= INEXHAUSTIBLE
    }

    /// An element of an array, marked for comparison if `compared`.
    pub(super) fn array_element(&mut self, locs: Locs, compared: bool) -> Expr {
        let value = self.lower_value(locs);
        if !compared || value == Expr::Never {
            return value;
        }
        let rule = self.rule("element".into(), value);
        self.builder.attributes(rule).element = true;
        Expr::Ref(rule)
    }

    /// Whether an object or an array may satisfy all of the locations.
    fn may_be_container(&mut self, locs: Locs) -> bool {
        let containers = JsonTypes::OBJECT.union(JsonTypes::ARRAY);
        self.normalizer.alternatives_of(locs).iter().any(|facets| match &facets.values {
            Some(values) => values.iter().any(|value| containers.meets(JsonTypes::of(value))),
            None => containers.meets(facets.types),
        })
    }

    /// Whether any value may satisfy all of the locations.
    pub(super) fn has_values(&mut self, locs: Locs) -> bool {
        !self.normalizer.is_false(locs.clone(), EMPTINESS_DEPTH)
            && self.lower_value(locs) != Expr::Never
    }

    /// Bounds on the number of values that satisfy all of the locations.
    fn count_values(&mut self, locs: Locs, depth: u32) -> ValueCount {
        let alternatives = self.normalizer.generated_alternatives(&locs);
        let counts: Vec<ValueCount> =
            alternatives.iter().map(|facets| self.count_facets(facets, depth)).collect();
        let count = counts.into_iter().fold(ValueCount::exactly(0), ValueCount::union);
        if count.least == count.most || count.is_inexhaustible() {
            return count;
        }
        self.count_string_union(&alternatives).unwrap_or(count)
    }

    /// The number of values of alternatives that allow only strings, overlapping ones counted once.
    fn count_string_union(&mut self, alternatives: &[Facets<'a>]) -> Option<ValueCount> {
        let limit = self.max_states();
        let mut union = Dfa::empty_language();
        for facets in alternatives {
            let strings = match &facets.values {
                Some(values) => {
                    let accepted =
                        values.iter().filter(|value| self.normalizer.accepts(facets, value));
                    let texts = accepted.map(|value| value.as_str());
                    Arc::new(Dfa::texts(texts.collect::<Option<Vec<&str>>>()?))
                }
                None if facets.types == JsonTypes::STRING => {
                    self.normalizer.text_dfa(&facets.string)?
                }
                None => return None,
            };
            union = union.combine(&strings, Combine::Or, limit).ok()?;
        }
        Some(count_words(&union, 0, None))
    }

    /// Bounds on the number of values that satisfy facets.
    fn count_facets(&mut self, facets: &Facets<'a>, depth: u32) -> ValueCount {
        if let Some(values) = &facets.values {
            let accepted = values.iter().filter(|value| self.normalizer.accepts(facets, value));
            let mut distinct: Vec<String> =
                accepted.map(|value| super::super::read::facets::canonical(value)).collect();
            distinct.sort_unstable();
            distinct.dedup();
            return ValueCount::exactly(distinct.len() as u64);
        }
        let closed = self.with_undeclared_option(facets);
        let facets = &*closed;
        if self.normalizer.is_empty(facets, EMPTINESS_DEPTH) {
            return ValueCount::exactly(0);
        }
        let types = facets.types;
        let mut all = ValueCount::exactly(
            u64::from(types.meets(JsonTypes::NULL))
                + 2 * u64::from(types.meets(JsonTypes::BOOLEAN)),
        );
        if types.meets(JsonTypes::NUMBER) {
            let cap = self.normalizer.reader.options.max_digits;
            all = all.sum(match cap.is_some_and(|digits| digits < PLENTY_OF_DIGITS) {
                true => ValueCount::UNKNOWN,
                false => count_numbers(&facets.number, types),
            });
        }
        // Once there are plenty, other types need no counting.
        if types.meets(JsonTypes::STRING) && all.least < INEXHAUSTIBLE {
            all = all.sum(self.count_strings(&facets.string));
        }
        if types.meets(JsonTypes::ARRAY) && all.least < INEXHAUSTIBLE {
            all = all.sum(self.count_arrays(&facets.array, depth));
        }
        if types.meets(JsonTypes::OBJECT) && all.least < INEXHAUSTIBLE {
            all = all.sum(self.count_objects(&facets.object, depth));
        }
        all
    }

    /// Bounds on the number of strings.
    fn count_strings(&mut self, facets: &StringFacets<'a>) -> ValueCount {
        if facets.patterns.is_empty()
            && facets.excluded.len() < 1_000
            && facets.max.is_none_or(|max| max > 1)
        {
            return ValueCount::inexhaustible();
        }
        // Lengths are bounded while counting, so the automaton ignores them.
        let any_length = StringFacets { min: 0, max: None, ..facets.clone() };
        let Some(dfa) = self.normalizer.text_dfa(&any_length) else { return ValueCount::UNKNOWN };
        count_words(&dfa, facets.min, facets.max)
    }

    /// Bounds on the number of arrays.
    fn count_arrays(&mut self, facets: &ArrayFacets, depth: u32) -> ValueCount {
        if facets.max == Some(0) || !self.has_values(facets.element(0)) {
            let needs_none = facets.min == 0 && facets.contains.iter().all(|c| c.min == 0);
            return ValueCount::exactly(needs_none.into());
        }
        // Arrays of any length, or elements of which there are plenty.
        if facets.repeats.is_some() {
            return ValueCount::UNKNOWN;
        }
        let grows = facets.max.is_none() && facets.unique.is_none() && facets.contains.is_empty();
        if grows && self.has_values(facets.element(facets.prefix())) {
            return ValueCount::inexhaustible();
        }
        let first = depth > 0 && facets.contains.is_empty();
        if first && self.count_values(facets.element(0), depth - 1).least >= INEXHAUSTIBLE {
            return ValueCount::inexhaustible();
        }
        ValueCount::UNKNOWN
    }

    /// Bounds on the number of objects.
    fn count_objects(&mut self, facets: &ObjectFacets<'a>, depth: u32) -> ValueCount {
        if depth == 0 || !facets.clauses.is_empty() {
            return ValueCount::UNKNOWN;
        }
        // Whether one more member of any name is possible.
        let needed = facets.required.len() + facets.witnesses.len();
        let more = facets.max.is_none_or(|max| max as usize > needed);
        let additional: Locs = facets.parts.iter().filter_map(|part| part.additional).collect();
        let named =
            !facets.names.is_empty() || facets.parts.iter().any(|part| !part.patterns.is_empty());
        if more && !named && self.has_values(additional) {
            return ValueCount::inexhaustible();
        }
        let (mut least, mut exact) =
            (1u64, facets.witnesses.is_empty() && facets.max.is_none() && facets.min == 0);
        let declared = self.declared_names(facets);
        let required_names = MembershipTest::new(&facets.required, declared.len());
        for &name in &declared {
            let locs = self.normalizer.member_schemas(facets, name);
            let accepted = self.normalizer.accepts_name(facets, name);
            let required = required_names.contains(&name);
            let count =
                if accepted { self.count_values(locs, depth - 1) } else { ValueCount::exactly(0) };
            if count.least >= INEXHAUSTIBLE && (more || required) {
                return ValueCount::inexhaustible();
            }
            exact &= count.least == count.most;
            least = least.saturating_mul(count.least.saturating_add(u64::from(!required)));
        }
        exact = exact
            && self
                .undeclared_classes(facets, &declared)
                .into_iter()
                .all(|(_, locs)| !self.has_values(locs));
        if exact { ValueCount::exactly(least) } else { ValueCount::UNKNOWN }
    }
}

/// Bounds on the number of numbers.
fn count_numbers(facets: &NumberFacets, types: JsonTypes) -> ValueCount {
    let fractions = types.meets(JsonTypes::FRACTION);
    let are_fractions_only = fractions && !types.meets(JsonTypes::INTEGER);
    if !facets.not_multiples.is_empty() || are_fractions_only && !facets.multiples.is_empty() {
        return ValueCount::UNKNOWN;
    }
    let (Some(low), Some(high)) = (&facets.low, &facets.high) else {
        return ValueCount::inexhaustible();
    };
    let one = (!fractions).then(|| Decimal::parse("1"));
    let mut units = one.into_iter().chain(facets.multiples.iter().cloned());
    let Some(first) = units.next() else {
        let is_one = !low.exclusive && !high.exclusive && low.value == high.value;
        let is_many = low.value < high.value;
        return if is_many {
            ValueCount::inexhaustible()
        } else {
            ValueCount::exactly(is_one.into())
        };
    };
    let unit = units.try_fold(first, |unit, next| common_multiple(&unit, &next));
    let Some(all) = unit.and_then(|unit| count_multiples(&unit, low, high)) else {
        return ValueCount::UNKNOWN;
    };
    // Some excluded numbers may be out of range.
    ValueCount { least: all.saturating_sub(facets.excluded.len() as u64), most: all }
}

/// The number of multiples of a unit between two bounds; `None` if numbers have too many digits.
fn count_multiples(unit: &Decimal, low: &Bound, high: &Bound) -> Option<u64> {
    // All as integers, in units of the last decimal place.
    let numbers = [unit, &low.value, &high.value];
    let place = numbers.iter().map(|number| number.last_place()).min()?.min(0);
    let whole = |number: &Decimal| {
        let (digits, exponent) = (number.digits().to_vec(), number.exponent() - place);
        Decimal::new(number.is_negative(), digits, exponent).plain(30)?.parse::<i128>().ok()
    };
    let (unit, from, to) = (whole(unit)?, whole(&low.value)?, whole(&high.value)?);
    let (from, to) = (from + i128::from(low.exclusive), to - i128::from(high.exclusive));
    let first = from.div_euclid(unit) + i128::from(from.rem_euclid(unit) > 0);
    let all = (to.div_euclid(unit) - first + 1).max(0);
    Some(u64::try_from(all).unwrap_or(u64::MAX))
}

/// Bounds on the number of words of these lengths that an automaton accepts.
pub(super) fn count_words(dfa: &Dfa, min: u32, max: Option<u32>) -> ValueCount {
    if dfa.is_empty() {
        return ValueCount::exactly(0);
    }
    if max.is_none() && dfa.is_infinite() {
        return ValueCount::inexhaustible();
    }
    let states = dfa.len();
    let mut words_to = vec![0u64; states];
    words_to[0] = 1;
    let mut total = 0u64;
    for length in 0..=max.unwrap_or(u32::MAX) {
        if length >= min {
            let ended = (0..states)
                .filter(|&state| dfa.is_final(state as u32))
                .map(|state| words_to[state]);
            total = ended.fold(total, u64::saturating_add);
        }
        if total >= INEXHAUSTIBLE {
            return ValueCount::inexhaustible();
        }
        if words_to.iter().all(|&n| n == 0) {
            return ValueCount::exactly(total);
        }
        if (length as usize + 1).saturating_mul(states) > MAX_COUNTING_STEPS {
            return ValueCount { least: total, most: u64::MAX };
        }
        let mut next = vec![0u64; states];
        for (state, words_to) in words_to.iter().enumerate() {
            for edge in dfa.edges(state as u32) {
                let more = words_to.saturating_mul(u64::from(edge.hi - edge.lo) + 1);
                next[edge.to as usize] = next[edge.to as usize].saturating_add(more);
            }
        }
        words_to = next;
    }
    ValueCount::exactly(total)
}
