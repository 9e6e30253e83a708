//! Schemas that hold together, as a list of alternatives, each one [`Facets`]: a disjunctive normal form one level deep.
//! Subschemas of members and elements stay locations until they are lowered, so recursion costs nothing here.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::doc::{Doc, LocId};
use super::facets::{ArrayPart, Covers, Facets, ObjectPart, PatternUse, Types};
use super::keywords::{Case, Said};
use super::same::is_annotation;
use super::{
    Dialect as Draft, Policy, Registry, SchemaError, SchemaErrorReason as Reason, SchemaOptions,
};
use crate::front::regex::{Known, RegexError, known};
use crate::fsm::Dfa;
use crate::fuel;
use crate::hash::HashMap;
use crate::limits::Limits;
use crate::spec::json::Json;

/// Some locations, mostly one or two.
pub(super) type Locs = SmallVec<[LocId; 4]>;

/// Locations whose schemas hold together: sorted, distinct, none of them trivially true. Empty: any value.
pub(super) type Conj = Locs;

/// Most alternatives one schema may expand to.
pub(super) const MAX_ALTERNATIVES: usize = 2_048;
/// Fuel of looking at a location, beside a unit for each of its keywords.
const LOCATION: usize = 8;
/// Fuel of parsing a byte of a pattern.
const PARSED: usize = 10;
/// Fuel of two facets conjoined, beside a unit for each member of their lists.
const CONJOINED: usize = 16;
/// Most errors worth reporting.
const MAX_ERRORS: usize = 1_000;

pub(super) type Alternatives<'a> = Rc<Vec<Facets<'a>>>;

#[derive(Clone, Default)]
enum Memo<'a> {
    #[default]
    Unknown,
    Open,
    Done(Alternatives<'a>),
}

/// Things that cost something everywhere and are rare: met for the first time, the schema is read again with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// `unevaluated...`: which parts evaluate what is kept, and all combinations of `anyOf` branches are told apart.
    pub(super) evaluation: bool,
    /// Dynamic references: locations know the resources entered on the way to them.
    pub(super) dynamic: bool,
    /// Objects are compared: no name of a member is written twice, so that a text has one value.
    pub(super) differ: bool,
}

pub(super) struct Normalizer<'a> {
    pub(super) doc: Doc<'a>,
    pub(super) options: SchemaOptions,
    pub(super) limits: &'a Limits,
    pub(super) errors: Vec<SchemaError>,
    /// What is not enforced although it is asked for.
    pub(super) relaxed: Vec<SchemaError>,
    /// Met so far.
    pub(super) needs: Needs,
    /// [`Needs::evaluation`] is served.
    pub(super) evaluation: bool,
    /// Contradictions met; only reported if nothing is left of the schema.
    pub(super) conflicts: Vec<SchemaError>,
    memo: Vec<Memo<'a>>,
    conjunctions: HashMap<Conj, Alternatives<'a>>,
    /// Whether certainly no value satisfies them.
    pub(super) contradictions: HashMap<Conj, bool>,
    patterns: HashMap<&'a str, Option<Arc<Known>>>,
    any: Alternatives<'a>,
    /// What is left of alternatives that were too many (reported): whatever they are multiplied by, it is not looked at.
    given_up: Alternatives<'a>,
    depth: usize,
    /// The innermost location that is looked at.
    at: LocId,
    /// The fuel is spent, or the request cancelled; it is reported.
    halted: bool,
    /// Nested questions whether something is empty. They may meet a location that is still open: not an error, the answer
    /// is then "unknown", and nothing learnt on the way is kept.
    pub(super) probing: usize,
    unknown: bool,
}

/// Most contradictions that are told.
const MAX_CONFLICTS: usize = 16;

impl<'a> Normalizer<'a> {
    pub(super) fn new(
        (root, remotes): (&'a Json, &'a Registry),
        options: SchemaOptions,
        limits: &'a Limits,
        needs: Needs,
    ) -> Self {
        Normalizer {
            doc: Doc::new(root, remotes, options.dialect, needs.dynamic),
            options,
            limits,
            errors: Vec::new(),
            relaxed: Vec::new(),
            needs,
            evaluation: needs.evaluation,
            conflicts: Vec::new(),
            memo: Vec::new(),
            conjunctions: HashMap::default(),
            contradictions: HashMap::default(),
            patterns: HashMap::default(),
            any: Rc::new(vec![Facets::any()]),
            given_up: Rc::new(vec![Facets::any()]),
            depth: 0,
            at: LocId::ROOT,
            halted: false,
            probing: 0,
            unknown: false,
        }
    }

    /// Spends fuel. `false` if there is none, which is reported at the location that is looked at.
    pub(super) fn spend(&mut self, units: usize) -> bool {
        if !self.halted
            && let Err(out) = fuel::spend(units)
        {
            self.halted = true;
            self.report(self.at, "", Reason::Limit(out.to_string()));
        }
        !self.halted
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.halted
    }

    pub(super) fn report(&mut self, loc: LocId, keyword: &str, reason: Reason) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        let error = SchemaError {
            pointer: self.doc.keyword_pointer(loc, keyword),
            keyword: keyword.to_owned(),
            reason,
        };
        // Not supported: once a keyword, and not where something worse is wrong.
        let minor = matches!(error.reason, Reason::Unsupported(_));
        let known = |e: &SchemaError| *e == error || (minor && e.pointer == error.pointer);
        if !self.errors.iter().any(known) {
            self.errors.push(error);
        }
    }

    /// Something is not enforced: an error, or a relaxation if the policy allows that. The caller goes on with what
    /// allows more.
    pub(super) fn unsupported(&mut self, loc: LocId, keyword: &str, what: String) {
        if self.options.policy == Policy::Strict {
            return self.report(loc, keyword, Reason::Unsupported(what));
        }
        let pointer = self.doc.keyword_pointer(loc, keyword);
        if self.relaxed.len() < MAX_ERRORS
            && !self.relaxed.iter().any(|known| known.pointer == pointer)
        {
            let reason = Reason::Unsupported(what);
            self.relaxed.push(SchemaError { pointer, keyword: keyword.to_owned(), reason });
        }
    }

    /// Notes a contradiction that makes a subschema allow nothing.
    pub(super) fn conflict(&mut self, loc: LocId, keyword: &str, what: &str) {
        if self.conflicts.len() < MAX_CONFLICTS {
            self.conflicts.push(SchemaError {
                pointer: self.doc.keyword_pointer(loc, keyword),
                keyword: keyword.to_owned(),
                reason: Reason::Unsatisfiable(what.to_owned()),
            });
        }
    }

    /// What a schema says of its own values leaves none; unless a keyword has been named, all of
    /// them are.
    fn contradiction(&mut self, loc: LocId) {
        if self.conflicts.len() >= MAX_CONFLICTS {
            return;
        }
        let place = self.doc.keyword_pointer(loc, "") + "/";
        if self
            .conflicts
            .iter()
            .any(|known| known.pointer.strip_suffix(&*known.keyword) == Some(&*place))
        {
            return;
        }
        let names =
            self.doc.object(loc).into_iter().flat_map(|object| object.iter().map(|(name, _)| name));
        let names: Vec<String> = names
            .filter(|name| !is_annotation(name))
            .take(8)
            .map(|name| format!("`{name}`"))
            .collect();
        self.conflict(
            loc,
            "",
            &format!("its keywords contradict each other: {}", names.join(", ")),
        );
    }

    /// The canonical conjunction of locations: references followed, trivial ones dropped.
    pub(super) fn conj(&mut self, locs: impl Into<Locs>) -> Conj {
        let mut locs = locs.into();
        self.settle(&mut locs);
        locs
    }

    /// As [`Normalizer::conj`], in place.
    pub(super) fn settle(&mut self, locs: &mut Locs) {
        locs.retain(|loc| {
            *loc = self.follow(*loc);
            !self.doc.is_any(*loc)
        });
        locs.sort_unstable();
        locs.dedup();
    }

    /// Follows schemas that are nothing but a reference.
    fn follow(&mut self, mut loc: LocId) -> LocId {
        for _ in 0..64 {
            if loc.is_negated() {
                return loc;
            }
            let Some(reference) = self.doc.locs[loc.index()].reference else { return loc };
            if self.doc.draft(loc) > Draft::Draft7
                && self.doc.object(loc).is_some_and(|object| object.len() > 1)
            {
                return loc;
            }
            match self.doc.resolve(loc, reference) {
                Ok(target) if target != loc => loc = target,
                _ => return loc,
            }
        }
        loc
    }

    /// What values satisfy all of the locations. Empty: none do.
    pub(super) fn alternatives(&mut self, conj: &[LocId]) -> Alternatives<'a> {
        match conj {
            [] => return self.any.clone(),
            [only] => return self.expand(*only),
            _ => {}
        }
        if let Some(known) = self.conjunctions.get(conj) {
            return known.clone();
        }
        let mut out = self.any.clone();
        for &loc in conj.iter() {
            let next = self.expand(loc);
            out = self.product(out, next, loc, "");
            if loc.is_negated() {
                out = self.all_reduced(out);
            }
        }
        if !self.unknown {
            self.conjunctions.insert(conj.into(), out.clone());
        }
        out
    }

    /// What values satisfy one location.
    pub(super) fn expand(&mut self, loc: LocId) -> Alternatives<'a> {
        match self.memo.get(loc.number()) {
            Some(Memo::Done(known)) => return known.clone(),
            Some(Memo::Open) if self.probing > 0 => {
                self.unknown = true;
                return self.any.clone();
            }
            Some(Memo::Open) => {
                self.report(
                    loc,
                    "",
                    Reason::Malformed(
                        "the schema refers to itself without an object or array between".into(),
                    ),
                );
                return self.any.clone();
            }
            Some(Memo::Unknown) | None => {}
        }
        let around = std::mem::replace(&mut self.at, loc);
        let keywords = self.doc.object(loc).map_or(0, |object| object.len());
        let out = if self.spend(LOCATION + keywords) {
            self.expand_unknown(loc)
        } else {
            self.any.clone()
        };
        self.at = around;
        out
    }

    /// As [`Normalizer::expand`] of a location that nothing is known of.
    fn expand_unknown(&mut self, loc: LocId) -> Alternatives<'a> {
        if self.depth >= self.limits.depth || self.doc.len() > self.limits.nodes {
            let what = if self.depth >= self.limits.depth {
                "depth of references and applicators"
            } else {
                "schema nodes"
            };
            self.report(loc, "", Reason::Limit(what.into()));
            return self.any.clone();
        }
        let has_members = self.doc.object(loc).is_some_and(|object| !object.is_empty());
        if self.doc.depth(loc) + usize::from(has_members) > self.limits.depth {
            let what = format!("nested deeper than {}", self.limits.depth);
            self.report(LocId::ROOT, "", Reason::Limit(what));
            return self.any.clone();
        }
        if self.memo.len() <= loc.number() {
            self.memo.resize(2 * self.doc.len(), Memo::Unknown);
        }
        self.memo[loc.number()] = Memo::Open;
        self.depth += 1;
        let out = match self.doc.json(loc) {
            _ if self.doc.is_synthetic(loc) => self.synthetic(loc),
            Json::Bool(allows) if *allows != loc.is_negated() => self.any.clone(),
            Json::Bool(_) => Rc::new(Vec::new()),
            Json::Object(object) if loc.is_negated() => self.negation(loc, object),
            Json::Object(object) => {
                let said = self.keywords(loc, object);
                self.combine(loc, said)
            }
            _ => {
                self.report(
                    loc,
                    "",
                    Reason::Malformed("a schema must be an object or a boolean".into()),
                );
                self.any.clone()
            }
        };
        self.depth -= 1;
        self.memo[loc.number()] =
            if self.unknown { Memo::Unknown } else { Memo::Done(out.clone()) };
        out
    }

    /// What satisfies a location that is no schema.
    fn synthetic(&mut self, loc: LocId) -> Alternatives<'a> {
        if let Some(value) = self.doc.constant(loc) {
            if loc.is_negated() {
                return self.other_values(loc.negated(), &[value]);
            }
            return Rc::new(vec![Facets { values: Some(Rc::new(vec![value])), ..Facets::any() }]);
        }
        let Some(parts) = self.doc.union(loc) else { return self.any.clone() };
        if loc.is_negated() {
            let conj = self.conj(parts.iter().map(|part| part.negated()).collect::<Locs>());
            return self.alternatives(&conj);
        }
        Rc::new(parts.iter().flat_map(|&part| self.expand(part).to_vec()).collect())
    }

    /// A location's own assertions, multiplied by what it applies.
    pub(super) fn combine(&mut self, loc: LocId, said: Said<'a>) -> Alternatives<'a> {
        let Said { facets, all, any, one, cases, unevaluated_properties, unevaluated_items } = said;
        if facets.types.is_none() {
            self.contradiction(loc);
        }
        let mut out: Alternatives<'a> = match facets.types.is_none() {
            true => Rc::new(Vec::new()),
            false if facets.is_any() => self.any.clone(),
            false => Rc::new(vec![facets]),
        };
        for other in all {
            let next = self.expand(other);
            out = self.product(out, next, loc, "allOf");
            if other.is_negated() {
                out = self.all_reduced(out);
            }
        }
        for (keyword, branches) in any {
            let union = self.at_least_one(loc, &branches);
            out = self.product(out, union.into(), loc, keyword);
        }
        for branches in one {
            let union = self.exactly_one(loc, &out, &branches);
            out = self.product(out, union.into(), loc, "oneOf");
        }
        for case in cases {
            let union = match case {
                Case::If { condition, then, otherwise } => {
                    let mut union = self.both(condition, then);
                    union.extend(self.both(condition.negated(), otherwise));
                    union
                }
                Case::Dependent { trigger, names, schema } => {
                    let mut absent = Facets::any();
                    absent.object.forbidden.push(trigger);
                    let mut present = Facets { types: Types::OBJECT, ..Facets::any() };
                    present.object.required.push(trigger);
                    present.object.required.extend(names);
                    let conj = self.conj(schema.into_iter().collect::<Locs>());
                    let with = self.alternatives(&conj);
                    [absent]
                        .into_iter()
                        .chain(with.iter().map(|f| present.clone().conjoin(f)))
                        .collect()
                }
            };
            out = self.product(out, union.into(), loc, "if");
        }
        if let Some(schema) = unevaluated_properties {
            out = Rc::new(out.iter().map(|f| self.unevaluated_properties(f, schema)).collect());
        }
        if let Some(schema) = unevaluated_items {
            out = Rc::new(out.iter().map(|f| self.unevaluated_items(f, loc, schema)).collect());
        }
        out
    }

    fn both(&mut self, first: LocId, second: Option<LocId>) -> Vec<Facets<'a>> {
        let conj = self.conj([first].into_iter().chain(second).collect::<Locs>());
        self.alternatives(&conj).to_vec()
    }

    /// `anyOf`. Where evaluation matters every set of branches that may hold together is an alternative of its own: the more
    /// of them hold the more they evaluate.
    fn at_least_one(&mut self, loc: LocId, branches: &[LocId]) -> Vec<Facets<'a>> {
        const MAX_TOGETHER: usize = 8;
        if !self.evaluation || branches.len() < 2 {
            return branches.iter().flat_map(|&branch| self.expand(branch).to_vec()).collect();
        }
        if branches.len() > MAX_TOGETHER {
            let what = format!(
                "more than {MAX_TOGETHER} branches in a schema with `unevaluatedProperties` or `unevaluatedItems`"
            );
            self.report(loc, "anyOf", Reason::Limit(what));
            return Vec::new();
        }
        let mut out = Vec::new();
        for chosen in 1..1usize << branches.len() {
            let mut both = self.any.clone();
            for (_, &branch) in branches.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1) {
                let next = self.expand(branch);
                both = self.product(both, next, loc, "anyOf");
            }
            out.extend(both.iter().cloned());
        }
        out
    }

    /// Members that no part evaluates satisfy the schema. Then everything is evaluated.
    fn unevaluated_properties(&self, facets: &Facets<'a>, schema: LocId) -> Facets<'a> {
        let mut out = facets.clone();
        let seen = || facets.object.parts.iter().filter(|part| part.covers != Covers::Nothing);
        if seen().any(|part| part.covers == Covers::All) {
            return out;
        }
        let names: crate::hash::HashSet<&'a str> =
            seen().flat_map(|part| part.properties.iter().map(|(name, _)| *name)).collect();
        let mut names: Vec<&'a str> = names.into_iter().collect();
        // Declared elsewhere already, so their order here decides nothing; but it must not depend on a hash.
        names.sort_unstable();
        let mut part = ObjectPart::new(names.into_iter().map(|name| (name, LocId::TRUE)).collect());
        part.patterns = seen()
            .flat_map(|part| part.patterns.iter().map(|(p, _)| (p.clone(), LocId::TRUE)))
            .collect();
        part.additional = Some(schema);
        part.covers = Covers::All;
        out.object.parts.push(Rc::new(part));
        out
    }

    /// As [`Normalizer::unevaluated_properties`], for elements.
    fn unevaluated_items(&mut self, facets: &Facets<'a>, loc: LocId, schema: LocId) -> Facets<'a> {
        let mut out = facets.clone();
        let seen = || facets.array.parts.iter().filter(|part| part.covers != Covers::Nothing);
        if seen().any(|part| part.covers == Covers::All) {
            return out;
        }
        let prefix = vec![LocId::TRUE; seen().map(|part| part.prefix.len()).max().unwrap_or(0)];
        let contained =
            facets.array.contains.iter().filter(|c| c.covers != Covers::Nothing).map(|c| c.schema);
        let mut allowed: Vec<LocId> = [schema].into_iter().chain(contained).collect();
        let rest =
            if allowed.len() == 1 { allowed.remove(0) } else { self.doc.any_of(loc, allowed) };
        out.array.parts.push(Rc::new(ArrayPart { prefix, rest: Some(rest), covers: Covers::All }));
        out
    }

    /// Every pair of alternatives together, without contradictions and what is contained in others.
    pub(super) fn product(
        &mut self,
        a: Alternatives<'a>,
        b: Alternatives<'a>,
        loc: LocId,
        keyword: &str,
    ) -> Alternatives<'a> {
        if self.is_given_up(&a) || self.is_given_up(&b) {
            return self.given_up.clone();
        }
        if a.len() * b.len() > MAX_ALTERNATIVES {
            self.report(
                loc,
                "",
                Reason::Limit(format!("more than {MAX_ALTERNATIVES} alternatives")),
            );
            return self.given_up.clone();
        }
        if Rc::ptr_eq(&a, &self.any) {
            return b;
        }
        let before = a.len() * b.len();
        let sizes = |list: &[Facets<'a>]| list.iter().map(Facets::size).sum::<usize>();
        let copied = sizes(&a) * b.len() + sizes(&b) * a.len();
        if !self.spend(before * CONJOINED + copied) {
            return self.given_up.clone();
        }
        let out: Vec<Facets<'a>> = a
            .iter()
            .flat_map(|x| b.iter().map(move |y| x.clone().conjoin(y)))
            .filter(|f| !f.types.is_none())
            .collect();
        if out.is_empty() && before > 0 {
            self.conflict(loc, keyword, "contradicts what else holds here");
        }
        Rc::new(if a.len() > 1 && b.len() > 1 { self.thinned(out) } else { out })
    }

    pub(super) fn is_given_up(&self, alternatives: &Alternatives<'a>) -> bool {
        Rc::ptr_eq(alternatives, &self.given_up)
    }

    pub(super) fn disjoint(&mut self, a: &[Facets<'a>], b: &[Facets<'a>]) -> bool {
        a.iter().all(|x| {
            b.iter().all(|y| {
                if !x.types.meets(y.types) {
                    return true;
                }
                if !self.spend_on(x, y) {
                    return true;
                }
                let both = x.clone().conjoin(y);
                if both.types.is_none() {
                    return true;
                }
                let (empty, unknown) = self.probe(|norm| norm.is_empty(&both, 4));
                empty && !unknown
            })
        })
    }

    /// The answer to a question that may meet what is still open, and whether it did: then nothing is known.
    pub(super) fn probe<T>(&mut self, question: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let before = std::mem::replace(&mut self.unknown, false);
        self.probing += 1;
        let answer = question(self);
        self.probing -= 1;
        (answer, std::mem::replace(&mut self.unknown, before))
    }

    /// Takes the steps that two facets together cost.
    pub(super) fn spend_on(&mut self, x: &Facets<'a>, y: &Facets<'a>) -> bool {
        self.spend(CONJOINED + x.size() + y.size())
    }

    /// A pattern of the schema; malformed or unsupported ones are reported.
    pub(super) fn pattern(&mut self, used: &PatternUse<'a>) -> Option<Arc<Known>> {
        if let Some(known) = self.patterns.get(used.source) {
            return known.clone();
        }
        if !self.spend(PARSED * used.source.len()) {
            return None;
        }
        let known = match known(used.source, self.limits) {
            Ok(known) => Some(known),
            Err(error) => {
                let text = error.to_string();
                let reason = match error {
                    RegexError::Syntax { .. } => Reason::Malformed(text),
                    RegexError::Unsupported { .. } => Reason::Unsupported(text),
                    RegexError::TooLarge(_) => Reason::Limit(text),
                };
                match reason {
                    Reason::Unsupported(what) => self.unsupported(used.loc, used.keyword, what),
                    reason => self.report(used.loc, used.keyword, reason),
                }
                None
            }
        };
        self.patterns.insert(used.source, known.clone());
        known
    }

    /// The automaton of the texts that contain a match; `None` (reported) if there is none or it is too large.
    pub(super) fn pattern_dfa(&mut self, used: &PatternUse<'a>) -> Option<Arc<Dfa>> {
        let built = self.pattern(used)?.search_dfa(self.limits.automaton_states);
        if let Err(error) = &built {
            self.report(used.loc, used.keyword, Reason::Limit(error.to_string()));
        }
        built.ok()
    }

    /// The automaton of the texts that contain no match; as [`Normalizer::pattern_dfa`].
    pub(super) fn pattern_complement(&mut self, used: &PatternUse<'a>) -> Option<Arc<Dfa>> {
        let built = self.pattern(used)?.complement(self.limits.automaton_states);
        if let Err(error) = &built {
            self.report(used.loc, used.keyword, Reason::Limit(error.to_string()));
        }
        built.ok()
    }

    /// Reports the keywords that are not enforced and would constrain values of these types.
    pub(super) fn report_unenforced(&mut self, facets: &Facets<'a>, types: Types) {
        for item in &facets.unenforced {
            if item.types.meets(types) {
                self.unsupported(
                    item.loc,
                    item.keyword,
                    format!("`{}`: {}", item.keyword, item.why),
                );
            }
        }
    }
}
