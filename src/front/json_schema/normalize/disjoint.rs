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
    by_key: HashMap<BranchKey, usize>,
    /// The first branch with objects of any value of the discriminator.
    open: Option<usize>,
    /// Branches with objects.
    objects: Vec<usize>,
}

impl BranchGroups {
    fn add(&mut self, branch: usize, key: BranchKey) {
        let first = *self.by_key.entry(key).or_insert(branch);
        self.sets.join(first, branch);
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
            let roots = self.group_roots(&lists, name);
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

    /// Whether the conjunction has no more alternatives than `b`, and certainly no value satisfies
    /// two of them, by one discriminator at most.
    pub(super) fn keeps_apart(&mut self, a: &[Facets<'a>], b: &[Facets<'a>]) -> bool {
        /// Fuel for an alternative.
        const FUEL_PER_ALTERNATIVE: usize = 16;
        let [only] = a else { return false };
        if !self.reader.spend(FUEL_PER_ALTERNATIVE * b.len()) {
            return false;
        }
        let alternatives: Vec<Facets<'a>> =
            b.iter().map(|facets| only.clone().conjoin(facets)).collect();
        let lists: Vec<&[Facets<'a>]> = alternatives.iter().map(std::slice::from_ref).collect();
        let name = self.required_discriminators(&lists).first().copied();
        self.group_roots(&lists, name).into_iter().enumerate().all(|(i, root)| i == root)
    }

    /// The members that most branches require and list the values of.
    fn required_discriminators(&mut self, branches: &[&[Facets<'a>]]) -> Vec<&'a str> {
        let first = branches.iter().filter_map(|branch| branch.first());
        let counts = self.count_tests(first, |facets, name| facets.object.required.contains(&name));
        let mut names: Vec<(usize, &'a str)> =
            counts.into_iter().filter(|&(_, n)| n > 1).map(|(name, n)| (n, name)).collect();
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.into_iter().take(MAX_DISCRIMINATORS).map(|(_, name)| name).collect()
    }

    /// For each branch: the first branch of its group, by this discriminator.
    fn group_roots(&mut self, branches: &[&[Facets<'a>]], name: Option<&'a str>) -> Vec<usize> {
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
                self.add_keys(&mut groups, (i, facets), unlisted, name);
            }
        }
        if let Some(open) = groups.open {
            for branch in std::mem::take(&mut groups.objects) {
                groups.sets.join(open, branch);
            }
        }
        (0..branches.len()).map(|branch| groups.sets.root(branch)).collect()
    }

    /// Adds the keys of an alternative of a branch. `unlisted`: types with values that some branch
    /// does not list.
    fn add_keys(
        &mut self,
        groups: &mut BranchGroups,
        (branch, facets): (usize, &Facets<'a>),
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
            None => groups.open = groups.open.or(Some(branch)),
        }
    }
}
