//! Arrays: positional elements, counted elements (`contains`), and `uniqueItems` over small sets of
//! values.
//!
//! Each kind is a graph over element expressions. Without counting, a node stands for a position.
//! With `contains`, a node stands for a position and the counts so far. With `uniqueItems` over a
//! small set of values, a node stands for the set of values that have occurred. Larger
//! `uniqueItems` are compared by the parser: see `unique`.

use super::super::normalize::eval::ContainsCount;
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{ArrayFacets, Contains, JsonTypes, canonical};
use super::SchemaLowering;
use super::interned_graph::InternedGraph;
use super::punctuation::Delimiters;
use crate::hash::{HashMap, IndexMap};
use crate::ir::{Expr, Graph};
use crate::spec::json::Json;

/// The largest number of nodes of a graph that counts elements or keeps sets of values.
const MAX_NODES: usize = 5_000;
/// The largest number of nodes of all such graphs of a schema.
const MAX_NODES_TOGETHER: usize = 50_000;
/// Fuel for a node of such a graph, with its edges.
const FUEL_PER_NODE: usize = 100;
/// The largest number of `contains` of one array.
const MAX_CONTAINS: usize = 8;

/// Whether the subsets of at most `most` out of `values` values fit into a graph.
fn fits_graph(values: usize, most: usize) -> bool {
    let (mut sets, mut sets_of_size) = (1usize, 1usize);
    for size in 1..=most.min(values) {
        sets_of_size = sets_of_size.saturating_mul(values + 1 - size) / size;
        sets = sets.saturating_add(sets_of_size);
    }
    sets <= MAX_NODES
}

/// The elements of a counted array: by whether they are first, and by their schemas.
pub(super) type CountedElements = HashMap<(bool, Locs), Expr>;

impl<'a> SchemaLowering<'a, '_> {
    /// An array with these facets, with its brackets.
    pub(super) fn array(&mut self, facets: &ArrayFacets) -> Expr {
        if let Some(loc) = facets.repeats {
            if self.positions_are_disjoint(facets) {
                return Expr::Never;
            }
            if let Some(values) = self.finite_values_by_position(facets) {
                return self.array_from_set(facets, loc, &values);
            }
            let what = "its negation, by `not`, `if` or overlapping `oneOf` branches, unless the \
                        elements come from a small set of values";
            self.normalizer.reader.unsupported(loc, "uniqueItems", what.into());
        }
        if let Some(loc) = facets.unique.filter(|_| facets.max.is_none_or(|max| max > 1))
            && !self.positions_are_disjoint(facets)
        {
            if let Some(values) = self.finite_values_by_position(facets) {
                let total: usize = values.iter().map(Vec::len).sum();
                let max_len = facets.max.map_or(total, |max| max as usize);
                if !self.syntax.is_json() || fits_graph(total, max_len) {
                    return self.array_from_set(facets, loc, &values);
                }
            }
            match self.compared_array(facets) {
                Ok(array) => return array,
                Err(what) => self.normalizer.reader.unsupported(loc, "uniqueItems", what),
            }
        }
        if !facets.contains.is_empty() {
            return self.counted_array(facets, false).0;
        }
        self.positional_array(facets, false)
    }

    /// An array of elements by position. `compared`: the elements are compared with each other.
    pub(super) fn positional_array(&mut self, facets: &ArrayFacets, compared: bool) -> Expr {
        let punctuation = self.punctuation();
        let Delimiters { open, close, comma, empty } = &punctuation.brackets;
        let prefix = facets.prefix();
        let rest = self.array_element(facets.element(prefix), compared);
        let mut max = facets.max.map_or(usize::MAX, |max| max as usize);
        if rest == Expr::Never {
            max = max.min(prefix);
        }
        let min = facets.min as usize;
        let (start, end) = (0, 1);
        let mut graph = Graph { nodes: 2, start, ends: vec![end], edges: Vec::new() };
        // `inside`: after the opening bracket. `after`: after element i.
        let inside = graph.node();
        graph.edge(start, open.clone(), inside);
        if min == 0 {
            graph.edge(start, empty.clone(), end);
        }
        let mut last = inside;
        for i in 0..prefix.min(max) {
            let element = self.array_element(facets.element(i), compared);
            let after = graph.node();
            let lead = if i == 0 { Expr::Empty } else { comma.clone() };
            graph.edge(last, Expr::seq([lead, element.clone()]), after);
            if min <= i + 1 {
                graph.edge(after, close.clone(), end);
            }
            last = after;
            if element == Expr::Never {
                max = i;
                break;
            }
        }
        if max > prefix {
            let bound = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let (mut min, mut max) = (
                bound(min.saturating_sub(prefix)),
                facets.max.map(|m| m.saturating_sub(bound(prefix))),
            );
            let mut from = last;
            if prefix == 0 {
                from = graph.node();
                graph.edge(inside, rest.clone(), from);
                (min, max) = (min.saturating_sub(1), max.map(|m| m - 1));
            }
            graph.edge(
                from,
                Expr::seq([
                    Expr::repeat(Expr::seq([comma.clone(), rest]), min, max),
                    close.clone(),
                ]),
                end,
            );
        }
        Expr::Graph(Box::new(graph))
    }

    /// An array with `contains`. An element may count for any of the schemas that it satisfies.
    /// Only an upper bound requires that the other elements do not satisfy the schema. Returns the
    /// elements as well. `compared`: the elements are compared with each other.
    pub(super) fn counted_array(
        &mut self,
        facets: &ArrayFacets,
        compared: bool,
    ) -> (Expr, CountedElements) {
        let mut elements = CountedElements::default();
        let contains: Vec<&Contains> =
            facets.contains.iter().filter(|c| c.min > 0 || c.max.is_some()).collect();
        if contains.is_empty() {
            let facets = ArrayFacets { contains: Vec::new(), unique: None, ..facets.clone() };
            return (self.positional_array(&facets, compared), elements);
        }
        if contains.len() > MAX_CONTAINS {
            let what = format!("more than {MAX_CONTAINS} `contains` together");
            return (self.report_counting_limit(contains[0].schema, what), elements);
        }
        let exact = exact_positions(facets, &contains);
        let punctuation = self.punctuation();
        let Delimiters { open, close, comma, empty } = &punctuation.brackets;
        let mut graph = CountingGraph::opened(open.clone(), contains.len());
        let mut exclusive = ExclusiveSets::new(&contains);
        while let Some(((position, counts), node)) = graph.pop() {
            if !self.has_room_for_node(&graph) {
                let refused = self.report_counting_limit(contains[0].schema, counting_limit());
                return (refused, elements);
            }
            if position >= facets.min as usize
                && counts.iter().zip(&contains).all(|(count, c)| *count >= c.min)
            {
                graph.close(node, position, empty, close);
            }
            if facets.max.is_some_and(|max| position >= max as usize) {
                continue;
            }
            // The `contains` whose counts still matter, one bit each.
            let counted: u32 = (0..contains.len())
                .filter(|&k| position >= contains[k].from as usize)
                .filter(|&k| contains[k].max.is_some() || counts[k] < contains[k].min)
                .map(|k| 1 << k)
                .sum();
            let next = if position < exact { position + 1 } else { position };
            for hits in subsets(counted) {
                let at = position.min(facets.prefix());
                if exclusive.rule_out(at, hits) {
                    continue;
                }
                let mut locs = facets.element(at);
                let counts = count_hits(&contains, &counts, counted, hits, &mut locs);
                let Some(new_counts) = counts else { continue };
                let lead = if position == 0 { Expr::Empty } else { comma.clone() };
                let element = self.counted_element(lead, locs, compared, &mut elements);
                if element == Expr::Never {
                    exclusive.add(at, hits);
                    continue;
                }
                let after = graph.node((next, new_counts));
                graph.edge(node, element, after);
            }
        }
        (graph.finish(), elements)
    }

    /// Reports that elements cannot be counted; the array then has no value.
    fn report_counting_limit(&mut self, schema: LocId, what: String) -> Expr {
        self.normalizer.reader.report_limit_around(schema, what);
        Expr::Never
    }

    /// An element of a counted array and what precedes it. Equal ones are one rule: most edges
    /// differ in their counts only.
    fn counted_element(
        &mut self,
        lead: Expr,
        locs: Locs,
        compared: bool,
        elements: &mut CountedElements,
    ) -> Expr {
        let key = (lead == Expr::Empty, locs);
        if let Some(element) = elements.get(&key) {
            return element.clone();
        }
        let element = match self.array_element(key.1.clone(), compared) {
            Expr::Never => Expr::Never,
            element => Expr::Ref(self.rule("element".into(), Expr::seq([lead, element]))),
        };
        elements.insert(key, element.clone());
        element
    }

    /// Whether a graph that counts may have one more node.
    fn has_room_for_node(&mut self, graph: &CountingGraph) -> bool {
        self.containers.counting_nodes += 1;
        graph.len() <= MAX_NODES
            && self.containers.counting_nodes <= MAX_NODES_TOGETHER
            && self.normalizer.reader.spend(FUEL_PER_NODE)
    }

    /// Reports that a set of values is too large; the array then has no value.
    fn report_unique_limit(&mut self, loc: LocId, values: usize) -> Expr {
        let what = format!(
            "`uniqueItems` over {values} values that are tracked one by one: list fewer values, or \
             set a lower `maxItems`"
        );
        self.normalizer.reader.report_limit(loc, &["uniqueItems"], what);
        Expr::Never
    }

    /// Whether the array has a bounded number of positions, and no two of them have a common value.
    fn positions_are_disjoint(&mut self, facets: &ArrayFacets) -> bool {
        let prefix = facets.prefix();
        let bounded = facets.max.is_some_and(|max| max as usize <= prefix);
        if prefix > 16 || (!bounded && self.has_values(facets.element(prefix))) {
            return false;
        }
        let last = facets.max.map_or(prefix, |max| prefix.min(max as usize));
        (0..last).all(|i| {
            (0..i).all(|j| self.normalizer.are_disjoint(facets.element(i), facets.element(j)))
        })
    }

    /// The values of each position of the prefix, and those of the elements after it; `None` unless
    /// they are finitely many.
    fn finite_values_by_position(&mut self, facets: &ArrayFacets) -> Option<Vec<Vec<&'a Json>>> {
        (0..=facets.prefix()).map(|i| self.normalizer.finite_values(facets.element(i))).collect()
    }

    /// An array of distinct elements from a small set, or one in which some two elements are equal:
    /// a node for every set of values that have occurred.
    fn array_from_set(
        &mut self,
        facets: &ArrayFacets,
        loc: LocId,
        elements: &[Vec<&'a Json>],
    ) -> Expr {
        self.expected = (0..=facets.prefix()).fold(JsonTypes::default(), |all, i| {
            let mut element = facets.element(i);
            self.normalizer.canonicalize(&mut element);
            all.union(self.expected_types(&element))
        });
        let ElementSet { values, positions } = self.element_set(facets, elements);
        let mut max_len = facets.max.map_or(usize::MAX, |max| max as usize);
        if facets.repeats.is_none() {
            max_len = max_len.min(values.len());
        }
        if values.len() >= REPEATED.trailing_zeros() as usize {
            return self.report_unique_limit(loc, values.len());
        }
        let contains = decided_contains(&facets.contains, &values);
        // From this position on, all positions are alike.
        let from = facets.contains.iter().map(|c| c.from).max().unwrap_or(0);
        let last = facets.min.max(facets.max.unwrap_or(0)).max(from) as usize;
        let last = last.max(positions.len());
        let punctuation = self.punctuation();
        let Delimiters { open, close, comma, empty } = &punctuation.brackets;
        // The key of a node: the set of values, or the position after two equal elements; and the
        // counts of the `contains`. They are needed as `from` makes them depend on the order.
        let mut graph = CountingGraph::opened(open.clone(), contains.len());
        while let Some(((taken, counted), node)) = graph.pop() {
            if !self.has_room_for_node(&graph) {
                return self.report_unique_limit(loc, values.len());
            }
            let is_repeated = taken & REPEATED != 0;
            let position =
                if is_repeated { taken & !REPEATED } else { taken.count_ones() as usize };
            let enough = counted.iter().zip(&facets.contains).all(|(count, c)| *count >= c.min);
            if position >= facets.min as usize && enough && is_repeated == facets.repeats.is_some()
            {
                graph.close(node, position, empty, close);
            }
            if position >= max_len {
                continue;
            }
            for &id in &positions[position.min(positions.len() - 1)] {
                let is_taken = is_repeated || taken >> id & 1 == 1;
                if is_taken && facets.repeats.is_none() {
                    continue;
                }
                let next = match is_taken {
                    true => REPEATED | (position + 1).min(last),
                    false => taken | 1 << id,
                };
                let (spelling, hits) = &values[id];
                if let Some(counts) = counts_after(&contains, &counted, hits, position) {
                    let lead = if position == 0 { Expr::Empty } else { comma.clone() };
                    let after = graph.node((next, counts));
                    graph.edge(node, Expr::seq([lead, spelling.clone()]), after);
                }
            }
        }
        graph.finish()
    }

    /// The values of all positions, of which equal ones are one.
    fn element_set(&mut self, facets: &ArrayFacets, elements: &[Vec<&'a Json>]) -> ElementSet {
        let mut values: IndexMap<String, ElementValue> = IndexMap::default();
        let mut positions: Vec<Vec<usize>> = Vec::new();
        for values_here in elements {
            let mut position = Vec::new();
            for value in values_here {
                let entry = values.entry(canonical(value));
                let id = entry.index();
                entry.or_insert_with(|| {
                    let spelling = self.lower_constant(value);
                    let spelling = Expr::Ref(self.rule("element".into(), spelling));
                    let hits = facets.contains.iter();
                    (spelling, hits.map(|c| self.normalizer.counts_for(c, value)).collect())
                });
                if !position.contains(&id) {
                    position.push(id);
                }
            }
            positions.push(position);
        }
        ElementSet { values: values.into_values().collect(), positions }
    }
}

/// A value of an element: its spelling, and whether it counts for each `contains`.
type ElementValue = (Expr, Vec<ContainsCount>);

/// The values that the elements of an array may have, if they are few.
struct ElementSet {
    /// Distinct values.
    values: Vec<ElementValue>,
    /// For each position, the indices of its values. The last is that of all further positions.
    positions: Vec<Vec<usize>>,
}

/// The `contains` as they are enforced for these values: without an upper bound, if relaxed
/// keywords decide which values count.
fn decided_contains(contains: &[Contains], values: &[ElementValue]) -> Vec<Contains> {
    let mut contains = contains.to_vec();
    for (k, contains) in contains.iter_mut().enumerate() {
        if values.iter().any(|(_, hits)| hits[k] == ContainsCount::Either) {
            contains.max = None;
        }
    }
    contains
}

/// What is reported of an array with too many states of counting.
fn counting_limit() -> String {
    format!(
        "`contains` with more than {MAX_NODES} states of counting, or {MAX_NODES_TOGETHER} in the \
         whole schema: lower `maxContains` or `minContains`, or the bounds on the length"
    )
}

/// The number of positions of a counted array that have nodes of their own. The first has, as no
/// comma precedes it.
fn exact_positions(facets: &ArrayFacets, contains: &[&Contains]) -> usize {
    let bounds = [1, facets.min, facets.max.unwrap_or(0)].into_iter();
    let all = bounds.chain(contains.iter().map(|c| c.from)).map(|bound| bound as usize);
    all.chain([facets.prefix()]).max().unwrap_or(1)
}

/// The subsets of a set of bits, smaller numbers first.
pub(super) fn subsets(set: u32) -> impl Iterator<Item = u32> {
    let next = move |subset: &u32| Some(subset.wrapping_sub(set) & set).filter(|&next| next > 0);
    std::iter::successors(Some(0), next)
}

/// Sets of `contains` whose schemas no element of a position satisfies together. Without upper
/// bounds an element need not violate the others, so that none satisfies a larger set either.
struct ExclusiveSets {
    is_bounded: bool,
    /// Positions with one bit for each `contains`.
    found: Vec<(usize, u32)>,
}

impl ExclusiveSets {
    fn new(contains: &[&Contains]) -> ExclusiveSets {
        let is_bounded = contains.iter().any(|c| c.max.is_some());
        ExclusiveSets { is_bounded, found: Vec::new() }
    }

    fn rule_out(&self, position: usize, set: u32) -> bool {
        self.found.iter().any(|&(at, found)| at == position && set & found == found)
    }

    fn add(&mut self, position: usize, set: u32) {
        if !self.is_bounded {
            self.found.push((position, set));
        }
    }
}

/// The counts after an element that counts for those `contains` whose bit is set in `hits`, and not
/// for the others in `counted`. Adds what the element must satisfy to `locs`. `None` if there are
/// too many.
fn count_hits(
    contains: &[&Contains],
    counts: &[u32],
    counted: u32,
    hits: u32,
    locs: &mut Locs,
) -> Option<Vec<u32>> {
    let mut out = counts.to_vec();
    for (k, contains) in contains.iter().enumerate() {
        if hits >> k & 1 == 1 {
            out[k] = contains.bounded(counts[k] + 1)?;
            locs.push(contains.schema);
        } else if counted >> k & 1 == 1 && contains.max.is_some() {
            locs.push(contains.schema.negated());
        }
    }
    Some(out)
}

/// The counts of the `contains` after a value at this position. `hits` says for which of them it
/// counts. `None` if there are too many, or if it is unknown whether a bounded one counts.
fn counts_after(
    contains: &[Contains],
    counted: &[u32],
    hits: &[ContainsCount],
    position: usize,
) -> Option<Vec<u32>> {
    let counts = contains.iter().zip(counted).zip(hits).map(|((contains, &count), &hit)| {
        let is_counted = position >= contains.from as usize;
        let count = count + u32::from(is_counted && hit.counts_towards_min());
        let is_unknown = is_counted && hit == ContainsCount::Unknown;
        contains.bounded(count).filter(|_| contains.max.is_none() || !is_unknown)
    });
    counts.collect()
}

/// Marks the key of a node after two equal elements: the other bits are the position.
const REPEATED: usize = 1 << (usize::BITS - 1);

/// A position (or a set of values), and the counts of the `contains`.
type CountKey = (usize, Vec<u32>);

/// A graph whose nodes are interned by position and counts.
type CountingGraph = InternedGraph<CountKey>;

impl CountingGraph {
    /// A graph with a node after the opening bracket for which all counts are zero.
    fn opened(open: Expr, contains: usize) -> CountingGraph {
        let mut graph = CountingGraph::new();
        let first = graph.node((0, vec![0; contains]));
        graph.edge(Self::START, open, first);
        graph
    }

    /// Adds the end of the array after `position` elements.
    fn close(&mut self, node: u32, position: usize, empty: &Expr, close: &Expr) {
        match position {
            0 => self.edge(Self::START, empty.clone(), Self::END),
            _ => self.edge(node, close.clone(), Self::END),
        }
    }
}
