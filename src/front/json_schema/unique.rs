//! Elements that differ from each other where they come from more values than a graph can remember: the array is a scope, and the
//! parser compares. It must never ask for more elements than there are values, so those are counted here.

use super::UniqueItems;
use super::array::{Compared, MAX_NODES};
use super::doc::LocId;
use super::facets::{Among, ArrayFacets, Facets, NumberFacets, ObjectFacets, StringFacets, Types};
use super::lower::Lowering;
use super::normalize::Locs;
use crate::fsm::Dfa;
use crate::ir::Expr;

/// So many values that no text has them all.
const PLENTY: u64 = 1 << 32;
/// Lengths times states, in counting words.
const MAX_STEPS: usize = 4_000_000;
/// Deepest value that is counted.
const DEPTH: u32 = 3;

/// How many values there are, at least and at most.
#[derive(Clone, Copy, Debug)]
struct Count {
    least: u64,
    most: u64,
}

impl Count {
    const UNKNOWN: Count = Count { least: 0, most: u64::MAX };

    fn exactly(n: u64) -> Count {
        Count { least: n, most: n }
    }

    fn plenty() -> Count {
        Count::exactly(u64::MAX)
    }

    /// Of values of different types.
    fn and(self, other: Count) -> Count {
        Count {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    /// Of values that may be the same.
    fn or(self, other: Count) -> Count {
        Count { least: self.least.max(other.least), most: self.most.saturating_add(other.most) }
    }
}

/// Sets of at most so many out of so many values that a graph would have to remember.
pub(super) fn is_small(values: usize, most: usize) -> bool {
    let (mut sets, mut of_size) = (1usize, 1usize);
    for size in 1..=most.min(values) {
        of_size = of_size.saturating_mul(values + 1 - size) / size;
        sets = sets.saturating_add(of_size);
    }
    sets <= MAX_NODES
}

impl<'a> Lowering<'a, '_> {
    /// Elements that are compared as they are read. `Err` says why not.
    pub(super) fn compared(&mut self, facets: &ArrayFacets) -> Result<Expr, &'static str> {
        if !self.syntax.is_json() {
            return Err(
                "elements that are not written as JSON are compared only where they come from a small set",
            );
        }
        let prefix = facets.prefix();
        let max = facets.max.map_or(usize::MAX, |max| max as usize);
        if (0..=prefix).any(|i| i < max && self.has_parts(facets.element(i))) {
            if self.norm.options.unique_items == UniqueItems::Scalars {
                return Err("objects and arrays are compared only with `unique_items: any`");
            }
            self.norm.needs.differ = true;
        }
        for i in 0..prefix.min(max) {
            let count = self.count(facets.element(i), DEPTH);
            if count.most == 0 {
                break;
            }
            if i > 0 && count.least <= i as u64 {
                return Err(
                    "a position has no more values, as far as is known, than there are elements before it",
                );
            }
        }
        let mut facets = ArrayFacets { unique: None, ..facets.clone() };
        if max > prefix && self.value(facets.element(prefix)) != Expr::Never {
            let count = self.count(facets.element(prefix), DEPTH);
            match count.least {
                PLENTY.. => {}
                least if least == count.most && prefix == 0 => {
                    let most = u32::try_from(least).unwrap_or(u32::MAX);
                    facets.max = Some(facets.max.map_or(most, |max| max.min(most)));
                }
                _ => return Err("it is not known how many values elements have"),
            }
        }
        if facets.max.is_some_and(|max| max < facets.min) {
            return Ok(Expr::Never);
        }
        let list = match facets.contains.is_empty() {
            true => self.list(&facets, true),
            false => self.compared_and_counted(&facets)?,
        };
        let rule = self.rule("array".into(), list);
        self.builder.attributes(rule).scope = true;
        Ok(Expr::Ref(rule))
    }

    /// Elements that are compared and counted by schema: always enough values must be left.
    fn compared_and_counted(&mut self, facets: &ArrayFacets) -> Result<Expr, &'static str> {
        let rest = facets.element(facets.prefix());
        let with = |schema: LocId| rest.iter().copied().chain([schema]).collect::<Locs>();
        // What there has been of a kind is counted (but in the first positions), so that of what is missing something is left; where
        // several kinds share positions, or what is of none of them must be written, that is not enough.
        let mut enough = true;
        for contains in &facets.contains {
            let needed = if contains.min > 0 {
                u64::from(contains.min) + u64::from(contains.from)
            } else {
                0
            };
            enough &= self.count(with(contains.schema), DEPTH).least >= needed;
            enough &= contains.max.is_none() || self.are_plenty(with(contains.schema.negated()));
        }
        let unbounded =
            facets.max.is_none() && facets.contains.iter().all(|contains| contains.max.is_none());
        if enough && (unbounded || facets.contains.len() == 1 && facets.prefix() == 0) {
            return Ok(self.containing(facets, Compared::Yes));
        }
        let mut few = false;
        let list = self.containing(facets, Compared::IfPlenty(&mut few));
        match few {
            true => Err(
                "a position may have no more values than there are elements before it, as some are counted by `contains`",
            ),
            false => Ok(list),
        }
    }

    /// Whether there are more values that satisfy all of the locations than any text has.
    pub(super) fn are_plenty(&mut self, locs: Locs) -> bool {
        self.count(locs, DEPTH).least >= PLENTY
    }

    /// An element of an array; as one that is compared, if it is.
    pub(super) fn array_element(&mut self, locs: Locs, compared: bool) -> Expr {
        let value = self.value(locs);
        if !compared || value == Expr::Never {
            return value;
        }
        let rule = self.rule("element".into(), value);
        self.builder.attributes(rule).element = true;
        Expr::Ref(rule)
    }

    /// Whether an object or an array may satisfy all of the locations.
    fn has_parts(&mut self, locs: Locs) -> bool {
        let conj = self.norm.conj(locs);
        let parts = Types::OBJECT.or(Types::ARRAY);
        self.norm.alternatives(&conj).iter().any(|facets| match &facets.values {
            Some(values) => values.iter().any(|value| parts.meets(Types::of(value))),
            None => parts.meets(facets.types),
        })
    }

    /// How many values satisfy all of the locations.
    fn count(&mut self, locs: Locs, depth: u32) -> Count {
        let conj = self.norm.conj(locs);
        let alternatives = self.norm.alternatives(&conj);
        let counts: Vec<Count> =
            alternatives.iter().map(|facets| self.count_of(facets, depth)).collect();
        counts.into_iter().fold(Count::exactly(0), Count::or)
    }

    fn count_of(&mut self, facets: &Facets<'a>, depth: u32) -> Count {
        if let Some(values) = &facets.values {
            let accepted = values.iter().filter(|value| self.norm.accepts(facets, value));
            let mut distinct: Vec<String> =
                accepted.map(|value| super::facets::canonical(value)).collect();
            distinct.sort_unstable();
            distinct.dedup();
            return Count::exactly(distinct.len() as u64);
        }
        if self.norm.is_empty(facets, 4) {
            return Count::exactly(0);
        }
        let types = facets.types;
        let mut all = Count::exactly(
            u64::from(types.meets(Types::NULL)) + 2 * u64::from(types.meets(Types::BOOLEAN)),
        );
        if types.meets(Types::NUMBER) {
            all = all.and(count_numbers(&facets.number, types.meets(Types::FRACTION)));
        }
        // What is not counted is not needed.
        if types.meets(Types::STRING) && all.least < PLENTY {
            all = all.and(self.count_strings(&facets.string));
        }
        if types.meets(Types::ARRAY) && all.least < PLENTY {
            all = all.and(self.count_arrays(&facets.array, depth));
        }
        if types.meets(Types::OBJECT) && all.least < PLENTY {
            all = all.and(self.count_objects(&facets.object, depth));
        }
        all
    }

    fn count_strings(&mut self, facets: &StringFacets<'a>) -> Count {
        if facets.patterns.is_empty()
            && facets.excluded.len() < 1_000
            && facets.max.is_none_or(|max| max > 1)
        {
            return Count::plenty();
        }
        // Lengths are counted here, so the automaton need not.
        let any = StringFacets { min: 0, max: None, ..facets.clone() };
        let Some(dfa) = self.norm.text_dfa(&any) else { return Count::UNKNOWN };
        count_words(&dfa, facets.min, facets.max)
    }

    fn count_arrays(&mut self, facets: &ArrayFacets, depth: u32) -> Count {
        if facets.max == Some(0) {
            return Count::exactly(u64::from(facets.min == 0));
        }
        // Longer and longer ones, or one with elements of which there are plenty.
        let grows = facets.max.is_none() && facets.unique.is_none() && facets.contains.is_empty();
        if grows && self.value(facets.element(facets.prefix())) != Expr::Never {
            return Count::plenty();
        }
        let first = depth > 0 && facets.contains.is_empty();
        if first && self.count(facets.element(0), depth - 1).least >= PLENTY {
            return Count::plenty();
        }
        Count::UNKNOWN
    }

    fn count_objects(&mut self, facets: &ObjectFacets<'a>, depth: u32) -> Count {
        if depth == 0 {
            return Count::UNKNOWN;
        }
        // One member more, of any name.
        let needed = facets.required.len() + facets.some.len();
        let more = facets.max.is_none_or(|max| max as usize > needed);
        let additional: Locs = facets.parts.iter().filter_map(|part| part.additional).collect();
        let named =
            !facets.names.is_empty() || facets.parts.iter().any(|part| !part.patterns.is_empty());
        if more && !named && self.value(additional) != Expr::Never {
            return Count::plenty();
        }
        let (mut least, mut exact) =
            (1u64, facets.some.is_empty() && facets.max.is_none() && facets.min == 0);
        let declared = self.declared(facets);
        let must = Among::new(&facets.required, declared.len());
        for &name in &declared {
            let locs = self.norm.member(facets, name);
            let accepted = self.norm.accepts_name(facets, name);
            let required = must.has(&name);
            let count = if accepted { self.count(locs, depth - 1) } else { Count::exactly(0) };
            if count.least >= PLENTY && (more || required) {
                return Count::plenty();
            }
            exact &= count.least == count.most;
            least = least.saturating_mul(count.least.saturating_add(u64::from(!required)));
        }
        exact = exact
            && self
                .undeclared(facets, &declared)
                .into_iter()
                .all(|(_, locs)| self.value(locs) == Expr::Never);
        if exact { Count::exactly(least) } else { Count::UNKNOWN }
    }
}

fn count_numbers(facets: &NumberFacets, fractions: bool) -> Count {
    if !facets.not_multiples.is_empty() {
        return Count::UNKNOWN;
    }
    let (Some(low), Some(high)) = (&facets.low, &facets.high) else { return Count::plenty() };
    if !facets.multiples.is_empty() {
        return Count::UNKNOWN;
    }
    if fractions && low.value < high.value {
        return Count::plenty();
    }
    let whole = |text: Option<String>| text.and_then(|text| text.parse::<i128>().ok());
    let (Some(from), Some(to)) = (whole(low.value.plain(30)), whole(high.value.plain(30))) else {
        return Count::UNKNOWN;
    };
    let all = (to - i128::from(high.exclusive)) - (from + i128::from(low.exclusive)) + 1;
    let all = u64::try_from(all.max(0)).unwrap_or(u64::MAX);
    // Some of those that are not allowed may be none of these.
    Count { least: all.saturating_sub(facets.excluded.len() as u64), most: all }
}

/// How many words of these lengths an automaton has.
fn count_words(dfa: &Dfa, min: u32, max: Option<u32>) -> Count {
    if dfa.is_empty() {
        return Count::exactly(0);
    }
    if max.is_none() && dfa.is_infinite() {
        return Count::plenty();
    }
    let states = dfa.len();
    let mut ways = vec![0u64; states];
    ways[0] = 1;
    let mut total = 0u64;
    for length in 0..=max.unwrap_or(u32::MAX) {
        if length >= min {
            let ended =
                (0..states).filter(|&state| dfa.is_final(state as u32)).map(|state| ways[state]);
            total = ended.fold(total, u64::saturating_add);
        }
        if total >= PLENTY {
            return Count::plenty();
        }
        if ways.iter().all(|&n| n == 0) {
            return Count::exactly(total);
        }
        if (length as usize + 1).saturating_mul(states) > MAX_STEPS {
            return Count { least: total, most: u64::MAX };
        }
        let mut next = vec![0u64; states];
        for (state, ways) in ways.iter().enumerate() {
            for edge in dfa.edges(state as u32) {
                let more = ways.saturating_mul(u64::from(edge.hi - edge.lo) + 1);
                next[edge.to as usize] = next[edge.to as usize].saturating_add(more);
            }
        }
        ways = next;
    }
    Count::exactly(total)
}
