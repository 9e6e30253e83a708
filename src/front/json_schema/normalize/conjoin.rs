//! Conjunctions: the keywords of all locations are collected, then their choices are distributed.
//!
//! A choice is expanded given all else that holds, which may decide it.

use std::rc::Rc;

use super::super::error::SchemaErrorReason as Reason;
use super::super::options::Undeclared;
use super::super::read::doc::LocId;
use super::super::read::facets::{Facets, JsonTypes};
use super::super::read::keywords::{Conditional, ParsedKeywords};
use super::distribute::Choice;
use super::one_of::OneOf;
use super::{Alternatives, Expansion, FUEL_PER_LOCATION, Normalizer};

/// A conjunction under construction.
#[derive(Default)]
pub(super) struct Conjuncts<'a> {
    /// What holds in any case.
    out: Alternatives<'a>,
    /// Disjunctions that are expanded.
    choices: Vec<Choice<'a>>,
    /// Schemas with disjunctions that are not expanded yet.
    parsed: Vec<(LocId, ParsedKeywords<'a>)>,
    /// The locations whose keywords have been added.
    joined: Vec<LocId>,
    /// See [`OneOf::closes`](super::one_of::OneOf::closes).
    closes: bool,
}

impl<'a> Conjuncts<'a> {
    /// A conjunction of these alternatives only.
    pub(super) fn new(out: Alternatives<'a>) -> Self {
        Conjuncts { out, ..Conjuncts::default() }
    }

    /// Whether a `oneOf` is the only choice.
    fn is_one_of_alone(&self) -> bool {
        let keywords = || self.parsed.iter().map(|(_, keywords)| keywords);
        self.choices.is_empty()
            && keywords().all(|k| k.any_of.is_empty() && k.conditionals.is_empty())
            && keywords().map(|k| k.one_of.len()).sum::<usize>() == 1
    }
}

impl<'a> Normalizer<'a> {
    /// As [`Normalizer::alternatives`], for a rule. Some values may be missing: if undeclared
    /// members are forbidden, the branches of a `oneOf` that is the only choice are closed before
    /// the values of the others are excluded from them.
    pub(crate) fn generated_alternatives(&mut self, conj: &[LocId]) -> Alternatives<'a> {
        let forbids = self.reader.options.undeclared == Undeclared::Forbidden;
        let chooses = |name: &str| name == "oneOf" || name == "allOf";
        let loc = match *conj {
            [loc] if forbids && !loc.is_negated() => loc,
            _ => return self.alternatives(conj),
        };
        let object = self.reader.doc.object(loc);
        if !object.is_some_and(|object| object.iter().any(|(name, _)| chooses(name))) {
            return self.alternatives(conj);
        }
        let mut all = Conjuncts::new(self.always_true.clone());
        self.join(loc, (loc, ""), &mut all);
        if !all.is_one_of_alone() {
            return self.alternatives(conj);
        }
        all.closes = true;
        self.while_in_progress(conj, |normalizer| normalizer.conjoin(loc, all))
    }

    /// Adds the keywords of a schema object to a conjunction.
    pub(super) fn join_keywords(
        &mut self,
        loc: LocId,
        mut parsed: ParsedKeywords<'a>,
        all: &mut Conjuncts<'a>,
    ) {
        let facets = std::mem::replace(&mut parsed.facets, Facets::any());
        if facets.types.is_empty() {
            self.reader.note_contradictory_keywords(loc);
        }
        if facets.types.is_empty() || !facets.is_always_true() {
            let own = if facets.types.is_empty() { Vec::new() } else { vec![facets] };
            all.out = self.product(all.out.clone(), own.into(), loc, "");
        }
        for &other in &parsed.all_of {
            self.join(other, (loc, "allOf"), all);
        }
        all.parsed.push((loc, parsed));
    }

    /// Adds a location to a conjunction. Its choices are expanded last, given all else that holds.
    pub(super) fn join(
        &mut self,
        loc: LocId,
        source: (LocId, &'static str),
        all: &mut Conjuncts<'a>,
    ) {
        let loc = self.reader.follow_references(loc);
        if all.joined.contains(&loc) {
            return;
        }
        if !self.can_join(loc) {
            let next = self.expand(loc);
            if next.len() != 1 && !self.is_limit_placeholder(&next) {
                let source = if loc.is_negated() { (loc, "") } else { source };
                return all.choices.push(Choice::new(source, next));
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
            self.while_in_progress(&[loc], |normalizer| {
                normalizer.join_keywords(loc, parsed, all);
            });
            all.joined.push(loc);
        }
        self.reader.enter(outer);
    }

    /// Whether the keywords of a location are added to a conjunction one by one, because what else
    /// holds may decide its choices.
    pub(super) fn can_join(&mut self, loc: LocId) -> bool {
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
            && match self.memo().expansions.get(&[loc][..]).cloned() {
                None | Some(Expansion::Missing) => true,
                Some(Expansion::InProgress) => false,
                Some(Expansion::Done(out)) => out.len() > FEW || self.is_limit_placeholder(&out),
            }
    }

    /// The alternatives of a conjunction.
    pub(super) fn conjoin(&mut self, loc: LocId, mut all: Conjuncts<'a>) -> Alternatives<'a> {
        for (loc, parsed) in &all.parsed {
            for (keyword, branches) in &parsed.any_of {
                let alternatives = self.expand_any_of(*loc, branches).into();
                all.choices.push(Choice::new((*loc, keyword), alternatives));
            }
        }
        for (loc, parsed) in &all.parsed {
            for branches in &parsed.one_of {
                let one_of = OneOf { loc: *loc, closes: all.closes };
                let alternatives = self.expand_one_of(one_of, &all.out, branches);
                all.choices.push(Choice::new((*loc, "oneOf"), alternatives));
            }
        }
        for (loc, parsed) in all.parsed {
            for conditional in parsed.conditionals {
                let choice = self.expand_conditional(loc, conditional);
                all.choices.push(choice);
            }
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
            Conditional::Dependency { keyword, trigger, names, schema } => {
                let mut absent = Facets::any();
                absent.object.forbidden.push(trigger);
                let mut brought = Facets::of_types(JsonTypes::OBJECT);
                brought.object.required.extend(names);
                let mut present = brought.clone();
                present.object.required.insert(0, trigger);
                let schemas = self.alternatives_of(schema);
                let with = |facets: &Facets<'a>| {
                    let all = schemas.iter().map(|schema| facets.clone().conjoin(schema));
                    all.collect::<Vec<_>>()
                };
                implied_by = Rc::new(with(&brought));
                (keyword, [absent].into_iter().chain(with(&present)).collect())
            }
        };
        Choice { source: (loc, source), alternatives: Rc::new(union), implied_by }
    }

    /// The alternatives of one or two locations.
    fn conjoin_with_optional(&mut self, first: LocId, second: Option<LocId>) -> Vec<Facets<'a>> {
        self.alternatives_of([first].into_iter().chain(second)).to_vec()
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
            let reason = Reason::Limit(what);
            self.reader.relax(loc, "anyOf", reason.clone());
            let mut open = Facets::any();
            self.reader.push_unenforced(&mut open, JsonTypes::ALL, loc, "anyOf", reason);
            let all = branches.iter().flat_map(|&branch| self.expand(branch).to_vec());
            return all.map(|facets| facets.conjoin(&open)).collect();
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
}
