//! Classes of a discriminator: a member whose value or presence decides which alternatives hold.
//!
//! The values of the member, and its absence, are divided into classes that all alternatives treat
//! alike. `allOf` of 200 times `if kind is K then ...` tests 200 constants: each of them is a
//! class, and so are all other values. In a class, nearly all conditionals are decided.

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::super::options::Policy;
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{Evaluates, Facets, JsonTypes, ObjectPart, canonical};
use super::{Alternatives, Normalizer};
use crate::hash::{HashMap, HashSet, IndexMap, IndexSet};
use crate::spec::json::Json;

/// The largest number of listed values or schemas of one discriminator.
const MAX_ATOMS: usize = 4_096;
/// The largest number of tested schemas that are compared pairwise.
const MAX_COMPARED: usize = 256;
/// So many schemas with common values are divided into these and the others.
const MIN_ALIKE: usize = 3;
/// The atom of objects without the member.
const ABSENT: usize = 0;
/// The atom of objects whose member has none of the listed values.
const OTHER: usize = 1;

/// A set of atoms: of single values of the member, of its absence, and of all other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AtomSet(SmallVec<[u64; 4]>);

impl AtomSet {
    /// The first atoms, so many.
    fn first(count: usize) -> AtomSet {
        let mut out = AtomSet(smallvec![u64::MAX; count.div_ceil(64)]);
        (count..out.0.len() * 64).for_each(|atom| out.remove(atom));
        out
    }

    fn remove(&mut self, atom: usize) {
        self.0[atom / 64] &= !(1 << (atom % 64));
    }

    pub(super) fn contains(&self, atom: usize) -> bool {
        self.0[atom / 64] >> (atom % 64) & 1 == 1
    }

    /// Whether all atoms of the set are in a class.
    pub(super) fn is_among(&self, class: &[usize]) -> bool {
        let count: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        count as usize <= class.len()
            && class.iter().filter(|&&atom| self.contains(atom)).count() == count as usize
    }

    fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        for atom in 0..self.0.len() * 64 {
            if self.contains(atom) && !keep(atom) {
                self.remove(atom);
            }
        }
    }

    fn intersect(&mut self, other: &AtomSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }
}

/// The atoms that a constraint on the member allows.
#[derive(Clone)]
pub(super) struct Allowed {
    /// All others are certainly contradicted.
    pub(super) possible: AtomSet,
    /// These certainly satisfy the constraint.
    pub(super) implied: AtomSet,
}

/// A division of objects into classes by a member.
pub(super) struct Split<'a> {
    /// Where errors point.
    loc: LocId,
    atoms: Atoms<'a>,
    /// The atoms that the divided objects have.
    base: Allowed,
    /// What each of the facets allows.
    pub(super) tests: Vec<Allowed>,
    /// The atoms of each class.
    pub(super) classes: Vec<Vec<usize>>,
}

/// The atoms of a discriminator.
struct Atoms<'a> {
    name: &'a str,
    /// Schemas that exclude each other, without [`ABSENT`] and [`OTHER`].
    listed: Vec<LocId>,
    /// The listed constants; empty if the listed schemas are not constants.
    values: HashMap<String, usize>,
    /// Schemas all values of which satisfy a listed one.
    covered: HashSet<LocId>,
    /// Memo: what schemas of the member allow.
    memo: HashMap<LocId, Allowed>,
}

impl<'a> Atoms<'a> {
    /// The number of atoms.
    fn len(&self) -> usize {
        OTHER + 1 + self.listed.len()
    }
}

impl<'a> Normalizer<'a> {
    /// Whether a schema of a member tests its value: it lists values or is a negation.
    pub(super) fn tests_value(&mut self, loc: LocId) -> bool {
        let loc = self.reader.follow_references(loc);
        let lists = |name| self.reader.doc.object(loc).is_some_and(|o| o.get(name).is_some());
        loc.is_negated()
            || self.reader.doc.constant(loc).is_some()
            || lists("const")
            || lists("enum")
    }

    /// Whether a schema of a member lists the values of a member of that.
    fn tests_inner_value(&mut self, loc: LocId) -> bool {
        let loc = self.reader.follow_references(loc);
        let properties = self.reader.doc.object(loc).and_then(|object| object.get("properties"));
        let lists = |schema: &Json| schema.get("const").or_else(|| schema.get("enum")).is_some();
        properties.and_then(Json::as_object).is_some_and(|properties| {
            properties.iter().any(|(_, schema)| self.reader.spend(1) && lists(schema))
        })
    }

    /// The members whose values facets test, among the candidates: how many of the facets do.
    /// `inner`: members of whose value another member is tested.
    pub(super) fn count_tests<'f>(
        &mut self,
        all: impl Iterator<Item = &'f Facets<'a>>,
        is_candidate: impl Fn(&Facets<'a>, &'a str) -> bool,
        inner: bool,
    ) -> HashMap<&'a str, usize>
    where
        'a: 'f,
    {
        let mut counts: HashMap<&'a str, usize> = HashMap::default();
        for facets in all {
            let mut tested: HashSet<&'a str> = HashSet::default();
            for &(name, schema) in facets.object.parts.iter().flat_map(|part| &part.properties) {
                if self.reader.spend(1)
                    && is_candidate(facets, name)
                    && (if inner {
                        self.tests_inner_value(schema)
                    } else {
                        self.tests_value(schema)
                    })
                {
                    tested.insert(name);
                }
            }
            tested.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        }
        counts
    }

    /// The atoms of a member that these facets constrain, given what else holds.
    fn atoms<'f>(
        &mut self,
        loc: LocId,
        name: &'a str,
        base: &'f Facets<'a>,
        facets: impl Iterator<Item = &'f Facets<'a>>,
    ) -> Atoms<'a>
    where
        'a: 'f,
    {
        let mut atoms = Atoms {
            name,
            listed: Vec::new(),
            values: HashMap::default(),
            covered: HashSet::default(),
            memo: HashMap::default(),
        };
        let mut schemas: IndexSet<LocId> = IndexSet::default();
        let mut seen = HashSet::default();
        for part in facets.chain([base]).flat_map(|facets| facets.object.parts.iter()) {
            let Some(schema) = part.property(name).filter(|_| self.reader.spend(1)) else {
                continue;
            };
            if !seen.insert(schema) {
                continue;
            }
            let positive = if schema.is_negated() { schema.negated() } else { schema };
            match self.listed_values(positive) {
                Some(values) => {
                    for value in values {
                        let next = OTHER + 1 + atoms.listed.len();
                        if next < MAX_ATOMS && !atoms.values.contains_key(&canonical(value)) {
                            atoms.values.insert(canonical(value), next);
                            atoms.listed.push(self.reader.doc.constant_location(loc, value));
                        }
                    }
                }
                None if schema.is_negated() || self.tests_inner_value(schema) => {
                    schemas.insert(positive);
                }
                None => {}
            }
        }
        if atoms.values.is_empty() {
            let schemas: Vec<LocId> = schemas.into_iter().collect();
            self.list_exclusive(&mut atoms, base, &schemas);
        }
        atoms
    }

    /// Lists the schemas of which no value satisfies two, given what else holds. If they overlap,
    /// as those of an optional member do in the objects without it, but all in the same values,
    /// these are listed once, and the schemas without them.
    fn list_exclusive(&mut self, atoms: &mut Atoms<'a>, base: &Facets<'a>, schemas: &[LocId]) {
        let given = self.member_schemas(&base.object, atoms.name);
        let compared = || schemas.iter().copied().take(MAX_COMPARED);
        atoms.listed = self.exclusive(&given, compared());
        atoms.covered.extend(atoms.listed.iter().copied());
        let [first, second, ..] = *schemas else { return };
        if atoms.listed.len() > 1 || self.reader.patterns.has_narrow_formats {
            return;
        }
        let common = self.both(first, second);
        let is_common = |normalizer: &mut Self, loc: LocId| {
            let mut outside = given.clone();
            outside.extend([loc, first, second.negated()]);
            loc == first || normalizer.is_contradictory(&outside)
        };
        let alike: Vec<LocId> = compared().filter(|&loc| is_common(self, loc)).collect();
        if alike.len() < MIN_ALIKE {
            return;
        }
        let own = alike.iter().map(|&loc| {
            let other = if loc == first { second } else { first };
            self.both(loc, other.negated())
        });
        let own: Vec<LocId> = own.chain([common]).collect();
        let listed = self.exclusive(&given, own.iter().copied());
        if listed == own {
            atoms.listed = listed;
            atoms.covered = alike.into_iter().collect();
        }
    }

    /// The schema of the values that satisfy two.
    fn both(&mut self, a: LocId, b: LocId) -> LocId {
        self.reader.doc.union_of(a, vec![a.negated(), b.negated()]).negated()
    }

    /// Schemas of which no value satisfies two, given what else holds.
    fn exclusive(&mut self, given: &Locs, schemas: impl Iterator<Item = LocId>) -> Vec<LocId> {
        let (mut out, mut listed): (Vec<LocId>, Vec<Alternatives<'a>>) = Default::default();
        for schema in schemas {
            let mut all = given.clone();
            all.push(schema);
            let narrowed = self.probe(|normalizer| normalizer.alternatives_of(all));
            let Some(narrowed) = narrowed else { continue };
            if listed.iter().all(|other| self.disjoint(&narrowed, other)) {
                out.push(schema);
                listed.push(narrowed);
            }
        }
        out
    }

    /// The values of a schema, if they are certainly finitely many and certainly known.
    fn listed_values(&mut self, loc: LocId) -> Option<Vec<&'a Json>> {
        let list = |normalizer: &mut Self| normalizer.finite_values(smallvec![loc]);
        let certain = self.probe(list).flatten()?;
        if !self.reader.patterns.has_narrow_formats {
            return Some(certain);
        }
        // A listed text that the pattern of a format leaves out may be a value or not.
        let possible = self.probe_all_texts(list).flatten()?;
        let known: HashSet<String> = certain.iter().map(|value| canonical(value)).collect();
        possible.iter().all(|value| known.contains(&canonical(value))).then_some(certain)
    }

    /// Whether none of the values that a schema lists satisfies its negation, at `loc`. If the
    /// schema is relaxed, some may.
    fn all_violate(&mut self, values: &[&'a Json], loc: LocId) -> bool {
        if self.reader.options.policy == Policy::Strict {
            return true;
        }
        let satisfied =
            self.probe(|normalizer| values.iter().any(|value| normalizer.satisfies([loc], value)));
        satisfied == Some(false)
    }

    /// The atoms that a schema of the member allows.
    fn allowed_by(&mut self, atoms: &mut Atoms<'a>, loc: LocId) -> Allowed {
        if let Some(allowed) = atoms.memo.get(&loc) {
            return allowed.clone();
        }
        let mut possible = AtomSet::first(atoms.len());
        let mut implied = possible.clone();
        let (positive, negated) =
            if loc.is_negated() { (loc.negated(), true) } else { (loc, false) };
        if self.reader.doc.is_always_true(loc) {
        } else if self.reader.doc.is_always_true(loc.negated()) {
            possible.retain(|atom| atom == ABSENT);
            implied = possible.clone();
        } else if let Some(values) = self.listed_values(positive)
            && !atoms.values.is_empty()
            && (!negated || self.all_violate(&values, loc))
        {
            let mut listed = HashSet::default();
            let mut all_listed = true;
            for value in values {
                match atoms.values.get(&canonical(value)) {
                    Some(&atom) => drop(listed.insert(atom)),
                    None => all_listed = false,
                }
            }
            let holds = |atom| listed.contains(&atom) != negated;
            possible.retain(|atom| match atom {
                ABSENT => true,
                OTHER => negated || !all_listed,
                _ => holds(atom),
            });
            implied = possible.clone();
            if !all_listed {
                implied.remove(OTHER);
            }
        } else {
            let is_covered = atoms.covered.contains(&positive);
            if !negated && is_covered {
                possible.remove(OTHER);
            }
            if !negated || !is_covered {
                implied.remove(OTHER);
            }
            for atom in OTHER + 1..atoms.len() {
                let listed = atoms.listed[atom - OTHER - 1];
                let is_listed = is_covered && atoms.listed.contains(&positive);
                match self.satisfies_listed(listed, loc, is_covered, is_listed) {
                    Some(true) => {}
                    Some(false) => {
                        possible.remove(atom);
                        implied.remove(atom);
                    }
                    None => implied.remove(atom),
                }
            }
        }
        let out = Allowed { possible, implied };
        atoms.memo.insert(loc, out.clone());
        out
    }

    /// Whether the values of a listed schema satisfy another one: all, none, or it is unknown. The
    /// other one, or what it negates, is covered by listed ones or listed itself.
    fn satisfies_listed(
        &mut self,
        listed: LocId,
        loc: LocId,
        is_covered: bool,
        is_listed: bool,
    ) -> Option<bool> {
        if let Some(value) = self.reader.doc.constant(listed) {
            if let Some(types) = self.reader.type_only(loc) {
                return Some(types.meets(JsonTypes::of(value)));
            }
            if self.probe(|normalizer| normalizer.satisfies([loc], value))? {
                return Some(true);
            }
            let perhaps = self.probe_all_texts(|normalizer| normalizer.satisfies([loc], value));
            return perhaps.filter(|perhaps| !perhaps);
        }
        if is_listed {
            return Some((listed == loc || listed == loc.negated()) != loc.is_negated());
        }
        if (is_covered || !loc.is_negated()) && self.is_contradictory(&[listed, loc]) {
            return Some(false);
        }
        (is_covered && self.is_contradictory(&[listed, loc.negated()])).then_some(true)
    }

    /// The atoms that facets allow.
    fn allowed(&mut self, atoms: &mut Atoms<'a>, facets: &Facets<'a>) -> Allowed {
        let all = AtomSet::first(atoms.len());
        let mut out = Allowed { possible: all.clone(), implied: all };
        for loc in self.member_schemas(&facets.object, atoms.name) {
            let allowed = self.allowed_by(atoms, loc);
            out.possible.intersect(&allowed.possible);
            out.implied.intersect(&allowed.implied);
        }
        if facets.object.required.contains(&atoms.name) {
            out.possible.remove(ABSENT);
            out.implied.remove(ABSENT);
        }
        if !facets.types.meets(JsonTypes::OBJECT) {
            out.possible.retain(|_| false);
            out.implied.retain(|_| false);
        }
        out
    }

    /// Divides the objects of `base` by a member, so that all of the facets treat those of a class
    /// alike.
    pub(super) fn split<'f>(
        &mut self,
        loc: LocId,
        name: &'a str,
        base: &'f Facets<'a>,
        facets: impl Iterator<Item = &'f Facets<'a>> + Clone,
    ) -> Split<'a>
    where
        'a: 'f,
    {
        let mut atoms = self.atoms(loc, name, base, facets.clone());
        let base = self.allowed(&mut atoms, base);
        let tests: Vec<Allowed> = facets.map(|facets| self.allowed(&mut atoms, facets)).collect();
        let classes = self.classes(&base, &tests);
        Split { loc, atoms, base, tests, classes }
    }

    /// The classes of a discriminator: atoms that all of the facets treat alike.
    fn classes(&mut self, base: &Allowed, tests: &[Allowed]) -> Vec<Vec<usize>> {
        let mut classes: IndexMap<Vec<u32>, Vec<usize>> = IndexMap::default();
        for atom in 0..base.possible.0.len() * 64 {
            if !base.possible.contains(atom) {
                continue;
            }
            if !self.reader.spend(tests.len() / 64) {
                break;
            }
            let mut answers = Vec::new();
            for (i, test) in tests.iter().enumerate() {
                if test.possible.contains(atom) {
                    answers.push((i as u32) << 1 | u32::from(test.implied.contains(atom)));
                }
            }
            if !self.reader.spend(1 + answers.len() / 8) {
                break;
            }
            classes.entry(answers).or_default().push(atom);
        }
        classes.into_values().collect()
    }

    /// Facets that allow exactly the objects of a class.
    pub(super) fn class_facets(&mut self, split: &Split<'a>, class: &[usize]) -> Facets<'a> {
        let Split { loc, atoms, base, .. } = split;
        let mut out = Facets::of_types(JsonTypes::OBJECT);
        let name = atoms.name;
        let has = |atom: usize| class.contains(&atom);
        if class == [ABSENT] {
            out.object.forbidden.push(name);
            return out;
        }
        if !has(ABSENT) {
            out.object.required.push(name);
        }
        let outside = |atom: &usize| base.possible.contains(*atom) && !has(*atom);
        if !(OTHER..atoms.len()).any(|atom| outside(&atom)) {
            return out;
        }
        let mut listed: Vec<LocId> = (OTHER + 1..atoms.len())
            .filter(|&atom| has(atom) != has(OTHER))
            .map(|atom| atoms.listed[atom - OTHER - 1])
            .collect();
        let union = match listed.len() {
            1 => listed.remove(0),
            _ => self.reader.doc.union_of(*loc, listed),
        };
        let schema = if has(OTHER) { union.negated() } else { union };
        out.object.parts.push(Rc::new(ObjectPart::of_member(name, schema)));
        out
    }

    /// Facets without their constraints on a member, as far as these stand alone.
    pub(super) fn without_member(&self, facets: &Facets<'a>, name: &str) -> Facets<'a> {
        let mut out = facets.clone();
        if out.object.allows_all() {
            return out;
        }
        let tracked = self.declarations_count();
        let object = &mut *out.object;
        object.required.retain(|other| *other != name);
        object.forbidden.retain(|other| *other != name);
        object.parts.retain_mut(|part| {
            if !part.has_properties_only()
                || part.property(name).is_none()
                || tracked && part.evaluates != Evaluates::Nothing
            {
                return true;
            }
            let mut rest = part.properties.clone();
            rest.retain(|(other, _)| *other != name);
            let keep = !rest.is_empty();
            *part = Rc::new(ObjectPart { evaluates: part.evaluates, ..ObjectPart::new(rest) });
            keep
        });
        out
    }
}
