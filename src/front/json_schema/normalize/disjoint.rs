//! Groups of branches that certainly have no value in common, found in linear time.
//!
//! Branches are keyed by their listed values, their types and the values of a discriminator: a
//! required member with finitely many values. Those without a common key are disjoint. So
//! thousands of constants, or of objects told apart by a constant, need no comparison in pairs.

use super::super::read::facets::{Facets, JsonTypes, canonical};
use super::Normalizer;
use super::one_of::Branch;
use crate::disjoint_sets::DisjointSets;
use crate::hash::{HashMap, IndexMap};

/// Most members that are tried as discriminators, those of most branches first.
const MAX_DISCRIMINATORS: usize = 4;

/// A key of a branch. Branches with a common value have a common key.
#[derive(PartialEq, Eq, Hash)]
enum BranchKey {
    /// A listed value.
    Value(String),
    /// A type with values that are not listed.
    Type(&'static str),
    /// A value of the discriminator.
    Member(String),
}

/// Branches that are joined by their keys.
struct BranchGroups {
    sets: DisjointSets,
    /// The first branch with a key, and how many have it.
    by_key: HashMap<BranchKey, (usize, usize)>,
    /// The first branch with objects of any value of the discriminator, and how many there are.
    open: Option<(usize, usize)>,
    /// Branches with objects.
    objects: Vec<usize>,
}

impl BranchGroups {
    fn add(&mut self, branch: usize, key: BranchKey) {
        let (first, count) = self.by_key.entry(key).or_insert((branch, 0));
        *count += 1;
        self.sets.join(*first, branch);
    }
}

impl<'a> Normalizer<'a> {
    /// Divides branches into groups, in order of their first branch. Certainly no value satisfies
    /// branches of two groups.
    pub(super) fn disjoint_groups(&mut self, branches: Vec<Branch<'a>>) -> Vec<Vec<Branch<'a>>> {
        let lists: Vec<&[Facets<'a>]> =
            branches.iter().map(|branch| &branch.narrowed[..]).collect();
        let names = self.required_discriminators(&lists);
        let mut tried = names.into_iter().map(Some).collect::<Vec<_>>();
        if tried.is_empty() {
            tried.push(None);
        }
        for name in tried {
            let mut groups = self.groups(&lists, name);
            let roots: Vec<usize> = (0..lists.len()).map(|i| groups.sets.root(i)).collect();
            if roots.iter().any(|&root| root != roots[0]) {
                let mut groups: IndexMap<usize, Vec<Branch<'a>>> = IndexMap::default();
                for (branch, root) in branches.into_iter().zip(roots) {
                    groups.entry(root).or_default().push(branch);
                }
                return groups.into_values().collect();
            }
        }
        vec![branches]
    }

    /// Whether the conjunction has no more alternatives than `b`, and each value certainly
    /// satisfies few of them, by one discriminator at most.
    pub(super) fn overlaps_little(&mut self, a: &[Facets<'a>], b: &[Facets<'a>]) -> bool {
        /// Fuel for an alternative.
        const FUEL_PER_ALTERNATIVE: usize = 16;
        /// So many alternatives are few.
        const FEW: usize = 8;
        let [only] = a else { return false };
        if !self.reader.spend(FUEL_PER_ALTERNATIVE * b.len()) {
            return false;
        }
        let alternatives: Vec<Facets<'a>> =
            b.iter().map(|facets| only.clone().conjoin(facets)).collect();
        let lists: Vec<&[Facets<'a>]> = alternatives.iter().map(std::slice::from_ref).collect();
        let name = self.required_discriminators(&lists).first().copied();
        let BranchGroups { by_key, open, .. } = self.groups(&lists, name);
        let most = by_key.values().map(|(_, count)| *count).max();
        most.unwrap_or(0) + open.map_or(0, |(_, count)| count) <= FEW
    }

    /// The members that most branches require and list the values of.
    fn required_discriminators(&mut self, branches: &[&[Facets<'a>]]) -> Vec<&'a str> {
        let first = branches.iter().filter_map(|branch| branch.first());
        let is_required =
            |facets: &Facets<'a>, name: &'a str| facets.object.required.contains(&name);
        let counts = self.count_tests(first, is_required, false);
        let mut names: Vec<(usize, &'a str)> =
            counts.into_iter().filter(|&(_, n)| n > 1).map(|(name, n)| (n, name)).collect();
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.into_iter().take(MAX_DISCRIMINATORS).map(|(_, name)| name).collect()
    }

    /// The branches in groups, by this discriminator.
    fn groups(&mut self, branches: &[&[Facets<'a>]], name: Option<&'a str>) -> BranchGroups {
        let all = || branches.iter().flat_map(|branch| branch.iter());
        let unlisted = all().filter(|facets| facets.values.is_none());
        let unlisted = unlisted.fold(JsonTypes::default(), |all, f| all.union(f.types));
        let mut groups = BranchGroups {
            sets: DisjointSets::new(branches.len()),
            by_key: HashMap::default(),
            open: None,
            objects: Vec::new(),
        };
        for (i, branch) in branches.iter().enumerate() {
            for facets in branch.iter() {
                self.add_keys(&mut groups, i, facets, unlisted, name);
            }
        }
        if let Some((open, _)) = groups.open {
            for branch in std::mem::take(&mut groups.objects) {
                groups.sets.join(open, branch);
            }
        }
        groups
    }

    /// Adds the keys of an alternative of a branch. `unlisted`: types with values that some branch
    /// does not list.
    fn add_keys(
        &mut self,
        groups: &mut BranchGroups,
        branch: usize,
        facets: &Facets<'a>,
        unlisted: JsonTypes,
        name: Option<&'a str>,
    ) {
        let listed = facets.values.as_deref();
        let types = listed.map_or(facets.types, |values| {
            let types = values.iter().fold(JsonTypes::default(), |types, value| {
                self.reader.spend(2);
                groups.add(branch, BranchKey::Value(canonical(value)));
                types.union(JsonTypes::of(value))
            });
            types.intersect(unlisted)
        });
        for (name, of_name) in JsonTypes::NAMES {
            let of_name = of_name.intersect(types);
            // `integer` is a part of `number`.
            if of_name != JsonTypes::OBJECT && !of_name.is_empty() && name != "integer" {
                groups.add(branch, BranchKey::Type(name));
            }
        }
        if !types.meets(JsonTypes::OBJECT) {
            return;
        }
        groups.objects.push(branch);
        let values = name
            .filter(|name| listed.is_none() && facets.object.required.contains(name))
            .and_then(|name| {
                let schemas = self.member_schemas(&facets.object, name);
                self.probe_all_texts(|normalizer| normalizer.finite_values(schemas)).flatten()
            });
        match values {
            Some(values) => values.into_iter().for_each(|value| {
                groups.add(branch, BranchKey::Member(canonical(value)));
            }),
            None => groups.open.get_or_insert((branch, 0)).1 += 1,
        }
    }
}
