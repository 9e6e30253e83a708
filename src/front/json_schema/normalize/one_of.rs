//! Expansion of `oneOf`, with as few negations as possible.
//!
//! The alternatives of `oneOf` are each branch minus the others. Branches without a common value
//! need no negation: `oneOf` of objects discriminated by `const` needs none (see `disjoint`). If
//! the discriminator is optional, the objects are divided into its classes first (see `classes`).
//! In the class of a constant one branch is left; only those without the member are compared.

use super::super::options::Policy;
use super::super::read::doc::LocId;
use super::super::read::facets::{Facets, JsonTypes};
use super::{Alternatives, Normalizer};

/// From so many branches on, a discriminator is searched.
const MIN_DISCRIMINATED: usize = 3;

/// So many overlapping branches are divided by the presence of a member.
const MIN_PRESENCE: usize = 4;
/// See [`MIN_PRESENCE`].
const MAX_PRESENCE: usize = 64;
/// How deep splits may nest.
const MAX_NESTED_SPLITS: usize = 64;
/// The largest number of alternatives of a negation that may turn out to be one.
const MAX_NEGATION: usize = 8;

/// A `oneOf` that is expanded.
#[derive(Clone, Copy)]
pub(super) struct OneOf {
    pub(super) loc: LocId,
    /// Whether undeclared members are forbidden in each branch before the values of the others are
    /// excluded from it. The alternatives are then for generation only: they leave out values.
    pub(super) closes: bool,
}

/// A branch of `oneOf`, given what else holds.
pub(super) struct Branch<'a> {
    loc: LocId,
    /// The alternatives of the branch alone, if these are exact here, too.
    own: Option<Alternatives<'a>>,
    /// The alternatives, conjoined with what else holds.
    pub(super) narrowed: Vec<Facets<'a>>,
}

impl<'a> Normalizer<'a> {
    /// The alternatives of `oneOf`, given what else holds.
    pub(super) fn expand_one_of(
        &mut self,
        one_of: OneOf,
        base: &[Facets<'a>],
        locs: &[LocId],
    ) -> Alternatives<'a> {
        let loc = one_of.loc;
        let any = Facets::any();
        let base = if let [only] = base { only } else { &any };
        let mut branches = Vec::with_capacity(locs.len());
        for &loc in locs {
            let (own, narrowed) = match !base.is_always_true() && self.can_join(loc) {
                true => (None, self.expand_within(base, loc)),
                false => {
                    let own = self.expand(loc);
                    let both = own.iter().map(|facets| facets.clone().conjoin(base));
                    let both = both.filter(|facets| !facets.types.is_empty()).collect();
                    (Some(own), std::rc::Rc::new(both))
                }
            };
            if self.is_limit_placeholder(own.as_ref().unwrap_or(&narrowed)) {
                return self.limit_placeholder.clone();
            }
            branches.push(Branch { loc, own, narrowed: narrowed.to_vec() });
        }
        let mut union = Vec::new();
        if !self.exactly_one(one_of, base, branches, &[], &mut union) {
            return self.limit_placeholder.clone();
        }
        if union.is_empty() {
            self.reader.note_contradiction(
                loc,
                "oneOf",
                "no value satisfies exactly one of its branches",
            );
        }
        union.into()
    }

    /// Adds the alternatives of the values that satisfy exactly one branch. Members that have been
    /// split on are `resolved`. `false`: a limit was reached (reported).
    fn exactly_one(
        &mut self,
        one_of: OneOf,
        base: &Facets<'a>,
        mut branches: Vec<Branch<'a>>,
        resolved: &[&'a str],
        union: &mut Vec<Facets<'a>>,
    ) -> bool {
        if let [only] = &branches[..] {
            union.extend_from_slice(only.own.as_deref().unwrap_or(&only.narrowed));
            return true;
        }
        // Listed values may have been found to satisfy a relaxed schema, which they may not.
        let is_strict = self.reader.options.policy == Policy::Strict;
        let is_exact = |facets: &Facets<'a>| is_strict || facets.values.is_none();
        let holds = |facets: &Facets<'a>| is_exact(facets) && self.subsumes(facets, base);
        let hold = |branch: &&Branch<'a>| branch.narrowed.iter().any(holds);
        if branches.iter().filter(hold).take(2).count() == 2 {
            return true;
        }
        if branches.len() >= MIN_DISCRIMINATED {
            let mut groups = self.disjoint_groups(branches);
            branches = match groups.len() {
                1 => groups.remove(0),
                _ => {
                    return groups
                        .into_iter()
                        .all(|group| self.exactly_one(one_of, base, group, resolved, union));
                }
            };
        }
        if resolved.len() >= MAX_NESTED_SPLITS {
            return self.subtract_others(one_of, base, &branches, resolved, union);
        }
        match self.branch_discriminator(&branches, resolved) {
            Some(name) => self.split_branches(one_of, name, base, &branches, resolved, union),
            None => self.subtract_others(one_of, base, &branches, resolved, union),
        }
    }

    /// As [`Normalizer::exactly_one`], in each class of a member.
    fn split_branches(
        &mut self,
        one_of: OneOf,
        name: &'a str,
        base: &Facets<'a>,
        branches: &[Branch<'a>],
        resolved: &[&'a str],
        union: &mut Vec<Facets<'a>>,
    ) -> bool {
        let loc = one_of.loc;
        let resolved = [resolved, &[name]].concat();
        let others = base.types.minus(JsonTypes::OBJECT);
        if !others.is_empty() {
            let base = Facets { types: others, ..base.clone() };
            let rest = branches.iter().map(|branch| branch.of_types(others)).collect();
            if !self.exactly_one(one_of, &base, without_empty(rest), &resolved, union) {
                return false;
            }
        }
        let all = || branches.iter().flat_map(|branch| &branch.narrowed);
        let objects = Facets { types: base.types.intersect(JsonTypes::OBJECT), ..base.clone() };
        let split = self.split(loc, name, &objects, all());
        for class in &split.classes {
            if !self.reader.spend(split.tests.len() / 2) {
                return false;
            }
            let of_class = self.class_facets(&split, class);
            let (mut rest, mut tests) = (Vec::new(), &split.tests[..]);
            for branch in branches {
                let (own, others) = tests.split_at(branch.narrowed.len());
                tests = others;
                let possible = |i: &usize| own[*i].possible.contains(class[0]);
                let is_within = own.iter().zip(&branch.narrowed).all(|(allowed, facets)| {
                    facets.types == JsonTypes::OBJECT && allowed.possible.is_among(class)
                });
                let mut narrowed = Vec::new();
                for i in (0..own.len()).filter(possible) {
                    let facets = &branch.narrowed[i];
                    if !self.spend_on_conjoin(facets, &of_class) {
                        return false;
                    }
                    let facets =
                        if is_within { facets.clone() } else { facets.clone().conjoin(&of_class) };
                    narrowed.push(facets);
                }
                let own = branch.own.clone().filter(|_| is_within);
                rest.push(Branch { loc: branch.loc, own, narrowed });
            }
            let base = objects.clone().conjoin(&of_class);
            if !self.exactly_one(one_of, &base, without_empty(rest), &resolved, union) {
                return false;
            }
        }
        true
    }

    /// The member whose value most branches test, in their first alternative.
    fn branch_discriminator(
        &mut self,
        branches: &[Branch<'a>],
        resolved: &[&'a str],
    ) -> Option<&'a str> {
        let first = branches.iter().filter_map(|b| b.own.as_deref().unwrap_or(&b.narrowed).first());
        [false, true].into_iter().find_map(|inner| {
            let counts = self.count_tests(first.clone(), |_, n| !resolved.contains(&n), inner);
            let candidates = counts.into_iter().filter(|(_, count)| *count >= MIN_DISCRIMINATED);
            candidates.max_by_key(|&(name, count)| (count, name)).map(|(name, _)| name)
        })
    }

    /// The member that is required or impossible in most of the overlapping branches, if these are
    /// at least half of them.
    fn presence_discriminator<'b>(
        &mut self,
        branches: impl Iterator<Item = &'b Branch<'a>> + Clone,
        resolved: &[&'a str],
    ) -> Option<&'a str>
    where
        'a: 'b,
    {
        let count = branches.clone().count();
        if !(MIN_PRESENCE..=MAX_PRESENCE).contains(&count) || resolved.len() >= MAX_NESTED_SPLITS {
            return None;
        }
        let parts = branches.clone().flat_map(|b| &b.narrowed).flat_map(|f| &f.object.parts);
        let mut names: Vec<&'a str> =
            parts.flat_map(|part| part.properties.iter().map(|(name, _)| *name)).collect();
        names.sort_unstable();
        names.dedup();
        let mut best = (count.div_ceil(2), None);
        for name in names.into_iter().filter(|name| !resolved.contains(name)) {
            let (mut required, mut impossible) = (0, 0);
            for branch in branches.clone() {
                let requires = |f: &Facets<'a>| f.object.required.contains(&name);
                required += usize::from(branch.narrowed.iter().all(requires));
                impossible += usize::from(branch.narrowed.iter().all(|facets| {
                    let schemas = self.member_schemas(&facets.object, name);
                    schemas.iter().any(|loc| self.reader.doc.is_always_true(loc.negated()))
                }));
            }
            if impossible > 0 && required + impossible > best.0 {
                best = (required + impossible, Some(name));
            }
        }
        best.1
    }

    /// Adds each branch minus those that it overlaps.
    fn subtract_others(
        &mut self,
        one_of: OneOf,
        base: &Facets<'a>,
        branches: &[Branch<'a>],
        resolved: &[&'a str],
        union: &mut Vec<Facets<'a>>,
    ) -> bool {
        let OneOf { loc, closes } = one_of;
        let n = branches.len();
        let mut close = |facets: &Facets<'a>| self.close_undeclared(facets).into_owned();
        let closing = branches.iter().filter(|_| closes);
        let closed: Vec<Vec<Facets<'a>>> =
            closing.map(|b| b.narrowed.iter().map(&mut close).collect()).collect();
        // Each branch before the values of the others are excluded.
        let values = |i: usize| if closes { &closed[i] } else { &branches[i].narrowed };
        let mut excluded: Vec<Vec<usize>> = vec![Vec::new(); n];
        for i in 0..n {
            // If the first branch overlaps all others, they probably overlap each other.
            if i == 1
                && excluded[0].len() + 1 == n
                && n > MIN_DISCRIMINATED
                && let Some(negations) = self.single_negations(loc, base, branches)
            {
                return self.subtract_single(branches, negations, union);
            }
            if !self.reader.spend(n - i) {
                return false;
            }
            for j in i + 1..n {
                let apart = self.disjoint(values(i), &branches[j].narrowed);
                if !apart {
                    excluded[i].push(j);
                }
                let apart =
                    if closes { self.disjoint(values(j), &branches[i].narrowed) } else { apart };
                if !apart {
                    excluded[j].push(i);
                }
            }
        }
        let overlapping = || branches.iter().zip(&excluded).filter(|(_, o)| !o.is_empty());
        if let Some(name) = self.presence_discriminator(overlapping().map(|(b, _)| b), resolved) {
            return self.split_branches(one_of, name, base, branches, resolved, union);
        }
        for (i, (branch, others)) in branches.iter().zip(&excluded).enumerate() {
            if others.is_empty() {
                union.extend_from_slice(
                    branch.own.as_deref().filter(|_| !closes).unwrap_or(values(i)),
                );
                continue;
            }
            for facets in values(i) {
                let others = others.iter().map(|&j| &branches[j]);
                match self.subtract(loc, branch.loc, facets, others) {
                    Some(without) => union.extend(without),
                    None => return false,
                }
            }
        }
        true
    }

    /// The negation of each branch, given what else holds, if each has at most one alternative.
    fn single_negations(
        &mut self,
        loc: LocId,
        base: &Facets<'a>,
        branches: &[Branch<'a>],
    ) -> Option<Vec<Option<Facets<'a>>>> {
        let mut out = Vec::with_capacity(branches.len());
        for branch in branches {
            let negation = self.expand(branch.loc.negated());
            if negation.len() > MAX_NEGATION {
                return None;
            }
            let base = std::slice::from_ref(base);
            let sources = [(loc, "oneOf"), (branch.loc, "")];
            let mut list = self.reduced_product(loc, sources, base, &negation)?;
            if list.len() > 1 {
                return None;
            }
            out.push(list.pop());
        }
        Some(out)
    }

    /// Adds each branch minus all others, given their negations (`None`: no value is left).
    fn subtract_single(
        &mut self,
        branches: &[Branch<'a>],
        negations: Vec<Option<Facets<'a>>>,
        union: &mut Vec<Facets<'a>>,
    ) -> bool {
        let mut both = |a: &Option<Facets<'a>>, b: &Option<Facets<'a>>| {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            let spent = self.spend_on_conjoin(a, b);
            Some(a.clone().conjoin(b)).filter(|facets| spent && !facets.types.is_empty())
        };
        // The conjunction of all negations from a branch on.
        let mut from = vec![Some(Facets::any())];
        for negation in negations.iter().skip(1).rev() {
            let next = both(negation, &from[from.len() - 1]);
            from.push(next);
        }
        let mut before = Some(Facets::any());
        let mut out = Vec::new();
        for (branch, negation) in branches.iter().zip(&negations) {
            let after = from.pop().flatten();
            let others = both(&before, &after);
            for facets in &branch.narrowed {
                out.extend(both(&Some(facets.clone()), &others));
            }
            before = both(&before, negation);
        }
        for facets in out {
            union.extend(self.reduce(facets));
        }
        !self.reader.is_exhausted()
    }

    /// Facets of a branch minus what other branches allow. `None`: too many alternatives
    /// (reported).
    fn subtract<'b>(
        &mut self,
        loc: LocId,
        branch: LocId,
        facets: &Facets<'a>,
        others: impl Iterator<Item = &'b Branch<'a>>,
    ) -> Option<Vec<Facets<'a>>>
    where
        'a: 'b,
    {
        let mut lists: Vec<(LocId, Vec<Facets<'a>>)> = Vec::new();
        for other in others {
            if self.disjoint(std::slice::from_ref(facets), &other.narrowed) {
                continue;
            }
            let negation = self.expand(other.loc.negated());
            let sources = [(branch, ""), (other.loc, "")];
            let list =
                self.reduced_product(loc, sources, std::slice::from_ref(facets), &negation)?;
            // The other schema excludes nothing of these facets.
            if list.iter().any(|f| self.covers(f, facets)) {
                continue;
            }
            lists.push((other.loc, list));
        }
        // The most restrictive negation comes first, so that intermediate products stay small.
        lists.sort_by_key(|(_, list)| list.len());
        let mut lists = lists.into_iter();
        let Some((_, mut out)) = lists.next() else { return Some(vec![facets.clone()]) };
        for (other, list) in lists {
            out = self.reduced_product(loc, [(branch, ""), (other, "")], &out, &list)?;
        }
        Some(out)
    }
}

impl<'a> Branch<'a> {
    /// The values of these types.
    fn of_types(&self, types: JsonTypes) -> Branch<'a> {
        let narrowed = self.narrowed.iter().filter(|facets| facets.types.meets(types));
        let narrowed = narrowed
            .map(|facets| Facets { types: facets.types.intersect(types), ..facets.clone() });
        Branch { loc: self.loc, own: None, narrowed: narrowed.collect() }
    }
}

/// The branches that have values.
fn without_empty(mut branches: Vec<Branch<'_>>) -> Vec<Branch<'_>> {
    branches.retain(|branch| !branch.narrowed.is_empty());
    branches
}
