//! What a policy relaxes because a limit was reached, and where the work was done.
//!
//! Under a policy that relaxes, lowering that ends with limits is repeated, and what caused them is
//! relaxed: first the keyword, then what multiplies alternatives, then everything but the
//! structure, in the end everything but the types of the value; then the same in the schema around
//! it. If the schema as a whole needs too much, that happens where most of the work was done.
//!
//! A relaxed keyword is an [`UnenforcedKeyword`]: every value
//! satisfies it, and the negation of its schema allows every value. So a relaxation allows more
//! under any number of negations. Schemas are known by their [`JsonId`], which does not change from
//! one attempt to the next.

use super::super::error::SchemaErrorReason as Reason;
use super::super::keyword::{Keyword, RelaxationLevel, subschemas};
use super::super::options::Undeclared;
use super::doc::LocId;
use super::facets::{Facets, JsonTypes, UnenforcedKeyword};
use super::resources::JsonId;
use super::{Features, SchemaReader};
use crate::fuel;
use crate::hash::{HashMap, IndexSet};
use crate::spec::json::{Json, Object};

/// The largest number of schemas that are relaxed together.
const MAX_RELAXED_TOGETHER: usize = 4_096;
/// The largest number of costly schemas that are relaxed in one attempt.
const MAX_COSTLY: usize = 64;

/// What an attempt to lower a schema starts with: the findings of the attempts before.
#[derive(Clone, Default)]
pub(crate) struct Attempt {
    /// Features that the schema needs.
    pub(crate) features: Features,
    /// What is relaxed.
    pub(crate) relaxations: Relaxations,
}

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeywordTreatment {
    Enforced,
    /// `oneOf` is read as `anyOf`.
    AnyOf,
    Dropped,
}

/// The relaxations of one schema object.
#[derive(Clone, Default)]
struct ObjectRelaxation {
    level: RelaxationLevel,
    keywords: Vec<String>,
}

impl ObjectRelaxation {
    /// What becomes of a keyword, regardless of others that it depends on.
    fn treatment(&self, keyword: &str) -> KeywordTreatment {
        let listed = self.keywords.iter().any(|other| other == keyword);
        let level = Keyword::lookup(keyword).and_then(|known| known.dropped_at);
        if keyword == "oneOf" && self.level < RelaxationLevel::Structure {
            match listed || self.level == RelaxationLevel::Branches {
                true => KeywordTreatment::AnyOf,
                false => KeywordTreatment::Enforced,
            }
        } else if listed || level.is_some_and(|level| level <= self.level) {
            KeywordTreatment::Dropped
        } else {
            KeywordTreatment::Enforced
        }
    }
}

/// After so many attempts that reached limits, the root is relaxed to its types.
const MAX_ROUNDS: usize = 12;

/// What is relaxed.
#[derive(Clone, Default)]
pub(crate) struct Relaxations {
    /// What is relaxed of each schema object.
    objects: HashMap<JsonId, ObjectRelaxation>,
    /// The number of attempts that reached limits.
    rounds: usize,
    /// The number of attempts that ended early. Each relaxes more than the one before.
    halted_rounds: usize,
}

impl Relaxations {
    /// Relaxes one keyword of a schema. Returns whether that changes anything.
    fn relax_keyword(&mut self, schema: &Json, keyword: &str) -> bool {
        if keyword.is_empty() || schema.get(keyword).is_none() {
            return false;
        }
        let relaxation = self.objects.entry(JsonId::of(schema)).or_default();
        let before = relaxation.treatment(keyword);
        relaxation.keywords.push(keyword.to_owned());
        before < relaxation.treatment(keyword)
    }

    /// Relaxes a schema to a level. Returns whether that changes anything.
    fn raise(&mut self, schema: &Json, level: RelaxationLevel) -> bool {
        let Some(object) = schema.as_object() else { return false };
        let relaxation = self.objects.entry(JsonId::of(schema)).or_default();
        let raised = ObjectRelaxation {
            level: level.max(relaxation.level),
            keywords: relaxation.keywords.clone(),
        };
        let changes = object.iter().any(|(k, _)| relaxation.treatment(k) < raised.treatment(k));
        *relaxation = raised;
        changes
    }
}

/// The work of one attempt: where it was done, and where limits were reached.
#[derive(Default)]
pub(super) struct WorkLog {
    /// The work ended early, which has been reported. Later limits are consequences.
    pub(super) halted: bool,
    /// Locations and keywords of the reached limits.
    limits: Vec<(LocId, String)>,
    /// Fuel spent at each location, by [`LocId::index`].
    costs: Vec<u64>,
    /// The fuel that had been spent when the current location was entered.
    entered_at: u64,
}

impl WorkLog {
    /// The work of an attempt that begins now.
    pub(super) fn begin() -> WorkLog {
        WorkLog { entered_at: fuel::spent(), ..WorkLog::default() }
    }

    /// Notes a limit. One that is noted already is not relaxed twice.
    pub(super) fn add_limit(&mut self, loc: LocId, keyword: &str) {
        let limit = (loc, keyword.to_owned());
        if !self.limits.contains(&limit) {
            self.limits.push(limit);
        }
    }

    /// Counts the fuel that was spent since the last call as spent at this location.
    pub(super) fn charge(&mut self, loc: LocId) {
        let now = fuel::spent();
        if self.costs.len() <= loc.index() {
            self.costs.resize(2 * loc.index() + 1, 0);
        }
        self.costs[loc.index()] += now.saturating_sub(self.entered_at);
        self.entered_at = now;
    }

    /// The locations at which most of the fuel was spent, the costliest first.
    pub(super) fn costliest(&self) -> Vec<LocId> {
        let mut costs: Vec<(usize, u64)> = self.costs.iter().copied().enumerate().collect();
        costs.sort_by_key(|(index, cost)| (std::cmp::Reverse(*cost), *index));
        let (all, mut sum): (u64, u64) = (self.costs.iter().sum(), 0);
        let most = costs.into_iter().take(MAX_COSTLY).take_while(|(_, cost)| {
            let few = *cost > 0 && sum <= all / 2;
            sum += cost;
            few
        });
        most.map(|(index, _)| LocId::new(index)).collect()
    }
}

impl<'a> SchemaReader<'a> {
    /// The relaxation of the schema object at a location.
    fn relaxation(&self, loc: LocId) -> Option<&ObjectRelaxation> {
        let objects = &self.relaxations.objects;
        (!objects.is_empty()).then(|| objects.get(&JsonId::of(self.doc.json(loc))))?
    }

    /// Whether only the types of the schema at a location are enforced.
    pub(crate) fn is_relaxed_to_types(&self, loc: LocId) -> bool {
        self.relaxation(loc).is_some_and(|known| known.level == RelaxationLevel::Types)
    }

    /// What becomes of a keyword of the schema object at a location.
    pub(super) fn treatment(&self, loc: LocId, object: &Object, keyword: &str) -> KeywordTreatment {
        let Some(relaxation) = self.relaxation(loc) else { return KeywordTreatment::Enforced };
        let is_dropped = |other: &&str| {
            object.get(other).is_some() && relaxation.treatment(other) == KeywordTreatment::Dropped
        };
        let relies_on = Keyword::lookup(keyword).map_or(&[][..], |known| known.relies_on);
        match relies_on.iter().any(is_dropped) {
            true => KeywordTreatment::Dropped,
            false => relaxation.treatment(keyword),
        }
    }

    /// The value of a keyword, unless the keyword is dropped.
    pub(super) fn enforced(
        &self,
        loc: LocId,
        object: &'a Object,
        keyword: &str,
    ) -> Option<&'a Json> {
        let value = object.get(keyword)?;
        (self.treatment(loc, object, keyword) == KeywordTreatment::Enforced).then_some(value)
    }

    /// Parses a keyword that is dropped because of a limit.
    pub(super) fn drop_keyword(
        &self,
        loc: LocId,
        keyword: &'a str,
        value: &'a Json,
        facets: &mut Facets<'a>,
    ) {
        let what = format!("`{keyword}` is not enforced, as that would take too much work");
        self.push_unenforced(facets, JsonTypes::ALL, loc, keyword, Reason::Limit(what));
        let constants = match keyword {
            "enum" => value.as_array().unwrap_or_default(),
            "const" => std::slice::from_ref(value),
            _ => return,
        };
        facets.types = facets.types.intersect(JsonTypes::of_listed(constants));
    }

    /// Notes that a keyword which constrains values of these types is not enforced. Which members
    /// and elements it evaluates is unknown, so all of them count as evaluated.
    pub(crate) fn push_unenforced(
        &self,
        facets: &mut Facets<'a>,
        types: JsonTypes,
        loc: LocId,
        keyword: &'a str,
        reason: Reason,
    ) {
        facets.unenforced.push(UnenforcedKeyword { types, loc, keyword, reason });
        if self.tracks_evaluation || self.options.undeclared == Undeclared::Forbidden {
            facets.evaluate_all();
        }
    }

    /// Enters a location: the work that follows counts as done there. Returns the location before.
    pub(crate) fn enter(&mut self, loc: LocId) -> LocId {
        self.work.charge(self.current);
        std::mem::replace(&mut self.current, loc)
    }

    /// Reports a limit at the first of these keywords that a schema has, else at the schema.
    pub(crate) fn report_limit(&mut self, loc: LocId, keywords: &[&'static str], what: String) {
        let has = |keyword: &&&str| !loc.is_negated() && self.doc.json(loc).get(keyword).is_some();
        let keyword = keywords.iter().find(has).copied().unwrap_or_default();
        self.report(loc, keyword, Reason::Limit(what));
    }

    /// Reports a limit at the keyword that holds a schema.
    pub(crate) fn report_limit_around(&mut self, schema: LocId, what: String) {
        let (loc, keyword) = self.doc.holder(schema);
        self.report(loc, keyword, Reason::Limit(what));
    }

    /// Where limits were reached, each as a list of one location and a keyword, perhaps empty.
    pub(crate) fn places_of_limits(&mut self) -> Vec<(Vec<LocId>, String)> {
        let mut places = std::mem::take(&mut self.work.limits);
        if self.work.halted {
            places.extend(self.work.costliest().into_iter().map(|loc| (loc, String::new())));
        }
        places.into_iter().map(|(loc, keyword)| (vec![loc], keyword)).collect()
    }

    /// Relaxes what led to limits. Each place is a conjunction of locations and a keyword, perhaps
    /// empty. Returns whether there was anything left to relax.
    pub(crate) fn relax_further(&mut self, places: Vec<(Vec<LocId>, String)>) -> bool {
        self.relaxations.rounds += 1;
        self.relaxations.halted_rounds += usize::from(self.work.halted);
        let mut changed = false;
        if self.relaxations.rounds <= MAX_ROUNDS && self.relaxations.halted_rounds <= 4 {
            for (locs, keyword) in places {
                changed |= self.relax_place(locs, &keyword);
            }
        }
        // The costliest schemas have been relaxed twice; now all that have been reached are.
        let everywhere = match self.relaxations.halted_rounds {
            3 => Some(RelaxationLevel::Branches),
            4 => Some(RelaxationLevel::Structure),
            _ => None,
        };
        if let Some(level) = everywhere.filter(|_| self.work.halted) {
            for index in 0..self.doc.len() {
                changed |= self.relaxations.raise(self.doc.json(LocId::new(index)), level);
            }
        }
        changed || self.relaxations.raise(self.doc.json(LocId::ROOT), RelaxationLevel::Types)
    }

    /// Relaxes a conjunction of locations by one step: a keyword of it, the schemas that apply to
    /// the same value, or the schemas around them.
    fn relax_place(&mut self, mut own: Vec<LocId>, mut keyword: &str) -> bool {
        use RelaxationLevel::{Branches, Structure, Types};
        loop {
            own = own.into_iter().map(|loc| self.doc.enclosing_object(loc)).collect();
            let all = self.in_place_schemas(&own);
            let mut any = |locs: &[LocId], relax: &dyn Fn(&mut Relaxations, &Json) -> bool| {
                let relaxed =
                    locs.iter().filter(|loc| relax(&mut self.relaxations, self.doc.json(**loc)));
                relaxed.count() > 0
            };
            if any(&all, &|relaxations, schema| relaxations.relax_keyword(schema, keyword)) {
                return true;
            }
            let steps = [(Branches, &own), (Branches, &all), (Structure, &own), (Structure, &all)];
            for (level, locs) in steps.into_iter().chain([(Types, &own)]) {
                if any(locs, &|relaxations, schema| relaxations.raise(schema, level)) {
                    return true;
                }
            }
            let parents: Vec<LocId> = own.iter().map(|&loc| self.doc.parent(loc)).collect();
            if parents == own {
                return false;
            }
            (own, keyword) = (parents, "");
        }
    }

    /// The locations that apply to the same value as these, as far as they have been reached.
    fn in_place_schemas(&mut self, locs: &[LocId]) -> Vec<LocId> {
        let mut out: IndexSet<LocId> = locs.iter().copied().collect();
        let mut next = 0;
        while let Some(&loc) = out.get_index(next).filter(|_| out.len() < MAX_RELAXED_TOGETHER) {
            next += 1;
            let Some(object) = self.doc.object(loc) else { continue };
            let mut children: Vec<&'a Json> = Vec::new();
            let mut targets = Vec::new();
            for (keyword, value) in object.iter() {
                match keyword {
                    "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else"
                    | "dependentSchemas" | "dependencies" => {
                        let schemas = subschemas(keyword, value).into_iter();
                        children.extend(schemas.map(|(_, schema)| schema));
                    }
                    "$ref" => targets.extend(
                        value.as_str().and_then(|target| self.doc.resolve(loc, target).ok()),
                    ),
                    _ => {}
                }
            }
            let children = children.into_iter().filter_map(|json| self.doc.reached(loc, json));
            out.extend(children.chain(targets));
        }
        out.into_iter().collect()
    }
}
