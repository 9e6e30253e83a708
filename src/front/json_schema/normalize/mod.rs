//! Normalize step: a conjunction of schemas becomes a list of alternatives, each one [`Facets`].
//! This is a disjunctive normal form (DNF).
//!
//! Only the schemas that apply to one value are expanded: `allOf`, `anyOf`, `oneOf`, `not`, `if`,
//! `$ref`. Schemas of members and elements stay locations until they are lowered, so recursion
//! through objects and arrays costs nothing here. Recursion without an object or array between is
//! an error.
//!
//! # Cost
//!
//! A product of alternatives can grow exponentially. It is bounded by [`MAX_ALTERNATIVES`], by
//! fuel, and by `prune`, which removes contradictory and subsumed alternatives. Past a bound the
//! error is reported and a placeholder takes the place of the product. The expansions of locations
//! and conjunctions are memoized.

mod classes;
mod conjoin;
mod disjoint;
mod distribute;
pub(super) mod eval;
mod negate;
mod one_of;
mod presence;
mod prune;
mod unevaluated;

use std::rc::Rc;

use super::error::SchemaErrorReason as Reason;
use super::read::doc::{LocId, Locs};
use super::read::facets::{Facets, are_equal};
use super::read::keywords::{INSTEAD_OF_NULL, ParsedKeywords};
use super::read::relaxations::Attempt;
use super::read::{SchemaReader, SchemaSource};
use super::schema_key::SchemaHash;
use crate::hash::HashMap;
use crate::spec::json::Json;
use conjoin::Conjuncts;

/// A canonical conjunction: sorted, distinct locations, none trivially true. The empty one allows
/// any value.
pub(super) type Conjunction = Locs;

/// The largest number of alternatives of one schema.
const MAX_ALTERNATIVES: usize = 1_024;
/// Fuel for expanding a location, plus one unit for each of its keywords.
const FUEL_PER_LOCATION: usize = 8;
/// Fuel for conjoining two facets, plus one unit for each entry of their lists.
const FUEL_PER_CONJUNCTION: usize = 16;
/// How many levels of members and elements are searched to find that no value satisfies facets.
pub(super) const EMPTINESS_DEPTH: usize = 4;
/// A disjunction of facets; none of them means `false`.
type Alternatives<'a> = Rc<Vec<Facets<'a>>>;

/// The state of the expansion of a location or of a conjunction.
#[derive(Clone, Default)]
enum Expansion<'a> {
    /// Not expanded, or the expansion is not final.
    #[default]
    Missing,
    /// The expansion is in progress.
    InProgress,
    /// The final result.
    Done(Alternatives<'a>),
}

/// What is known of conjunctions.
#[derive(Default)]
struct Memo<'a> {
    expansions: HashMap<Conjunction, Expansion<'a>>,
    /// Whether a conjunction certainly allows no value.
    contradictions: HashMap<Conjunction, bool>,
}

/// The normalizer of one schema: its reader and memo tables.
pub(super) struct Normalizer<'a> {
    /// The reader of the schema's keywords, with its errors and limits.
    pub(super) reader: SchemaReader<'a>,
    /// The memo tables, and those while formats have all of their texts
    /// ([`SchemaReader::set_all_texts`]).
    memos: [Memo<'a>; 2],
    /// Memo: hashes of schemas, by [`LocId::index`].
    schema_hashes: HashMap<usize, SchemaHash>,
    /// The alternatives of `true`; shared, so that it is recognized by address.
    always_true: Alternatives<'a>,
    /// Placeholder for alternatives that exceeded a limit (reported). A product with it is the
    /// placeholder again.
    limit_placeholder: Alternatives<'a>,
    /// Nesting depth of expansions.
    depth: usize,
    /// Nesting depth of probes (see [`Normalizer::probe`]). A probe may meet a location whose
    /// expansion is in progress. That is not an error, but the answer is then unknown, and no memo
    /// is written.
    probe_depth: usize,
    /// The running probe has met an expansion in progress.
    probe_is_unknown: bool,
}

impl<'a> Normalizer<'a> {
    /// A normalizer of the document of `source`, with the features and relaxations of `attempt`.
    pub(super) fn new(source: SchemaSource<'a>, attempt: Attempt) -> Self {
        Normalizer {
            reader: SchemaReader::new(source, attempt),
            memos: Default::default(),
            schema_hashes: HashMap::default(),
            always_true: Rc::new(vec![Facets::any()]),
            limit_placeholder: Rc::new(vec![Facets::any()]),
            depth: 0,
            probe_depth: 0,
            probe_is_unknown: false,
        }
    }

    /// The memo tables of the present texts of formats.
    fn memo(&mut self) -> &mut Memo<'a> {
        &mut self.memos[usize::from(self.reader.patterns.has_all_texts)]
    }

    /// The canonical conjunction of locations: references are followed, trivially true schemas
    /// dropped.
    pub(super) fn conjunction(&mut self, locs: impl IntoIterator<Item = LocId>) -> Conjunction {
        let mut locs = locs.into_iter().collect();
        self.canonicalize(&mut locs);
        locs
    }

    /// As [`Normalizer::conjunction`], in place.
    pub(super) fn canonicalize(&mut self, locs: &mut Locs) {
        locs.retain(|loc| {
            *loc = self.reader.follow_references(*loc);
            !self.reader.doc.is_always_true(*loc)
        });
        locs.sort_unstable();
        locs.dedup();
    }

    /// The alternatives of the conjunction of locations. An empty list: no value satisfies it.
    pub(super) fn alternatives_of(
        &mut self,
        locs: impl IntoIterator<Item = LocId>,
    ) -> Alternatives<'a> {
        let conj = self.conjunction(locs);
        self.alternatives(&conj)
    }

    /// As [`Normalizer::alternatives_of`], of a canonical conjunction.
    pub(super) fn alternatives(&mut self, conj: &[LocId]) -> Alternatives<'a> {
        match conj {
            [] => return self.always_true.clone(),
            [only] => return self.expand(*only),
            _ => {}
        }
        if let Some(out) = self.known_alternatives(conj) {
            return out;
        }
        self.expand_once(conj, |normalizer| {
            let mut all = Conjuncts::new(normalizer.always_true.clone());
            conj.iter().for_each(|&loc| normalizer.join(loc, (loc, ""), &mut all));
            normalizer.conjoin(conj[0], all)
        })
    }

    /// The alternatives of a conjunction that is not to be expanded: it has been, or it is being
    /// expanded already, or it is nested too deep.
    fn known_alternatives(&mut self, conj: &[LocId]) -> Option<Alternatives<'a>> {
        let loc = conj[0];
        let state = self.memo().expansions.get(conj).cloned().unwrap_or_default();
        let is_deep =
            self.depth >= self.reader.limits.depth && !self.reader.is_relaxed_to_types(loc);
        match state {
            Expansion::Done(out) => return Some(out),
            Expansion::Missing if !is_deep => return None,
            Expansion::Missing | Expansion::InProgress if self.probe_depth > 0 => {
                self.probe_is_unknown = true;
            }
            Expansion::InProgress => {
                let what = "the schema refers to itself without an object or array between";
                self.reader.report(loc, "", Reason::Malformed(what.into()));
            }
            Expansion::Missing => {
                let what = format!(
                    "references and applicators nested deeper than {} (`Limits::depth`)",
                    self.reader.limits.depth
                );
                self.reader.report(loc, "", Reason::Limit(what));
            }
        }
        Some(self.always_true.clone())
    }

    /// Expands a conjunction, and keeps the result unless it is unknown.
    fn expand_once(
        &mut self,
        conj: &[LocId],
        expand: impl FnOnce(&mut Self) -> Alternatives<'a>,
    ) -> Alternatives<'a> {
        let out = self.while_in_progress(conj, expand);
        if !self.probe_is_unknown {
            self.memo().expansions.insert(conj.into(), Expansion::Done(out.clone()));
        }
        out
    }

    /// The alternatives of one location.
    fn expand(&mut self, loc: LocId) -> Alternatives<'a> {
        if let Some(out) = self.known_alternatives(&[loc]) {
            return out;
        }
        let outer = self.reader.enter(loc);
        let keywords = self.reader.doc.object(loc).map_or(0, |object| object.len());
        let out = if self.reader.spend(FUEL_PER_LOCATION + keywords) {
            self.expand_uncached(loc)
        } else {
            self.always_true.clone()
        };
        self.reader.enter(outer);
        out
    }

    /// As [`Normalizer::expand`], of a location without a memo entry.
    fn expand_uncached(&mut self, loc: LocId) -> Alternatives<'a> {
        if self.reader.doc.len() > self.reader.limits.nodes {
            self.reader.halt_at_nodes();
            return self.always_true.clone();
        }
        let has_members = self.reader.doc.object(loc).is_some_and(|object| !object.is_empty());
        if self.reader.doc.depth(loc) + usize::from(has_members) > self.reader.limits.depth
            && !self.reader.is_relaxed_to_types(loc)
        {
            let what = format!("nested deeper than {} (`Limits::depth`)", self.reader.limits.depth);
            self.reader.report(loc, "", Reason::Limit(what));
            return self.always_true.clone();
        }
        self.expand_once(&[loc], |normalizer| normalizer.expand_schema(loc))
    }

    /// Does work during which the expansion of a conjunction counts as in progress.
    fn while_in_progress<T>(&mut self, conj: &[LocId], work: impl FnOnce(&mut Self) -> T) -> T {
        let known = self.memo().expansions.insert(conj.into(), Expansion::InProgress);
        self.depth += 1;
        let out = work(self);
        self.depth -= 1;
        self.memo().expansions.insert(conj.into(), known.unwrap_or_default());
        out
    }

    /// The alternatives of the schema at a location.
    fn expand_schema(&mut self, loc: LocId) -> Alternatives<'a> {
        match self.reader.doc.json(loc) {
            _ if self.reader.doc.is_synthetic(loc) => self.expand_synthetic(loc),
            Json::Bool(allows) if *allows != loc.is_negated() => self.always_true.clone(),
            Json::Bool(_) => Rc::new(Vec::new()),
            Json::Object(object) if loc.is_negated() => self.negate_object(loc, object),
            Json::Object(object) => {
                let parsed = self.reader.parse_keywords(loc, object);
                self.expand_object(loc, parsed)
            }
            json => {
                let help = if *json == Json::Null { INSTEAD_OF_NULL } else { "" };
                let what = format!("a schema must be an object or a boolean{help}");
                self.reader.report(loc, "", Reason::Malformed(what));
                self.always_true.clone()
            }
        }
    }

    /// The alternatives of a synthetic location.
    fn expand_synthetic(&mut self, loc: LocId) -> Alternatives<'a> {
        if let Some(value) = self.reader.doc.constant(loc) {
            if loc.is_negated() {
                return self.negate_values(loc.negated(), &[value]);
            }
            return Rc::new(vec![Facets::of_values(vec![value])]);
        }
        let Some(parts) = self.reader.doc.union_operands(loc) else {
            return self.always_true.clone();
        };
        if loc.is_negated() {
            return self.alternatives_of(parts.iter().map(|part| part.negated()));
        }
        Rc::new(parts.iter().flat_map(|&part| self.expand(part).to_vec()).collect())
    }

    /// The alternatives of a schema object: its own assertions and its in-place applicators hold.
    pub(super) fn expand_object(
        &mut self,
        loc: LocId,
        parsed: ParsedKeywords<'a>,
    ) -> Alternatives<'a> {
        let (members, elements) = (parsed.unevaluated_properties, parsed.unevaluated_items);
        let mut all = Conjuncts::new(self.always_true.clone());
        self.join_keywords(loc, parsed, &mut all);
        let mut out = self.conjoin(loc, all);
        if let Some(schema) = members {
            out =
                Rc::new(out.iter().map(|f| self.apply_unevaluated_properties(f, schema)).collect());
        }
        if let Some(schema) = elements {
            out =
                Rc::new(out.iter().map(|f| self.apply_unevaluated_items(f, loc, schema)).collect());
        }
        out
    }

    /// The alternatives of a location, given other facets that hold.
    fn expand_within(&mut self, base: &Facets<'a>, loc: LocId) -> Alternatives<'a> {
        let loc = self.reader.follow_references(loc);
        let mut all = Conjuncts::new(Rc::new(vec![base.clone()]));
        self.join(loc, (loc, ""), &mut all);
        self.while_in_progress(&[loc], |normalizer| normalizer.conjoin(loc, all))
    }

    /// The conjunction of two lists of alternatives: all pairs, without contradictory and subsumed
    /// ones.
    pub(super) fn product(
        &mut self,
        a: Alternatives<'a>,
        b: Alternatives<'a>,
        loc: LocId,
        keyword: &'static str,
    ) -> Alternatives<'a> {
        if self.is_limit_placeholder(&a) || self.is_limit_placeholder(&b) {
            return self.limit_placeholder.clone();
        }
        if Rc::ptr_eq(&a, &self.always_true) {
            return b;
        }
        let before = a.len() * b.len();
        if before > MAX_ALTERNATIVES && !self.overlaps_little(&a, &b) {
            let sources = [(self.reader.current, ""), (loc, keyword)];
            return match self.reduced_product(loc, sources, &a, &b) {
                Some(out) => out.into(),
                None => self.limit_placeholder.clone(),
            };
        }
        let sizes = |list: &[Facets<'a>]| list.iter().map(Facets::list_entries).sum::<usize>();
        let copied = sizes(&a) * b.len() + sizes(&b) * a.len();
        if !self.reader.spend(before * FUEL_PER_CONJUNCTION + copied) {
            return self.limit_placeholder.clone();
        }
        let out: Vec<Facets<'a>> = a
            .iter()
            .flat_map(|x| b.iter().map(move |y| x.clone().conjoin(y)))
            .filter(|f| !f.types.is_empty())
            .collect();
        if out.is_empty() && before > 0 {
            self.reader.note_contradiction(
                loc,
                keyword,
                "contradicts the other constraints on this value",
            );
        }
        Rc::new(if a.len() > 1 && b.len() > 1 { self.without_subsumed(out) } else { out })
    }

    /// The locations that are conjoined with a location in a product that exceeded a limit.
    pub(super) fn overflowed_with(&self, loc: LocId) -> impl Iterator<Item = LocId> {
        let overflowed = self.memos[0].expansions.iter().filter(move |(conj, alternatives)| {
            conj.contains(&loc)
                && matches!(alternatives, Expansion::Done(out) if self.is_limit_placeholder(out))
        });
        overflowed.flat_map(|(conj, _)| conj.iter().copied())
    }

    /// Whether these alternatives stand for a product that exceeded a limit.
    fn is_limit_placeholder(&self, alternatives: &Alternatives<'a>) -> bool {
        Rc::ptr_eq(alternatives, &self.limit_placeholder)
    }

    /// Whether certainly no value satisfies an alternative of each list.
    pub(super) fn disjoint(&mut self, a: &[Facets<'a>], b: &[Facets<'a>]) -> bool {
        a.iter().all(|x| {
            b.iter().all(|y| {
                if !x.types.meets(y.types) {
                    return true;
                }
                if let (Some(a), Some(b)) = (&x.values, &y.values)
                    && let ([a], [b]) = (&a[..], &b[..])
                    && !are_equal(a, b)
                {
                    return true;
                }
                if !self.spend_on_conjoin(x, y) {
                    return true;
                }
                let both = x.clone().conjoin(y);
                if both.types.is_empty() {
                    return true;
                }
                let is_empty =
                    self.probe_all_texts(|normalizer| normalizer.is_empty(&both, EMPTINESS_DEPTH));
                is_empty == Some(true)
            })
        })
    }

    /// As [`Normalizer::probe`], while formats have all of their texts: what no value satisfies
    /// then, certainly none does.
    fn probe_all_texts<T>(&mut self, query: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let earlier = self.reader.set_all_texts(true);
        let out = self.probe(query);
        self.reader.set_all_texts(earlier);
        out
    }

    /// Runs a query that may meet a location whose expansion is in progress. `None`: that happened,
    /// so the result is unknown.
    fn probe<T>(&mut self, query: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let before = std::mem::replace(&mut self.probe_is_unknown, false);
        self.probe_depth += 1;
        let result = query(self);
        self.probe_depth -= 1;
        let is_unknown = std::mem::replace(&mut self.probe_is_unknown, before);
        (!is_unknown).then_some(result)
    }

    /// Spends the fuel for conjoining two facets.
    fn spend_on_conjoin(&mut self, x: &Facets<'a>, y: &Facets<'a>) -> bool {
        self.reader.spend(FUEL_PER_CONJUNCTION + x.list_entries() + y.list_entries())
    }
}
