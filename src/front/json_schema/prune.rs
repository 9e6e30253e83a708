//! Alternatives that say nothing new. Negations (`oneOf` whose branches overlap, `not`, `if`) multiply alternatives; most of what comes
//! out contradicts itself or is contained in another one.

use std::rc::Rc;

use super::MemberOrder;
use super::doc::LocId;
use super::facets::{
    Among, Facets, NumberFacets, ObjectFacets, ObjectPart, PatternUse, SomeMember, StringFacets,
    Types,
};
use super::group::Group;
use super::normalize::{Alternatives, MAX_ALTERNATIVES, Normalizer};
use super::{SchemaErrorReason as Reason, facets};
use crate::fuel;
use crate::hash::HashMap;
use crate::ir::Members;
use crate::spec::json::Json;

/// Most branches of a `oneOf` that are compared pairwise.
const MAX_BRANCHES: usize = 512;
/// Most alternatives of which some are looked for that differ in whether a member is there.
const MAX_MERGED: usize = 512;
/// Levels into members and elements in which a contradiction is looked for.
const DEPTH: usize = 3;
/// Contradictions are looked for within so many others that are.
const NESTED: usize = 2;
/// Steps of looking for one.
const LOOK: usize = 64;

impl<'a> Normalizer<'a> {
    /// `oneOf`: each branch without the others. Where two branches cannot both hold (given `base`), nothing is to be done;
    /// otherwise the other branch is negated.
    pub(super) fn exactly_one(
        &mut self,
        loc: LocId,
        base: &[Facets<'a>],
        branches: &[LocId],
    ) -> Vec<Facets<'a>> {
        let n = branches.len();
        if n > MAX_BRANCHES {
            self.report(loc, "oneOf", Reason::Limit(format!("more than {MAX_BRANCHES} branches")));
            return Vec::new();
        }
        let expanded: Vec<Alternatives<'a>> = branches.iter().map(|&b| self.expand(b)).collect();
        let narrowed: Vec<Vec<Facets<'a>>> = if let [only] = base {
            let narrow = |alternatives: &Alternatives<'a>| {
                let both = alternatives.iter().map(|a| a.clone().conjoin(only));
                both.filter(|f| !f.types.is_none()).collect()
            };
            expanded.iter().map(narrow).collect()
        } else {
            expanded.iter().map(|alternatives| alternatives.to_vec()).collect()
        };
        let mut excluded: Vec<Vec<usize>> = vec![Vec::new(); n];
        for i in 0..n {
            for j in i + 1..n {
                if !self.disjoint(&narrowed[i], &narrowed[j]) {
                    excluded[i].push(j);
                    excluded[j].push(i);
                }
            }
        }
        let mut union = Vec::new();
        for (i, others) in excluded.iter().enumerate() {
            if others.is_empty() {
                union.extend(expanded[i].iter().cloned());
                continue;
            }
            for facets in &narrowed[i] {
                let others = others.iter().map(|&j| (branches[j].negated(), &narrowed[j][..]));
                let Some(without) = self.without(loc, facets, others) else { return Vec::new() };
                union.extend(without);
            }
        }
        if union.is_empty() {
            self.conflict(loc, "oneOf", "no value satisfies exactly one of its branches");
        }
        union
    }

    /// Facets without what other schemas allow, each given as its negation and the alternatives of it that matter. `None`: there
    /// are too many alternatives (reported).
    fn without<'o>(
        &mut self,
        loc: LocId,
        facets: &Facets<'a>,
        others: impl Iterator<Item = (LocId, &'o [Facets<'a>])>,
    ) -> Option<Vec<Facets<'a>>>
    where
        'a: 'o,
    {
        let mut lists: Vec<Vec<Facets<'a>>> = Vec::new();
        for (negated, other) in others {
            if self.disjoint(std::slice::from_ref(facets), other) {
                continue;
            }
            let negation = self.expand(negated);
            let list = self.times(loc, std::slice::from_ref(facets), &negation)?;
            // Nothing of it is excluded.
            if !self.evaluation && list.iter().any(|f| self.absorbs(f, facets)) {
                continue;
            }
            lists.push(list);
        }
        // What leaves least goes first.
        lists.sort_by_key(Vec::len);
        let mut lists = lists.into_iter();
        let Some(mut out) = lists.next() else { return Some(vec![facets.clone()]) };
        for list in lists {
            out = self.times(loc, &out, &list)?;
        }
        Some(out)
    }

    /// Every pair of alternatives together, without what says nothing new. `None`: there are too many (reported).
    pub(super) fn times(
        &mut self,
        loc: LocId,
        a: &[Facets<'a>],
        b: &[Facets<'a>],
    ) -> Option<Vec<Facets<'a>>> {
        let mut out = Vec::new();
        for x in a {
            for y in b {
                if !self.spend_on(x, y) {
                    return None;
                }
                let both = x.clone().conjoin(y);
                if !both.types.is_none() {
                    out.extend(self.reduced(both));
                }
            }
            if out.len() > MAX_ALTERNATIVES {
                out = self.thinned(out);
                if out.len() > MAX_ALTERNATIVES {
                    self.report(
                        loc,
                        "",
                        Reason::Limit(format!("more than {MAX_ALTERNATIVES} alternatives")),
                    );
                    return None;
                }
            }
        }
        Some(self.thinned(out))
    }

    /// Alternatives without those that are contained in others. Two that only differ in whether a member is there become one.
    pub(super) fn thinned(&mut self, mut list: Vec<Facets<'a>>) -> Vec<Facets<'a>> {
        while list.len() > 1 && !self.evaluation && self.spend(list.len() * list.len() / 2) {
            let mut numbers = HashMap::default();
            let marks: Vec<u128> = list.iter().map(|facets| marks(facets, &mut numbers)).collect();
            let mut dropped = vec![false; list.len()];
            for i in 0..list.len() {
                let absorbing = |j: usize| i != j && !dropped[j] && marks[j] & !marks[i] == 0;
                dropped[i] =
                    (0..list.len()).any(|j| absorbing(j) && self.absorbs(&list[j], &list[i]));
            }
            let mut kept = dropped.into_iter().map(|dropped| !dropped);
            list.retain(|_| kept.next() == Some(true));
            if list.len() > MAX_MERGED || !self.merge(&mut list) {
                break;
            }
        }
        list
    }

    /// Takes the presence of a member out of alternatives of which others are the same without it. False if there are none.
    fn merge(&mut self, list: &mut Vec<Facets<'a>>) -> bool {
        let counts = |f: &Facets<'a>| (f.object.required.len(), f.object.forbidden.len());
        let others =
            |f: &Facets<'a>| (f.object.parts.len(), f.object.names.len(), f.object.some.len());
        let mut merged = false;
        let mut i = 0;
        while i < list.len() {
            let (required, forbidden) = counts(&list[i]);
            fuel::charge(1 + list.len() / 4);
            let other = (0..list.len()).find_map(|j| {
                let objects = list[i].types.meets(Types::OBJECT) && list[j].types == Types::OBJECT;
                let alike = others(&list[i]) == others(&list[j]);
                if !objects
                    || !alike
                    || forbidden == 0
                    || counts(&list[j]) != (required + 1, forbidden - 1)
                {
                    return None;
                }
                let (with, without) = (&list[j].object.required, &list[i].object.forbidden);
                let name = facets::shared(without, with)?;
                // Where members are counted, what is not declared counts less.
                let counted = list[i].object.min > 0 || list[i].object.max.is_some();
                if counted && list[i].object.parts.iter().all(|part| part.property(name).is_none())
                {
                    return None;
                }
                let name = *name;
                if !self.spend_on(&list[i], &list[j]) {
                    return None;
                }
                let (mut a, mut b) = (list[i].clone(), list[j].clone());
                a.object.forbidden.retain(|other| *other != name);
                b.object.required.retain(|other| *other != name);
                let types = std::mem::replace(&mut a.types, Types::OBJECT);
                let same =
                    self.any_order(&b.object) && self.absorbs(&a, &b) && self.absorbs(&b, &a);
                same.then_some((j, Facets { types, ..a }))
            });
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

    /// As [`Normalizer::reduced`], of alternatives.
    pub(super) fn all_reduced(&mut self, list: Alternatives<'a>) -> Alternatives<'a> {
        if self.is_given_up(&list) {
            return list;
        }
        let reduced: Vec<Facets<'a>> =
            list.iter().filter_map(|facets| self.reduced(facets.clone())).collect();
        Rc::new(self.thinned(reduced))
    }

    /// The same in fewer words; `None` if it is found that nothing satisfies it.
    pub(super) fn reduced(&mut self, mut facets: Facets<'a>) -> Option<Facets<'a>> {
        if let Some(values) = &facets.values {
            if !facets.unenforced.is_empty() {
                return Some(facets);
            }
            let kept: Vec<&'a Json> =
                values.iter().copied().filter(|value| self.accepts(&facets, value)).collect();
            if kept.is_empty() && !self.is_exhausted() {
                return None;
            }
            let same = kept.len() == values.len();
            let values = if same { values.clone() } else { Rc::new(kept) };
            facets.values = Some(values.clone());
            // They satisfy all the rest.
            let reduced = Facets { types: facets.types, values: Some(values), ..Facets::any() };
            return Some(if self.evaluation { facets } else { reduced });
        }
        if facets.types == Types::OBJECT
            && self.probing <= NESTED
            && !self.reduce_object(&mut facets.object)
        {
            return None;
        }
        Some(facets)
    }

    /// False if it is found that no object satisfies them.
    fn reduce_object(&mut self, facets: &mut Group<ObjectFacets<'a>>) -> bool {
        let required = Among::new(&facets.required, facets.parts.len());
        let is_tested =
            |part: &Rc<ObjectPart<'a>>| tested(part).is_some_and(|(name, _)| required.has(&name));
        if !facets.some.is_empty() || facets.parts.iter().any(is_tested) {
            return self.reduce_members(facets);
        }
        facets::shared(&facets.required, &facets.forbidden).is_none()
    }

    fn reduce_members(&mut self, facets: &mut ObjectFacets<'a>) -> bool {
        let mut at = 0;
        while at < facets.parts.len() {
            let Some((name, loc)) =
                tested(&facets.parts[at]).filter(|(name, _)| facets.required.contains(name))
            else {
                at += 1;
                continue;
            };
            let part = facets.parts.remove(at);
            let mut locs = self.member(facets, name);
            if locs.contains(&loc.negated()) {
                return false;
            }
            if !locs.is_empty() && !locs.contains(&loc) {
                locs.push(loc);
                if self.contradict(&locs) {
                    return false;
                }
                locs.pop();
                locs.push(loc.negated());
                if !self.contradict(&locs) {
                    facets.parts.insert(at, part);
                    at += 1;
                }
            } else if locs.is_empty() {
                facets.parts.insert(at, part);
                at += 1;
            }
        }
        let mut at = 0;
        while at < facets.some.len() {
            let some = facets.some[at].clone();
            let Some(names) = self.names_left(facets, &some) else {
                at += 1;
                continue;
            };
            match names[..] {
                [] => return false,
                [name] => {
                    facets.some.remove(at);
                    if !facets.required.contains(&name) {
                        facets.required.push(name);
                    }
                    if !self.doc.is_any(some.schema) {
                        facets.parts.push(Rc::new(ObjectPart::new(vec![(name, some.schema)])));
                    }
                }
                _ if self.doc.is_any(some.schema)
                    && names.iter().any(|name| facets.required.contains(name)) =>
                {
                    facets.some.remove(at);
                }
                _ => at += 1,
            }
        }
        facets::shared(&facets.required, &facets.forbidden).is_none()
    }

    /// Names of the members that a member looked for may be, where all names are known.
    fn names_left(
        &mut self,
        facets: &ObjectFacets<'a>,
        some: &SomeMember<'a>,
    ) -> Option<Vec<&'a str>> {
        if some.matching.is_some() || !some.not_matching.is_empty() {
            return None;
        }
        let mut closed = None;
        for part in &facets.parts {
            let none = part.additional.is_some_and(|loc| self.doc.is_any(loc.negated()));
            if none && part.patterns.is_empty() {
                closed = Some(part.clone());
            }
        }
        let mut names: Vec<&'a str> = closed?.properties.iter().map(|(name, _)| *name).collect();
        names.retain(|name| {
            !some.not_named.contains(name) && !self.member(facets, name).contains(&LocId::FALSE)
        });
        Some(names)
    }

    /// Whether certainly no value satisfies all of the locations.
    fn contradict(&mut self, locs: &[LocId]) -> bool {
        let conj = self.conj(locs);
        if let Some(&known) = self.contradictions.get(&conj[..]) {
            return known;
        }
        if !self.spend(LOOK) {
            return false;
        }
        let (empty, unknown) = self.probe(|norm| {
            let alternatives = norm.alternatives(&conj);
            alternatives.iter().all(|f| norm.is_empty(f, DEPTH))
        });
        if !unknown {
            self.contradictions.insert(conj, empty);
        }
        empty && !unknown
    }

    /// Whether every value of the second is certainly one of the first, in any spelling it has there.
    fn absorbs(&self, whole: &Facets<'a>, part: &Facets<'a>) -> bool {
        if !part.types.minus(whole.types).is_none() {
            return false;
        }
        let types = part.types;
        let listed = match (&whole.values, &part.values) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Rc::ptr_eq(a, b) || b.iter().all(|v| a.iter().any(|w| std::ptr::eq(*v, *w)))
            }
            // Listed values have spellings of their own.
            _ => false,
        };
        listed
            && whole.unenforced.iter().all(|item| part.unenforced.contains(item))
            && (!types.meets(Types::NUMBER)
                || whole.number.is_same(&part.number)
                || absorbs_numbers(&whole.number, &part.number))
            && (!types.meets(Types::STRING)
                || whole.string.is_same(&part.string)
                || absorbs_texts(&whole.string, &part.string))
            && (!types.meets(Types::ARRAY) || {
                let (a, b) = (&whole.array, &part.array);
                a.parts.iter().all(|part| b.parts.contains(part))
                    && a.min <= b.min
                    && facets::least(a.max, b.max) == b.max
                    && a.contains.iter().all(|contains| b.contains.contains(contains))
                    && (a.unique.is_none() || b.unique.is_some())
            })
            && (!types.meets(Types::OBJECT) || self.absorbs_objects(&whole.object, &part.object))
    }

    fn absorbs_objects(&self, a: &ObjectFacets<'a>, b: &ObjectFacets<'a>) -> bool {
        let said = |part: &Rc<ObjectPart<'a>>| {
            let simple = part.patterns.is_empty() && part.additional.is_none();
            let everywhere = |(name, loc)| {
                fuel::charge(1 + b.parts.len() / 8);
                b.parts.iter().any(|other| other.property(name) == Some(loc))
            };
            fuel::charge(1 + b.parts.len() / 16);
            b.parts.iter().any(|other| Rc::ptr_eq(other, part))
                || simple && part.properties.iter().all(|&(name, loc)| everywhere((name, loc)))
        };
        let alike = || {
            let parts = a.parts.len() == b.parts.len()
                && a.parts.iter().zip(&b.parts).all(|(a, b)| Rc::ptr_eq(a, b));
            parts && a.required == b.required
        };
        a.min <= b.min
            && facets::least(a.max, b.max) == b.max
            && facets::contained(&a.required, &b.required)
            && facets::contained(&a.forbidden, &b.forbidden)
            && a.names.iter().all(|loc| b.names.contains(loc))
            && a.some.iter().all(|some| b.some.iter().any(|other| Rc::ptr_eq(some, other)))
            && a.parts.iter().all(said)
            && (self.any_order(b) || alike())
    }

    /// Whether members come in any order, however they are declared.
    fn any_order(&self, facets: &ObjectFacets<'a>) -> bool {
        let all: usize = facets.parts.iter().map(|part| part.properties.len()).sum();
        let all = all + facets.required.len();
        self.options.order != MemberOrder::Fixed && all <= Members::MOST && facets.some.is_empty()
    }
}

/// The property that a part is about, if it is about one and has come from a negation.
fn tested<'a>(part: &ObjectPart<'a>) -> Option<(&'a str, LocId)> {
    match part.properties[..] {
        [(name, loc)]
            if loc.is_negated() && part.patterns.is_empty() && part.additional.is_none() =>
        {
            Some((name, loc))
        }
        _ => None,
    }
}

fn absorbs_numbers(a: &NumberFacets, b: &NumberFacets) -> bool {
    let bounds = !a.low.as_ref().is_some_and(|bound| b.is_raised_by(bound))
        && !a.high.as_ref().is_some_and(|bound| b.is_lowered_by(bound));
    // Which spellings there are depends on whether there are any.
    let alike = |a: &[_], b: &[_]| a.is_empty() == b.is_empty();
    bounds
        && alike(&a.multiples, &b.multiples)
        && alike(&a.not_multiples, &b.not_multiples)
        && a.multiples
            .iter()
            .all(|unit| b.multiples.iter().any(|other| facets::divides(unit, other)))
        && a.not_multiples
            .iter()
            .all(|unit| b.not_multiples.iter().any(|other| facets::divides(other, unit)))
        && a.excluded.iter().all(|value| b.excluded.contains(value))
}

fn absorbs_texts(a: &StringFacets<'_>, b: &StringFacets<'_>) -> bool {
    let known = |pattern: &PatternUse<'_>| b.patterns.contains(pattern);
    a.min <= b.min
        && facets::least(a.max, b.max) == b.max
        && a.patterns.iter().all(known)
        && a.excluded.iter().all(|text| b.excluded.contains(text))
}

/// What facets say of objects, as bits: those that absorb others have no bit that these have not. Names have their bits in the order in
/// which they are met.
fn marks<'a>(facets: &Facets<'a>, numbers: &mut HashMap<(&'a str, bool), u32>) -> u128 {
    if !facets.types.meets(Types::OBJECT) {
        return u128::MAX;
    }
    let ObjectFacets { required, forbidden, .. } = &*facets.object;
    let names = required
        .iter()
        .map(|&name| (name, true))
        .chain(forbidden.iter().map(|&name| (name, false)));
    names.fold(0, |all, name| {
        let next = numbers.len() as u32;
        all | 1 << (*numbers.entry(name).or_insert(next) % u128::BITS)
    })
}
