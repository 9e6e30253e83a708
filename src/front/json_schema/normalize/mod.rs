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
mod closed;
mod distribute;
mod eval;
mod negate;
mod one_of;
mod prune;

use std::rc::Rc;

use super::error::SchemaErrorReason as Reason;
use super::options::SchemaOptions;
use super::read::SchemaReader;
use super::read::doc::{LocId, Locs};
use super::read::facets::{ArrayPart, Evaluates, Facets, ObjectPart, TypeSet, UnenforcedKeyword};
use super::read::keywords::{Conditional, ParsedKeywords};
use super::read::registry::Registry;
use super::read::relaxations::Attempt;
use crate::hash::HashMap;
use crate::limits::Limits;
use crate::spec::json::Json;
use distribute::Choice;

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

/// A conjunction under construction.
struct Conjuncts<'a> {
    /// What holds in any case.
    out: Alternatives<'a>,
    /// Disjunctions that are expanded.
    choices: Vec<Choice<'a>>,
    /// Keywords that are not expanded yet, with their schemas.
    any_of: Vec<(LocId, &'static str, Vec<LocId>)>,
    one_of: Vec<(LocId, Vec<LocId>)>,
    conditionals: Vec<(LocId, Conditional<'a>)>,
    /// The locations whose keywords have been added.
    joined: Vec<LocId>,
}

impl<'a> Conjuncts<'a> {
    /// A conjunction of these alternatives only.
    fn new(out: Alternatives<'a>) -> Self {
        Conjuncts {
            out,
            choices: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
            conditionals: Vec::new(),
            joined: Vec::new(),
        }
    }
}

/// The state of the expansion of a location.
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

/// The normalizer of one schema: its reader and memo tables.
pub(super) struct Normalizer<'a> {
    /// The reader of the schema's keywords, with its errors and limits.
    pub(super) reader: SchemaReader<'a>,
    /// Expansions of locations, by [`LocId::table_index`].
    memo: Vec<Expansion<'a>>,
    /// Alternatives of conjunctions of several locations.
    conjunctions: HashMap<Conjunction, Alternatives<'a>>,
    /// Memo: whether a conjunction certainly allows no value.
    contradictions: HashMap<Conjunction, bool>,
    /// The alternatives of `true`; shared, so that it is recognized by address.
    always_true: Alternatives<'a>,
    /// Placeholder for alternatives that exceeded a limit (reported). A product with it is the
    /// placeholder again.
    limit_placeholder: Alternatives<'a>,
    /// Nesting depth of expansions.
    depth: usize,
    /// Nesting depth of probes (see [`Normalizer::probe`]). A probe may meet a location whose
    /// expansion is in progress. That is no error, but the answer is then unknown, and no memo is
    /// written.
    probe_depth: usize,
    /// The running probe has met an expansion in progress.
    probe_is_unknown: bool,
}

impl<'a> Normalizer<'a> {
    /// A normalizer of the document of `source`, with the features and relaxations of `attempt`.
    pub(super) fn new(
        source: (&'a Json, &'a Registry),
        options: SchemaOptions,
        limits: &'a Limits,
        attempt: Attempt,
    ) -> Self {
        Normalizer {
            reader: SchemaReader::new(source, options, limits, attempt),
            memo: Vec::new(),
            conjunctions: HashMap::default(),
            contradictions: HashMap::default(),
            always_true: Rc::new(vec![Facets::any()]),
            limit_placeholder: Rc::new(vec![Facets::any()]),
            depth: 0,
            probe_depth: 0,
            probe_is_unknown: false,
        }
    }

    /// The canonical conjunction of locations: references are followed, trivially true schemas
    /// dropped.
    pub(super) fn conjunction(&mut self, locs: impl Into<Locs>) -> Conjunction {
        let mut locs = locs.into();
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

    /// The alternatives of a canonical conjunction. An empty list: no value satisfies it.
    pub(super) fn alternatives(&mut self, conj: &[LocId]) -> Alternatives<'a> {
        match conj {
            [] => return self.always_true.clone(),
            [only] => return self.expand(*only),
            _ => {}
        }
        if let Some(out) = self.conjunctions.get(conj) {
            return out.clone();
        }
        let mut all = Conjuncts::new(self.always_true.clone());
        for &loc in conj.iter() {
            self.join(loc, (loc, ""), &mut all);
        }
        let out = self.conjoin(conj[0], all);
        if !self.probe_is_unknown {
            self.conjunctions.insert(conj.into(), out.clone());
        }
        out
    }

    /// The alternatives of one location.
    fn expand(&mut self, loc: LocId) -> Alternatives<'a> {
        match self.memo.get(loc.table_index()) {
            Some(Expansion::Done(out)) => return out.clone(),
            Some(Expansion::InProgress) if self.probe_depth > 0 => {
                self.probe_is_unknown = true;
                return self.always_true.clone();
            }
            Some(Expansion::InProgress) => {
                let what = "the schema refers to itself without an object or array between";
                self.reader.report(loc, "", Reason::Malformed(what.into()));
                return self.always_true.clone();
            }
            Some(Expansion::Missing) | None => {}
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
        let is_deep =
            self.depth >= self.reader.limits.depth && !self.reader.is_relaxed_to_types(loc);
        if is_deep || self.reader.doc.len() > self.reader.limits.nodes {
            if is_deep {
                let what = format!(
                    "references and applicators nested deeper than {} (`Limits::depth`)",
                    self.reader.limits.depth
                );
                self.reader.report(loc, "", Reason::Limit(what));
            } else {
                self.reader.halt_at_nodes();
            }
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
        self.reserve_memo();
        self.memo[loc.table_index()] = Expansion::InProgress;
        self.depth += 1;
        let out = match self.reader.doc.json(loc) {
            _ if self.reader.doc.is_synthetic(loc) => self.expand_synthetic(loc),
            Json::Bool(allows) if *allows != loc.is_negated() => self.always_true.clone(),
            Json::Bool(_) => Rc::new(Vec::new()),
            Json::Object(object) if loc.is_negated() => self.negate_object(loc, object),
            Json::Object(object) => {
                let parsed = self.reader.parse_keywords(loc, object);
                self.expand_object(loc, parsed)
            }
            _ => {
                self.reader.report(
                    loc,
                    "",
                    Reason::Malformed("a schema must be an object or a boolean".into()),
                );
                self.always_true.clone()
            }
        };
        self.depth -= 1;
        self.memo[loc.table_index()] =
            if self.probe_is_unknown { Expansion::Missing } else { Expansion::Done(out.clone()) };
        out
    }

    /// Makes room in the memo for all locations.
    fn reserve_memo(&mut self) {
        if self.memo.len() < 2 * self.reader.doc.len() {
            self.memo.resize(2 * self.reader.doc.len(), Expansion::Missing);
        }
    }

    /// The alternatives of a synthetic location.
    fn expand_synthetic(&mut self, loc: LocId) -> Alternatives<'a> {
        if let Some(value) = self.reader.doc.constant(loc) {
            if loc.is_negated() {
                return self.negate_values(loc.negated(), &[value]);
            }
            return Rc::new(vec![Facets { values: Some(Rc::new(vec![value])), ..Facets::any() }]);
        }
        let Some(parts) = self.reader.doc.union_operands(loc) else {
            return self.always_true.clone();
        };
        if loc.is_negated() {
            let conj = self.conjunction(parts.iter().map(|part| part.negated()).collect::<Locs>());
            return self.alternatives(&conj);
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
        self.reserve_memo();
        let memo = std::mem::replace(&mut self.memo[loc.table_index()], Expansion::InProgress);
        self.depth += 1;
        let out = self.conjoin(loc, all);
        self.depth -= 1;
        self.memo[loc.table_index()] = memo;
        out
    }

    /// Adds the keywords of a schema object to a conjunction.
    fn join_keywords(&mut self, loc: LocId, parsed: ParsedKeywords<'a>, all: &mut Conjuncts<'a>) {
        let ParsedKeywords { facets, all_of, any_of, one_of, conditionals, .. } = parsed;
        if facets.types.is_none() {
            self.reader.note_contradictory_keywords(loc);
        }
        if facets.types.is_none() || !facets.is_always_true() {
            let own = if facets.types.is_none() { Vec::new() } else { vec![facets] };
            all.out = self.product(all.out.clone(), own.into(), loc, "");
        }
        for other in all_of {
            self.join(other, (loc, "allOf"), all);
        }
        all.any_of.extend(any_of.into_iter().map(|(keyword, branches)| (loc, keyword, branches)));
        all.one_of.extend(one_of.into_iter().map(|branches| (loc, branches)));
        all.conditionals.extend(conditionals.into_iter().map(|conditional| (loc, conditional)));
    }

    /// Adds a location to a conjunction. Its choices are expanded last, given all else that holds.
    fn join(&mut self, loc: LocId, source: (LocId, &'static str), all: &mut Conjuncts<'a>) {
        let loc = self.reader.follow_references(loc);
        if all.joined.contains(&loc) {
            return;
        }
        if !self.can_join(loc) {
            let next = self.expand(loc);
            if next.len() != 1 && !self.is_limit_placeholder(&next) {
                let source = if loc.is_negated() { (loc, "") } else { source };
                let (alternatives, implied_by) = (next, Rc::default());
                return all.choices.push(Choice { source, alternatives, implied_by });
            }
            all.out = self.product(all.out.clone(), next, source.0, source.1);
            if loc.is_negated() {
                all.out = self.reduce_all(all.out.clone());
            }
            return;
        }
        let outer = self.reader.enter(loc);
        if let Some(object) = self.reader.doc.object(loc)
            && self.reader.spend(FUEL_PER_LOCATION + object.len())
        {
            let parsed = self.reader.parse_keywords(loc, object);
            self.reserve_memo();
            let memo = std::mem::replace(&mut self.memo[loc.table_index()], Expansion::InProgress);
            self.depth += 1;
            self.join_keywords(loc, parsed, all);
            self.depth -= 1;
            self.memo[loc.table_index()] = memo;
            all.joined.push(loc);
        }
        self.reader.enter(outer);
    }

    /// Whether the keywords of a location are added to a conjunction one by one, because what else
    /// holds may decide its choices.
    fn can_join(&mut self, loc: LocId) -> bool {
        /// Alternatives that are known, and so few, are used as they are.
        const FEW: usize = 4;
        let joins = |name: &str| {
            matches!(
                name,
                "allOf"
                    | "oneOf"
                    | "if"
                    | "dependencies"
                    | "dependentSchemas"
                    | "dependentRequired"
            )
        };
        let Some(object) = self.reader.doc.object(loc).filter(|_| !loc.is_negated()) else {
            return false;
        };
        let limits = self.reader.limits;
        object.iter().any(|(name, _)| joins(name))
            && !object.iter().any(|(name, _)| name.starts_with("unevaluated"))
            && self.depth < limits.depth
            && self.reader.doc.len() <= limits.nodes
            && self.reader.doc.depth(loc) < limits.depth
            && match self.memo.get(loc.table_index()) {
                None | Some(Expansion::Missing) => true,
                Some(Expansion::InProgress) => false,
                Some(Expansion::Done(out)) => out.len() > FEW || self.is_limit_placeholder(out),
            }
    }

    /// The alternatives of a conjunction.
    fn conjoin(&mut self, loc: LocId, mut all: Conjuncts<'a>) -> Alternatives<'a> {
        for (loc, keyword, branches) in all.any_of {
            let alternatives = self.expand_any_of(loc, &branches).into();
            let (source, implied_by) = ((loc, keyword), Rc::default());
            all.choices.push(Choice { source, alternatives, implied_by });
        }
        for (loc, branches) in all.one_of {
            let alternatives = self.expand_one_of(loc, &all.out, &branches);
            let (source, implied_by) = ((loc, "oneOf"), Rc::default());
            all.choices.push(Choice { source, alternatives, implied_by });
        }
        for (loc, conditional) in all.conditionals {
            let choice = self.expand_conditional(loc, conditional);
            all.choices.push(choice);
        }
        self.distribute(loc, all.out, all.choices)
    }

    /// The alternatives of a conditional: the condition and its consequence hold, or the condition
    /// fails.
    fn expand_conditional(&mut self, loc: LocId, conditional: Conditional<'a>) -> Choice<'a> {
        let mut implied_by = Rc::default();
        let (source, union) = match conditional {
            Conditional::IfThenElse { condition, then, otherwise } => {
                let mut union = self.conjoin_with_optional(condition, then);
                union.extend(self.conjoin_with_optional(condition.negated(), otherwise));
                if let (Some(then), None) = (then, otherwise) {
                    implied_by = self.expand(then);
                }
                ("if", union)
            }
            Conditional::Dependency { trigger, names, schema } => {
                let mut absent = Facets::any();
                absent.object.forbidden.push(trigger);
                let mut brought = Facets { types: TypeSet::OBJECT, ..Facets::any() };
                brought.object.required.extend(names);
                let mut present = brought.clone();
                present.object.required.insert(0, trigger);
                let conj = self.conjunction(schema.into_iter().collect::<Locs>());
                let schemas = self.alternatives(&conj);
                let with = |facets: &Facets<'a>| {
                    let all = schemas.iter().map(|schema| facets.clone().conjoin(schema));
                    all.collect::<Vec<_>>()
                };
                implied_by = Rc::new(with(&brought));
                ("dependencies", [absent].into_iter().chain(with(&present)).collect())
            }
        };
        Choice { source: (loc, source), alternatives: Rc::new(union), implied_by }
    }

    /// The alternatives of one or two locations.
    fn conjoin_with_optional(&mut self, first: LocId, second: Option<LocId>) -> Vec<Facets<'a>> {
        let conj = self.conjunction([first].into_iter().chain(second).collect::<Locs>());
        self.alternatives(&conj).to_vec()
    }

    /// The alternatives of `anyOf`. With `unevaluated...` keywords, every non-empty set of branches
    /// is an alternative of its own, as each branch that holds evaluates more.
    fn expand_any_of(&mut self, loc: LocId, branches: &[LocId]) -> Vec<Facets<'a>> {
        /// The largest number of branches; sets of them are conjoined.
        const MAX_BRANCHES: usize = 8;
        if !self.reader.tracks_evaluation || branches.len() < 2 {
            return branches.iter().flat_map(|&branch| self.expand(branch).to_vec()).collect();
        }
        if branches.len() > MAX_BRANCHES {
            let what = format!(
                "more than {MAX_BRANCHES} branches in a schema with `unevaluatedProperties` or \
                 `unevaluatedItems`: use `additionalProperties` or `items`"
            );
            // If that is relaxed, everything counts as evaluated.
            let (types, keyword, reason) = (TypeSet::ALL, "anyOf", Reason::Limit(what));
            self.reader.relax(loc, keyword, reason.clone());
            let mut open = Facets::any();
            open.unenforced.push(UnenforcedKeyword { types, loc, keyword, reason });
            open.evaluate_all();
            return branches
                .iter()
                .flat_map(|&branch| self.expand(branch).to_vec())
                .map(|facets| facets.conjoin(&open))
                .collect();
        }
        let mut out = Vec::new();
        for chosen in 1..1usize << branches.len() {
            let mut both = self.always_true.clone();
            for (_, &branch) in branches.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1) {
                let next = self.expand(branch);
                both = self.product(both, next, loc, "anyOf");
            }
            out.extend(both.iter().cloned());
        }
        out
    }

    /// Applies `unevaluatedProperties`: members that no part evaluates satisfy `schema`. After
    /// that, all members are evaluated.
    pub(super) fn apply_unevaluated_properties(
        &self,
        facets: &Facets<'a>,
        schema: LocId,
    ) -> Facets<'a> {
        let mut out = facets.clone();
        let evaluating =
            || facets.object.parts.iter().filter(|part| part.evaluates != Evaluates::Nothing);
        if evaluating().any(|part| part.evaluates == Evaluates::All) {
            return out;
        }
        let names: crate::hash::HashSet<&'a str> =
            evaluating().flat_map(|part| part.properties.iter().map(|(name, _)| *name)).collect();
        let mut names: Vec<&'a str> = names.into_iter().collect();
        // The order of these names has no effect, but it must not depend on hashing.
        names.sort_unstable();
        let mut part = ObjectPart::new(names.into_iter().map(|name| (name, LocId::TRUE)).collect());
        part.patterns = evaluating()
            .flat_map(|part| part.patterns.iter().map(|(p, _)| (p.clone(), LocId::TRUE)))
            .collect();
        part.additional = Some(schema);
        part.evaluates = Evaluates::All;
        out.object.parts.push(Rc::new(part));
        out
    }

    /// As [`Normalizer::apply_unevaluated_properties`], for elements.
    pub(super) fn apply_unevaluated_items(
        &mut self,
        facets: &Facets<'a>,
        loc: LocId,
        schema: LocId,
    ) -> Facets<'a> {
        let mut out = facets.clone();
        let evaluating =
            || facets.array.parts.iter().filter(|part| part.evaluates != Evaluates::Nothing);
        if evaluating().any(|part| part.evaluates == Evaluates::All) {
            return out;
        }
        let prefix =
            vec![LocId::TRUE; evaluating().map(|part| part.prefix.len()).max().unwrap_or(0)];
        let contained = facets
            .array
            .contains
            .iter()
            .filter(|c| c.evaluates != Evaluates::Nothing)
            .map(|c| c.schema);
        let mut allowed: Vec<LocId> = [schema].into_iter().chain(contained).collect();
        let rest = if allowed.len() == 1 {
            allowed.remove(0)
        } else {
            self.reader.doc.union_of(loc, allowed)
        };
        out.array.parts.push(Rc::new(ArrayPart {
            prefix,
            rest: Some(rest),
            evaluates: Evaluates::All,
        }));
        out
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
        if a.len() * b.len() > MAX_ALTERNATIVES {
            let sources = [(self.reader.current, ""), (loc, keyword)];
            return match self.reduced_product((loc, sources), &a, &b) {
                Some(out) => out.into(),
                None => self.limit_placeholder.clone(),
            };
        }
        let before = a.len() * b.len();
        let sizes = |list: &[Facets<'a>]| list.iter().map(Facets::list_entries).sum::<usize>();
        let copied = sizes(&a) * b.len() + sizes(&b) * a.len();
        if !self.reader.spend(before * FUEL_PER_CONJUNCTION + copied) {
            return self.limit_placeholder.clone();
        }
        let out: Vec<Facets<'a>> = a
            .iter()
            .flat_map(|x| b.iter().map(move |y| x.clone().conjoin(y)))
            .filter(|f| !f.types.is_none())
            .collect();
        if out.is_empty() && before > 0 {
            self.reader.conflict(loc, keyword, "contradicts the other constraints on this value");
        }
        Rc::new(if a.len() > 1 && b.len() > 1 { self.without_subsumed(out) } else { out })
    }

    /// The locations that are conjoined with a location in a product that exceeded a limit.
    pub(super) fn overflowed_with(&self, loc: LocId) -> impl Iterator<Item = LocId> {
        let overflowed = self.conjunctions.iter().filter(move |(conj, alternatives)| {
            conj.contains(&loc) && self.is_limit_placeholder(alternatives)
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
                if !self.spend_on_conjoin(x, y) {
                    return true;
                }
                let both = x.clone().conjoin(y);
                if both.types.is_none() {
                    return true;
                }
                let (empty, unknown) =
                    self.probe(|normalizer| normalizer.is_empty(&both, EMPTINESS_DEPTH));
                empty && !unknown
            })
        })
    }

    /// Runs a query that may meet a location whose expansion is in progress. Returns its result,
    /// and whether that happened: then the result is unknown.
    fn probe<T>(&mut self, query: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let before = std::mem::replace(&mut self.probe_is_unknown, false);
        self.probe_depth += 1;
        let result = query(self);
        self.probe_depth -= 1;
        (result, std::mem::replace(&mut self.probe_is_unknown, before))
    }

    /// Spends the fuel for conjoining two facets.
    fn spend_on_conjoin(&mut self, x: &Facets<'a>, y: &Facets<'a>) -> bool {
        self.reader.spend(FUEL_PER_CONJUNCTION + x.list_entries() + y.list_entries())
    }
}
