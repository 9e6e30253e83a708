//! Schemas that hold together, as a list of alternatives, each one [`Facets`]: a disjunctive normal form one level deep.
//! Subschemas of members and elements stay locations until they are lowered, so recursion costs nothing here.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::doc::{Doc, Draft, LocId};
use super::facets::{Facets, PatternUse, Types};
use super::keywords::{Said, allows_all};
use super::{SchemaError, SchemaErrorReason as Reason, SchemaOptions};
use crate::front::regex::{Pattern, RegexError};
use crate::fsm::Dfa;
use crate::limits::Limits;
use crate::spec::json::Json;

/// Locations whose schemas hold together: sorted, distinct, none of them trivially true. Empty: any value.
pub(super) type Conj = Rc<[LocId]>;

/// Most alternatives one schema may expand to.
const MAX_ALTERNATIVES: usize = 2_048;
/// Most branches of a `oneOf` that are compared pairwise.
const MAX_BRANCHES: usize = 512;
/// Most errors worth reporting.
const MAX_ERRORS: usize = 1_000;

type Alternatives<'a> = Rc<Vec<Facets<'a>>>;

enum Memo<'a> {
    Open,
    Done(Alternatives<'a>),
}

/// A pattern met in the schema, and its automaton once needed.
pub(super) struct KnownPattern {
    pub(super) pattern: Pattern,
    dfa: Option<Option<Rc<Dfa>>>,
}

pub(super) struct Normalizer<'a> {
    pub(super) doc: Doc<'a>,
    pub(super) options: SchemaOptions,
    pub(super) limits: &'a Limits,
    pub(super) errors: Vec<SchemaError>,
    /// Contradictions met; only reported if nothing is left of the schema.
    pub(super) conflicts: Vec<SchemaError>,
    memo: FxHashMap<LocId, Memo<'a>>,
    conjunctions: FxHashMap<Conj, Alternatives<'a>>,
    patterns: FxHashMap<&'a str, Option<Rc<std::cell::RefCell<KnownPattern>>>>,
    any: Alternatives<'a>,
    depth: usize,
    /// Nested questions whether something is empty. They may meet a location that is still open: not an error, the answer
    /// is then "unknown", and nothing learnt on the way is kept.
    probing: usize,
    unknown: bool,
}

impl<'a> Normalizer<'a> {
    pub(super) fn new(root: &'a Json, options: SchemaOptions, limits: &'a Limits) -> Self {
        Normalizer {
            doc: Doc::new(root),
            options,
            limits,
            errors: Vec::new(),
            conflicts: Vec::new(),
            memo: FxHashMap::default(),
            conjunctions: FxHashMap::default(),
            patterns: FxHashMap::default(),
            any: Rc::new(vec![Facets::any()]),
            depth: 0,
            probing: 0,
            unknown: false,
        }
    }

    pub(super) fn report(&mut self, loc: LocId, keyword: &str, reason: Reason) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        let error =
            SchemaError { pointer: self.doc.keyword_pointer(loc, keyword), keyword: keyword.to_owned(), reason };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Notes a contradiction that makes a subschema allow nothing.
    pub(super) fn conflict(&mut self, loc: LocId, keyword: &str, what: &str) {
        if self.conflicts.len() < 16 {
            self.conflicts.push(SchemaError {
                pointer: self.doc.keyword_pointer(loc, keyword),
                keyword: keyword.to_owned(),
                reason: Reason::Unsatisfiable(what.to_owned()),
            });
        }
    }

    /// The canonical conjunction of locations: references followed, trivial ones dropped.
    pub(super) fn conj(&mut self, locs: Vec<LocId>) -> Conj {
        let mut out: Vec<LocId> = Vec::with_capacity(locs.len());
        for loc in locs {
            let loc = self.follow(loc);
            if loc.is_negated() || !allows_all(self.doc.json(loc)) {
                out.push(loc);
            }
        }
        out.sort_unstable();
        out.dedup();
        out.into()
    }

    /// Follows schemas that are nothing but a reference.
    fn follow(&mut self, mut loc: LocId) -> LocId {
        for _ in 0..64 {
            if loc.is_negated() {
                return loc;
            }
            let Some(object) = self.doc.object(loc) else { return loc };
            let Some(reference) = object.get("$ref").and_then(Json::as_str) else { return loc };
            if object.len() > 1 && self.doc.draft() == Draft::Newer {
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
    pub(super) fn alternatives(&mut self, conj: &Conj) -> Alternatives<'a> {
        match &**conj {
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
            out = self.product(out, &next, loc, "");
        }
        if !self.unknown {
            self.conjunctions.insert(conj.clone(), out.clone());
        }
        out
    }

    /// What values satisfy one location.
    pub(super) fn expand(&mut self, loc: LocId) -> Alternatives<'a> {
        match self.memo.get(&loc) {
            Some(Memo::Done(known)) => return known.clone(),
            Some(Memo::Open) if self.probing > 0 => {
                self.unknown = true;
                return self.any.clone();
            }
            Some(Memo::Open) => {
                self.report(
                    loc,
                    "",
                    Reason::Malformed("the schema refers to itself without an object or array between".into()),
                );
                return self.any.clone();
            }
            None => {}
        }
        if self.depth >= self.limits.depth || self.doc.len() > self.limits.nodes {
            let what =
                if self.depth >= self.limits.depth { "depth of references and applicators" } else { "schema nodes" };
            self.report(loc, "", Reason::Limit(what.into()));
            return self.any.clone();
        }
        self.memo.insert(loc, Memo::Open);
        self.depth += 1;
        let out = match self.doc.json(loc) {
            Json::Bool(allows) if *allows != loc.is_negated() => self.any.clone(),
            Json::Bool(_) => Rc::new(Vec::new()),
            Json::Object(object) if loc.is_negated() => self.negation(loc, object),
            Json::Object(object) => {
                let said = self.keywords(loc, object);
                self.combine(loc, said)
            }
            _ => {
                self.report(loc, "", Reason::Malformed("a schema must be an object or a boolean".into()));
                self.any.clone()
            }
        };
        self.depth -= 1;
        if self.unknown {
            self.memo.remove(&loc);
        } else {
            self.memo.insert(loc, Memo::Done(out.clone()));
        }
        out
    }

    /// A location's own assertions, multiplied by what it applies.
    pub(super) fn combine(&mut self, loc: LocId, said: Said<'a>) -> Alternatives<'a> {
        let Said { facets, all, any, one, cases } = said;
        if facets.types.is_none() {
            self.conflict(loc, "", "its keywords contradict each other");
        }
        let mut out: Alternatives<'a> = Rc::new(if facets.types.is_none() { Vec::new() } else { vec![facets] });
        for other in all {
            let next = self.expand(other);
            out = self.product(out, &next, loc, "allOf");
        }
        for (keyword, branches) in any {
            let mut union = Vec::new();
            for branch in branches {
                union.extend(self.expand(branch).iter().cloned());
            }
            out = self.product(out, &union, loc, keyword);
        }
        for branches in one {
            let union = self.exactly_one(loc, &out, &branches);
            out = self.product(out, &union, loc, "oneOf");
        }
        for case in cases {
            let mut union = Vec::new();
            for (facets, schemas) in case {
                let conj = self.conj(schemas);
                let alternatives = self.alternatives(&conj);
                union.extend(alternatives.iter().map(|a| facets.clone().conjoin(a)));
            }
            out = self.product(out, &union, loc, "if");
        }
        out
    }

    /// Every pair of alternatives together, contradictions left out.
    fn product(&mut self, a: Alternatives<'a>, b: &[Facets<'a>], loc: LocId, keyword: &str) -> Alternatives<'a> {
        if Rc::ptr_eq(&a, &self.any) {
            return Rc::new(b.to_vec());
        }
        if a.len() * b.len() > MAX_ALTERNATIVES {
            self.report(loc, "", Reason::Limit(format!("more than {MAX_ALTERNATIVES} alternatives")));
            return self.any.clone();
        }
        let before = a.len() * b.len();
        let out: Vec<Facets<'a>> =
            a.iter().flat_map(|x| b.iter().map(move |y| x.clone().conjoin(y))).filter(|f| !f.types.is_none()).collect();
        if out.is_empty() && before > 0 {
            self.conflict(loc, keyword, "contradicts what else holds here");
        }
        Rc::new(out)
    }

    /// `oneOf`: each branch without the others. Where two branches cannot both hold (given `base`), nothing is to be done;
    /// otherwise the other branch is negated.
    fn exactly_one(&mut self, loc: LocId, base: &[Facets<'a>], branches: &[LocId]) -> Vec<Facets<'a>> {
        let expanded: Vec<Alternatives<'a>> = branches.iter().map(|&b| self.expand(b)).collect();
        let n = branches.len();
        if n > MAX_BRANCHES {
            self.report(loc, "oneOf", Reason::Limit(format!("more than {MAX_BRANCHES} branches")));
            return Vec::new();
        }
        let narrowed: Vec<Vec<Facets<'a>>> = if let [only] = base {
            expanded.iter().map(|alts| alts.iter().map(|a| a.clone().conjoin(only)).collect()).collect()
        } else {
            expanded.iter().map(|alts| alts.to_vec()).collect()
        };
        let mut excluded: Vec<Vec<LocId>> = vec![Vec::new(); n];
        for i in 0..n {
            for j in i + 1..n {
                if !self.disjoint(&narrowed[i], &narrowed[j]) {
                    excluded[i].push(branches[j].negated());
                    excluded[j].push(branches[i].negated());
                }
            }
        }
        let mut union = Vec::new();
        for (alternatives, others) in expanded.iter().zip(excluded) {
            let mut out = alternatives.clone();
            for other in others {
                let without = self.expand(other);
                out = self.product(out, &without, loc, "oneOf");
            }
            union.extend(out.iter().cloned());
        }
        union
    }

    fn disjoint(&mut self, a: &[Facets<'a>], b: &[Facets<'a>]) -> bool {
        a.iter().all(|x| {
            b.iter().all(|y| {
                if !x.types.meets(y.types) {
                    return true;
                }
                let both = x.clone().conjoin(y);
                if both.types.is_none() {
                    return true;
                }
                let before = std::mem::replace(&mut self.unknown, false);
                self.probing += 1;
                let empty = self.is_empty(&both, 4);
                self.probing -= 1;
                let unknown = std::mem::replace(&mut self.unknown, before);
                empty && !unknown
            })
        })
    }

    /// A pattern of the schema; malformed or unsupported ones are reported.
    pub(super) fn pattern(&mut self, used: &PatternUse<'a>) -> Option<Rc<std::cell::RefCell<KnownPattern>>> {
        if let Some(known) = self.patterns.get(used.source) {
            return known.clone();
        }
        let known = match Pattern::parse(used.source, self.limits) {
            Ok(pattern) => Some(Rc::new(std::cell::RefCell::new(KnownPattern { pattern, dfa: None }))),
            Err(error) => {
                let text = error.to_string();
                let reason = match error {
                    RegexError::Syntax { .. } => Reason::Malformed(text),
                    RegexError::Unsupported { .. } => Reason::Unsupported(text),
                    RegexError::TooLarge(_) => Reason::Limit(text),
                };
                self.report(used.loc, used.keyword, reason);
                None
            }
        };
        self.patterns.insert(used.source, known.clone());
        known
    }

    /// The automaton of the texts that contain a match; `None` (reported) if there is none or it is too large.
    pub(super) fn pattern_dfa(&mut self, used: &PatternUse<'a>) -> Option<Rc<Dfa>> {
        let known = self.pattern(used)?;
        let mut known = known.borrow_mut();
        if known.dfa.is_none() {
            let built = known.pattern.search_dfa(self.limits.automaton_states);
            if let Err(error) = &built {
                self.report(used.loc, used.keyword, Reason::Limit(error.to_string()));
            }
            known.dfa = Some(built.ok().map(Rc::new));
        }
        known.dfa.clone().flatten()
    }

    /// Reports the keywords that are not enforced and would constrain values of these types.
    pub(super) fn report_unenforced(&mut self, facets: &Facets<'a>, types: Types) {
        for item in &facets.unenforced {
            if item.types.meets(types) {
                self.report(item.loc, item.keyword, Reason::Unsupported(format!("`{}`: {}", item.keyword, item.why)));
            }
        }
    }
}
