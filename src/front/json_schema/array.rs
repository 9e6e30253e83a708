//! Arrays: positions, counted elements, elements that differ from each other.

use super::SchemaErrorReason as Reason;
use super::doc::LocId;
use super::facets::{ArrayFacets, Contains, Types};
use super::lower::Lowering;
use super::normalize::Locs;
use super::punctuation::{Frame, around};
use crate::hash::HashMap;
use crate::ir::{Expr, Graph};
use crate::spec::json::Json;

/// Most nodes of an array's graph that counts elements by schema or remembers them.
pub(super) const MAX_NODES: usize = 5_000;
/// Most `contains` that are counted together.
const MAX_CONTAINS: usize = 5;

/// Whether elements are compared with each other.
pub(super) enum Compared<'f> {
    No,
    Yes,
    /// And whether they come from few values is noted.
    IfPlenty(&'f mut bool),
}

impl<'a> Lowering<'a, '_> {
    /// An array with these facets, brackets included.
    pub(super) fn array(&mut self, facets: &ArrayFacets) -> Expr {
        if let Some(loc) = facets.unique.filter(|_| facets.max.is_none_or(|max| max > 1))
            && !self.differ_anyway(facets)
        {
            if let Some(values) = self.finite_elements(facets) {
                let all: usize = values.iter().map(Vec::len).sum();
                let most = facets.max.map_or(all, |max| max as usize);
                if !facets.contains.is_empty()
                    || !self.syntax.is_json()
                    || super::unique::is_small(all, most)
                {
                    return self.distinct(facets, loc, &values);
                }
            }
            match self.compared(facets) {
                Ok(array) => return array,
                Err(what) => self.norm.unsupported(loc, "uniqueItems", what.into()),
            }
        }
        if !facets.contains.is_empty() {
            return self.containing(facets, Compared::No);
        }
        self.list(facets, false)
    }

    /// Elements by position; `compared`: those are elements of a scope.
    pub(super) fn list(&mut self, facets: &ArrayFacets, compared: bool) -> Expr {
        let marks = self.punctuation();
        let Frame { open, close, comma, empty } = &marks.brackets;
        let prefix = facets.prefix();
        let rest = self.array_element(facets.element(prefix), compared);
        let mut max = facets.max.map_or(usize::MAX, |max| max as usize);
        if rest == Expr::Never {
            max = max.min(prefix);
        }
        let min = facets.min as usize;
        let mut graph = Graph::default();
        let (start, end) = (graph.node(), graph.node());
        graph.start = start;
        graph.ends.push(end);
        // `inside`: behind the bracket; `behind`: behind element i.
        let inside = graph.node();
        graph.edge(start, open.clone(), inside);
        if min == 0 {
            graph.edge(start, empty.clone(), end);
        }
        let mut at = inside;
        for i in 0..prefix.min(max) {
            let element = self.array_element(facets.element(i), compared);
            let behind = graph.node();
            let lead = if i == 0 { Expr::Empty } else { comma.clone() };
            graph.edge(at, Expr::seq([lead, element.clone()]), behind);
            if min <= i + 1 {
                graph.edge(behind, close.clone(), end);
            }
            at = behind;
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
            let mut from = at;
            if prefix == 0 {
                from = graph.node();
                graph.edge(inside, rest.clone(), from);
                (min, max) = (min.saturating_sub(1), max.map(|m| m - 1));
            }
            graph.edge(
                from,
                Expr::seq([
                    Expr::repeat(around(comma, rest, &Expr::Empty), min, max),
                    close.clone(),
                ]),
                end,
            );
        }
        Expr::Graph(Box::new(graph))
    }

    /// Elements that satisfy some schemas are counted. An element may count for any of those it satisfies; it must be known
    /// not to satisfy one only where there is an upper bound.
    pub(super) fn containing(&mut self, facets: &ArrayFacets, mut compared: Compared<'_>) -> Expr {
        let contains: Vec<&Contains> =
            facets.contains.iter().filter(|c| c.min > 0 || c.max.is_some()).collect();
        if contains.is_empty() {
            let facets = ArrayFacets { contains: Vec::new(), unique: None, ..facets.clone() };
            return self.list(&facets, !matches!(compared, Compared::No));
        }
        if contains.len() > MAX_CONTAINS {
            return self.too_many(
                contains[0].schema,
                format!("more than {MAX_CONTAINS} `contains` together"),
            );
        }
        // Positions told apart; the first one has no comma before it.
        let mut exact =
            facets.prefix().max(1).max(facets.min as usize).max(facets.max.unwrap_or(0) as usize);
        exact = exact.max(contains.iter().map(|c| c.from as usize).max().unwrap_or(0));
        let marks = self.punctuation();
        let Frame { open, close, comma, empty } = &marks.brackets;
        let (mut build, start) = Build::new(open.clone(), contains.len());
        while let Some(((position, counts), node)) = build.pending.pop() {
            if build.known.len() > MAX_NODES {
                let what = format!("counting elements needs more than {MAX_NODES} nodes");
                return self.too_many(contains[0].schema, what);
            }
            if position >= facets.min as usize
                && counts.iter().zip(&contains).all(|(count, c)| *count >= c.min)
            {
                build.close(start, node, position, (empty, close));
            }
            if facets.max.is_some_and(|max| position >= max as usize) {
                continue;
            }
            // Those whose count still matters.
            let counted: Vec<usize> = (0..contains.len())
                .filter(|&k| position >= contains[k].from as usize)
                .filter(|&k| contains[k].max.is_some() || counts[k] < contains[k].min)
                .collect();
            let next = if position < exact { position + 1 } else { position };
            for hits in 0..1u32 << counted.len() {
                let mut locs = facets.element(position.min(facets.prefix()));
                let mut after = counts.clone();
                let mut possible = true;
                for (bit, &k) in counted.iter().enumerate() {
                    let Contains { schema, min, max, .. } = *contains[k];
                    if hits >> bit & 1 == 1 {
                        possible &= max.is_none_or(|max| counts[k] < max);
                        after[k] =
                            if max.is_some() { counts[k] + 1 } else { (counts[k] + 1).min(min) };
                        locs.push(schema);
                    } else if max.is_some() {
                        locs.push(schema.negated());
                    }
                }
                if let (true, Compared::IfPlenty(few)) = (possible, &mut compared) {
                    **few |=
                        self.value(locs.clone()) != Expr::Never && !self.are_plenty(locs.clone());
                }
                let is_compared = !matches!(compared, Compared::No);
                let element =
                    if possible { self.array_element(locs, is_compared) } else { Expr::Never };
                if element != Expr::Never {
                    let lead = if position == 0 { Expr::Empty } else { comma.clone() };
                    let behind = build.node((next, after));
                    build.graph.edge(node, Expr::seq([lead, element]), behind);
                }
            }
        }
        Expr::Graph(Box::new(build.graph))
    }

    fn too_many(&mut self, at: LocId, what: String) -> Expr {
        self.norm.report(at, "", Reason::Limit(what));
        Expr::Never
    }

    /// Whether the positions are finitely many and no two of them share a value.
    fn differ_anyway(&mut self, facets: &ArrayFacets) -> bool {
        let prefix = facets.prefix();
        let bounded = facets.max.is_some_and(|max| max as usize <= prefix);
        if prefix > 16 || (!bounded && self.value(facets.element(prefix)) != Expr::Never) {
            return false;
        }
        let last = facets.max.map_or(prefix, |max| prefix.min(max as usize));
        (0..last).all(|i| (0..i).all(|j| self.norm.exclusive(facets.element(i), facets.element(j))))
    }

    /// The values of each position of the prefix, and those of the elements behind it, if they are finitely many.
    fn finite_elements(&mut self, facets: &ArrayFacets) -> Option<Vec<Vec<&'a Json>>> {
        (0..=facets.prefix()).map(|i| self.norm.finite(facets.element(i))).collect()
    }

    /// No element twice: a node for every set of values that may have been.
    fn distinct(&mut self, facets: &ArrayFacets, loc: LocId, elements: &[Vec<&'a Json>]) -> Expr {
        let mut ids: HashMap<String, usize> = HashMap::default();
        let mut values: Vec<(Expr, Vec<bool>)> = Vec::new();
        let mut positions: Vec<Vec<usize>> = Vec::new();
        for listed in elements {
            let mut own = Vec::new();
            for value in listed {
                let key = super::facets::canonical(value);
                let id = match ids.get(&key) {
                    Some(&known) => known,
                    None => {
                        let spelt = self.whole_constant(value);
                        let spelt = Expr::Ref(self.rule("element".into(), spelt));
                        let hits = facets.contains.iter().map(|c| c.schema).collect::<Vec<_>>();
                        let hits =
                            hits.into_iter().map(|c| self.norm.satisfies(vec![c], value)).collect();
                        values.push((spelt, hits));
                        ids.insert(key, values.len() - 1);
                        values.len() - 1
                    }
                };
                if !own.contains(&id) {
                    own.push(id);
                }
            }
            positions.push(own);
        }
        let most = facets.max.map_or(values.len(), |max| values.len().min(max as usize));
        if values.len() > 64 {
            return self.too_many(loc, format!("`uniqueItems` over {} values", values.len()));
        }
        let counts = facets.contains.len();
        let marks = self.punctuation();
        let Frame { open, close, comma, empty } = &marks.brackets;
        // The key: the set of values, then how many counted for each `contains` (which `from` makes depend on the order).
        let (mut build, start) = Build::new(open.clone(), counts);
        while let Some(((taken, counted), node)) = build.pending.pop() {
            if build.known.len() > MAX_NODES {
                return self.too_many(loc, format!("`uniqueItems` over {} values", values.len()));
            }
            let position = taken.count_ones() as usize;
            let enough = counted.iter().zip(&facets.contains).all(|(count, c)| *count >= c.min);
            if position >= facets.min as usize && enough {
                build.close(start, node, position, (empty, close));
            }
            if position >= most {
                continue;
            }
            for &id in &positions[position.min(positions.len() - 1)] {
                if taken >> id & 1 == 1 {
                    continue;
                }
                let (spelt, hits) = &values[id];
                let mut after = counted.clone();
                for (k, contains) in facets.contains.iter().enumerate() {
                    after[k] += u32::from(hits[k] && position >= contains.from as usize);
                }
                if after
                    .iter()
                    .zip(&facets.contains)
                    .all(|(count, c)| c.max.is_none_or(|max| *count <= max))
                {
                    let lead = if position == 0 { Expr::Empty } else { comma.clone() };
                    let behind = build.node((taken | 1 << id, after));
                    build.graph.edge(node, Expr::seq([lead, spelt.clone()]), behind);
                }
            }
        }
        Expr::Graph(Box::new(build.graph))
    }
}

/// A position (or a set of values), and counts.
type Key = (usize, Vec<u32>);

#[derive(Default)]
struct Build {
    graph: Graph,
    end: u32,
    known: HashMap<Key, u32>,
    pending: Vec<(Key, u32)>,
}

impl Build {
    /// Behind the opening bracket, with nothing counted for any `contains`; and the start before it.
    fn new(open: Expr, contains: usize) -> (Build, u32) {
        let mut build = Build::default();
        let start = build.graph.node();
        build.end = build.graph.node();
        build.graph.start = start;
        build.graph.ends.push(build.end);
        let first = build.node((0, vec![0; contains]));
        build.graph.edge(start, open, first);
        (build, start)
    }

    /// The end of the array behind so many elements.
    fn close(&mut self, start: u32, node: u32, position: usize, (empty, close): (&Expr, &Expr)) {
        match position {
            0 => self.graph.edge(start, empty.clone(), self.end),
            _ => self.graph.edge(node, close.clone(), self.end),
        }
    }

    fn node(&mut self, key: Key) -> u32 {
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let node = self.graph.node();
        self.known.insert(key.clone(), node);
        self.pending.push((key, node));
        node
    }
}

impl<'a> super::normalize::Normalizer<'a> {
    /// The values that satisfy all of the locations, if they are certainly finitely many.
    fn finite(&mut self, locs: Locs) -> Option<Vec<&'a Json>> {
        static SCALARS: [Json; 3] = [Json::Null, Json::Bool(false), Json::Bool(true)];
        let conj = self.conj(locs);
        let mut out: Vec<&'a Json> = Vec::new();
        for facets in self.alternatives(&conj).iter() {
            let finite = Types::NULL.or(Types::BOOLEAN);
            match &facets.values {
                Some(values) => {
                    out.extend(values.iter().filter(|value| self.accepts(facets, value)))
                }
                None if facets.types.minus(finite).is_none() => {
                    out.extend(SCALARS.iter().filter(|value| facets.types.meets(Types::of(value))));
                }
                None if self.is_empty(facets, 4) => {}
                None => return None,
            }
        }
        Some(out)
    }

    /// Whether certainly no value satisfies both lists of locations.
    fn exclusive(&mut self, a: Locs, b: Locs) -> bool {
        let (a, b) = (self.conj(a), self.conj(b));
        let (a, b) = (self.alternatives(&a), self.alternatives(&b));
        self.disjoint(&a, &b)
    }
}
