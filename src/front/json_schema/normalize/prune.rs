//! Pruning: contradictory and subsumed alternatives are removed.
//!
//! Negations (`oneOf` with overlapping branches, `not`, `if`) multiply alternatives. Most of the
//! products contradict themselves or are contained in another alternative. Three reductions keep
//! their number small:
//!
//! * *reduce*: simplify one alternative, or find that it is empty. Listed values are filtered; a
//!   witness with only one possible name becomes a required member; a negated property that other
//!   schemas imply or exclude is resolved.
//! * *subsume*: drop an alternative whose values another one all has. Signatures of the constraints
//!   on members rule most pairs out.
//! * *merge*: `{a required, S} or {a forbidden}` with equal other facets becomes one alternative:
//!   `a` is optional and satisfies `S`.

use std::ops::Deref;
use std::rc::Rc;

use super::super::options::{MemberOrder, Undeclared};
use super::super::read::doc::LocId;
use super::super::read::facets::{
    Facets, JsonTypes, MemberClause, MembershipTest, NumberFacets, ObjectFacets, ObjectPart,
    StringFacets, Witness, common_item, divides, implies, is_subset, min_bound,
};
use super::super::read::shared_facets::SharedFacets;
use super::super::schema_key::{SchemaHash, equal_schemas};
use super::{Alternatives, MAX_ALTERNATIVES, Normalizer};
use crate::fuel;
use crate::hash::HashMap;
use crate::spec::json::Json;

/// The largest number of alternatives that are searched for pairs to merge.
const MAX_MERGE_CANDIDATES: usize = 512;
/// How many levels of members and elements are searched for a contradiction.
const PROBE_DEPTH: usize = 3;
/// How deep searches for contradictions may nest.
const MAX_NESTED_PROBES: usize = 2;
/// Fuel for one search for a contradiction.
const FUEL_PER_PROBE: usize = 64;

impl<'a> Normalizer<'a> {
    /// The conjunction of two lists of alternatives: all pairs, reduced, without subsumed ones.
    /// `None`: too many (reported).
    pub(super) fn reduced_product(
        &mut self,
        loc: LocId,
        sources: [(LocId, &'static str); 2],
        a: &[Facets<'a>],
        b: &[Facets<'a>],
    ) -> Option<Vec<Facets<'a>>> {
        let mut out = Vec::new();
        for x in a {
            for y in b {
                if !self.spend_on_conjoin(x, y) {
                    return None;
                }
                let both = x.clone().conjoin(y);
                if !both.types.is_empty() {
                    out.extend(self.reduce(both));
                }
            }
            if out.len() > MAX_ALTERNATIVES {
                out = self.without_subsumed(out);
                if out.len() > MAX_ALTERNATIVES {
                    self.report_too_many(loc, sources);
                    return None;
                }
            }
        }
        Some(self.without_subsumed(out))
    }

    /// Removes alternatives that another one subsumes, and merges pairs that differ only in the
    /// presence of a member.
    pub(super) fn without_subsumed(&mut self, mut list: Vec<Facets<'a>>) -> Vec<Facets<'a>> {
        while list.len() > 1 && self.reader.spend(list.len()) {
            let mut bits = HashMap::default();
            let signatures: Vec<Signature> =
                list.iter().map(|facets| Signature::new(facets, &mut bits)).collect();
            let mut dropped = vec![false; list.len()];
            for i in 0..list.len() {
                if !self.reader.spend(list.len() / 2) {
                    return list;
                }
                let may_subsume =
                    |j: usize| i != j && !dropped[j] && signatures[j].may_subsume(&signatures[i]);
                dropped[i] =
                    (0..list.len()).any(|j| may_subsume(j) && self.covers(&list[j], &list[i]));
            }
            let mut keep = dropped.into_iter().map(|dropped| !dropped);
            list.retain(|_| keep.next() == Some(true));
            if list.len() > MAX_MERGE_CANDIDATES || !self.merge_presence(&mut list) {
                break;
            }
        }
        list
    }

    /// Merges pairs of alternatives of which one requires a member, the other forbids it, and the
    /// rest is equal, apart from constraints on that member. Returns whether any pair was merged.
    fn merge_presence(&mut self, list: &mut Vec<Facets<'a>>) -> bool {
        let mut merged = false;
        let mut i = 0;
        while i < list.len() {
            if !self.reader.spend(1 + list.len() / 4) {
                return false;
            }
            let other =
                (0..list.len()).find_map(|j| Some((j, self.either_presence(&list[i], &list[j])?)));
            match other {
                Some((j, both)) => {
                    list[i] = both;
                    list.remove(j);
                    merged = true;
                    i -= usize::from(j < i);
                }
                None => i += 1,
            }
        }
        merged
    }

    /// One alternative for two, of which the first forbids a member and the second requires it, if
    /// they differ in that member only.
    fn either_presence(&mut self, without: &Facets<'a>, with: &Facets<'a>) -> Option<Facets<'a>> {
        let objects = without.types.meets(JsonTypes::OBJECT) && with.types == JsonTypes::OBJECT;
        let (a, b) = (&without.object, &with.object);
        if !objects
            || a.forbidden.is_empty()
            || (a.required.len() + 1, a.forbidden.len())
                != (b.required.len(), b.forbidden.len() + 1)
            || (a.names.len(), a.witnesses.len()) != (b.names.len(), b.witnesses.len())
            || a.clauses.len() != b.clauses.len()
            || a.parts.len() > b.parts.len()
        {
            return None;
        }
        let name = *common_item(&a.forbidden, &b.required)?;
        // Counts (`minProperties`) treat undeclared members differently.
        let counted = a.min > 0 || a.max.is_some();
        if counted && a.parts.iter().all(|part| part.property(name).is_none())
            || !self.spend_on_conjoin(without, with)
        {
            return None;
        }
        let (mut a, mut b) = (without.clone(), with.clone());
        a.object.forbidden.retain(|other| *other != name);
        b.object.required.retain(|other| *other != name);
        a.types = JsonTypes::OBJECT;
        // What constrains only this member holds in both.
        let mut of_member = Vec::new();
        b.object.parts.retain(|part| {
            let shared = || a.object.parts.iter().any(|other| Rc::ptr_eq(other, part));
            let stays = !is_only(part, name) || shared();
            if !stays {
                of_member.push(part.clone());
            }
            stays
        });
        let are_equal = (of_member.is_empty()
            || self.reader.options.undeclared == Undeclared::Allowed)
            && self.order_is_free(&b.object)
            && self.covers(&a, &b)
            && self.covers(&b, &a);
        a.object.parts.extend(of_member);
        are_equal.then_some(Facets { types: without.types, ..a })
    }

    /// As [`Normalizer::reduce`], for a list of alternatives.
    pub(super) fn reduce_all(&mut self, list: Alternatives<'a>) -> Alternatives<'a> {
        if self.is_limit_placeholder(&list) {
            return list;
        }
        let reduced: Vec<Facets<'a>> =
            list.iter().filter_map(|facets| self.reduce(facets.clone())).collect();
        Rc::new(self.without_subsumed(reduced))
    }

    /// Simplifies facets; `None` if they are found to allow no value.
    pub(super) fn reduce(&mut self, mut facets: Facets<'a>) -> Option<Facets<'a>> {
        if let Some(values) = &facets.values {
            if !facets.unenforced.is_empty() {
                return Some(facets);
            }
            let accepted: Vec<&'a Json> =
                values.iter().copied().filter(|value| self.accepts(&facets, value)).collect();
            if accepted.is_empty() && !self.reader.is_exhausted() {
                return None;
            }
            let all_accepted = accepted.len() == values.len();
            let values = if all_accepted { values.clone() } else { Rc::new(accepted) };
            facets.values = Some(values.clone());
            // The values that are left satisfy all other facets, so these can go.
            let reduced = Facets { types: facets.types, values: Some(values), ..Facets::any() };
            return Some(if self.reader.tracks_evaluation { facets } else { reduced });
        }
        if facets.types == JsonTypes::OBJECT
            && self.probe_depth <= MAX_NESTED_PROBES
            && !self.reduce_object(&mut facets.object)
        {
            return None;
        }
        Some(facets)
    }

    /// Simplifies the facets of an object; `false` if they are found to allow no object.
    fn reduce_object(&mut self, facets: &mut SharedFacets<ObjectFacets<'a>>) -> bool {
        let required = MembershipTest::new(&facets.required, facets.parts.len());
        let is_negated = |part: &Rc<ObjectPart<'a>>| {
            negated_property(part).is_some_and(|(name, _)| required.contains(&name))
        };
        if !facets.witnesses.is_empty() || facets.parts.iter().any(is_negated) {
            return self.reduce_members(facets);
        }
        common_item(&facets.required, &facets.forbidden).is_none()
    }

    /// Resolves negated properties and witnesses of an object; `false` if no object is left.
    fn reduce_members(&mut self, facets: &mut ObjectFacets<'a>) -> bool {
        let mut i = 0;
        while i < facets.parts.len() {
            let Some((name, loc)) = negated_property(&facets.parts[i])
                .filter(|(name, _)| facets.required.contains(name))
            else {
                i += 1;
                continue;
            };
            let part = facets.parts.remove(i);
            let mut locs = self.member_schemas(facets, name);
            if locs.contains(&loc.negated()) {
                return false;
            }
            let mut is_implied = locs.contains(&loc);
            if !locs.is_empty() && !is_implied {
                locs.push(loc);
                if self.is_contradictory(&locs) {
                    return false;
                }
                locs.pop();
                locs.push(loc.negated());
                is_implied = self.is_contradictory(&locs);
            }
            if !is_implied {
                facets.parts.insert(i, part);
                i += 1;
            }
        }
        self.reduce_witnesses(facets)
    }

    /// Resolves the witnesses of an object; `false` if no object is left.
    fn reduce_witnesses(&mut self, facets: &mut ObjectFacets<'a>) -> bool {
        let mut i = 0;
        while i < facets.witnesses.len() {
            let witness = facets.witnesses[i].clone();
            if self.is_met(facets, &witness) {
                facets.witnesses.remove(i);
                continue;
            }
            let Some(names) = self.possible_names(facets, &witness) else {
                i += 1;
                continue;
            };
            match names[..] {
                [] => return false,
                [name] => {
                    facets.witnesses.remove(i);
                    if !facets.required.contains(&name) {
                        facets.required.push(name);
                    }
                    if !self.reader.doc.is_always_true(witness.schema) {
                        facets.parts.push(Rc::new(ObjectPart::of_member(name, witness.schema)));
                    }
                }
                _ if self.reader.doc.is_always_true(witness.schema)
                    && names.iter().any(|name| facets.required.contains(name)) =>
                {
                    facets.witnesses.remove(i);
                }
                _ => i += 1,
            }
        }
        common_item(&facets.required, &facets.forbidden).is_none()
    }

    /// Whether a required member certainly serves as a witness.
    fn is_met(&mut self, facets: &ObjectFacets<'a>, witness: &Witness<'a>) -> bool {
        let met = self.probe(|normalizer| {
            facets.required.iter().any(|name| {
                normalizer.can_be_witness(witness, name)
                    && (normalizer.reader.doc.is_always_true(witness.schema)
                        || normalizer.member_schemas(facets, name).contains(&witness.schema))
            })
        });
        met == Some(true)
    }

    /// The possible names of a witness, if all names of members are known.
    fn possible_names(
        &mut self,
        facets: &ObjectFacets<'a>,
        witness: &Witness<'a>,
    ) -> Option<Vec<&'a str>> {
        if witness.matching.is_some() || !witness.not_matching.is_empty() {
            return None;
        }
        let mut closed = None;
        for part in &facets.parts {
            let no_additional =
                part.additional.is_some_and(|loc| self.reader.doc.is_always_true(loc.negated()));
            if no_additional && part.patterns.is_empty() {
                closed = Some(part.clone());
            }
        }
        let mut names: Vec<&'a str> = closed?.properties.iter().map(|(name, _)| *name).collect();
        names.retain(|name| {
            !witness.not_named.contains(name)
                && !self.member_schemas(facets, name).contains(&LocId::FALSE)
        });
        Some(names)
    }

    /// Whether certainly no value satisfies all of the locations.
    pub(super) fn is_contradictory(&mut self, locs: &[LocId]) -> bool {
        let earlier = self.reader.set_all_texts(true);
        let out = self.has_contradiction(locs);
        self.reader.set_all_texts(earlier);
        out
    }

    fn has_contradiction(&mut self, locs: &[LocId]) -> bool {
        let conj = self.conjunction(locs.iter().copied());
        if let Some(&empty) = self.memo().contradictions.get(&conj[..]) {
            return empty;
        }
        if !self.reader.spend(FUEL_PER_PROBE) {
            return false;
        }
        if self.negates_an_equal(&conj) {
            self.memo().contradictions.insert(conj, true);
            return true;
        }
        let empty = self.probe(|normalizer| {
            let alternatives = normalizer.alternatives(&conj);
            alternatives.iter().all(|f| normalizer.is_empty(f, PROBE_DEPTH))
        });
        if let Some(empty) = empty {
            self.memo().contradictions.insert(conj, empty);
        }
        empty == Some(true)
    }

    /// Whether one location is the negation of a schema that equals another one, as often in
    /// branches that repeat the declaration of a member.
    fn negates_an_equal(&mut self, locs: &[LocId]) -> bool {
        let known = |loc: &LocId| !self.reader.doc.is_synthetic(*loc);
        let (negated, asserted): (Vec<LocId>, Vec<LocId>) =
            locs.iter().copied().filter(known).partition(|loc| loc.is_negated());
        if negated.is_empty() || asserted.is_empty() {
            return false;
        }
        let mut by_hash: HashMap<u64, Vec<LocId>> = HashMap::default();
        for loc in asserted {
            by_hash.entry(self.schema_hash(loc).hash).or_default().push(loc);
        }
        negated.into_iter().any(|negated| {
            let SchemaHash { hash, cost } = self.schema_hash(negated);
            let doc = &self.reader.doc;
            by_hash.get(&hash).into_iter().flatten().any(|&loc| {
                fuel::charge(1 + cost);
                doc.read_alike(loc, negated) && equal_schemas(doc.json(loc), doc.json(negated))
            })
        })
    }

    /// The hash of the schema at a location, negated or not.
    fn schema_hash(&mut self, loc: LocId) -> SchemaHash {
        /// Fuel for finding a hash, and for the place of the location in a map.
        const FUEL_PER_HASH: usize = 4;
        fuel::charge(FUEL_PER_HASH);
        let doc = &self.reader.doc;
        let hash = self.schema_hashes.entry(loc.index());
        *hash.or_insert_with(|| SchemaHash::new(doc.json(loc)))
    }

    /// Whether `whole` makes the alternative `part` superfluous: it allows its values, and
    /// evaluates what it evaluates.
    pub(super) fn covers(&self, whole: &Facets<'a>, part: &Facets<'a>) -> bool {
        self.subsumes(whole, part) && (!self.declarations_count() || part.evaluates_within(whole))
    }

    /// Whether `whole` certainly allows every value of `part`, in every spelling that it has there.
    pub(super) fn subsumes(&self, whole: &Facets<'a>, part: &Facets<'a>) -> bool {
        fuel::charge(1);
        if !part.types.minus(whole.types).is_empty() {
            return false;
        }
        let types = part.types;
        let listed = match (&whole.values, &part.values) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Rc::ptr_eq(a, b) || b.len() <= a.len() && is_subset(&addresses(b), &addresses(a))
            }
            // Listed values have other spellings than values of a type.
            _ => false,
        };
        listed
            && whole.unenforced.iter().all(|item| part.unenforced.contains(item))
            && (!types.meets(JsonTypes::NUMBER)
                || whole.number.is_shared_with(&part.number)
                || subsumes_numbers(&whole.number, &part.number))
            && (!types.meets(JsonTypes::STRING)
                || whole.string.is_shared_with(&part.string)
                || subsumes_strings(&whole.string, &part.string))
            && (!types.meets(JsonTypes::ARRAY) || {
                let (a, b) = (&whole.array, &part.array);
                let pairs = |a: usize, b: usize| a.saturating_mul(b);
                fuel::charge(pairs(a.parts.len(), b.parts.len()));
                fuel::charge(pairs(a.contains.len(), b.contains.len()));
                a.parts.iter().all(|part| b.parts.contains(part))
                    && a.min <= b.min
                    && min_bound(a.max, b.max) == b.max
                    && a.contains.iter().all(|contains| b.contains.contains(contains))
                    && (a.unique.is_none() || b.unique.is_some())
                    && (a.repeats.is_none() || b.repeats.is_some())
            })
            && (!types.meets(JsonTypes::OBJECT)
                || self.subsumes_objects(&whole.object, &part.object))
    }

    /// As [`Normalizer::subsumes`], for objects.
    fn subsumes_objects(&self, a: &ObjectFacets<'a>, b: &ObjectFacets<'a>) -> bool {
        let implied = |part: &Rc<ObjectPart<'a>>| {
            let everywhere = |(name, loc)| {
                fuel::charge(1 + b.parts.len());
                b.parts.iter().any(|other| other.property(name) == Some(loc))
            };
            fuel::charge(1 + b.parts.len() / 8);
            b.parts.iter().any(|other| Rc::ptr_eq(other, part))
                || part.has_properties_only()
                    && part.properties.iter().all(|&(name, loc)| everywhere((name, loc)))
        };
        let declared_alike = || {
            let parts = a.parts.len() == b.parts.len()
                && a.parts.iter().zip(&b.parts).all(|(a, b)| Rc::ptr_eq(a, b));
            parts && a.required == b.required
        };
        a.min <= b.min
            && min_bound(a.max, b.max) == b.max
            && is_subset(&a.required, &b.required)
            && is_subset(&a.forbidden, &b.forbidden)
            && is_subset(&a.names, &b.names)
            && is_subset(&addresses(&a.witnesses), &addresses(&b.witnesses))
            && a.clauses.iter().all(|clause| is_clause_implied(clause, b))
            && a.parts.iter().all(implied)
            && (self.order_is_free(b) || declared_alike())
    }

    /// Whether the order of members does not depend on their declaration.
    fn order_is_free(&self, facets: &ObjectFacets<'a>) -> bool {
        self.reader.options.order != MemberOrder::Fixed && facets.witnesses.is_empty()
    }
}

/// The addresses of values that are compared by address.
fn addresses<T: Deref>(list: &[T]) -> Vec<*const T::Target> {
    list.iter().map(|item| std::ptr::from_ref(&**item)).collect()
}

/// Whether objects with these facets certainly meet a clause.
fn is_clause_implied(clause: &MemberClause<'_>, facets: &ObjectFacets<'_>) -> bool {
    let ObjectFacets { required, forbidden, clauses, .. } = facets;
    fuel::charge(1 + required.len() + forbidden.len() + clauses.len());
    clause.present.iter().any(|test| test.is_any() && required.contains(&test.name))
        || clause.absent.iter().any(|test| forbidden.contains(&test.name))
        || clauses.iter().any(|other| implies(other, clause))
}

/// Whether a part constrains no other member than this one.
fn is_only(part: &ObjectPart<'_>, name: &str) -> bool {
    matches!(part.properties[..], [(only, _)] if only == name) && part.has_properties_only()
}

/// The property of a part that comes from the negation of a property.
fn negated_property<'a>(part: &ObjectPart<'a>) -> Option<(&'a str, LocId)> {
    match part.properties[..] {
        [(name, loc)] if loc.is_negated() && part.has_properties_only() => Some((name, loc)),
        _ => None,
    }
}

/// As [`Normalizer::subsumes`], for numbers.
fn subsumes_numbers(a: &NumberFacets, b: &NumberFacets) -> bool {
    let bounds = !a.bounds().any(|(bound, order)| b.is_tightened_by(bound, order));
    // Spellings of numbers depend on whether there are any of these.
    let alike = |a: &[_], b: &[_]| a.is_empty() == b.is_empty();
    bounds
        && alike(&a.multiples, &b.multiples)
        && alike(&a.not_multiples, &b.not_multiples)
        && a.multiples.iter().all(|unit| b.multiples.iter().any(|other| divides(unit, other)))
        && a.not_multiples
            .iter()
            .all(|unit| b.not_multiples.iter().any(|other| divides(other, unit)))
        && is_subset(&a.excluded, &b.excluded)
}

/// As [`Normalizer::subsumes`], for strings.
fn subsumes_strings(a: &StringFacets<'_>, b: &StringFacets<'_>) -> bool {
    a.min <= b.min
        && min_bound(a.max, b.max) == b.max
        && is_subset(&a.patterns, &b.patterns)
        && is_subset(&a.excluded, &b.excluded)
}

/// A constraint on the members of objects, for signatures.
#[derive(PartialEq, Eq, Hash)]
enum MemberConstraint<'a> {
    Required(&'a str),
    Forbidden(&'a str),
    /// A member that satisfies a schema if it is present.
    Property(&'a str, LocId),
}

/// Hash filter for subsumption of facets, one bit for each member constraint. It may pass pairs
/// that are not comparable, and never drops one that is.
struct Signature {
    /// Constraints that subsumed facets must have.
    demanded: u128,
    /// Constraints that these facets guarantee.
    satisfied: u128,
}

impl Signature {
    /// The signature of facets. Constraints get bits in the order in which they are met.
    fn new<'a>(facets: &Facets<'a>, bits: &mut HashMap<MemberConstraint<'a>, u32>) -> Signature {
        if !facets.types.meets(JsonTypes::OBJECT) {
            // Facets without objects subsume no others, and all others may subsume them.
            return Signature { demanded: u128::MAX, satisfied: u128::MAX };
        }
        let mut bit = |constraint| {
            let next = bits.len() as u32;
            1 << (*bits.entry(constraint).or_insert(next) % u128::BITS)
        };
        let ObjectFacets { required, forbidden, parts, .. } = &*facets.object;
        let mut demanded: u128 = 0;
        for &name in required {
            demanded |= bit(MemberConstraint::Required(name));
        }
        for &name in forbidden {
            demanded |= bit(MemberConstraint::Forbidden(name));
        }
        let mut satisfied = demanded;
        for part in parts {
            fuel::charge(1 + part.properties.len() / 4);
            for &(name, loc) in &part.properties {
                let property = bit(MemberConstraint::Property(name, loc));
                satisfied |= property;
                if part.has_properties_only() {
                    demanded |= property;
                }
            }
        }
        Signature { demanded, satisfied }
    }

    /// Whether facets of this signature may subsume those of another one.
    fn may_subsume(&self, other: &Signature) -> bool {
        self.demanded & !other.satisfied == 0
    }
}
