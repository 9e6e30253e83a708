//! Evaluation of facets without a grammar: does a value satisfy them, does any value, and which
//! strings and finite sets of values do.
//!
//! Normalization filters the values of `enum` and `const` with it, and finds alternatives that are
//! empty.

use std::sync::Arc;

use smallvec::smallvec;

use super::super::error::SchemaErrorReason as Reason;
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{
    ArrayFacets, Contains, Facets, JsonTypes, MemberTest, MembershipTest, NameTest, ObjectFacets,
    StringFacets, Witness, are_equal, canonical,
};
use super::{Conjunction, EMPTINESS_DEPTH, Normalizer};
use crate::decimal::Decimal;
use crate::front::regex::{CountedDfa, Lengths, SCALARS};
use crate::fsm::{Combine, Dfa, TooLarge};
use crate::hash::HashMap;
use crate::spec::json::{Json, Object};

/// Whether an element counts for `contains`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainsCount {
    No,
    Yes,
    /// A relaxed keyword decides: the element may count or not, whichever fits.
    Either,
    /// It matches neither the pattern of a format nor that of the format's negation, which are
    /// narrower than what they stand for: bounds must hold either way.
    Unknown,
}

impl ContainsCount {
    /// Whether the element counts towards a lower bound.
    pub(crate) fn counts_towards_min(self) -> bool {
        matches!(self, ContainsCount::Yes | ContainsCount::Either)
    }

    /// Whether the element counts towards an upper bound.
    fn counts_towards_max(self) -> bool {
        matches!(self, ContainsCount::Yes | ContainsCount::Unknown)
    }
}

impl<'a> Normalizer<'a> {
    /// Whether a value satisfies all facets except `values`. Keywords that are not enforced are
    /// reported if they constrain the value.
    pub(crate) fn accepts(&mut self, facets: &Facets<'a>, value: &Json) -> bool {
        let types = JsonTypes::of(value);
        let listed = facets.string.excluded.len() + facets.number.excluded.len();
        if !facets.types.meets(types) || !self.reader.spend(1 + listed) {
            return false;
        }
        let accepted = match value {
            Json::Null | Json::Bool(_) => true,
            Json::Number(n) => {
                facets.number.allows_all() || facets.number.allow(&Decimal::parse(n.as_str()))
            }
            Json::String(text) => self.accepts_text(&facets.string, text),
            Json::Array(items) => self.accepts_array(&facets.array, items),
            Json::Object(object) => self.accepts_object(&facets.object, object),
        };
        if accepted {
            self.reader.report_unenforced(facets, types);
        }
        accepted
    }

    /// Whether a string satisfies the facets.
    pub(crate) fn accepts_text(&mut self, facets: &StringFacets<'a>, text: &str) -> bool {
        if facets.allows_all() {
            return true;
        }
        let length = text.chars().count();
        is_within(length, (facets.min, facets.max))
            && !facets.excluded.contains(&text)
            && facets.patterns.iter().all(|p| {
                let Some(forms) = self.reader.counted_dfas(p) else { return true };
                let accepts = |(dfa, lengths): &CountedDfa| {
                    is_within(length, *lengths) && self.reader.matches(dfa, text)
                };
                forms.iter().any(accepts) != p.negated
            })
    }

    /// The listed strings that satisfy the facets; `None` if values are not listed.
    pub(crate) fn listed_texts(&mut self, facets: &Facets<'a>) -> Option<Vec<&'a str>> {
        let mut texts: Vec<&'a str> =
            facets.values.as_ref()?.iter().filter_map(|value| value.as_str()).collect();
        texts.retain(|text| self.accepts_text(&facets.string, text));
        Some(texts)
    }

    /// Whether an array satisfies the facets.
    fn accepts_array(&mut self, facets: &ArrayFacets, items: &[Json]) -> bool {
        is_within(items.len(), (facets.min, facets.max))
            && items.iter().enumerate().all(|(i, item)| self.satisfies(facets.element(i), item))
            && facets.contains.iter().all(|contains| {
                let counted = items.iter().skip(contains.from as usize);
                let (mut towards_min, mut towards_max) = (0, 0);
                for item in counted {
                    let count = self.counts_for(contains, item);
                    towards_min += usize::from(count.counts_towards_min());
                    towards_max += usize::from(count.counts_towards_max());
                }
                towards_min >= contains.min as usize
                    && contains.max.is_none_or(|max| towards_max <= max as usize)
            })
            && (facets.unique.is_none() && facets.repeats.is_none() || {
                let mut seen = crate::hash::HashSet::default();
                let is_new = |item| seen.insert(canonical(item));
                let distinct = items.iter().all(is_new);
                if distinct { facets.repeats.is_none() } else { facets.unique.is_none() }
            })
    }

    /// Whether an element counts for `contains`.
    pub(crate) fn counts_for(&mut self, contains: &Contains, item: &Json) -> ContainsCount {
        let counts = self.satisfies([contains.schema], item);
        // Only an upper bound needs to know what certainly does not count.
        let fails = match contains.max {
            Some(_) => self.satisfies([contains.schema.negated()], item),
            None => !counts,
        };
        match (counts, fails) {
            (true, false) => ContainsCount::Yes,
            (false, true) => ContainsCount::No,
            (true, true) => ContainsCount::Either,
            (false, false) => ContainsCount::Unknown,
        }
    }

    /// Whether an object satisfies the facets.
    fn accepts_object(&mut self, facets: &ObjectFacets<'a>, object: &Object) -> bool {
        is_within(object.len(), (facets.min, facets.max))
            && facets.required.iter().all(|name| object.get(name).is_some())
            && facets.forbidden.iter().all(|name| object.get(name).is_none())
            && object.iter().all(|(name, value)| {
                let locs = self.member_schemas(facets, name);
                self.satisfies(locs, value) && self.accepts_name(facets, name)
            })
            && facets.clauses.iter().all(|clause| {
                clause.is_met(|MemberTest { name, schema }| {
                    object.get(name).is_some_and(|value| self.satisfies([schema], value))
                })
            })
            && facets.witnesses.iter().all(|witness| {
                object.iter().any(|(name, value)| {
                    self.can_be_witness(witness, name) && self.satisfies([witness.schema], value)
                })
            })
    }

    /// Whether a member of this name can be the witness.
    pub(crate) fn can_be_witness(&mut self, witness: &Witness<'a>, name: &str) -> bool {
        match &witness.matching {
            Some(test) => self.passes(test, name),
            None => {
                !witness.not_named.contains(&name)
                    && !witness.not_matching.iter().any(|test| self.passes(test, name))
            }
        }
    }

    /// Whether a name passes a test.
    fn passes(&mut self, test: &NameTest<'a>, name: &str) -> bool {
        match test {
            NameTest::Pattern(pattern) => {
                let dfa = self.reader.pattern_dfa(pattern);
                dfa.is_some_and(|dfa| self.reader.matches(&dfa, name))
            }
            NameTest::Schema(loc) => self.satisfies([*loc], &Json::String(name.to_owned())),
        }
    }

    /// Whether a value satisfies all of the locations.
    pub(crate) fn satisfies(
        &mut self,
        locs: impl IntoIterator<Item = LocId>,
        value: &Json,
    ) -> bool {
        let alternatives = self.alternatives_of(locs);
        alternatives.iter().any(|f| {
            if !self.reader.spend(1 + f.values.as_ref().map_or(0, |values| values.len())) {
                return false;
            }
            let values = f.values.as_ref();
            values.is_none_or(|values| values.iter().any(|v| are_equal(v, value)))
                && self.accepts(f, value)
        })
    }

    /// Whether `propertyNames` allows this name.
    pub(crate) fn accepts_name(&mut self, facets: &ObjectFacets<'a>, name: &str) -> bool {
        facets.names.is_empty()
            || self.satisfies(facets.names.iter().copied(), &Json::String(name.to_owned()))
    }

    /// The schemas of the member of this name.
    pub(crate) fn member_schemas(&mut self, facets: &ObjectFacets<'a>, name: &str) -> Locs {
        if facets.forbidden.contains(&name) {
            return smallvec![LocId::FALSE];
        }
        let mut out = Locs::new();
        if !self.reader.spend(facets.parts.len()) {
            return out;
        }
        for part in &facets.parts {
            let before = out.len();
            out.extend(part.property(name));
            for (pattern, schema) in &part.patterns {
                let dfa = self.reader.pattern_dfa(pattern);
                if dfa.is_some_and(|dfa| self.reader.matches(&dfa, name)) {
                    out.push(*schema);
                }
            }
            if out.len() == before && part.property(name).is_none() {
                out.extend(part.additional);
            }
        }
        out
    }

    /// As [`Normalizer::member_schemas`], for each of these names.
    pub(crate) fn schemas_of_members(
        &mut self,
        facets: &ObjectFacets<'a>,
        names: &[&str],
    ) -> Vec<Locs> {
        /// More parts are indexed by the names that they constrain.
        const MAX_SCANNED: usize = 16;
        if facets.parts.len() <= MAX_SCANNED {
            return names.iter().map(|name| self.member_schemas(facets, name)).collect();
        }
        let mut others = ObjectFacets::default();
        let mut by_name: HashMap<&str, Locs> = HashMap::default();
        for part in &facets.parts {
            self.reader.spend(1 + part.properties.len());
            if part.has_properties_only() {
                for &(name, schema) in &part.properties {
                    by_name.entry(name).or_default().push(schema);
                }
            } else {
                others.parts.push(part.clone());
            }
        }
        let forbidden = MembershipTest::new(&facets.forbidden, names.len());
        let schemas = names.iter().map(|name| {
            let mut out = self.member_schemas(&others, name);
            out.extend(by_name.get(name).cloned().unwrap_or_default());
            if forbidden.contains(name) { smallvec![LocId::FALSE] } else { out }
        });
        schemas.collect()
    }

    /// Whether certainly no value satisfies the facets. Searches `depth` levels of members and
    /// elements.
    pub(crate) fn is_empty(&mut self, facets: &Facets<'a>, depth: usize) -> bool {
        self.is_empty_below(facets, &mut Vec::with_capacity(depth), depth)
    }

    /// As [`Normalizer::is_empty`], for a part of values that must satisfy the conjunctions on the
    /// path.
    fn is_empty_below(
        &mut self,
        facets: &Facets<'a>,
        path: &mut Vec<Conjunction>,
        depth: usize,
    ) -> bool {
        let mut types = facets.types;
        if let Some(values) = &facets.values {
            return !values.iter().any(|value| self.accepts(facets, value));
        }
        if types.meets(JsonTypes::STRING) && self.has_no_text(&facets.string) {
            types = types.minus(JsonTypes::STRING);
        }
        if types.meets(JsonTypes::ARRAY) && depth > 0 {
            let needed = (facets.array.min as usize).min(facets.array.prefix() + 1);
            if (0..needed).any(|i| self.is_false_below(facets.array.element(i), path, depth - 1)) {
                types = types.minus(JsonTypes::ARRAY);
            }
        }
        if types.meets(JsonTypes::OBJECT) && depth > 0 {
            let impossible = facets.object.required.iter().any(|name| {
                let locs = self.member_schemas(&facets.object, name);
                self.is_false_below(locs, path, depth - 1)
                    || !self.accepts_name(&facets.object, name)
            });
            if impossible {
                types = types.minus(JsonTypes::OBJECT);
            }
        }
        types.is_empty()
    }

    /// Whether certainly no value satisfies all of the locations.
    pub(crate) fn is_false(&mut self, locs: Locs, depth: usize) -> bool {
        self.is_false_below(locs, &mut Vec::with_capacity(depth), depth)
    }

    /// As [`Normalizer::is_false`], below a path. What is on the path has no value that needs
    /// another one of it inside, as values are finite.
    fn is_false_below(&mut self, locs: Locs, path: &mut Vec<Conjunction>, depth: usize) -> bool {
        let conj = self.conjunction(locs);
        if path.contains(&conj) {
            return true;
        }
        let alternatives = self.alternatives(&conj);
        path.push(conj);
        let out = alternatives.iter().all(|f| self.is_empty_below(f, path, depth));
        path.pop();
        out
    }

    /// Whether the patterns and excluded strings leave no string. Lengths alone are compared
    /// elsewhere.
    fn has_no_text(&mut self, facets: &StringFacets<'a>) -> bool {
        if facets.patterns.len() + usize::from(!facets.excluded.is_empty()) < 2 {
            return false;
        }
        let parts = self.text_parts(facets);
        parts.is_some_and(|parts| parts.iter().all(|(dfa, lengths)| has_no_word(dfa, *lengths)))
    }

    /// The texts that satisfy the facets, as a union of automata over code points, each with bounds
    /// on the length. Reports a limit and returns `None` if an automaton is too large.
    pub(crate) fn text_parts(&mut self, facets: &StringFacets<'a>) -> Option<Vec<CountedDfa>> {
        /// Most parts; with more, bounds that patterns state become states.
        const MAX_PARTS: usize = 16;
        let mut parts = vec![(Vec::new(), (facets.min, facets.max))];
        for pattern in &facets.patterns {
            let mut forms = Vec::new();
            if !pattern.negated && parts.len() < MAX_PARTS {
                forms = self.reader.counted_dfas(pattern)?;
            }
            if forms.is_empty() || forms.len() * parts.len() > MAX_PARTS {
                forms = vec![(self.reader.pattern_dfa(pattern)?, (0, None))];
            }
            let conjoin = |(dfas, (min, max)): &(Vec<(Arc<Dfa>, bool)>, Lengths)| {
                let with = |(dfa, (fewest, most)): &CountedDfa| {
                    let mut dfas = dfas.clone();
                    dfas.push((dfa.clone(), !pattern.negated));
                    let most = most.iter().chain(max).copied().min();
                    (dfas, (*min.max(fewest), most))
                };
                forms.iter().map(with).collect::<Vec<_>>()
            };
            parts = parts.iter().flat_map(conjoin).collect();
        }
        let limit = self.reader.limits.automaton_states;
        let joined = |(dfas, lengths): (Vec<_>, _)| Ok((texts(&dfas, facets, limit)?, lengths));
        let joined: Result<Vec<CountedDfa>, TooLarge> = parts.into_iter().map(joined).collect();
        self.or_report_states(facets, joined)
    }

    /// The automaton over code points of the texts that satisfy the facets. Reports a limit and
    /// returns `None` if it is too large.
    pub(crate) fn text_dfa(&mut self, facets: &StringFacets<'a>) -> Option<Arc<Dfa>> {
        let limit = self.reader.limits.automaton_states;
        let parts = self.text_parts(facets)?;
        let exact = |(dfa, (min, max)): &CountedDfa| match (min, max) {
            (0, None) => Ok(dfa.clone()),
            // Lengths come last, because they multiply the states.
            _ => dfa.of_length(*min, *max, limit).map(Arc::new),
        };
        let mut all = parts.iter().map(exact);
        let built = all.next().unwrap_or_else(|| Ok(Dfa::empty_language().into()));
        let built =
            all.fold(built, |all, part| Ok(Arc::new(all?.combine(&*part?, Combine::Or, limit)?)));
        self.or_report_states(facets, built)
    }

    /// The value of a result; an error is reported as a limit.
    pub(crate) fn or_report_states<T>(
        &mut self,
        facets: &StringFacets<'a>,
        result: Result<T, TooLarge>,
    ) -> Option<T> {
        if result.is_err() {
            let limit = self.reader.limits.automaton_states;
            let what = format!(
                "patterns and lengths together need more than {limit} states \
                 (`Limits::automaton_states`)"
            );
            match facets.patterns.first() {
                Some(p) => self.reader.report(p.loc, p.keyword, Reason::Limit(what)),
                None => {
                    let at = self.reader.current;
                    self.reader.report_limit(at, &["maxLength", "minLength"], what);
                }
            }
        }
        result.ok()
    }

    /// The values that satisfy all of the locations; `None` unless they are certainly finitely
    /// many.
    pub(crate) fn finite_values(&mut self, locs: Locs) -> Option<Vec<&'a Json>> {
        static WORDS: [Json; 3] = [Json::Null, Json::Bool(false), Json::Bool(true)];
        let mut out: Vec<&'a Json> = Vec::new();
        for facets in self.alternatives_of(locs).iter() {
            let finite = JsonTypes::NULL.union(JsonTypes::BOOLEAN);
            match &facets.values {
                Some(values) => {
                    out.extend(values.iter().filter(|value| self.accepts(facets, value)))
                }
                None if facets.types.minus(finite).is_empty() => {
                    out.extend(
                        WORDS.iter().filter(|value| facets.types.meets(JsonTypes::of(value))),
                    );
                }
                None if self.is_empty(facets, EMPTINESS_DEPTH) => {}
                None => return None,
            }
        }
        Some(out)
    }

    /// Whether certainly no value satisfies both lists of locations.
    pub(crate) fn are_disjoint(&mut self, a: Locs, b: Locs) -> bool {
        let (a, b) = (self.alternatives_of(a), self.alternatives_of(b));
        self.disjoint(&a, &b)
    }
}

/// The texts that are in the automata paired with `true`, in none paired with `false`, and that the
/// facets do not exclude. Lengths are not bounded.
fn texts(
    parts: &[(Arc<Dfa>, bool)],
    facets: &StringFacets<'_>,
    limit: usize,
) -> Result<Arc<Dfa>, TooLarge> {
    let all = match parts {
        [(single, true)] => single.clone(),
        parts => {
            let parts: Vec<(&Dfa, bool)> =
                parts.iter().map(|(dfa, within)| (&**dfa, *within)).collect();
            Arc::new(Dfa::all_of(&parts, &SCALARS, limit)?)
        }
    };
    if facets.excluded.is_empty() {
        return Ok(all);
    }
    all.without(&Dfa::texts(&facets.excluded), limit).map(Arc::new)
}

/// Whether a length or a count is within the bounds.
fn is_within(count: usize, (min, max): Lengths) -> bool {
    count >= min as usize && max.is_none_or(|max| count <= max as usize)
}

/// Whether certainly no word has a length within the bounds.
fn has_no_word(dfa: &Dfa, (min, max): Lengths) -> bool {
    let Some(shortest) = dfa.shortest_word() else { return true };
    let is_long = max.is_some_and(|max| shortest.len() > max as usize);
    // A finite language has no word of as many symbols as there are states.
    is_long || max.is_some_and(|max| max < min) || !dfa.is_infinite() && dfa.len() <= min as usize
}
